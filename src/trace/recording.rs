//! Whether the trace records now: one flag, which launching threads read.
//!
//! [`super::session`] switches it: at the program's request, and after the times of the settings.

use crate::gpu::observers;
use crate::nvidia::activity;
use crate::support::diagnostics;
use crate::support::settings::Tracing;
use std::sync::atomic::{AtomicBool, Ordering};

/// The program has switched the recording, so the times in the settings have no effect any more.
static SWITCHED_BY_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Whether dispatches, API calls, copies and markers that are submitted now are recorded. A thread that has switched
/// the recording, or that is synchronized with such a thread, sees the new state.
#[inline]
pub fn is_on() -> bool {
    observers::observes_launches()
}

/// Sets the state in which the trace begins.
pub fn prepare(tracing: &Tracing) {
    if tracing.stopped || tracing.start_after.is_some() {
        observers::set_observes_launches(false);
    }
}

/// Starts or stops the recording. Returns whether this changes the state.
pub fn switch(on: bool) -> bool {
    // CUPTI records a little more than what is submitted in between: launching threads know the exact state.
    if on {
        set_cuda(true);
    }
    let is_changed = observers::set_observes_launches(on) != on;
    if !on {
        set_cuda(false);
    }
    is_changed
}

/// Starts or stops CUPTI's recording, as the state requires.
pub fn apply_to_cuda() {
    set_cuda(is_on());
}

fn set_cuda(on: bool) {
    if let Err(error) = activity::set_enabled(on) {
        diagnostics::lost(format_args!(
            "the trace misses CUDA's kernels: cannot {} their recording: {error}",
            if on { "start" } else { "stop" }
        ));
    }
}

/// The program starts or stops the recording.
pub fn set_by_program() {
    SWITCHED_BY_PROGRAM.store(true, Ordering::Relaxed);
}

pub fn was_set_by_program() -> bool {
    SWITCHED_BY_PROGRAM.load(Ordering::Relaxed)
}
