//! The formats of gfx11. gfx12 has those of vector arithmetic and DS, too.

use super::super::architecture::Architecture;
use super::super::encoding::Encoding;
use super::super::inst::{Dpp, Dual, Inst};
use super::super::operand::Operand;
use super::super::tables::{Kind, Spec};
use super::check::{File, gfx11 as check};
use super::decoder::{Decoder, bit, field, sign_extend, unused};
use super::error::DecodeError::{self, Short, Unknown};
use super::scalar;

const ARCH: Architecture = Architecture::Gfx11;

/// Decodes the instruction at the start of `words`.
pub fn decode(words: &[u32]) -> Result<Inst, DecodeError> {
    let word = *words.first().ok_or(Short)?;
    match word >> 26 {
        0b110111 => flat(words),
        0b111101 => smem(words),
        0b111000 => mubuf(words),
        _ => decode_common(ARCH, words),
    }
}

/// Decodes an instruction of a format that gfx11 and gfx12 have.
pub fn decode_common(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
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
        0b110010 => vopd(arch, words),
        0b110011 if word >> 23 == 0b1_1001_1000 => vop3p(arch, words),
        0b110101 => vop3(arch, words),
        0b110110 => ds(arch, words),
        _ => Err(Unknown),
    }
}

impl Decoder<'_> {
    /// An operand of VOP1, VOP2 or VOPC. The number of a true16 operand includes the half.
    /// `opsel`: the operand's bit in OP_SEL.
    fn half(&mut self, kind: Kind, code: u32, opsel: u8) -> Result<Operand, DecodeError> {
        if kind.is_true16() && code >= 256 + 128 {
            self.inst.opsel |= 1 << opsel;
            return self.operand(kind, code - 128, File::Any);
        }
        self.operand(kind, code, File::Any)
    }

    /// Source 0 of VOP1, VOP2 and VOPC, and the DPP control that may follow.
    fn source0_e32(&mut self, code: u32) -> Result<(), DecodeError> {
        let kind = self.spec.src[0];
        let code = match code {
            250 => {
                let word = self.dpp16()?;
                self.dpp_modifiers(word)?;
                256 + field(word, 0, 8)
            }
            233 | 234 => 256 + self.dpp8(code == 234)?,
            code => code,
        };
        self.inst.src[0] = self.half(kind, code, 0)?;
        Ok(())
    }

    fn dpp16(&mut self) -> Result<u32, DecodeError> {
        if !self.spec.has_dpp() {
            return Err(Unknown);
        }
        let word = self.next()?;
        let ctrl = field(word, 8, 9) as u16;
        match ctrl {
            0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f => {}
            0x140 | 0x141 | 0x150..=0x16f => {}
            _ => return Err(Unknown),
        }
        unused(field(word, 17, 1))?;
        self.inst.dpp = Dpp::Dpp16 {
            ctrl,
            row_mask: field(word, 28, 4) as u8,
            bank_mask: field(word, 24, 4) as u8,
            bound_ctrl: bit(word, 19),
            fi: bit(word, 18),
        };
        Ok(word)
    }

    /// Reads the control word of DPP8. Returns the number of the VGPR.
    fn dpp8(&mut self, fi: bool) -> Result<u32, DecodeError> {
        if !self.spec.has_dpp() {
            return Err(Unknown);
        }
        let word = self.next()?;
        self.inst.dpp = Dpp::Dpp8 { sel: word >> 8, fi };
        Ok(field(word, 0, 8))
    }

    /// The sources of VOP3, VOP3SD and VOP3P, which are in the same fields of the second word.
    fn sources_e64(&mut self, word: u32) -> Result<(), DecodeError> {
        for i in 0..3 {
            let code = field(word, 9 * i as u32, 9);
            let kind = self.spec.src[i];
            if kind == Kind::NONE {
                // In an unused source field, old assemblers write SGPR 0, and current ones write the constant 0.
                if code != 0 && code != 128 {
                    return Err(Unknown);
                }
                continue;
            }
            let code = match code {
                250 if i == 0 => {
                    let control = self.dpp16()?;
                    unused(field(control, 20, 4))?;
                    256 + field(control, 0, 8)
                }
                233 | 234 if i == 0 => 256 + self.dpp8(code == 234)?,
                code => code,
            };
            // With DPP, there is no literal. In gfx11, and in `v_fma_mix`, source 1 is a VGPR.
            let vgpr = i == 1 && (self.inst.arch == Architecture::Gfx11 || kind == Kind::MIX);
            if self.inst.dpp != Dpp::None && (code == 255 || vgpr && code < 256) {
                return Err(Unknown);
            }
            self.source(i, code, File::Any)?;
        }
        Ok(())
    }

    /// The operands of SMEM, with an offset of `bits` bits.
    pub fn smem_operands(
        &mut self,
        [word, second]: [u32; 2],
        bits: u32,
    ) -> Result<(), DecodeError> {
        // M0 and EXEC cannot be loaded.
        let sdata = field(word, 6, 7);
        if sdata > 124 {
            return Err(Unknown);
        }
        self.scalar_dst(sdata)?;
        self.source(0, 2 * field(word, 0, 6), File::Scalar)?;
        self.source(1, field(second, 25, 7), File::Scalar)?;
        self.inst.imm = sign_extend(second, bits);
        Ok(())
    }
}

fn smem(words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = ARCH.lookup(Encoding::Smem, field(word, 18, 8));
    let mut d = Decoder::new(words, 2, Encoding::Smem, ARCH, op)?;
    let second = words[1];
    unused(field(word, 15, 3) | field(second, 21, 4))?;
    if d.spec.dst[0] == Kind::NONE {
        unused(word & 0x3_ffff | second)?;
        return d.finish();
    }
    d.smem_operands([word, second], 21)?;
    d.inst.glc = bit(word, 14);
    d.inst.dlc = bit(word, 13);
    d.finish()
}

fn mubuf(words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = ARCH.lookup(Encoding::Mubuf, field(word, 18, 8));
    let d = Decoder::new(words, 2, Encoding::Cache, ARCH, op)?;
    unused(field(word, 0, 18) | words[1])?;
    d.finish()
}

fn vop1(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Vop1, field(word, 9, 8));
    let mut d = Decoder::new(words, 1, Encoding::Vop1, arch, op)?;
    let (vdst, src0) = (field(word, 17, 8), field(word, 0, 9));
    if d.spec.src[0] == Kind::NONE {
        unused(vdst | src0)?;
        return d.finish();
    }
    if d.spec.dst[0] == Kind::S32 {
        d.inst.dst = d.readlane_dst(vdst)?;
    } else {
        d.inst.dst = d.half(d.spec.dst[0], 256 + vdst, 3)?;
    }
    d.source0_e32(src0)?;
    d.finish()
}

fn vop2(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Vop2, field(word, 25, 6));
    let mut d = Decoder::new(words, 1, Encoding::Vop2, arch, op)?;
    d.inst.dst = d.half(d.spec.dst[0], 256 + field(word, 17, 8), 3)?;
    d.source0_e32(field(word, 0, 9))?;
    let mut vsrc1 = Some(256 + field(word, 9, 8));
    for i in 1..3 {
        d.inst.src[i] = match d.spec.src[i] {
            Kind::NONE => continue,
            Kind::MASK => Operand::VCC_LO,
            Kind::K32 | Kind::K16 => d.literal()?,
            kind => d.half(kind, vsrc1.take().ok_or(Unknown)?, i as u8)?,
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
    d.inst.dst = if d.spec.dst[0] == Kind::EXEC {
        Operand::EXEC_LO
    } else {
        Operand::VCC_LO
    };
    d.source0_e32(field(word, 0, 9))?;
    d.inst.src[1] = d.half(d.spec.src[1], 256 + field(word, 9, 8), 1)?;
    d.finish()
}

fn vop3(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let mut d = Decoder::vop3(words, arch, 0x180, opsel_bits)?;
    d.sources_e64(words[1])?;
    d.finish()
}

/// The bits of OP_SEL that the instruction uses.
fn opsel_bits(spec: &Spec) -> u8 {
    // OP_SEL is FI and BOUND_CTRL.
    if spec.is_permlane16() {
        return 0b11;
    }
    let mut bits = (spec.dst[0].is_true16() as u8) << 3;
    for (i, kind) in spec.src.iter().enumerate() {
        bits |= (kind.is_true16() as u8) << i;
    }
    bits
}

fn vop3p(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let mut d = Decoder::vop3p(words, arch)?;
    d.sources_e64(words[1])?;
    d.finish()
}

fn vopd(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    // The X half can only have the first sixteen operations.
    let x = arch.lookup(Encoding::Vopd, field(word, 22, 4));
    let y = arch
        .lookup(Encoding::Vopd, field(word, 17, 5))
        .ok_or(Unknown)?;
    let mut d = Decoder::new(words, 2, Encoding::Vopd, arch, x)?;
    let second = words[1];
    let vdstx = field(second, 24, 8);
    // The destinations are in different banks: the lowest bit of Y is the inverse of X's.
    let vdsty = field(second, 17, 7) << 1 | !vdstx & 1;
    d.inst.dst = Operand::vgpr(vdstx as u16);
    d.inst.src = dual_sources(
        &mut d,
        x.ok_or(Unknown)?,
        field(word, 0, 9),
        field(word, 9, 8),
    )?;
    let src = dual_sources(&mut d, y, field(second, 0, 9), field(second, 9, 8))?;
    d.inst.dual = Some(Dual {
        op: y.op,
        dst: Operand::vgpr(vdsty as u16),
        src,
    });
    d.finish()
}

fn dual_sources(
    d: &mut Decoder,
    spec: &Spec,
    src0: u32,
    vsrc1: u32,
) -> Result<[Operand; 3], DecodeError> {
    let mut sources = [Operand::NONE; 3];
    sources[0] = d.operand(spec.src[0], src0, File::Any)?;
    let mut vsrc1 = Some(vsrc1);
    for (source, &kind) in sources.iter_mut().zip(&spec.src).skip(1) {
        *source = match kind {
            Kind::NONE => continue,
            Kind::MASK => Operand::VCC_LO,
            Kind::K32 => d.literal()?,
            kind => d.vgpr(kind, vsrc1.take().ok_or(Unknown)?)?,
        };
    }
    unused(vsrc1.unwrap_or(0))?;
    Ok(sources)
}

fn ds(arch: Architecture, words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let op = arch.lookup(Encoding::Ds, field(word, 18, 8));
    let mut d = Decoder::new(words, 2, Encoding::Ds, arch, op)?;
    let second = words[1];
    unused(field(word, 16, 1))?;
    let gds = bit(word, 17);
    unused((gds && arch == Architecture::Gfx12).into())?;
    d.ds_controls(gds)?;
    for i in 0..3 {
        d.inst.src[i] = d.vgpr(d.spec.src[i], field(second, 8 * i as u32, 8))?;
    }
    d.inst.dst = d.vgpr(d.spec.dst[0], field(second, 24, 8))?;
    d.finish()
}

fn flat(words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words[0];
    let enc = match field(word, 16, 2) {
        0 => Encoding::Flat,
        1 => Encoding::Scratch,
        2 => Encoding::Global,
        _ => return Err(Unknown),
    };
    unused(field(word, 25, 1))?;
    let op = ARCH.lookup(enc, field(word, 18, 7));
    let mut d = Decoder::new(words, 2, enc, ARCH, op)?;
    let second = words[1];
    let (addr, data, saddr, sve, vdst) = (
        field(second, 0, 8),
        field(second, 8, 8),
        field(second, 16, 7),
        bit(second, 23),
        field(second, 24, 8),
    );
    d.inst.glc = bit(word, 14);
    d.inst.slc = bit(word, 15);
    d.inst.dlc = bit(word, 13);
    if enc == Encoding::Flat {
        unused(field(word, 12, 1))?;
    }
    d.inst.imm = sign_extend(word, 13);
    d.flat_operands([addr, data, saddr, vdst], sve)?;
    d.finish()
}

impl Decoder<'_> {
    /// The operands of FLAT, GLOBAL and SCRATCH, by the numbers of address, data, SADDR and VDST.
    pub fn flat_operands(
        &mut self,
        [addr, data, saddr, vdst]: [u32; 4],
        sve: bool,
    ) -> Result<(), DecodeError> {
        let d = self;
        d.inst.flag = sve;
        let saddr = Operand(saddr as u16);
        let address = match d.inst.enc {
            Encoding::Flat => {
                if saddr != Operand::NULL || sve {
                    return Err(Unknown);
                }
                d.spec.src[0]
            }
            Encoding::Global => {
                unused(sve.into())?;
                if saddr == Operand::NULL {
                    d.spec.src[0]
                } else {
                    // EXEC cannot be the base.
                    if saddr == Operand::EXEC_LO {
                        return Err(Unknown);
                    }
                    d.inst.src[2] = check(Kind::R64, saddr.0.into(), File::Scalar)?;
                    // The VGPR is a 32-bit offset.
                    match d.spec.src[0] {
                        Kind::NONE => Kind::NONE,
                        _ => Kind::V32,
                    }
                }
            }
            _ => {
                if saddr == Operand::EXEC_HI {
                    return Err(Unknown);
                }
                if saddr != Operand::NULL {
                    d.inst.src[2] = saddr;
                }
                if sve { Kind::V32 } else { Kind::NONE }
            }
        };
        d.inst.src[0] = d.vgpr(address, addr)?;
        d.inst.src[1] = d.vgpr(d.spec.src[1], data)?;
        d.inst.dst = d.vgpr(d.flat_dst(), vdst)?;
        Ok(())
    }
}
