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
    use Op::*;
    let op = match op {
        V_DUAL_FMAC_F32 => V_FMAC_F32,
        V_DUAL_FMAAK_F32 => V_FMAAK_F32,
        V_DUAL_FMAMK_F32 => V_FMAMK_F32,
        V_DUAL_MUL_F32 => V_MUL_F32,
        V_DUAL_ADD_F32 => V_ADD_F32,
        V_DUAL_SUB_F32 => V_SUB_F32,
        V_DUAL_SUBREV_F32 => V_SUBREV_F32,
        V_DUAL_MUL_DX9_ZERO_F32 => V_MUL_DX9_ZERO_F32,
        V_DUAL_MOV_B32 => V_MOV_B32,
        V_DUAL_CNDMASK_B32 => V_CNDMASK_B32,
        V_DUAL_MAX_F32 => V_MAX_F32,
        V_DUAL_MIN_F32 => V_MIN_F32,
        V_DUAL_DOT2ACC_F32_F16 => V_DOT2ACC_F32_F16,
        V_DUAL_DOT2ACC_F32_BF16 => V_DUAL_DOT2ACC_F32_BF16,
        V_DUAL_ADD_NC_U32 => V_ADD_NC_U32,
        V_DUAL_LSHLREV_B32 => V_LSHLREV_B32,
        V_DUAL_AND_B32 => V_AND_B32,
        _ => return Err(Fault::Unknown),
    };
    (alu.src, alu.dst) = (src, dst);
    operate(alu, op)
}
