//! Catches panics at devprof's entry points: an internal error is reported, and the program continues.

use super::diagnostics;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What an internal error may lose.
#[derive(Clone, Copy)]
pub enum Cost {
    Counters,
    Dispatches,
    Copies,
    Markers,
}

/// Runs `work`. If it panics, reports an internal error, with what it may lose, and returns `otherwise`.
pub fn guarded<T>(cost: Cost, otherwise: T, work: impl FnOnce() -> T) -> T {
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
