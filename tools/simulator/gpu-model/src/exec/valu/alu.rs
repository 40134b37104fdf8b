//! Access to the registers: reads operands for all lanes at once, and writes results to the lanes that EXEC enables.

use half::f16;

use super::dpp::Permutation;
use super::float::Float;
use super::mode::{Mode, Round};
use super::sdwa::{insert, select};
use crate::exec::operand::scalar32;
use crate::fault::Fault;
use crate::isa::{Dpp, Encoding, Inst, Kind, Operand};
use crate::wave::{VReg, Wave};

/// A value per lane. A wave32 uses the first 32.
pub type Lanes<T> = [T; 64];

/// One instruction that executes on one wave.
pub struct Alu<'a> {
    pub wave: &'a mut Wave,
    pub inst: &'a Inst,
    pub src: [Operand; 3],
    pub dst: Operand,
    pub opsel: u8,
    pub mode: Mode,
    /// The lanes that write results: EXEC without the lanes that DPP disables.
    pub active: u64,
    /// The CLAMP bit. An operation that implements it itself resets it.
    pub clamp: bool,
    permutation: Option<Permutation>,
}

impl<'a> Alu<'a> {
    #[inline]
    pub fn new(wave: &'a mut Wave, inst: &'a Inst) -> Result<Self, Fault> {
        let mut active = wave.exec();
        let mut permutation = None;
        if inst.dpp != Dpp::None {
            let (p, written) = Permutation::new(inst.arch, inst.dpp, active, wave.lanes)?;
            permutation = Some(p);
            active &= written;
        }
        Ok(Alu {
            src: inst.src,
            dst: inst.dst,
            opsel: inst.opsel,
            mode: Mode(wave.mode),
            active,
            clamp: inst.clamp,
            permutation,
            wave,
            inst,
        })
    }

    #[inline]
    pub fn lanes(&self) -> usize {
        self.wave.lanes.min(64)
    }

    /// The mask of all lanes of the wave.
    pub fn all(&self) -> u64 {
        !0 >> (64 - self.lanes())
    }

    pub fn has_dpp(&self) -> bool {
        self.permutation.is_some()
    }

    /// Returns and resets the CLAMP bit, for operations that implement it themselves. Integer operations saturate if it is
    /// set.
    pub fn take_clamp(&mut self) -> bool {
        std::mem::take(&mut self.clamp)
    }

    pub fn round<T: Float>(&self) -> Round {
        self.mode.round(T::WIDE_MODE)
    }

    /// Makes the destination the third source (`v_fmac` and similar operations).
    pub fn accumulate(&mut self) {
        self.src[2] = self.dst;
        self.opsel = self.opsel & 0b1011 | (self.opsel >> 1 & 0b0100);
    }

    #[inline]
    pub fn vgpr(&self, n: usize) -> Result<&VReg, Fault> {
        self.wave.vgpr.get(n).ok_or(Fault::Vgpr(n))
    }

    #[inline]
    pub fn vgpr_mut(&mut self, n: usize) -> Result<&mut VReg, Fault> {
        self.wave.vgpr.get_mut(n).ok_or(Fault::Vgpr(n))
    }

    /// The number of the destination VGPR.
    #[inline]
    pub fn destination(&self) -> Result<usize, Fault> {
        self.dst.as_vgpr().ok_or(Fault::Unknown)
    }

    /// NEG and ABS of source `i`.
    pub fn modifiers(&self, i: usize) -> (bool, bool) {
        (self.inst.neg >> i & 1 != 0, self.inst.abs >> i & 1 != 0)
    }

    /// OP_SEL of source `i`, or of the destination (3).
    pub fn high_half(&self, i: usize) -> bool {
        self.opsel >> i & 1 != 0
    }

    /// A 32-bit source. DPP is applied, but no other modifier.
    pub fn source32<'b>(
        &'b self,
        i: usize,
        buffer: &'b mut Lanes<u32>,
    ) -> Result<&'b Lanes<u32>, Fault> {
        match self.src[i].as_vgpr() {
            Some(n) => {
                let register = self.vgpr(n)?;
                match (&self.permutation, &self.inst.sdwa) {
                    (None, None) => Ok(register),
                    (Some(permutation), _) if i == 0 => {
                        permutation.apply(register, buffer);
                        Ok(buffer)
                    }
                    (_, Some(sdwa)) if i < 2 => {
                        for (part, word) in buffer.iter_mut().zip(register) {
                            *part = select(sdwa, i, *word);
                        }
                        Ok(buffer)
                    }
                    _ => Ok(register),
                }
            }
            None => {
                let word = scalar32(self.wave, self.inst, self.src[i])?;
                buffer.fill(match &self.inst.sdwa {
                    Some(sdwa) if i < 2 => select(sdwa, i, word),
                    _ => word,
                });
                Ok(buffer)
            }
        }
    }

    /// A 16-bit source: half of a register, or a 16-bit constant.
    pub fn source16(&self, i: usize, float: bool, buffer: &mut Lanes<u32>) -> Result<(), Fault> {
        let shift = if self.high_half(i) { 16 } else { 0 };
        let inline = (128..=248).contains(&self.src[i].0);
        if inline && shift != 0 {
            return Err(Fault::Unknown);
        }
        if inline && self.src[i].0 >= 240 {
            // An inline float has the width of the operand. Integer operands cannot be 16-bit floats.
            if !float {
                return Err(Fault::Unknown);
            }
            buffer.fill(u32::from(inline_f16(self.src[i]).to_bits()));
            return Ok(());
        }
        let mut words = [0; 64];
        let words = self.source32(i, &mut words)?;
        for (half, word) in buffer.iter_mut().zip(words) {
            *half = word >> shift & 0xffff;
        }
        Ok(())
    }

    /// A 64-bit source.
    pub fn source64(
        &self,
        i: usize,
        literal: Literal64,
        buffer: &mut Lanes<u64>,
    ) -> Result<(), Fault> {
        // A 64-bit operand with DPP: only gfx9.
        if self.has_dpp() && !self.inst.arch.is_gfx9() || self.high_half(i) {
            return Err(Fault::Unknown);
        }
        let Some(n) = self.src[i].as_vgpr() else {
            buffer.fill(self.scalar64(self.src[i], literal)?);
            return Ok(());
        };
        let (mut low, mut high) = (self.vgpr(n)?, self.vgpr(n + 1)?);
        let mut permuted = [[0; 64]; 2];
        if let (Some(permutation), 0) = (&self.permutation, i) {
            let [permuted_low, permuted_high] = &mut permuted;
            permutation.apply(low, permuted_low);
            permutation.apply(high, permuted_high);
            (low, high) = (permuted_low, permuted_high);
        }
        for (wide, (low, high)) in buffer.iter_mut().zip(low.iter().zip(high)) {
            *wide = u64::from(*low) | u64::from(*high) << 32;
        }
        Ok(())
    }

    fn scalar64(&self, operand: Operand, literal: Literal64) -> Result<u64, Fault> {
        Ok(match operand.0 {
            0..=127 if operand.0.is_multiple_of(2) => self.wave.sgpr64(operand),
            128..=208 => i64::from(scalar32(self.wave, self.inst, operand)? as i32) as u64,
            240..=247 => {
                f64::from(f32::from_bits(scalar32(self.wave, self.inst, operand)?)).to_bits()
            }
            248 => 0x3fc4_5f30_6dc9_c882,
            255 => match literal {
                Literal64::High => u64::from(self.inst.literal) << 32,
                Literal64::Signed => i64::from(self.inst.literal as i32) as u64,
                Literal64::Unsigned => u64::from(self.inst.literal),
            },
            _ => return Err(Fault::Unknown),
        })
    }

    /// The lane mask in source `i`: a scalar register, or a pair in a wave64.
    #[inline]
    pub fn mask_source(&self, i: usize) -> Result<u64, Fault> {
        self.check_mask(self.src[i])?;
        Ok(self.wave.mask(self.src[i]))
    }

    /// Writes a lane mask. The bits of inactive lanes are 0.
    #[inline]
    pub fn store_mask(&mut self, dst: Operand, bits: u64) -> Result<(), Fault> {
        self.check_mask(dst)?;
        self.wave.set_mask(dst, bits & self.active);
        Ok(())
    }

    fn check_mask(&self, operand: Operand) -> Result<(), Fault> {
        let pair = self.wave.lanes == 64 && operand != Operand::NULL;
        if operand.0 > 127 || pair && !operand.0.is_multiple_of(2) {
            return Err(Fault::Unknown);
        }
        Ok(())
    }

    /// Writes a 32-bit result.
    #[inline]
    pub fn write32(&mut self, lanes: &Lanes<u32>) -> Result<(), Fault> {
        if self.high_half(3) {
            return Err(Fault::Unknown);
        }
        let Some(n) = self.dst.as_vgpr() else {
            return self.write_scalar_float(lanes[0]);
        };
        if self.inst.sdwa.is_some() {
            return self.write_part(n, *lanes);
        }
        self.write_register(n, lanes)
    }

    /// Writes a float to the scalar destination of an operation whose sources are scalar, too: all lanes are equal. The high half of
    /// an f16 is 0 (RDNA4 guide, "SALU Floating Point").
    #[cold]
    fn write_scalar_float(&mut self, value: u32) -> Result<(), Fault> {
        let kind = self.inst.spec.dst[0];
        let is_scalar = self.inst.enc == Encoding::ScalarFloat;
        if !is_scalar && !matches!(kind, Kind::SF16 | Kind::SF32) {
            return Err(Fault::Unknown);
        }
        self.write_scalar(value)
    }

    /// Writes the scalar destination.
    pub fn write_scalar(&mut self, value: u32) -> Result<(), Fault> {
        if self.dst == Operand::NULL {
            return Ok(());
        }
        let n = self.dst.as_sgpr().ok_or(Fault::Unknown)?;
        self.wave.sgpr[n] = value;
        Ok(())
    }

    /// Writes the part of the destination that SDWA selects.
    fn write_part(&mut self, n: usize, mut lanes: Lanes<u32>) -> Result<(), Fault> {
        let sdwa = self.inst.sdwa.as_ref().ok_or(Fault::Unknown)?;
        insert(sdwa, &mut lanes, self.vgpr(n)?);
        self.write_register(n, &lanes)
    }

    /// Writes the active lanes of a register.
    pub fn write_register(&mut self, n: usize, lanes: &Lanes<u32>) -> Result<(), Fault> {
        let (active, all, count) = (self.active, self.all(), self.lanes());
        let register = self.vgpr_mut(n)?;
        if active == all {
            register[..count].copy_from_slice(&lanes[..count]);
        } else {
            blend(register, lanes, active);
        }
        Ok(())
    }

    /// Writes a 16-bit result to one half of the destination. In gfx9, instructions without OP_SEL set the other half to 0.
    pub fn write16(&mut self, lanes: &mut Lanes<u32>) -> Result<(), Fault> {
        let high = self.high_half(3);
        let Some(n) = self.dst.as_vgpr() else {
            return self.write_scalar_float(lanes[0] & 0xffff);
        };
        if self.inst.arch.is_gfx9() && !self.inst.spec.keeps_other_half() {
            for lane in lanes.iter_mut() {
                *lane &= 0xffff;
            }
            if self.inst.sdwa.is_some() {
                return self.write_part(n, *lanes);
            }
            return self.write_register(n, lanes);
        }
        for (new, old) in lanes.iter_mut().zip(self.vgpr(n)?) {
            *new = if high {
                *new << 16 | old & 0xffff
            } else {
                *new & 0xffff | old & 0xffff_0000
            };
        }
        self.write_register(n, lanes)
    }

    /// Writes a 64-bit result.
    pub fn write64(&mut self, lanes: &Lanes<u64>) -> Result<(), Fault> {
        if self.high_half(3) {
            return Err(Fault::Unknown);
        }
        let n = self.destination()?;
        self.vgpr(n + 1)?;
        for (n, shift) in [(n, 0), (n + 1, 32)] {
            let mut words = [0; 64];
            for (word, wide) in words.iter_mut().zip(lanes) {
                *word = (wide >> shift) as u32;
            }
            self.write_register(n, &words)?;
        }
        Ok(())
    }
}

/// How a 32-bit literal becomes a 64-bit operand.
#[derive(Clone, Copy)]
pub enum Literal64 {
    High,
    Signed,
    Unsigned,
}

/// The inline float constants 240 to 248 as f16.
pub fn inline_f16(operand: Operand) -> f16 {
    const BITS: [u16; 9] = [
        0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118,
    ];
    f16::from_bits(BITS[usize::from(operand.0) - 240])
}

fn blend(register: &mut VReg, lanes: &Lanes<u32>, active: u64) {
    let halves = register.as_chunks_mut::<32>().0.iter_mut();
    for (half, (old, new)) in halves.zip(lanes.as_chunks::<32>().0).enumerate() {
        let bits = (active >> (32 * half)) as u32;
        for i in 0..32 {
            old[i] = if bits & 1 << i != 0 { new[i] } else { old[i] };
        }
    }
}
