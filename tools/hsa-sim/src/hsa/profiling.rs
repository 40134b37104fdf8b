//! Times of dispatches and copies.

use crate::device::clock::to_system;
use crate::faults::injection;
use crate::results::{put, status};
use crate::signals::pool;
use crate::state::with;
use hsa_abi::*;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Acquire;

/// See `hsa_ext_amd.h`. The times of kernels are only written while this is enabled.
///
/// # Safety
/// `queue` is a queue of the runtime.
pub unsafe fn hsa_amd_profiling_set_profiler_enabled(queue: *mut Queue, on: c_int) -> Status {
    // SAFETY: the queue is checked, and the caller keeps it.
    status(unsafe { super::queue::set_profiling(queue, on != 0) })
}

/// See `hsa_ext_amd.h`. Copies always have times.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_amd_profiling_async_copy_enable(_: bool) -> Status {
    status(with(|_| Ok(())))
}

/// Writes the times of a completed signal to `time`.
///
/// # Safety
/// `signal` is a signal of the runtime, `time` may be written.
unsafe fn times(signal: SignalHandle, time: *mut DispatchTime) -> Result<(), Status> {
    if time.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let signal = unsafe { pool::get(signal) }.ok_or(Status::INVALID_SIGNAL)?;
    let (start, end) = (signal.start_ts.load(Acquire), signal.end_ts.load(Acquire));
    let lie = injection::take_lie();
    // SAFETY: the caller's promise.
    unsafe {
        time.write(DispatchTime {
            start: lie.unwrap_or_else(|| to_system(start)),
            end: lie.unwrap_or_else(|| to_system(end)),
        });
    }
    Ok(())
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As specified in `hsa_ext_amd.h`.
pub unsafe fn hsa_amd_profiling_get_dispatch_time(
    agent: AgentHandle,
    signal: SignalHandle,
    time: *mut DispatchTime,
) -> Status {
    // SAFETY: the caller's promise.
    status(
        with(|state| state.agents.gpu(agent).map(|_| ()))
            .and_then(|()| unsafe { times(signal, time) }),
    )
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As specified in `hsa_ext_amd.h`.
pub unsafe fn hsa_amd_profiling_get_async_copy_time(
    signal: SignalHandle,
    time: *mut DispatchTime,
) -> Status {
    // SAFETY: the caller's promise.
    status(with(|_| Ok(())).and_then(|()| unsafe { times(signal, time) }))
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// `system` may be written.
pub unsafe fn hsa_amd_profiling_convert_tick_to_system_domain(
    agent: AgentHandle,
    tick: u64,
    system: *mut u64,
) -> Status {
    // SAFETY: the caller's promise.
    status(
        with(|state| state.agents.gpu(agent).map(|_| ()))
            .and_then(|()| unsafe { put(system, to_system(tick)) }),
    )
}
