//! `--diff`: the lines that were changed since a commit.

use super::source::{Source, working_tree};
use crate::git;
use anyhow::Context;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Line numbers.
pub type Lines = Vec<RangeInclusive<u32>>;

/// Whether some of the lines from `first` to `last` are in the ranges.
pub fn overlaps(ranges: &[RangeInclusive<u32>], first: u32, last: u32) -> bool {
    let mut ranges = ranges.iter();
    ranges.any(|range| *range.start() <= last && first <= *range.end())
}

/// The lines of the working tree that were changed since a commit, by the resolved paths of their files.
#[derive(Debug, Default)]
pub struct Changed(HashMap<PathBuf, Lines>);

impl Changed {
    /// `-`: the changes are on stdin, as `git diff --unified=0` prints them, for systems without git.
    ///
    /// # Errors
    /// The current directory is not in a git tree, or it has no such commit.
    pub fn since(rev: &str) -> anyhow::Result<Changed> {
        if rev == "-" {
            let mut diff = Vec::new();
            std::io::stdin()
                .read_to_end(&mut diff)
                .context("cannot read the changes from stdin")?;
            let top = working_tree().context("cannot determine the current directory")?;
            return Ok(Changed::parse(&top, &diff));
        }
        Changed::since_in(Path::new("."), rev)
    }

    /// `dir`: in the git tree.
    fn since_in(dir: &Path, rev: &str) -> anyhow::Result<Changed> {
        let top = git::top(dir).context("--diff needs a git tree")?;
        let commit = git::commit(dir, rev).with_context(|| format!("--diff {rev}"))?;
        let options = ["--ignore-submodules=all", &commit, "--"];
        let diff = git::run(dir, &[git::DIFF, &options].concat())?;
        Ok(Changed::parse(&top, &diff))
    }

    /// Parses the output of `git diff --unified=0`.
    fn parse(top: &Path, diff: &[u8]) -> Changed {
        let mut changed = Changed::default();
        let mut file: Option<PathBuf> = None;
        // Lines of the file that are still to come in a hunk: they may look like headers.
        let mut rest = 0u32;
        for line in diff.split(|&byte| byte == b'\n') {
            if rest > 0 && matches!(line.first(), Some(b'+' | b'-')) {
                rest -= 1;
            } else if let Some(name) = line.strip_prefix(b"+++ ") {
                let name = unquoted(name);
                file = name
                    .strip_prefix(b"b/")
                    .map(|name| top.join(OsStr::from_bytes(name)));
            } else if let Some(((_, before), (start, lines))) = hunk(line) {
                rest = before + lines;
                if let (Some(file), 1..) = (&file, lines) {
                    let own = changed.0.entry(file.clone()).or_default();
                    own.push(start..=start.saturating_add(lines - 1));
                }
            }
        }
        changed
    }

    /// The changed lines of a source.
    pub fn lines(&self, path: &str, source: &Source) -> &[RangeInclusive<u32>] {
        let path = source.read_from.as_deref().unwrap_or(Path::new(path));
        let resolved = path.canonicalize().ok();
        let own = resolved.and_then(|path| self.0.get(&path));
        own.map_or(&[], Vec::as_slice)
    }
}

/// The start and the number of the lines before and after: of `@@ -10,2 +12,3 @@`, (10, 2) and (12, 3).
pub fn hunk(line: &[u8]) -> Option<((u32, u32), (u32, u32))> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@ -")?).ok();
    let text = text.or_else(|| {
        let end = line.windows(3).skip(4).position(|three| three == b" @@")?;
        std::str::from_utf8(&line[4..end + 4]).ok()
    })?;
    let (before, after) = text.split_once(" +")?;
    let (after, _) = after.split_once(" @@").unwrap_or((after, ""));
    let range = |text: &str| match text.split_once(',') {
        Some((start, lines)) => Some((start.parse().ok()?, lines.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some((range(before)?, range(after)?))
}

/// A file name as git writes it: in quotes with escapes, if it has special characters.
fn unquoted(name: &[u8]) -> Vec<u8> {
    // git ends a name that has spaces with a tab.
    let name = name.strip_suffix(b"\t").unwrap_or(name);
    let Some(inner) = name
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
    else {
        return name.to_vec();
    };
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        plain.push(match bytes.next() {
            Some(first @ b'0'..=b'3') => {
                let digits = [
                    first,
                    bytes.next().unwrap_or(b'0'),
                    bytes.next().unwrap_or(b'0'),
                ];
                digits.iter().fold(0, |value: u8, digit| {
                    value.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0'))
                })
            }
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(other) => other,
            None => b'\\',
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_found() {
        let diff = b"diff --git a/a.hip b/a.hip\n--- a/a.hip\n+++ b/a.hip\n@@ -3 +3,2 @@ void f() {\n-x\n+++ b/fake\n+y\n\
            @@ -9,2 +10,0 @@\n-x\n--- a/fake\n@@ -20,0 +20 @@ \xff\n+z\n\
            diff --git \"a/gr\\303\\266\\303\\237e.h\" b/x\n--- /dev/null\n+++ \"b/gr\\303\\266\\303\\237e.h\"\n@@ -0,0 +1,4 @@\n\
            +++ /dev/null\n@@ -1 +0,0 @@\n-x\n+++ b/with space\t\n@@ -1 +1 @@\n-x\n+y\n";
        let changed = Changed::parse(Path::new("/top"), diff);
        let lines = |name: &str| changed.0.get(Path::new(name)).cloned().unwrap_or_default();
        assert_eq!(lines("/top/a.hip"), [3..=4, 20..=20]);
        assert_eq!(lines("/top/größe.h"), [1..=4]);
        assert_eq!(lines("/top/with space"), [1..=1]);
        assert_eq!(changed.0.len(), 3);
    }

    #[test]
    fn git_names_the_changed_lines() {
        let dir = tempfile::tempdir().expect("a directory");
        let top = dir.path().canonicalize().expect("a path");
        let git = |arguments: &[&str]| {
            let mut git = git::command();
            git.args(["-c", "user.name=a", "-c", "user.email=a"]);
            let status = git.args(arguments).current_dir(&top).output();
            assert!(status.expect("git runs").status.success());
        };
        git(&["init", "-q"]);
        // The output does not depend on the configuration.
        git(&["config", "diff.interHunkContext", "10"]);
        std::fs::write(top.join("a.h"), "1\n2\n3\n").expect("written");
        git(&["add", "a.h"]);
        git(&["commit", "-q", "-m", "a"]);
        std::fs::create_dir(top.join("below")).expect("created");
        std::fs::write(top.join("a.h"), "0\n1\n2\nx\n").expect("written");
        let changed = Changed::since_in(&top.join("below"), "HEAD").expect("a commit");
        assert_eq!(changed.0[&top.join("a.h")], [1..=1, 4..=4]);
        for rev in ["none", "--output=x", "HEAD:a.h"] {
            let error = Changed::since_in(&top, rev).expect_err("no commit");
            assert!(error.to_string().contains(rev), "{error:#}");
        }
        assert!(!top.join("x").exists());
    }
}
