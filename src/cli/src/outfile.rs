//! Output files: a regular file, which gets its name only when it is complete; a device or pipe; stdout.

use crate::console::Console;
use crate::console::unless_closed;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempPath};

/// Creates the temporary file for the contents of `out`, with the permissions of a new file.
pub fn create_temporary(out: &Path) -> io::Result<NamedTempFile> {
    let target = resolved(out);
    let dir = match (fs::metadata(out), target.parent()) {
        // A temporary file in /dev or next to a pipe is not needed, because the contents are copied.
        _ if is_stream(out) => std::env::temp_dir(),
        (Ok(data), _) if data.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        (_, Some(dir)) if dir != Path::new("") => dir.to_owned(),
        _ => PathBuf::from("."),
    };
    tempfile::Builder::new()
        .prefix(".devprof-part-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(&dir)
        .map_err(|error| {
            if dir.is_dir() {
                return error.kind().into();
            }
            let missing = format!("the directory {} does not exist: create it", dir.display());
            io::Error::new(error.kind(), missing)
        })
}

/// Moves a complete temporary file to `out`, with the permissions of the file that it replaces. If `out` is a device, a
/// pipe or stdout, copies the contents instead.
pub fn commit(temporary: NamedTempFile, out: &Path) -> io::Result<()> {
    commit_closed(temporary.into_temp_path(), out)
}

/// Writes a file, which gets its name when it is complete.
pub fn write(
    out: &Path,
    contents: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = create_temporary(out)?;
    let mut writer = BufWriter::new(temporary.as_file());
    contents(&mut writer)?;
    writer.flush()?;
    drop(writer);
    commit(temporary, out)
}

/// [`commit`] for a temporary file that is closed.
pub fn commit_closed(temporary: TempPath, out: &Path) -> io::Result<()> {
    if is_stdout(out) {
        let mut to = io::stdout().lock();
        let copied = io::copy(&mut File::open(&temporary)?, &mut to);
        return unless_closed(copied.and_then(|_| to.flush()));
    }
    if is_device_or_pipe(out) {
        let mut to = File::options().write(true).open(out)?;
        io::copy(&mut File::open(&temporary)?, &mut to)?;
        return Ok(());
    }
    if let Ok(old) = fs::metadata(out)
        && old.permissions() != fs::metadata(&temporary)?.permissions()
    {
        fs::set_permissions(&temporary, old.permissions())?;
    }
    temporary
        .persist(resolved(out))
        .map_err(|error| error.error)
}

/// Prints a line about the file `out`: to stdout, or to stderr if stdout may carry the data.
pub fn print_summary(console: &mut Console, out: &Path, line: &str) -> anyhow::Result<()> {
    let line = format!("{line}\n");
    if !is_stream(out) {
        return console.print(&line);
    }
    console.print_to_stderr(&line);
    Ok(())
}

/// The output's name in messages.
pub fn name(out: &Path) -> String {
    if is_stdout(out) {
        return "stdout".into();
    }
    out.display().to_string()
}

/// Whether the output is stdout, a device or a pipe, and not a file.
pub fn is_stream(out: &Path) -> bool {
    is_stdout(out) || is_device_or_pipe(out)
}

pub fn is_device_or_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Whether the output is a directory, or its name ends with a slash.
pub fn is_directory(out: &Path) -> bool {
    out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Stdout is never replaced by a new file, even if it is a file: others may write to it as well.
pub fn is_stdout(out: &Path) -> bool {
    out == "-" || out == "/dev/stdout"
}

/// The file that a symbolic link points to, so that the link is not replaced.
fn resolved(out: &Path) -> PathBuf {
    out.canonicalize().unwrap_or_else(|_| out.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, Mode};
    use std::os::unix::fs::{FileTypeExt, symlink};

    fn write(out: &Path) -> io::Result<()> {
        let temporary = create_temporary(out)?;
        fs::write(temporary.path(), "complete")?;
        commit(temporary, out)
    }

    #[test]
    fn files_are_replaced_links_followed_and_pipes_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/file"), "old").unwrap();
        let private = fs::Permissions::from_mode(0o100_600);
        fs::set_permissions(at("sub/file"), private.clone()).unwrap();
        symlink(at("sub/file"), at("link")).unwrap();
        write(&at("link")).unwrap();
        assert_eq!(fs::read_to_string(at("sub/file")).unwrap(), "complete");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::metadata(at("sub/file")).unwrap().permissions(), private);
        let (mode, kind) = (Mode::RUSR | Mode::WUSR, FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), kind, mode, 0).unwrap();
        // A pipe and not a real device, which a bug in this code could replace.
        let reader = std::thread::spawn({
            let pipe = at("pipe");
            move || fs::read_to_string(pipe).unwrap()
        });
        write(&at("pipe")).unwrap();
        assert!(fs::metadata(at("pipe")).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "complete");
        let error = write(&at("sub")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        let none = at("none");
        let error = write(&none.join("file")).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the directory {} does not exist: create it", none.display())
        );
    }
}
