//! The directory of a report: there when it is whole, and never in the place of anything else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Marks a directory as a report's, so that the next one may take its place.
const MARK: &str = ".devprof-report";

/// That a report may be written there.
///
/// # Errors
/// There is something else.
pub fn check(dir: &Path) -> Result<(), String> {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot write to {}: {error}", dir.display())),
    };
    if dir.join(MARK).is_file() || entries.next().is_none() {
        return Ok(());
    }
    Err(format!(
        "{} holds files that are no report of devprof: name another directory with -o, or remove it",
        dir.display()
    ))
}

/// Has `write` fill a new directory, and puts it where `dir` is.
pub fn replace(dir: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let parent = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)?;
    let own = tempfile::Builder::new()
        .prefix(".devprof-report-")
        .permissions(fs::Permissions::from_mode(0o777))
        .tempdir_in(parent)?;
    let new = own.path().join("new");
    fs::create_dir(&new)?;
    fs::write(new.join(MARK), "")?;
    write(&new)?;
    let old: PathBuf = own.path().join("old");
    match fs::rename(dir, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(&new, dir)
}
