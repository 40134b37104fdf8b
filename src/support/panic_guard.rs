//! What keeps devprof from harm to the program: a panic of ours, which would be a fault, neither leaves devprof nor stops
//! it for good, and a thread does not wait for itself.

use crate::report;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};
use std::thread::LocalKey;

/// What an internal error may have cost.
#[derive(Clone, Copy)]
pub enum Cost {
    Counters,
    Dispatches,
}

/// Runs `work`; a panic in it is said, with what it may have cost, and ends here.
pub fn guarded<T>(cost: Cost, otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let what = match cost {
            Cost::Counters => "counters may be lost",
            Cost::Dispatches => "the trace may miss dispatches",
        };
        report::lost(format_args!(
            "an internal error, {what}; please report it with the message above"
        ));
        otherwise
    })
}

/// A mark of a thread, until it is dropped: the thread is at something that a signal handler which interrupts it cannot
/// wait for.
pub struct Busy(&'static LocalKey<Cell<bool>>);

impl Busy {
    /// `None`: the thread has the mark already.
    pub fn begin(mark: &'static LocalKey<Cell<bool>>) -> Option<Busy> {
        // Made only then: its end takes the mark away.
        (!mark.replace(true)).then(|| Busy(mark))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Takes a lock, also after a panic under it: what it guards is whole between any two steps.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
