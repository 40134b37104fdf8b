//! FLAT, GLOBAL and SCRATCH: vector memory. A flat address names global memory, or through an aperture the
//! workgroup's LDS or the lane's own private segment; the three formats share their opcodes.

use super::access::{Access, Half, Local, Registers, perform};
use super::atomic::Atomic;
use super::{Fault, Surroundings, lanes, scalar32, scalar64, vgprs};
use crate::isa::{Encoding, Inst, Operand};
use crate::memory::{LDS_APERTURE, SCRATCH_APERTURE};
use crate::wave::Wave;

/// What an opcode does (guide, "FLAT, scratch and global instructions").
fn access(opcode: u16) -> Result<Access, Fault> {
    let narrow = |size, signed, half| Access::LoadNarrow { size, signed, half };
    let atomic = |op| Access::Atomic { op, wide: false };
    let wide = |op| Access::Atomic { op, wide: true };
    Ok(match opcode {
        0x10 => narrow(1, false, Half::Whole),
        0x11 => narrow(1, true, Half::Whole),
        0x12 => narrow(2, false, Half::Whole),
        0x13 => narrow(2, true, Half::Whole),
        0x14..=0x17 => Access::Load(usize::from(opcode) - 0x13),
        0x18 => Access::StoreNarrow {
            size: 1,
            high: false,
        },
        0x19 => Access::StoreNarrow {
            size: 2,
            high: false,
        },
        0x1a..=0x1d => Access::Store(usize::from(opcode) - 0x19),
        0x1e => narrow(1, false, Half::Low),
        0x1f => narrow(1, true, Half::Low),
        0x20 => narrow(2, false, Half::Low),
        0x21 => narrow(1, false, Half::High),
        0x22 => narrow(1, true, Half::High),
        0x23 => narrow(2, false, Half::High),
        0x24 => Access::StoreNarrow {
            size: 1,
            high: true,
        },
        0x25 => Access::StoreNarrow {
            size: 2,
            high: true,
        },
        // ADDTID
        0x28 => Access::Load(1),
        0x29 => Access::Store(1),
        0x33 => atomic(Atomic::Swap),
        0x34 => atomic(Atomic::CompareSwap),
        0x35 => atomic(Atomic::Add),
        0x36 => atomic(Atomic::Sub),
        0x37 => atomic(Atomic::ClampedSub),
        0x38 => atomic(Atomic::MinSigned),
        0x39 => atomic(Atomic::MinUnsigned),
        0x3a => atomic(Atomic::MaxSigned),
        0x3b => atomic(Atomic::MaxUnsigned),
        0x3c => atomic(Atomic::And),
        0x3d => atomic(Atomic::Or),
        0x3e => atomic(Atomic::Xor),
        0x3f => atomic(Atomic::Inc),
        0x40 => atomic(Atomic::Dec),
        0x41 => wide(Atomic::Swap),
        0x42 => wide(Atomic::CompareSwap),
        0x43 => wide(Atomic::Add),
        0x44 => wide(Atomic::Sub),
        0x45 => wide(Atomic::MinSigned),
        0x46 => wide(Atomic::MinUnsigned),
        0x47 => wide(Atomic::MaxSigned),
        0x48 => wide(Atomic::MaxUnsigned),
        0x49 => wide(Atomic::And),
        0x4a => wide(Atomic::Or),
        0x4b => wide(Atomic::Xor),
        0x4c => wide(Atomic::Inc),
        0x4d => wide(Atomic::Dec),
        0x50 => atomic(Atomic::CompareSwapFloat),
        0x51 => atomic(Atomic::MinFloat),
        0x52 => atomic(Atomic::MaxFloat),
        // The L2's adder knows no denormals.
        0x56 => atomic(Atomic::AddFloat { flush: true }),
        _ => return Err(Fault::Unknown),
    })
}

/// The number of VGPRs that an access reads data from, and that it writes.
fn widths(access: Access) -> (usize, usize) {
    match access {
        Access::LoadNarrow { .. } => (0, 1),
        Access::Load(dwords) => (0, dwords),
        Access::StoreNarrow { .. } => (1, 0),
        Access::Store(dwords) => (dwords, 0),
        Access::Atomic { op, wide } => {
            let dwords = if wide { 2 } else { 1 };
            (dwords * if op.has_second() { 2 } else { 1 }, dwords)
        }
    }
}

/// The addresses of the active lanes.
fn addresses(wave: &Wave, inst: &Inst, exec: u64) -> Result<[u64; 64], Fault> {
    let [addr, _, saddr] = inst.src;
    let has_saddr = saddr != Operand::NONE && saddr != Operand::NULL;
    let mut out = [0; 64];
    if inst.enc == Encoding::Scratch {
        let mut base = inst.imm as u32;
        if has_saddr {
            base = base.wrapping_add(scalar32(wave, inst, saddr)?);
        }
        if inst.flag {
            let offset = &wave.vgpr[vgprs(wave, addr, 1)?];
            for lane in lanes(exec) {
                out[lane] = u64::from(base.wrapping_add(offset[lane]));
            }
        } else {
            out = [u64::from(base); 64];
        }
        return Ok(out);
    }
    let add_thread_id = matches!(inst.op.operands().code, 0x28 | 0x29);
    let base = if has_saddr {
        scalar64(wave, inst, saddr)?
    } else {
        0
    }
    .wrapping_add_signed(i64::from(inst.imm));
    if add_thread_id {
        for (lane, address) in out.iter_mut().enumerate() {
            *address = base.wrapping_add(4 * lane as u64);
        }
    } else if has_saddr {
        let offset = &wave.vgpr[vgprs(wave, addr, 1)?];
        for (address, offset) in out.iter_mut().zip(offset) {
            *address = base.wrapping_add(u64::from(*offset));
        }
    } else {
        let first = vgprs(wave, addr, 2)?;
        let (low, high) = (&wave.vgpr[first], &wave.vgpr[first + 1]);
        for ((address, low), high) in out.iter_mut().zip(low).zip(high) {
            *address = base.wrapping_add(u64::from(*low) | u64::from(*high) << 32);
        }
    }
    Ok(out)
}

fn outside_scratch(offset: u64, size: usize, limit: usize) -> Fault {
    Fault::Scratch {
        offset,
        size,
        limit,
    }
}

pub(super) fn outside_lds(offset: u64, size: usize, limit: usize) -> Fault {
    Fault::Lds {
        offset,
        size,
        limit,
    }
}

pub fn execute(wave: &mut Wave, inst: &Inst, around: &mut Surroundings<'_>) -> Result<(), Fault> {
    let access = access(inst.op.operands().code)?;
    let exec = wave.exec();
    let addresses = addresses(wave, inst, exec)?;
    let (reads, writes) = widths(access);
    let data = if reads > 0 {
        vgprs(wave, inst.src[1], reads)?
    } else {
        0
    };
    // GLC of an atomic operation asks for the old value.
    let returns = writes > 0 && (inst.glc || !matches!(access, Access::Atomic { .. }));
    let regs = Registers {
        dst: if returns {
            Some(vgprs(wave, inst.dst, writes)?)
        } else {
            None
        },
        data,
        second: data + reads / 2,
    };
    for lane in lanes(exec) {
        let address = addresses[lane];
        let high = (address >> 32) as u32;
        let in_scratch = match inst.enc {
            Encoding::Scratch => true,
            Encoding::Flat => high == SCRATCH_APERTURE,
            _ => false,
        };
        if in_scratch {
            let mut local = Local {
                bytes: around.scratch.lane(lane),
                fault: outside_scratch,
            };
            let offset = address & 0xffff_ffff;
            perform(&mut local, access, offset, &mut wave.vgpr, regs, lane)?;
        } else if inst.enc == Encoding::Flat && high == LDS_APERTURE {
            let mut local = Local {
                bytes: around.lds,
                fault: outside_lds,
            };
            let offset = address & 0xffff_ffff;
            perform(&mut local, access, offset, &mut wave.vgpr, regs, lane)?;
        } else {
            perform(around.memory, access, address, &mut wave.vgpr, regs, lane)
                .map_err(|fault| in_lane(fault, lane))?;
        }
    }
    Ok(())
}

fn in_lane(fault: Fault, lane: usize) -> Fault {
    match fault {
        Fault::Memory {
            address,
            size,
            write,
            ..
        } => Fault::Memory {
            address,
            size,
            write,
            lane: Some(lane as u8),
        },
        other => other,
    }
}
