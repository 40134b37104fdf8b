//! Vector arithmetic: VOP1, VOP2, VOPC, VOP3, VOP3P, VOPD, DPP.

use super::Fault;
use crate::isa::Inst;
use crate::wave::Wave;

/// Runs one vector instruction on the active lanes. Does not move the program counter.
pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    let _ = (wave, inst);
    Err(Fault::Unknown)
}
