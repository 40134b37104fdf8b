//! The directory of a report. It is created or replaced only when the report is complete. An existing directory is
//! replaced only if it has only files of an earlier report.

use crate::paths;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file with the paths of the report's files, one per line, so that the next report may replace them.
const MARK: &str = ".devprof-report";

/// Checks whether a report may be written to a directory.
///
/// # Errors
/// The directory has other files.
pub fn check(dir: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write to {}", dir.display());
    if !dir.exists() {
        return Ok(());
    }
    let own = fs::read_to_string(dir.join(MARK)).unwrap_or_default();
    let own: BTreeSet<&str> = own.lines().chain([MARK]).collect();
    let files = files(dir).with_context(failed)?;
    let Some(other) = files.iter().find(|file| !own.contains(&***file)) else {
        return Ok(());
    };
    bail!(
        "{} has files that are not of a report, such as {other}: name another directory with -o, or remove it",
        dir.display()
    )
}

/// The paths of all files below a directory, relative to it, and of its empty directories.
fn files(dir: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            is_empty = false;
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            } else {
                files.push(relative(&entry.path(), dir));
            }
        }
        if is_empty && next != dir {
            files.push(relative(&next, dir));
        }
    }
    files.sort();
    Ok(files)
}

fn relative(path: &Path, dir: &Path) -> String {
    let relative = path.strip_prefix(dir).unwrap_or(path);
    relative.to_string_lossy().into_owned()
}

/// Calls `write` with a new directory, and then moves it to `dir`.
pub fn replace(dir: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let failed = || format!("cannot write {}", dir.display());
    let parent = paths::directory(dir);
    fs::create_dir_all(parent).with_context(failed)?;
    let temporary = tempfile::Builder::new()
        .prefix(".devprof-report-")
        .permissions(fs::Permissions::from_mode(0o777))
        .tempdir_in(parent)
        // The error's path would be the name of the temporary directory.
        .map_err(|error| io::Error::from(error.kind()))
        .with_context(failed)?;
    let new = temporary.path().join("new");
    let make = || {
        fs::create_dir(&new)?;
        write(&new)?;
        fs::write(new.join(MARK), files(&new)?.join("\n") + "\n")
    };
    make().with_context(failed)?;
    // Files may have been added meanwhile.
    check(dir)?;
    let old: PathBuf = temporary.path().join("old");
    match fs::rename(dir, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(failed);
        }
        _ => {}
    }
    fs::rename(&new, dir).with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_report_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let report = dir.path().join("site");
        let write = |text: &'static str| {
            replace(&report, move |dir| {
                fs::create_dir(dir.join("files"))?;
                fs::write(dir.join("files/a.html"), text)
            })
        };
        write("1").unwrap();
        check(&report).unwrap();
        write("2").unwrap();
        assert_eq!(
            fs::read_to_string(report.join("files/a.html")).unwrap(),
            "2"
        );
        // A copy of a report into a directory with other files has the mark, too.
        for other in ["CNAME", "files/b.html", ".git/HEAD"] {
            let path = report.join(other);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            let error = check(&report).unwrap_err().to_string();
            assert!(error.contains(other), "{error}");
            assert!(write("3").is_err() && path.exists());
            fs::remove_file(path).unwrap();
        }
        let error = check(&report).unwrap_err().to_string();
        assert!(error.contains(".git"), "{error}");
        fs::remove_dir(report.join(".git")).unwrap();
        write("4").unwrap();
    }
}
