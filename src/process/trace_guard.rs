//! Leaves the trace out of the archives, which cannot record one because ROCr cannot load them as a tool, and CUDA out of
//! the archive for HIP.

use crate::support::panic_guard::{Cost, guarded, guarded_hot};

/// Whether this build has the trace: not the archive (tools/build-runtime). A constant, so that the compiler removes what
/// depends on it.
pub const HAS_TRACE: bool = cfg!(any(feature = "shared", not(feature = "interpose")));

/// Whether this build collects from CUDA: not the archive for HIP (tools/build-runtime).
pub const HAS_CUDA: bool = HAS_TRACE || cfg!(feature = "cuda");

/// Runs `work`, which the trace adds to a launch, copy or API call, with [`guarded_hot`]. Without the trace, only returns `otherwise`.
pub fn for_trace_hot<T>(cost: Cost, otherwise: T, work: impl FnOnce() -> T) -> T {
    if HAS_TRACE {
        guarded_hot(cost, otherwise, work)
    } else {
        otherwise
    }
}

/// Runs `work`, a part of the trace, with [`guarded`]. Without the trace, only returns `otherwise`.
pub fn for_trace<T>(cost: Cost, otherwise: T, work: impl FnOnce() -> T) -> T {
    if HAS_TRACE {
        guarded(cost, otherwise, work)
    } else {
        otherwise
    }
}
