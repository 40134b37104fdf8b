//! What devprof says: nothing, unless something was lost or LLVM_PROFILE_VERBOSE asks for more. One line a fact, to
//! stderr.

use std::fmt::Display;
use std::io::Write;

/// Says that something was lost. A stderr that takes no more is nobody's fault here.
pub fn lost(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "devprof: {what}");
}

/// Says what was done, when `verbose`.
pub fn note(verbose: bool, what: impl Display) {
    if verbose {
        lost(what);
    }
}
