//! The time base of a trace: HSA's system clock.

use crate::gpu::traced::SystemClock;
use crate::sys::clock;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// The id of the operating system's clock on which HSA's system clock is based, or [`NONE`].
static CLOCK: AtomicI32 = AtomicI32::new(NONE);
const NONE: i32 = -1;
/// HSA's clock. Only read if `CLOCK` is [`NONE`].
static SYSTEM: OnceLock<&dyn SystemClock> = OnceLock::new();

/// Determines on which of the operating system's clocks HSA's is based. Reading that clock directly takes half the
/// time. `frequency`: ticks per second of HSA's clock. False: the trace already has another clock.
pub fn find(hsa: &'static dyn SystemClock, frequency: u64) -> bool {
    SYSTEM.get_or_init(|| hsa);
    let found = clock::CLOCKS.into_iter().find(|&candidate| {
        let before = hsa.time();
        let time = clock::clock_nanoseconds(candidate);
        let after = hsa.time();
        frequency == 1_000_000_000 && before != 0 && (before..=after).contains(&time)
    });
    let found = found.unwrap_or(NONE);
    let old = CLOCK.load(Ordering::Relaxed);
    if old != NONE && old != found {
        return false;
    }
    CLOCK.store(found, Ordering::Relaxed);
    true
}

/// Uses the clock on which ROCr bases HSA's, in a process without HSA. False: HSA is initialized, and has another clock.
pub fn use_default(hsa: &dyn SystemClock) -> bool {
    let default = clock::CLOCKS[0];
    let old = CLOCK.load(Ordering::Relaxed);
    if old == NONE && hsa.time() == 0 {
        CLOCK.store(default, Ordering::Relaxed);
        return true;
    }
    old == default
}

/// The time of an event before HSA's clock is available.
pub fn early() -> u64 {
    clock::clock_nanoseconds(clock::CLOCKS[0])
}

/// Whether times of [`early`] are times of HSA's clock.
pub fn early_is_valid() -> bool {
    CLOCK.load(Ordering::Relaxed) == clock::CLOCKS[0]
}

/// Ticks of the system clock now; 0 before HSA is initialized.
pub fn now() -> u64 {
    match CLOCK.load(Ordering::Relaxed) {
        NONE => SYSTEM.get().map_or(0, |clock| clock.time()),
        id => clock::clock_nanoseconds(id),
    }
}
