//! Moves between VGPRs and AccVGPRs.

use super::alu::Alu;
use crate::fault::Fault;
use crate::isa::Operand;
use crate::wave::VReg;

impl Alu<'_> {
    pub fn agpr(&self, n: usize) -> Result<&VReg, Fault> {
        self.wave.agpr.get(n).ok_or(Fault::Agpr(n))
    }

    /// Writes the active lanes of an AccVGPR.
    pub fn write_agpr(&mut self, n: usize, lanes: &VReg) -> Result<(), Fault> {
        let active = self.active;
        let register = self.wave.agpr.get_mut(n).ok_or(Fault::Agpr(n))?;
        for (lane, (old, new)) in register.iter_mut().zip(lanes).enumerate() {
            if active >> lane & 1 != 0 {
                *old = *new;
            }
        }
        Ok(())
    }

    pub fn accvgpr_read(&mut self) -> Result<(), Fault> {
        let lanes = *self.agpr(number(self.src[0])?)?;
        self.write32(&lanes)
    }

    pub fn accvgpr_write(&mut self) -> Result<(), Fault> {
        let mut buffer = [0; 64];
        let lanes = *self.source32(0, &mut buffer)?;
        self.write_agpr(number(self.dst)?, &lanes)
    }

    pub fn accvgpr_mov(&mut self) -> Result<(), Fault> {
        let lanes = *self.agpr(number(self.src[0])?)?;
        self.write_agpr(number(self.dst)?, &lanes)
    }
}

fn number(operand: Operand) -> Result<usize, Fault> {
    operand.as_agpr().ok_or(Fault::Unknown)
}
