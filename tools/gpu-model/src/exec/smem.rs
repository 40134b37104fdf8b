//! Scalar memory: loads through the constant cache.

use super::{Fault, scalar32, scalar64};
use crate::isa::{Inst, Op, Operand};
use crate::memory::View;
use crate::wave::Wave;

pub fn execute(wave: &mut Wave, inst: &Inst, memory: &mut View) -> Result<(), Fault> {
    let dwords = match inst.op {
        Op::S_LOAD_B32 => 1,
        Op::S_LOAD_B64 => 2,
        Op::S_LOAD_B128 => 4,
        Op::S_LOAD_B256 => 8,
        Op::S_LOAD_B512 => 16,
        // The model has no caches.
        Op::S_GL1_INV | Op::S_DCACHE_INV => return Ok(()),
        _ => return Err(Fault::Unknown),
    };
    let mut address = scalar64(wave, inst, inst.src[0])?.wrapping_add_signed(i64::from(inst.imm));
    if inst.src[1] != Operand::NONE {
        address = address.wrapping_add(u64::from(scalar32(wave, inst, inst.src[1])?));
    }
    let mut data = [0; 16];
    // The hardware ignores the low two bits.
    memory.load_dwords(address & !3, &mut data[..dwords])?;
    if inst.dst == Operand::NULL {
        return Ok(());
    }
    let first = inst.dst.as_sgpr().ok_or(Fault::Unknown)?;
    // A load may end in the last SGPR, VCC, or the last TTMP.
    let end = match first {
        0..=107 => 108,
        108..=123 => 124,
        _ => first + 1,
    };
    if first + dwords > end {
        return Err(Fault::Sgpr(first + dwords - 1));
    }
    wave.sgpr[first..first + dwords].copy_from_slice(&data[..dwords]);
    Ok(())
}
