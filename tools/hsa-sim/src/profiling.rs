//! Clocks and times. The GPUs' clock counts 100 MHz of the same time as the system's clock, which counts nanoseconds,
//! so a dispatch's times are true ones.

use crate::plan::{self, WrongTimes};
use crate::runtime::{put, status, with};
use gpu_model::exec::clock_ticks;
use hsa_abi::*;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Acquire;

/// Ticks a second of the GPUs' clock.
pub const GPU_FREQUENCY: u64 = 100_000_000;
/// Ticks a second of the system's clock.
pub const SYSTEM_FREQUENCY: u64 = 1_000_000_000;

/// The system's clock.
pub fn system_ticks() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * SYSTEM_FREQUENCY + now.tv_nsec as u64
}

/// Both clocks now.
pub fn counters() -> ClockCounters {
    let system = system_ticks();
    ClockCounters {
        gpu_clock_counter: clock_ticks(),
        cpu_clock_counter: system,
        system_clock_counter: system,
        system_clock_frequency: SYSTEM_FREQUENCY,
    }
}

fn to_system(gpu_ticks: u64) -> u64 {
    gpu_ticks * (SYSTEM_FREQUENCY / GPU_FREQUENCY)
}

/// Times of a kernel as a fault has them.
pub fn wrong(how: WrongTimes, (start, end): (u64, u64)) -> (u64, u64) {
    match how {
        WrongTimes::Swapped => (end.max(start + 1), start),
        WrongTimes::Before => (start - GPU_FREQUENCY, end - GPU_FREQUENCY),
        WrongTimes::After => (start + GPU_FREQUENCY * 3600, end + GPU_FREQUENCY * 3600),
        WrongTimes::Zero => (0, 0),
    }
}

/// See `hsa_ext_amd.h`: a kernel's times are written only while this is on.
///
/// # Safety
/// `queue` is a queue of the runtime's.
pub unsafe fn hsa_amd_profiling_set_profiler_enabled(queue: *mut Queue, on: c_int) -> Status {
    // SAFETY: the queue is checked, and the caller keeps it.
    status(unsafe { crate::queue::set_profiling(queue, on != 0) })
}

/// See `hsa_ext_amd.h`. Times of copies are always taken.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_amd_profiling_async_copy_enable(_: bool) -> Status {
    status(with(|_| Ok(())))
}

/// The times in a completed signal.
///
/// # Safety
/// `signal` is a signal of the runtime's, `time` may be written.
unsafe fn times(signal: SignalHandle, time: *mut DispatchTime) -> Result<(), Status> {
    if time.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let signal = unsafe { crate::signal::at(signal) }.ok_or(Status::INVALID_SIGNAL)?;
    let (start, end) = (signal.start_ts.load(Acquire), signal.end_ts.load(Acquire));
    let lie = plan::take_lie();
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
/// As `hsa_ext_amd.h` says.
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
/// As `hsa_ext_amd.h` says.
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
