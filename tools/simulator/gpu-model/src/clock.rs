//! Clocks: the GPU's constant-rate clock, and the processor time of a host thread.

/// Ticks of the GPU's constant 100 MHz clock, which also counts the start and end times in a signal.
pub fn clock_ticks() -> u64 {
    let (seconds, nanoseconds) = read(libc::CLOCK_MONOTONIC);
    seconds * 100_000_000 + nanoseconds / 10
}

/// The processor time of the calling thread, in nanoseconds.
pub fn thread_time() -> u64 {
    let (seconds, nanoseconds) = read(libc::CLOCK_THREAD_CPUTIME_ID);
    seconds * 1_000_000_000 + nanoseconds
}

/// Seconds and nanoseconds of a clock that every Linux has.
fn read(clock: libc::clockid_t) -> (u64, u64) {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec that the call may write.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64, now.tv_nsec as u64)
}
