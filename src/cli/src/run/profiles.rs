//! Where a run writes: the names of its profiles, and the directories for its log and its temporary files.

use crate::outfile;
use crate::run_log::journal::Journal;
use anyhow::{Context, bail};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The pattern for the names of profiles in a directory.
const DEFAULT_NAME: &str = "%m.profraw";

/// Where profiles are written.
pub struct Profiles {
    /// The pattern for their names: an absolute path, or one that begins with %t.
    pattern: OsString,
    /// The program inherits the pattern from devprof.
    is_inherited: bool,
    /// The directory that was created for this run, so that it has only the counts of this run.
    pub created: Option<PathBuf>,
    /// The directory for the log of the run, if one was named.
    log: Option<PathBuf>,
}

impl Profiles {
    /// # Errors
    /// No profile can be written to the directory that `given` names.
    pub fn new(given: Option<&OsStr>) -> anyhow::Result<Profiles> {
        let inherited = env::var_os(settings::PROFILE_FILE.name);
        let inherited = inherited.filter(|pattern| !pattern.is_empty());
        if let Some(given) = given {
            let pattern = pattern(given);
            let log = Path::new(&pattern).parent();
            let log = log.filter(|dir| *dir != Path::new("") && is_fixed(dir));
            let log = log.map(Path::to_owned);
            let pattern = absolute(&pattern)?;
            check(&pattern, "profiles", "--profile")?;
            return Ok(Profiles {
                pattern,
                is_inherited: false,
                created: None,
                log,
            });
        }
        if let Some(pattern) = inherited {
            return Ok(Profiles {
                pattern: absolute(&pattern)?,
                is_inherited: true,
                created: None,
                log: None,
            });
        }
        let created = create()?;
        Ok(Profiles {
            pattern: created.join(DEFAULT_NAME).into_os_string(),
            is_inherited: false,
            log: Some(created.clone()),
            created: Some(created),
        })
    }

    /// The pattern, unless the program inherits it.
    pub fn setting(&self) -> Option<OsString> {
        (!self.is_inherited).then(|| self.pattern.clone())
    }

    pub fn pattern(&self) -> &Path {
        Path::new(&self.pattern)
    }

    /// The directory to which profiles are written, if it has no pattern in its name.
    pub fn directory(&self) -> Option<&Path> {
        let parent = self.pattern().parent();
        parent.filter(|dir| dir.is_absolute() && is_fixed(dir))
    }

    /// The directory for the log of the run, if it has profiles of this run.
    pub fn log_directory(&self, journal: &Journal) -> Option<&Path> {
        let dir = self.log.as_deref()?;
        let resolved = dir.canonicalize().ok()?;
        let mut parents = journal.profiles.keys().filter_map(|path| path.parent());
        let is_log = |parent: &Path| parent.canonicalize().is_ok_and(|dir| dir == resolved);
        parents.any(is_log).then_some(dir)
    }

    pub fn remove_if_empty(&self) {
        if let Some(path) = &self.created {
            // Fails if it is not empty, as intended.
            let _ = fs::remove_dir(path);
        }
    }
}

/// Creates the default directory for profiles.
fn create() -> anyhow::Result<PathBuf> {
    let here = current_dir()?;
    for n in 1u64.. {
        let path = here.join(format!("devprof-{n}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => bail!(
                "cannot create {} for the profiles: {error}; choose another location with --profile",
                path.display()
            ),
        }
    }
    bail!("no unused directory devprof-N in {}", here.display())
}

fn current_dir() -> anyhow::Result<PathBuf> {
    env::current_dir().context("cannot determine the current directory")
}

/// The pattern for profiles: the given one, or %m.profraw in the given directory. A name without an extension means a
/// directory, unless it is a file: the architecture is prepended to the names of profiles, so nobody would find a
/// profile `gfx1100.NAME`.
fn pattern(given: &OsStr) -> OsString {
    let path = Path::new(given);
    let is_name = path.extension().is_none() && is_fixed(path) && !path.exists();
    if is_name || outfile::is_directory(path) {
        path.join(DEFAULT_NAME).into_os_string()
    } else {
        given.to_owned()
    }
}

/// Whether a path is not a pattern.
pub fn is_fixed(path: &Path) -> bool {
    !path.as_os_str().as_bytes().contains(&b'%')
}

/// The pattern as an absolute path, because the program may change its directory. A pattern that begins with %t is
/// already absolute.
pub fn absolute(pattern: &OsStr) -> anyhow::Result<OsString> {
    if pattern.as_bytes().starts_with(b"%t") {
        return Ok(pattern.to_owned());
    }
    Ok(current_dir()?.join(pattern).into_os_string())
}

/// The directory of a file that has an absolute pattern as its name, up to the first component with %. If it does not
/// exist, the directory in which it is created. `None`: the pattern begins with %t.
fn existing_directory(pattern: &Path) -> Option<&Path> {
    let mut dirs = pattern.ancestors().skip(1);
    let is_known = |dir: &&Path| dir.is_absolute() && is_fixed(dir) && dir.exists();
    dirs.find(is_known)
}

/// Checks that files with names of an absolute pattern can be created, so that this is known before the program runs.
pub fn check(pattern: &OsStr, what: &str, option: &str) -> anyhow::Result<()> {
    let path = Path::new(pattern);
    let Some(dir) = existing_directory(path) else {
        return Ok(());
    };
    // A pipe or a device is not replaced.
    if outfile::is_device_or_pipe(path) {
        return Ok(());
    }
    if path.is_dir() {
        bail!(
            "{}: cannot write {what} to a directory ({option})",
            path.display()
        );
    }
    if let Err(error) = tempfile::tempfile_in(dir) {
        bail!(
            "cannot write {what} to {}: {}; choose another location with {option}",
            dir.display(),
            // The error's path would be the name of the temporary file.
            error.kind()
        );
    }
    Ok(())
}

/// Creates a hidden directory for temporary files: next to these files, if possible, because processes on other nodes
/// can access that, too.
pub fn scratch(next_to: &Path) -> anyhow::Result<TempDir> {
    let here = env::current_dir().ok();
    let next_to = existing_directory(next_to).map(Path::to_owned);
    let create = |dir: PathBuf| {
        let mut name = tempfile::Builder::new();
        name.prefix(".devprof-run-").tempdir_in(dir)
    };
    match next_to
        .into_iter()
        .chain(here)
        .map(create)
        .find_map(Result::ok)
    {
        Some(dir) => Ok(dir),
        None => create(env::temp_dir()).context("cannot create a directory for the run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_a_pattern_for_its_profiles() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).into_os_string();
        fs::write(at("file"), "").unwrap();
        for (given, expected) in [
            ("", "%m.profraw"),
            ("none/", "none/%m.profraw"),
            ("none", "none/%m.profraw"),
            ("none/none", "none/none/%m.profraw"),
            // Files.
            ("none/%p", "none/%p"),
            ("none.profraw", "none.profraw"),
            ("file", "file"),
        ] {
            assert_eq!(pattern(&at(given)), at(expected), "{given}");
        }
    }

    #[test]
    fn a_location_that_cannot_be_written_to_is_found_before_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).into_os_string();
        fs::write(at("file"), "").unwrap();
        let checked = |name: &str| check(&at(name), "profiles", "--profile");
        for name in ["new.profraw", "new/%h/%p.profraw", "%h/x", "file"] {
            checked(name).unwrap();
        }
        for name in ["file/x", "file/%h/x", "file/new/x"] {
            let error = checked(name).unwrap_err().to_string();
            assert!(error.contains("file: not a directory; "), "{error}");
            assert!(!error.contains("at path"), "{error}");
        }
        assert!(checked("").is_err());
        assert!(check(OsStr::new("%t/x"), "profiles", "--profile").is_ok());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_log_is_saved_in_a_directory_that_the_pattern_names() {
        let dir = tempfile::tempdir().unwrap();
        for (name, is_saved) in [
            ("%h.%p.profraw", true),
            ("x.profraw", true),
            ("%h/x", false),
        ] {
            let profiles = Profiles::new(Some(dir.path().join(name).as_os_str())).unwrap();
            let log = format!("7 wrote {}/gfx1100.x\n", dir.path().display());
            let found = profiles.log_directory(&Journal::read([log.as_bytes()]));
            assert_eq!(found, is_saved.then_some(dir.path()), "{name}");
            assert_eq!(profiles.log_directory(&Journal::default()), None);
        }
        // The current directory gets no log.
        assert_eq!(
            Profiles::new(Some(OsStr::new("x.profraw"))).unwrap().log,
            None
        );
    }
}
