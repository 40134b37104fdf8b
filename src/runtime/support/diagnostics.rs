//! Messages on stderr, one line each: losses, and details if LLVM_PROFILE_VERBOSE is set.

use super::run_log::{self, Event};
use super::sync::lock;
use crate::sys::threads::Uncancelled;
use crate::sys::writes;
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Mutex;

/// Reports a loss. The same loss is reported only once, even if it occurs in several drains.
pub fn lost(what: impl Display) {
    report(&what);
}

/// Not generic and not inlined: it is called in many places.
#[cold]
#[inline(never)]
fn report(what: &dyn Display) {
    static REPORTED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let _uncancelled = Uncancelled::begin();
    let line = what.to_string();
    let mut reported = lock(&REPORTED);
    if reported.get_or_insert_default().insert(line.clone()) {
        print(&line);
        run_log::append(Event::Lost, line.as_bytes());
    }
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Losses that were reported, one line each.
    pub lost: usize,
}

impl Outcome {
    pub fn lose(&mut self, what: impl Display) {
        self.lost += 1;
        lost(what);
    }
}

/// Prints a detail if `verbose` is set.
pub fn note(verbose: bool, what: impl Display) {
    if verbose {
        print(&what);
    }
}

/// If stderr cannot be written, the message is lost.
#[cold]
#[inline(never)]
fn print(line: &dyn Display) {
    let _uncancelled = Uncancelled::begin();
    writes::to_stderr(format!("devprof: {line}\n").as_bytes());
}
