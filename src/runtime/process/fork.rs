//! Forks. If a GPU runtime is initialized, devprof does nothing in the child.
//!
//! Only the child does something. Its handler waits for no lock, and calls neither the dynamic loader nor a GPU runtime: glibc
//! 2.28 to 2.35 hold a lock while handlers run, and a thread in `dlclose` holds the loader's lock while it waits for that lock;
//! ROCr must not be queried during its initialization, and the CUDA driver may fork during its own. In a process that has not
//! used a GPU, the handler writes one word, so that forks cost what they cost without devprof.

use super::leader;
use super::lifecycle;
use super::request::Request;
use super::snapshot;
use crate::support::features::HAS_TRACE;
use crate::support::panic_guard::{Cost, guarded};
use crate::trace;

/// The handler of the child.
pub unsafe extern "C" fn in_child() {
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
