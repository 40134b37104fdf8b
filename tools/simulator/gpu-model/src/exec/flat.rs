//! FLAT, GLOBAL, SCRATCH and MUBUF: vector memory. A flat address is in global memory, or in one of the two apertures: the
//! workgroup's LDS and the lane's private segment. The only buffer is the private segment of gfx90a.

use super::access::{Access, Half, Local, Registers, perform};
use super::address_spaces::{AddressSpaces, FLAT_SCRATCH_INIT, SCRATCH_RESOURCE};
use super::atomic::Atomic;
use super::operand::{file_mut, lanes, scalar32, scalar64, vectors, vgprs};
use crate::fault::Fault;
use crate::isa::{Architecture, Encoding, Inst, Kind, Op, Operand};
use crate::memory::{LDS_APERTURE, SCRATCH_APERTURE};
use crate::wave::Wave;

/// The access of an operation (guide, "FLAT, scratch and global instructions"). An atomic operation is as wide as its result.
fn access(inst: &Inst) -> Result<Access, Fault> {
    use Op::*;
    let narrow = |size, signed, half| Access::LoadNarrow { size, signed, half };
    let store = |size, high| Access::StoreNarrow { size, high };
    let wide = inst.spec.dst[0] == Kind::B64;
    let atomic = |op| Access::Atomic { op, wide };
    Ok(match inst.op {
        LOAD_U8 => narrow(1, false, Half::Full),
        LOAD_I8 => narrow(1, true, Half::Full),
        LOAD_U16 => narrow(2, false, Half::Full),
        LOAD_I16 => narrow(2, true, Half::Full),
        LOAD_B32 | LOAD_ADDTID_B32 => Access::Load(1),
        LOAD_B64 => Access::Load(2),
        LOAD_B96 => Access::Load(3),
        LOAD_B128 => Access::Load(4),
        STORE_B8 => store(1, false),
        STORE_B16 => store(2, false),
        STORE_B32 | STORE_ADDTID_B32 => Access::Store(1),
        STORE_B64 => Access::Store(2),
        STORE_B96 => Access::Store(3),
        STORE_B128 => Access::Store(4),
        LOAD_D16_U8 => narrow(1, false, Half::Low),
        LOAD_D16_I8 => narrow(1, true, Half::Low),
        LOAD_D16_B16 => narrow(2, false, Half::Low),
        LOAD_D16_HI_U8 => narrow(1, false, Half::High),
        LOAD_D16_HI_I8 => narrow(1, true, Half::High),
        LOAD_D16_HI_B16 => narrow(2, false, Half::High),
        STORE_D16_HI_B8 => store(1, true),
        STORE_D16_HI_B16 => store(2, true),
        ATOMIC_SWAP_B32 | ATOMIC_SWAP_B64 => atomic(Atomic::Swap),
        ATOMIC_CMPSWAP_B32 | ATOMIC_CMPSWAP_B64 => atomic(Atomic::CompareSwap),
        ATOMIC_ADD_U32 | ATOMIC_ADD_U64 => atomic(Atomic::Add),
        ATOMIC_SUB_U32 | ATOMIC_SUB_U64 => atomic(Atomic::Sub),
        ATOMIC_MIN_I32 | ATOMIC_MIN_I64 => atomic(Atomic::MinSigned),
        ATOMIC_MIN_U32 | ATOMIC_MIN_U64 => atomic(Atomic::MinUnsigned),
        ATOMIC_MAX_I32 | ATOMIC_MAX_I64 => atomic(Atomic::MaxSigned),
        ATOMIC_MAX_U32 | ATOMIC_MAX_U64 => atomic(Atomic::MaxUnsigned),
        ATOMIC_AND_B32 | ATOMIC_AND_B64 => atomic(Atomic::And),
        ATOMIC_OR_B32 | ATOMIC_OR_B64 => atomic(Atomic::Or),
        ATOMIC_XOR_B32 | ATOMIC_XOR_B64 => atomic(Atomic::Xor),
        ATOMIC_INC_U32 | ATOMIC_INC_U64 => atomic(Atomic::Inc),
        ATOMIC_DEC_U32 | ATOMIC_DEC_U64 => atomic(Atomic::Dec),
        ATOMIC_CSUB_U32 => atomic(Atomic::ClampedSub),
        ATOMIC_CMPSWAP_F32 => atomic(Atomic::CompareSwapFloat),
        ATOMIC_MIN_F32 | ATOMIC_MIN_F64 => atomic(Atomic::MinFloat),
        ATOMIC_MAX_F32 | ATOMIC_MAX_F64 => atomic(Atomic::MaxFloat),
        ATOMIC_COND_SUB_U32 => atomic(Atomic::ConditionalSub),
        // The adder in the L2 cache of gfx11 and gfx90a flushes denormals.
        ATOMIC_ADD_F32 => atomic(Atomic::AddFloat {
            flush: matches!(inst.arch, Architecture::Gfx11 | Architecture::Gfx90a),
        }),
        ATOMIC_ADD_F64 => atomic(Atomic::AddFloat { flush: false }),
        ATOMIC_PK_ADD_F16 => atomic(Atomic::AddPacked { bf16: false }),
        ATOMIC_PK_ADD_BF16 => atomic(Atomic::AddPacked { bf16: true }),
        _ => return Err(Fault::Unknown),
    })
}

/// The number of VGPRs that an access reads as data, and the number that it can write.
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

/// The offset in each lane's private segment that SOFFSET of a buffer access adds. It is an offset in the memory of the
/// wave, in which a dword of each lane follows the same dword of the lane before.
fn private_offset(wave: &Wave, inst: &Inst) -> Result<u32, Fault> {
    let first = inst.dst2.as_sgpr().ok_or(Fault::Unknown)?;
    // Other buffers are not modelled.
    if wave.sgpr[first..first + 4] != SCRATCH_RESOURCE {
        return Err(Fault::Unknown);
    }
    let offset = scalar32(wave, inst, inst.src[2])?;
    let dword_of_wave = 4 * wave.lanes as u32;
    if !offset.is_multiple_of(dword_of_wave) {
        return Err(Fault::Unknown);
    }
    Ok(offset / wave.lanes as u32)
}

/// Whether FLAT_SCRATCH has the initial value, which a kernel of gfx90a must set before it uses flat addresses of private
/// memory.
fn flat_scratch_is_set(wave: &Wave, inst: &Inst) -> bool {
    inst.arch != Architecture::Gfx90a || wave.sgpr64(Operand::FLAT_SCRATCH) == FLAT_SCRATCH_INIT
}

/// The addresses of the active lanes.
fn addresses(wave: &Wave, inst: &Inst, exec: u64) -> Result<[u64; 64], Fault> {
    let [addr, _, saddr] = inst.src;
    let has_saddr = saddr != Operand::NONE && saddr != Operand::NULL;
    let mut out = [0; 64];
    if matches!(inst.enc, Encoding::Scratch | Encoding::Mubuf) {
        let mut base = inst.imm as u32;
        if inst.enc == Encoding::Mubuf {
            base = base.wrapping_add(private_offset(wave, inst)?);
        } else if has_saddr {
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
    let add_thread_id = matches!(inst.op, Op::LOAD_ADDTID_B32 | Op::STORE_ADDTID_B32);
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

pub fn execute(wave: &mut Wave, inst: &Inst, spaces: &mut AddressSpaces<'_>) -> Result<(), Fault> {
    let access = access(inst)?;
    let exec = wave.exec();
    let addresses = addresses(wave, inst, exec)?;
    let (reads, writes) = widths(access);
    let data = if reads > 0 {
        vectors(wave, inst.src[1], reads)?
    } else {
        0
    };
    // An atomic operation returns the old value if GLC is set.
    let returns = writes > 0 && (inst.glc || !matches!(access, Access::Atomic { .. }));
    let regs = Registers {
        dst: if returns {
            Some(vectors(wave, inst.dst, writes)?)
        } else {
            None
        },
        data,
        second: data + reads / 2,
    };
    let acc = inst.src[1].as_agpr().is_some() || inst.dst.as_agpr().is_some();
    for lane in lanes(exec) {
        let address = addresses[lane];
        let high = (address >> 32) as u32;
        let in_scratch = match inst.enc {
            Encoding::Scratch | Encoding::Mubuf => true,
            Encoding::Flat => high == SCRATCH_APERTURE,
            _ => false,
        };
        let offset = address & 0xffff_ffff;
        let result = if in_scratch {
            if inst.enc != Encoding::Mubuf && !flat_scratch_is_set(wave, inst) {
                return Err(Fault::Unknown);
            }
            let mut private = Local::private(spaces.scratch.lane(lane));
            let file = file_mut(wave, acc);
            perform(&mut private, access, offset, file, regs, lane)
        } else if inst.enc == Encoding::Flat && high == LDS_APERTURE {
            let mut lds = Local::lds(spaces.lds);
            perform(&mut lds, access, offset, file_mut(wave, acc), regs, lane)
        } else {
            let file = file_mut(wave, acc);
            perform(spaces.global, access, address, file, regs, lane)
        };
        result.map_err(|fault| fault.in_lane(lane))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::address_spaces::Scratch;
    use super::super::testing::{inst, wave};
    use super::*;
    use crate::memory::{Memory, View};

    /// The semantics test compares accesses and most atomic operations with the host's (`memory.hip`, `atomics.hip`).
    ///
    /// 256 bytes at GPU address 0x10000, 64 bytes of LDS, 32 bytes of private memory per lane.
    struct Fixture {
        bytes: Box<[u32; 64]>,
        memory: View,
        lds: Vec<u8>,
        scratch: Scratch,
        wave: Wave,
    }

    impl Fixture {
        fn new(lanes: usize) -> Fixture {
            let bytes = Box::new([0u32; 64]);
            let memory = Memory::new((bytes.as_ptr() as usize).wrapping_sub(0x1_0000));
            // SAFETY: the bytes outlive the memory.
            unsafe { memory.allocated(0x1_0000, 256, true) };
            Fixture {
                bytes,
                memory: View::new(memory),
                lds: vec![0; 64],
                scratch: Scratch::new(32, lanes),
                wave: wave(lanes),
            }
        }
        fn run(&mut self, inst: &Inst) -> Result<(), Fault> {
            let mut spaces = AddressSpaces {
                global: &mut self.memory,
                lds: &mut self.lds,
                scratch: &mut self.scratch,
                gws: &super::super::Gws::default(),
            };
            execute(&mut self.wave, inst, &mut spaces)
        }
        fn address(&mut self, lane: usize, address: u64) {
            self.wave.vgpr[0][lane] = address as u32;
            self.wave.vgpr[1][lane] = (address >> 32) as u32;
        }
    }

    /// address v0 (and v1), data v2, destination v8.
    fn memory(op: Op, enc: Encoding, offset: i32) -> Inst {
        let mut inst = inst(op, enc);
        inst.src = [Operand::vgpr(0), Operand::vgpr(2), Operand::NONE];
        inst.dst = Operand::vgpr(8);
        inst.imm = offset;
        inst
    }

    /// Compiled code loads few signed bytes and half-words, so the semantics test does not see their signs.
    #[test]
    fn loads_of_parts_of_a_register() {
        use Op::*;
        let mut fixture = Fixture::new(32);
        fixture.bytes[4] = 0x8899_aabb;
        fixture.wave.set_exec(2);
        fixture.address(1, 0x1_0020);
        for (op, offset, expected) in [
            (LOAD_U8, -16, 0xbb),
            (LOAD_I8, -16, 0xffff_ffbb),
            (LOAD_U16, -15, 0x99aa),
            (LOAD_I16, -14, 0xffff_8899),
            (LOAD_D16_HI_U8, -16, 0x00bb_7777),
            (LOAD_D16_I8, -16, 0x7777_ffbb),
            (LOAD_D16_B16, -16, 0x7777_aabb),
        ] {
            fixture.wave.vgpr[8][1] = 0x7777_7777;
            fixture.run(&memory(op, Encoding::Global, offset)).unwrap();
            assert_eq!(fixture.wave.vgpr[8][1], expected, "{op:?}");
        }
    }

    #[test]
    fn a_scalar_base_takes_a_32_bit_offset() {
        let mut fixture = Fixture::new(64);
        fixture.bytes[9] = 77;
        fixture.wave.set_exec(1 << 40);
        fixture
            .wave
            .set_sgpr64(Operand(4), 0x1_0024_u64.wrapping_sub(0xffff_fff0));
        fixture.wave.vgpr[0][40] = 0xffff_ffe8;
        let mut inst = memory(Op::LOAD_B32, Encoding::Global, 8);
        inst.src[2] = Operand(4);
        fixture.run(&inst).unwrap();
        assert_eq!(fixture.wave.vgpr[8][40], 77);
    }

    #[test]
    fn private_memory_has_a_limit() {
        let mut fixture = Fixture::new(32);
        fixture.wave.set_exec(0b110);
        let mut scratch = memory(Op::LOAD_B32, Encoding::Scratch, 24);
        scratch.src[2] = Operand(4);
        fixture.wave.sgpr[4] = 8;
        let (offset, size, limit, lane) = (32, 4, 32, Some(1));
        let fault = Fault::Scratch {
            offset,
            size,
            limit,
            lane,
        };
        assert_eq!(fixture.run(&scratch), Err(fault));
        // Without SVE the vector offset is ignored, with SVE it is added.
        fixture.wave.vgpr[0] = [8; 64];
        scratch.imm = 16;
        assert_eq!(fixture.run(&scratch), Ok(()));
        scratch.flag = true;
        assert!(fixture.run(&scratch).is_err());
    }

    #[test]
    fn buffers_of_gfx90a_access_private_memory_and_accvgprs() {
        let mut fixture = Fixture::new(64);
        fixture.wave.set_exec(0b11);
        fixture.wave.sgpr[4..8].copy_from_slice(&SCRATCH_RESOURCE);
        // The offset of a dword of all lanes: 4 bytes in each lane.
        fixture.wave.sgpr[33] = 256;
        fixture.wave.agpr[2][..2].copy_from_slice(&[5, 6]);
        let mut store = memory(Op::STORE_B32, Encoding::Mubuf, 8);
        store.src = [Operand::NONE, Operand::agpr(2), Operand(33)];
        store.dst = Operand::NONE;
        store.dst2 = Operand(4);
        fixture.run(&store).unwrap();
        let mut load = memory(Op::LOAD_B32, Encoding::Scratch, 12);
        load.arch = Architecture::Gfx942;
        load.src = [Operand::NONE; 3];
        fixture.run(&load).unwrap();
        assert_eq!(fixture.wave.vgpr[8][..2], [5, 6]);
        // SOFFSET must be a multiple of one dword per lane. Other buffers are not modelled.
        fixture.wave.sgpr[33] = 4;
        assert_eq!(fixture.run(&store), Err(Fault::Unknown));
        fixture.wave.sgpr[33] = 0;
        fixture.wave.sgpr[4] = 64;
        assert_eq!(fixture.run(&store), Err(Fault::Unknown));
    }

    #[test]
    fn a_kernel_of_gfx90a_must_initialize_flat_scratch() {
        let mut fixture = Fixture::new(64);
        fixture.wave.set_exec(1);
        fixture.address(0, 0x5000_0000_0000_0000);
        let mut load = memory(Op::LOAD_B32, Encoding::Flat, 0);
        load.arch = Architecture::Gfx90a;
        assert_eq!(fixture.run(&load), Err(Fault::Unknown));
        let flat_scratch = Operand::FLAT_SCRATCH;
        fixture.wave.set_sgpr64(flat_scratch, FLAT_SCRATCH_INIT);
        assert_eq!(fixture.run(&load), Ok(()));
    }

    #[test]
    fn atomics_on_packed_floats() {
        let mut fixture = Fixture::new(64);
        fixture.wave.set_exec(1);
        fixture.address(0, 0x1_0000);
        // f16: 1.0 and 2.0, plus 0.5 and -2.0. bf16: the same.
        for (op, old, data, sum) in [
            (Op::ATOMIC_PK_ADD_F16, 0x4000_3c00, 0xc000_3800, 0x3e00),
            (Op::ATOMIC_PK_ADD_BF16, 0x4000_3f80, 0xc000_3f00, 0x3fc0),
        ] {
            fixture.bytes[0] = old;
            fixture.wave.vgpr[2][0] = data;
            let mut add = memory(op, Encoding::Global, 0);
            add.dst = Operand::NONE;
            fixture.run(&add).unwrap();
            assert_eq!(fixture.bytes[0], sum, "{op:?}");
        }
    }

    #[test]
    fn atomics_are_aligned() {
        let mut fixture = Fixture::new(32);
        fixture.wave.set_exec(1);
        fixture.address(0, 0x1_0002);
        let add = memory(Op::ATOMIC_ADD_U32, Encoding::Global, 0);
        let (address, size, lane) = (0x1_0002, 4, Some(0));
        let fault = Fault::Alignment {
            address,
            size,
            lane,
        };
        assert_eq!(fixture.run(&add), Err(fault));
    }

    #[test]
    fn a_fault_names_the_first_lane_that_is_out_of_bounds() {
        let mut fixture = Fixture::new(32);
        fixture.wave.set_exec(0b1010);
        fixture.address(1, 0x1_00fc);
        fixture.address(3, 0x1_00fd);
        assert_eq!(
            fixture.run(&memory(Op::LOAD_B32, Encoding::Flat, 0)),
            Err(Fault::Memory {
                address: 0x1_00fd,
                size: 4,
                write: false,
                lane: Some(3)
            })
        );
        // A register that is not allocated.
        let mut wide = memory(Op::LOAD_B128, Encoding::Global, 0);
        wide.dst = Operand::vgpr(30);
        assert_eq!(fixture.run(&wide), Err(Fault::Vgpr(33)));
    }
}
