//! `devprof export`: converts a trace file to formats that other tools read. There is one module per format. Each gets
//! the records one by one and keeps only those that others refer to.

pub mod source;

pub mod csv;
mod json;
mod perfetto;
mod rocpd;
mod xplane;

use crate::exit::{Outcome, usage};
use crate::names::Naming;
use crate::readable::plural;
use crate::{Console, outfile};
use anyhow::Context;
use clap::{Args, ValueEnum};
use source::{Checks, Record, Trace};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// The trace file that DEVPROF_TRACE or `devprof run --trace` named
    file: PathBuf,
    /// The format [default: that of OUT's extension, or else perfetto]
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// The file to write, or - for stdout; with -f xplane also the log directory of XProf or TensorBoard
    /// [default: FILE with the format's extension]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    naming: Naming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For ui.perfetto.dev (.pftrace)
    Perfetto,
    /// rocprofv3's kernel_trace (.csv)
    Csv,
    /// JSON lines, one object per record (.jsonl)
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
        found.map(|(format, _)| *format)
    }
}

/// Writes a trace in one format.
trait Writer {
    /// Adds the next record.
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()>;
    /// Completes the output after the last record.
    fn finish(self: Box<Self>, trace: &mut Trace) -> anyhow::Result<()>;
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let (format, out) = target(options)?;
    let failed = || format!("cannot write {}", out.display());
    let flows = match format {
        Format::Perfetto if outfile::is_device_or_pipe(&options.file) => {
            return Err(usage(format!(
                "cannot export {} to Perfetto's format, which requires reading it twice: write the trace to a file",
                options.file.display()
            )));
        }
        Format::Perfetto => perfetto::Flows::count(&options.file)?,
        _ => perfetto::Flows::default(),
    };
    // The directory of the file in it depends on the trace.
    let logs = (format == Format::Xplane && outfile::is_directory(&out)).then(|| out.clone());
    let temporary = match &logs {
        Some(logs) => {
            fs::create_dir_all(logs).with_context(failed)?;
            outfile::create_temporary(&logs.join("profile"))
        }
        None => outfile::create_temporary(&out),
    };
    let temporary = temporary.with_context(failed)?;
    let file = temporary.reopen().with_context(failed)?;
    let mut writer = writer(format, flows, file, temporary.path()).with_context(failed)?;
    let (mut trace, summary) = source::read(
        &options.file,
        options.naming,
        Checks::All,
        console,
        |record, trace| writer.record(record, trace).with_context(failed),
    )?;
    writer.finish(&mut trace).with_context(failed)?;
    let out = match logs {
        Some(logs) => xplane::path_in_logs(&logs, &trace).with_context(failed)?,
        None => out.clone(),
    };
    outfile::commit(temporary, &out).with_context(|| format!("cannot write {}", out.display()))?;
    let damage = match summary.is_damaged {
        true => "; parts of the trace are damaged",
        false => "",
    };
    let line = format!(
        "{}: {}, {}{damage}",
        out.display(),
        plural(summary.dispatches as usize, "dispatch"),
        plural(summary.calls as usize, "API call")
    );
    outfile::print_summary(console, &out, &line)?;
    Ok(summary.outcome())
}

/// The format and the file to write.
fn target(options: &Options) -> anyhow::Result<(Format, PathBuf)> {
    let by_extension = options.output.as_deref().map(Format::of);
    let format = match (options.format, by_extension) {
        (Some(format), _) => format,
        (None, Some(Some(format))) => format,
        (None, None) => Format::Perfetto,
        (None, Some(None)) => {
            let extensions = Format::EXTENSIONS.map(|(_, extension)| format!(".{extension}"));
            return Err(usage(format!(
                "the name of the output has none of the extensions {}: add one, or use --format",
                extensions.join(", ")
            )));
        }
    };
    let out = match &options.output {
        Some(out) => out.clone(),
        None => options.file.with_extension(format.extension()),
    };
    let same = match (fs::canonicalize(&options.file), fs::canonicalize(&out)) {
        (Ok(file), Ok(out)) => file == out,
        _ => false,
    };
    match same {
        true => Err(usage(format!(
            "{} is the trace itself: choose another output with -o",
            out.display()
        ))),
        false => Ok((format, out)),
    }
}

fn writer(
    format: Format,
    flows: perfetto::Flows,
    out: File,
    path: &Path,
) -> anyhow::Result<Box<dyn Writer>> {
    let out = BufWriter::with_capacity(1 << 20, out);
    Ok(match format {
        Format::Perfetto => Box::new(perfetto::Perfetto::new(out, flows)),
        Format::Csv => Box::new(csv::Csv::new(out)),
        Format::Json => Box::new(json::Json::new(out)),
        Format::Rocpd => Box::new(rocpd::Rocpd::new(path)?),
        Format::Xplane => Box::new(xplane::XPlane::new(
            out,
            path.parent().unwrap_or(Path::new(".")),
        )),
    })
}

/// Writes the rest of the buffer to the file.
fn flush(mut out: BufWriter<File>) -> anyhow::Result<()> {
    Ok(out.flush()?)
}
