//! The instruction set: tables, decoder and assembly text.
//!
//! Encodings, field names and operand codes are those of AMD's "RDNA3 Instruction Set Architecture" guide, chapter 15
//! (microcode formats). Mnemonics are LLVM's for gfx11.

mod decode;
mod encoding;
mod inst;
mod operand;
mod tables;
mod text;

pub use decode::{DecodeError, decode};
pub use encoding::Encoding;
#[cfg(test)]
pub(crate) use inst::blank;
pub use inst::{Dpp, Dual, Inst};
pub use operand::Operand;
pub use tables::{Kind, Op, Spec};
