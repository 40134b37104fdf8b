//! Leaves the trace out of the archive, which cannot record one because ROCr cannot load it as a tool.

use crate::support::panic_guard::{Cost, guarded};

/// Whether this build has the trace: not the archive (tools/build-runtime). A constant, so that the compiler removes what
/// depends on it.
pub const HAS_TRACE: bool = cfg!(any(feature = "shared", not(feature = "interpose")));

/// Runs `work`, a part of the trace, with [`guarded`]. Without the trace, only returns `otherwise`.
pub fn for_trace<T>(cost: Cost, otherwise: T, work: impl FnOnce() -> T) -> T {
    if HAS_TRACE {
        guarded(cost, otherwise, work)
    } else {
        otherwise
    }
}
