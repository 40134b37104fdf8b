//! `devprof export`: converts a trace file to formats that other tools read. There is one module per format. Each gets
//! the records one at a time, and keeps in memory only what other records refer to.

pub mod source;

pub mod csv;
mod json;
mod perfetto;
mod rocpd;
mod xplane;

use crate::exit::{Outcome, usage};
use crate::names::Naming;
use crate::{Console, Diagnostic, outfile};
use anyhow::Context;
use clap::{Args, ValueEnum};
use source::{Checks, Record, Trace};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

#[derive(Args)]
pub struct Options {
    /// The trace file that DEVPROF_TRACE or `devprof run --trace` named
    file: PathBuf,
    /// The format [default: that of OUT's extension; csv with --csv-of; or else perfetto]
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// The file to write, or - for stdout; with -f xplane also the log directory of XProf or TensorBoard
    /// [default: FILE, without .trace, with the format's extension]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The records to write as csv [default: kernels]
    #[arg(long, value_enum, value_name = "TYPE")]
    csv_of: Option<csv::Kind>,
    /// For perfetto: the tracks of kernels [default: stream]
    #[arg(long, value_enum, value_name = "BY")]
    tracks: Option<perfetto::Tracks>,
    #[command(flatten)]
    naming: Naming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For ui.perfetto.dev (.pftrace)
    Perfetto,
    /// rocprofv3's kernel_trace, or another of its files with --csv-of (.csv)
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
    let mut outputs = outputs(options, format, &out)?;
    let failed = || format!("cannot write {}", outfile::name(&out));
    let first_pass = match format {
        Format::Perfetto if outfile::is_device_or_pipe(&options.file) => {
            return Err(usage(format!(
                "cannot export {} to Perfetto's format, which requires reading it twice: write the trace to a file",
                options.file.display()
            )));
        }
        Format::Perfetto => perfetto::FirstPass::read(&options.file)?,
        _ => perfetto::FirstPass::default(),
    };
    // The name of a file in a log directory depends on the trace.
    let is_log_directory = format == Format::Xplane && outfile::is_directory(&out);
    if is_log_directory {
        fs::create_dir_all(&out).with_context(failed)?;
        outputs = vec![out.join("profile")];
    }
    let mut temporaries = Vec::new();
    for output in &outputs {
        temporaries.push(outfile::create_temporary(output).with_context(failed)?);
    }
    let mut writer = writer(options, format, first_pass, &temporaries).with_context(failed)?;
    let (mut trace, summary) = source::read(
        &options.file,
        options.naming,
        Checks::All,
        console,
        |record, trace| writer.record(record, trace).with_context(failed),
    )?;
    writer.finish(&mut trace).with_context(failed)?;
    if is_log_directory {
        outputs = vec![xplane::path_in_logs(&out, &trace).with_context(failed)?];
    }
    for (temporary, output) in temporaries.into_iter().zip(&outputs) {
        outfile::commit(temporary, output)
            .with_context(|| format!("cannot write {}", outfile::name(output)))?;
    }
    let damage = match summary.is_damaged {
        true => "; parts of the trace are damaged",
        false => "",
    };
    let names: Vec<_> = outputs.iter().map(|output| outfile::name(output)).collect();
    let written = summary.text(|kind| match format {
        Format::Csv => options.csv_of.unwrap_or_default().has(kind),
        _ => true,
    });
    let line = format!("{}: {written}{damage}", names.join(", "));
    outfile::print_summary(console, &out, &line)?;
    if format == Format::Xplane
        && !outfile::is_stream(&out)
        && Format::of(&outputs[0]) != Some(format)
    {
        console.report(&Diagnostic::note(format!(
            "XProf reads only files with the extension .xplane.pb, which {0} does not have: for a log directory, use -o {0}/",
            out.display()
        )));
    }
    Ok(summary.outcome())
}

/// The format and the file to write.
fn target(options: &Options) -> anyhow::Result<(Format, PathBuf)> {
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
    let out = match &options.output {
        Some(out) => out.clone(),
        None => default_output(&options.file, format),
    };
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

/// Only `.trace` is replaced by the format's extension. `devprof run` appends the process ID to a name that is in use,
/// so anything else can be the only difference between two names.
fn default_output(trace: &Path, format: Format) -> PathBuf {
    match trace.extension() {
        Some(extension) if extension == "trace" => trace.with_extension(format.extension()),
        _ => trace.with_added_extension(format.extension()),
    }
}

/// The files to write if the user asked for `out`.
fn outputs(options: &Options, format: Format, out: &Path) -> anyhow::Result<Vec<PathBuf>> {
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
        let same = match (fs::canonicalize(&options.file), fs::canonicalize(output)) {
            (Ok(file), Ok(output)) => file == output,
            _ => false,
        };
        if same {
            return Err(usage(format!(
                "{} is the trace itself: choose another output with -o",
                output.display()
            )));
        }
    }
    Ok(outputs)
}

/// The writer of a format to the temporary files for [`outputs`], of which there is at least one.
fn writer(
    options: &Options,
    format: Format,
    first_pass: perfetto::FirstPass,
    temporaries: &[NamedTempFile],
) -> anyhow::Result<Box<dyn Writer>> {
    let open = |temporary: &NamedTempFile| {
        let file = temporary.reopen()?;
        io::Result::Ok(BufWriter::with_capacity(1 << 20, file))
    };
    let first = &temporaries[0];
    Ok(match format {
        Format::Perfetto => {
            let tracks = options.tracks.unwrap_or_default();
            Box::new(perfetto::Perfetto::new(open(first)?, first_pass, tracks))
        }
        Format::Csv => {
            let files = temporaries.iter().map(open).collect::<io::Result<_>>()?;
            Box::new(csv::Csv::new(options.csv_of.unwrap_or_default(), files)?)
        }
        Format::Json => Box::new(json::Json::new(open(first)?)),
        Format::Rocpd => Box::new(rocpd::Rocpd::new(first.path())?),
        Format::Xplane => {
            let dir = first.path().parent().unwrap_or(Path::new("."));
            Box::new(xplane::XPlane::new(open(first)?, dir))
        }
    })
}

/// Writes the rest of the buffer to the file.
fn flush(mut out: BufWriter<File>) -> anyhow::Result<()> {
    Ok(out.flush()?)
}
