//! Decodes instruction words to [`Inst`], using the tables.
//!
//! The decoder accepts only what an assembler would write. Everything else is [`DecodeError::Unknown`], because the
//! hardware's behaviour is not documented: a modifier that the operation does not have, a register range that is not
//! aligned or exceeds the register file, a nonzero field that must be zero.

mod check;
mod decoder;
mod error;
mod gfx11;
mod gfx12;
mod gfx9;
mod scalar;

pub use error::DecodeError;

use super::architecture::Architecture;
use super::inst::Inst;

/// Decodes the instruction at the start of `words`.
pub fn decode(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    match arch {
        Architecture::Gfx11 => gfx11::decode(words),
        Architecture::Gfx12 => gfx12::decode(words),
        Architecture::Gfx90a | Architecture::Gfx942 => gfx9::decode(arch, words),
    }
}
