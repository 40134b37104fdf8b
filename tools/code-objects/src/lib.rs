//! From any file to the GPU code objects in it. [`walk`] goes through host executables, libraries and objects, static
//! archives, offload bundles (compressed or not), LLVM's offload binaries and kpack archives, in bounded memory, and
//! shows each thing that it finds with its [`Place`]; [`extract`] writes code objects to a directory.
//!
//! No byte is believed: what is damaged is told with its place, and the rest is still read.

mod archive;
mod bundle;
mod bytes;
mod elf;
pub mod extract;
pub mod kpack;
mod metadata;
mod object;
mod offload;
mod packed;
mod place;
mod profile;
mod target;
mod walk;

pub use bytes::{Bad, Bytes};
pub use metadata::Kernel;
pub use object::{CodeObject, Coverage, Profile, ProfileSection, Sampling};
pub use packed::{Method, Packed};
pub use place::{Place, Step};
pub use profile::{Indexed, Raw, Trace};
pub use target::{Feature, Target};
pub use walk::{Bundle, Each, Found, Host, Kpack, Options, Wanted, What, walk, walk_bytes};
