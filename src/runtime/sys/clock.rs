//! The operating system's clocks.

/// Clocks that an HSA runtime may use, the most likely first: ROCr uses the first, hsa-sim the second.
pub const CLOCKS: [libc::clockid_t; 3] = [
    libc::CLOCK_BOOTTIME,
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_MONOTONIC_RAW,
];

/// A clock's time in nanoseconds.
pub fn clock_nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call only writes `time`.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
