//! Scalar arithmetic and control flow: SOP1, SOP2, SOPC, SOPK, SOPP.

use super::flow::Flow;
use super::operand::{scalar32, scalar64};
use crate::clock::clock_ticks;
use crate::fault::Fault;
use crate::isa::{Architecture, Inst, Op, Operand};
use crate::wave::Wave;

fn set32(wave: &mut Wave, reg: Operand, value: u32) -> Result<(), Fault> {
    if reg != Operand::NULL {
        wave.sgpr[reg.as_sgpr().ok_or(Fault::Unknown)?] = value;
    }
    Ok(())
}

fn set64(wave: &mut Wave, reg: Operand, value: u64) -> Result<(), Fault> {
    match reg.as_sgpr() {
        Some(n) if n == 105 || n == 123 || n == 127 => return Err(Fault::Sgpr(n + 1)),
        None if reg != Operand::NULL => return Err(Fault::Unknown),
        _ => wave.set_sgpr64(reg, value),
    }
    Ok(())
}

/// A 64-bit source of an operation on signed numbers.
fn signed64(wave: &Wave, inst: &Inst, operand: Operand) -> Result<i64, Fault> {
    if operand == Operand::LITERAL {
        return Ok(i64::from(inst.literal as i32));
    }
    Ok(scalar64(wave, inst, operand)? as i64)
}

/// The SGPR `reg` plus `m0`. Fails if one of the `count` SGPRs that start there does not exist.
fn indexed(reg: Operand, m0: u32, count: usize) -> Result<Operand, Fault> {
    let n = reg.as_sgpr().ok_or(Fault::Unknown)? as u64 + u64::from(m0);
    if n + count as u64 > 106 {
        return Err(Fault::Sgpr(n as usize + count - 1));
    }
    Ok(Operand(n as u16))
}

fn branch(wave: &mut Wave, imm: i32) {
    wave.pc = wave.pc.wrapping_add_signed(i64::from(imm) * 4);
}

/// Repeats each bit once.
fn replicate(value: u32) -> u64 {
    (0..32).fold(0, |wide, bit| {
        wide | (u64::from(value >> bit & 1) * 3) << (2 * bit)
    })
}

/// One bit per quad of lanes: whether any of its four bits is set.
fn quads(value: u64) -> u64 {
    (0..16).fold(0, |mask, quad| {
        mask | u64::from(value >> (4 * quad) & 15 != 0) << quad
    })
}

/// Sets all four bits of each quad that has any bit set.
fn whole_quads(value: u64) -> u64 {
    (0..16).fold(0, |mask, quad| {
        mask | (u64::from(value >> (4 * quad) & 15 != 0) * 15) << (4 * quad)
    })
}

/// `count`, or -1 if it is the number of all bits.
fn count_or_minus_one(count: u32, width: u32) -> u32 {
    if count == width { u32::MAX } else { count }
}

/// The number of leading bits that equal the sign bit; -1 if all do.
fn sign_bits(value: i64, width: u32) -> u32 {
    let wide = (value ^ (value >> 63)) as u64;
    count_or_minus_one(wide.leading_zeros() - (64 - width), width)
}

/// An operation on EXEC.
struct ExecMask {
    /// The new mask, from the source and EXEC.
    combine: fn(u64, u64) -> u64,
    /// Whether the destination gets the old mask. Otherwise it gets the new one.
    saves: bool,
}

fn exec_mask(op: Op) -> Option<ExecMask> {
    use Op::*;
    let save = |combine| ExecMask {
        combine,
        saves: true,
    };
    let write = |combine| ExecMask {
        combine,
        saves: false,
    };
    Some(match op {
        S_AND_SAVEEXEC_B32 | S_AND_SAVEEXEC_B64 => save(|s, e| s & e),
        S_OR_SAVEEXEC_B32 | S_OR_SAVEEXEC_B64 => save(|s, e| s | e),
        S_XOR_SAVEEXEC_B32 | S_XOR_SAVEEXEC_B64 => save(|s, e| s ^ e),
        S_NAND_SAVEEXEC_B32 | S_NAND_SAVEEXEC_B64 => save(|s, e| !(s & e)),
        S_NOR_SAVEEXEC_B32 | S_NOR_SAVEEXEC_B64 => save(|s, e| !(s | e)),
        S_XNOR_SAVEEXEC_B32 | S_XNOR_SAVEEXEC_B64 => save(|s, e| !(s ^ e)),
        S_AND_NOT0_SAVEEXEC_B32 | S_AND_NOT0_SAVEEXEC_B64 => save(|s, e| !s & e),
        S_OR_NOT0_SAVEEXEC_B32 | S_OR_NOT0_SAVEEXEC_B64 => save(|s, e| !s | e),
        S_AND_NOT1_SAVEEXEC_B32 | S_AND_NOT1_SAVEEXEC_B64 => save(|s, e| s & !e),
        S_OR_NOT1_SAVEEXEC_B32 | S_OR_NOT1_SAVEEXEC_B64 => save(|s, e| s | !e),
        S_AND_NOT0_WREXEC_B32 | S_AND_NOT0_WREXEC_B64 => write(|s, e| !s & e),
        S_AND_NOT1_WREXEC_B32 | S_AND_NOT1_WREXEC_B64 => write(|s, e| s & !e),
        _ => return None,
    })
}

pub fn sop1(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let s = inst.src[0];
    let dst = inst.dst;
    let get32 = |wave: &Wave| scalar32(wave, inst, s);
    let get64 = |wave: &Wave| scalar64(wave, inst, s);

    if let Some(op) = exec_mask(inst.op) {
        let narrow = inst.spec.dst[0].bits(32) == 32;
        let (old, new);
        if narrow {
            old = u64::from(wave.sgpr[126]);
            new = (op.combine)(u64::from(get32(wave)?), old) & 0xffff_ffff;
            wave.sgpr[126] = new as u32;
            set32(wave, dst, if op.saves { old } else { new } as u32)?;
        } else {
            old = wave.sgpr64(Operand::EXEC_LO);
            new = (op.combine)(get64(wave)?, old);
            wave.set_sgpr64(Operand::EXEC_LO, new);
            set64(wave, dst, if op.saves { old } else { new })?;
        }
        wave.scc = new != 0;
        return Ok(());
    }

    match inst.op {
        S_MOV_B32 => {
            let value = get32(wave)?;
            set32(wave, dst, value)
        }
        S_MOV_B64 => {
            let value = get64(wave)?;
            set64(wave, dst, value)
        }
        S_CMOV_B32 => {
            let value = get32(wave)?;
            if wave.scc {
                set32(wave, dst, value)?;
            }
            Ok(())
        }
        S_CMOV_B64 => {
            let value = get64(wave)?;
            if wave.scc {
                set64(wave, dst, value)?;
            }
            Ok(())
        }
        S_BREV_B32 => {
            let value = get32(wave)?.reverse_bits();
            set32(wave, dst, value)
        }
        S_BREV_B64 => {
            let value = get64(wave)?.reverse_bits();
            set64(wave, dst, value)
        }
        S_CTZ_I32_B32 => {
            let value = count_or_minus_one(get32(wave)?.trailing_zeros(), 32);
            set32(wave, dst, value)
        }
        S_CTZ_I32_B64 => {
            let value = count_or_minus_one(get64(wave)?.trailing_zeros(), 64);
            set32(wave, dst, value)
        }
        S_CLZ_I32_U32 => {
            let value = count_or_minus_one(get32(wave)?.leading_zeros(), 32);
            set32(wave, dst, value)
        }
        S_CLZ_I32_U64 => {
            let value = count_or_minus_one(get64(wave)?.leading_zeros(), 64);
            set32(wave, dst, value)
        }
        S_CLS_I32 => {
            let value = sign_bits(i64::from(get32(wave)? as i32), 32);
            set32(wave, dst, value)
        }
        S_CLS_I32_I64 => {
            let value = sign_bits(signed64(wave, inst, s)?, 64);
            set32(wave, dst, value)
        }
        S_SEXT_I32_I8 => {
            let value = get32(wave)? as i8 as u32;
            set32(wave, dst, value)
        }
        S_SEXT_I32_I16 => {
            let value = get32(wave)? as i16 as u32;
            set32(wave, dst, value)
        }
        S_BITSET0_B32 | S_BITSET1_B32 => {
            let bit = 1 << (get32(wave)? & 31);
            let old = scalar32(wave, inst, dst)?;
            let new = if inst.op == S_BITSET1_B32 {
                old | bit
            } else {
                old & !bit
            };
            set32(wave, dst, new)
        }
        S_BITSET0_B64 | S_BITSET1_B64 => {
            let bit = 1 << (get32(wave)? & 63);
            let old = scalar64(wave, inst, dst)?;
            let new = if inst.op == S_BITSET1_B64 {
                old | bit
            } else {
                old & !bit
            };
            set64(wave, dst, new)
        }
        S_BITREPLICATE_B64_B32 => {
            let value = replicate(get32(wave)?);
            set64(wave, dst, value)
        }
        S_ABS_I32 => {
            let value = (get32(wave)? as i32).wrapping_abs() as u32;
            wave.scc = value != 0;
            set32(wave, dst, value)
        }
        S_BCNT0_I32_B32 | S_BCNT1_I32_B32 | S_BCNT0_I32_B64 | S_BCNT1_I32_B64 => {
            let value = match inst.op {
                S_BCNT0_I32_B32 => get32(wave)?.count_zeros(),
                S_BCNT1_I32_B32 => get32(wave)?.count_ones(),
                S_BCNT0_I32_B64 => get64(wave)?.count_zeros(),
                _ => get64(wave)?.count_ones(),
            };
            wave.scc = value != 0;
            set32(wave, dst, value)
        }
        S_QUADMASK_B32 | S_WQM_B32 | S_NOT_B32 => {
            let value = get32(wave)?;
            let value = match inst.op {
                S_QUADMASK_B32 => quads(u64::from(value)) as u32,
                S_WQM_B32 => whole_quads(u64::from(value)) as u32,
                _ => !value,
            };
            wave.scc = value != 0;
            set32(wave, dst, value)
        }
        S_QUADMASK_B64 | S_WQM_B64 | S_NOT_B64 => {
            let value = get64(wave)?;
            let value = match inst.op {
                S_QUADMASK_B64 => quads(value),
                S_WQM_B64 => whole_quads(value),
                _ => !value,
            };
            wave.scc = value != 0;
            set64(wave, dst, value)
        }
        S_FF0_I32_B32 => {
            let value = count_or_minus_one(get32(wave)?.trailing_ones(), 32);
            set32(wave, dst, value)
        }
        S_FF0_I32_B64 => {
            let value = count_or_minus_one(get64(wave)?.trailing_ones(), 64);
            set32(wave, dst, value)
        }
        S_SET_GPR_IDX_IDX => {
            let index = get32(wave)? & 0xff;
            wave.sgpr[125] = wave.sgpr[125] & !0xff | index;
            Ok(())
        }
        S_MOVRELS_B32 => {
            let value = scalar32(wave, inst, indexed(s, wave.sgpr[125], 1)?)?;
            set32(wave, dst, value)
        }
        S_MOVRELS_B64 => {
            let value = scalar64(wave, inst, indexed(s, wave.sgpr[125], 2)?)?;
            set64(wave, dst, value)
        }
        S_MOVRELD_B32 => {
            let value = get32(wave)?;
            let to = indexed(dst, wave.sgpr[125], 1)?;
            set32(wave, to, value)
        }
        S_MOVRELD_B64 => {
            let value = get64(wave)?;
            let to = indexed(dst, wave.sgpr[125], 2)?;
            set64(wave, to, value)
        }
        S_MOVRELSD_2_B32 => {
            let m0 = wave.sgpr[125];
            let value = scalar32(wave, inst, indexed(s, m0 & 0x3ff, 1)?)?;
            let to = indexed(dst, m0 >> 16 & 0x3ff, 1)?;
            set32(wave, to, value)
        }
        S_GETPC_B64 => {
            let pc = wave.pc;
            set64(wave, dst, pc)
        }
        S_SETPC_B64 => {
            wave.pc = get64(wave)?;
            Ok(())
        }
        S_SWAPPC_B64 => {
            let target = get64(wave)?;
            let return_address = wave.pc;
            set64(wave, dst, return_address)?;
            wave.pc = target;
            Ok(())
        }
        // MSG_RTN_GET_REALTIME
        S_SENDMSG_RTN_B64 if inst.imm == 131 => set64(wave, dst, clock_ticks()),
        S_SENDMSG_RTN_B32 if inst.imm == 131 => set32(wave, dst, clock_ticks() as u32),
        _ => Err(Fault::Unknown),
    }
}

pub fn sop2(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let [s0, s1, _] = inst.src;
    let dst = inst.dst;

    match inst.op {
        S_LSHL_B64 | S_LSHR_B64 | S_ASHR_I64 => {
            let by = scalar32(wave, inst, s1)? & 63;
            let value = match inst.op {
                S_LSHL_B64 => scalar64(wave, inst, s0)? << by,
                S_LSHR_B64 => scalar64(wave, inst, s0)? >> by,
                _ => (signed64(wave, inst, s0)? >> by) as u64,
            };
            wave.scc = value != 0;
            return set64(wave, dst, value);
        }
        S_BFE_U64 | S_BFE_I64 => {
            let field = scalar32(wave, inst, s1)?;
            let (offset, width) = (field & 63, field >> 16 & 127);
            let value = if inst.op == S_BFE_U64 {
                let value = scalar64(wave, inst, s0)? >> offset;
                match width {
                    0 => 0,
                    1..64 => value & ((1 << width) - 1),
                    _ => value,
                }
            } else {
                let value = signed64(wave, inst, s0)? >> offset;
                match width {
                    0 => 0,
                    1..64 => (value << (64 - width) >> (64 - width)) as u64,
                    _ => value as u64,
                }
            };
            wave.scc = value != 0;
            return set64(wave, dst, value);
        }
        S_BFM_B64 => {
            let ones = scalar32(wave, inst, s0)? & 63;
            let by = scalar32(wave, inst, s1)? & 63;
            return set64(wave, dst, ((1u64 << ones) - 1) << by);
        }
        S_CSELECT_B64 => {
            let value = scalar64(wave, inst, if wave.scc { s0 } else { s1 })?;
            return set64(wave, dst, value);
        }
        S_AND_B64 | S_OR_B64 | S_XOR_B64 | S_NAND_B64 | S_NOR_B64 | S_XNOR_B64 | S_AND_NOT1_B64
        | S_OR_NOT1_B64 => {
            let a = scalar64(wave, inst, s0)?;
            let b = scalar64(wave, inst, s1)?;
            let value = match inst.op {
                S_AND_B64 => a & b,
                S_OR_B64 => a | b,
                S_XOR_B64 => a ^ b,
                S_NAND_B64 => !(a & b),
                S_NOR_B64 => !(a | b),
                S_XNOR_B64 => !(a ^ b),
                S_AND_NOT1_B64 => a & !b,
                _ => a | !b,
            };
            wave.scc = value != 0;
            return set64(wave, dst, value);
        }
        _ => {}
    }

    let a = scalar32(wave, inst, s0)?;
    let b = scalar32(wave, inst, s1)?;
    let carry = u64::from(wave.scc);
    let shifted_add = |by: u32| {
        let sum = (u64::from(a) << by) + u64::from(b);
        (sum as u32, Some(sum >> 32 != 0))
    };
    let not_zero = |value: u32| (value, Some(value != 0));
    let (value, scc) = match inst.op {
        S_ADD_U32 => {
            let (sum, over) = a.overflowing_add(b);
            (sum, Some(over))
        }
        S_SUB_U32 => {
            let (difference, under) = a.overflowing_sub(b);
            (difference, Some(under))
        }
        S_ADD_I32 => {
            let (sum, over) = (a as i32).overflowing_add(b as i32);
            (sum as u32, Some(over))
        }
        S_SUB_I32 => {
            let (difference, over) = (a as i32).overflowing_sub(b as i32);
            (difference as u32, Some(over))
        }
        S_ADDC_U32 => {
            let sum = u64::from(a) + u64::from(b) + carry;
            (sum as u32, Some(sum >> 32 != 0))
        }
        S_SUBB_U32 => (
            a.wrapping_sub(b).wrapping_sub(carry as u32),
            Some(u64::from(b) + carry > u64::from(a)),
        ),
        S_ABSDIFF_I32 => not_zero((a.wrapping_sub(b) as i32).wrapping_abs() as u32),
        S_LSHL_B32 => not_zero(a << (b & 31)),
        S_LSHR_B32 => not_zero(a >> (b & 31)),
        S_ASHR_I32 => not_zero((a as i32 >> (b & 31)) as u32),
        S_LSHL1_ADD_U32 => shifted_add(1),
        S_LSHL2_ADD_U32 => shifted_add(2),
        S_LSHL3_ADD_U32 => shifted_add(3),
        S_LSHL4_ADD_U32 => shifted_add(4),
        S_MIN_I32 => ((a as i32).min(b as i32) as u32, Some((a as i32) < b as i32)),
        S_MIN_U32 => (a.min(b), Some(a < b)),
        S_MAX_I32 => ((a as i32).max(b as i32) as u32, Some(a as i32 >= b as i32)),
        S_MAX_U32 => (a.max(b), Some(a >= b)),
        S_AND_B32 => not_zero(a & b),
        S_OR_B32 => not_zero(a | b),
        S_XOR_B32 => not_zero(a ^ b),
        S_NAND_B32 => not_zero(!(a & b)),
        S_NOR_B32 => not_zero(!(a | b)),
        S_XNOR_B32 => not_zero(!(a ^ b)),
        S_AND_NOT1_B32 => not_zero(a & !b),
        S_OR_NOT1_B32 => not_zero(a | !b),
        S_BFE_U32 => {
            let (offset, width) = (b & 31, b >> 16 & 127);
            not_zero(match width {
                0 => 0,
                1..32 => a >> offset & ((1 << width) - 1),
                _ => a >> offset,
            })
        }
        S_BFE_I32 => {
            let (offset, width) = (b & 31, b >> 16 & 127);
            let value = a as i32 >> offset;
            not_zero(match width {
                0 => 0,
                1..32 => (value << (32 - width) >> (32 - width)) as u32,
                _ => value as u32,
            })
        }
        S_BFM_B32 => (((1u32 << (a & 31)) - 1) << (b & 31), None),
        S_MUL_I32 => (a.wrapping_mul(b), None),
        S_MUL_HI_U32 => (((u64::from(a) * u64::from(b)) >> 32) as u32, None),
        S_MUL_HI_I32 => (
            ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32,
            None,
        ),
        S_CSELECT_B32 => (if wave.scc { a } else { b }, None),
        S_PACK_LL_B32_B16 => (b << 16 | a & 0xffff, None),
        S_PACK_LH_B32_B16 => (b & 0xffff_0000 | a & 0xffff, None),
        S_PACK_HH_B32_B16 => (b & 0xffff_0000 | a >> 16, None),
        S_PACK_HL_B32_B16 => (b << 16 | a >> 16, None),
        _ => return Err(Fault::Unknown),
    };
    if let Some(scc) = scc {
        wave.scc = scc;
    }
    set32(wave, dst, value)
}

pub fn sopc(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let [s0, s1, _] = inst.src;
    let a = |wave: &Wave| scalar32(wave, inst, s0);
    let b = |wave: &Wave| scalar32(wave, inst, s1);
    let signed = |wave: &Wave| Ok::<_, Fault>((a(wave)? as i32, b(wave)? as i32));
    wave.scc = match inst.op {
        S_CMP_EQ_I32 | S_CMP_EQ_U32 => a(wave)? == b(wave)?,
        S_CMP_LG_I32 | S_CMP_LG_U32 => a(wave)? != b(wave)?,
        S_CMP_GT_I32 => signed(wave).map(|(a, b)| a > b)?,
        S_CMP_GE_I32 => signed(wave).map(|(a, b)| a >= b)?,
        S_CMP_LT_I32 => signed(wave).map(|(a, b)| a < b)?,
        S_CMP_LE_I32 => signed(wave).map(|(a, b)| a <= b)?,
        S_CMP_GT_U32 => a(wave)? > b(wave)?,
        S_CMP_GE_U32 => a(wave)? >= b(wave)?,
        S_CMP_LT_U32 => a(wave)? < b(wave)?,
        S_CMP_LE_U32 => a(wave)? <= b(wave)?,
        S_SET_GPR_IDX_ON => {
            let index = a(wave)? & 0xff;
            wave.mode |= GPR_IDX_EN;
            wave.sgpr[125] = wave.sgpr[125] & !0xf0ff | index | (inst.imm as u32 & 15) << 12;
            wave.scc
        }
        S_BITCMP0_B32 => a(wave)? >> (b(wave)? & 31) & 1 == 0,
        S_BITCMP1_B32 => a(wave)? >> (b(wave)? & 31) & 1 == 1,
        S_BITCMP0_B64 => scalar64(wave, inst, s0)? >> (b(wave)? & 63) & 1 == 0,
        S_BITCMP1_B64 => scalar64(wave, inst, s0)? >> (b(wave)? & 63) & 1 == 1,
        S_CMP_EQ_U64 => scalar64(wave, inst, s0)? == scalar64(wave, inst, s1)?,
        S_CMP_LG_U64 => scalar64(wave, inst, s0)? != scalar64(wave, inst, s1)?,
        _ => return Err(Fault::Unknown),
    };
    Ok(())
}

/// Hardware registers by number (guides, "Hardware registers").
mod hwreg {
    pub const MODE: u32 = 1;
    /// Of gfx9.
    pub const HW_ID: u32 = 4;
    /// Of gfx942.
    pub const XCC_ID: u32 = 20;
    /// These are of gfx11.
    pub const HW_ID1: u32 = 23;
    pub const HW_ID2: u32 = 24;
    pub const SHADER_CYCLES: u32 = 29;
}

/// The bit of MODE of gfx9 that enables the relative register numbers of VALU instructions.
pub const GPR_IDX_EN: u32 = 1 << 27;

/// The bits of MODE that the model supports: rounding, denormals, DX10_CLAMP, IEEE, FP16_OVFL.
const MODE_BITS: u32 = 0x80_03ff;

fn hwreg_fields(imm: i32) -> (u32, u32, u32) {
    let imm = imm as u32;
    let mask = u32::MAX >> (31 - (imm >> 11 & 31));
    (imm & 63, imm >> 6 & 31, mask)
}

fn set_hwreg(wave: &mut Wave, imm: i32, value: u32) -> Result<(), Fault> {
    let (register, offset, mask) = hwreg_fields(imm);
    let mask = mask << offset;
    if register != hwreg::MODE || (value << offset) & mask & !MODE_BITS != 0 {
        return Err(Fault::Unknown);
    }
    wave.mode = wave.mode & !mask | value << offset & mask;
    Ok(())
}

pub fn sopk(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let dst = inst.dst;
    let imm = inst.imm;
    let unsigned = imm as u16 as u32;
    match inst.op {
        S_VERSION | S_WAITCNT_VSCNT | S_WAITCNT_VMCNT | S_WAITCNT_EXPCNT | S_WAITCNT_LGKMCNT => {
            return Ok(());
        }
        S_MOVK_I32 => return set32(wave, dst, imm as u32),
        S_CMOVK_I32 => {
            if wave.scc {
                set32(wave, dst, imm as u32)?;
            }
            return Ok(());
        }
        S_GETREG_B32 => {
            let (register, offset, mask) = hwreg_fields(imm);
            let value = match (register, inst.arch) {
                (hwreg::MODE, _) => wave.mode,
                (hwreg::HW_ID, Architecture::Gfx90a | Architecture::Gfx942) => wave.hw_id,
                (hwreg::XCC_ID, Architecture::Gfx942) => wave.xcc_id,
                (hwreg::HW_ID1, Architecture::Gfx11) => wave.hw_id,
                // The queue, always the first one.
                (hwreg::HW_ID2, Architecture::Gfx11) => 0,
                (hwreg::SHADER_CYCLES, Architecture::Gfx11) => clock_ticks() as u32 & 0xf_ffff,
                _ => return Err(Fault::Unknown),
            };
            return set32(wave, dst, value >> offset & mask);
        }
        S_SETREG_IMM32_B32 => return set_hwreg(wave, imm, inst.literal),
        S_CALL_B64 => {
            let return_address = wave.pc;
            set64(wave, dst, return_address)?;
            branch(wave, imm);
            return Ok(());
        }
        _ => {}
    }
    // The SDST field can be a source.
    let register = if inst.src[0] == Operand::NONE {
        dst
    } else {
        inst.src[0]
    };
    let value = scalar32(wave, inst, register)?;
    let signed = value as i32;
    wave.scc = match inst.op {
        S_CMPK_EQ_I32 => signed == imm,
        S_CMPK_LG_I32 => signed != imm,
        S_CMPK_GT_I32 => signed > imm,
        S_CMPK_GE_I32 => signed >= imm,
        S_CMPK_LT_I32 => signed < imm,
        S_CMPK_LE_I32 => signed <= imm,
        S_CMPK_EQ_U32 => value == unsigned,
        S_CMPK_LG_U32 => value != unsigned,
        S_CMPK_GT_U32 => value > unsigned,
        S_CMPK_GE_U32 => value >= unsigned,
        S_CMPK_LT_U32 => value < unsigned,
        S_CMPK_LE_U32 => value <= unsigned,
        S_ADDK_I32 => {
            let (sum, over) = signed.overflowing_add(imm);
            set32(wave, dst, sum as u32)?;
            over
        }
        S_MULK_I32 => return set32(wave, dst, signed.wrapping_mul(imm) as u32),
        S_SETREG_B32 => return set_hwreg(wave, imm, value),
        _ => return Err(Fault::Unknown),
    };
    Ok(())
}

pub fn sopp(wave: &mut Wave, inst: &Inst) -> Result<Flow, Fault> {
    use Op::*;
    let taken = match inst.op {
        S_BRANCH => true,
        S_CBRANCH_SCC0 => !wave.scc,
        S_CBRANCH_SCC1 => wave.scc,
        S_CBRANCH_VCCZ => wave.mask(Operand::VCC_LO) == 0,
        S_CBRANCH_VCCNZ => wave.mask(Operand::VCC_LO) != 0,
        S_CBRANCH_EXECZ => wave.exec() == 0,
        S_CBRANCH_EXECNZ => wave.exec() != 0,
        // There is no debugger.
        S_CBRANCH_CDBGSYS
        | S_CBRANCH_CDBGUSER
        | S_CBRANCH_CDBGSYS_OR_USER
        | S_CBRANCH_CDBGSYS_AND_USER => false,
        S_NOP
        | S_CLAUSE
        | S_DELAY_ALU
        | S_WAITCNT
        | S_WAITCNT_DEPCTR
        | S_WAIT_IDLE
        | S_SETPRIO
        | S_SET_INST_PREFETCH_DISTANCE
        | S_WAKEUP => false,
        S_SET_GPR_IDX_OFF => {
            wave.mode &= !GPR_IDX_EN;
            false
        }
        S_SET_GPR_IDX_MODE => {
            wave.sgpr[125] = wave.sgpr[125] & !0xf000 | (inst.imm as u32 & 15) << 12;
            false
        }
        S_SLEEP => return Ok(Flow::Yield),
        S_BARRIER => return Ok(Flow::Barrier),
        S_ENDPGM => return Ok(Flow::End),
        S_ICACHE_INV => return Ok(Flow::Refetch),
        S_ROUND_MODE => {
            wave.mode = wave.mode & !0xf | inst.imm as u32 & 0xf;
            false
        }
        S_DENORM_MODE => {
            wave.mode = wave.mode & !0xf0 | (inst.imm as u32 & 0xf) << 4;
            false
        }
        // MSG_DEALLOC_VGPRS is a hint at the end of a kernel.
        S_SENDMSG if inst.imm as u16 == 3 && !inst.arch.is_gfx9() => false,
        // llvm.debugtrap: without a debugger, AMD's trap handler continues after it.
        S_TRAP if inst.imm as u8 == 3 => false,
        S_TRAP => return Err(Fault::Trap(inst.imm as u8)),
        _ => return Err(Fault::Unknown),
    };
    if taken {
        branch(wave, inst.imm);
    }
    Ok(Flow::Next)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{inst, wave};
    use super::*;
    use crate::isa::Encoding;

    /// Runs an operation on s0 and s1 (or their pairs at s0 and s2), destination s4.
    fn run(
        op: Op,
        a: u64,
        b: u64,
        scc: bool,
        execute: fn(&mut Wave, &Inst) -> Result<(), Fault>,
    ) -> (u64, bool) {
        let mut wave = wave(32);
        wave.set_sgpr64(Operand(0), a);
        wave.set_sgpr64(Operand(2), b);
        wave.scc = scc;
        let mut inst = inst(op, Encoding::Sop2);
        inst.dst = Operand(4);
        inst.src = [Operand(0), Operand(2), Operand::NONE];
        execute(&mut wave, &inst).unwrap_or_else(|fault| panic!("{op:?}: {fault}"));
        (wave.sgpr64(Operand(4)), wave.scc)
    }

    const NEG: u64 = 0x8000_0000;

    #[test]
    fn operations_on_two_sources() {
        use Op::*;
        // Operation, sources, SCC before, destination, SCC after.
        #[rustfmt::skip]
        let cases: &[(Op, u64, u64, bool, u64, bool)] = &[
            (S_ADD_U32, 0xffff_ffff, 1, false, 0, true),
            (S_ADD_U32, 7, 8, true, 15, false),
            (S_SUB_U32, 3, 5, false, 0xffff_fffe, true),
            (S_ADD_I32, 0x7fff_ffff, 1, false, NEG, true),
            (S_ADD_I32, 0xffff_ffff, 1, true, 0, false),
            (S_SUB_I32, NEG, 1, false, 0x7fff_ffff, true),
            (S_ADDC_U32, 0xffff_ffff, 0, true, 0, true),
            (S_ADDC_U32, 1, 1, true, 3, false),
            (S_SUBB_U32, 5, 5, true, 0xffff_ffff, true),
            (S_SUBB_U32, 5, 4, true, 0, false),
            (S_ABSDIFF_I32, 3, 10, false, 7, true),
            (S_LSHL_B32, 1, 33, false, 2, true),
            (S_LSHR_B32, NEG, 31, false, 1, true),
            (S_ASHR_I32, NEG, 31, false, 0xffff_ffff, true),
            (S_LSHL_B64, 1, 40, false, 1 << 40, true),
            (S_LSHR_B64, 1 << 63, 63, false, 1, true),
            (S_ASHR_I64, 1 << 63, 63, false, u64::MAX, true),
            (S_LSHL1_ADD_U32, NEG, 5, false, 5, true),
            (S_LSHL4_ADD_U32, 3, 2, true, 50, false),
            (S_MIN_I32, 0xffff_ffff, 1, false, 0xffff_ffff, true),
            (S_MIN_U32, 0xffff_ffff, 1, true, 1, false),
            (S_MAX_I32, 0xffff_ffff, 1, true, 1, false),
            (S_MAX_U32, 4, 4, false, 4, true),
            (S_NAND_B32, 0xff, 0x0f, false, 0xffff_fff0, true),
            (S_AND_NOT1_B64, u64::MAX, 0xff, false, !0xff, true),
            (S_OR_NOT1_B64, 0, u64::MAX, true, 0, false),
            (S_XNOR_B64, 5, 5, false, u64::MAX, true),
            (S_BFE_U32, 0xabcd_1234, 8 << 16 | 4, false, 0x23, true),
            (S_BFE_U32, 0xabcd_1234, 0, true, 0, false),
            (S_BFE_U32, 0xabcd_1234, 32 << 16, false, 0xabcd_1234, true),
            (S_BFE_I32, 0x0000_0f00, 4 << 16 | 8, false, 0xffff_ffff, true),
            (S_BFE_U64, 0xff00_0000_0000, 8 << 16 | 40, false, 0xff, true),
            (S_BFE_I64, 0xff00_0000_0000, 8 << 16 | 40, false, u64::MAX, true),
            (S_BFM_B32, 4, 8, false, 0xf00, false),
            (S_BFM_B64, 33, 4, true, 0x1f_ffff_fff0, true),
            (S_MUL_I32, 0xffff_ffff, 7, false, 0xffff_fff9, false),
            (S_MUL_HI_U32, 0xffff_ffff, 0xffff_ffff, false, 0xffff_fffe, false),
            (S_MUL_HI_I32, 0xffff_ffff, 0xffff_ffff, false, 0, false),
            (S_CSELECT_B32, 1, 2, true, 1, true),
            (S_CSELECT_B64, 1, 2 << 32, false, 2 << 32, false),
            (S_PACK_LL_B32_B16, 0x1111_2222, 0x3333_4444, false, 0x4444_2222, false),
            (S_PACK_LH_B32_B16, 0x1111_2222, 0x3333_4444, false, 0x3333_2222, false),
            (S_PACK_HH_B32_B16, 0x1111_2222, 0x3333_4444, false, 0x3333_1111, false),
            (S_PACK_HL_B32_B16, 0x1111_2222, 0x3333_4444, false, 0x4444_1111, false),
        ];
        for &(op, a, b, before, value, after) in cases {
            assert_eq!(run(op, a, b, before, sop2), (value, after), "{op:?}");
        }
    }

    #[test]
    fn operations_on_one_source() {
        use Op::*;
        #[rustfmt::skip]
        let cases: &[(Op, u64, u64, bool)] = &[
            (S_MOV_B64, 0x1_0000_0002, 0x1_0000_0002, false),
            (S_BREV_B32, 1, NEG, false),
            (S_BREV_B64, 1, 1 << 63, false),
            (S_CTZ_I32_B32, 0, 0xffff_ffff, false),
            (S_CTZ_I32_B32, 0x10, 4, false),
            (S_CTZ_I32_B64, 1 << 40, 40, false),
            (S_CLZ_I32_U32, 1, 31, false),
            (S_CLZ_I32_U64, 1, 63, false),
            (S_CLZ_I32_U64, 0, 0xffff_ffff, false),
            // Examples of the guide.
            (S_CLS_I32, 0x0000_cccc, 16, false),
            (S_CLS_I32, 0xffff_3333, 16, false),
            (S_CLS_I32, 0x7fff_ffff, 1, false),
            (S_CLS_I32, 0xffff_ffff, 0xffff_ffff, false),
            (S_CLS_I32_I64, 1 << 62, 1, false),
            (S_SEXT_I32_I8, 0x80, 0xffff_ff80, false),
            (S_SEXT_I32_I16, 0x18000, 0xffff_8000, false),
            (S_BITSET1_B32, 35, 8, false),
            (S_BITREPLICATE_B64_B32, 0x8000_0005, 0xc000_0000_0000_0033, false),
            (S_ABS_I32, 0xffff_fffb, 5, true),
            (S_BCNT0_I32_B32, 0xffff_fff0, 4, true),
            (S_BCNT1_I32_B64, u64::MAX, 64, true),
            (S_QUADMASK_B32, 0x1000_0020, 0x82, true),
            (S_WQM_B64, 1 << 61 | 1, 0xf000_0000_0000_000f, true),
            (S_NOT_B32, 0xffff_ffff, 0, false),
            (S_NOT_B64, 0xffff_ffff, 0xffff_ffff_0000_0000, true),
        ];
        for &(op, a, value, scc) in cases {
            assert_eq!(run(op, a, 0, false, sop1), (value, scc), "{op:?} {a:#x}");
        }
    }

    #[test]
    fn saveexec_saves_the_old_mask_and_wrexec_the_new_one() {
        let mut wave = wave(32);
        wave.set_exec(0b1100);
        wave.sgpr[0] = 0b1010;
        let mut inst = inst(Op::S_AND_SAVEEXEC_B32, Encoding::Sop1);
        inst.dst = Operand(4);
        inst.src[0] = Operand(0);
        sop1(&mut wave, &inst).unwrap();
        assert_eq!(
            (wave.sgpr[4], wave.exec(), wave.scc),
            (0b1100, 0b1000, true)
        );
        inst.op = Op::S_AND_NOT1_WREXEC_B32;
        sop1(&mut wave, &inst).unwrap();
        assert_eq!(
            (wave.sgpr[4], wave.exec(), wave.scc),
            (0b0010, 0b0010, true)
        );
    }

    #[test]
    fn branches_count_words_from_the_next_instruction() {
        let mut wave = wave(32);
        wave.pc = 0x1004;
        let mut inst = inst(Op::S_CBRANCH_SCC1, Encoding::Sopp);
        inst.imm = -2;
        assert_eq!(sopp(&mut wave, &inst), Ok(Flow::Next));
        assert_eq!(wave.pc, 0x1004);
        wave.scc = true;
        sopp(&mut wave, &inst).unwrap();
        assert_eq!(wave.pc, 0xffc);
        inst.op = Op::S_CALL_B64;
        inst.dst = Operand(30);
        inst.imm = 16;
        sopk(&mut wave, &inst).unwrap();
        assert_eq!((wave.pc, wave.sgpr[30]), (0x103c, 0xffc));
        inst.op = Op::S_SETPC_B64;
        inst.src[0] = Operand(30);
        sop1(&mut wave, &inst).unwrap();
        assert_eq!(wave.pc, 0xffc);
    }

    #[test]
    fn a_wave32_reads_the_low_half_of_vcc_and_exec() {
        for (lanes, taken) in [(32, true), (64, false)] {
            let mut wave = wave(lanes);
            wave.set_sgpr64(Operand::VCC_LO, 1 << 32);
            wave.pc = 4;
            let mut inst = inst(Op::S_CBRANCH_VCCZ, Encoding::Sopp);
            inst.imm = 1;
            sopp(&mut wave, &inst).unwrap();
            assert_eq!(wave.pc == 8, taken, "{lanes} lanes");
        }
    }

    #[test]
    fn setreg_writes_a_field_of_mode_and_getreg_reads_it() {
        let mut wave = wave(32);
        wave.mode = 0x0f;
        let mut inst = inst(Op::S_SETREG_IMM32_B32, Encoding::Sopk);
        // hwreg(HW_REG_MODE, 4, 2)
        inst.imm = 1 | 4 << 6 | 1 << 11;
        inst.literal = 3;
        sopk(&mut wave, &inst).unwrap();
        assert_eq!(wave.mode, 0x3f);
        inst.op = Op::S_GETREG_B32;
        inst.dst = Operand(4);
        sopk(&mut wave, &inst).unwrap();
        assert_eq!(wave.sgpr[4], 3);
        // hwreg(HW_REG_HW_ID1, 8, 2)
        wave.hw_id = 0x1_0e03;
        inst.imm = 23 | 8 << 6 | 1 << 11;
        sopk(&mut wave, &inst).unwrap();
        assert_eq!(wave.sgpr[4], 2);
        // hwreg(HW_REG_TRAPSTS): not modelled. Registers 4 and 20 of other architectures (HW_ID, XCC_ID): not in gfx1100, or
        // another register.
        for register in [3, 4, 20] {
            inst.imm = register;
            assert_eq!(sopk(&mut wave, &inst), Err(Fault::Unknown));
        }
    }

    #[test]
    fn identification_registers_of_gfx9() {
        for (arch, register, expected) in [
            (Architecture::Gfx90a, 4, Ok(0x2105)),
            (Architecture::Gfx942, 4, Ok(0x2105)),
            (Architecture::Gfx942, 20, Ok(1)),
            (Architecture::Gfx90a, 20, Err(Fault::Unknown)),
            (Architecture::Gfx942, 23, Err(Fault::Unknown)),
        ] {
            let mut wave = wave(64);
            (wave.hw_id, wave.xcc_id) = (0x2105, 1);
            let mut inst = inst(Op::S_GETREG_B32, Encoding::Sopk);
            inst.arch = arch;
            inst.dst = Operand(4);
            inst.imm = i32::from((register | 31 << 11) as i16);
            let result = sopk(&mut wave, &inst).map(|()| wave.sgpr[4]);
            assert_eq!(result, expected, "{arch:?} {register}");
        }
    }

    #[test]
    fn relative_register_numbers_are_in_m0() {
        let mut wave = wave(64);
        wave.sgpr[0] = 0x1_0007;
        wave.sgpr[125] = 0xabc_0fff;
        wave.scc = true;
        let mut on = inst(Op::S_SET_GPR_IDX_ON, Encoding::Sopc);
        on.src[0] = Operand(0);
        on.imm = 0b1001;
        sopc(&mut wave, &on).unwrap();
        assert_eq!(wave.sgpr[125], 0xabc_9f07);
        assert!(wave.scc && wave.mode & GPR_IDX_EN != 0);
        let off = inst(Op::S_SET_GPR_IDX_OFF, Encoding::Sopp);
        sopp(&mut wave, &off).unwrap();
        assert_eq!(wave.mode & GPR_IDX_EN, 0);
    }

    #[test]
    fn a_trap_is_a_fault_unless_it_is_for_a_debugger() {
        let mut wave = wave(32);
        let mut inst = inst(Op::S_TRAP, Encoding::Sopp);
        inst.imm = 2;
        assert_eq!(sopp(&mut wave, &inst), Err(Fault::Trap(2)));
        inst.imm = 3;
        assert_eq!(sopp(&mut wave, &inst), Ok(Flow::Next));
    }
}
