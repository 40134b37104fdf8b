//! HSA's C interface as ROCr 7.2 declares it: constants, handles, layouts, function types and API tables. The runtime,
//! the simulator (`tools/simulator/hsa-sim`) and `devprof demo` share it.
//!
//! Constants have the names of AMD's headers, which also specify their meaning. Statuses are associated constants of
//! [`Status`]. The documentation of a struct, a callback or a field starts with its name in the header if that is different.
//! Fields whose names start with `reserved` are reserved in the header or not used here.
//!
//! The test `llvm-tests/abi` compares values, layouts and function types with AMD's headers. It does not check [`newer`],
//! whose contents ROCr 7.2 does not have.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// Defines constants and documents the type and the header that declare them.
macro_rules! constants {
    ($($source:literal: $type:ty { $($(#[$doc:meta])* $name:ident = $value:expr;)* })*) => {$($(
        $(#[$doc])*
        ///
        #[doc = $source]
        pub const $name: $type = $value;
    )*)*};
}

mod agent;
mod executable;
mod handle;
mod loader;
mod memory;
pub mod newer;
mod queue;
mod signal;
mod status;
mod system;
mod tables;

pub use agent::*;
pub use executable::*;
pub use handle::*;
pub use loader::*;
pub use memory::*;
pub use queue::*;
pub use signal::*;
pub use status::*;
pub use system::*;
pub use tables::*;
