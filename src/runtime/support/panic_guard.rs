//! What surrounds devprof's code on the program's threads. A panic is caught: an internal error is reported, and the program
//! continues. A cancellation of the thread (`pthread_cancel`) waits until devprof's code is over: glibc would end it at the
//! next function that reads or writes a file or sleeps, where the program has called none, and aborts the process because
//! that cannot be caught.

use super::diagnostics;
use crate::sys::threads::Uncancelled;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The records or counts that an internal error may lose.
#[derive(Clone, Copy)]
pub enum Cost {
    Counters,
    Dispatches,
    Copies,
    Markers,
}

/// Runs `work`, during which the thread cannot be cancelled. If it panics, reports an internal error, with what it may
/// lose, and returns `otherwise`.
pub fn guarded<T>(cost: Cost, otherwise: T, work: impl FnOnce() -> T) -> T {
    let _uncancelled = Uncancelled::begin();
    guarded_hot(cost, otherwise, work)
}

/// The same for code of a traced launch, copy or marker, without the cost of changing the thread's state. `work` reads or
/// writes no file and does not sleep, except while it holds [`Uncancelled`].
pub fn guarded_hot<T>(cost: Cost, otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        report(cost);
        otherwise
    })
}

#[cold]
#[inline(never)]
fn report(cost: Cost) {
    let what = match cost {
        Cost::Counters => "counters may be lost",
        Cost::Dispatches => "the trace may miss dispatches",
        Cost::Copies => "the trace may miss copies",
        Cost::Markers => "the trace may miss markers",
    };
    diagnostics::lost(format_args!(
        "an internal error, {what}; please report it with the message above"
    ));
}
