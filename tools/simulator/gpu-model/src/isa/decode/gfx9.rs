//! The formats of gfx90a and gfx942 (MI300 guide, chapter 13).

use super::super::architecture::Architecture;
use super::super::encoding::Encoding;
use super::super::inst::{Dpp, Inst, Part, Sdwa, Unused};
use super::super::operand::Operand;
use super::super::tables::{Kind, Op, Spec, flag};
use super::check::{File, agpr};
use super::decoder::{Decoder, bit, field, sign_extend, unused};
use super::error::DecodeError::{self, Short, Unknown};
use super::scalar;

/// Decodes the instruction at the start of `words`.
pub fn decode(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = *words.first().ok_or(Short)?;
    if let Some(result) = scalar::decode(arch, words) {
        return result;
    }
    match word >> 25 {
        0b011_1111 => return vop1(arch, words),
        0b011_1110 => return vopc(arch, words),
        0..0b100_0000 => return vop2(arch, words),
        _ => {}
    }
    match word >> 26 {
        0b110000 => smem(arch, words),
        0b110100 if word >> 23 == 0b1_1010_0111 => vop3p(arch, words),
        0b110100 => vop3(arch, words),
        0b110110 => ds(arch, words),
        0b110111 => flat(arch, words),
        0b111000 => mubuf(arch, words),
        _ => Err(Unknown),
    }
}

impl Decoder<'_> {
    /// A VGPR or AccVGPR field, or NONE if the operation does not have the operand.
    fn vector(&self, kind: Kind, n: u32, acc: bool) -> Result<Operand, DecodeError> {
        if acc && kind != Kind::NONE {
            return agpr(kind, n);
        }
        self.vgpr(kind, n)
    }

    /// Source 0 of VOP1, VOP2 and VOPC, and the DPP or SDWA control that may follow. `second`: the field of source 1, if there
    /// is one. Returns whether source 1 has been decoded.
    fn source0(&mut self, code: u32, second: Option<u32>) -> Result<bool, DecodeError> {
        match code {
            249 => {
                self.sdwa(second)?;
                return Ok(true);
            }
            250 => {
                let n = self.dpp()?;
                self.source(0, 256 + n, File::Any)?;
            }
            code => self.source(0, code, File::Any)?,
        }
        Ok(false)
    }

    /// Reads the control word of DPP. Returns the number of the VGPR.
    fn dpp(&mut self) -> Result<u32, DecodeError> {
        if !self.spec.has_dpp() || self.spec.format == Encoding::Vopc {
            return Err(Unknown);
        }
        let word = self.next()?;
        let ctrl = field(word, 8, 9) as u16;
        match ctrl {
            0x150..=0x15f => {}
            _ if self.spec.has_wide_operand() => return Err(Unknown),
            0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f => {}
            0x130 | 0x134 | 0x138 | 0x13c | 0x140..=0x143 => {}
            _ => return Err(Unknown),
        }
        unused(field(word, 17, 2))?;
        self.inst.dpp = Dpp::Dpp16 {
            ctrl,
            row_mask: field(word, 28, 4) as u8,
            bank_mask: field(word, 24, 4) as u8,
            bound_ctrl: bit(word, 19),
            fi: false,
        };
        self.dpp_modifiers(word)?;
        Ok(field(word, 0, 8))
    }

    /// Reads the control word of SDWA, and decodes the sources. In VOPC, also the destination.
    fn sdwa(&mut self, second: Option<u32>) -> Result<(), DecodeError> {
        if !self.spec.has_sdwa() {
            return Err(Unknown);
        }
        let word = self.next()?;
        let compares = self.spec.format == Encoding::Vopc;
        let part = |shift| {
            Ok(match field(word, shift, 3) {
                n @ 0..=3 => Part::Byte(n as u8),
                n @ 4..=5 => Part::Word(n as u8 - 4),
                6 => Part::Dword,
                _ => return Err(Unknown),
            })
        };
        let mut sdwa = Sdwa {
            dst: Part::Dword,
            unused: Unused::Pad,
            src: [part(16)?, Part::Dword],
            sext: [bit(word, 19), false],
        };
        if compares {
            if bit(word, 15) {
                self.inst.dst = self.check(Kind::MASK, field(word, 8, 7), File::Scalar)?;
            } else {
                unused(field(word, 8, 7))?;
            }
        } else {
            sdwa.dst = part(8)?;
            sdwa.unused = match field(word, 11, 2) {
                0 => Unused::Pad,
                1 => Unused::SignExtend,
                2 => Unused::Preserve,
                _ => return Err(Unknown),
            };
            self.sdwa_outputs(bit(word, 13), field(word, 14, 2))?;
        }
        unused(field(word, 22, 1) | field(word, 30, 1))?;
        let mut neg = field(word, 20, 1);
        let mut abs = field(word, 21, 1);
        let code = |scalar: u32, n: u32| if bit(word, scalar) { n } else { 256 + n };
        self.sdwa_source(0, code(23, field(word, 0, 8)))?;
        match second {
            Some(n) => {
                sdwa.src[1] = part(24)?;
                sdwa.sext[1] = bit(word, 27);
                neg |= field(word, 28, 1) << 1;
                abs |= field(word, 29, 1) << 1;
                self.sdwa_source(1, code(31, n))?;
            }
            None => unused(field(word, 24, 6) | field(word, 31, 1))?,
        }
        if self.spec.src[0] == Kind::PKF16 {
            unused(neg | abs)?;
        }
        self.source_modifiers(neg as u8, abs as u8)?;
        for i in 0..2 {
            if sdwa.sext[i] && !self.spec.has_sext(i) {
                return Err(Unknown);
            }
        }
        self.inst.sdwa = Some(sdwa);
        Ok(())
    }

    fn sdwa_outputs(&mut self, clamp: bool, omod: u32) -> Result<(), DecodeError> {
        if omod != 0 && !self.spec.dst[0].is_float() || clamp && self.spec.dst[0] == Kind::NONE {
            return Err(Unknown);
        }
        self.inst.clamp = clamp;
        self.inst.omod = omod as u8;
        Ok(())
    }

    /// SDWA does not have literals.
    fn sdwa_source(&mut self, i: usize, code: u32) -> Result<(), DecodeError> {
        if code == 255 {
            return Err(Unknown);
        }
        self.source(i, code, File::Any)
    }

    /// The sources of VOP3 and VOP3P, which do not have literals.
    fn sources3(&mut self, word: u32) -> Result<(), DecodeError> {
        for i in 0..3 {
            let code = field(word, 9 * i as u32, 9);
            if self.spec.src[i] == Kind::NONE {
                unused(code)?;
                continue;
            }
            if code == 255 {
                return Err(Unknown);
            }
            self.source(i, code, File::Any)?;
        }
        Ok(())
    }
}

fn smem(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Smem, field(word, 18, 8));
    let mut d = Decoder::new(words, 2, Encoding::Smem, arch, op)?;
    let second = words[1];
    let (sdata, has_offset, has_soffset) = (field(word, 6, 7), bit(word, 17), bit(word, 14));
    unused(field(word, 15, 1) | field(word, 13, 1))?;
    if d.spec.src[0] == Kind::NONE {
        unused(field(word, 0, 6) | field(word, 14, 4) | second)?;
        d.scalar_dst(sdata)?;
        return d.finish();
    }
    // M0 and EXEC cannot be loaded.
    if sdata >= 124 {
        return Err(Unknown);
    }
    d.scalar_dst(sdata)?;
    d.source(0, 2 * field(word, 0, 6), File::Scalar)?;
    d.inst.src[1] = Operand::NULL;
    unused(field(second, 21, 4))?;
    if has_offset {
        d.inst.imm = sign_extend(second, 21);
        // The offset of a buffer load is not negative.
        if d.spec.src[0] == Kind::B128 && d.inst.imm < 0 {
            return Err(Unknown);
        }
    } else if has_soffset {
        unused(field(second, 0, 21))?;
    } else {
        unused(field(second, 7, 25))?;
        d.inst.src[1] = d.check(Kind::R32, field(second, 0, 7), File::Scalar)?;
    }
    if has_soffset {
        d.inst.src[1] = d.check(Kind::R32, field(second, 25, 7), File::Scalar)?;
    } else if has_offset {
        unused(field(second, 25, 7))?;
    }
    d.inst.glc = bit(word, 16);
    d.finish()
}

fn vop1(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Vop1, field(word, 9, 8));
    let mut d = Decoder::new(words, 1, Encoding::Vop1, arch, op)?;
    let (vdst, src0) = (field(word, 17, 8), field(word, 0, 9));
    match d.spec.dst[0] {
        Kind::NONE => {
            unused(vdst | src0)?;
            return d.finish();
        }
        Kind::S32 => d.inst.dst = d.readlane_dst(vdst)?,
        Kind::A32 => {
            d.inst.dst = agpr(Kind::A32, vdst)?;
            d.inst.src[0] = agpr(Kind::A32, src0.checked_sub(256).ok_or(Unknown)?)?;
            return d.finish();
        }
        kind => d.inst.dst = d.vgpr(kind, vdst)?,
    }
    d.source0(src0, None)?;
    d.finish()
}

fn vop2(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Vop2, field(word, 25, 6));
    let mut d = Decoder::new(words, 1, Encoding::Vop2, arch, op)?;
    d.inst.dst = d.vgpr(d.spec.dst[0], field(word, 17, 8))?;
    let field1 = field(word, 9, 8);
    let is_decoded = d.source0(field(word, 0, 9), Some(field1))?;
    let mut vsrc1 = (!is_decoded).then_some(256 + field1);
    for i in 1..3 {
        d.inst.src[i] = match d.spec.src[i] {
            Kind::NONE => continue,
            Kind::MASK => Operand::VCC_LO,
            Kind::K32 | Kind::K16 => d.literal()?,
            kind => match vsrc1.take() {
                Some(code) => d.operand(kind, code, File::Any)?,
                None => continue,
            },
        };
    }
    if d.spec.dst[1] == Kind::MASK {
        d.inst.dst2 = Operand::VCC_LO;
    }
    d.finish()
}

fn vopc(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Vopc, field(word, 17, 8));
    let mut d = Decoder::new(words, 1, Encoding::Vopc, arch, op)?;
    d.inst.dst = Operand::VCC_LO;
    let vsrc1 = field(word, 9, 8);
    if !d.source0(field(word, 0, 9), Some(vsrc1))? {
        d.source(1, 256 + vsrc1, File::Any)?;
    }
    d.finish()
}

fn vop3(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let mut d = Decoder::vop3(words, arch, 0x140, opsel_bits)?;
    d.sources3(words[1])?;
    d.finish()
}

/// The bits of OP_SEL that the operation has in VOP3.
fn opsel_bits(spec: &Spec) -> u8 {
    if !spec.has(flag::OP_SEL) {
        return 0;
    }
    if matches!(spec.op, Op::V_CVT_SR_FP8_F32 | Op::V_CVT_SR_BF8_F32) {
        return 0b1111;
    }
    spec.present_sources() | 0b1000
}

fn vop3p(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    if let Some(row) = arch.lookup(Encoding::Mai, field(words[0], 16, 7)) {
        return mai(arch, words, row);
    }
    let mut d = Decoder::vop3p(words, arch)?;
    // The dot products of gfx942 have neither OP_SEL nor OP_SEL_HI.
    let dot = arch == Architecture::Gfx942 && d.spec.name.starts_with("V_DOT");
    if dot && (d.inst.opsel, d.inst.opsel_hi) != (0, 7) {
        return Err(Unknown);
    }
    d.sources3(words[1])?;
    d.finish()
}

fn mai(arch: Architecture, words: &[u32], row: &'static Spec) -> Result<Inst, DecodeError> {
    let word = words[0];
    let mut d = Decoder::new(words, 2, Encoding::Mai, arch, Some(row))?;
    let second = words[1];
    let acc_cd = bit(word, 15);
    let vdst = field(word, 0, 8);
    let controls = [field(word, 8, 3), field(word, 11, 4), field(second, 29, 3)];
    if row.src[1] == Kind::NONE {
        // v_accvgpr_read and v_accvgpr_write. OP_SEL_HI is set, as in other instructions of VOP3P.
        unused(field(word, 8, 8) ^ 0x40 | field(second, 9, 18) | field(second, 27, 5) ^ 3)?;
        let src0 = field(second, 0, 9);
        if row.src[0] == Kind::A32 {
            d.inst.dst = d.vgpr(row.dst[0], vdst)?;
            d.inst.src[0] = agpr(Kind::A32, src0.checked_sub(256).ok_or(Unknown)?)?;
        } else {
            d.inst.dst = agpr(Kind::A32, vdst)?;
            if src0 == 255 {
                return Err(Unknown);
            }
            d.source(0, src0, File::Any)?;
        }
        return d.finish();
    }
    d.inst.dst = d.vector(row.dst[0], vdst, acc_cd)?;
    for i in 0..3 {
        let code = field(second, 9 * i as u32, 9);
        let acc = match i {
            2 => acc_cd && row.src[2] != Kind::V32,
            i => bit(second, 27 + i as u32),
        };
        d.inst.src[i] = match code {
            256.. => d.vector(row.src[i], code - 256, acc)?,
            // The accumulator can be a constant.
            128..=208 | 240..=248 if i == 2 && row.src[2] != Kind::V32 => Operand(code as u16),
            _ => return Err(Unknown),
        };
    }
    if row.src[2] == Kind::V32 {
        unused(controls[2])?;
    }
    d.inst.broadcast = controls.map(|control| control as u8);
    d.finish()
}

fn ds(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Ds, field(word, 17, 8));
    let mut d = Decoder::new(words, 2, Encoding::Ds, arch, op)?;
    let second = words[1];
    let acc = bit(word, 25);
    d.ds_controls(bit(word, 16))?;
    // The operand of GWS is data.
    let acc_address = acc && d.spec.has(flag::GDS);
    d.inst.src[0] = d.vector(d.spec.src[0], field(second, 0, 8), acc_address)?;
    for i in 1..3 {
        d.inst.src[i] = d.vector(d.spec.src[i], field(second, 8 * i as u32, 8), acc)?;
    }
    d.inst.dst = d.vector(d.spec.dst[0], field(second, 24, 8), acc)?;
    if acc && [d.inst.src[1], d.inst.dst] == [Operand::NONE; 2] && !acc_address {
        return Err(Unknown);
    }
    d.finish()
}

fn flat(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let enc = match field(word, 14, 2) {
        0 => Encoding::Flat,
        1 => Encoding::Scratch,
        2 => Encoding::Global,
        _ => return Err(Unknown),
    };
    let op = arch.lookup(enc, field(word, 18, 7));
    let mut d = Decoder::new(words, 2, enc, arch, op)?;
    let second = words[1];
    let (addr, data, saddr, acc, vdst) = (
        field(second, 0, 8),
        field(second, 8, 8),
        field(second, 16, 7),
        bit(second, 23),
        field(second, 24, 8),
    );
    d.inst.glc = bit(word, 16);
    d.inst.slc = bit(word, 17);
    d.inst.dlc = bit(word, 25);
    // LLVM does not have the scope bit of the first float atomics.
    let single =
        enc == Encoding::Global && matches!(d.spec.op, Op::ATOMIC_ADD_F32 | Op::ATOMIC_PK_ADD_F16);
    let double = d.spec.name.ends_with("_F64");
    let without_scope = match arch {
        Architecture::Gfx90a => single || double,
        _ => double && acc,
    };
    let accumulates = arch == Architecture::Gfx942 && single && acc && d.inst.glc;
    if d.inst.dlc && without_scope || accumulates {
        return Err(Unknown);
    }
    let has_saddr = saddr != 127;
    let bit13 = bit(word, 13);
    let address = match enc {
        Encoding::Flat => {
            unused(saddr | field(word, 12, 2))?;
            d.spec.src[0]
        }
        Encoding::Global => {
            unused(bit13.into())?;
            if has_saddr {
                d.inst.src[2] = d.check(Kind::R64, saddr, File::Scalar)?;
                // EXEC cannot be the base.
                if d.inst.src[2] == Operand::EXEC_LO {
                    return Err(Unknown);
                }
                Kind::V32
            } else {
                d.spec.src[0]
            }
        }
        _ => {
            if has_saddr {
                d.inst.src[2] = d.check(Kind::R32, saddr, File::Scalar)?;
            }
            // gfx942 has SVE. In gfx90a, there is either a VGPR or an SGPR.
            d.inst.flag = if arch == Architecture::Gfx942 {
                bit13
            } else {
                unused(bit13.into())?;
                !has_saddr
            };
            if d.inst.flag { Kind::V32 } else { Kind::NONE }
        }
    };
    d.inst.imm = sign_extend(word, 13);
    d.inst.src[0] = d.vgpr(address, addr)?;
    d.inst.src[1] = d.vector(d.spec.src[1], data, acc)?;
    d.inst.dst = d.vector(d.flat_dst(), vdst, acc)?;
    if acc && [d.inst.src[1], d.inst.dst] == [Operand::NONE; 2] {
        return Err(Unknown);
    }
    d.finish()
}

fn mubuf(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Mubuf, field(word, 18, 7));
    let mut d = Decoder::new(words, 2, Encoding::Mubuf, arch, op)?;
    let second = words[1];
    d.inst.glc = bit(word, 14);
    d.inst.dlc = bit(word, 15);
    d.inst.slc = bit(word, 17);
    unused(field(word, 25, 1))?;
    if d.spec.src[0] == Kind::NONE {
        d.inst.enc = Encoding::Cache;
        unused(field(word, 0, 14) | field(word, 16, 1) | second)?;
        return d.finish();
    }
    // IDXEN, LDS.
    unused(field(word, 13, 1) | field(word, 16, 1) | field(second, 21, 2))?;
    d.inst.flag = bit(word, 12);
    d.inst.imm = field(word, 0, 12) as i32;
    let acc = bit(second, 23);
    let address = if d.inst.flag { Kind::V32 } else { Kind::NONE };
    d.inst.src[0] = d.vgpr(address, field(second, 0, 8))?;
    let data = field(second, 8, 8);
    d.inst.src[1] = match d.spec.src[1] {
        Kind::NONE => Operand::NONE,
        kind => d.vector(kind, data, acc)?,
    };
    d.inst.dst = match d.spec.dst[0] {
        Kind::NONE => Operand::NONE,
        kind => d.vector(kind, data, acc)?,
    };
    d.inst.dst2 = d.check(Kind::B128, 4 * field(second, 16, 5), File::Scalar)?;
    let soffset = field(second, 24, 8);
    if soffset == 255 {
        return Err(Unknown);
    }
    d.inst.src[2] = d.check(Kind::B32, soffset, File::Scalar)?;
    d.finish()
}
