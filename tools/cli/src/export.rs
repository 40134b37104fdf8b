//! `devprof export`: a trace file in the formats that other tools read. A format is a module; all of them are handed
//! the same records, one after the other, and keep only what names things.

pub mod source;

pub mod csv;
mod json;
mod perfetto;
mod rocpd;

use crate::Console;
use crate::names::Naming;
use crate::readable::plural;
use clap::{Args, ValueEnum};
use source::{Record, Tell, Trace};
use std::error::Error;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

#[derive(Args)]
pub struct Options {
    /// The trace file, as DEVPROF_TRACE or `devprof run --trace` named it
    file: PathBuf,
    /// What to write; without it, what the ending of OUT says, or perfetto
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// Where to write it; without it, beside FILE, under its name with the format's ending
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
        Format::Perfetto if is_stream(&options.file) => {
            return Err(format!(
                "cannot read {} twice, as Perfetto's format needs it: write the trace to a file",
                options.file.display()
            ));
        }
        Format::Perfetto => perfetto::Owned::count(&options.file)?,
        _ => perfetto::Owned::default(),
    };
    // It has its final name only when it is whole.
    let part = part(&out).map_err(|error| failed(&error))?;
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
    keep(part, &out).map_err(|error| failed(&error))?;
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
    // The output may be stdout itself.
    match is_stream(&out) {
        true => (console.say)(&result),
        false => console.print(&(result + "\n"))?,
    }
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

/// A file for what is to become `out`, of no name that others could take for it, with the permissions of any new file.
pub fn part(out: &Path) -> std::io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let own = replaced(out);
    let dir = match (fs::metadata(out), own.parent()) {
        (Ok(data), _) if data.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        // Beside a device there is no place for files.
        (Ok(data), _) if !data.is_file() => std::env::temp_dir(),
        (_, Some(dir)) if dir != Path::new("") => dir.to_owned(),
        _ => PathBuf::from("."),
    };
    tempfile::Builder::new()
        .prefix(".devprof-part-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(&dir)
        .map_err(|error| match dir.is_dir() {
            true => error.kind().into(),
            false => {
                let missing = format!("there is no directory {}: make it", dir.display());
                std::io::Error::new(error.kind(), missing)
            }
        })
}

/// Makes a whole [`part`] what it was for, with the permissions of the file that it replaces. Into a device or a pipe it
/// is copied: those must not become files.
pub fn keep(part: NamedTempFile, out: &Path) -> std::io::Result<()> {
    if is_stream(out) {
        let mut to = File::options().write(true).open(out)?;
        std::io::copy(&mut File::open(part.path())?, &mut to)?;
        return Ok(());
    }
    if let Ok(old) = fs::metadata(out)
        && old.permissions() != fs::metadata(part.path())?.permissions()
    {
        fs::set_permissions(part.path(), old.permissions())?;
    }
    match part.persist(replaced(out)) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.error),
    }
}

/// Whether this is a device or a pipe.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// The file that a link leads to; the link stays.
fn replaced(out: &Path) -> PathBuf {
    out.canonicalize().unwrap_or_else(|_| out.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    fn write(out: &Path) -> std::io::Result<()> {
        let part = part(out)?;
        fs::write(part.path(), "whole")?;
        keep(part, out)
    }

    #[test]
    fn a_file_is_replaced_a_link_followed_and_a_pipe_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("below")).unwrap();
        fs::write(at("below/file"), "old").unwrap();
        let private = fs::Permissions::from_mode(0o100_600);
        fs::set_permissions(at("below/file"), private.clone()).unwrap();
        symlink(at("below/file"), at("link")).unwrap();
        write(&at("link")).unwrap();
        assert_eq!(fs::read_to_string(at("below/file")).unwrap(), "whole");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(at("below/file")).unwrap().permissions(),
            private
        );
        let pipe = CString::new(at("pipe").as_os_str().as_bytes()).unwrap();
        // SAFETY: the path is a C string that outlives the call.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        // Never a device of the machine: a fault here would replace it.
        let reader = std::thread::spawn({
            let pipe = at("pipe");
            move || fs::read_to_string(pipe).unwrap()
        });
        write(&at("pipe")).unwrap();
        assert!(fs::metadata(at("pipe")).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "whole");
        let error = write(&at("below")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        let none = at("none");
        let error = write(&none.join("file")).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("there is no directory {}: make it", none.display())
        );
    }
}
