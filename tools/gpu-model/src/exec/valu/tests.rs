//! What the operations do, against values of the guide, of IEEE 754, of the host's own instructions and of exact
//! integer arithmetic.

use super::execute;
use crate::exec::Fault;
use crate::isa::{Dpp, Inst, Op, Operand};
use crate::wave::Wave;
use Op::*;

/// IEEE rules and clamping NaN to 0 as HIP sets them, denormals on, to nearest.
const MODE: u32 = 0x3f0;

fn wave(lanes: usize) -> Wave {
    let mut wave = Wave {
        pc: 0,
        lanes,
        sgpr: [0; 128],
        scc: false,
        vgpr: vec![[0; 64]; 40],
        mode: MODE,
    };
    wave.set_exec(!0);
    wave
}

/// `op v0, v4, v8, v12`, in the format of the operation's own table.
fn inst(op: Op) -> Inst {
    Inst {
        op,
        enc: op.operands().format,
        len: 8,
        dst: Operand::vgpr(0),
        dst2: Operand::NONE,
        src: [Operand::vgpr(4), Operand::vgpr(8), Operand::vgpr(12)],
        literal: 0,
        neg: 0,
        abs: 0,
        opsel: 0,
        opsel_hi: 7,
        clamp: false,
        omod: 0,
        imm: 0,
        imm2: 0,
        glc: false,
        slc: false,
        dlc: false,
        flag: false,
        dpp: Dpp::None,
        dual: None,
    }
}

/// Values for the sources, as wide as they come.
fn load(wave: &mut Wave, values: &[u64]) {
    for (i, value) in values.iter().enumerate() {
        wave.vgpr[4 + 4 * i] = [*value as u32; 64];
        wave.vgpr[5 + 4 * i] = [(*value >> 32) as u32; 64];
    }
}

fn result(wave: &Wave) -> u64 {
    u64::from(wave.vgpr[0][0]) | u64::from(wave.vgpr[1][0]) << 32
}

/// The 64 bits that the operation leaves in `v[0:1]`, which were 0, in every lane.
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

#[test]
fn the_guides_examples() {
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

#[test]
fn integers_against_sums_done_by_hand() {
    check(&[
        (V_ADD_NC_U32, &[0xffffffff, 2], 1),
        (V_SUB_NC_U32, &[1, 2], 0xffffffff),
        (V_SUBREV_NC_U32, &[1, 2], 1),
        (V_LSHLREV_B32, &[33, 1], 2),
        (V_LSHRREV_B32, &[63, 0x80000000], 1),
        (V_ASHRREV_I32, &[36, 0x80000000], 0xf8000000),
        (V_LSHLREV_B64, &[68, 0x8000_0001], 0x8_0000_0010),
        (V_LSHRREV_B64, &[33, 0x8000_0000_0000_0000], 0x4000_0000),
        (
            V_ASHRREV_I64,
            &[64 + 4, 0x8000_0000_0000_0000],
            0xf800_0000_0000_0000,
        ),
        (V_LSHLREV_B16, &[17, 0x8001], 2),
        (V_LSHRREV_B16, &[15, 0x8000], 1),
        (V_ASHRREV_I16, &[4, 0x8000], 0xf800),
        (V_NOT_B32, &[0x0ff0], 0xfffff00f),
        (V_NOT_B16, &[0x0ff0], 0xf00f),
        (V_XNOR_B32, &[0xff00, 0xf0f0], 0xffff_f00f),
        (V_BFI_B32, &[0xff00, 0x1234, 0xabcd], 0x12cd),
        (V_BFM_B32, &[4, 8], 0xf00),
        (V_BFM_B32, &[31, 4], 0xffff_fff0),
        (V_BFE_U32, &[0xabcd1234, 8, 12], 0xd12),
        (V_BFE_U32, &[0xabcd1234, 8, 32], 0),
        (V_BFE_U32, &[0xabcd1234, 28, 12], 0xa),
        (V_BFE_I32, &[0x00000f00, 8, 4], 0xffffffff),
        (V_BFE_I32, &[0x00000700, 8, 4], 7),
        (V_BFE_I32, &[0xffffffff, 8, 0], 0),
        (V_BFE_I32, &[0x80000000, 31, 31], 0xffffffff),
        (V_BFREV_B32, &[0x8000_0002], 0x4000_0001),
        (V_BCNT_U32_B32, &[0xf0f0, 3], 11),
        (V_MUL_LO_U32, &[0x10001, 0x10001], 0x20001),
        (V_MUL_HI_U32, &[0xffffffff, 0xffffffff], 0xfffffffe),
        (V_MUL_HI_I32, &[0x80000000, 0x80000000], 0x40000000),
        (V_MUL_HI_I32, &[0xffffffff, 1], 0xffffffff),
        (V_MUL_I32_I24, &[0xff800000, 2], 0xff000000),
        (V_MUL_I32_I24, &[0x01000003, 0x02000005], 15),
        (V_MUL_HI_I32_I24, &[0x00800000, 0x007fffff], 0xffffc000),
        (V_MUL_U32_U24, &[0xffffffff, 0xffffffff], 0xfe000001),
        (V_MUL_HI_U32_U24, &[0xffffffff, 0xffffffff], 0xffff),
        (V_MAD_U32_U24, &[0x1000002, 3, 4], 10),
        (V_MAD_I32_I24, &[0x0ffffff, 3, 4], 1),
        (
            V_MAD_U64_U32,
            &[0xffffffff, 0xffffffff, 0x1_ffff_fffe],
            0xffff_ffff_ffff_ffff,
        ),
        (V_MAD_I64_I32, &[0xffffffff, 5, 2], 0xffff_ffff_ffff_fffd),
        (V_MAD_U16, &[0x100, 0x100, 7], 7),
        (V_MAD_I16, &[0xffff, 3, 1], 0xfffe),
        (V_MAD_U32_U16, &[0xffff, 0xffff, 1], 0xfffe0002),
        (V_MAD_I32_I16, &[0xffff, 0x8000, 1], 0x8001),
        (V_MUL_LO_U16, &[0x1234, 0x100], 0x3400),
        (V_ADD3_U32, &[0xffffffff, 0xffffffff, 3], 1),
        (V_XAD_U32, &[0xf0, 0xff, 1], 0x10),
        (V_LSHL_ADD_U32, &[3, 34, 5], 17),
        (V_ADD_LSHL_U32, &[3, 2, 33], 10),
        (V_LSHL_OR_B32, &[3, 4, 1], 0x31),
        (V_AND_OR_B32, &[0xff, 0x3c, 0x100], 0x13c),
        (V_OR3_B32, &[1, 2, 4], 7),
        (V_XOR3_B32, &[7, 2, 1], 4),
        (V_MED3_I32, &[0xffffffff, 5, 3], 3),
        (V_MED3_U32, &[0xffffffff, 5, 3], 5),
        (V_MED3_I16, &[0xffff, 5, 3], 3),
        (V_MIN3_I32, &[0xffffffff, 5, 3], 0xffffffff),
        (V_MAX3_U32, &[0xffffffff, 5, 3], 0xffffffff),
        (V_MAXMIN_I32, &[0xffffffff, 5, 3], 3),
        (V_MINMAX_I32, &[0xffffffff, 5, 3], 3),
        (V_MINMAX_U32, &[0xffffffff, 5, 3], 5),
        (V_ALIGNBIT_B32, &[0x12345678, 0x9abcdef0, 36], 0x89abcdef),
        (V_ALIGNBYTE_B32, &[0x12345678, 0x9abcdef0, 5], 0x789abcde),
        (
            V_PERM_B32,
            &[0x0807_0605, 0x0403_0201, 0x0007_0400],
            0x01080501,
        ),
        (
            V_PERM_B32,
            &[0x8000_0000, 0x0000_8000, 0x0d0c_0b08],
            0xff00_ffff,
        ),
        (
            V_PERM_B32,
            &[0x0000_8000, 0x8000_0000, 0x0808_0a09],
            0x0000_ffff,
        ),
        (V_LERP_U8, &[0x01ff0305, 0x02ff0406, 0x01000100], 0x02ff0405),
        (V_SAD_U8, &[0x01ff0305, 0x02000306, 10], 267),
        (V_SAD_HI_U8, &[0x01ff0305, 0x02000306, 10], 257 << 16 | 10),
        (V_MSAD_U8, &[0x01ff0305, 0x02000306, 10], 12),
        (V_SAD_U16, &[0x0001ffff, 0x00030000, 1], 0x10002),
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
        (V_CVT_PK_U16_U32, &[0x12345, 0x1234], 0x1234_ffff),
        (V_CVT_PK_I16_I32, &[0xffff0000, 0x7fffffff], 0x7fff_8000),
        (V_CVT_I32_I16, &[0xabcd_8000], 0xffff8000),
        (V_CVT_U32_U16, &[0xabcd_8000], 0x8000),
        (
            V_DOT4_U32_U8,
            &[0x01020304, 0xff020301, 10],
            255 + 4 + 9 + 4 + 10,
        ),
        (
            V_DOT4_I32_IU8,
            &[0x01020304, 0xff020301, 10],
            255 + 4 + 9 + 4 + 10,
        ),
        (V_DOT8_U32_U4, &[0xffffffff, 0x12345678, 1], 15 * 36 + 1),
    ]);
}

#[test]
fn the_clamp_bit_saturates_integers() {
    let table: &[(Op, &[u64], u64)] = &[
        (V_ADD_NC_U32, &[0xffffffff, 2], 0xffffffff),
        (V_SUB_NC_U32, &[1, 2], 0),
        (V_SUBREV_NC_U32, &[2, 1], 0),
        (V_ADD_NC_I32, &[0x7fffffff, 1], 0x7fffffff),
        (V_SUB_NC_I32, &[0x80000000, 1], 0x80000000),
        (V_ADD_NC_U16, &[0xffff, 1], 0xffff),
        (V_SUB_NC_I16, &[0x8000, 1], 0x8000),
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
    // What has no use for the bit does not ignore it.
    let mut inst = inst(V_AND_B32);
    inst.clamp = true;
    assert_eq!(execute(&mut wave(32), &inst), Err(Fault::Unknown));
}
