//! The host's clocks: the GPU's constant clock and the processor time of a thread.

/// The ticks of the GPU's constant 100 MHz clock, as in a signal's start and end time.
pub fn clock_ticks() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec to write to. CLOCK_MONOTONIC exists on every Linux, so it cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 100_000_000 + now.tv_nsec as u64 / 10
}
