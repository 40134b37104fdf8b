//! Runs git without the programs that a repository's configuration names: a report may be made in a tree that somebody else wrote.

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
    git.env("GIT_NO_LAZY_FETCH", "1");
    git.env("GIT_OPTIONAL_LOCKS", "0");
    git
}
