//! The directory of a report. It is created or replaced only when the report is complete. An existing directory is
//! replaced only if it is an earlier report.

use anyhow::{Context, bail};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that marks a directory as a report, so that the next report may replace it.
const MARK: &str = ".devprof-report";

/// Checks whether a report may be written to a directory.
///
/// # Errors
/// The directory has other files.
pub fn check(dir: &Path) -> anyhow::Result<()> {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot write to {}", dir.display()));
        }
    };
    if dir.join(MARK).is_file() || entries.next().is_none() {
        return Ok(());
    }
    bail!(
        "{} has files that are not a report of devprof: name another directory with -o, or remove it",
        dir.display()
    )
}

/// Calls `write` with a new directory, and then moves it to `dir`.
pub fn replace(dir: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let parent = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)?;
    let temporary = tempfile::Builder::new()
        .prefix(".devprof-report-")
        .permissions(fs::Permissions::from_mode(0o777))
        .tempdir_in(parent)?;
    let new = temporary.path().join("new");
    fs::create_dir(&new)?;
    fs::write(new.join(MARK), "")?;
    write(&new)?;
    let old: PathBuf = temporary.path().join("old");
    match fs::rename(dir, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(&new, dir)
}
