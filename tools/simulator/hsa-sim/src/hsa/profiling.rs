//! Times of dispatches and copies.

use crate::copies;
use crate::device::clock::to_system;
use crate::faults::injection;
use crate::queues::block;
use crate::queues::counted::real_queue;
use crate::results::{Outcome, put};
use crate::signals::{copy_times, pool};
use crate::state::with;
use hsa_abi::*;
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The times of kernels are only written while this is enabled.
pub unsafe fn hsa_amd_profiling_set_profiler_enabled(queue: *mut Queue, on: c_int) -> Outcome {
    // SAFETY: the queue is checked, and the caller keeps it.
    unsafe { block::set_profiling(real_queue(queue)?, on != 0) };
    Ok(())
}

/// Copies that are requested while this is enabled have times.
pub unsafe fn hsa_amd_profiling_async_copy_enable(on: bool) -> Outcome {
    with(|_| {
        copies::HAS_TIMES.store(on, Release);
        Ok(())
    })
}

/// Writes times to `time`. `times` gets the signal and returns times of the system's clock.
///
/// # Safety
/// `signal` is a signal of the runtime, `time` may be written.
unsafe fn write(
    signal: SignalHandle,
    time: *mut DispatchTime,
    times: impl FnOnce(&AmdSignal) -> Result<(u64, u64), Status>,
) -> Outcome {
    if time.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let (start, end) = times(unsafe { pool::get(signal) }.ok_or(Status::INVALID_SIGNAL)?)?;
    let lie = injection::take_lie();
    // SAFETY: the caller's promise.
    unsafe {
        time.write(DispatchTime {
            start: lie.unwrap_or(start),
            end: lie.unwrap_or(end),
        });
    }
    Ok(())
}

/// The times in the `amd_signal_t`.
fn stored(signal: &AmdSignal) -> (u64, u64) {
    (signal.start_ts.load(Acquire), signal.end_ts.load(Acquire))
}

fn both_to_system((start, end): (u64, u64)) -> (u64, u64) {
    (to_system(start), to_system(end))
}

pub unsafe fn hsa_amd_profiling_get_dispatch_time(
    agent: AgentHandle,
    signal: SignalHandle,
    time: *mut DispatchTime,
) -> Outcome {
    with(|state| state.agents.gpu(agent).map(|_| ()))?;
    // SAFETY: the caller's promise.
    unsafe { write(signal, time, |signal| Ok(both_to_system(stored(signal)))) }
}

pub unsafe fn hsa_amd_profiling_get_async_copy_time(
    signal: SignalHandle,
    time: *mut DispatchTime,
) -> Outcome {
    with(|_| Ok(()))?;
    let times = |found: &AmdSignal| {
        // No copy was requested with this signal while profiling was enabled.
        let copy = copy_times::get(signal).ok_or(Status::ERROR)?;
        let times = copy.engine.unwrap_or(stored(found));
        Ok(if copy.by_gpu {
            both_to_system(times)
        } else {
            times
        })
    };
    // SAFETY: the caller's promise.
    unsafe { write(signal, time, times) }
}

pub unsafe fn hsa_amd_profiling_convert_tick_to_system_domain(
    agent: AgentHandle,
    tick: u64,
    system: *mut u64,
) -> Outcome {
    with(|state| state.agents.gpu(agent).map(|_| ()))?;
    // SAFETY: the caller's promise.
    unsafe { put(system, to_system(tick)) }
}
