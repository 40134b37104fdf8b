//! The signals that traced kernels and copies complete, and the times in them. Mirrors `hsa/amd_hsa_signal.h`.

use super::tables::saved;
use hsa_abi::*;
use std::mem::offset_of;
use std::sync::atomic::Ordering;

/// Creates a signal with the value 1 and without interrupts: the host has to poll it.
pub fn create() -> Option<SignalHandle> {
    let mut signal = SignalHandle(0);
    // SAFETY: no consumers are specified, so any agent may use the signal.
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

/// The value, loaded with acquire ordering. 1 if HSA's tables are not saved.
pub fn value(signal: SignalHandle) -> i64 {
    // SAFETY: the caller has created the signal and not destroyed it.
    saved().map_or(1, |saved| unsafe {
        (saved.core.hsa_signal_load_scacquire)(signal)
    })
}

/// Sets the value to 1.
pub fn reset(signal: SignalHandle) {
    if let Some(saved) = saved() {
        // SAFETY: as above; no packet in a queue refers to the signal.
        unsafe { (saved.core.hsa_signal_store_relaxed)(signal, 1) };
    }
}

pub fn destroy(signal: SignalHandle) {
    if let Some(saved) = saved() {
        // SAFETY: as above; no packet in a queue refers to the signal any more.
        unsafe { (saved.core.hsa_signal_destroy)(signal) };
    }
}

/// The times of the dispatch that completed `signal`, which HSA converts to its system clock.
pub fn dispatch_time(agent: AgentHandle, signal: SignalHandle) -> Option<DispatchTime> {
    let mut time = DispatchTime::default();
    // SAFETY: handles of HSA, and memory for the times.
    let status =
        unsafe { (saved()?.amd.hsa_amd_profiling_get_dispatch_time)(agent, signal, &raw mut time) };
    (status == Status::SUCCESS).then_some(time)
}

/// The value of a signal that any agent may decrement, loaded with acquire ordering; `None` for a doorbell or a
/// destroyed signal.
pub fn user_value(signal: SignalHandle) -> Option<i64> {
    // SAFETY: a signal's handle is the address of its `amd_signal_t` (amd_hsa_signal.h), and the caller ensures that it
    // is not unmapped. ROCr may change `kind` at the same time, so it is read as volatile.
    unsafe {
        let signal = signal.0 as *const AmdSignal;
        ((&raw const (*signal).kind).read_volatile() == AMD_SIGNAL_KIND_USER)
            .then(|| (*signal).value.load(Ordering::Acquire))
    }
}

/// The times of the copy that completed `signal`, which HSA converts to its system clock.
pub fn copy_time(signal: SignalHandle) -> Option<DispatchTime> {
    let mut time = DispatchTime::default();
    // SAFETY: a signal that is not destroyed, and memory for the times.
    let status =
        unsafe { (saved()?.amd.hsa_amd_profiling_get_async_copy_time)(signal, &raw mut time) };
    (status == Status::SUCCESS).then_some(time)
}

/// Converts times in ticks of the agent's clock to HSA's system clock.
pub fn system_time(agent: AgentHandle, raw: DispatchTime) -> Option<DispatchTime> {
    let convert = saved()?.amd.hsa_amd_profiling_convert_tick_to_system_domain;
    let system = |tick| {
        let mut system = 0;
        // SAFETY: a handle of HSA, and memory for the result.
        let status = unsafe { convert(agent, tick, &raw mut system) };
        (status == Status::SUCCESS).then_some(system)
    };
    // If ROCr synchronizes the clocks for a time, it does so for the later one, so both are converted in the same way.
    let end = system(raw.end)?;
    let start = system(raw.start)?;
    Some(DispatchTime { start, end })
}

/// The times that the packet processor wrote to the signal, in ticks of the agent's clock (`amd_signal_t`, `start_ts`
/// and `end_ts`).
pub fn raw_time(signal: SignalHandle) -> DispatchTime {
    // SAFETY: a signal's handle is the address of its `amd_signal_t` (amd_hsa_signal.h). The caller has not destroyed
    // it, and the GPU has written the times before it decremented the value.
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
