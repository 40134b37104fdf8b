//! HSA's clock, the signals that a trace has kernels complete, and the times that are in them. Mirrors
//! `hsa/amd_hsa_signal.h`.

use super::api::{Error, ok};
use super::originals::originals;
use super::types::*;
use crate::trace::Signals;

pub use hsa_abi::DispatchTime;

/// `HSA_SYSTEM_INFO_TIMESTAMP`; 0 where HSA is not, or not alive.
pub fn system_time() -> u64 {
    let mut ticks = 0u64;
    if let Some(originals) = originals() {
        // SAFETY: the attribute is a u64; a runtime that is not initialised leaves it.
        unsafe {
            (originals.core.hsa_system_get_info)(SYSTEM_INFO_TIMESTAMP, (&raw mut ticks).cast());
        }
    }
    ticks
}

/// Ticks a second of the system clock.
pub fn clock_frequency() -> Result<u64, Error> {
    const WHAT: &str = "hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)";
    let originals = originals().ok_or(Error::Call(WHAT, Status::NOT_INITIALIZED))?;
    let mut frequency = 0u64;
    // SAFETY: the attribute is a u64.
    let status = unsafe {
        (originals.core.hsa_system_get_info)(
            SYSTEM_INFO_TIMESTAMP_FREQUENCY,
            (&raw mut frequency).cast(),
        )
    };
    ok(WHAT, status)?;
    match frequency {
        0 => Err(Error::Call(WHAT, Status::ERROR)),
        frequency => Ok(frequency),
    }
}

/// HSA's signals, as the pool needs them: without interrupts, for the GPU to write and the host to poll.
pub struct HsaSignals;

impl Signals for HsaSignals {
    fn create(&self) -> Option<SignalHandle> {
        let mut signal = SignalHandle(0);
        // SAFETY: no consumers named: any agent may use it.
        let status = unsafe {
            (originals()?.amd.hsa_amd_signal_create)(
                1,
                0,
                std::ptr::null(),
                AMD_SIGNAL_AMD_GPU_ONLY,
                &raw mut signal,
            )
        };
        (status == Status::SUCCESS && signal.0 != 0).then_some(signal)
    }

    fn value(&self, signal: SignalHandle) -> i64 {
        // SAFETY: a signal of the pool, which is destroyed only when HSA ends.
        originals().map_or(1, |originals| unsafe {
            (originals.core.hsa_signal_load_scacquire)(signal)
        })
    }

    fn reset(&self, signal: SignalHandle) {
        if let Some(originals) = originals() {
            // SAFETY: as above; nobody waits for it.
            unsafe { (originals.core.hsa_signal_store_relaxed)(signal, 1) };
        }
    }

    fn destroy(&self, signal: SignalHandle) {
        if let Some(originals) = originals() {
            // SAFETY: a signal of the pool that no packet names any more.
            unsafe { (originals.core.hsa_signal_destroy)(signal) };
        }
    }
}

/// The times that HSA tells for a signal of ours that a kernel has completed.
pub fn dispatch_time(agent: AgentHandle, signal: SignalHandle) -> Option<DispatchTime> {
    let mut time = DispatchTime::default();
    // SAFETY: the agent and the signal are HSA's, `time` is to be written.
    let status = unsafe {
        (originals()?.amd.hsa_amd_profiling_get_dispatch_time)(agent, signal, &raw mut time)
    };
    (status == Status::SUCCESS).then_some(time)
}

/// The agent's ticks that the packet processor wrote into the signal (`amd_signal_t`, `start_ts` and `end_ts`).
pub fn raw_time(signal: SignalHandle) -> DispatchTime {
    // SAFETY: a signal's handle is the address of its `amd_signal_t` (amd_hsa_signal.h), and this one is of the pool:
    // it lives, and the GPU has written to it before it counted it down.
    unsafe {
        let words = signal.0 as *const u64;
        DispatchTime {
            start: words.add(AMD_SIGNAL_START_TS / 8).read_volatile(),
            end: words.add(AMD_SIGNAL_END_TS / 8).read_volatile(),
        }
    }
}
