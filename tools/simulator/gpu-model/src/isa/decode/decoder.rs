//! What the decoders of all architectures have in common.

use super::super::architecture::Architecture;
use super::super::encoding::Encoding;
use super::super::inst::{Inst, blank};
use super::super::operand::Operand;
use super::super::tables::{Kind, Spec};
use super::check::{self, File};
use super::error::DecodeError::{self, Short, Unknown};

pub fn field(word: u32, low: u32, width: u32) -> u32 {
    word >> low & ((1 << width) - 1)
}

pub fn bit(word: u32, n: u32) -> bool {
    word >> n & 1 != 0
}

pub fn sign_extend(value: u32, width: u32) -> i32 {
    (value << (32 - width)) as i32 >> (32 - width)
}

/// Checks that the fields that the operation does not use are zero.
pub fn unused(fields: u32) -> Result<(), DecodeError> {
    if fields == 0 { Ok(()) } else { Err(Unknown) }
}

/// An instruction that is being decoded.
pub struct Decoder<'a> {
    pub words: &'a [u32],
    /// Words decoded so far.
    pub used: usize,
    pub spec: &'static Spec,
    pub inst: Inst,
    pub has_literal: bool,
}

impl<'a> Decoder<'a> {
    /// `size`: the number of words without literal and DPP control.
    pub fn new(
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

    pub fn finish(mut self) -> Result<Inst, DecodeError> {
        self.inst.len = 4 * self.used as u8;
        Ok(self.inst)
    }

    pub fn next(&mut self) -> Result<u32, DecodeError> {
        let word = *self.words.get(self.used).ok_or(Short)?;
        self.used += 1;
        Ok(word)
    }

    /// Reads the literal, which several operands may share.
    pub fn literal(&mut self) -> Result<Operand, DecodeError> {
        if !self.has_literal {
            self.inst.literal = self.next()?;
            self.has_literal = true;
        }
        Ok(Operand::LITERAL)
    }

    /// The operand `code`, if it is valid for this kind.
    pub fn check(&self, kind: Kind, code: u32, file: File) -> Result<Operand, DecodeError> {
        match self.inst.arch {
            Architecture::Gfx11 => check::gfx11(kind, code, file),
            Architecture::Gfx90a | Architecture::Gfx942 => check::gfx9(kind, code, file),
        }
    }

    pub fn operand(&mut self, kind: Kind, code: u32, file: File) -> Result<Operand, DecodeError> {
        let operand = self.check(kind, code, file)?;
        if operand == Operand::LITERAL {
            self.literal()?;
        }
        Ok(operand)
    }

    pub fn source(&mut self, i: usize, code: u32, file: File) -> Result<(), DecodeError> {
        self.inst.src[i] = self.operand(self.spec.src[i], code, file)?;
        Ok(())
    }

    /// Sets the scalar destination from a seven-bit field, if the operation has one.
    pub fn scalar_dst(&mut self, code: u32) -> Result<(), DecodeError> {
        if self.spec.dst[0] == Kind::NONE {
            return unused(code);
        }
        self.inst.dst = self.check(self.spec.dst[0], code, File::Scalar)?;
        Ok(())
    }

    /// A VGPR operand of a format without true16, or NONE if the operation does not have it.
    pub fn vgpr(&self, kind: Kind, n: u32) -> Result<Operand, DecodeError> {
        if kind == Kind::NONE {
            return unused(n).map(|()| Operand::NONE);
        }
        self.check(kind, 256 + n, File::Any)
    }

    /// Sets NEG and ABS. Only float sources have them.
    pub fn source_modifiers(&mut self, neg: u8, abs: u8) -> Result<(), DecodeError> {
        for (i, kind) in self.spec.src.iter().enumerate() {
            if (neg | abs) >> i & 1 != 0 && !kind.is_float() {
                return Err(Unknown);
            }
        }
        self.inst.neg = neg;
        self.inst.abs = abs;
        Ok(())
    }

    pub fn output_modifiers(&mut self, clamp: bool, omod: u32) -> Result<(), DecodeError> {
        if clamp && !self.spec.has_clamp() || omod != 0 && !self.spec.has_omod() {
            return Err(Unknown);
        }
        self.inst.clamp = clamp;
        self.inst.omod = omod as u8;
        Ok(())
    }
}
