//! CUDA's device code: fat binaries and the cubins in them. NVIDIA does not document these formats. The layouts here were
//! compared with files of CUDA 12.4's and 13.0's ptxas and fatbinary and with the output of cuobjdump.

mod attributes;
pub mod coverage;
pub mod cubin;
pub mod fatbin;
mod profile;
pub mod target;

/// `EM_CUDA`.
pub const MACHINE: u16 = 190;
