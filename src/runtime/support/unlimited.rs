//! Calls of functions that may wait without a limit.

use super::panic_guard::{Cost, guarded};
use crate::sys::threads;
use std::sync::mpsc::{self, Receiver};

/// Calls `work` on a thread, so that the caller can limit its own wait for the result. If the thread cannot be created, or
/// `work` panics, the receiver is disconnected.
pub fn call<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (done, is_done) = mpsc::channel();
    let work = move || {
        // The receiver is dropped if its limit was reached.
        let _ = done.send(work());
    };
    threads::spawn_here(Box::new(|| guarded(Cost::Counters, (), work)));
    is_done
}
