//! Forks. If HSA is initialized, devprof does nothing in the child.

use super::lifecycle;
use super::snapshot;
use super::trace_guard::HAS_TRACE;
use crate::support::panic_guard::{Cost, guarded};
use crate::sys::exit;
use crate::trace;

/// Registers the handlers.
pub fn register() {
    exit::at_fork(before, in_parent, in_child);
}

unsafe extern "C" fn before() {
    guarded(Cost::Counters, (), || {
        let is_initialized = lifecycle::before_fork();
        snapshot::before_fork(is_initialized);
    });
}

unsafe extern "C" fn in_parent() {
    snapshot::open_gate();
}

unsafe extern "C" fn in_child() {
    guarded(Cost::Counters, (), || {
        snapshot::in_child();
        let is_owner = lifecycle::in_child();
        if HAS_TRACE {
            trace::in_child(is_owner);
        }
    });
}
