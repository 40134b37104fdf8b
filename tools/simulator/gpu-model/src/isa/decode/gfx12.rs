//! The formats of gfx12 that gfx11 does not have: SMEM, FLAT, GLOBAL and SCRATCH.

use super::super::architecture::Architecture;
use super::super::encoding::Encoding;
use super::super::inst::Inst;
use super::super::tables::Kind;
use super::decoder::{Decoder, bit, field, sign_extend, unused};
use super::error::DecodeError::{self, Short, Unknown};
use super::gfx11;

const ARCH: Architecture = Architecture::Gfx12;

/// Decodes the instruction at the start of `words`.
pub fn decode(words: &[u32]) -> Result<Inst, DecodeError> {
    let word = *words.first().ok_or(Short)?;
    match word >> 24 {
        0b1110_1100 => flat(Encoding::Flat, words),
        0b1110_1101 => flat(Encoding::Scratch, words),
        0b1110_1110 => flat(Encoding::Global, words),
        0b1111_0100..=0b1111_0111 => smem(words),
        _ => gfx11::decode_common(ARCH, words),
    }
}

fn smem(words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = ARCH.lookup(Encoding::Smem, field(word, 13, 6));
    let mut d = Decoder::new(words, 2, Encoding::Smem, ARCH, op)?;
    let second = words[1];
    unused(field(word, 19, 2) | field(word, 25, 1) | field(second, 24, 1))?;
    if d.spec.dst[0] == Kind::NONE {
        unused(word & 0x1fff | field(word, 21, 4) | second)?;
        return d.finish();
    }
    d.smem_operands([word, second], 24)?;
    // The offset of a buffer load is not negative.
    if d.spec.src[0] == Kind::B128 && d.inst.imm < 0 {
        return Err(Unknown);
    }
    d.inst.cache = field(word, 21, 4) as u8;
    d.finish()
}

fn flat(enc: Encoding, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = ARCH.lookup(enc, field(word, 14, 8));
    let mut d = Decoder::new(words, 3, enc, ARCH, op)?;
    let (second, third) = (words[1], words[2]);
    unused(field(word, 7, 7) | field(word, 22, 2) | field(second, 8, 9) | field(second, 31, 1))?;
    let (addr, data, saddr, sve, vdst) = (
        field(third, 0, 8),
        field(second, 23, 8),
        field(word, 0, 7),
        bit(second, 17),
        field(second, 0, 8),
    );
    d.inst.cache = field(second, 18, 5) as u8;
    d.inst.imm = sign_extend(third >> 8, 24);
    if d.spec.src == [Kind::NONE; 3] && d.spec.dst[0] == Kind::NONE {
        d.inst.enc = Encoding::Cache;
        unused(addr | data | saddr ^ 124 | u32::from(sve) | vdst | d.inst.imm as u32)?;
        return d.finish();
    }
    d.inst.glc = d.spec.is_atomic() && d.inst.cache >> 2 & 1 != 0;
    d.flat_operands([addr, data, saddr, vdst], sve)?;
    d.finish()
}
