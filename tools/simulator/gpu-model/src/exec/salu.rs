//! Scalar arithmetic and control flow: SOP1, SOP2, SOPC, SOPK, SOPP.
//!
//! The functions of the formats are tables. The types of a closure's arguments and result determine how sources are read and
//! the destination is written ([`Scalar`]); the method of [`Salu`] determines what happens to SCC.

use super::flow::Flow;
use super::operand::{scalar32, scalar64};
use crate::clock::clock_ticks;
use crate::fault::Fault;
use crate::isa::{Architecture, Inst, Op, Operand};
use crate::wave::Wave;

/// A 32-bit or 64-bit value in scalar registers.
trait Scalar: Copy + PartialEq + Default {
    const REGISTERS: usize;
    fn read(wave: &Wave, inst: &Inst, operand: Operand) -> Result<Self, Fault>;
    fn write(self, wave: &mut Wave, reg: Operand) -> Result<(), Fault>;
}

impl Scalar for u32 {
    const REGISTERS: usize = 1;
    fn read(wave: &Wave, inst: &Inst, operand: Operand) -> Result<u32, Fault> {
        scalar32(wave, inst, operand)
    }
    fn write(self, wave: &mut Wave, reg: Operand) -> Result<(), Fault> {
        if reg != Operand::NULL {
            wave.sgpr[reg.as_sgpr().ok_or(Fault::Unknown)?] = self;
        }
        Ok(())
    }
}

impl Scalar for i32 {
    const REGISTERS: usize = 1;
    fn read(wave: &Wave, inst: &Inst, operand: Operand) -> Result<i32, Fault> {
        Ok(scalar32(wave, inst, operand)? as i32)
    }
    fn write(self, wave: &mut Wave, reg: Operand) -> Result<(), Fault> {
        (self as u32).write(wave, reg)
    }
}

impl Scalar for u64 {
    const REGISTERS: usize = 2;
    fn read(wave: &Wave, inst: &Inst, operand: Operand) -> Result<u64, Fault> {
        scalar64(wave, inst, operand)
    }
    fn write(self, wave: &mut Wave, reg: Operand) -> Result<(), Fault> {
        match reg.as_sgpr() {
            Some(n) if n == 105 || n == 123 || n == 127 => return Err(Fault::Sgpr(n + 1)),
            None if reg != Operand::NULL => return Err(Fault::Unknown),
            _ => wave.set_sgpr64(reg, self),
        }
        Ok(())
    }
}

impl Scalar for i64 {
    const REGISTERS: usize = 2;
    fn read(wave: &Wave, inst: &Inst, operand: Operand) -> Result<i64, Fault> {
        if operand == Operand::LITERAL {
            return Ok(i64::from(inst.literal as i32));
        }
        Ok(scalar64(wave, inst, operand)? as i64)
    }
    fn write(self, wave: &mut Wave, reg: Operand) -> Result<(), Fault> {
        (self as u64).write(wave, reg)
    }
}

/// The wave and the instruction that it executes.
struct Salu<'a> {
    wave: &'a mut Wave,
    inst: &'a Inst,
}

impl Salu<'_> {
    fn source<T: Scalar>(&self, i: usize) -> Result<T, Fault> {
        T::read(self.wave, self.inst, self.inst.src[i])
    }

    /// The destination's value before the operation.
    fn old<T: Scalar>(&self) -> Result<T, Fault> {
        T::read(self.wave, self.inst, self.inst.dst)
    }

    fn write<T: Scalar>(&mut self, value: T) -> Result<(), Fault> {
        value.write(self.wave, self.inst.dst)
    }

    /// Writes the value and sets SCC.
    fn write_scc<T: Scalar>(&mut self, (value, scc): (T, bool)) -> Result<(), Fault> {
        self.wave.scc = scc;
        self.write(value)
    }

    /// Sets SCC to whether the value is not 0.
    fn write_nonzero<T: Scalar>(&mut self, value: T) -> Result<(), Fault> {
        self.write_scc((value, value != T::default()))
    }

    fn map1<A: Scalar, R: Scalar>(&mut self, f: impl Fn(A) -> R) -> Result<(), Fault> {
        self.write(f(self.source(0)?))
    }

    fn map2<A: Scalar, B: Scalar, R: Scalar>(
        &mut self,
        f: impl Fn(A, B) -> R,
    ) -> Result<(), Fault> {
        self.write(f(self.source(0)?, self.source(1)?))
    }

    /// SCC: whether the result is not 0.
    fn nonzero1<A: Scalar, R: Scalar>(&mut self, f: impl Fn(A) -> R) -> Result<(), Fault> {
        self.write_nonzero(f(self.source(0)?))
    }

    /// SCC: whether the result is not 0.
    fn nonzero2<A: Scalar, B: Scalar, R: Scalar>(
        &mut self,
        f: impl Fn(A, B) -> R,
    ) -> Result<(), Fault> {
        self.write_nonzero(f(self.source(0)?, self.source(1)?))
    }

    /// The function returns the result and SCC.
    fn scc2<A: Scalar, B: Scalar, R: Scalar>(
        &mut self,
        f: impl Fn(A, B) -> (R, bool),
    ) -> Result<(), Fault> {
        self.write_scc(f(self.source(0)?, self.source(1)?))
    }

    /// The function of the destination's old value and the source.
    fn update<A: Scalar, R: Scalar>(&mut self, f: impl Fn(R, A) -> R) -> Result<(), Fault> {
        self.write(f(self.old()?, self.source(0)?))
    }

    fn compare1<A: Scalar>(&mut self, f: impl Fn(A) -> bool) -> Result<(), Fault> {
        self.wave.scc = f(self.source(0)?);
        Ok(())
    }

    fn compare2<A: Scalar, B: Scalar>(&mut self, f: impl Fn(A, B) -> bool) -> Result<(), Fault> {
        self.wave.scc = f(self.source(0)?, self.source(1)?);
        Ok(())
    }

    /// Combines source and EXEC. The destination gets the old EXEC.
    fn save_exec(&mut self, combine: impl Fn(u64, u64) -> u64) -> Result<(), Fault> {
        let (old, _) = self.combine_exec(combine)?;
        self.write_exec_mask(old)
    }

    /// Combines source and EXEC. The destination gets the new EXEC.
    fn write_exec(&mut self, combine: impl Fn(u64, u64) -> u64) -> Result<(), Fault> {
        let (_, new) = self.combine_exec(combine)?;
        self.write_exec_mask(new)
    }

    fn is_narrow(&self) -> bool {
        self.inst.spec.dst[0].bits(32) == 32
    }

    fn combine_exec(&mut self, combine: impl Fn(u64, u64) -> u64) -> Result<(u64, u64), Fault> {
        let (old, new);
        if self.is_narrow() {
            old = u64::from(self.wave.sgpr[126]);
            new = combine(u64::from(self.source::<u32>(0)?), old) & 0xffff_ffff;
            self.wave.sgpr[126] = new as u32;
        } else {
            old = self.wave.sgpr64(Operand::EXEC_LO);
            new = combine(self.source(0)?, old);
            self.wave.set_sgpr64(Operand::EXEC_LO, new);
        }
        self.wave.scc = new != 0;
        Ok((old, new))
    }

    fn write_exec_mask(&mut self, mask: u64) -> Result<(), Fault> {
        if self.is_narrow() {
            self.write(mask as u32)
        } else {
            self.write(mask)
        }
    }

    /// Moves a value. `from` and `to` are added to the numbers of the registers.
    fn move_relative<T: Scalar>(
        &mut self,
        from: Option<u32>,
        to: Option<u32>,
    ) -> Result<(), Fault> {
        let add = |reg, distance: Option<u32>| {
            distance.map_or(Ok(reg), |distance| indexed(reg, distance, T::REGISTERS))
        };
        let from = add(self.inst.src[0], from)?;
        let to = add(self.inst.dst, to)?;
        T::read(self.wave, self.inst, from)?.write(self.wave, to)
    }

    /// Jumps to a distance in words, from the next instruction.
    fn branch(&mut self) {
        let distance = i64::from(self.inst.imm) * 4;
        self.wave.pc = self.wave.pc.wrapping_add_signed(distance);
    }
}

/// The SGPR `reg` plus `m0`. Fails if one of the `count` SGPRs that start there does not exist.
fn indexed(reg: Operand, m0: u32, count: usize) -> Result<Operand, Fault> {
    let n = reg.as_sgpr().ok_or(Fault::Unknown)? as u64 + u64::from(m0);
    if n + count as u64 > 106 {
        return Err(Fault::Sgpr(n as usize + count - 1));
    }
    Ok(Operand(n as u16))
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

/// The lowest `width` bits.
fn field(value: u64, width: u32) -> u64 {
    match width {
        0..64 => value & ((1 << width) - 1),
        _ => value,
    }
}

/// The lowest `width` bits, sign-extended.
fn signed_field(value: i64, width: u32) -> i64 {
    match width {
        0 => 0,
        1..64 => value << (64 - width) >> (64 - width),
        _ => value,
    }
}

fn shifted_add(a: u32, by: u32, b: u32) -> (u32, bool) {
    let sum = (u64::from(a) << by) + u64::from(b);
    (sum as u32, sum >> 32 != 0)
}

pub fn sop1(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let scc = wave.scc;
    let m0 = wave.sgpr[125];
    let mut salu = Salu { wave, inst };
    match inst.op {
        S_MOV_B32 => salu.map1(|a: u32| a),
        S_MOV_B64 => salu.map1(|a: u64| a),
        S_CMOV_B32 => salu.update(|old: u32, a: u32| if scc { a } else { old }),
        S_CMOV_B64 => salu.update(|old: u64, a: u64| if scc { a } else { old }),
        S_MOVRELS_B32 => salu.move_relative::<u32>(Some(m0), None),
        S_MOVRELS_B64 => salu.move_relative::<u64>(Some(m0), None),
        S_MOVRELD_B32 => salu.move_relative::<u32>(None, Some(m0)),
        S_MOVRELD_B64 => salu.move_relative::<u64>(None, Some(m0)),
        S_MOVRELSD_2_B32 => salu.move_relative::<u32>(Some(m0 & 0x3ff), Some(m0 >> 16 & 0x3ff)),

        S_BREV_B32 => salu.map1(u32::reverse_bits),
        S_BREV_B64 => salu.map1(u64::reverse_bits),
        S_FF0_I32_B32 => salu.map1(|a: u32| count_or_minus_one(a.trailing_ones(), 32)),
        S_FF0_I32_B64 => salu.map1(|a: u64| count_or_minus_one(a.trailing_ones(), 64)),
        S_CTZ_I32_B32 => salu.map1(|a: u32| count_or_minus_one(a.trailing_zeros(), 32)),
        S_CTZ_I32_B64 => salu.map1(|a: u64| count_or_minus_one(a.trailing_zeros(), 64)),
        S_CLZ_I32_U32 => salu.map1(|a: u32| count_or_minus_one(a.leading_zeros(), 32)),
        S_CLZ_I32_U64 => salu.map1(|a: u64| count_or_minus_one(a.leading_zeros(), 64)),
        S_CLS_I32 => salu.map1(|a: i32| sign_bits(i64::from(a), 32)),
        S_CLS_I32_I64 => salu.map1(|a: i64| sign_bits(a, 64)),
        S_SEXT_I32_I8 => salu.map1(|a: u32| i32::from(a as i8)),
        S_SEXT_I32_I16 => salu.map1(|a: u32| i32::from(a as i16)),
        S_BITSET0_B32 => salu.update(|old: u32, bit: u32| old & !(1 << (bit & 31))),
        S_BITSET0_B64 => salu.update(|old: u64, bit: u32| old & !(1 << (bit & 63))),
        S_BITSET1_B32 => salu.update(|old: u32, bit: u32| old | 1 << (bit & 31)),
        S_BITSET1_B64 => salu.update(|old: u64, bit: u32| old | 1 << (bit & 63)),
        S_BITREPLICATE_B64_B32 => salu.map1(replicate),
        S_ABS_I32 => salu.nonzero1(i32::wrapping_abs),
        S_BCNT0_I32_B32 => salu.nonzero1(u32::count_zeros),
        S_BCNT0_I32_B64 => salu.nonzero1(u64::count_zeros),
        S_BCNT1_I32_B32 => salu.nonzero1(u32::count_ones),
        S_BCNT1_I32_B64 => salu.nonzero1(u64::count_ones),
        S_QUADMASK_B32 => salu.nonzero1(|a: u32| quads(u64::from(a)) as u32),
        S_QUADMASK_B64 => salu.nonzero1(quads),
        S_WQM_B32 => salu.nonzero1(|a: u32| whole_quads(u64::from(a)) as u32),
        S_WQM_B64 => salu.nonzero1(whole_quads),
        S_NOT_B32 => salu.nonzero1(|a: u32| !a),
        S_NOT_B64 => salu.nonzero1(|a: u64| !a),

        S_AND_SAVEEXEC_B32 | S_AND_SAVEEXEC_B64 => salu.save_exec(|s, e| s & e),
        S_OR_SAVEEXEC_B32 | S_OR_SAVEEXEC_B64 => salu.save_exec(|s, e| s | e),
        S_XOR_SAVEEXEC_B32 | S_XOR_SAVEEXEC_B64 => salu.save_exec(|s, e| s ^ e),
        S_NAND_SAVEEXEC_B32 | S_NAND_SAVEEXEC_B64 => salu.save_exec(|s, e| !(s & e)),
        S_NOR_SAVEEXEC_B32 | S_NOR_SAVEEXEC_B64 => salu.save_exec(|s, e| !(s | e)),
        S_XNOR_SAVEEXEC_B32 | S_XNOR_SAVEEXEC_B64 => salu.save_exec(|s, e| !(s ^ e)),
        S_AND_NOT0_SAVEEXEC_B32 | S_AND_NOT0_SAVEEXEC_B64 => salu.save_exec(|s, e| !s & e),
        S_OR_NOT0_SAVEEXEC_B32 | S_OR_NOT0_SAVEEXEC_B64 => salu.save_exec(|s, e| !s | e),
        S_AND_NOT1_SAVEEXEC_B32 | S_AND_NOT1_SAVEEXEC_B64 => salu.save_exec(|s, e| s & !e),
        S_OR_NOT1_SAVEEXEC_B32 | S_OR_NOT1_SAVEEXEC_B64 => salu.save_exec(|s, e| s | !e),
        S_AND_NOT0_WREXEC_B32 | S_AND_NOT0_WREXEC_B64 => salu.write_exec(|s, e| !s & e),
        S_AND_NOT1_WREXEC_B32 | S_AND_NOT1_WREXEC_B64 => salu.write_exec(|s, e| s & !e),

        // Only the barrier of the workgroup, -1, and only if the wave does not have to wait for it first.
        S_BARRIER_SIGNAL
            if inst.src[0].0 == 193
                && salu.wave.barriers_signalled == salu.wave.barriers_passed =>
        {
            salu.wave.barriers_signalled += 1;
            Ok(())
        }
        S_SET_GPR_IDX_IDX => {
            salu.wave.sgpr[125] = m0 & !0xff | salu.source::<u32>(0)? & 0xff;
            Ok(())
        }
        S_GETPC_B64 => salu.write(salu.wave.pc),
        S_SETPC_B64 => {
            salu.wave.pc = salu.source(0)?;
            Ok(())
        }
        S_SWAPPC_B64 => {
            let target = salu.source(0)?;
            salu.write(salu.wave.pc)?;
            salu.wave.pc = target;
            Ok(())
        }
        // MSG_RTN_GET_REALTIME
        S_SENDMSG_RTN_B64 if inst.imm == 131 => salu.write(clock_ticks()),
        S_SENDMSG_RTN_B32 if inst.imm == 131 => salu.write(clock_ticks() as u32),
        _ => Err(Fault::Unknown),
    }
}

pub fn sop2(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let scc = wave.scc;
    let carry = u32::from(scc);
    let mut salu = Salu { wave, inst };
    match inst.op {
        S_ADD_U32 => salu.scc2(u32::overflowing_add),
        S_SUB_U32 => salu.scc2(u32::overflowing_sub),
        S_ADD_I32 => salu.scc2(i32::overflowing_add),
        S_SUB_I32 => salu.scc2(i32::overflowing_sub),
        S_ADDC_U32 => salu.scc2(|a: u32, b: u32| {
            let sum = u64::from(a) + u64::from(b) + u64::from(carry);
            (sum as u32, sum >> 32 != 0)
        }),
        S_SUBB_U32 => salu.scc2(|a: u32, b: u32| {
            let under = u64::from(b) + u64::from(carry) > u64::from(a);
            (a.wrapping_sub(b).wrapping_sub(carry), under)
        }),
        S_ABSDIFF_I32 => salu.nonzero2(|a: i32, b: i32| a.wrapping_sub(b).wrapping_abs()),
        S_LSHL1_ADD_U32 => salu.scc2(|a, b| shifted_add(a, 1, b)),
        S_LSHL2_ADD_U32 => salu.scc2(|a, b| shifted_add(a, 2, b)),
        S_LSHL3_ADD_U32 => salu.scc2(|a, b| shifted_add(a, 3, b)),
        S_LSHL4_ADD_U32 => salu.scc2(|a, b| shifted_add(a, 4, b)),
        S_ADD_NC_U64 => salu.map2(u64::wrapping_add),
        S_SUB_NC_U64 => salu.map2(u64::wrapping_sub),
        S_MUL_U64 => salu.map2(u64::wrapping_mul),
        S_MUL_I32 => salu.map2(i32::wrapping_mul),
        S_MUL_HI_U32 => salu.map2(|a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        S_MUL_HI_I32 => salu.map2(|a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32),

        S_MIN_I32 => salu.scc2(|a: i32, b: i32| (a.min(b), a < b)),
        S_MIN_U32 => salu.scc2(|a: u32, b: u32| (a.min(b), a < b)),
        S_MAX_I32 => salu.scc2(|a: i32, b: i32| (a.max(b), a >= b)),
        S_MAX_U32 => salu.scc2(|a: u32, b: u32| (a.max(b), a >= b)),
        S_CSELECT_B32 => salu.map2(|a: u32, b: u32| if scc { a } else { b }),
        S_CSELECT_B64 => salu.map2(|a: u64, b: u64| if scc { a } else { b }),

        S_LSHL_B32 => salu.nonzero2(|a: u32, b: u32| a << (b & 31)),
        S_LSHL_B64 => salu.nonzero2(|a: u64, b: u32| a << (b & 63)),
        S_LSHR_B32 => salu.nonzero2(|a: u32, b: u32| a >> (b & 31)),
        S_LSHR_B64 => salu.nonzero2(|a: u64, b: u32| a >> (b & 63)),
        S_ASHR_I32 => salu.nonzero2(|a: i32, b: u32| a >> (b & 31)),
        S_ASHR_I64 => salu.nonzero2(|a: i64, b: u32| a >> (b & 63)),

        S_AND_B32 => salu.nonzero2(|a: u32, b: u32| a & b),
        S_AND_B64 => salu.nonzero2(|a: u64, b: u64| a & b),
        S_OR_B32 => salu.nonzero2(|a: u32, b: u32| a | b),
        S_OR_B64 => salu.nonzero2(|a: u64, b: u64| a | b),
        S_XOR_B32 => salu.nonzero2(|a: u32, b: u32| a ^ b),
        S_XOR_B64 => salu.nonzero2(|a: u64, b: u64| a ^ b),
        S_NAND_B32 => salu.nonzero2(|a: u32, b: u32| !(a & b)),
        S_NAND_B64 => salu.nonzero2(|a: u64, b: u64| !(a & b)),
        S_NOR_B32 => salu.nonzero2(|a: u32, b: u32| !(a | b)),
        S_NOR_B64 => salu.nonzero2(|a: u64, b: u64| !(a | b)),
        S_XNOR_B32 => salu.nonzero2(|a: u32, b: u32| !(a ^ b)),
        S_XNOR_B64 => salu.nonzero2(|a: u64, b: u64| !(a ^ b)),
        S_AND_NOT1_B32 => salu.nonzero2(|a: u32, b: u32| a & !b),
        S_AND_NOT1_B64 => salu.nonzero2(|a: u64, b: u64| a & !b),
        S_OR_NOT1_B32 => salu.nonzero2(|a: u32, b: u32| a | !b),
        S_OR_NOT1_B64 => salu.nonzero2(|a: u64, b: u64| a | !b),

        S_BFE_U32 => {
            salu.nonzero2(|a: u32, b: u32| field(u64::from(a >> (b & 31)), b >> 16 & 127) as u32)
        }
        S_BFE_I32 => salu.nonzero2(|a: i32, b: u32| {
            signed_field(i64::from(a >> (b & 31)), b >> 16 & 127) as i32
        }),
        S_BFE_U64 => salu.nonzero2(|a: u64, b: u32| field(a >> (b & 63), b >> 16 & 127)),
        S_BFE_I64 => salu.nonzero2(|a: i64, b: u32| signed_field(a >> (b & 63), b >> 16 & 127)),
        S_BFM_B32 => salu.map2(|a: u32, b: u32| ((1u32 << (a & 31)) - 1) << (b & 31)),
        S_BFM_B64 => salu.map2(|a: u32, b: u32| ((1u64 << (a & 63)) - 1) << (b & 63)),
        S_PACK_LL_B32_B16 => salu.map2(|a: u32, b: u32| b << 16 | a & 0xffff),
        S_PACK_LH_B32_B16 => salu.map2(|a: u32, b: u32| b & 0xffff_0000 | a & 0xffff),
        S_PACK_HH_B32_B16 => salu.map2(|a: u32, b: u32| b & 0xffff_0000 | a >> 16),
        S_PACK_HL_B32_B16 => salu.map2(|a: u32, b: u32| b << 16 | a >> 16),
        _ => Err(Fault::Unknown),
    }
}

pub fn sopc(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let mut salu = Salu { wave, inst };
    match inst.op {
        S_CMP_EQ_I32 | S_CMP_EQ_U32 => salu.compare2(|a: u32, b: u32| a == b),
        S_CMP_LG_I32 | S_CMP_LG_U32 => salu.compare2(|a: u32, b: u32| a != b),
        S_CMP_GT_I32 => salu.compare2(|a: i32, b: i32| a > b),
        S_CMP_GE_I32 => salu.compare2(|a: i32, b: i32| a >= b),
        S_CMP_LT_I32 => salu.compare2(|a: i32, b: i32| a < b),
        S_CMP_LE_I32 => salu.compare2(|a: i32, b: i32| a <= b),
        S_CMP_GT_U32 => salu.compare2(|a: u32, b: u32| a > b),
        S_CMP_GE_U32 => salu.compare2(|a: u32, b: u32| a >= b),
        S_CMP_LT_U32 => salu.compare2(|a: u32, b: u32| a < b),
        S_CMP_LE_U32 => salu.compare2(|a: u32, b: u32| a <= b),
        S_CMP_EQ_U64 => salu.compare2(|a: u64, b: u64| a == b),
        S_CMP_LG_U64 => salu.compare2(|a: u64, b: u64| a != b),
        S_BITCMP0_B32 => salu.compare2(|a: u32, b: u32| a >> (b & 31) & 1 == 0),
        S_BITCMP1_B32 => salu.compare2(|a: u32, b: u32| a >> (b & 31) & 1 == 1),
        S_BITCMP0_B64 => salu.compare2(|a: u64, b: u32| a >> (b & 63) & 1 == 0),
        S_BITCMP1_B64 => salu.compare2(|a: u64, b: u32| a >> (b & 63) & 1 == 1),
        S_SET_GPR_IDX_ON => {
            let index = salu.source::<u32>(0)? & 0xff;
            let mode = (inst.imm as u32 & 15) << 12;
            salu.wave.mode |= GPR_IDX_EN;
            salu.wave.sgpr[125] = salu.wave.sgpr[125] & !0xf0ff | index | mode;
            Ok(())
        }
        _ => Err(Fault::Unknown),
    }
}

/// Hardware registers by number (guides, "Hardware registers").
mod hwreg {
    pub const MODE: u32 = 1;
    /// Of gfx9.
    pub const HW_ID: u32 = 4;
    /// Of gfx942.
    pub const XCC_ID: u32 = 20;
    /// These are of gfx11 and gfx12.
    pub const HW_ID1: u32 = 23;
    pub const HW_ID2: u32 = 24;
    /// The low half in gfx12.
    pub const SHADER_CYCLES: u32 = 29;
    /// The high half, of gfx12.
    pub const SHADER_CYCLES_HI: u32 = 30;
}

/// The bit of MODE of gfx9 that enables the relative register numbers of VALU instructions.
pub const GPR_IDX_EN: u32 = 1 << 27;

/// The bits of MODE that the model supports: rounding, denormals, DX10_CLAMP, IEEE, FP16_OVFL.
const MODE_BITS: u32 = 0x80_03ff;

/// MODE of gfx12 does not have the bits of DX10_CLAMP and IEEE.
const GFX12_MODE_BITS: u32 = 0x80_00ff;

fn hwreg_fields(imm: i32) -> (u32, u32, u32) {
    let imm = imm as u32;
    let mask = u32::MAX >> (31 - (imm >> 11 & 31));
    (imm & 63, imm >> 6 & 31, mask)
}

fn hwreg_value(wave: &Wave, inst: &Inst) -> Result<u32, Fault> {
    let (register, offset, mask) = hwreg_fields(inst.imm);
    let value = match (register, inst.arch) {
        (hwreg::MODE, Architecture::Gfx12) => wave.mode & GFX12_MODE_BITS,
        (hwreg::MODE, _) => wave.mode,
        (hwreg::HW_ID, Architecture::Gfx90a | Architecture::Gfx942) => wave.hw_id,
        (hwreg::XCC_ID, Architecture::Gfx942) => wave.xcc_id,
        (hwreg::HW_ID1, Architecture::Gfx11 | Architecture::Gfx12) => wave.hw_id,
        // The queue, always the first one.
        (hwreg::HW_ID2, Architecture::Gfx11 | Architecture::Gfx12) => 0,
        (hwreg::SHADER_CYCLES, Architecture::Gfx12) => clock_ticks() as u32,
        (hwreg::SHADER_CYCLES_HI, Architecture::Gfx12) => (clock_ticks() >> 32) as u32,
        (hwreg::SHADER_CYCLES, Architecture::Gfx11) => clock_ticks() as u32 & 0xf_ffff,
        _ => return Err(Fault::Unknown),
    };
    Ok(value >> offset & mask)
}

fn set_hwreg(wave: &mut Wave, inst: &Inst, value: u32) -> Result<(), Fault> {
    let (register, offset, mask) = hwreg_fields(inst.imm);
    let gfx12 = inst.arch == Architecture::Gfx12;
    let known = if gfx12 { GFX12_MODE_BITS } else { MODE_BITS };
    let mask = mask << offset;
    if register != hwreg::MODE || (value << offset) & mask & !known != 0 {
        return Err(Fault::Unknown);
    }
    let mask = if gfx12 { mask & known } else { mask };
    wave.mode = wave.mode & !mask | value << offset & mask;
    Ok(())
}

pub fn sopk(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    use Op::*;
    let imm = inst.imm;
    let unsigned = imm as u16 as u32;
    let scc = wave.scc;
    let mut salu = Salu { wave, inst };
    match inst.op {
        S_VERSION | S_WAITCNT_VSCNT | S_WAITCNT_VMCNT | S_WAITCNT_EXPCNT | S_WAITCNT_LGKMCNT => {
            Ok(())
        }
        S_CMOVK_I32 if !scc => Ok(()),
        S_MOVK_I32 | S_CMOVK_I32 => salu.write(imm),
        S_CMPK_EQ_I32 => salu.compare1(|a: i32| a == imm),
        S_CMPK_LG_I32 => salu.compare1(|a: i32| a != imm),
        S_CMPK_GT_I32 => salu.compare1(|a: i32| a > imm),
        S_CMPK_GE_I32 => salu.compare1(|a: i32| a >= imm),
        S_CMPK_LT_I32 => salu.compare1(|a: i32| a < imm),
        S_CMPK_LE_I32 => salu.compare1(|a: i32| a <= imm),
        S_CMPK_EQ_U32 => salu.compare1(|a: u32| a == unsigned),
        S_CMPK_LG_U32 => salu.compare1(|a: u32| a != unsigned),
        S_CMPK_GT_U32 => salu.compare1(|a: u32| a > unsigned),
        S_CMPK_GE_U32 => salu.compare1(|a: u32| a >= unsigned),
        S_CMPK_LT_U32 => salu.compare1(|a: u32| a < unsigned),
        S_CMPK_LE_U32 => salu.compare1(|a: u32| a <= unsigned),
        S_ADDK_I32 => salu.write_scc(salu.old::<i32>()?.overflowing_add(imm)),
        S_MULK_I32 => salu.write(salu.old::<i32>()?.wrapping_mul(imm)),
        S_GETREG_B32 => salu.write(hwreg_value(salu.wave, inst)?),
        S_SETREG_B32 => set_hwreg(salu.wave, inst, scalar32(salu.wave, inst, inst.src[0])?),
        S_SETREG_IMM32_B32 => set_hwreg(salu.wave, inst, inst.literal),
        S_CALL_B64 => {
            salu.write(salu.wave.pc)?;
            salu.branch();
            Ok(())
        }
        _ => Err(Fault::Unknown),
    }
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
        | S_WAIT_LOADCNT
        | S_WAIT_STORECNT
        | S_WAIT_SAMPLECNT
        | S_WAIT_BVHCNT
        | S_WAIT_EXPCNT
        | S_WAIT_DSCNT
        | S_WAIT_KMCNT
        | S_WAIT_LOADCNT_DSCNT
        | S_WAIT_STORECNT_DSCNT
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
        S_BARRIER => {
            wave.barriers_signalled += 1;
            wave.barriers_passed += 1;
            return Ok(Flow::Barrier);
        }
        // The barrier of the workgroup, which the wave must have signalled.
        S_BARRIER_WAIT if inst.imm == -1 && wave.barriers_passed < wave.barriers_signalled => {
            wave.barriers_passed += 1;
            return Ok(Flow::Barrier);
        }
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
        Salu { wave, inst }.branch();
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
    fn operations_that_no_other_test_executes() {
        use Op::*;
        assert!(run(S_CMP_LE_I32, 0xffff_ffff, 0, false, sopc).1);
        assert!(!run(S_CMP_LE_I32, 1, 0, true, sopc).1);
        let mut wave = wave(64);
        let mut mul = inst(S_MULK_I32, Encoding::Sopk);
        (mul.dst, mul.imm) = (Operand(4), -3);
        wave.sgpr[4] = 7;
        assert_eq!(sopk(&mut wave, &mul), Ok(()));
        assert_eq!(wave.sgpr[4] as i32, -21);
        wave.set_exec(0xff0f);
        wave.set_sgpr64(Operand(0), 0x0fff);
        let mut mask = inst(S_AND_NOT1_WREXEC_B64, Encoding::Sop1);
        (mask.dst, mask.src[0]) = (Operand(4), Operand(0));
        assert_eq!(sop1(&mut wave, &mask), Ok(()));
        assert_eq!((wave.exec(), wave.sgpr64(Operand(4))), (0xf0, 0xf0));
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
    fn mode_of_gfx12_has_neither_dx10_clamp_nor_ieee() {
        let mut wave = wave(32);
        wave.mode = 0x1f5;
        let mut inst = inst(Op::S_SETREG_IMM32_B32, Encoding::Sopk);
        inst.arch = Architecture::Gfx12;
        inst.dst = Operand(4);
        // hwreg(HW_REG_WAVE_MODE)
        inst.imm = i32::from((1 | 31 << 11) as i16);
        inst.literal = 0xa0;
        sopk(&mut wave, &inst).unwrap();
        assert_eq!(wave.mode, 0x1a0);
        inst.op = Op::S_GETREG_B32;
        sopk(&mut wave, &inst).unwrap();
        assert_eq!(wave.sgpr[4], 0xa0);
        inst.op = Op::S_SETREG_IMM32_B32;
        inst.literal = 0x1a0;
        assert_eq!(sopk(&mut wave, &inst), Err(Fault::Unknown));
    }

    #[test]
    fn identification_registers_of_other_architectures() {
        for (arch, register, expected) in [
            (Architecture::Gfx90a, 4, Ok(0x2105)),
            (Architecture::Gfx942, 4, Ok(0x2105)),
            (Architecture::Gfx942, 20, Ok(1)),
            (Architecture::Gfx90a, 20, Err(Fault::Unknown)),
            (Architecture::Gfx942, 23, Err(Fault::Unknown)),
            (Architecture::Gfx12, 23, Ok(0x2105)),
            (Architecture::Gfx12, 24, Ok(0)),
            (Architecture::Gfx12, 4, Err(Fault::Unknown)),
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
