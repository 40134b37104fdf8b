//! Integers, comparisons, carries.

use super::*;

/// The semantics test compares the other operations with the host's (`integer.hip`, `instructions.hip`).
#[test]
fn integers_with_known_results() {
    check(&[
        // Only the low bits of a shift count, of a width or of a factor count.
        (V_LSHLREV_B16, &[17, 0x8001], 2),
        (V_LSHRREV_B16, &[31, 0x8000], 1),
        (V_ASHRREV_I16, &[20, 0x8000], 0xf800),
        (V_LSHL_ADD_U32, &[3, 34, 5], 17),
        (V_ADD_LSHL_U32, &[3, 2, 33], 10),
        (V_BFM_B32, &[31, 4], 0xffff_fff0),
        (V_MAD_U32_U24, &[0x1000002, 3, 4], 10),
        (V_NOT_B16, &[0x0ff0], 0xf00f),
        (V_BFE_I32, &[0x00000f00, 8, 4], 0xffffffff),
        (V_BFE_I32, &[0x00000700, 8, 4], 7),
        (V_BFE_I32, &[0xffffffff, 8, 0], 0),
        (V_BFE_I32, &[0x80000000, 31, 31], 0xffffffff),
        (V_MUL_HI_U32_U24, &[0xffffffff, 0xffffffff], 0xffff),
        (V_MAD_I32_I24, &[0x0ffffff, 3, 4], 1),
        (V_MAD_I16, &[0xffff, 3, 1], 0xfffe),
        (V_MAD_U32_U16, &[0xffff, 0xffff, 1], 0xfffe0002),
        (V_MAD_I32_I16, &[0xffff, 0x8000, 1], 0x8001),
        (V_XAD_U32, &[0xf0, 0xff, 1], 0x10),
        (V_ADD_NC_I16, &[0x7fff, 1], 0x8000),
        (V_MED3_U16, &[0xffff, 5, 3], 5),
        (V_DOT8_I32_IU4, &[0xffffffff, 0x12345678, 1], 15 * 36 + 1),
        (V_MED3_U32, &[0xffffffff, 5, 3], 5),
        (V_MED3_I16, &[0xffff, 5, 3], 3),
        (V_SAD_U32, &[1, 0xffffffff, 1], 0xffffffff),
        (
            V_QSAD_PK_U16_U8,
            &[0x0706_0504_0302_0100, 0x03020100, 0x1000_0000_0000_0001],
            0x100c_0008_0004_0001,
        ),
        (
            V_MQSAD_PK_U16_U8,
            &[0x0706_0504_0302_0100, 0x03020100, 0],
            0x0009_0006_0003_0000,
        ),
        (V_SAT_PK_U8_I16, &[0x0180_ffff], 0xff00),
        (V_CVT_I32_I16, &[0xabcd_8000], 0xffff8000),
        (
            V_DOT4_I32_IU8,
            &[0x01020304, 0xff020301, 10],
            255 + 4 + 9 + 4 + 10,
        ),
    ]);
}

#[test]
fn clamp_saturates_integers() {
    let table: &[(Op, &[u64], u64)] = &[
        (V_SUBREV_NC_U32, &[2, 1], 0),
        (V_MAD_U32_U24, &[0xffffff, 0xffffff, 1], 0xffffffff),
        (V_MAD_I32_I24, &[0x800000, 0x7fffff, 0], 0x80000000),
        (V_MAD_U16, &[0xffff, 0xffff, 0], 0xffff),
        (V_MAD_I16, &[0x8000, 0x7fff, 0], 0x8000),
        (V_MUL_LO_U16, &[0x100, 0x100], 0xffff),
        (V_SAD_U32, &[0, 0xffffffff, 1], 0xffffffff),
        (V_PK_ADD_U16, &[0xffff_0001, 0x0001_0001], 0xffff_0002),
        (V_PK_SUB_I16, &[0x8000_0001, 0x0001_0002], 0x8000_ffff),
        (
            V_DOT4_I32_IU8,
            &[0xffffffff, 0xffffffff, 0x7fffffff],
            0x7fffffff,
        ),
        (V_SUB_CO_U32, &[1, 2], 0),
    ];
    for (op, values, expected) in table {
        let got = run_with(MODE, *op, values, |inst| inst.clamp = true);
        assert_eq!(got, *expected, "{op:?} {values:x?}: {got:#x}");
    }
    // Operations that do not support CLAMP reject it.
    let mut inst = inst(V_AND_B32);
    inst.clamp = true;
    assert_eq!(execute(&mut wave(32), &inst), Err(Fault::Unknown));
}

#[test]
fn comparisons() {
    let one = 0x3f800000u32;
    // The bits of a condition are less, equal, greater, unordered.
    let pairs = [
        (one, 0x40000000),
        (one, one),
        (0x40000000, one),
        (one, QNAN as u32),
        (NEG as u32, 0),
    ];
    let table = [
        (V_CMP_F_F32, [false, false, false, false, false]),
        (V_CMP_LT_F32, [true, false, false, false, false]),
        (V_CMP_EQ_F32, [false, true, false, false, true]),
        (V_CMP_LE_F32, [true, true, false, false, true]),
        (V_CMP_GT_F32, [false, false, true, false, false]),
        (V_CMP_LG_F32, [true, false, true, false, false]),
        (V_CMP_GE_F32, [false, true, true, false, true]),
        (V_CMP_O_F32, [true, true, true, false, true]),
        (V_CMP_U_F32, [false, false, false, true, false]),
        (V_CMP_NGE_F32, [true, false, false, true, false]),
        (V_CMP_NLG_F32, [false, true, false, true, true]),
        (V_CMP_NGT_F32, [true, true, false, true, true]),
        (V_CMP_NLE_F32, [false, false, true, true, false]),
        (V_CMP_NEQ_F32, [true, false, true, true, false]),
        (V_CMP_NLT_F32, [false, true, true, true, true]),
        (V_CMP_T_F32, [true, true, true, true, true]),
    ];
    let mut wave = wave(64);
    for (lane, (a, b)) in pairs.iter().enumerate() {
        wave.vgpr[4][lane] = *a;
        wave.vgpr[8][lane] = *b;
        wave.vgpr[4][40 + lane] = *a;
        wave.vgpr[8][40 + lane] = *b;
    }
    let expected = |bits: [bool; 5]| {
        bits.iter()
            .rev()
            .fold(0, |mask, bit| mask << 1 | u64::from(*bit))
    };
    let lanes = 0x1f | 0x1f << 40;
    for (op, bits) in table {
        wave.set_exec(lanes);
        let inst = Inst {
            dst: Operand(10),
            ..inst(op)
        };
        assert_eq!(execute(&mut wave, &inst), Ok(()));
        let mask = expected(bits);
        assert_eq!(wave.sgpr64(Operand(10)), mask | mask << 40, "{op:?}");
        assert_eq!(wave.exec(), lanes);
    }
    let inst = Inst {
        dst: Operand::NONE,
        ..inst(V_CMPX_LE_F32)
    };
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.exec(), 0b10011 | 0b10011 << 40);
}

#[test]
fn comparisons_of_every_type() {
    let table: &[(Op, u64, u64, bool)] = &[
        (V_CMP_LT_I32, 0xffffffff, 0, true),
        (V_CMP_LT_U32, 0xffffffff, 0, false),
        (V_CMP_NE_U32, 1, 2, true),
        (V_CMP_T_U32, 1, 2, true),
        (V_CMP_F_I32, 1, 1, false),
        (V_CMP_GE_I16, 0x1_8000, 0, false),
        (V_CMP_GE_U16, 0x8000, 0x1_0000, true),
        (V_CMP_GT_I64, 0, 1 << 63, true),
        (V_CMP_GT_U64, 0, 1 << 63, false),
        (V_CMP_EQ_U64, 1 << 32, 1 << 33, false),
        (V_CMP_LT_F64, 0x3ff0 << 48, 0x4000 << 48, true),
        (V_CMP_LG_F64, 0x3ff0 << 48, 0x4000 << 48, true),
        (V_CMP_NLT_F16, 0x7e00, 0x3c00, true),
        (V_CMP_CLASS_F32, SNAN, 1 << 0, true),
        (V_CMP_CLASS_F32, QNAN, 1 << 1, true),
        (V_CMP_CLASS_F32, NEG | INF, 1 << 2, true),
        (V_CMP_CLASS_F32, NEG | ONE, 1 << 3, true),
        (V_CMP_CLASS_F32, NEG | 1, 1 << 4, true),
        (V_CMP_CLASS_F32, NEG, 1 << 5, true),
        (V_CMP_CLASS_F32, 0, 1 << 6, true),
        (V_CMP_CLASS_F32, 1, 1 << 7, true),
        (V_CMP_CLASS_F32, ONE, 1 << 8, true),
        (V_CMP_CLASS_F32, INF, 1 << 9, true),
        (V_CMP_CLASS_F32, INF, 0x1ff, false),
        (V_CMP_CLASS_F64, 1, 1 << 7, true),
        (V_CMP_CLASS_F64, 0xfff0 << 48, 1 << 2, true),
        (V_CMP_CLASS_F16, 0x8001, 1 << 4, true),
        (V_CMP_CLASS_F16, 0x7c01, 1 << 0, true),
    ];
    for (op, a, b, expected) in table {
        let mut wave = wave(32);
        // v_cmp_class does not flush denormals.
        wave.mode = FLUSH;
        load(&mut wave, &[*a, *b]);
        let inst = Inst {
            dst: Operand::VCC_LO,
            ..inst(*op)
        };
        assert_eq!(execute(&mut wave, &inst), Ok(()));
        let mask = if *expected { 0xffffffff } else { 0 };
        assert_eq!(wave.vcc(), mask, "{op:?} {a:#x} {b:#x}");
    }
}

#[test]
fn carries_and_their_masks() {
    let mut wave = wave(64);
    for lane in 0..64 {
        wave.vgpr[4][lane] = 0xffffffff;
        wave.vgpr[8][lane] = lane as u32 % 2;
    }
    wave.set_sgpr64(Operand(20), 0xffff_0000_ffff_0000);
    wave.set_exec(0x0fff_ffff_ffff_fff0);
    // The carry is a register pair, with 0 for inactive lanes.
    let add = Inst {
        dst2: Operand(30),
        ..inst(V_ADD_CO_U32)
    };
    assert_eq!(execute(&mut wave, &add), Ok(()));
    assert_eq!(wave.sgpr64(Operand(30)), 0x0aaa_aaaa_aaaa_aaa0);
    assert_eq!(wave.vgpr[0][5], 0);
    assert_eq!(wave.vgpr[0][6], 0xffffffff);
    let mut with_carry = Inst {
        enc: Encoding::Vop3Sd,
        dst2: Operand(30),
        ..inst(V_ADD_CO_CI_U32)
    };
    with_carry.src[2] = Operand(20);
    assert_eq!(execute(&mut wave, &with_carry), Ok(()));
    assert_eq!(wave.sgpr64(Operand(30)), 0x0fff_aaaa_ffff_aaa0);
    assert_eq!(wave.vgpr[0][16], 0);
    // The carry is discarded.
    let null = Inst {
        dst2: Operand::NULL,
        ..add
    };
    assert_eq!(execute(&mut wave, &null), Ok(()));
    assert_eq!(wave.sgpr[124], 0);
    // Borrows in VCC.
    wave.set_exec(!0);
    wave.set_sgpr64(Operand::VCC_LO, 2);
    let mut sub = Inst {
        enc: Encoding::Vop2,
        ..inst(V_SUB_CO_CI_U32)
    };
    sub.src = [Operand::vgpr(8), Operand::vgpr(8), Operand::VCC_LO];
    sub.dst2 = Operand::VCC_LO;
    assert_eq!(execute(&mut wave, &sub), Ok(()));
    assert_eq!(wave.vcc(), 2);
    assert_eq!(wave.vgpr[0][..3], [0, 0xffffffff, 0]);
    sub.op = V_SUBREV_CO_CI_U32;
    sub.src[0] = Operand(129);
    assert_eq!(execute(&mut wave, &sub), Ok(()));
    assert_eq!(wave.vcc(), 0x5555_5555_5555_5557);
    assert_eq!(wave.vgpr[0][..3], [0xffffffff, 0xffffffff, 0xffffffff]);
    // The carry of a 64-bit multiply-add.
    load(&mut wave, &[0xffffffff, 0xffffffff, !0]);
    let mad = Inst {
        dst2: Operand(30),
        ..inst(V_MAD_U64_U32)
    };
    assert_eq!(execute(&mut wave, &mad), Ok(()));
    assert_eq!(wave.sgpr64(Operand(30)), !0);
    assert_eq!(result(&wave), 0xfffffffe_00000000);
    // The carry of a signed multiply-add is the sign of the exact sum: (-1)(-1) - 2^63.
    load(&mut wave, &[0xffffffff, 0xffffffff, 1 << 63]);
    let mad = Inst {
        dst2: Operand(30),
        ..inst(V_MAD_I64_I32)
    };
    assert_eq!(execute(&mut wave, &mad), Ok(()));
    assert_eq!(wave.sgpr64(Operand(30)), !0);
    assert_eq!(result(&wave), 1 << 63 | 1);
}
