//! What devprof says: nothing, unless something was lost or LLVM_PROFILE_VERBOSE asks for more. One line a fact, to
//! stderr.

use crate::guard::lock;
use crate::journal::{self, Event};
use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;
use std::sync::Mutex;

/// Says that something was lost, once: a program that drains again and again is told no more than one that drains at
/// its end.
pub fn lost(what: impl Display) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let line = what.to_string();
    let mut said = lock(&SAID);
    if said.get_or_insert_default().insert(line.clone()) {
        say(&line);
        journal::note(Event::Lost, line.as_bytes());
    }
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Code objects whose profile was written.
    pub written: usize,
    /// Losses that were reported, one line each.
    pub lost: usize,
}

impl Outcome {
    pub fn lose(&mut self, what: impl Display) {
        self.lost += 1;
        lost(what);
    }
}

/// Says what was done, when `verbose`.
pub fn note(verbose: bool, what: impl Display) {
    if verbose {
        say(&what.to_string());
    }
}

/// A stderr that takes no more is nobody's fault here.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "devprof: {line}");
}
