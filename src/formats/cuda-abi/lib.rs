//! The CUDA driver's and CUPTI's C interfaces, as far as devprof uses them: handles, constants, layouts and function
//! types, as CUDA 13.0 declares them. CUDA 12 has the same, except where a comment says so.
//!
//! Constants and functions have the names of NVIDIA's headers, which also specify their meaning. The test
//! `llvm-tests/abi/headers.test` compares values, layouts and function types with the headers.

#![expect(
    non_camel_case_types,
    non_snake_case,
    reason = "the names of NVIDIA's headers"
)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// Defines function types. Each has the name of its function.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        $(#[$doc])*
        pub type $name = unsafe extern "C" fn($($argument: $type),*) -> $result;
    )*};
}

/// Where a CUDA Toolkit has the libraries for this machine's processor. NVIDIA calls servers with ARM processors SBSA.
pub const TARGET_LIBRARIES: &str = if cfg!(target_arch = "aarch64") {
    "targets/sbsa-linux/lib"
} else {
    "targets/x86_64-linux/lib"
};

pub mod activity;
pub mod cupti;
pub mod driver;
pub mod functions;
pub mod nvtx;
