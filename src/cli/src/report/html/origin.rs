//! Where a report comes from: its date, the command that made it, and the commit of the sources.

use crate::readable;
use std::path::Path;
use std::time::{Duration, SystemTime};

pub struct Origin {
    /// `2026-11-22 20:47:24 UTC`
    pub time: String,
    /// Quoted for a shell.
    pub command: String,
    /// As `git describe --always` prints it; `None` outside of a git tree, or without git.
    pub commit: Option<String>,
}

impl Origin {
    /// Of this process. SOURCE_DATE_EPOCH replaces the time, so that builds can be reproduced.
    pub fn find() -> Origin {
        let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
        let seconds = epoch.and_then(|seconds| seconds.parse().ok());
        let time = seconds.map_or_else(SystemTime::now, |seconds| {
            SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
        });
        let arguments = std::env::args_os().skip(1);
        let arguments = arguments.map(|argument| readable::quoted(Path::new(&argument)));
        let command = std::iter::once("devprof".to_owned()).chain(arguments);
        Origin {
            time: time_of(time),
            command: command.collect::<Vec<_>>().join(" "),
            commit: commit(Path::new(".")),
        }
    }
}

fn time_of(time: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

/// The commit of the git tree that contains a directory. Without `--dirty`, which would run the programs that the tree's
/// configuration names (core.fsmonitor, filters).
fn commit(dir: &Path) -> Option<String> {
    let mut git = crate::git::command();
    git.args(["describe", "--always", "--abbrev=12"]);
    let output = git.current_dir(dir).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_directory_has_its_commit() {
        let dir = tempfile::tempdir().expect("a directory");
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a"]);
            let status = git.args(arguments).current_dir(&dir).output();
            assert!(status.expect("git runs").status.success());
        };
        // A directory above it could be a git tree.
        if commit(dir.path()).is_some() {
            return;
        }
        git(&["init", "-q"]);
        std::fs::write(dir.path().join("a"), "1").expect("written");
        git(&["add", "a"]);
        git(&["commit", "-q", "-m", "a"]);
        let clean = commit(dir.path()).expect("a commit");
        assert!(
            clean.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{clean}"
        );
        // A hook of the tree does not run.
        let hook = dir.path().join("hook");
        crate::locate::program(&hook, "touch \"$0.ran\"");
        git(&["config", "core.fsmonitor", hook.to_str().expect("a path")]);
        std::fs::write(dir.path().join("a"), "2").expect("written");
        assert_eq!(commit(dir.path()), Some(clean));
        assert!(!hook.with_extension("ran").exists());
        git(&["status"]);
        assert!(hook.with_extension("ran").exists(), "the hook works");
        git(&["config", "core.fsmonitor", "false"]);
        git(&["add", "a"]);
        git(&["commit", "-q", "-m", "b"]);
        git(&["tag", "-a", "v1", "-m", "v1"]);
        assert_eq!(commit(dir.path()).as_deref(), Some("v1"));
    }

    #[test]
    fn the_time_is_readable() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_380_444);
        assert_eq!(time_of(time), "2026-11-22 20:47:24 UTC");
    }
}
