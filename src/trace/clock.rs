//! HSA's system clock, in which all times of a trace are.

use crate::gpu::hsa::clock as hsa_clock;
use crate::sys::clock;
use std::sync::atomic::{AtomicI32, Ordering};

/// The clock of the operating system that HSA's system clock is, or [`NONE`].
static CLOCK: AtomicI32 = AtomicI32::new(NONE);
const NONE: i32 = -1;

/// Finds out which of the operating system's clocks HSA's is: reading that one directly takes half the time.
pub fn find(frequency: u64) {
    let found = clock::CLOCKS.into_iter().find(|&candidate| {
        let before = hsa_clock::system_time();
        let time = clock::clock_nanoseconds(candidate);
        let after = hsa_clock::system_time();
        frequency == 1_000_000_000 && before != 0 && (before..=after).contains(&time)
    });
    CLOCK.store(found.unwrap_or(NONE), Ordering::Relaxed);
}

/// What a time is when HSA's clock is not there yet.
pub fn early() -> u64 {
    clock::clock_nanoseconds(clock::CLOCKS[0])
}

/// Whether a time of [`early`] is one of HSA's clock.
pub fn early_is_true() -> bool {
    CLOCK.load(Ordering::Relaxed) == clock::CLOCKS[0]
}

/// Ticks of the system clock now; 0 before HSA is there.
pub fn now() -> u64 {
    match CLOCK.load(Ordering::Relaxed) {
        NONE => hsa_clock::system_time(),
        id => clock::clock_nanoseconds(id),
    }
}
