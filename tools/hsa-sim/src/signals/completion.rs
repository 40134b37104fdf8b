//! Completes signals instead of the model: with an error, or late.

use super::changes::changed;
use super::pool::at;
use crate::sync::locked;
use hsa_abi::SignalHandle;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::AcqRel, Ordering::Release};
use std::thread::JoinHandle;
use std::time::Duration;

/// Completes a signal with an error.
pub fn fail(signal: SignalHandle, times: Option<(u64, u64)>) {
    complete(signal, times, |value| value.store(-1, Release));
}

fn complete(signal: SignalHandle, times: Option<(u64, u64)>, how: impl FnOnce(&AtomicI64)) {
    // SAFETY: a signal of a packet; blocks of signals live until shutdown, which waits for those who come here late.
    let Some(signal) = (unsafe { at(signal) }) else {
        return;
    };
    if let Some((start, end)) = times {
        signal.start_ts.store(start, Release);
        signal.end_ts.store(end, Release);
    }
    how(&signal.value);
    changed();
}

/// Threads that complete a signal late.
static LATE: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Completes a signal after some time, if it is still there.
pub fn complete_later(signal: SignalHandle, times: Option<(u64, u64)>, after: Duration) {
    let thread = std::thread::Builder::new()
        .name("hsa-sim late".into())
        .spawn(move || {
            std::thread::sleep(after);
            complete(signal, times, |value| {
                value.fetch_sub(1, AcqRel);
            });
        });
    match thread {
        Ok(thread) => {
            let mut late = locked(&LATE);
            late.retain(|thread| !thread.is_finished());
            late.push(thread);
        }
        Err(error) => {
            eprintln!("hsa-sim: no thread for a late completion: {error}");
            std::process::abort();
        }
    }
}

/// At shutdown: waits for late completions.
pub fn stop() {
    for thread in std::mem::take(&mut *locked(&LATE)) {
        if thread.join().is_err() {
            eprintln!("hsa-sim: internal error in a thread that completes a signal");
            std::process::abort();
        }
    }
}
