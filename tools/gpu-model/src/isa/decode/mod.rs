//! Decodes instruction words to [`Inst`], using the tables.
//!
//! The decoder accepts only what an assembler would write. Everything else is [`DecodeError::Unknown`], because the
//! hardware's behaviour is not documented: a modifier that the operation does not have, a register range that is not
//! aligned or exceeds the register file, a nonzero field that must be zero.

mod gfx11;
mod gfx9;
mod scalar;

use super::architecture::Architecture;
use super::encoding::Encoding;
use super::inst::{Inst, blank};
use super::operand::Operand;
use super::tables::{Kind, Spec};

/// Why words do not decode to an instruction.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("not a supported instruction")]
    Unknown,
    #[error("the instruction is truncated")]
    Short,
}

use DecodeError::{Short, Unknown};

/// Decodes the instruction at the start of `words`.
pub fn decode(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    match arch {
        Architecture::Gfx11 => gfx11::decode(words),
        Architecture::Gfx90a | Architecture::Gfx942 => gfx9::decode(arch, words),
    }
}

fn field(word: u32, low: u32, width: u32) -> u32 {
    word >> low & ((1 << width) - 1)
}

fn bit(word: u32, n: u32) -> bool {
    word >> n & 1 != 0
}

fn sign_extend(value: u32, width: u32) -> i32 {
    (value << (32 - width)) as i32 >> (32 - width)
}

/// Checks that the fields that the operation does not use are zero.
fn unused(fields: u32) -> Result<(), DecodeError> {
    if fields == 0 { Ok(()) } else { Err(Unknown) }
}

/// Which registers an operand field can name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum File {
    Scalar,
    Any,
}

/// An instruction that is being decoded.
struct Decoder<'a> {
    words: &'a [u32],
    /// Words decoded so far.
    used: usize,
    spec: &'static Spec,
    inst: Inst,
    has_literal: bool,
}

impl<'a> Decoder<'a> {
    /// `size`: the number of words without literal and DPP control.
    fn new(
        words: &'a [u32],
        size: usize,
        enc: Encoding,
        arch: Architecture,
        row: Option<&'static Spec>,
    ) -> Result<Self, DecodeError> {
        let spec = row.ok_or(Unknown)?;
        if words.len() < size {
            return Err(Short);
        }
        Ok(Decoder {
            words,
            used: size,
            spec,
            inst: blank(arch, spec, enc),
            has_literal: false,
        })
    }

    fn finish(mut self) -> Result<Inst, DecodeError> {
        self.inst.len = 4 * self.used as u8;
        Ok(self.inst)
    }

    fn next(&mut self) -> Result<u32, DecodeError> {
        let word = *self.words.get(self.used).ok_or(Short)?;
        self.used += 1;
        Ok(word)
    }

    /// Reads the literal, which several operands may share.
    fn literal(&mut self) -> Result<Operand, DecodeError> {
        if !self.has_literal {
            self.inst.literal = self.next()?;
            self.has_literal = true;
        }
        Ok(Operand::LITERAL)
    }

    /// The operand `code`, if it is valid for this kind.
    fn check(&self, kind: Kind, code: u32, file: File) -> Result<Operand, DecodeError> {
        match self.inst.arch {
            Architecture::Gfx11 => gfx11::check(kind, code, file),
            Architecture::Gfx90a | Architecture::Gfx942 => gfx9::check(kind, code, file),
        }
    }

    fn operand(&mut self, kind: Kind, code: u32, file: File) -> Result<Operand, DecodeError> {
        let operand = self.check(kind, code, file)?;
        if operand == Operand::LITERAL {
            self.literal()?;
        }
        Ok(operand)
    }

    fn source(&mut self, i: usize, code: u32, file: File) -> Result<(), DecodeError> {
        self.inst.src[i] = self.operand(self.spec.src[i], code, file)?;
        Ok(())
    }

    /// Sets the scalar destination from a seven-bit field, if the operation has one.
    fn scalar_dst(&mut self, code: u32) -> Result<(), DecodeError> {
        if self.spec.dst[0] == Kind::NONE {
            return unused(code);
        }
        self.inst.dst = self.check(self.spec.dst[0], code, File::Scalar)?;
        Ok(())
    }

    /// A VGPR operand of a format without true16, or NONE if the operation does not have it.
    fn vgpr(&self, kind: Kind, n: u32) -> Result<Operand, DecodeError> {
        if kind == Kind::NONE {
            return unused(n).map(|()| Operand::NONE);
        }
        self.check(kind, 256 + n, File::Any)
    }

    /// Sets NEG and ABS. Only float sources have them.
    fn source_modifiers(&mut self, neg: u8, abs: u8) -> Result<(), DecodeError> {
        for (i, kind) in self.spec.src.iter().enumerate() {
            if (neg | abs) >> i & 1 != 0 && !kind.is_float() {
                return Err(Unknown);
            }
        }
        self.inst.neg = neg;
        self.inst.abs = abs;
        Ok(())
    }

    fn output_modifiers(&mut self, clamp: bool, omod: u32) -> Result<(), DecodeError> {
        if clamp && !self.spec.has_clamp() || omod != 0 && !self.spec.has_omod() {
            return Err(Unknown);
        }
        self.inst.clamp = clamp;
        self.inst.omod = omod as u8;
        Ok(())
    }
}
