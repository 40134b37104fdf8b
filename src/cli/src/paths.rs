//! The files that the arguments of a command line name: files, directories and patterns.

use anyhow::{Context, ensure};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Limit on the size of a file of raw profiles, in MiB: it is read into memory. A sparse file can claim any size.
const MAX_PROFILE: u64 = 4096;

/// Opens a regular file. Also returns its size in bytes.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> anyhow::Result<(File, u64)> {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).context("cannot open it")?;
    let data = file.metadata().context("cannot open it")?;
    ensure!(data.is_file(), "not a regular file");
    Ok((file, data.len()))
}

/// Reads the rest of a file of raw profiles, which has `size` bytes, and appends it.
///
/// # Errors
/// It is too large, or cannot be read.
pub fn read_profiles(file: &mut File, size: u64, to: &mut Vec<u8>) -> anyhow::Result<()> {
    ensure!(
        size <= MAX_PROFILE << 20,
        "more than {MAX_PROFILE} MiB of raw profiles: the file has {size} bytes"
    );
    let rest = (size as usize).saturating_sub(to.len());
    to.try_reserve_exact(rest)
        .with_context(|| format!("no memory for its {size} bytes"))?;
    file.take(rest as u64)
        .read_to_end(to)
        .context("cannot read it")?;
    Ok(())
}

/// The directory that a file is in: `.` if its path has only a name.
pub fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

/// The files that a directory stands for.
pub struct Kind {
    /// For messages: "no NAME in this directory tree".
    pub name: &'static str,
    pub includes: fn(&Path) -> bool,
    /// Which directories below the one that is named are left out.
    pub skips: fn(&Path) -> bool,
}

#[derive(Debug, Default)]
pub struct Found {
    /// Each file once, in the order of the arguments. The files of a directory or a pattern are sorted by name. A file that
    /// does not exist is included, so that opening it reports this.
    pub files: Vec<PathBuf>,
    /// Messages about arguments that match no file.
    pub missing: Vec<String>,
    /// Files that an earlier argument names, too.
    pub repeated: Vec<PathBuf>,
    /// Files that no argument names, which belong to one that is named. They are also in `files`.
    pub related: Vec<PathBuf>,
    /// The device and inode of each file, and the number of the last argument that names it.
    seen: HashMap<(u64, u64), usize>,
    argument: usize,
}

/// Expands the arguments to files.
pub fn expand(arguments: &[PathBuf], kind: &Kind) -> Found {
    let mut found = Found::default();
    for (number, argument) in arguments.iter().enumerate() {
        found.argument = number;
        let pattern = argument
            .to_str()
            .filter(|name| name.contains(['*', '?', '[']));
        match pattern {
            _ if argument.is_dir() => {
                if found.add_directory(argument, kind) == 0 {
                    found.missing.push(format!(
                        "{}: no {} in this directory tree",
                        argument.display(),
                        kind.name
                    ));
                }
            }
            Some(pattern) if !argument.exists() => found.add_pattern(pattern, kind),
            _ => found.add_file(argument.clone()),
        }
    }
    found
}

impl Found {
    /// Adds the files of a directory tree. Returns their number. Does not follow symbolic links to directories: they could
    /// form cycles.
    fn add_directory(&mut self, root: &Path, kind: &Kind) -> usize {
        let mut number = 0;
        let mut dirs = vec![root.to_owned()];
        while let Some(dir) = dirs.pop() {
            let mut entries: Vec<_> = match fs::read_dir(&dir).and_then(Iterator::collect) {
                Ok(entries) => entries,
                Err(error) => {
                    let why = format!("cannot read {}: {error}", dir.display());
                    self.missing.push(why);
                    continue;
                }
            };
            entries.sort_by_key(fs::DirEntry::file_name);
            let mut below = Vec::new();
            for entry in entries {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if !(kind.skips)(&path) {
                        below.push(path);
                    }
                } else if (kind.includes)(&path) {
                    self.add_file(path);
                    number += 1;
                }
            }
            dirs.extend(below.into_iter().rev());
        }
        number
    }

    fn add_pattern(&mut self, pattern: &str, kind: &Kind) {
        let paths = match glob::glob(pattern) {
            Ok(paths) => paths,
            Err(error) => {
                return self.missing.push(format!(
                    "{pattern}: no such file, and not a valid pattern: {error}"
                ));
            }
        };
        let mut number = 0;
        for path in paths {
            match path {
                // Directories without such files also match most patterns.
                Ok(path) if path.is_dir() => number += self.add_directory(&path, kind),
                Ok(path) => {
                    self.add_file(path);
                    number += 1;
                }
                Err(error) => self.missing.push(error.to_string()),
            }
        }
        if number == 0 {
            self.missing.push(format!("{pattern}: no file matches"));
        }
    }

    fn add_file(&mut self, path: PathBuf) {
        let known = identity(&path).and_then(|file| self.seen.insert(file, self.argument));
        match known {
            None => self.files.push(path),
            // A pattern can match a directory and files in it.
            Some(argument) if argument == self.argument => {}
            Some(_) => self.repeated.push(path),
        }
    }

    /// Adds a file that belongs to one that is named, unless it is one of these files.
    pub fn add_related(&mut self, path: &Path) {
        if !self.has(path) {
            self.related.push(path.to_owned());
            self.add_file(path.to_owned());
        }
    }

    /// Whether `path` is one of these files, under any name.
    pub fn has(&self, path: &Path) -> bool {
        identity(path).is_some_and(|identity| self.seen.contains_key(&identity))
    }
}

/// Device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

/// What is in a directory, which need not exist.
pub fn entries(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let found = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    found.with_context(|| format!("cannot read {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_directories_and_patterns_are_expanded_to_files_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("sub/deep")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::create_dir(at("sub/skipped")).unwrap();
        for name in [
            "b.x",
            "a.x",
            "sub/c.x",
            "sub/deep/[d].x",
            "sub/skipped/e.x",
            "other",
        ] {
            fs::write(at(name), name).unwrap();
        }
        symlink(dir.path(), at("sub/cycle")).unwrap();
        symlink(at("a.x"), at("sub/again.x")).unwrap();
        let kind = Kind {
            name: "x",
            includes: |path| path.extension().is_some_and(|extension| extension == "x"),
            skips: |directory| directory.ends_with("skipped"),
        };
        let expanded = |names: &[&str]| {
            let arguments: Vec<PathBuf> = names.iter().map(|name| at(name)).collect();
            let Found {
                files,
                missing,
                repeated,
                ..
            } = expand(&arguments, &kind);
            let shown = |path: PathBuf| path.display().to_string();
            let repeated = repeated
                .into_iter()
                .map(|path| format!("again {}", shown(path)));
            let all = files.into_iter().map(shown).chain(missing).chain(repeated);
            let all = all.collect::<Vec<_>>().join(", ");
            all.replace(&format!("{}/", dir.path().display()), "")
        };
        for (arguments, expected) in [
            (&["b.x", "a.x"][..], "b.x, a.x"),
            (&[""], "a.x, b.x, sub/c.x, sub/deep/[d].x"),
            (&["sub/deep", "b.x"], "sub/deep/[d].x, b.x"),
            // The files of a pattern need not be of the kind.
            (&["*"], "a.x, b.x, other, sub/c.x, sub/deep/[d].x"),
            (&["sub/d*"], "sub/deep/[d].x"),
            (&["su*/[cd].x"], "sub/c.x"),
            // A directory that is named is not skipped.
            (&["sub/skipped"], "sub/skipped/e.x"),
            (&["sub/s*"], "sub/skipped/e.x"),
            // A file name takes precedence over a pattern.
            (&["sub/deep/[d].x"], "sub/deep/[d].x"),
            (&["missing"], "missing"),
            (&["*.none"], "*.none: no file matches"),
            (&["empty"], "empty: no x in this directory tree"),
            (&["*.x", "sub/../b.x"], "a.x, b.x, again sub/../b.x"),
        ] {
            assert_eq!(expanded(arguments), expected, "{arguments:?}");
        }
        assert!(expand(&[at("a.x")], &kind).has(&at("sub/again.x")));
    }
}
