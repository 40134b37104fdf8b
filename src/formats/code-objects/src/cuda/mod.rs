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

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// The bytes at offset `at`, which must be in bounds.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}
