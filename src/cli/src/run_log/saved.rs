//! The run log, kept next to the profiles of a run: `devprof report` finds the binaries in it.
//!
//! The file has the line `devprof run log 1`, in which 1 is the version of the format, and then the run log, in the
//! format of [`runlog`].

use super::device_code;
use super::journal::Journal;
use crate::outfile;
use crate::triton;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const HEADER: &[u8] = b"devprof run log 1\n";
const START: &[u8] = b"devprof run log ";
/// The suffix of the files.
const SUFFIX: &str = "runlog";

/// Saves the log of a run, or of one of its nodes, in a directory: `1.runlog`, or the next free number.
pub fn save(dir: &Path, records: &[u8]) -> Result<()> {
    let path = |n: u64| dir.join(format!("{n}.{SUFFIX}"));
    let failed = || format!("cannot write the run log to {}", dir.display());
    let mut temporary = outfile::create_temporary(&path(1)).with_context(failed)?;
    fs::write(temporary.path(), [HEADER, records].concat()).with_context(failed)?;
    // A thousand processes of MPI, each with its own `devprof run`, would try a thousand names each.
    let first = 1 + logs(dir).with_context(failed)?.len() as u64;
    for n in first.. {
        // Another run may write to the same directory now.
        match temporary.persist_noclobber(path(n)) {
            Ok(_) => break,
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => temporary = error.file,
            Err(error) => return Err(error.error).with_context(failed),
        }
    }
    Ok(())
}

/// The binaries whose counters are in the profiles of these directories: those in the logs, and what Triton compiled.
pub fn binaries<'a>(dirs: impl Iterator<Item = &'a Path>) -> Result<Vec<PathBuf>> {
    let mut found = BTreeSet::new();
    for dir in dirs {
        let compiled = triton::cubins(dir);
        let logs = logs(dir).with_context(|| format!("cannot read {}", dir.display()))?;
        for path in logs {
            let journal = read(&path)?;
            // Logs of earlier runs stay when their profiles are removed.
            if journal.profiles.keys().any(|profile| is_in(dir, profile)) {
                found.extend(match compiled.is_empty() {
                    true => device_code::binaries(&journal),
                    false => device_code::instrumented(&journal),
                });
            }
        }
        found.extend(compiled);
    }
    Ok(found.into_iter().collect())
}

/// The logs in a directory.
fn logs(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
    let is_log = |path: &io::Result<PathBuf>| {
        let extension = path.as_ref().map(|path| path.extension());
        extension.is_ok_and(|extension| extension.is_some_and(|own| own == SUFFIX))
    };
    paths.filter(|path| path.is_err() || is_log(path)).collect()
}

/// Whether the profile still exists. The directory may have been moved.
fn is_in(dir: &Path, profile: &Path) -> bool {
    let name = profile.file_name().unwrap_or_default();
    dir.join(name).exists()
}

fn read(path: &Path) -> Result<Journal> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    match bytes.strip_prefix(HEADER) {
        Some(records) => Ok(Journal::read([records])),
        None if bytes.starts_with(START) => bail!(
            "{}: a run log of another version of devprof; name the binaries",
            path.display()
        ),
        None => bail!(
            "{}: not a run log; remove it, or name the binaries",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binaries_of_a_run_are_found_as_long_as_its_profile_exists() {
        let dir = tempfile::tempdir().expect("a directory");
        let found = || binaries([dir.path()].into_iter());
        for program in ["/bin/a", "/bin/b"] {
            let profile = dir.path().join(&program[5..]);
            fs::write(&profile, "").expect("written");
            let log = format!("7 loaded {program}\n7 wrote {}\n", profile.display());
            save(dir.path(), log.as_bytes()).expect("saved");
        }
        assert_eq!(
            found().expect("read"),
            ["/bin/a", "/bin/b"].map(PathBuf::from)
        );
        fs::remove_file(dir.path().join("a")).expect("removed");
        assert_eq!(found().expect("read"), [PathBuf::from("/bin/b")]);
        fs::write(dir.path().join("3.runlog"), "devprof run log 2\n").expect("written");
        let error = found().expect_err("another version").to_string();
        assert!(error.contains("another version"), "{error}");
    }
}
