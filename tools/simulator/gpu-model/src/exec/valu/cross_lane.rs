//! Operations across lanes, and operations that select their registers by M0.

use super::alu::Alu;
use super::value::Moved;
use crate::exec::operand::scalar32;
use crate::fault::Fault;
use crate::isa::Operand;

impl Alu<'_> {
    fn m0(&self) -> usize {
        self.wave.sgpr[usize::from(Operand::M0.0)] as usize
    }

    /// The scalar source `i`.
    fn scalar_source(&self, i: usize) -> Result<u32, Fault> {
        scalar32(self.wave, self.inst, self.src[i])
    }

    fn source_register(&self) -> Result<usize, Fault> {
        self.src[0].as_vgpr().ok_or(Fault::Unknown)
    }

    pub fn readfirstlane(&mut self) -> Result<(), Fault> {
        let exec = self.wave.exec();
        let lane = if exec == 0 { 0 } else { exec.trailing_zeros() };
        let value = self.vgpr(self.source_register()?)?[lane as usize];
        self.write_scalar(value)
    }

    pub fn readlane(&mut self) -> Result<(), Fault> {
        let lane = self.scalar_source(1)? as usize % self.lanes();
        let value = self.vgpr(self.source_register()?)?[lane];
        self.write_scalar(value)
    }

    pub fn writelane(&mut self) -> Result<(), Fault> {
        let value = self.scalar_source(0)?;
        let lane = self.scalar_source(1)? as usize % self.lanes();
        let n = self.destination()?;
        self.vgpr_mut(n)?[lane] = value;
        Ok(())
    }

    pub fn permlane16(&mut self, other_row: bool) -> Result<(), Fault> {
        let select = u64::from(self.scalar_source(1)?) | u64::from(self.scalar_source(2)?) << 32;
        self.permlane(other_row, |lane| {
            (select >> (4 * (lane % 16)) & 15) as usize
        })
    }

    /// The second source of each lane is the number of the lane that it reads.
    pub fn permlane16_var(&mut self, other_row: bool) -> Result<(), Fault> {
        let select = *self.vgpr(self.src[1].as_vgpr().ok_or(Fault::Unknown)?)?;
        self.permlane(other_row, |lane| select[lane] as usize & 15)
    }

    /// Each lane reads a lane of its row of 16, or, if `other_row`, of the other row in its half. Bits 0 and 1 of OP_SEL are
    /// FI and BOUND_CTRL.
    fn permlane(&mut self, other_row: bool, select: impl Fn(usize) -> usize) -> Result<(), Fault> {
        let (fetch_inactive, zero) = (self.high_half(0), self.high_half(1));
        if self.opsel & !0b11 != 0 || self.clamp {
            return Err(Fault::Unknown);
        }
        let exec = self.wave.exec();
        let from = *self.vgpr(self.source_register()?)?;
        let mut gathered = [0; 64];
        for (lane, gathered) in gathered.iter_mut().enumerate().take(self.lanes()) {
            let row = if other_row {
                (lane / 16) ^ 1
            } else {
                lane / 16
            };
            let source = row * 16 + select(lane);
            if fetch_inactive || exec >> source & 1 != 0 {
                *gathered = from[source];
            } else if !zero {
                self.active &= !(1 << lane);
            }
        }
        let n = self.destination()?;
        self.write_register(n, &gathered)
    }

    /// Exchanges the halves of a wave64. Does nothing in a wave32.
    pub fn permlane64(&mut self) -> Result<(), Fault> {
        if self.wave.lanes == 32 {
            return Ok(());
        }
        let mut exchanged = *self.vgpr(self.source_register()?)?;
        exchanged.rotate_left(32);
        let n = self.destination()?;
        self.write_register(n, &exchanged)
    }

    fn swap_registers(&mut self, a: usize, b: usize) -> Result<(), Fault> {
        let (in_a, in_b) = (*self.vgpr(a)?, *self.vgpr(b)?);
        self.write_register(a, &in_b)?;
        self.write_register(b, &in_a)
    }

    pub fn swap(&mut self) -> Result<(), Fault> {
        let (a, b) = (self.destination()?, self.source_register()?);
        self.swap_registers(a, b)
    }

    pub fn swap_halves(&mut self) -> Result<(), Fault> {
        let (a, b) = (self.destination()?, self.source_register()?);
        let shift = |high| if high { 16 } else { 0 };
        let (at_a, at_b) = (shift(self.high_half(3)), shift(self.high_half(0)));
        for lane in 0..self.lanes() {
            if self.active >> lane & 1 == 0 {
                continue;
            }
            let in_a = self.vgpr(a)?[lane] >> at_a & 0xffff;
            let in_b = self.vgpr(b)?[lane] >> at_b & 0xffff;
            let word = &mut self.vgpr_mut(a)?[lane];
            *word = *word & !(0xffff << at_a) | in_b << at_a;
            let word = &mut self.vgpr_mut(b)?[lane];
            *word = *word & !(0xffff << at_b) | in_a << at_b;
        }
        Ok(())
    }

    pub fn swaprel(&mut self) -> Result<(), Fault> {
        let a = self.destination()? + (self.m0() >> 16 & 0x3ff);
        let b = self.source_register()? + (self.m0() & 0x3ff);
        self.swap_registers(a, b)
    }

    /// A move whose register numbers have offsets. With DPP, it is not modelled, because the guide does not specify it.
    pub fn movrel(&mut self, source_offset: usize, destination_offset: usize) -> Result<(), Fault> {
        if self.has_dpp() {
            return Err(Fault::Unknown);
        }
        for (operand, offset) in [
            (&mut self.src[0], source_offset),
            (&mut self.dst, destination_offset),
        ] {
            if offset == 0 {
                continue;
            }
            let n = operand.as_vgpr().ok_or(Fault::Unknown)? + offset;
            if n >= self.wave.vgpr.len() {
                return Err(Fault::Vgpr(n));
            }
            *operand = Operand::vgpr(n as u16);
        }
        self.map1(|a: Moved<f32>| a)
    }
    pub fn movrels(&mut self) -> Result<(), Fault> {
        self.movrel(self.m0(), 0)
    }
    pub fn movreld(&mut self) -> Result<(), Fault> {
        self.movrel(0, self.m0())
    }
    pub fn movrelsd(&mut self) -> Result<(), Fault> {
        self.movrel(self.m0(), self.m0())
    }
    pub fn movrelsd_2(&mut self) -> Result<(), Fault> {
        self.movrel(self.m0() & 0x3ff, self.m0() >> 16 & 0x3ff)
    }
}
