//! Vector arithmetic: VOP1, VOP2, VOPC, VOP3, VOP3P, MAI, VOPD, DPP, SDWA.

mod accvgpr;
mod alu;
mod compare;
mod convert;
mod cross_lane;
mod cube;
mod divide;
mod dpp;
mod dual;
mod float;
mod float_operations;
mod integer;
mod map;
mod matrix;
mod mfma;
mod mode;
mod operations;
mod packed;
mod sdwa;
#[cfg(test)]
mod tests;
mod transcend;
mod value;

use super::salu::GPR_IDX_EN;
use crate::fault::Fault;
use crate::isa::{Encoding, Inst, Operand};
use crate::wave::Wave;

/// Executes one vector instruction on the active lanes. It does not change the program counter.
#[inline]
pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    if inst.enc == Encoding::Vopd {
        dual::execute(wave, inst)
    } else if wave.mode & GPR_IDX_EN != 0 {
        operations::execute(wave, &relative(wave, inst))
    } else {
        operations::execute(wave, inst)
    }
}

/// The instruction with the relative register numbers that `s_set_gpr_idx_on` enables: M0 has the offset, and a bit for each
/// operand.
#[cold]
fn relative(wave: &Wave, inst: &Inst) -> Inst {
    let m0 = wave.sgpr[usize::from(Operand::M0.0)];
    let mut inst = *inst;
    let [src0, src1, src2] = &mut inst.src;
    for (i, operand) in [src0, src1, src2, &mut inst.dst].into_iter().enumerate() {
        if m0 >> (12 + i) & 1 != 0 && operand.as_vgpr().is_some() {
            // A sum that is not the number of a VGPR names no register.
            let sum = operand.0 + (m0 & 0xff) as u16;
            *operand = if sum < 512 {
                Operand(sum)
            } else {
                Operand::NONE
            };
        }
    }
    inst
}
