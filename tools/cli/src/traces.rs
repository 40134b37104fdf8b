//! The traces that a command line names: files, directories and patterns.

use crate::exit::usage;
use anyhow::{Context, bail};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use tracefile::format::MAGIC;

/// Expands the arguments to files, in the order of the arguments. Those of a directory or pattern are sorted by name. A
/// directory stands for the traces in its tree.
///
/// # Errors
/// A directory has no trace, no file matches a pattern, or a file is given twice.
pub fn expand(arguments: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for argument in arguments {
        let is_pattern = |name: &&str| name.contains(['*', '?', '[']);
        match argument.to_str().filter(is_pattern) {
            _ if argument.is_dir() => {
                let before = paths.len();
                add_directory(argument, &mut paths)?;
                if paths.len() == before {
                    bail!("{}: no trace in this directory tree", argument.display());
                }
            }
            Some(pattern) if !argument.exists() => add_pattern(pattern, &mut paths)?,
            // If it does not exist, opening it reports this.
            _ => paths.push(argument.clone()),
        }
    }
    let mut seen = HashSet::new();
    for path in &paths {
        if !seen.insert(identity(path)) {
            return Err(usage(format!(
                "the trace {} is given twice: remove one",
                path.display()
            )));
        }
    }
    Ok(paths)
}

/// The path without symbolic links.
fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Adds the files that match, and the traces in the directories that match.
fn add_pattern(pattern: &str, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let found = glob::glob(pattern).with_context(|| format!("{pattern} is not a valid pattern"))?;
    let mut all = Vec::new();
    for path in found.flatten() {
        match path.is_dir() {
            true => add_directory(&path, &mut all)?,
            false => all.push(path),
        }
    }
    if all.is_empty() {
        bail!("{pattern}: no file matches");
    }
    // A pattern can match a directory and files in it.
    let mut seen = HashSet::new();
    all.retain(|path| seen.insert(identity(path)));
    paths.extend(all);
    Ok(())
}

/// Adds the traces in a directory tree. Does not follow symbolic links to directories: they could form cycles.
fn add_directory(root: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(&dir).and_then(Iterator::collect);
        let mut entries: Vec<_> =
            entries.with_context(|| format!("cannot read the directory {}", dir.display()))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut below = Vec::new();
        for entry in entries {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.push(path);
            } else if path.is_file() && is_trace(&path) {
                paths.push(path);
            }
        }
        dirs.extend(below.into_iter().rev());
    }
    Ok(())
}

/// Whether the file begins like a trace. A file that cannot be read is taken for one, so that the error is reported.
fn is_trace(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    match File::open(path).and_then(|mut file| file.read(&mut magic)) {
        Ok(count) => count == magic.len() && magic == MAGIC,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_directories_and_patterns_are_expanded_to_traces() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("sub/deep")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        for name in ["b.trace", "a.trace.12", "sub/c", "sub/deep/[d]"] {
            fs::write(at(name), [&MAGIC[..], name.as_bytes()].concat()).unwrap();
        }
        fs::write(at("sub/other.trace"), "not a trace").unwrap();
        fs::write(at("sub/short"), &MAGIC[..4]).unwrap();
        symlink(dir.path(), at("sub/cycle")).unwrap();
        let expanded = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| at(name)).collect();
            match expand(&names) {
                Ok(paths) => {
                    let relative =
                        |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().to_owned();
                    let paths = paths
                        .iter()
                        .map(|path| relative(path).display().to_string());
                    paths.collect::<Vec<_>>().join(" ")
                }
                Err(error) => error
                    .to_string()
                    .replace(&*dir.path().to_string_lossy(), "DIR"),
            }
        };
        for (arguments, expected) in [
            (&["b.trace", "a.trace.12"][..], "b.trace a.trace.12"),
            (&[""], "a.trace.12 b.trace sub/c sub/deep/[d]"),
            (&["sub", "b.trace"], "sub/c sub/deep/[d] b.trace"),
            // A pattern's files are not filtered: the error for a file that is no trace is reported.
            (
                &["sub/*"],
                "sub/c sub/cycle/a.trace.12 sub/cycle/b.trace sub/cycle/sub/deep/[d] sub/other.trace sub/short",
            ),
            (&["*.trace*"], "a.trace.12 b.trace"),
            (&["sub/d*"], "sub/deep/[d]"),
            (&["su*/[cd]"], "sub/c"),
            (&["sub/**/[[]*", "e*"], "DIR/e*: no file matches"),
            (&["sub/deep/[d]"], "sub/deep/[d]"),
            (&["missing"], "missing"),
            (&["*.none"], "DIR/*.none: no file matches"),
            (&["empty"], "DIR/empty: no trace in this directory tree"),
            (
                &["*.trace", "sub/../b.trace"],
                "the trace DIR/sub/../b.trace is given twice: remove one",
            ),
        ] {
            assert_eq!(expanded(arguments), expected, "{arguments:?}");
        }
    }
}
