//! The clocks of the system and of the GPUs. The system's clock counts nanoseconds, the GPUs' clock counts the same time at
//! 100 MHz. So the times of dispatches can be converted exactly.

use gpu_model::exec::clock_ticks;
use hsa_abi::ClockCounters;

/// Ticks of the GPUs' clock per second.
pub const GPU_FREQUENCY: u64 = 100_000_000;

/// Ticks of the system's clock per second.
pub const SYSTEM_FREQUENCY: u64 = 1_000_000_000;

/// The time of the system's clock, in ticks.
pub fn system_ticks() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * SYSTEM_FREQUENCY + now.tv_nsec as u64
}

/// The current time of both clocks.
pub fn counters() -> ClockCounters {
    let system = system_ticks();
    ClockCounters {
        gpu_clock_counter: clock_ticks(),
        cpu_clock_counter: system,
        system_clock_counter: system,
        system_clock_frequency: SYSTEM_FREQUENCY,
    }
}

/// Converts ticks of the GPUs' clock to ticks of the system's.
pub fn to_system(gpu_ticks: u64) -> u64 {
    gpu_ticks * (SYSTEM_FREQUENCY / GPU_FREQUENCY)
}
