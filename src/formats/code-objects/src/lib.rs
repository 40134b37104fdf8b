//! Finds the GPU code objects in any file. [`walk`] reads host executables, libraries and objects, static archives,
//! offload bundles (compressed or not), LLVM's offload binaries, CUDA's fat binaries and kpack archives in bounded memory
//! and time, and reports everything that it finds with its [`Location`]. [`extract`] writes code objects to a directory.
//!
//! Nothing in a file is trusted. Damage is reported with its location, and the rest of the file is still read.

#![forbid(unsafe_code)]

#[macro_use]
mod error;
mod amd;
mod archive;
mod budget;
mod bundle;
mod bytes;
pub mod cuda;
mod elf;
pub mod extract;
mod found;
mod host;
mod kind;
pub mod kpack;
mod location;
mod metadata;
mod object;
mod offload;
mod packed;
mod profile;
pub mod returns;
mod target;
mod walk;
mod without_code;

pub use bytes::Bytes;
pub use error::Error;
pub use found::{Bundle, Found, Kpack, Ptx, What};
pub use host::Host;
pub use kind::Kind;
pub use location::{Location, Step};
pub use metadata::Kernel;
pub use object::{CodeObject, Coverage, Profile, ProfileSection, Sampling};
pub use packed::{Method, Packed};
pub use profile::{Indexed, Raw, Trace};
pub use target::{Feature, Target};
pub use walk::{Each, Options, Wanted, walk, walk_bytes};
