//! `devprof export`: a trace file in the formats that other tools read. A format is a module; all of them are handed
//! the same records, one after the other, and keep only what names things.

pub mod source;

pub mod csv;
mod json;
mod perfetto;
mod rocpd;

use crate::names::Naming;
use crate::readable::plural;
use crate::{Console, outfile};
use clap::{Args, ValueEnum};
use source::{Record, Tell, Trace};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// The trace file, as DEVPROF_TRACE or `devprof run --trace` named it
    file: PathBuf,
    /// What to write; without it, what the ending of OUT says, or perfetto
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// Where to write it, - for stdout; without it, beside FILE, under its name with the format's ending
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
    /// JSON lines, an object a record (.jsonl)
    Json,
    /// An SQLite database in rocpd's schema (.db)
    Rocpd,
}

impl Format {
    const ENDINGS: [(Format, &str); 4] = [
        (Format::Perfetto, "pftrace"),
        (Format::Csv, "csv"),
        (Format::Json, "jsonl"),
        (Format::Rocpd, "db"),
    ];

    fn ending(self) -> &'static str {
        let found = Self::ENDINGS.iter().find(|(format, _)| *format == self);
        found.map_or("", |(_, ending)| ending)
    }

    fn of(path: &Path) -> Option<Format> {
        let ending = path.extension()?;
        let found = Self::ENDINGS.iter().find(|(_, own)| ending == *own);
        found.map(|(format, _)| *format)
    }
}

/// Writes one format.
trait Writer {
    /// Takes the next record.
    fn record(&mut self, record: &Record, trace: &mut Trace) -> Result<(), Box<dyn Error>>;
    /// Ends the output when all records have been taken.
    fn finish(self: Box<Self>, trace: &mut Trace) -> Result<(), Box<dyn Error>>;
}

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let (format, out) = target(options)?;
    let failed = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", out.display());
    let owned = match format {
        Format::Perfetto if outfile::is_stream(&options.file) => {
            return Err(format!(
                "cannot read {} twice, as Perfetto's format needs it: write the trace to a file",
                options.file.display()
            ));
        }
        Format::Perfetto => perfetto::Owned::count(&options.file)?,
        _ => perfetto::Owned::default(),
    };
    let part = outfile::part(&out).map_err(|error| failed(&error))?;
    let file = part.reopen().map_err(|error| failed(&error))?;
    let mut writer = writer(format, owned, file, part.path()).map_err(|error| failed(&error))?;
    let (mut trace, summary) = source::read(
        &options.file,
        options.naming,
        Tell::All,
        console.say,
        |record, trace| writer.record(record, trace).map_err(|error| failed(&error)),
    )?;
    writer.finish(&mut trace).map_err(|error| failed(&error))?;
    outfile::keep(part, &out).map_err(|error| failed(&error))?;
    let whole = match summary.damaged {
        true => "; not all of the trace is whole",
        false => "",
    };
    let result = format!(
        "{}: {}, {}{whole}",
        out.display(),
        plural(summary.dispatches as usize, "dispatch"),
        plural(summary.calls as usize, "API call")
    );
    outfile::tell(console, &out, &result)?;
    Ok(summary.status())
}

/// The format and the file to write.
fn target(options: &Options) -> Result<(Format, PathBuf), String> {
    let by_name = options.output.as_deref().map(Format::of);
    let format = match (options.format, by_name) {
        (Some(format), _) => format,
        (None, Some(Some(format))) => format,
        (None, None) => Format::Perfetto,
        (None, Some(None)) => {
            let endings = Format::ENDINGS.map(|(_, ending)| format!(".{ending}"));
            return Err(format!(
                "the name of the output does not end in one of {}: name it so, or give --format",
                endings.join(", ")
            ));
        }
    };
    let out = match &options.output {
        Some(out) => out.clone(),
        None => options.file.with_extension(format.ending()),
    };
    let same = match (fs::canonicalize(&options.file), fs::canonicalize(&out)) {
        (Ok(file), Ok(out)) => file == out,
        _ => false,
    };
    match same {
        true => Err(format!(
            "{} is the trace itself: name another output with -o",
            out.display()
        )),
        false => Ok((format, out)),
    }
}

fn writer(
    format: Format,
    owned: perfetto::Owned,
    out: File,
    path: &Path,
) -> Result<Box<dyn Writer>, Box<dyn Error>> {
    let out = BufWriter::with_capacity(1 << 20, out);
    Ok(match format {
        Format::Perfetto => Box::new(perfetto::Perfetto::new(out, owned)),
        Format::Csv => Box::new(csv::Csv::new(out)),
        Format::Json => Box::new(json::Json::new(out)),
        Format::Rocpd => Box::new(rocpd::Rocpd::new(path)?),
    })
}

/// Writes what is left of the output to its file.
fn flush(mut out: BufWriter<File>) -> Result<(), Box<dyn Error>> {
    Ok(out.flush()?)
}
