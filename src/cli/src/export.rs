//! `devprof export`: converts traces to formats that other tools read. There is one module per format. Each gets the
//! records one at a time, trace by trace, and keeps in memory only records to which others refer.

mod csv;
mod json;
mod messages;
mod perfetto;
mod rocpd;
mod writer;
mod xplane;

pub use json::Object;

use crate::console::{Console, Diagnostic};
use crate::exit::{Outcome, usage};
use crate::names::Naming;
use crate::readable::plural;
use crate::trace_reader::inputs::{Input, Inputs};
use crate::trace_reader::{self, Checks, Record, Request, Selection, Summary, Trace};
use crate::{outfile, traces};
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::collections::HashSet;
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use writer::Writer;

#[derive(Args)]
pub struct Options {
    /// The traces that DEVPROF_TRACE or `devprof run --trace` named: files, directories or patterns (*, ?, [a-z], **)
    ///
    /// The output has the processes of all traces, on one time line.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The format [default: by OUT's extension; csv with --csv-of; or else perfetto]
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// The file to write, or - for stdout; with -f xplane also the log directory of XProf or TensorBoard
    /// [default for one trace: FILE, without .trace, with the format's extension]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The records to write as csv [default: kernels]
    #[arg(long, value_enum, value_name = "TYPE")]
    csv_of: Option<csv::Kind>,
    /// For perfetto: the tracks of kernels [default: stream]
    #[arg(long, value_enum, value_name = "BY")]
    tracks: Option<perfetto::Tracks>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    naming: Naming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For ui.perfetto.dev (.pftrace)
    Perfetto,
    /// rocprofv3's kernel_trace, or another of its files with --csv-of (.csv)
    Csv,
    /// JSON lines, one object per record (.jsonl, .json)
    Json,
    /// An SQLite database in rocpd's schema (.db)
    Rocpd,
    /// For XProf and TensorBoard (.xplane.pb)
    Xplane,
}

impl Format {
    const EXTENSIONS: [(Format, &str); 5] = [
        (Format::Perfetto, "pftrace"),
        (Format::Csv, "csv"),
        (Format::Json, "jsonl"),
        (Format::Rocpd, "db"),
        (Format::Xplane, "xplane.pb"),
    ];

    fn extension(self) -> &'static str {
        let found = Self::EXTENSIONS.iter().find(|(format, _)| *format == self);
        found.map_or("", |(_, extension)| extension)
    }

    fn of(path: &Path) -> Option<Format> {
        let name = path.file_name()?.as_encoded_bytes();
        let has = |extension: &str| {
            let stem = name.strip_suffix(extension.as_bytes());
            stem.is_some_and(|stem| stem.len() > 1 && stem.ends_with(b"."))
        };
        let found = Self::EXTENSIONS.iter().find(|(_, own)| has(own));
        let found = found.map(|(format, _)| *format);
        found.or_else(|| has("json").then_some(Format::Json))
    }
}

/// Whether a file has the extension of a format.
pub fn is_export(path: &Path) -> bool {
    Format::of(path).is_some()
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let paths = traces::expand(&options.files)?;
    let (format, out) = target(options, &paths)?;
    let outputs = outputs(options, &paths, format, &out)?;
    if format == Format::Perfetto
        && let Some(pipe) = paths.iter().find(|path| outfile::is_device_or_pipe(path))
    {
        return Err(usage(format!(
            "cannot export {} to Perfetto's format, which requires reading it twice: write the trace to a file",
            pipe.display()
        )));
    }
    let inputs = Inputs::read(paths)?;
    if inputs.clocks > 1 {
        console.report(&Diagnostic::note(format!(
            "the traces are of {} hosts or boots: their times are aligned by the realtime clocks, and are as exact as those",
            inputs.clocks
        )));
    }
    let export = Export {
        options,
        format,
        out,
        inputs,
    };
    let is_log_directory = format == Format::Xplane && outfile::is_directory(&export.out);
    let (summary, written) = if is_log_directory {
        export.to_log_directory(console)?
    } else {
        export.to_files(&outputs, console)?
    };
    let line = export.summary(&summary, &written);
    let out = &export.out;
    outfile::print_summary(console, out, &line)?;
    if format == Format::Xplane
        && !outfile::is_stream(out)
        && Format::of(Path::new(&written)) != Some(format)
        && !is_log_directory
    {
        console.report(&Diagnostic::note(format!(
            "XProf reads only files with the extension .xplane.pb, which {0} does not have: for a log directory, use -o {0}/",
            out.display()
        )));
    }
    Ok(summary.outcome())
}

struct Export<'a> {
    options: &'a Options,
    format: Format,
    out: PathBuf,
    inputs: Inputs,
}

impl Export<'_> {
    fn failed(&self) -> String {
        format!("cannot write {}", outfile::name(&self.out))
    }

    /// Writes one output with all traces, which can have several files. Returns a summary of its contents, and its name.
    fn to_files(
        &self,
        outputs: &[PathBuf],
        console: &mut Console,
    ) -> anyhow::Result<(Summary, String)> {
        let mut temporaries = Vec::new();
        for output in outputs {
            let temporary = outfile::create_temporary(output);
            temporaries.push(temporary.with_context(|| self.failed())?);
        }
        let writer = self.writer(&temporaries, None);
        let mut writer = writer.with_context(|| self.failed())?;
        let mut summary = Summary::default();
        for input in &self.inputs.all {
            let (_, part) = self.export(input, writer.as_mut(), console)?;
            summary.add(&part);
        }
        writer.finish().with_context(|| self.failed())?;
        for (temporary, output) in temporaries.into_iter().zip(outputs) {
            outfile::commit(temporary, output)
                .with_context(|| format!("cannot write {}", outfile::name(output)))?;
        }
        let names: Vec<_> = outputs.iter().map(|output| outfile::name(output)).collect();
        Ok((summary, names.join(", ")))
    }

    /// Writes one profile per trace to the log directory of XProf. Returns a summary of their contents, and their path.
    fn to_log_directory(&self, console: &mut Console) -> anyhow::Result<(Summary, String)> {
        let logs = &self.out;
        let failed = || self.failed();
        fs::create_dir_all(logs).with_context(failed)?;
        let run_start = xplane::run_start(&self.inputs, |input| self.request(input))?;
        let mut summary = Summary::default();
        let mut used = HashSet::new();
        let mut profiles = Vec::new();
        let mut started_unix = self.inputs.started_unix;
        for input in &self.inputs.all {
            let temporary =
                outfile::create_temporary(&logs.join("profile")).with_context(failed)?;
            let temporary = [temporary];
            let mut writer = self.writer(&temporary, run_start).with_context(failed)?;
            let (trace, part) = self.export(input, writer.as_mut(), console)?;
            writer.finish().with_context(failed)?;
            summary.add(&part);
            started_unix = started_unix.or(Some(trace.header.started_unix.get()));
            // There can be more profiles than files can be open.
            let paths = temporary.map(NamedTempFile::into_temp_path).into_iter();
            profiles.extend(paths.map(|path| (path, xplane::file_name(&trace, &mut used))));
        }
        let run =
            xplane::run_directory(logs, started_unix.unwrap_or_default()).with_context(failed)?;
        let written = match &*profiles {
            [(_, name)] => run.join(name),
            _ => run.join(""),
        };
        for (temporary, name) in profiles {
            let output = run.join(name);
            outfile::commit_closed(temporary, &output)
                .with_context(|| format!("cannot write {}", output.display()))?;
        }
        Ok((summary, written.display().to_string()))
    }

    fn request(&self, input: &Input) -> Request<'_> {
        input.request(&self.options.selection, self.options.naming)
    }

    /// Exports a trace.
    fn export(
        &self,
        input: &Input,
        writer: &mut dyn Writer,
        console: &mut Console,
    ) -> anyhow::Result<(Trace, Summary)> {
        // Errors of the input are reported as such.
        let request = self.request(input);
        writer.begin(input, request)?;
        let take = |record: &Record, trace: &mut Trace| {
            let recorded = writer.record(record, trace);
            recorded.with_context(|| self.failed())
        };
        let read = trace_reader::read(&input.path, request, Checks::All, console, take);
        let (mut trace, summary) = read?;
        writer.end(&mut trace).with_context(|| self.failed())?;
        Ok((trace, summary))
    }

    /// The line about the output.
    fn summary(&self, summary: &Summary, written: &str) -> String {
        let count = self.inputs.all.len();
        let (traces, noun) = match count {
            1 => (String::new(), "trace"),
            _ => (format!("{}, ", plural(count, "trace")), "traces"),
        };
        let damage = if summary.is_damaged {
            format!("; parts of the {noun} are damaged")
        } else {
            String::new()
        };
        let records = summary.text(|kind| match self.format {
            Format::Csv => self.options.csv_of.unwrap_or_default().has(kind),
            _ => true,
        });
        format!("{written}: {traces}{records}{damage}")
    }

    /// The writer of the format to the temporary files for [`outputs`], of which there is at least one.
    fn writer(
        &self,
        temporaries: &[NamedTempFile],
        run_start: Option<u64>,
    ) -> anyhow::Result<Box<dyn Writer>> {
        let open = |temporary: &NamedTempFile| {
            let file = temporary.reopen()?;
            io::Result::Ok(BufWriter::with_capacity(1 << 20, file))
        };
        let first = &temporaries[0];
        Ok(match self.format {
            Format::Perfetto => {
                let tracks = self.options.tracks.unwrap_or_default();
                Box::new(perfetto::Perfetto::new(open(first)?, tracks))
            }
            Format::Csv => {
                let files = temporaries.iter().map(open).collect::<io::Result<_>>()?;
                Box::new(csv::Csv::new(
                    self.options.csv_of.unwrap_or_default(),
                    files,
                ))
            }
            Format::Json => Box::new(json::Json::new(open(first)?)),
            Format::Rocpd => Box::new(rocpd::Rocpd::new(first.path())?),
            Format::Xplane => {
                let dir = first.path().parent().unwrap_or(Path::new("."));
                Box::new(xplane::XPlane::new(open(first)?, dir, run_start))
            }
        })
    }
}

/// The format and the file to write.
fn target(options: &Options, traces: &[PathBuf]) -> anyhow::Result<(Format, PathBuf)> {
    let by_extension = options.output.as_deref().and_then(Format::of);
    let format = match options.format.or(by_extension) {
        Some(format) => format,
        None if options.csv_of.is_some() => Format::Csv,
        None if options.output.is_none() => Format::Perfetto,
        None => {
            let extensions = Format::EXTENSIONS.map(|(_, extension)| format!(".{extension}"));
            return Err(usage(format!(
                "the name of the output has none of the extensions {}: add one, or use --format",
                extensions.join(", ")
            )));
        }
    };
    let out = match (&options.output, traces) {
        (Some(out), _) => out.clone(),
        (None, [trace]) => default_output(trace, format),
        (None, _) => {
            return Err(usage(format!(
                "there are {} traces: name the output with -o",
                traces.len()
            )));
        }
    };
    check_count(format, &out, traces.len())?;
    for (option, is_used, needed) in [
        ("--csv-of", options.csv_of.is_some(), Format::Csv),
        ("--tracks", options.tracks.is_some(), Format::Perfetto),
    ] {
        if is_used && format != needed {
            let needed = needed.extension();
            return Err(usage(format!(
                "{option} is only for the format of .{needed} files: remove it, or change the format"
            )));
        }
    }
    Ok((format, out))
}

/// Whether the format can have this number of traces.
fn check_count(format: Format, out: &Path, traces: usize) -> anyhow::Result<()> {
    if format == Format::Xplane && traces > 1 && !outfile::is_directory(out) {
        return Err(usage(
            "XProf reads one file per process: for several traces, name a log directory, such as -o logs/",
        ));
    }
    if format == Format::Rocpd && traces > rocpd::MAX_TRACES {
        return Err(usage(format!(
            "cannot export {traces} traces to one database, at most {}: export them to several",
            rocpd::MAX_TRACES
        )));
    }
    Ok(())
}

/// Only `.trace` is replaced by the format's extension. `devprof run` appends the process ID to a name that is in use,
/// so anything else can be the only difference between two names.
fn default_output(trace: &Path, format: Format) -> PathBuf {
    match trace.extension() {
        Some(extension) if extension == "trace" => trace.with_extension(format.extension()),
        _ => trace.with_added_extension(format.extension()),
    }
}

/// The files to write if the user asked for `out`.
fn outputs(
    options: &Options,
    traces: &[PathBuf],
    format: Format,
    out: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let outputs = match (format, options.csv_of) {
        (Format::Csv, Some(kind)) => kind.outputs(out),
        _ => vec![out.to_owned()],
    };
    if outputs.len() > 1 && outfile::is_stream(out) {
        return Err(usage(format!(
            "cannot write several files to {}: choose one type of records with --csv-of",
            outfile::name(out)
        )));
    }
    for output in &outputs {
        let Ok(existing) = fs::canonicalize(output) else {
            continue;
        };
        let is_output =
            |trace: &PathBuf| fs::canonicalize(trace).is_ok_and(|path| path == existing);
        if traces.iter().any(is_output) {
            return Err(usage(format!(
                "{} is the trace itself: choose another output with -o",
                output.display()
            )));
        }
    }
    Ok(outputs)
}
