//! What each instruction does.

use crate::isa::{Inst, Operand};
use crate::wave::Wave;

pub mod valu;

/// Why a wave cannot go on. Whoever runs the wave adds kernel, program counter and words.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// The instruction, or this form of it, is not modelled.
    #[error("instruction not modelled")]
    Unknown,
    /// A register beyond those that the kernel descriptor granted.
    #[error("register v{0} beyond those the kernel was granted")]
    Vgpr(usize),
    /// An access outside what was allocated.
    #[error("access of {size} bytes at {address:#x}, outside what was allocated")]
    Memory { address: u64, size: usize },
    /// An access outside the workgroup's LDS.
    #[error(
        "access of {size} bytes at LDS offset {offset:#x}, outside the {limit:#x} bytes of the workgroup"
    )]
    Lds {
        offset: u64,
        size: usize,
        limit: usize,
    },
}

/// The 32-bit value of a scalar operand: SGPR, inline constant (integers as such, floats as f32 bits),
/// literal, SCC. VGPRs and apertures are not scalar: [`Fault::Unknown`].
pub fn scalar32(wave: &Wave, inst: &Inst, operand: Operand) -> Result<u32, Fault> {
    Ok(match operand.0 {
        124 => 0,
        n @ 0..=127 => wave.sgpr[n as usize],
        n @ 128..=192 => u32::from(n) - 128,
        n @ 193..=208 => (192 - i32::from(n)) as u32,
        240 => 0.5f32.to_bits(),
        241 => (-0.5f32).to_bits(),
        242 => 1.0f32.to_bits(),
        243 => (-1.0f32).to_bits(),
        244 => 2.0f32.to_bits(),
        245 => (-2.0f32).to_bits(),
        246 => 4.0f32.to_bits(),
        247 => (-4.0f32).to_bits(),
        248 => 0x3e22_f983,
        253 => u32::from(wave.scc),
        255 => inst.literal,
        _ => return Err(Fault::Unknown),
    })
}
