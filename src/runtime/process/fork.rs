//! Forks. If a GPU runtime is initialized, devprof does nothing in the child.
//!
//! Before the fork, devprof's own threads leave the GPU runtimes, whose locks the child would inherit. The forking thread waits
//! for them, but not for long: they may wait for the loader's lock, and its holder for the forking thread, as below.
//!
//! The child's handler waits for no lock, and calls neither the dynamic loader nor a GPU runtime: glibc 2.28 to 2.35 hold a lock
//! while handlers run, and a thread in `dlclose` holds the loader's lock while it waits for that lock; ROCr must not be queried
//! during its initialization, and the CUDA driver may fork during its own. In a process that has not used a GPU, the handlers
//! write a few words, so that forks cost what they cost without devprof.

use super::leader;
use super::lifecycle;
use super::request::Request;
use super::snapshot;
use crate::support::features::HAS_TRACE;
use crate::support::panic_guard::{Cost, guarded};
use crate::sys::exit::ForkHandlers;
use crate::trace;
use std::time::Duration;

/// How long a fork waits for each of devprof's two threads that use a GPU runtime.
const LIMIT: Duration = Duration::from_millis(100);

pub const HANDLERS: ForkHandlers = ForkHandlers {
    before,
    in_parent: after,
    in_child,
};

extern "C" fn before() {
    snapshot::before_fork(LIMIT);
    if HAS_TRACE {
        trace::before_fork(LIMIT);
    }
}

extern "C" fn after() {
    if HAS_TRACE {
        trace::after_fork();
    }
    snapshot::after_fork();
}

extern "C" fn in_child() {
    after();
    // Instances that do not lead may have state that this one does not know.
    if leader::leads() && lifecycle::is_new_in_child() {
        return;
    }
    guarded(Cost::Counters, (), || {
        let was_draining = snapshot::in_child();
        // The instance that leads observes the GPU runtimes.
        let may_be_up = leader::request(Request::MayBeUp {}) != 0;
        let is_owner = lifecycle::in_child(!was_draining && !may_be_up);
        if HAS_TRACE {
            trace::in_child(is_owner);
        }
    });
}
