//! Runs git without the programs that a repository's configuration names: a report may be made in a tree that somebody else wrote.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The start of a command that does not run hooks, does not ask a file system monitor, and fetches nothing.
pub fn command() -> Command {
    let mut git = Command::new("git");
    git.args([
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
    ]);
    // It replaces the options for a diff's context.
    git.env_remove("GIT_DIFF_OPTS");
    git.env("GIT_NO_LAZY_FETCH", "1");
    git.env("GIT_OPTIONAL_LOCKS", "0");
    git
}

/// The output of a git command in a directory.
///
/// # Errors
/// git cannot be started, or fails.
pub fn run(dir: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = command().args(arguments).current_dir(dir).output();
    let output = output.context("cannot start git")?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!(
            "git {}: {}",
            arguments[0],
            message.lines().next().unwrap_or("it failed")
        );
    }
    Ok(output.stdout)
}

/// The directory of the git tree that contains a directory.
///
/// # Errors
/// There is none.
pub fn top(dir: &Path) -> anyhow::Result<PathBuf> {
    let top = run(dir, &["rev-parse", "--show-toplevel"])?;
    Ok(Path::new(OsStr::from_bytes(top.trim_ascii_end())).canonicalize()?)
}

/// The full name of a commit.
///
/// # Errors
/// There is none of this name.
pub fn commit(dir: &Path, rev: &str) -> anyhow::Result<String> {
    // It cannot be an option.
    let rev = format!("{rev}^{{commit}}");
    let commit = run(dir, &["rev-parse", "--verify", "--end-of-options", &rev])?;
    Ok(String::from_utf8(commit)?.trim().to_owned())
}

/// The options of `git diff` with which its output depends on no configuration: hunks without context.
pub const DIFF: &[&str] = &[
    "diff",
    "--unified=0",
    "--inter-hunk-context=0",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];
