//! CUDA's device code: fat binaries and the cubins in them. NVIDIA does not document these formats. The layouts here were
//! compared with what ptxas and fatbinary of CUDA 12.4 and 13.0 write and with what cuobjdump prints.

mod attributes;
pub mod coverage;
pub mod cubin;
pub mod fatbin;
mod profile;
pub mod target;

/// `EM_CUDA`.
pub const MACHINE: u16 = 190;
