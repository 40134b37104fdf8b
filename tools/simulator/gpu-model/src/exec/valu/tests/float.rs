//! Floats: special values, rounding modes, denormals. The semantics test compares arithmetic, division and conversions with the
//! host's (`float.hip`).

use super::*;

#[test]
fn examples_of_the_guide() {
    check(&[
        (V_EXP_F32, &[0xff800000], 0),
        (V_EXP_F32, &[0x80000000], 0x3f800000),
        (V_EXP_F32, &[0x7f800000], 0x7f800000),
        (V_LOG_F32, &[0xff800000], 0xffc00000),
        (V_LOG_F32, &[0xbf800000], 0xffc00000),
        (V_LOG_F32, &[0x80000000], 0xff800000),
        (V_LOG_F32, &[0], 0xff800000),
        (V_LOG_F32, &[0x3f800000], 0),
        (V_LOG_F32, &[0x7f800000], 0x7f800000),
        (V_RCP_F32, &[0xff800000], 0x80000000),
        (V_RCP_F32, &[0xc0000000], 0xbf000000),
        (V_RCP_F32, &[0x80000000], 0xff800000),
        (V_RCP_F32, &[0], 0x7f800000),
        (V_RCP_F32, &[0x7f800000], 0),
        (V_RSQ_F32, &[0xff800000], 0xffc00000),
        (V_RSQ_F32, &[0x80000000], 0xff800000),
        (V_RSQ_F32, &[0], 0x7f800000),
        (V_RSQ_F32, &[0x40800000], 0x3f000000),
        (V_RSQ_F32, &[0x7f800000], 0),
        (V_SQRT_F32, &[0xff800000], 0xffc00000),
        (V_SQRT_F32, &[0x80000000], 0x80000000),
        (V_SQRT_F32, &[0x40800000], 0x40000000),
        (V_SQRT_F32, &[0x7f800000], 0x7f800000),
        (V_SIN_F32, &[0xff800000], 0xffc00000),
        (V_SIN_F32, &[0xff7fffff], 0),
        (V_SIN_F32, &[0x80000000], 0x80000000),
        (V_SIN_F32, &[0x3e800000], 0x3f800000),
        (V_SIN_F32, &[0x7f800000], 0xffc00000),
        (V_COS_F32, &[0xff800000], 0xffc00000),
        (V_COS_F32, &[0xff7fffff], 0x3f800000),
        (V_COS_F32, &[0x80000000], 0x3f800000),
        (V_COS_F32, &[0x3e800000], 0),
        (V_COS_F32, &[0x7f800000], 0xffc00000),
        (V_RCP_F16, &[0xfc00], 0x8000),
        (V_RCP_F16, &[0xc000], 0xb800),
        (V_RCP_F16, &[0x8000], 0xfc00),
        (V_RCP_F16, &[0], 0x7c00),
        (V_SQRT_F16, &[0xfc00], 0xfe00),
        (V_SQRT_F16, &[0x8000], 0x8000),
        (V_SQRT_F16, &[0x4400], 0x4000),
        (V_RSQ_F16, &[0xfc00], 0xfe00),
        (V_RSQ_F16, &[0x8000], 0xfc00),
        (V_RSQ_F16, &[0x4400], 0x3800),
        (V_LOG_F16, &[0xbc00], 0xfe00),
        (V_LOG_F16, &[0x8000], 0xfc00),
        (V_LOG_F16, &[0x3c00], 0),
        (V_EXP_F16, &[0xfc00], 0),
        (V_EXP_F16, &[0x8000], 0x3c00),
        (V_SIN_F16, &[0xfc00], 0xfe00),
        (V_SIN_F16, &[0xfbff], 0),
        (V_SIN_F16, &[0x8000], 0x8000),
        (V_SIN_F16, &[0x3400], 0x3c00),
        (V_COS_F16, &[0xfbff], 0x3c00),
        (V_COS_F16, &[0x3400], 0),
        (V_CLZ_I32_U32, &[0], 0xffffffff),
        (V_CLZ_I32_U32, &[0x800000ff], 0),
        (V_CLZ_I32_U32, &[0x100000ff], 3),
        (V_CLZ_I32_U32, &[0xffff], 16),
        (V_CLZ_I32_U32, &[1], 31),
        (V_CTZ_I32_B32, &[0], 0xffffffff),
        (V_CTZ_I32_B32, &[0xff000008], 3),
        (V_CTZ_I32_B32, &[0x80000000], 31),
        (V_CLS_I32, &[0], 0xffffffff),
        (V_CLS_I32, &[0x40000000], 1),
        (V_CLS_I32, &[0x80000000], 1),
        (V_CLS_I32, &[0x0fffffff], 4),
        (V_CLS_I32, &[0xffff0000], 16),
        (V_CLS_I32, &[0xfffffffe], 31),
        (V_CLS_I32, &[0xffffffff], 0xffffffff),
        (V_CVT_OFF_F32_I4, &[0b1000], 0xbf000000),
        (V_CVT_OFF_F32_I4, &[0b1111], 0xbd800000),
        (V_CVT_OFF_F32_I4, &[0b0001], 0x3d800000),
        (V_CVT_OFF_F32_I4, &[0b0111], 0x3ee00000),
    ]);
}

/// The results of the host's processor in a given rounding mode.
#[cfg(target_arch = "x86_64")]
mod host {
    use std::arch::asm;

    /// MXCSR with all exceptions masked, for a rounding mode in the guide's encoding, which differs from x86's.
    fn control(round: u32) -> u32 {
        0x1f80 | [0, 2, 1, 3][round as usize] << 13
    }

    macro_rules! operations {
        ($($name:ident $type:ty: $instruction:literal;)*) => {$(
            pub fn $name(round: u32, a: $type, b: $type, c: $type) -> $type {
                let (modified, before, mut d) = (control(round), 0u32, c);
                // SAFETY: the block restores MXCSR; the tests check for the features first.
                unsafe {
                    asm!(
                        "stmxcsr [{before}]", "ldmxcsr [{modified}]", $instruction, "ldmxcsr [{before}]",
                        before = in(reg) &before, modified = in(reg) &modified,
                        a = in(xmm_reg) a, b = in(xmm_reg) b, d = inout(xmm_reg) d,
                    );
                }
                d
            }
        )*};
    }

    operations! {
        fma32 f32: "vfmadd231ss {d}, {a}, {b}";
        add32 f32: "vaddss {d}, {a}, {b}";
        mul32 f32: "vmulss {d}, {a}, {b}";
        fma64 f64: "vfmadd231sd {d}, {a}, {b}";
        add64 f64: "vaddsd {d}, {a}, {b}";
        mul64 f64: "vmulsd {d}, {a}, {b}";
        narrow f64: "vcvtsd2ss {d}, {a}, {b}";
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn sums_and_products_equal_the_hosts_in_each_rounding_mode() {
    assert!(
        is_x86_feature_detected!("fma"),
        "the comparison needs the processor's FMA"
    );
    let mut random = Random(1);
    for i in 0..12_000 {
        let round = i % 4;
        let mode = MODE | round | round << 2;
        let [a, b, c] = [(); 3].map(|()| random.single());
        let [x, y, z] = [a, b, c].map(f32::from_bits);
        for (op, expected) in [
            (V_ADD_F32, host::add32(round, x, y, z)),
            (V_SUB_F32, host::add32(round, x, -y, z)),
            (V_SUBREV_F32, host::add32(round, y, -x, z)),
            (V_MUL_F32, host::mul32(round, x, y, z)),
            (V_FMA_F32, host::fma32(round, x, y, z)),
        ] {
            let got = run_with(mode, op, &[a.into(), b.into(), c.into()], |_| ()) as u32;
            assert!(
                same32(got, expected.to_bits()),
                "{op:?} {x:e} {y:e} {z:e} mode {round}: {:e}, not {expected:e}",
                f32::from_bits(got)
            );
        }
        let [a, b, c] = [(); 3].map(|()| random.double());
        // Sums of numbers with close exponents cancel.
        let c = if i % 3 == 0 {
            (f64::from_bits(a) * f64::from_bits(b)).to_bits() ^ 1 << 63 ^ i as u64 & 7
        } else {
            c
        };
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        for (op, expected) in [
            (V_ADD_F64, host::add64(round, x, y, z)),
            (V_MUL_F64, host::mul64(round, x, y, z)),
            (V_FMA_F64, host::fma64(round, x, y, z)),
        ] {
            let got = run_with(mode, op, &[a, b, c], |_| ());
            assert!(
                same64(got, expected.to_bits()),
                "{op:?} {x:e} {y:e} {z:e} mode {round}: {:e}, not {expected:e}",
                f64::from_bits(got)
            );
        }
        let got = run_with(mode, V_CVT_F32_F64, &[a], |_| ()) as u32;
        let expected = host::narrow(round, 0.0, x, 0.0).to_bits() as u32;
        assert!(
            same32(got, expected),
            "narrowed {x:e}, mode {round}: {got:#x}, not {expected:#x}"
        );
    }
}

#[test]
fn floats_of_special_values() {
    check(&[
        // Below a tie by 2^-31: 1 + 2^-10 + 2^-11 - 2^-31.
        (V_FMA_F16, &[0x2401, 0x27fe, 0x3c01], 0x3c01),
        // A number and a quiet NaN give the number. A signaling NaN gives its quiet form. -0 is less than +0.
        (V_MIN_F32, &[QNAN, ONE], ONE),
        (V_MIN_F32, &[ONE, QNAN], ONE),
        (V_MIN_F32, &[ONE, SNAN], QNAN),
        (V_MIN_F32, &[0, NEG], NEG),
        (V_MIN_F32, &[NEG, 0], NEG),
        (V_MAX_F32, &[0, NEG], 0),
        (V_MAX_F32, &[NEG, 0], 0),
        (V_MAX_F32, &[SNAN, ONE], QNAN),
        (V_MAX_F16, &[0x7e01, 0x3c00], 0x3c00),
        (V_MAX_F16, &[0x8000, 0], 0),
        (V_MIN_F64, &[0, 1 << 63], 1 << 63),
        (V_MIN_F16, &[0, 0x8000], 0x8000),
        (V_MAX_F64, &[1 << 63, 0], 0),
        (V_SUBREV_F16, &[0x3c00, 0x4200], 0x4000),
        (V_MED3_F32, &[0x40000000, ONE, 0x40400000], 0x40000000),
        (V_MED3_F32, &[0x40400000, QNAN, 0x40000000], 0x40000000),
        (V_MED3_F16, &[0x4000, 0x3c00, 0x4200], 0x4000),
        // With the DX9 rules, 0 times infinity is 0.
        (V_MUL_DX9_ZERO_F32, &[0, INF], 0),
        (V_MUL_DX9_ZERO_F32, &[0x40000000, 0x40400000], 0x40c00000),
        (V_FMA_DX9_ZERO_F32, &[INF, NEG, ONE], ONE),
        (V_CVT_I32_F32, &[QNAN], 0),
        (V_CVT_I32_F32, &[INF], 0x7fffffff),
        (V_CVT_I32_F32, &[NEG | INF], 0x80000000),
        (V_CVT_I32_F32, &[0xbfffffff], 0xffffffff),
        (V_CVT_U32_F32, &[0xbf800000], 0),
        (V_CVT_U32_F32, &[0x4f800000], 0xffffffff),
        (V_CVT_U32_F64, &[0x41efffffffe00000], 0xffffffff),
        (V_CVT_I32_F64, &[0xc1e0000000200000], 0x80000000),
        (V_CVT_FLOOR_I32_F32, &[0xbf000000], 0xffffffff),
        (V_CVT_NEAREST_I32_F32, &[0x3f000000], 1),
        (V_CVT_NEAREST_I32_F32, &[0x3effffff], 0),
        (V_CVT_NEAREST_I32_F32, &[0xbf000000], 0),
        (V_CVT_U16_F16, &[0x7bff], 65504),
        (V_CVT_I16_F16, &[0x7bff], 0x7fff),
        (V_CVT_F16_U16, &[0xffff], 0x7c00),
        (V_CVT_F16_I16, &[0x8000], 0xf800),
        (V_CVT_PK_RTZ_F16_F32, &[0x3f803fff, 0x477fffff], 0x7bff_3c01),
        (V_CVT_PK_I16_F32, &[0xc7800000, 0x40200000], 0x0002_8000),
        (V_CVT_PK_U16_F32, &[0xbf800000, 0x47800000], 0xffff_0000),
        (V_CVT_PK_NORM_I16_F32, &[ONE, 0xbf000000], 0xc000_7fff),
        (V_CVT_PK_NORM_U16_F32, &[ONE, QNAN], 0xffff),
        (V_CVT_PK_NORM_I16_F16, &[0xc000, 0x3800], 0x4000_8001),
        (V_CVT_PK_NORM_U16_F16, &[0x3c00, 0x3400], 0x4000_ffff),
        (V_CVT_NORM_U16_F16, &[0x3800], 0x8000),
        (V_CVT_NORM_I16_F16, &[0xbc00], 0x8001),
        (V_CVT_PK_U8_F32, &[0x437f0000, 6, 0x11223344], 0x11ff3344),
        (V_CVT_PK_U8_F32, &[0xbf800000, 0, 0x11223344], 0x11223300),
        (V_PACK_B32_F16, &[0xaaaa1234, 0xbbbb5678], 0x56781234),
        (V_FREXP_MANT_F32, &[0x41000000], 0x3f000000),
        (V_FREXP_EXP_I32_F32, &[0x41000000], 4),
        (V_FREXP_MANT_F32, &[1], 0x3f000000),
        (V_FREXP_EXP_I32_F32, &[1], -148i32 as u32 as u64),
        (V_FREXP_EXP_I32_F32, &[INF], 0),
        (V_FREXP_EXP_I32_F32, &[0], 0),
        (V_FREXP_MANT_F64, &[0xc008000000000000], 0xbfe8000000000000),
        (V_FREXP_EXP_I32_F64, &[1], -1073i32 as u32 as u64),
        (V_FREXP_EXP_I16_F16, &[1], 0xffe9),
        (V_FREXP_MANT_F16, &[0x4200], 0x3a00),
        (V_LDEXP_F32, &[ONE, 127], 0x7f000000),
        (V_LDEXP_F32, &[ONE, 128], INF),
        (V_LDEXP_F32, &[0x3f800001, -127i32 as u32 as u64], 0x400000),
        (V_LDEXP_F32, &[0x3fc00000, -149i32 as u32 as u64], 2),
        (V_LDEXP_F32, &[INF, 0x80000000], INF),
        (
            V_LDEXP_F64,
            &[0x3ff0000000000000, -1074i32 as u32 as u64],
            1,
        ),
        (V_LDEXP_F64, &[1, 0x7fffffff], 0x7ff0000000000000),
        (V_LDEXP_F16, &[0x3c00, 0xffe8], 1),
        (V_FRACT_F32, &[0xbf99999a], 0x3f4ccccc),
        (V_FRACT_F32, &[0x80000001], 0x3f7fffff),
        (V_FRACT_F64, &[0xc000000000000000], 0),
        (V_FRACT_F16, &[0x3e00], 0x3800),
        (V_RCP_IFLAG_F32, &[0x40800000], 0x3e800000),
        (V_DIV_FIXUP_F16, &[0x3c00, 0, 0x8001], 0xfc00),
        (V_DIV_FIXUP_F16, &[0x3c00, 0, 0x8000], 0xfe00),
        (V_DIV_FIXUP_F16, &[0x3c00, 0x4000, 0x8001], 0xbc00),
        (V_DIV_FIXUP_F32, &[ONE, INF, NEG | INF], 0xffc00000),
        (V_DIV_FIXUP_F32, &[ONE, SNAN, ONE], QNAN),
        (V_MULLIT_F32, &[ONE, 0x40000000, 0], 0xff7fffff),
        (V_MULLIT_F32, &[ONE, 0x40000000, ONE], 0x40000000),
        // A direction close to -y: face 3.
        (V_CUBEID_F32, &[ONE, 0xc0400000, 0x40000000], 0x40400000),
        (V_CUBESC_F32, &[ONE, 0xc0400000, 0x40000000], ONE),
        (V_CUBETC_F32, &[ONE, 0xc0400000, 0x40000000], 0xc0000000),
        (V_CUBEMA_F32, &[ONE, 0xc0400000, 0x40000000], 0xc0c00000),
        (V_CUBEID_F32, &[0xc0400000, ONE, 0x40000000], ONE),
        (V_CUBESC_F32, &[0xc0400000, ONE, 0x40000000], 0x40000000),
        (V_RCP_F64, &[0x4000000000000000], 0x3fe0000000000000),
        (V_RSQ_F64, &[0x4010000000000000], 0x3fe0000000000000),
        (V_SQRT_F64, &[0xbff0000000000000], 0xfff8000000000000),
        // The digits of 2/π are from the Gauss-Legendre iteration. From a biased exponent of 1968 on they are scaled.
        (V_TRIG_PREOP_F64, &[0, 0], 0x3fe45f306dc9c882),
        (V_TRIG_PREOP_F64, &[0, 1], 0x3c94a7f09d5f47d4),
        (
            V_TRIG_PREOP_F64,
            &[0x43b0000000000000, 2],
            0x38ebb81b6c52b327,
        ),
        (
            V_TRIG_PREOP_F64,
            &[0x7af0000000000000, 0],
            0x084ba7a31fb34f2f,
        ),
        (
            V_TRIG_PREOP_F64,
            &[0x7e70000000000000, 0],
            0x0cc516ba93dd63f5,
        ),
        (V_DOT2_F16_F16, &[0x4000_3c00, 0x4200_4000, 0x3c00], 0x4880),
        (
            V_DOT2_BF16_BF16,
            &[0x4000_3f80, 0x4040_4000, 0x3f80],
            0x4110,
        ),
        (V_DOT2_F32_F16, &[0x4000_3c00, 0x4200_4000, ONE], 0x41100000),
        (
            V_DOT2_F32_BF16,
            &[0x4000_3f80, 0x4040_4000, ONE],
            0x41100000,
        ),
    ]);
}

#[test]
fn mode_selects_which_denormals_are_flushed() {
    let division = &[0x00400000, 0x44800000, 0];
    let table: &[(u32, Op, &[u64], u64)] = &[
        // Inputs and outputs are flushed, but not in moves.
        (FLUSH, V_ADD_F32, &[1, 2], 0),
        (MODE, V_ADD_F32, &[1, 2], 3),
        (FLUSH, V_MUL_F32, &[0x80800000, 0x3f000000], NEG),
        (FLUSH, V_MAX_F32, &[1, 1], 0),
        (FLUSH, V_MOV_B32, &[1], 1),
        (FLUSH, V_ADD_F64, &[1, 0], 0),
        (FLUSH, V_ADD_F16, &[1, 2], 0),
        // Only outputs are flushed, then only inputs.
        (0x310, V_ADD_F32, &[1, 2], 0),
        (0x310, V_MIN_F32, &[1, 2], 1),
        (0x310, V_MUL_F32, &[1, 0x7e800000], 0x34000000),
        (0x320, V_MUL_F32, &[0x00800000, 0x3f000000], 0x00400000),
        (0x320, V_MUL_F32, &[1, 0x7e800000], 0),
        // The inputs of the last step of a division are never flushed.
        (FLUSH, V_DIV_FMAS_F32, division, 0x05000000),
        (FLUSH, V_FMA_F32, division, 0),
    ];
    for (mode, op, values, expected) in table {
        let got = run_with(*mode, *op, values, |_| ());
        assert_eq!(got, *expected, "{op:?} {values:x?}, mode {mode:#x}");
    }
    // These instructions flush in each mode.
    assert_eq!(run(V_RCP_F32, &[1]), INF);
    assert_eq!(run(V_RCP_F32, &[0x7f000000]), 0);
    assert_eq!(run(V_SQRT_F32, &[1]), 0);
    assert_eq!(run(V_LOG_F32, &[1]), NEG | INF);
    assert_eq!(run(V_EXP_F32, &[0xc2fe0000]), 0);
    // V_SIN_F32 never flushes: the result, 2π times the smallest denormal, rounds to 6 times the smallest denormal.
    assert_eq!(run(V_SIN_F32, &[1]), 6);
}

#[test]
fn float_conversions_use_the_rounding_mode_of_f64() {
    let up_for_doubles = MODE | 1 << 2;
    let up_for_singles = MODE | 1;
    for (mode, op, value, expected) in [
        (up_for_doubles, V_CVT_F16_F32, 0x3f800001, 0x3c01),
        (up_for_singles, V_CVT_F16_F32, 0x3f800001, 0x3c00),
        (up_for_doubles, V_CVT_F32_F64, 0x3ff0000000000001, ONE + 1),
        (up_for_singles, V_CVT_F32_F64, 0x3ff0000000000001, ONE),
        // Conversions of integers to f32 use the rounding mode for f32, conversions to f16 use that for f64 and f16.
        (up_for_singles, V_CVT_F32_U32, 0x01000001, 0x4b800001),
        (up_for_doubles, V_CVT_F32_U32, 0x01000001, 0x4b800000),
        (up_for_doubles, V_CVT_F16_U16, 2049, 0x6801),
    ] {
        assert_eq!(run_with(mode, op, &[value], |_| ()), expected, "{op:?}");
    }
}

#[test]
fn f16_conversions_equal_those_of_the_half_crate() {
    let convert = |op, values: &[u32]| {
        let mut wave = wave(64);
        wave.vgpr[4][..values.len()].copy_from_slice(values);
        assert_eq!(execute(&mut wave, &inst(op)), Ok(()));
        wave.vgpr[0]
    };
    let all: Vec<u32> = (0..=0xffff).collect();
    for halves in all.chunks(64) {
        for (bits, single) in halves.iter().zip(convert(V_CVT_F32_F16, halves)) {
            let expected = f16::from_bits(*bits as u16).to_f32();
            assert!(same32(single, expected.to_bits()), "{bits:#x}");
        }
    }
    // Each f16, the tie above it, and the f32 values next to both. Then random values.
    let near = [0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff];
    let neighbours = all.iter().flat_map(|bits| {
        let single = f16::from_bits(*bits as u16).to_f32().to_bits();
        near.map(|step| single.wrapping_add(step))
    });
    let mut random = Random(17);
    let any = std::iter::repeat_with(|| random.single()).take(20_000);
    let singles: Vec<u32> = neighbours.chain(any).collect();
    for singles in singles.chunks(64) {
        for (bits, half) in singles.iter().zip(convert(V_CVT_F16_F32, singles)) {
            let expected = f16::from_f32(f32::from_bits(*bits));
            let half = f16::from_bits(half as u16);
            let same = half.to_bits() == expected.to_bits() || half.is_nan() && expected.is_nan();
            assert!(same, "{bits:#x}: {half:?}, not {expected:?}");
        }
    }
}

#[test]
fn mad_rounds_twice_and_flushes_denormals() {
    let run = |a: f32, b: f32, c: f32| {
        let mut wave = wave(64);
        load(&mut wave, &[a, b, c].map(|x| u64::from(x.to_bits())));
        execute(&mut wave, &inst(V_MAD_F32)).map(|()| f32::from_bits(wave.vgpr[0][0]))
    };
    // A fused operation would keep the low part of the product.
    let x = 1.0 + f32::EPSILON;
    assert_eq!(run(x, x, -(x * x)), Ok(0.0));
    assert_eq!(run(3.0, 4.0, 5.0), Ok(17.0));
    let tiny = f32::from_bits(1);
    assert_eq!(run(tiny, 1.0, 2.0), Ok(2.0));
    assert_eq!(run(1.0, 1.0, tiny), Ok(1.0));
    // The product is denormal, and the sum depends on it.
    let least = f32::MIN_POSITIVE;
    assert_eq!(run(least, 0.5, least), Err(Fault::Unknown));
    assert_eq!(run(least, 0.5, 0.0), Ok(0.0));
}
