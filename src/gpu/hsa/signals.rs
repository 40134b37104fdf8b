//! Signals that a trace has kernels complete, and the times in them. Mirrors `hsa/amd_hsa_signal.h`.

use super::saved_api_table::saved;
use hsa_abi::{
    AgentHandle, AmdSignal, DispatchTime, HSA_AMD_SIGNAL_AMD_GPU_ONLY, SignalHandle, Status,
};
use std::mem::offset_of;

/// A new signal of value 1 without interrupts: the GPU writes it, the host polls it.
pub fn create() -> Option<SignalHandle> {
    let mut signal = SignalHandle(0);
    // SAFETY: no consumers named: any agent may use it.
    let status = unsafe {
        (saved()?.amd.hsa_amd_signal_create)(
            1,
            0,
            std::ptr::null(),
            HSA_AMD_SIGNAL_AMD_GPU_ONLY,
            &raw mut signal,
        )
    };
    (status == Status::SUCCESS && signal.0 != 0).then_some(signal)
}

/// The value, with acquire order. 1 if there is no HSA.
pub fn value(signal: SignalHandle) -> i64 {
    // SAFETY: the caller has created it, and destroys it last.
    saved().map_or(1, |saved| unsafe {
        (saved.core.hsa_signal_load_scacquire)(signal)
    })
}

/// Sets the value to 1.
pub fn reset(signal: SignalHandle) {
    if let Some(saved) = saved() {
        // SAFETY: as above; no packet in a queue refers to it.
        unsafe { (saved.core.hsa_signal_store_relaxed)(signal, 1) };
    }
}

pub fn destroy(signal: SignalHandle) {
    if let Some(saved) = saved() {
        // SAFETY: no packet in a queue refers to it any more.
        unsafe { (saved.core.hsa_signal_destroy)(signal) };
    }
}

/// The times of the dispatch that has completed `signal`, as HSA translates them to its system clock.
pub fn dispatch_time(agent: AgentHandle, signal: SignalHandle) -> Option<DispatchTime> {
    let mut time = DispatchTime::default();
    // SAFETY: the agent and the signal are HSA's, `time` is to be written.
    let status =
        unsafe { (saved()?.amd.hsa_amd_profiling_get_dispatch_time)(agent, signal, &raw mut time) };
    (status == Status::SUCCESS).then_some(time)
}

/// The agent's ticks that the packet processor wrote into the signal (`amd_signal_t`, `start_ts` and `end_ts`).
pub fn raw_time(signal: SignalHandle) -> DispatchTime {
    // SAFETY: a signal's handle is the address of its `amd_signal_t` (amd_hsa_signal.h). The caller has not destroyed it,
    // and the GPU wrote the times before it decremented the value.
    unsafe {
        let words = signal.0 as *const u64;
        DispatchTime {
            start: words
                .add(offset_of!(AmdSignal, start_ts) / 8)
                .read_volatile(),
            end: words.add(offset_of!(AmdSignal, end_ts) / 8).read_volatile(),
        }
    }
}
