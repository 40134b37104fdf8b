//! How CUPTI delivers its records.

use crate::nvidia::activity::{self, Flush};
use crate::nvidia::wait;
use crate::support::diagnostics;
use crate::support::sync::lock;
use crate::support::wait_limit::Waiting;
use crate::trace::calls;
use crate::trace::recorder::clock;
use crate::trace::session::{self, Delivery, recording};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// CUDA is traced, and CUPTI's functions may be called.
static TRACED: AtomicBool = AtomicBool::new(false);
/// At the end of the trace, all work was complete, so CUPTI has delivered all records.
static WAS_IDLE: AtomicBool = AtomicBool::new(false);
/// Held while CUPTI delivers records. No lock of the trace is held while waiting for it.
static FLUSHING: Mutex<()> = Mutex::new(());

/// CUDA is traced from now on.
pub fn set_traced() {
    TRACED.store(true, Ordering::SeqCst);
}

pub fn is_traced() -> bool {
    TRACED.load(Ordering::SeqCst)
}

pub fn was_idle() -> bool {
    WAS_IDLE.load(Ordering::SeqCst)
}

/// Makes CUPTI deliver its records.
fn flush(flush: Flush) {
    let _flushing = lock(&FLUSHING);
    if is_traced() {
        activity::flush(flush);
    }
}

/// Starts or stops CUPTI's recording.
pub fn set_enabled(on: bool) {
    if let Err(error) = activity::set_enabled(on) {
        diagnostics::lost(format_args!(
            "the trace misses CUDA's kernels: cannot {} their recording: {error}",
            if on { "start" } else { "stop" }
        ));
    }
}

pub struct Cupti;

impl Delivery for Cupti {
    fn is_on_request(&self) -> bool {
        is_traced()
    }

    fn is_outstanding(&self) -> bool {
        activity::has_lent()
    }

    fn request(&self) {
        flush(Flush::Complete);
    }

    fn force(&self) {
        flush(Flush::Forced);
    }

    fn wait(&self, limit: Duration) -> bool {
        wait::wait_for_all(limit)
    }

    fn finish(&self, limit: Duration) {
        if !is_traced() {
            return;
        }
        let is_idle = wait::wait_for_all(limit);
        WAS_IDLE.store(is_idle, Ordering::SeqCst);
        flush(if is_idle { Flush::Idle } else { Flush::Forced });
        let _flushing = lock(&FLUSHING);
        TRACED.store(false, Ordering::SeqCst);
    }
}

/// CUPTI's clock, nanoseconds.
pub extern "C" fn cuda_now() -> u64 {
    clock::now()
}

/// CUPTI is ready: it records from now on, unless the recording is stopped.
pub fn cuda_started() {
    set_enabled(recording::is_on());
    calls::start();
}

/// CUDA is about to destroy a context, perhaps with running kernels.
pub fn context_destroying(context: u64) {
    if session::is_traced() && is_traced() {
        let waiting = Waiting::begin();
        wait::wait_for(context, waiting.limit);
        drop(waiting);
        flush(Flush::Complete);
    }
}
