//! The trace of a run: the settings of the program's trace, and its use after the run.

use super::profiles::{absolute, check, is_fixed, scratch};
use crate::console::{Console, Diagnostic};
use crate::exit::{Outcome, usage};
use crate::run_log::journal::Journal;
use crate::{export, stats, times};
use anyhow::Context;
use clap::{ArgGroup, Args, Command};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Args, Default)]
#[command(group = ArgGroup::new("recording").args(["trace", "stats"]).multiple(true))]
#[group(skip)]
pub struct Options {
    /// Trace kernel dispatches to FILE
    ///
    /// If FILE is in use by another process, the process ID is appended to the name. In FILE, %p stands for the process
    /// ID, %h for the host name and %t for TMPDIR. If FILE has an extension of `devprof export` (.pftrace, .csv, .jsonl
    /// or .json, .db, .xplane.pb), the trace of all processes is exported to it after the run.
    #[arg(long, value_name = "FILE")]
    trace: Option<OsString>,
    /// Print the table of `devprof stats` after the run. A trace is not kept unless --trace names it
    #[arg(long)]
    stats: bool,
    /// Also trace all API calls of HIP or CUDA, not only those that launch, copy or fill
    #[arg(long, requires = "recording")]
    trace_api: bool,
    /// Also trace copies and fills of memory
    #[arg(long, requires = "recording")]
    trace_copies: bool,
    /// Also trace the program's markers and ranges (roctx, NVTX)
    #[arg(long, requires = "recording")]
    trace_markers: bool,
    /// Do not record until the program calls devprof_trace_start, roctxProfilerResume or cudaProfilerStart
    #[arg(long, requires = "recording")]
    trace_stopped: bool,
    /// Start the recording this long after the program has initialized its GPU runtime: milliseconds, or 500ms, 5s, 2m
    #[arg(long, value_name = "TIME", requires = "recording", value_parser = times::milliseconds)]
    trace_start_after: Option<u64>,
    /// Stop the recording this long after each start
    #[arg(long, value_name = "TIME", requires = "recording", value_parser = times::positive_milliseconds)]
    trace_duration: Option<u64>,
    /// Start the recording again this long after each start, until the program starts or stops it itself
    #[arg(long, value_name = "TIME", requires = "trace_duration", value_parser = times::positive_milliseconds)]
    trace_every: Option<u64>,
}

/// A trace that is recorded.
pub struct Recording<'a> {
    options: &'a Options,
    /// The name of the trace, for the program.
    pub name: OsString,
    /// The directory of the trace, if it is not kept.
    temporary: Option<TempDir>,
    /// The file to which it is exported.
    export: Option<&'a Path>,
}

impl Options {
    /// The trace to record. If it is not kept, it is written next to the exported one, or else to the profiles.
    pub fn recording(&self, profiles: &Path) -> anyhow::Result<Option<Recording<'_>>> {
        let Some(trace) = self.trace.as_deref() else {
            return match self.stats {
                true => Recording::temporary(self, profiles, None).map(Some),
                false => Ok(None),
            };
        };
        let name = absolute(trace)?;
        if !export::is_export(Path::new(trace)) {
            return Ok(Some(Recording {
                options: self,
                name,
                temporary: None,
                export: None,
            }));
        }
        Recording::temporary(self, Path::new(&name), Some(Path::new(trace))).map(Some)
    }

    /// Checks that the trace can be written.
    pub fn check(&self) -> anyhow::Result<()> {
        let Some(trace) = self.trace.as_deref() else {
            return Ok(());
        };
        if export::is_export(Path::new(trace)) && !is_fixed(Path::new(trace)) {
            return Err(usage(format!(
                "--trace {}: all processes are in one exported file, so its name cannot have %",
                trace.display()
            )));
        }
        check(&absolute(trace)?, "the trace", "--trace")
    }

    /// The settings for the program, other than the name.
    pub fn settings(&self) -> [(&'static str, Option<OsString>); 7] {
        let flag = |is_on: bool| is_on.then(|| OsString::from("1"));
        let number = |value: Option<u64>| value.map(|value| OsString::from(value.to_string()));
        [
            (settings::TRACE_API.name, flag(self.trace_api)),
            (settings::TRACE_COPIES.name, flag(self.trace_copies)),
            (settings::TRACE_MARKERS.name, flag(self.trace_markers)),
            (settings::TRACE_STOPPED.name, flag(self.trace_stopped)),
            (
                settings::TRACE_START_AFTER.name,
                number(self.trace_start_after),
            ),
            (settings::TRACE_DURATION.name, number(self.trace_duration)),
            (settings::TRACE_EVERY.name, number(self.trace_every)),
        ]
    }
}

impl<'a> Recording<'a> {
    fn temporary(
        options: &'a Options,
        next_to: &Path,
        export: Option<&'a Path>,
    ) -> anyhow::Result<Recording<'a>> {
        let temporary = scratch(next_to)?;
        Ok(Recording {
            options,
            name: temporary.path().join("run.trace").into_os_string(),
            temporary: Some(temporary),
            export,
        })
    }

    /// Whether the trace stays after the run.
    pub fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }

    /// Exports the traces of a run and prints their statistics. Errors are reported. Without them, traces that are not
    /// kept are removed.
    pub fn finish(self, journal: &Journal, console: &mut Console) -> Outcome {
        if self.export.is_none() && !self.options.stats {
            return Outcome::Complete;
        }
        let mut outcome = Outcome::Complete;
        let traces: Vec<&OsStr> = journal.traces.keys().map(|path| path.as_os_str()).collect();
        let results = match traces.is_empty() {
            true => vec![Err(anyhow::anyhow!("no trace was recorded"))],
            false => vec![self.export(&traces, console), self.stats(&traces, console)],
        };
        for result in results {
            match result {
                Ok(Outcome::Complete) => {}
                Ok(incomplete) => outcome = incomplete,
                Err(error) => {
                    console.error(format!("{error:#}"));
                    outcome = Outcome::Failed;
                }
            }
        }
        if let (Some(dir), Some(_), Outcome::Failed) = (self.temporary, self.export, outcome)
            && !traces.is_empty()
        {
            let dir: PathBuf = dir.keep();
            console.report(&Diagnostic::note(format!(
                "the trace that was not exported is in {}",
                dir.display()
            )));
        }
        outcome
    }

    fn export(&self, traces: &[&OsStr], console: &mut Console) -> anyhow::Result<Outcome> {
        let Some(out) = self.export else {
            return Ok(Outcome::Complete);
        };
        let failed = || format!("cannot write {}", out.display());
        if let Some(dir) = out.parent() {
            fs::create_dir_all(dir).with_context(failed)?;
        }
        let options = ["--output".as_ref(), out.as_os_str(), "--".as_ref()];
        let options = parsed::<export::Options>(&[&options, traces].concat())?;
        // stdout is the program's.
        let mut summary = Vec::new();
        let outcome = export::run(
            &options,
            &mut Console {
                out: &mut summary,
                err: console.err,
                colors: console.colors,
            },
        )?;
        let summary = String::from_utf8_lossy(&summary);
        console.report(&Diagnostic::note(summary.trim_end()));
        Ok(outcome)
    }

    fn stats(&self, traces: &[&OsStr], console: &mut Console) -> anyhow::Result<Outcome> {
        if !self.options.stats {
            return Ok(Outcome::Complete);
        }
        let tables = [
            ("--kernels", true),
            ("--api", self.options.trace_api),
            ("--copies", self.options.trace_copies),
            ("--markers", self.options.trace_markers),
        ];
        let chosen = tables.into_iter().filter(|(_, is_chosen)| *is_chosen);
        let options = chosen.map(|(table, _)| OsStr::new(table));
        let options: Vec<&OsStr> = options.chain(["--".as_ref()]).collect();
        stats::run(&parsed(&[&options, traces].concat())?, console)
    }
}

/// The options of another command.
fn parsed<T: Args>(arguments: &[&OsStr]) -> anyhow::Result<T> {
    let command = T::augment_args(Command::new("devprof").no_binary_name(true));
    Ok(T::from_arg_matches(
        &command.try_get_matches_from(arguments)?,
    )?)
}
