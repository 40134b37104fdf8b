//! The instruction set: tables, decoder and assembly text.
//!
//! Encodings, field names and operand codes are from AMD's "RDNA3 Instruction Set Architecture" guide, chapter 15
//! (microcode formats), and of the guides for MI200 and MI300. Mnemonics are LLVM's.

mod architecture;
mod decode;
mod encoding;
mod inst;
mod operand;
mod tables;
mod text;

pub use architecture::Architecture;
pub use decode::{DecodeError, decode};
pub use encoding::Encoding;
#[cfg(test)]
pub(crate) use inst::example;
pub use inst::{Dpp, Dual, Inst, Part, Sdwa, Unused};

pub use operand::Operand;
pub use tables::{Kind, Op, Spec};
