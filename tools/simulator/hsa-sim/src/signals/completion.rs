//! Completes signals instead of the model: with an error, or late.

use super::changes::notify;
use super::pool::get;
use crate::sync::{die, locked};
use gpu_model::thread::{self, Thread};
use hsa_abi::SignalHandle;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::AcqRel, Ordering::Release};
use std::time::Duration;

/// Completes a signal with an error: sets it to -1.
pub fn fail(signal: SignalHandle, times: Option<(u64, u64)>) {
    complete(signal, times, |value| value.store(-1, Release));
}

fn complete(signal: SignalHandle, times: Option<(u64, u64)>, how: impl FnOnce(&AtomicI64)) {
    // SAFETY: a signal of a packet. Blocks of signals live until shutdown, which waits for late completions.
    let Some(signal) = (unsafe { get(signal) }) else {
        return;
    };
    if let Some((start, end)) = times {
        signal.start_ts.store(start, Release);
        signal.end_ts.store(end, Release);
    }
    how(&signal.value);
    notify();
}

/// The threads that complete signals late.
static LATE: Mutex<Vec<Thread>> = Mutex::new(Vec::new());

/// Completes a signal after some time, unless it is destroyed by then.
pub fn complete_later(signal: SignalHandle, times: Option<(u64, u64)>, after: Duration) {
    let thread = thread::spawn(c"hsa-sim late", move || {
        std::thread::sleep(after);
        complete(signal, times, |value| {
            value.fetch_sub(1, AcqRel);
        });
    });
    match thread {
        Ok(thread) => {
            let mut late = locked(&LATE);
            late.retain(|thread| !thread.has_ended());
            late.push(thread);
        }
        Err(error) => {
            die(&format!(
                "cannot start a thread for a late completion: {error}"
            ));
        }
    }
}

/// At shutdown: waits for late completions.
pub fn stop() {
    for thread in std::mem::take(&mut *locked(&LATE)) {
        thread.join();
    }
}
