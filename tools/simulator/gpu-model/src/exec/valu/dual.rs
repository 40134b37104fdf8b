//! VOPD: two operations in one instruction. Both read the registers before either writes.

use super::alu::Alu;
use super::operations::operate;
use crate::fault::Fault;
use crate::isa::{Inst, Op, Operand};
use crate::wave::Wave;

pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    // Only wave32 has this format (guide, 7.6).
    let y = inst.dual.ok_or(Fault::Unknown)?;
    if wave.lanes != 32 {
        return Err(Fault::Unknown);
    }
    let mut alu = Alu::new(wave, inst)?;

    let n = inst.dst.as_vgpr().ok_or(Fault::Unknown)?;
    let before = *alu.vgpr(n)?;
    half(&mut alu, inst.op, inst.dst, inst.src)?;
    let after = std::mem::replace(alu.vgpr_mut(n)?, before);
    half(&mut alu, y.op, y.dst, y.src)?;
    *alu.vgpr_mut(n)? = after;
    Ok(())
}

fn half(alu: &mut Alu, op: Op, dst: Operand, src: [Operand; 3]) -> Result<(), Fault> {
    (alu.src, alu.dst) = (src, dst);
    operate(alu, op)
}
