//! The sources that use HSA share this: whether they may call it, and the program's signals.

pub mod watched_signals;

use super::recorder::times::Interval;
use super::session::Runtime;
use hsa_abi::DispatchTime;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

impl From<DispatchTime> for Interval {
    fn from(time: DispatchTime) -> Interval {
        Interval {
            start: time.start,
            end: time.end,
        }
    }
}

/// HSA's functions must not be called.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// The number of threads in `hsa_shut_down`. While it is not 0, HSA's functions must not be called either, because HSA may
/// be uninitialized during that call. Incremented under the session's lock if there is a session.
static SHUTTING_DOWN: AtomicUsize = AtomicUsize::new(0);

pub fn runtime() -> Runtime {
    if STOPPED.load(Ordering::SeqCst) {
        Runtime::Stopped
    } else if SHUTTING_DOWN.load(Ordering::SeqCst) > 0 {
        Runtime::Paused
    } else {
        Runtime::Usable
    }
}

/// HSA was initialized again.
pub fn restart() {
    STOPPED.store(false, Ordering::SeqCst);
}

/// HSA is not called any more. Returns whether it was until now.
pub fn stop() -> bool {
    !STOPPED.swap(true, Ordering::SeqCst)
}

/// A thread is about to call `hsa_shut_down`.
pub fn begin_shutdown() {
    SHUTTING_DOWN.fetch_add(1, Ordering::SeqCst);
}

/// The call has returned.
pub fn end_shutdown() {
    SHUTTING_DOWN.fetch_sub(1, Ordering::SeqCst);
}
