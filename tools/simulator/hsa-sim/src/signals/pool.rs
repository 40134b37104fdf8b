//! The memory of signals: blocks of `amd_signal_t` that every GPU may use.

use super::copy_times;
use crate::memory::allocations::{Kind, Memory};
use crate::sync::die;
use hsa_abi::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// The free signals, and the number of used signals.
#[derive(Default)]
pub struct Signals {
    free: VecDeque<SignalHandle>,
    used: u64,
}

/// The size of a block of signals, in bytes.
const BLOCK: usize = 1 << 16;

impl Signals {
    /// The number of signals that are not destroyed.
    pub fn live(&self) -> u64 {
        self.used
    }

    /// A new signal. `event_id` is not 0, so that the model reports changes.
    pub fn create(
        &mut self,
        memory: &mut Memory,
        kind: i64,
        value: SignalValue,
    ) -> Result<SignalHandle, Status> {
        if self.free.is_empty() {
            let users = memory.agents.all_gpus();
            let base = memory
                .allocate(BLOCK, Kind::Runtime, 0, 0, users)
                .ok_or(Status::OUT_OF_RESOURCES)?;
            let each = size_of::<AmdSignal>();
            let all = (base..base + BLOCK).step_by(each);
            self.free.extend(all.map(|at| SignalHandle(at as u64)));
        }
        let signal = self.free.pop_front().ok_or(Status::OUT_OF_RESOURCES)?;
        // SAFETY: aligned memory of a block, which is not in use.
        unsafe {
            (signal.0 as *mut AmdSignal).write(AmdSignal {
                kind,
                value: AtomicI64::new(value),
                event_mailbox_ptr: 0,
                event_id: 1,
                reserved1: 0,
                start_ts: AtomicU64::new(0),
                end_ts: AtomicU64::new(0),
                queue_ptr: std::ptr::null_mut(),
                reserved3: [0; 2],
            });
        }
        self.used += 1;
        Ok(signal)
    }

    /// Destroys a signal.
    pub fn destroy(&mut self, signal: SignalHandle) {
        // SAFETY: from `create`, and the program does not use it any more.
        unsafe { (*(signal.0 as *mut AmdSignal)).kind = 0 };
        copy_times::forget(signal);
        self.free.push_back(signal);
        self.used -= 1;
    }
}

/// The signal of a handle; `None` for the null signal and for one that was destroyed.
///
/// # Safety
/// The handle is 0 or from this runtime since its initialisation.
pub unsafe fn get<'a>(signal: SignalHandle) -> Option<&'a AmdSignal> {
    // SAFETY: the caller's promise; blocks live until shutdown.
    unsafe { (signal.0 as *const AmdSignal).as_ref() }.filter(|signal| signal.kind != 0)
}

/// Like [`get`], for functions without a status: as in ROCr, an invalid handle ends the process.
///
/// # Safety
/// As for [`get`].
pub unsafe fn valid<'a>(signal: SignalHandle) -> &'a AmdSignal {
    // SAFETY: the caller's promise.
    match unsafe { get(signal) } {
        Some(signal) => signal,
        None => {
            die(&format!("{:#x} is not a signal", signal.0));
        }
    }
}
