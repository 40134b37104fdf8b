//! The results of the operations, compared with the guide, IEEE 754, the host's instructions and exact integer
//! arithmetic.

mod float;
mod integer;
mod lane;
mod mfma;
mod operand;
mod packed;

use half::f16;

use super::execute;
use crate::exec::{Fault, testing};
use crate::isa::{Dpp, Dual, Encoding, Inst, Kind, Op, Operand};
use crate::wave::Wave;
use Op::*;

/// MODE as HIP sets it: IEEE rules, NaN clamped to 0, denormals, rounding to nearest.
const MODE: u32 = 0x3f0;
/// [`MODE`], but denormals are flushed.
const FLUSH: u32 = 0x300;

fn wave(lanes: usize) -> Wave {
    let mut wave = testing::wave(lanes);
    wave.vgpr.resize(40, [0; 64]);
    wave.mode = MODE;
    wave
}

/// `op v0, v4, v8, v12` in the format of the operation's table. The carry is `s10`.
fn inst(op: Op) -> Inst {
    let example = testing::inst(op, Encoding::Vop1);
    Inst {
        enc: example.spec.format,
        dst: Operand::vgpr(0),
        dst2: Operand(10),
        src: [Operand::vgpr(4), Operand::vgpr(8), Operand::vgpr(12)],
        opsel_hi: 7,
        ..example
    }
}

fn name(op: Op) -> &'static str {
    inst(op).spec.name
}

fn dpp16(ctrl: u16) -> Dpp {
    Dpp::Dpp16 {
        ctrl,
        row_mask: 0xf,
        bank_mask: 0xf,
        bound_ctrl: false,
        fi: false,
    }
}

/// Sets the sources to 64-bit values, the same in each lane.
fn load(wave: &mut Wave, values: &[u64]) {
    for (i, value) in values.iter().enumerate() {
        wave.vgpr[4 + 4 * i] = [*value as u32; 64];
        wave.vgpr[5 + 4 * i] = [(*value >> 32) as u32; 64];
    }
}

fn result(wave: &Wave) -> u64 {
    u64::from(wave.vgpr[0][0]) | u64::from(wave.vgpr[1][0]) << 32
}

/// The value of `v[0:1]` after the operation, which must be the same in each lane. Before the operation, it is 0.
fn run_with(mode: u32, op: Op, values: &[u64], change: impl Fn(&mut Inst)) -> u64 {
    let mut wave = wave(32);
    wave.mode = mode;
    load(&mut wave, values);
    let mut inst = inst(op);
    change(&mut inst);
    assert_eq!(execute(&mut wave, &inst), Ok(()), "{op:?}");
    for lane in 0..32 {
        assert_eq!(wave.vgpr[0][lane], wave.vgpr[0][0], "{op:?}, lane {lane}");
    }
    for lane in 32..64 {
        assert_eq!(wave.vgpr[0][lane], 0, "{op:?}: lane {lane} of a wave32");
    }
    result(&wave)
}

fn run(op: Op, values: &[u64]) -> u64 {
    run_with(MODE, op, values, |_| ())
}

#[track_caller]
fn check(table: &[(Op, &[u64], u64)]) {
    for (op, values, expected) in table {
        let got = run(*op, values);
        assert_eq!(
            got, *expected,
            "{op:?} {values:x?}: {got:#x}, not {expected:#x}"
        );
    }
}

/// Pseudorandom words, the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// An f32 with any exponent, often a special one.
    fn single(&mut self) -> u32 {
        let word = self.next();
        let exponent = match word >> 56 & 15 {
            0 => 0,
            1 => 0xff,
            2 => 1,
            3 => 0xfe,
            4..8 => 0x70 + (word >> 48 & 0x1f) as u32,
            _ => (word >> 48 & 0xff) as u32,
        };
        let mantissa = match word >> 60 & 3 {
            0 => 0,
            1 => 0x7fffff,
            _ => word as u32 & 0x7fffff,
        };
        (word >> 40) as u32 & 1 << 31 | exponent << 23 | mantissa
    }
    fn double(&mut self) -> u64 {
        let word = self.next();
        let exponent = match word >> 56 & 15 {
            0 => 0,
            1 => 0x7ff,
            2 => 1,
            3 => 0x7fe,
            4..8 => 0x3f0 + (self.next() & 0x1f),
            _ => self.next() & 0x7ff,
        };
        let mantissa = match word >> 60 & 3 {
            0 => 0,
            1 => !0 >> 12,
            _ => word & !0 >> 12,
        };
        self.next() << 63 | exponent << 52 | mantissa
    }
}

const INF: u64 = 0x7f800000;
const QNAN: u64 = 0x7fc00001;
const SNAN: u64 = 0x7f800001;
const NEG: u64 = 0x80000000;
const ONE: u64 = 0x3f800000;

/// Whether both are equal or both are NaN: the guide does not specify which NaN is the result.
fn same32(a: u32, b: u32) -> bool {
    a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan()
}

fn same64(a: u64, b: u64) -> bool {
    a == b || f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()
}

/// Executes random instructions, including invalid ones.
#[test]
fn no_operation_panics() {
    let mut random = Random(11);
    let codes = [
        0, 5, 106, 107, 123, 124, 125, 126, 127, 128, 200, 208, 235, 240, 248, 253, 255, 256, 261,
        294, 295, 296, 511, 65535,
    ];
    for op in Op::ALL.iter().filter(|op| name(**op).starts_with("V_")) {
        for _ in 0..60 {
            let mut pick = || Operand(codes[random.next() as usize % codes.len()]);
            let (dst, dst2, src) = (pick(), pick(), [pick(), pick(), pick()]);
            let dual = Dual {
                op: V_FMAC_F32,
                dst: pick(),
                src: [pick(), pick(), pick()],
            };
            let word = random.next();
            let rare = |shift: u32| {
                if word >> shift & 3 == 0 {
                    (word >> (shift + 2)) as u8 & 15
                } else {
                    0
                }
            };
            let dpp = match word >> 60 {
                0 => dpp16((word & 0x1ff) as u16),
                1 => Dpp::Dpp8 {
                    sel: word as u32,
                    fi: false,
                },
                _ => Dpp::None,
            };
            let inst = Inst {
                dst,
                dst2,
                src,
                dpp,
                neg: rare(0) & 7,
                abs: rare(8) & 7,
                opsel: rare(16),
                opsel_hi: word as u8 & 7,
                clamp: rare(24) & 1 != 0,
                literal: word as u32,
                dual: Some(dual),
                ..inst(*op)
            };
            let mut wave = wave(if word & 1 == 0 { 32 } else { 64 });
            wave.sgpr[125] = (word >> 32) as u32 & 0x3f;
            wave.mode = word as u32 & 0x3ff;
            wave.vgpr[5] = [word as u32; 64];
            let _ = execute(&mut wave, &inst);
        }
    }
}

/// Operations of gfx9 that the decoder knows, but the model does not execute. clang does not generate f16 operations with
/// separate rounding steps (MAD, MAC), because denormals are enabled. The others need builtins.
const NOT_MODELLED: &[Op] = &[
    V_EXP_LEGACY_F32,
    V_LOG_LEGACY_F32,
    V_CVT_PKACCUM_U8_F32,
    V_CVT_PK_F32_FP8,
    V_CVT_PK_F32_BF8,
    V_CVT_PK_FP8_F32,
    V_CVT_PK_BF8_F32,
    V_CVT_SR_FP8_F32,
    V_CVT_SR_BF8_F32,
    V_MAC_F16,
    V_MADMK_F16,
    V_MADAK_F16,
    V_MAD_F16,
    V_MAD_LEGACY_F16,
    V_MAD_LEGACY_F32,
];

#[test]
fn every_vector_operation_is_modelled() {
    for op in Op::ALL.iter().filter(|op| name(**op).starts_with("V_")) {
        let mut inst = inst(*op);
        let spec = inst.spec;
        let mut wave = wave(inst.arch.wave_size());
        if spec.name.starts_with("V_CMP") || spec.name.starts_with("V_READ") {
            inst.dst = Operand(10);
        }
        if spec.name.contains("LANE_B32")
            || spec.name.contains("LANE16_B32")
            || spec.name.contains("LANEX16_B32")
        {
            inst.src[1] = Operand(128);
            inst.src[2] = Operand(128);
        }
        if spec.name == "V_WRITELANE_B32" {
            inst.src[0] = Operand(128);
        }
        if spec.name.contains("CNDMASK") || spec.name.contains("_CO_CI_") {
            inst.src[2] = Operand::VCC_LO;
        }
        if spec.format == Encoding::Vopd {
            inst.dual = Some(Dual {
                op: *op,
                dst: Operand::vgpr(1),
                src: inst.src,
            });
        }
        if spec.format == Encoding::Mai {
            for operand in [&mut inst.dst].into_iter().chain(&mut inst.src) {
                *operand = Operand::vgpr(0);
            }
        }
        if spec.dst[0] == Kind::A32 {
            inst.dst = Operand::agpr(0);
        }
        if spec.src[0] == Kind::A32 {
            inst.src[0] = Operand::agpr(0);
        }
        let expected = if NOT_MODELLED.contains(op)
            || spec.name.contains("SMFMAC")
            || spec.name.contains("XF32")
        {
            Err(Fault::Unknown)
        } else {
            Ok(())
        };
        assert_eq!(execute(&mut wave, &inst), expected, "{}", spec.name);
    }
}
