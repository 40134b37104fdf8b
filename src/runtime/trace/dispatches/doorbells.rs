//! The packets that doorbells withhold, and the thread that submits them.

use crate::amd::doorbell;
use crate::support::panic_guard::{Cost, guarded};
use crate::sys::threads;
use crate::trace::session::Delivery;
use std::io;
use std::sync::OnceLock;
use std::thread::Thread;
use std::time::Duration;

/// The interval at which packets withheld at doorbells are submitted.
const SUBMIT_INTERVAL: Duration = Duration::from_micros(50);

/// The thread that submits packets withheld at doorbells.
static THREAD: OnceLock<Thread> = OnceLock::new();

/// Starts the thread: now, not when it is needed. Then a thread in `dlopen` or `dlclose`, which hold the loader's lock,
/// might wait for packets that this thread is to submit, and a new thread takes that lock.
pub fn start() -> io::Result<()> {
    let thread = threads::spawn_without_signals("devprof-doorbell", || {
        guarded(Cost::Dispatches, (), submit_withheld);
    })?;
    THREAD.get_or_init(|| thread);
    Ok(())
}

/// The thread's loop. Submitting takes ROCr's lock of the queue, whose holder may wait for signals from the completion
/// thread, so the completion thread must not wait for that lock.
fn submit_withheld() {
    loop {
        while doorbell::submit_withheld() {
            std::thread::sleep(SUBMIT_INTERVAL);
        }
        std::thread::park();
    }
}

pub struct Doorbells;

impl Delivery for Doorbells {
    fn submit(&self) -> bool {
        let has_withheld = doorbell::has_withheld();
        if has_withheld && let Some(thread) = THREAD.get() {
            thread.unpark();
        }
        has_withheld
    }

    fn delayed(&self) -> Vec<(u64, u64)> {
        doorbell::delayed()
    }

    fn has_taken(&self, delayed: &[(u64, u64)]) -> bool {
        doorbell::were_taken(delayed)
    }
}
