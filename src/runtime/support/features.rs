//! The parts that this build has. The archives have no trace, because ROCr cannot load them as a tool. The archive for HIP has no
//! CUDA, either.

/// Whether this build has the trace: not the archive (tools/build-runtime). A constant, so that the compiler removes what
/// depends on it.
pub const HAS_TRACE: bool = cfg!(any(feature = "shared", not(feature = "interpose")));

/// Whether this build collects from CUDA: not the archive for HIP (tools/build-runtime).
pub const HAS_CUDA: bool = HAS_TRACE || cfg!(feature = "cuda");
