//! HSA's system clock, in which all times of a trace are.

use crate::hsa::intercept;

/// Ticks of the system clock now; 0 before HSA is there.
pub fn now() -> u64 {
    intercept::system_time()
}
