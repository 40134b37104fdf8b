//! Where verbs write what they make: a file, which gets its name only when it is whole, a device or a pipe, stdout.

use crate::{Console, unless_closed};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file for what is to become `out`, of no name that others could take for it, with the permissions of any new file.
pub fn part(out: &Path) -> io::Result<NamedTempFile> {
    let own = replaced(out);
    let dir = match (fs::metadata(out), own.parent()) {
        // Beside a device there is no place for files.
        _ if is_copied_to(out) => std::env::temp_dir(),
        (Ok(data), _) if data.is_dir() => return Err(ErrorKind::IsADirectory.into()),
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
                io::Error::new(error.kind(), missing)
            }
        })
}

/// Makes a whole [`part`] what it was for, with the permissions of the file that it replaces. Into a device, a pipe or
/// stdout it is copied: those must not become files.
pub fn keep(part: NamedTempFile, out: &Path) -> io::Result<()> {
    if is_stdout(out) {
        let mut to = io::stdout().lock();
        let copied = io::copy(&mut File::open(part.path())?, &mut to).and_then(|_| to.flush());
        return unless_closed(copied);
    }
    if is_stream(out) {
        let mut to = File::options().write(true).open(out)?;
        io::copy(&mut File::open(part.path())?, &mut to)?;
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

/// Shows what was written to `out`; not among the data where that may be stdout.
pub fn tell(console: &mut Console, out: &Path, what: &str) -> Result<(), String> {
    if !is_copied_to(out) {
        return console.print(&format!("{what}\n"));
    }
    (console.say)(what);
    Ok(())
}

/// Whether an output is no file of its own: stdout, a device, a pipe.
pub fn is_copied_to(out: &Path) -> bool {
    is_stdout(out) || is_stream(out)
}

/// Whether this is a device or a pipe.
pub fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// What others wrote there stays, also where it is a file.
fn is_stdout(out: &Path) -> bool {
    out == "-" || out == "/dev/stdout"
}

/// The file that a link leads to; the link stays.
fn replaced(out: &Path) -> PathBuf {
    out.canonicalize().unwrap_or_else(|_| out.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileTypeExt, symlink};

    fn write(out: &Path) -> io::Result<()> {
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
