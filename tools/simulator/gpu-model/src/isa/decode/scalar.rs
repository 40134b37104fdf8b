//! The scalar formats that all architectures share: SOP1, SOP2, SOPC, SOPK, SOPP.

use super::super::architecture::Architecture;
use super::super::encoding::Encoding;
use super::super::inst::Inst;
use super::super::tables::Kind;
use super::check::File;
use super::decoder::{Decoder, field, sign_extend, unused};
use super::error::DecodeError::{self, Unknown};

/// Decodes an instruction of these formats. `None`: another format.
pub fn decode(arch: Architecture, words: &[u32]) -> Option<Result<Inst, DecodeError>> {
    let word = *words.first()?;
    Some(match word >> 23 {
        0b1_0111_1101 => sop1(arch, words),
        0b1_0111_1110 => sopc(arch, words),
        0b1_0111_1111 => sopp(arch, words),
        _ => match word >> 28 {
            0b1011 => sopk(arch, words),
            0b1000..=0b1010 => sop2(arch, words),
            _ => return None,
        },
    })
}

impl Decoder<'_> {
    fn scalar_float(&mut self) {
        if self.spec.dst[0].is_float() || self.spec.src[0].is_float() {
            self.inst.enc = Encoding::ScalarFloat;
        }
    }
}

fn sop1(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Sop1, field(word, 8, 8));
    let mut d = Decoder::new(words, 1, Encoding::Sop1, arch, op)?;
    d.scalar_dst(field(word, 16, 7))?;
    d.scalar_float();
    let code = field(word, 0, 8);
    match d.spec.src[0] {
        Kind::NONE => unused(code)?,
        kind if kind.is_immediate() => d.inst.imm = code as i32,
        _ => d.source(0, code, File::Scalar)?,
    }
    d.finish()
}

fn sop2(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Sop2, field(word, 23, 7));
    let mut d = Decoder::new(words, 1, Encoding::Sop2, arch, op)?;
    d.scalar_dst(field(word, 16, 7))?;
    d.scalar_float();
    d.source(0, field(word, 0, 8), File::Scalar)?;
    let mut second = Some(field(word, 8, 8));
    for i in 1..3 {
        match d.spec.src[i] {
            Kind::NONE => {}
            Kind::K32 => d.inst.src[i] = d.literal()?,
            _ => d.source(i, second.take().ok_or(Unknown)?, File::Scalar)?,
        }
    }
    d.finish()
}

fn sopc(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Sopc, field(word, 16, 7));
    let mut d = Decoder::new(words, 1, Encoding::Sopc, arch, op)?;
    d.source(0, field(word, 0, 8), File::Scalar)?;
    d.scalar_float();
    let code = field(word, 8, 8);
    match d.spec.src[1] {
        Kind::GPRIDX if code < 16 => d.inst.imm = code as i32,
        _ => d.source(1, code, File::Scalar)?,
    }
    d.finish()
}

fn sopk(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Sopk, field(word, 23, 5));
    let mut d = Decoder::new(words, 1, Encoding::Sopk, arch, op)?;
    let sdst = field(word, 16, 7);
    match d.spec.src[0] {
        Kind::K32 => {
            d.inst.src[0] = d.literal()?;
            unused(sdst)?;
        }
        kind if kind.is_immediate() => d.scalar_dst(sdst)?,
        _ => d.source(0, sdst, File::Scalar)?,
    }
    d.inst.imm = sign_extend(word, 16);
    d.finish()
}

fn sopp(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Sopp, field(word, 16, 7));
    let mut d = Decoder::new(words, 1, Encoding::Sopp, arch, op)?;
    match d.spec.src[0] {
        Kind::NONE => unused(field(word, 0, 16))?,
        Kind::GPRIDX => unused(field(word, 4, 12))?,
        _ => {}
    }
    d.inst.imm = sign_extend(word, 16);
    d.finish()
}
