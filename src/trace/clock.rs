//! HSA's system clock, in which all times of a trace are.

use crate::host;
use crate::hsa::times;
use std::sync::atomic::{AtomicI32, Ordering};

/// The clock of the operating system that HSA's system clock is, or [`NONE`].
static CLOCK: AtomicI32 = AtomicI32::new(NONE);
const NONE: i32 = -1;

/// Finds out which of the operating system's clocks HSA's is: reading that one directly takes half the time.
pub fn find(frequency: u64) {
    let found = host::CLOCKS.into_iter().find(|&clock| {
        let before = times::system_time();
        let time = host::clock_nanoseconds(clock);
        let after = times::system_time();
        frequency == 1_000_000_000 && before != 0 && (before..=after).contains(&time)
    });
    CLOCK.store(found.unwrap_or(NONE), Ordering::Relaxed);
}

/// What a time is when HSA's clock is not there yet.
pub fn early() -> u64 {
    host::clock_nanoseconds(host::CLOCKS[0])
}

/// Whether a time of [`early`] is one of HSA's clock.
pub fn early_is_true() -> bool {
    CLOCK.load(Ordering::Relaxed) == host::CLOCKS[0]
}

/// Ticks of the system clock now; 0 before HSA is there.
pub fn now() -> u64 {
    match CLOCK.load(Ordering::Relaxed) {
        NONE => times::system_time(),
        clock => host::clock_nanoseconds(clock),
    }
}
