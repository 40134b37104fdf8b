//! DS: the workgroup's local data share (LDS), and the lane permutations that use its crossbar.

use super::access::{Access, Half, Local, Registers, perform};
use super::atomic::Atomic;
use super::operand::{file_mut, lanes, vectors, vgprs};
use crate::fault::Fault;
use crate::isa::{Inst, Op};
use crate::memory::Storage;
use crate::wave::{VReg, Wave};

/// How a lane's address is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Address {
    /// The sum of the address register and the offset.
    Register,
    /// The sum of M0, the offset, and the lane number times four.
    Lane,
}

/// The factor of the offsets in the STRIDE64 forms of two-address instructions.
const STRIDE: u64 = 64;

enum Action {
    /// One access per lane.
    One(Access, Address),
    /// Two accesses per lane. Each has its own offset, in elements times this factor.
    Two(Pair, u64),
    /// Adds the number of active lanes once per wave, or subtracts it if `up` is false.
    Count {
        up: bool,
    },
    Permute(fn(&VReg, &VReg, u64, usize, usize) -> VReg),
    Swizzle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pair {
    Load,
    Store,
    Exchange,
}

fn action(wave: &Wave, inst: &Inst) -> Result<Action, Fault> {
    use Op::*;
    let (op, spec) = (inst.op, inst.spec);
    let narrow = |size, signed, half| {
        Action::One(Access::LoadNarrow { size, signed, half }, Address::Register)
    };
    let store = |size, high| Action::One(Access::StoreNarrow { size, high }, Address::Register);
    // An atomic operation or a store is as wide as its data.
    let bits = spec.src[1].bits(32);
    let atomic = |op| {
        Action::One(
            Access::Atomic {
                op,
                wide: bits == 64,
            },
            Address::Register,
        )
    };
    Ok(match op {
        DS_LOAD_U8 => narrow(1, false, Half::Full),
        DS_LOAD_I8 => narrow(1, true, Half::Full),
        DS_LOAD_U16 => narrow(2, false, Half::Full),
        DS_LOAD_I16 => narrow(2, true, Half::Full),
        DS_LOAD_U8_D16 => narrow(1, false, Half::Low),
        DS_LOAD_I8_D16 => narrow(1, true, Half::Low),
        DS_LOAD_U16_D16 => narrow(2, false, Half::Low),
        DS_LOAD_U8_D16_HI => narrow(1, false, Half::High),
        DS_LOAD_I8_D16_HI => narrow(1, true, Half::High),
        DS_LOAD_U16_D16_HI => narrow(2, false, Half::High),
        DS_LOAD_B32 | DS_LOAD_B64 | DS_LOAD_B96 | DS_LOAD_B128 => {
            Action::One(Access::Load(spec.dst[0].bits(32) / 32), Address::Register)
        }
        DS_LOAD_ADDTID_B32 => Action::One(Access::Load(1), Address::Lane),
        DS_STORE_B8 => store(1, false),
        DS_STORE_B16 => store(2, false),
        DS_STORE_B8_D16_HI => store(1, true),
        DS_STORE_B16_D16_HI => store(2, true),
        DS_STORE_B32 | DS_STORE_B64 | DS_STORE_B96 | DS_STORE_B128 => {
            Action::One(Access::Store(bits / 32), Address::Register)
        }
        DS_STORE_ADDTID_B32 => Action::One(Access::Store(1), Address::Lane),
        DS_LOAD_2ADDR_B32 | DS_LOAD_2ADDR_B64 => Action::Two(Pair::Load, 1),
        DS_LOAD_2ADDR_STRIDE64_B32 | DS_LOAD_2ADDR_STRIDE64_B64 => Action::Two(Pair::Load, STRIDE),
        DS_STORE_2ADDR_B32 | DS_STORE_2ADDR_B64 => Action::Two(Pair::Store, 1),
        DS_STORE_2ADDR_STRIDE64_B32 | DS_STORE_2ADDR_STRIDE64_B64 => {
            Action::Two(Pair::Store, STRIDE)
        }
        DS_STOREXCHG_2ADDR_RTN_B32 | DS_STOREXCHG_2ADDR_RTN_B64 => Action::Two(Pair::Exchange, 1),
        DS_STOREXCHG_2ADDR_STRIDE64_RTN_B32 | DS_STOREXCHG_2ADDR_STRIDE64_RTN_B64 => {
            Action::Two(Pair::Exchange, STRIDE)
        }
        DS_ADD_U32 | DS_ADD_RTN_U32 | DS_ADD_U64 | DS_ADD_RTN_U64 => atomic(Atomic::Add),
        DS_SUB_U32 | DS_SUB_RTN_U32 | DS_SUB_U64 | DS_SUB_RTN_U64 => atomic(Atomic::Sub),
        DS_RSUB_U32 | DS_RSUB_RTN_U32 | DS_RSUB_U64 | DS_RSUB_RTN_U64 => atomic(Atomic::ReverseSub),
        DS_INC_U32 | DS_INC_RTN_U32 | DS_INC_U64 | DS_INC_RTN_U64 => atomic(Atomic::Inc),
        DS_DEC_U32 | DS_DEC_RTN_U32 | DS_DEC_U64 | DS_DEC_RTN_U64 => atomic(Atomic::Dec),
        DS_MIN_I32 | DS_MIN_RTN_I32 | DS_MIN_I64 | DS_MIN_RTN_I64 => atomic(Atomic::MinSigned),
        DS_MAX_I32 | DS_MAX_RTN_I32 | DS_MAX_I64 | DS_MAX_RTN_I64 => atomic(Atomic::MaxSigned),
        DS_MIN_U32 | DS_MIN_RTN_U32 | DS_MIN_U64 | DS_MIN_RTN_U64 => atomic(Atomic::MinUnsigned),
        DS_MAX_U32 | DS_MAX_RTN_U32 | DS_MAX_U64 | DS_MAX_RTN_U64 => atomic(Atomic::MaxUnsigned),
        DS_AND_B32 | DS_AND_RTN_B32 | DS_AND_B64 | DS_AND_RTN_B64 => atomic(Atomic::And),
        DS_OR_B32 | DS_OR_RTN_B32 | DS_OR_B64 | DS_OR_RTN_B64 => atomic(Atomic::Or),
        DS_XOR_B32 | DS_XOR_RTN_B32 | DS_XOR_B64 | DS_XOR_RTN_B64 => atomic(Atomic::Xor),
        DS_MSKOR_B32 | DS_MSKOR_RTN_B32 | DS_MSKOR_B64 | DS_MSKOR_RTN_B64 => atomic(Atomic::MaskOr),
        DS_STOREXCHG_RTN_B32 | DS_STOREXCHG_RTN_B64 => atomic(Atomic::Swap),
        DS_CMPSTORE_B32 | DS_CMPSTORE_RTN_B32 | DS_CMPSTORE_B64 | DS_CMPSTORE_RTN_B64 => {
            atomic(Atomic::CompareSwap)
        }
        DS_CMPSTORE_F32 | DS_CMPSTORE_RTN_F32 | DS_CMPSTORE_F64 | DS_CMPSTORE_RTN_F64 => {
            atomic(Atomic::CompareSwapFloat)
        }
        DS_MIN_F32 | DS_MIN_RTN_F32 | DS_MIN_F64 | DS_MIN_RTN_F64 => atomic(Atomic::MinFloat),
        DS_MAX_F32 | DS_MAX_RTN_F32 | DS_MAX_F64 | DS_MAX_RTN_F64 => atomic(Atomic::MaxFloat),
        DS_ADD_F32 | DS_ADD_RTN_F32 => atomic(Atomic::AddFloat {
            // FP_DENORM of MODE for f32.
            flush: wave.mode >> 4 & 3 == 0,
        }),
        DS_ADD_F64 | DS_ADD_RTN_F64 => atomic(Atomic::AddFloat {
            flush: wave.mode >> 6 & 3 == 0,
        }),
        DS_PK_ADD_F16 | DS_PK_ADD_RTN_F16 => atomic(Atomic::AddPacked { bf16: false }),
        DS_PK_ADD_BF16 | DS_PK_ADD_RTN_BF16 => atomic(Atomic::AddPacked { bf16: true }),
        DS_SUB_CLAMP_U32 | DS_SUB_CLAMP_RTN_U32 => atomic(Atomic::ClampedSub),
        DS_COND_SUB_U32 | DS_COND_SUB_RTN_U32 => atomic(Atomic::ConditionalSub),
        DS_WRAP_RTN_B32 => atomic(Atomic::Wrap),
        DS_APPEND => Action::Count { up: true },
        DS_CONSUME => Action::Count { up: false },
        DS_PERMUTE_B32 => Action::Permute(permute),
        DS_BPERMUTE_B32 => Action::Permute(bpermute),
        DS_BPERMUTE_FI_B32 => {
            Action::Permute(|from, data, _, offset, group| bpermute(from, data, !0, offset, group))
        }
        DS_SWIZZLE_B32 => Action::Swizzle,
        _ => return Err(Fault::Unknown),
    })
}

/// Each active lane sends its data to another lane of its group. `to` plus `offset` is the number of that lane times four.
/// A group has 32 lanes in gfx11, also in a wave64, and 64 lanes in gfx9.
fn permute(to: &VReg, data: &VReg, exec: u64, offset: usize, group: usize) -> VReg {
    let mut out = [0; 64];
    for lane in lanes(exec) {
        let target = to[lane].wrapping_add(offset as u32) as usize / 4 % group;
        out[lane & !(group - 1) | target] = data[lane];
    }
    out
}

/// Each active lane reads the data of a lane of its group. `from` plus `offset` is the number of that lane times four.
fn bpermute(from: &VReg, data: &VReg, exec: u64, offset: usize, group: usize) -> VReg {
    let mut out = [0; 64];
    for lane in lanes(exec) {
        let source = from[lane].wrapping_add(offset as u32) as usize / 4 % group;
        let source = lane & !(group - 1) | source;
        if exec >> source & 1 == 1 {
            out[lane] = data[source];
        }
    }
    out
}

/// The lane that `lane` reads in a swizzle (guide, "DS_SWIZZLE_B32").
fn swizzle_source(lane: usize, pattern: usize) -> usize {
    let within = lane & 31;
    let source = if pattern >= 0xe000 {
        // FFT: keeps the high bits of the lane number that the mask selects, and reverses the order of the other bits.
        let mask = pattern & 31;
        let reversed = usize::from((within as u8).reverse_bits() >> 3);
        reversed >> mask.count_ones() | within & mask
    } else if pattern >= 0xc000 {
        // Rotates the bits of the lane number that the mask does not keep.
        let (mask, by) = (pattern & 31, pattern >> 5 & 31);
        let rotated = if pattern >> 10 & 1 == 0 {
            within + by
        } else {
            within.wrapping_sub(by)
        };
        within & mask | rotated & 31 & !mask
    } else if pattern >> 15 == 1 {
        within & !3 | pattern >> (2 * (within & 3)) & 3
    } else {
        (within & pattern & 31 | pattern >> 5 & 31) ^ pattern >> 10 & 31
    };
    lane & 32 | source
}

pub fn execute(wave: &mut Wave, inst: &Inst, lds: &mut [u8]) -> Result<(), Fault> {
    if inst.flag {
        return Err(Fault::Unknown);
    }
    let exec = wave.exec();
    let spec = inst.spec;
    let dst_dwords = spec.dst[0].bits(32) / 32;
    let data_dwords = spec.src[1].bits(32) / 32;
    let dst = if dst_dwords > 0 {
        Some(vectors(wave, inst.dst, dst_dwords)?)
    } else {
        None
    };
    let data = if data_dwords > 0 {
        vectors(wave, inst.src[1], data_dwords)?
    } else {
        0
    };
    let second = if spec.src[2].bits(32) > 0 {
        vectors(wave, inst.src[2], data_dwords)?
    } else {
        0
    };
    // In gfx9, the value to compare with is the first one (`ds_cmpst`), in gfx11 the second one (`ds_cmpstore`).
    let (data, second) = if inst.arch.is_gfx9() && spec.name.starts_with("DS_CMPST") {
        (second, data)
    } else {
        (data, second)
    };
    let acc = inst.dst.as_agpr().is_some() || inst.src[1].as_agpr().is_some();
    let mut local = Local::lds(lds);
    let offset = inst.imm as u32 & 0xffff;
    match action(wave, inst)? {
        Action::One(access, kind) => {
            let register = match kind {
                Address::Register => Some(vgprs(wave, inst.src[0], 1)?),
                Address::Lane => None,
            };
            let base = (wave.sgpr[125] & 0xffff) + offset;
            let regs = Registers { dst, data, second };
            for lane in lanes(exec) {
                let address = u64::from(match register {
                    Some(register) => wave.vgpr[register][lane].wrapping_add(offset),
                    None => base + 4 * lane as u32,
                });
                perform(&mut local, access, address, file_mut(wave, acc), regs, lane)
                    .map_err(|fault| fault.in_lane(lane))?;
            }
        }
        Action::Two(pair, stride) => {
            let address = vgprs(wave, inst.src[0], 1)?;
            let dwords = if pair == Pair::Load {
                dst_dwords / 2
            } else {
                data_dwords
            };
            let unit = 4 * dwords as u64 * stride;
            let offsets = [
                unit * u64::from(inst.imm as u8),
                unit * u64::from(inst.imm2),
            ];
            for lane in lanes(exec) {
                let base = u64::from(wave.vgpr[address][lane]);
                let mut old = [0; 4];
                if pair != Pair::Store {
                    for (n, offset) in offsets.iter().enumerate() {
                        local
                            .load_dwords(base + offset, &mut old[n * dwords..][..dwords])
                            .map_err(|fault| fault.in_lane(lane))?;
                    }
                }
                if pair != Pair::Load {
                    for (from, offset) in [data, second].into_iter().zip(offsets) {
                        let mut new = [0; 2];
                        for (n, dword) in new[..dwords].iter_mut().enumerate() {
                            *dword = file_mut(wave, acc)[from + n][lane];
                        }
                        local
                            .store_dwords(base + offset, &new[..dwords])
                            .map_err(|fault| fault.in_lane(lane))?;
                    }
                }
                if let Some(dst) = dst {
                    for (n, dword) in old[..2 * dwords].iter().enumerate() {
                        file_mut(wave, acc)[dst + n][lane] = *dword;
                    }
                }
            }
        }
        Action::Count { up } => {
            let address = u64::from((wave.sgpr[125] & 0xffff) + offset);
            let count = exec.count_ones();
            if count == 0 {
                return Ok(());
            }
            let old = local.update_u32(address, |old| {
                if up {
                    old.wrapping_add(count)
                } else {
                    old.wrapping_sub(count)
                }
            })?;
            let dst = dst.ok_or(Fault::Unknown)?;
            for lane in lanes(exec) {
                file_mut(wave, acc)[dst][lane] = old;
            }
        }
        Action::Permute(permute) => {
            let address = vgprs(wave, inst.src[0], 1)?;
            let from = file_mut(wave, acc)[data];
            let group = if inst.arch.is_gfx9() { 64 } else { 32 };
            let out = permute(&wave.vgpr[address], &from, exec, offset as usize, group);
            let dst = dst.ok_or(Fault::Unknown)?;
            for lane in lanes(exec) {
                file_mut(wave, acc)[dst][lane] = out[lane];
            }
        }
        Action::Swizzle => {
            // The data is the first source.
            let source = wave.vgpr[vgprs(wave, inst.src[0], 1)?];
            let dst = dst.ok_or(Fault::Unknown)?;
            for lane in lanes(exec) {
                let from = swizzle_source(lane, offset as usize);
                file_mut(wave, acc)[dst][lane] = if exec >> from & 1 == 1 {
                    source[from]
                } else {
                    0
                };
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{inst, wave};
    use super::*;
    use crate::isa::{Encoding, Operand};

    /// address v0, data v2 (and v4), destination v8.
    fn ds(op: Op, offset: i32, offset1: u8) -> Inst {
        let mut inst = inst(op, Encoding::Ds);
        inst.src = [Operand::vgpr(0), Operand::vgpr(2), Operand::vgpr(4)];
        inst.dst = Operand::vgpr(8);
        inst.imm = offset;
        inst.imm2 = offset1;
        inst
    }

    fn dword(lds: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(lds[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn narrow_accesses_extend_and_keep_halves() {
        use Op::*;
        let mut lds = [0u8; 64];
        lds[5] = 0x80;
        lds[6] = 0x91;
        for (op, offset, before, after) in [
            (DS_LOAD_U8, 5, 7, 0x80),
            (DS_LOAD_I8, 5, 7, 0xffff_ff80),
            (DS_LOAD_U16, 5, 7, 0x9180),
            (DS_LOAD_I16, 5, 7, 0xffff_9180),
            (DS_LOAD_U8_D16, 5, 0x1111_2222, 0x1111_0080),
            (DS_LOAD_I8_D16_HI, 5, 0x1111_2222, 0xff80_2222),
            (DS_LOAD_U16_D16_HI, 5, 0x1111_2222, 0x9180_2222),
            (DS_LOAD_B32, 4, 0, 0x0091_8000),
        ] {
            let mut wave = wave(32);
            wave.set_exec(1);
            wave.vgpr[8][0] = before;
            wave.vgpr[8][1] = 99;
            execute(&mut wave, &ds(op, offset, 0), &mut lds).unwrap();
            assert_eq!(wave.vgpr[8][..2], [after, 99], "{op:?}");
        }
        let mut wave = wave(32);
        wave.set_exec(1);
        wave.vgpr[2][0] = 0xaabb_ccdd;
        execute(&mut wave, &ds(DS_STORE_B8_D16_HI, 8, 0), &mut lds).unwrap();
        execute(&mut wave, &ds(DS_STORE_B16_D16_HI, 10, 0), &mut lds).unwrap();
        assert_eq!(dword(&lds, 8), 0xaabb_00bb);
    }

    #[test]
    fn two_address_forms_count_elements() {
        use Op::*;
        let mut lds = vec![0u8; 4096];
        let mut wave = wave(32);
        wave.set_exec(0b10);
        wave.vgpr[0][1] = 8;
        for (n, value) in [(2, 0xa), (3, 0xb), (4, 0xc), (5, 0xd)] {
            wave.vgpr[n][1] = value;
        }
        execute(&mut wave, &ds(DS_STORE_2ADDR_B64, 1, 3), &mut lds).unwrap();
        assert_eq!(
            [16, 20, 32, 36].map(|at| dword(&lds, at)),
            [0xa, 0xb, 0xc, 0xd]
        );
        execute(&mut wave, &ds(DS_STORE_2ADDR_STRIDE64_B32, 1, 2), &mut lds).unwrap();
        assert_eq!([264, 520].map(|at| dword(&lds, at)), [0xa, 0xc]);
        execute(&mut wave, &ds(DS_LOAD_2ADDR_B64, 1, 3), &mut lds).unwrap();
        assert_eq!(
            [8, 9, 10, 11].map(|n| wave.vgpr[n][1]),
            [0xa, 0xb, 0xc, 0xd]
        );
        execute(&mut wave, &ds(DS_STOREXCHG_2ADDR_RTN_B32, 6, 7), &mut lds).unwrap();
        assert_eq!([32, 36].map(|at| dword(&lds, at)), [0xa, 0xc]);
        assert_eq!([8, 9].map(|n| wave.vgpr[n][1]), [0xc, 0xd]);
    }

    /// The semantics test compares the other operations, also of gfx9, with the host's (`atomics.hip`, `lanes.hip`).
    #[test]
    fn atomic_operations_execute_lane_by_lane() {
        use Op::*;
        // Operation, old value, data, second operand, new value. Two lanes access one address.
        #[rustfmt::skip]
        let cases: &[(Op, u32, [u32; 2], u32, u32)] = &[
            (DS_RSUB_RTN_U32, 5, [1, 2], 0, 6),
            (DS_INC_RTN_U32, 2, [2, 2], 0, 1),
            (DS_DEC_RTN_U32, 1, [9, 9], 0, 9),
            (DS_MSKOR_RTN_B32, 0xff, [0x0f, 0xf0], 0x100, 0x100),
            (DS_WRAP_RTN_B32, 5, [3, 3], 10, 12),
        ];
        for &(op, old, data, second, new) in cases {
            let mut lds = [0u8; 16];
            lds[4..8].copy_from_slice(&old.to_le_bytes());
            let mut wave = wave(32);
            wave.set_exec(0b11);
            wave.vgpr[2][..2].copy_from_slice(&data);
            wave.vgpr[4][..2].copy_from_slice(&[second; 2]);
            execute(&mut wave, &ds(op, 4, 0), &mut lds).unwrap();
            assert_eq!(dword(&lds, 4), new, "{op:?}");
            assert_eq!(wave.vgpr[8][0], old, "{op:?}");
        }
    }

    #[test]
    fn append_and_consume_count_active_lanes_once() {
        let mut lds = [0u8; 32];
        let mut wave = wave(32);
        wave.set_exec(0b1011);
        wave.sgpr[125] = 16;
        execute(&mut wave, &ds(Op::DS_APPEND, 4, 0), &mut lds).unwrap();
        execute(&mut wave, &ds(Op::DS_APPEND, 4, 0), &mut lds).unwrap();
        assert_eq!(dword(&lds, 20), 6);
        assert_eq!(wave.vgpr[8][..4], [3, 3, 0, 3]);
        execute(&mut wave, &ds(Op::DS_CONSUME, 4, 0), &mut lds).unwrap();
        assert_eq!((dword(&lds, 20), wave.vgpr[8][3]), (3, 6));
    }

    #[test]
    fn swizzle_patterns_of_the_assembler() {
        // Pattern, lane, the lane that it reads.
        for (pattern, lane, source) in [
            // swizzle(QUAD_PERM, 3, 2, 1, 0)
            (0x801b, 5, 6),
            (0x801b, 40, 43),
            // swizzle(SWAP, 16), swizzle(REVERSE, 8), swizzle(BROADCAST, 4, 1)
            (0x401f, 3, 19),
            (0x1c1f, 9, 14),
            (0x003c, 6, 5),
            // swizzle(ROTATE, 0, 3), swizzle(ROTATE, 1, 3)
            (0xc060, 30, 1),
            (0xc460, 1, 30),
            // swizzle(FFT, 0): bits reversed
            (0xe000, 1, 16),
        ] {
            assert_eq!(
                swizzle_source(lane, pattern),
                source,
                "{pattern:#x}, lane {lane}"
            );
        }
    }

    #[test]
    fn bpermute_fi_reads_inactive_lanes() {
        for (op, expected) in [
            (Op::DS_BPERMUTE_B32, [0, 0, 102, 0]),
            (Op::DS_BPERMUTE_FI_B32, [101, 0, 102, 0]),
        ] {
            let mut wave = wave(32);
            for lane in 0..32 {
                // The next lane, and for lane 2 itself.
                wave.vgpr[0][lane] = 4 * if lane == 2 { 2 } else { lane as u32 + 1 };
                wave.vgpr[2][lane] = 100 + lane as u32;
            }
            wave.set_exec(0b101);
            execute(&mut wave, &ds(op, 0, 0), &mut []).unwrap();
            assert_eq!(wave.vgpr[8][..4], expected, "{op:?}");
        }
    }

    #[test]
    fn an_access_outside_of_the_lds_is_a_fault() {
        let mut lds = [0u8; 16];
        let mut wave = wave(32);
        wave.set_exec(1);
        wave.vgpr[0][0] = 13;
        assert_eq!(
            execute(&mut wave, &ds(Op::DS_LOAD_B32, 0, 0), &mut lds),
            Err(Fault::Lds {
                offset: 13,
                size: 4,
                limit: 16,
                lane: Some(0),
            })
        );
        let mut gds = ds(Op::DS_LOAD_B32, 0, 0);
        gds.flag = true;
        assert_eq!(execute(&mut wave, &gds, &mut lds), Err(Fault::Unknown));
    }
}
