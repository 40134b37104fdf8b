//! Expands the command line's arguments (files, directories, patterns and lists) to files, each once.

use anyhow::{Context, Result};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File name extension of raw profiles.
const RAW: &str = "profraw";

#[derive(Debug, Default)]
pub struct Found {
    /// In the order of the arguments; those of a directory or a pattern sorted by name.
    pub files: Vec<PathBuf>,
    /// Messages about arguments that match no file.
    pub missing: Vec<String>,
    /// Number of files that were skipped because they occurred before.
    pub repeated: usize,
    seen: HashSet<(u64, u64)>,
}

/// Expands the arguments to files.
///
/// # Errors
/// A list (`@FILE`) cannot be read.
pub fn expand(arguments: &[PathBuf]) -> Result<Found> {
    let mut found = Found::default();
    for argument in arguments {
        match argument.as_os_str().as_bytes().strip_prefix(b"@") {
            Some(list) if !argument.exists() => {
                for line in lines(OsStr::from_bytes(list))? {
                    found.add(&line);
                }
            }
            _ => found.add(argument),
        }
    }
    Ok(found)
}

/// The lines of a list, without empty lines and comments (`#`).
fn lines(list: &OsStr) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = match list.as_bytes() {
        b"-" => std::io::stdin().read_to_end(&mut bytes).map(|_| ()),
        _ => fs::read(list).map(|read| bytes = read),
    };
    read.with_context(|| format!("cannot read the list {}", list.display()))?;
    let lines = bytes.split(|&byte| byte == b'\n');
    Ok(lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty() && line[0] != b'#')
        .map(|line| OsString::from_vec(line.to_vec()).into())
        .collect())
}

impl Found {
    fn add(&mut self, argument: &Path) {
        match fs::metadata(argument) {
            Ok(data) if data.is_dir() => {
                if !self.add_directory(argument) {
                    self.missing.push(format!(
                        "{}: no .{RAW} files in this directory tree",
                        argument.display()
                    ));
                }
            }
            Ok(_) => self.add_file(argument.to_owned()),
            Err(error) => match argument
                .to_str()
                .filter(|name| name.contains(['*', '?', '[']))
            {
                Some(pattern) => self.add_pattern(pattern),
                None => self
                    .missing
                    .push(format!("{}: {error}", argument.display())),
            },
        }
    }

    /// Adds the raw profiles below a directory, and returns whether there are any. Does not follow symbolic links to
    /// directories: they could form cycles.
    fn add_directory(&mut self, dir: &Path) -> bool {
        let before = self.files.len() + self.repeated;
        let mut dirs = vec![dir.to_owned()];
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
                    below.push(path);
                } else if path.extension().is_some_and(|extension| extension == RAW) {
                    self.add_file(path);
                }
            }
            dirs.extend(below.into_iter().rev());
        }
        self.files.len() + self.repeated > before
    }

    fn add_pattern(&mut self, pattern: &str) {
        let paths = match glob::glob(pattern) {
            Ok(paths) => paths,
            Err(error) => {
                return self.missing.push(format!(
                    "{pattern}: no such file, and not a valid pattern: {error}"
                ));
            }
        };
        let before = self.files.len() + self.repeated;
        for path in paths {
            match path {
                // Directories without profiles also match most patterns.
                Ok(path) if path.is_dir() => {
                    self.add_directory(&path);
                }
                Ok(path) => self.add_file(path),
                Err(error) => self.missing.push(error.to_string()),
            }
        }
        if self.files.len() + self.repeated == before {
            self.missing.push(format!("{pattern}: no file matches"));
        }
    }

    fn add_file(&mut self, path: PathBuf) {
        // If this fails, opening the file reports why.
        let is_new = identity(&path).is_none_or(|identity| self.seen.insert(identity));
        match is_new {
            true => self.files.push(path),
            false => self.repeated += 1,
        }
    }

    /// Whether `path` is one of these files, under any name.
    pub fn has(&self, path: &Path) -> bool {
        identity(path).is_some_and(|identity| self.seen.contains(&identity))
    }
}

/// Device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn arguments_are_expanded_to_files_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("sub/deep")).unwrap();
        for name in [
            "b.profraw",
            "a.profraw",
            "sub/c.profraw",
            "sub/deep/d.profraw",
            "x.profdata",
            "[odd].profraw",
        ] {
            fs::write(at(name), name).unwrap();
        }
        symlink(dir.path(), at("sub/circle")).unwrap();
        symlink(at("a.profraw"), at("sub/again.profraw")).unwrap();
        let list = format!(
            "# a comment\n\n{}\r\n{}\n",
            at("x.profdata").display(),
            at("missing").display()
        );
        fs::write(at("list"), list).unwrap();
        let names = |named: &[String]| {
            let named: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
            let found = expand(&named).unwrap();
            let names: Vec<String> = found
                .files
                .iter()
                .map(|path| path.strip_prefix(dir.path()).unwrap().display().to_string())
                .collect();
            (names, found.missing.len(), found.repeated)
        };
        let path = |name: &str| at(name).display().to_string();
        let all = [
            "[odd].profraw",
            "a.profraw",
            "b.profraw",
            "sub/c.profraw",
            "sub/deep/d.profraw",
        ];
        assert_eq!(
            names(&[dir.path().display().to_string()]),
            (all.map(String::from).into(), 0, 1)
        );
        assert_eq!(
            names(&[path("*.profdata"), path("b.profraw")]).0,
            ["x.profdata", "b.profraw"]
        );
        assert_eq!(names(&[path("*/*/[cd].profraw")]).0, ["sub/deep/d.profraw"]);
        assert_eq!(
            names(&[path("[odd].profraw")]).0,
            ["[odd].profraw"],
            "a file name takes precedence over a pattern"
        );
        assert_eq!(
            names(&[format!("@{}", path("list"))]),
            (vec!["x.profdata".to_owned()], 1, 0)
        );
        assert_eq!(
            names(&[path("none"), path("n*"), path("sub/deep/*.x")]),
            (vec![], 3, 0)
        );
        assert!(
            expand(&[format!("@{}", path("none")).into()])
                .unwrap_err()
                .to_string()
                .contains("cannot read the list")
        );
        assert!(
            expand(&[at("a.profraw")])
                .unwrap()
                .has(&at("sub/again.profraw"))
        );
    }
}
