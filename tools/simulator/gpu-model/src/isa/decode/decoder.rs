//! What the decoders of all architectures have in common.

use super::super::architecture::Architecture;
use super::super::encoding::Encoding;
use super::super::inst::{Inst, blank};
use super::super::operand::Operand;
use super::super::tables::{Kind, Spec, flag};
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
            Architecture::Gfx11 | Architecture::Gfx12 => check::gfx11(kind, code, file),
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

    /// SDST of `v_readlane` and `v_readfirstlane`, in a field of eight bits. M0 cannot be the destination.
    pub fn readlane_dst(&self, code: u32) -> Result<Operand, DecodeError> {
        let m0 = if self.inst.arch.is_gfx9() { 124 } else { 125 };
        if code > 127 || code == m0 {
            return Err(Unknown);
        }
        self.check(Kind::S32, code, File::Scalar)
    }

    /// Begins an instruction of VOP3 or VOP3SD: everything except for the sources. The opcodes of VOP1 start at `vop1`.
    /// `opsel`: the bits of OP_SEL that the operation uses.
    pub fn vop3(
        words: &'a [u32],
        arch: Architecture,
        vop1: u32,
        opsel: impl Fn(&Spec) -> u8,
    ) -> Result<Self, DecodeError> {
        let word = words[0];
        let code = field(word, 16, 10);
        let derived = match code {
            0..=0xff => arch.lookup(Encoding::Vopc, code),
            0x100..=0x13f => arch.lookup(Encoding::Vop2, code - 0x100),
            _ if (vop1..vop1 + 0x80).contains(&code) => arch.lookup(Encoding::Vop1, code - vop1),
            _ => None,
        };
        let row = derived
            .filter(|row| row.has_e64())
            .or_else(|| arch.lookup(Encoding::Vop3, code))
            .or_else(|| arch.lookup(Encoding::Vop3Sd, code));
        let mut d = Decoder::new(words, 2, Encoding::Vop3, arch, row)?;
        let second = words[1];
        let (vdst, neg) = (field(word, 0, 8), field(second, 29, 3) as u8);
        d.output_modifiers(bit(word, 15), field(second, 27, 2))?;
        if d.spec.dst[1] == Kind::MASK {
            d.inst.enc = Encoding::Vop3Sd;
            d.inst.dst = d.vgpr(d.spec.dst[0], vdst)?;
            d.inst.dst2 = d.check(Kind::MASK, field(word, 8, 7), File::Scalar)?;
            d.source_modifiers(neg, 0)?;
            return Ok(d);
        }
        d.inst.dst = match d.spec.dst[0] {
            Kind::NONE => unused(vdst).map(|()| Operand::NONE)?,
            Kind::MASK if vdst < 128 => d.check(Kind::MASK, vdst, File::Scalar)?,
            Kind::EXEC if vdst == 126 => Operand::EXEC_LO,
            Kind::MASK | Kind::EXEC => return Err(Unknown),
            Kind::S32 => d.readlane_dst(vdst)?,
            Kind::SF16 | Kind::SF32 if vdst < 128 => d.check(Kind::R32, vdst, File::Scalar)?,
            kind => d.vgpr(kind, vdst)?,
        };
        d.source_modifiers(neg, field(word, 8, 3) as u8)?;
        d.inst.opsel = field(word, 11, 4) as u8;
        unused((d.inst.opsel & !opsel(d.spec)).into())?;
        Ok(d)
    }

    /// Begins an instruction of VOP3P: everything except for the sources.
    pub fn vop3p(words: &'a [u32], arch: Architecture) -> Result<Self, DecodeError> {
        let word = words[0];
        let op = arch.lookup(Encoding::Vop3p, field(word, 16, 7));
        let mut d = Decoder::new(words, 2, Encoding::Vop3p, arch, op)?;
        let second = words[1];
        d.inst.dst = d.vgpr(d.spec.dst[0], field(word, 0, 8))?;
        d.output_modifiers(bit(word, 15), 0)?;
        d.inst.neg = field(second, 29, 3) as u8;
        d.inst.abs = field(word, 8, 3) as u8;
        d.inst.opsel = field(word, 11, 3) as u8;
        d.inst.opsel_hi = (field(second, 27, 2) | field(word, 14, 1) << 2) as u8;
        if !d.spec.has_op_sel() {
            unused(d.inst.opsel.into())?;
        }
        let modifiers = d.inst.neg | d.inst.abs | d.inst.opsel;
        unused((modifiers & !d.spec.present_sources()).into())?;
        Ok(d)
    }

    /// The offsets and the GDS bit of a DS instruction.
    pub fn ds_controls(&mut self, gds: bool) -> Result<(), DecodeError> {
        self.inst.flag = gds;
        if gds && self.spec.has(flag::LDS) || !gds && self.spec.has(flag::GDS) {
            return Err(Unknown);
        }
        let word = self.words[0];
        if self.spec.has_two_offsets() {
            self.inst.imm = field(word, 0, 8) as i32;
            self.inst.imm2 = field(word, 8, 8) as u8;
        } else {
            self.inst.imm = field(word, 0, 16) as i32;
        }
        Ok(())
    }

    /// The kind of a FLAT instruction's destination. An atomic returns the old value only with GLC.
    pub fn flat_dst(&self) -> Kind {
        let is_atomic = self.spec.src[1] != Kind::NONE;
        if is_atomic && !self.inst.glc {
            Kind::NONE
        } else {
            self.spec.dst[0]
        }
    }

    /// NEG and ABS of the sources in the control word of DPP.
    pub fn dpp_modifiers(&mut self, word: u32) -> Result<(), DecodeError> {
        let both = |low| (field(word, low, 1) | field(word, low + 2, 1) << 1) as u8;
        self.source_modifiers(both(20), both(21))
    }
}
