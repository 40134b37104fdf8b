//! Vector arithmetic: VOP1, VOP2, VOPC, VOP3, VOP3P, VOPD, DPP.

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
mod mode;
mod operations;
mod packed;
#[cfg(test)]
mod tests;
mod transcend;
mod value;

use crate::fault::Fault;
use crate::isa::{Encoding, Inst};
use crate::wave::Wave;

/// Executes one vector instruction on the active lanes. It does not change the program counter.
#[inline]
pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    if inst.enc == Encoding::Vopd {
        dual::execute(wave, inst)
    } else {
        operations::execute(wave, inst)
    }
}
