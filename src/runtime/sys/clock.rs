//! The operating system's clocks.

/// Clocks that an HSA runtime may use, the most likely first: ROCr uses the first, hsa-sim the second.
pub const CLOCKS: [libc::clockid_t; 3] = [
    libc::CLOCK_BOOTTIME,
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_MONOTONIC_RAW,
];

/// The clock that has run since the system was started.
pub const SINCE_BOOT: libc::clockid_t = libc::CLOCK_BOOTTIME;

/// The unit of times in /proc. `None` if it is unknown.
pub fn ticks_per_second() -> Option<u32> {
    // SAFETY: only returns a value.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u32::try_from(ticks).ok().filter(|&ticks| ticks > 0)
}

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
