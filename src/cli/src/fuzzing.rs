//! The fuzz targets of the command line, which `tools/fuzz/run` starts. Their seeds are in `tools/fuzz`.

use crate::names::{self, MAX_NAME, Naming};
use crate::report::fuzzing as report;
use crate::run::summary;
use crate::run_log::journal::Journal;

pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("demangle", demangle),
    ("lcov", report::lcov),
    ("mapping", report::mapping),
    ("markdown", report::markdown),
    ("runlog", runlog),
    ("summary", summary::fuzz),
];

/// A symbol, or a name in a profile.
fn demangle(bytes: &[u8]) {
    let name = String::from_utf8_lossy(bytes);
    let naming = Naming::default();
    for shown in [
        naming.shown(&name),
        naming.without_arguments(&name),
        names::short(&name),
    ] {
        let size = shown.len();
        // Suffixes (` [internal]`) can be nested.
        assert!(size <= MAX_NAME + 4 * name.len(), "{size} bytes");
    }
    let _ = names::refused();
}

/// A run log. Each entry can be written again.
fn runlog(bytes: &[u8]) {
    for entry in runlog::entries(bytes) {
        let line = entry.to_line();
        let (end, line) = line.split_last().unwrap_or((&0, &[]));
        assert_eq!(*end, b'\n');
        assert_eq!(runlog::Entry::parse(line).as_ref(), Some(&entry));
    }
    let journal = Journal::read([bytes, bytes]);
    assert!(journal.profiles.len() + journal.traces.len() <= bytes.len());
    journal.cut_off().for_each(drop);
    journal.overwritten().for_each(drop);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_seeds_do_not_panic() {
        for (target, run) in TARGETS {
            assert!(fuzz::corpus::seeds(target).len() > 1, "{target}");
            fuzz::damaged_seeds(target, *run);
        }
    }
}
