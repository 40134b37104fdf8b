//! The clocks of the system and of the GPUs. Both count the same time, so the times of dispatches are correct: the system's
//! clock in nanoseconds, the GPUs' at 100 MHz.

use gpu_model::exec::clock_ticks;
use hsa_abi::ClockCounters;

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

pub fn to_system(gpu_ticks: u64) -> u64 {
    gpu_ticks * (SYSTEM_FREQUENCY / GPU_FREQUENCY)
}
