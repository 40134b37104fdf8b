//! SMEM: scalar loads.

use super::operand::{scalar32, scalar64};
use crate::clock::clock_ticks;
use crate::fault::Fault;
use crate::isa::{Inst, Op, Operand};
use crate::memory::{Storage, View};
use crate::wave::Wave;

/// The value of a load of 8 or 16 bits.
fn load_narrow(op: Op, address: u64, memory: &mut View) -> Result<Option<u32>, Fault> {
    if matches!(op, Op::S_LOAD_I16 | Op::S_LOAD_U16) {
        Fault::check_alignment(address, 2)?;
    }
    Ok(Some(match op {
        Op::S_LOAD_I8 => i32::from(memory.load_u8(address)? as i8) as u32,
        Op::S_LOAD_U8 => memory.load_u8(address)?.into(),
        Op::S_LOAD_I16 => i32::from(memory.load_u16(address)? as i16) as u32,
        Op::S_LOAD_U16 => memory.load_u16(address)?.into(),
        _ => return Ok(None),
    }))
}

pub fn execute(wave: &mut Wave, inst: &Inst, memory: &mut View) -> Result<(), Fault> {
    let dwords = match inst.op {
        Op::S_LOAD_B32 | Op::S_LOAD_I8 | Op::S_LOAD_U8 | Op::S_LOAD_I16 | Op::S_LOAD_U16 => 1,
        Op::S_LOAD_B64 => 2,
        Op::S_LOAD_B96 => 3,
        Op::S_LOAD_B128 => 4,
        Op::S_LOAD_B256 => 8,
        Op::S_LOAD_B512 => 16,
        // The model has no caches.
        Op::S_GL1_INV
        | Op::S_DCACHE_INV
        | Op::S_DCACHE_WB
        | Op::S_DCACHE_INV_VOL
        | Op::S_DCACHE_WB_VOL => return Ok(()),
        Op::S_MEMTIME | Op::S_MEMREALTIME => {
            let first = inst.dst.as_sgpr().ok_or(Fault::Unknown)?;
            let ticks = clock_ticks();
            wave.sgpr[first] = ticks as u32;
            wave.sgpr[first + 1] = (ticks >> 32) as u32;
            return Ok(());
        }
        _ => return Err(Fault::Unknown),
    };
    let mut address = scalar64(wave, inst, inst.src[0])?.wrapping_add_signed(i64::from(inst.imm));
    if inst.src[1] != Operand::NONE {
        address = address.wrapping_add(u64::from(scalar32(wave, inst, inst.src[1])?));
    }
    if let Some(value) = load_narrow(inst.op, address, memory)? {
        if let Some(n) = inst.dst.as_sgpr() {
            wave.sgpr[n] = value;
        }
        return Ok(());
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

#[cfg(test)]
mod tests {
    use super::super::testing::{inst, wave};
    use super::*;
    use crate::isa::Encoding;
    use crate::memory::Memory;

    #[test]
    fn loads_fill_registers_from_an_aligned_address() {
        let bytes: Vec<u32> = (100..164).collect();
        let memory = Memory::new((bytes.as_ptr() as usize).wrapping_sub(0x1000));
        // SAFETY: the bytes outlive the memory.
        unsafe { memory.allocated(0x1000, 256, false) };
        let mut view = View::new(memory);
        let mut load = |op, dst: u16, imm, soffset: u32| {
            let mut wave = wave(32);
            wave.set_sgpr64(Operand(2), 0x1020);
            wave.sgpr[8] = soffset;
            let mut inst = inst(op, Encoding::Smem);
            inst.dst = Operand(dst);
            inst.src = [Operand(2), Operand(8), Operand::NONE];
            inst.imm = imm;
            execute(&mut wave, &inst, &mut view).map(|()| wave.sgpr[16..34].to_vec())
        };
        for (op, count) in [
            (Op::S_LOAD_B32, 1),
            (Op::S_LOAD_B64, 2),
            (Op::S_LOAD_B128, 4),
            (Op::S_LOAD_B256, 8),
            (Op::S_LOAD_B512, 16),
        ] {
            // 0x1020 - 0x10 + 7, without the low two bits: the sixth dword.
            let expected: Vec<u32> = (0..18)
                .map(|n| if n < count { 105 + n } else { 0 })
                .collect();
            assert_eq!(load(op, 16, -16, 7), Ok(expected), "{op:?}");
        }
        assert_eq!(
            load(Op::S_LOAD_B96, 16, 0, 0).unwrap()[..4],
            [108, 109, 110, 0]
        );
        // Bytes 0, 1, and 2 to 3 of the dword in front of it, all of numbers below 256.
        assert_eq!(load(Op::S_LOAD_U8, 16, 0, 0x20).unwrap()[0], 116);
        assert_eq!(load(Op::S_LOAD_U8, 16, 1, 0x20).unwrap()[0], 0);
        assert_eq!(load(Op::S_LOAD_U16, 16, -2, 0x20).unwrap()[0], 0);
        let misaligned = load(Op::S_LOAD_I16, 16, 1, 0).unwrap_err();
        assert!(matches!(misaligned, Fault::Alignment { size: 2, .. }));
        assert_eq!(load(Op::S_LOAD_B512, 96, 0, 0), Err(Fault::Sgpr(111)));
        assert_eq!(load(Op::S_LOAD_B64, 124, 0, 0), Ok(vec![0; 18]));
        assert_eq!(
            load(Op::S_LOAD_B512, 16, 0, 0xc0),
            Err(Fault::Memory {
                address: 0x10e0,
                size: 64,
                write: false,
                lane: None
            })
        );
        assert_eq!(load(Op::S_BUFFER_LOAD_B32, 16, 0, 0), Err(Fault::Unknown));
    }
}
