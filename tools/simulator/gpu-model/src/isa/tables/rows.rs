//! The rows of all operations.
//!
//! The syntax of a row is `gfx11 gfx90a gfx942 NAME: destinations = sources | flags;`, below the formats that have it.
//! `Mubuf(gfx9)`: only gfx9 has the rows in this format. gfx12 has nearly all opcodes of gfx11. If it has another one or none,
//! the first column is `[gfx11 gfx12]`.
//!
//! - Opcodes: one per architecture, from chapter 15 of the RDNA3 guide and chapter 12 of the guides of MI200 and MI300. `_` if
//!   the architecture, or LLVM's assembler for it, does not have the operation.
//! - Name: LLVM's mnemonic for gfx11, or else for gfx942 or gfx12. `(gfx9 MNEMONIC)` after it is the mnemonic for gfx90a and
//!   gfx942 if it is another one, `(gfx90a MNEMONIC)` and `(gfx12 MNEMONIC)` are for these only. The names of FLAT, GLOBAL, SCRATCH, MUBUF and VOPD are
//!   without the format's prefix. A row with several names has operations with consecutive opcodes, from the given ones on, whose
//!   operands and flags are equal.
//! - Operands, in the assembler's order. `ADDRESS` has the width of the format's addresses.
//! - Flags of all architectures, then `(rdna FLAGS)` or `(gfx9 FLAGS)`, the flags of one generation.
//!
//! The `_e64` forms of VOP1, VOP2 and VOPC do not have rows. Their VOP3 opcodes are the row's opcode plus 0x180 (gfx9: 0x140),
//! 0x100 and 0.
//!
//! Not included for gfx9: image and formatted buffer instructions, buffer atomics, scalar stores and atomics, `s_setvskip`,
//! `s_cbranch_g_fork` and similar instructions, `v_screen_partition_4se_b32`.

use super::super::encoding::Encoding;
use super::generation::Generation;
use super::kind::{Kind, flag};

/// A row: operations of one or several architectures, with consecutive opcodes.
pub(super) struct Row {
    pub ops: &'static [Op],
    /// The mnemonics in upper case without encoding suffix.
    pub names: &'static [&'static str],
    /// A generation's other mnemonics.
    pub renamed: &'static [(Generation, &'static [&'static str])],
    pub format: Encoding,
    /// For each architecture, the opcode of the first operation.
    pub codes: [Option<u16>; 4],
    pub dst: [Kind; 2],
    pub src: [Kind; 3],
    /// The flags of all architectures, and those of a generation.
    pub flags: u16,
    pub flags_of: &'static [(Generation, u16)],
}

/// The kinds, padded with NONE.
const fn padded<const N: usize>(kinds: &[Kind]) -> [Kind; N] {
    let mut out = [Kind::NONE; N];
    let mut i = 0;
    while i < kinds.len() {
        out[i] = kinds[i];
        i += 1;
    }
    out
}

macro_rules! rows {
    ($table:ident $($($format:ident $(($has:ident))?)+ => $rows:tt)*) => {
        /// The rows of each format.
        pub(super) const $table: &[&[Row]] = &[$($(rows!(@format $format [$($has)?] $rows)),+),*];
        rows!(@enum $table $($rows)*);
    };
    (@format $format:ident $has:tt { $(
        $gfx11:tt $gfx90a:tt $gfx942:tt $($name:ident)+ $(($of:ident $($mnemonic:ident)+))* :
        $($dst:ident)* = $($src:ident)* $(| $($flag:ident)* $(($only:ident $($its:ident)+))?)? ;
    )* }) => {
        &[$(Row {
            ops: &[$(Op::$name),+],
            names: rows!(@list $format [$($name)+]),
            renamed: &[$((Generation::$of, rows!(@list $format [$($mnemonic)+]))),*],
            format: Encoding::$format,
            codes: [
                rows!(@gfx11 $has $gfx11),
                rows!(@gfx12 $has $gfx11),
                rows!(@code $gfx90a),
                rows!(@code $gfx942),
            ],
            dst: padded(&[$(Kind::$dst),*]),
            src: padded(&[$(rows!(@kind $format $src)),*]),
            flags: 0 $($(| flag::$flag)*)?,
            flags_of: &[$($((Generation::$only, 0 $(| flag::$its)+))?)?],
        }),*]
    };
    (@list $format:ident [$($name:ident)+]) => { &[$(concat!(rows!(@prefix $format), stringify!($name))),+] };
    (@prefix Flat) => { "FLAT_" };
    (@prefix Global) => { "GLOBAL_" };
    (@prefix Scratch) => { "SCRATCH_" };
    (@prefix Mubuf) => { "BUFFER_" };
    (@prefix $other:ident) => { "" };
    (@kind Flat ADDRESS) => { Kind::B64 };
    (@kind Global ADDRESS) => { Kind::B64 };
    (@kind $format:ident ADDRESS) => { Kind::B32 };
    (@kind $format:ident $kind:ident) => { Kind::$kind };
    (@gfx11 [gfx9] $code:tt) => { None };
    (@gfx11 [] [$code:tt $gfx12:tt]) => { rows!(@code $code) };
    (@gfx11 [] $code:tt) => { rows!(@code $code) };
    (@gfx12 [gfx9] $code:tt) => { None };
    (@gfx12 [] [$gfx11:tt $code:tt]) => { rows!(@code $code) };
    (@gfx12 [] $code:tt) => { rows!(@code $code) };
    (@code _) => { None };
    (@code $code:literal) => { Some($code) };
    (@enum ROWS $({ $(
        $gfx11:tt $gfx90a:tt $gfx942:tt $($name:ident)+ $(($($mnemonic:tt)*))* : $($dst:ident)* = $($src:ident)* $(| $($flag:ident)* $(($($only:ident)+))?)? ;
    )* })*) => {
        /// An operation: its mnemonic without encoding suffix, and without the prefix for FLAT, GLOBAL, SCRATCH or MUBUF. If
        /// LLVM has several mnemonics for it, the mnemonic for gfx11, or for gfx942.
        #[expect(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Op { $($($($name,)+)*)* }

        impl Op {
            /// All operations.
            pub const ALL: &[Op] = &[$($($(Op::$name,)+)*)*];
        }
    };
    (@enum OTHERS $($rows:tt)*) => {};
}

rows! {
    ROWS
    Sop1 => {
        0x00 0x00 0x00 S_MOV_B32: B32 = B32;
        0x01 0x01 0x01 S_MOV_B64: B64 = B64;
        0x02 0x02 0x02 S_CMOV_B32: B32 = B32;
        0x03 0x03 0x03 S_CMOV_B64: B64 = B64;
        0x04 0x08 0x08 S_BREV_B32: U32 = U32;
        0x05 0x09 0x09 S_BREV_B64: U64 = U64;
        0x08 0x10 0x10 S_CTZ_I32_B32 (gfx9 S_FF1_I32_B32): I32 = U32;
        0x09 0x11 0x11 S_CTZ_I32_B64 (gfx9 S_FF1_I32_B64): I32 = U64;
        0x0a 0x12 0x12 S_CLZ_I32_U32 (gfx9 S_FLBIT_I32_B32): I32 = U32;
        0x0b 0x13 0x13 S_CLZ_I32_U64 (gfx9 S_FLBIT_I32_B64): I32 = U64;
        0x0c 0x14 0x14 S_CLS_I32 (gfx9 S_FLBIT_I32): I32 = I32;
        0x0d 0x15 0x15 S_CLS_I32_I64 (gfx9 S_FLBIT_I32_I64): I32 = I64;
        0x0e 0x16 0x16 S_SEXT_I32_I8 S_SEXT_I32_I16: I32 = B32;
        0x10 0x18 0x18 S_BITSET0_B32: B32 = U32;
        0x11 0x19 0x19 S_BITSET0_B64: B64 = U32;
        0x12 0x1a 0x1a S_BITSET1_B32: B32 = U32;
        0x13 0x1b 0x1b S_BITSET1_B64: B64 = U32;
        0x14 0x37 0x37 S_BITREPLICATE_B64_B32: U64 = U32;
        0x15 0x30 0x30 S_ABS_I32: I32 = I32;
        0x16 0x0a 0x0a S_BCNT0_I32_B32: I32 = U32;
        0x17 0x0b 0x0b S_BCNT0_I32_B64: I32 = U64;
        0x18 0x0c 0x0c S_BCNT1_I32_B32: I32 = U32;
        0x19 0x0d 0x0d S_BCNT1_I32_B64: I32 = U64;
        0x1a 0x28 0x28 S_QUADMASK_B32: U32 = U32;
        0x1b 0x29 0x29 S_QUADMASK_B64: U64 = U64;
        0x1c 0x06 0x06 S_WQM_B32: U32 = U32;
        0x1d 0x07 0x07 S_WQM_B64: U64 = U64;
        0x1e 0x04 0x04 S_NOT_B32: U32 = U32;
        0x1f 0x05 0x05 S_NOT_B64: U64 = U64;
        0x20 _    _    S_AND_SAVEEXEC_B32: U32 = U32;
        0x21 0x20 0x20 S_AND_SAVEEXEC_B64: U64 = U64;
        0x22 _    _    S_OR_SAVEEXEC_B32: U32 = U32;
        0x23 0x21 0x21 S_OR_SAVEEXEC_B64: U64 = U64;
        0x24 _    _    S_XOR_SAVEEXEC_B32: U32 = U32;
        0x25 0x22 0x22 S_XOR_SAVEEXEC_B64: U64 = U64;
        0x26 _    _    S_NAND_SAVEEXEC_B32: U32 = U32;
        0x27 0x25 0x25 S_NAND_SAVEEXEC_B64: U64 = U64;
        0x28 _    _    S_NOR_SAVEEXEC_B32: U32 = U32;
        0x29 0x26 0x26 S_NOR_SAVEEXEC_B64: U64 = U64;
        0x2a _    _    S_XNOR_SAVEEXEC_B32: U32 = U32;
        0x2b 0x27 0x27 S_XNOR_SAVEEXEC_B64: U64 = U64;
        0x2c _    _    S_AND_NOT0_SAVEEXEC_B32: U32 = U32;
        0x2d 0x33 0x33 S_AND_NOT0_SAVEEXEC_B64 (gfx9 S_ANDN1_SAVEEXEC_B64): U64 = U64;
        0x2e _    _    S_OR_NOT0_SAVEEXEC_B32: U32 = U32;
        0x2f 0x34 0x34 S_OR_NOT0_SAVEEXEC_B64 (gfx9 S_ORN1_SAVEEXEC_B64): U64 = U64;
        0x30 _    _    S_AND_NOT1_SAVEEXEC_B32: U32 = U32;
        0x31 0x23 0x23 S_AND_NOT1_SAVEEXEC_B64 (gfx9 S_ANDN2_SAVEEXEC_B64): U64 = U64;
        0x32 _    _    S_OR_NOT1_SAVEEXEC_B32: U32 = U32;
        0x33 0x24 0x24 S_OR_NOT1_SAVEEXEC_B64 (gfx9 S_ORN2_SAVEEXEC_B64): U64 = U64;
        0x34 _    _    S_AND_NOT0_WREXEC_B32: U32 = U32;
        0x35 0x35 0x35 S_AND_NOT0_WREXEC_B64 (gfx9 S_ANDN1_WREXEC_B64): U64 = U64;
        0x36 _    _    S_AND_NOT1_WREXEC_B32: U32 = U32;
        0x37 0x36 0x36 S_AND_NOT1_WREXEC_B64 (gfx9 S_ANDN2_WREXEC_B64): U64 = U64;
        0x40 0x2a 0x2a S_MOVRELS_B32: B32 = R32;
        0x41 0x2b 0x2b S_MOVRELS_B64: B64 = R64;
        0x42 0x2c 0x2c S_MOVRELD_B32: B32 = B32;
        0x43 0x2d 0x2d S_MOVRELD_B64: B64 = B64;
        0x44 _    _    S_MOVRELSD_2_B32: B32 = R32;
        0x47 0x1c 0x1c S_GETPC_B64: B64 =;
        0x48 0x1d 0x1d S_SETPC_B64: = R64;
        0x49 0x1e 0x1e S_SWAPPC_B64: B64 = B64;
        0x4a 0x1f 0x1f S_RFE_B64: = R64;
        0x4c _    _    S_SENDMSG_RTN_B32: B32 = MSG;
        0x4d _    _    S_SENDMSG_RTN_B64: B64 = MSG;
        _    0x0e 0x0e S_FF0_I32_B32: I32 = U32;
        _    0x0f 0x0f S_FF0_I32_B64: I32 = U64;
        _    0x32 0x32 S_SET_GPR_IDX_IDX: = B32;
        [_ 0x4e] _ _ S_BARRIER_SIGNAL S_BARRIER_SIGNAL_ISFIRST: = BARRIER;
        [_ 0x50] _ _ S_GET_BARRIER_STATE: B32 = BARRIER;
        [_ 0x51] _ _ S_BARRIER_INIT S_BARRIER_JOIN: = BARRIER;
        [_ 0x53] _ _ S_ALLOC_VGPR: = B32;
        [_ 0x58] _ _ S_SLEEP_VAR: = B32;
        [_ 0x60] _ _ S_CEIL_F32 S_FLOOR_F32 S_TRUNC_F32 S_RNDNE_F32: F32 = F32;
        [_ 0x64] _ _ S_CVT_F32_I32: F32 = I32;
        [_ 0x65] _ _ S_CVT_F32_U32: F32 = U32;
        [_ 0x66] _ _ S_CVT_I32_F32: I32 = F32;
        [_ 0x67] _ _ S_CVT_U32_F32: U32 = F32;
        [_ 0x68] _ _ S_CVT_F16_F32: F16 = F32;
        [_ 0x69] _ _ S_CVT_F32_F16: F32 = F16;
        [_ 0x6a] _ _ S_CVT_HI_F32_F16: F32 = B32;
        [_ 0x6b] _ _ S_CEIL_F16 S_FLOOR_F16 S_TRUNC_F16 S_RNDNE_F16: F16 = F16;
    }
    Sop2 => {
        0x00 0x00 0x00 S_ADD_U32 S_SUB_U32 (gfx12 S_ADD_CO_U32 S_SUB_CO_U32): U32 = U32 U32;
        0x02 0x02 0x02 S_ADD_I32 S_SUB_I32 (gfx12 S_ADD_CO_I32 S_SUB_CO_I32): I32 = I32 I32;
        0x04 0x04 0x04 S_ADDC_U32 S_SUBB_U32 (gfx12 S_ADD_CO_CI_U32 S_SUB_CO_CI_U32): U32 = U32 U32;
        0x06 0x2a 0x2a S_ABSDIFF_I32: I32 = I32 I32;
        0x08 0x1c 0x1c S_LSHL_B32: U32 = U32 U32;
        0x09 0x1d 0x1d S_LSHL_B64: U64 = U64 U32;
        0x0a 0x1e 0x1e S_LSHR_B32: U32 = U32 U32;
        0x0b 0x1f 0x1f S_LSHR_B64: U64 = U64 U32;
        0x0c 0x20 0x20 S_ASHR_I32: I32 = I32 U32;
        0x0d 0x21 0x21 S_ASHR_I64: I64 = I64 U32;
        0x0e 0x2e 0x2e S_LSHL1_ADD_U32 S_LSHL2_ADD_U32 S_LSHL3_ADD_U32 S_LSHL4_ADD_U32: U32 = U32 U32;
        0x12 0x06 0x06 S_MIN_I32: I32 = I32 I32;
        0x13 0x07 0x07 S_MIN_U32: U32 = U32 U32;
        0x14 0x08 0x08 S_MAX_I32: I32 = I32 I32;
        0x15 0x09 0x09 S_MAX_U32: U32 = U32 U32;
        0x16 0x0c 0x0c S_AND_B32: U32 = U32 U32;
        0x17 0x0d 0x0d S_AND_B64: U64 = U64 U64;
        0x18 0x0e 0x0e S_OR_B32: U32 = U32 U32;
        0x19 0x0f 0x0f S_OR_B64: U64 = U64 U64;
        0x1a 0x10 0x10 S_XOR_B32: U32 = U32 U32;
        0x1b 0x11 0x11 S_XOR_B64: U64 = U64 U64;
        0x1c 0x16 0x16 S_NAND_B32: U32 = U32 U32;
        0x1d 0x17 0x17 S_NAND_B64: U64 = U64 U64;
        0x1e 0x18 0x18 S_NOR_B32: U32 = U32 U32;
        0x1f 0x19 0x19 S_NOR_B64: U64 = U64 U64;
        0x20 0x1a 0x1a S_XNOR_B32: U32 = U32 U32;
        0x21 0x1b 0x1b S_XNOR_B64: U64 = U64 U64;
        0x22 0x12 0x12 S_AND_NOT1_B32 (gfx9 S_ANDN2_B32): U32 = U32 U32;
        0x23 0x13 0x13 S_AND_NOT1_B64 (gfx9 S_ANDN2_B64): U64 = U64 U64;
        0x24 0x14 0x14 S_OR_NOT1_B32 (gfx9 S_ORN2_B32): U32 = U32 U32;
        0x25 0x15 0x15 S_OR_NOT1_B64 (gfx9 S_ORN2_B64): U64 = U64 U64;
        0x26 0x25 0x25 S_BFE_U32: U32 = U32 U32;
        0x27 0x26 0x26 S_BFE_I32: I32 = I32 U32;
        0x28 0x27 0x27 S_BFE_U64: U64 = U64 U32;
        0x29 0x28 0x28 S_BFE_I64: I64 = I64 U32;
        0x2a 0x22 0x22 S_BFM_B32: U32 = U32 U32;
        0x2b 0x23 0x23 S_BFM_B64: U64 = U32 U32;
        0x2c 0x24 0x24 S_MUL_I32: I32 = I32 I32;
        0x2d 0x2c 0x2c S_MUL_HI_U32: U32 = U32 U32;
        0x2e 0x2d 0x2d S_MUL_HI_I32: I32 = I32 I32;
        0x30 0x0a 0x0a S_CSELECT_B32: B32 = B32 B32;
        0x31 0x0b 0x0b S_CSELECT_B64: B64 = B64 B64;
        0x32 0x32 0x32 S_PACK_LL_B32_B16 S_PACK_LH_B32_B16 S_PACK_HH_B32_B16: B32 = B32 B32;
        0x35 _    _    S_PACK_HL_B32_B16: B32 = B32 B32;
        [_ 0x40] _ _ S_ADD_F32 S_SUB_F32 S_MIN_NUM_F32 S_MAX_NUM_F32 S_MUL_F32: F32 = F32 F32;
        [_ 0x45] _ _ S_FMAAK_F32: F32 = F32 F32 K32;
        [_ 0x46] _ _ S_FMAMK_F32: F32 = F32 K32 F32;
        [_ 0x47] _ _ S_FMAC_F32: F32 = F32 F32;
        [_ 0x48] _ _ S_CVT_PK_RTZ_F16_F32: PKF16 = F32 F32;
        [_ 0x49] _ _ S_ADD_F16 S_SUB_F16 S_MIN_NUM_F16 S_MAX_NUM_F16 S_MUL_F16 S_FMAC_F16: F16 = F16 F16;
        [_ 0x4f] _ _ S_MINIMUM_F32 S_MAXIMUM_F32: F32 = F32 F32;
        [_ 0x51] _ _ S_MINIMUM_F16 S_MAXIMUM_F16: F16 = F16 F16;
        [_ 0x53] _ _ S_ADD_NC_U64 S_SUB_NC_U64 S_MUL_U64: U64 = U64 U64;
    }
    Sopc => {
        0x00 0x00 0x00 S_CMP_EQ_I32 S_CMP_LG_I32 S_CMP_GT_I32 S_CMP_GE_I32 S_CMP_LT_I32 S_CMP_LE_I32: = I32 I32;
        0x06 0x06 0x06 S_CMP_EQ_U32 S_CMP_LG_U32 S_CMP_GT_U32 S_CMP_GE_U32 S_CMP_LT_U32 S_CMP_LE_U32: = U32 U32;
        0x0c 0x0c 0x0c S_BITCMP0_B32 S_BITCMP1_B32: = U32 U32;
        0x0e 0x0e 0x0e S_BITCMP0_B64 S_BITCMP1_B64: = U64 U32;
        0x10 0x12 0x12 S_CMP_EQ_U64 S_CMP_LG_U64: = U64 U64;
        _    0x11 0x11 S_SET_GPR_IDX_ON: = B32 GPRIDX;
        [_ 0x41] _ _ S_CMP_LT_F32 S_CMP_EQ_F32 S_CMP_LE_F32 S_CMP_GT_F32 S_CMP_LG_F32 S_CMP_GE_F32 S_CMP_O_F32
                       S_CMP_U_F32 S_CMP_NGE_F32 S_CMP_NLG_F32 S_CMP_NGT_F32 S_CMP_NLE_F32 S_CMP_NEQ_F32 S_CMP_NLT_F32: = F32 F32;
        [_ 0x51] _ _ S_CMP_LT_F16 S_CMP_EQ_F16 S_CMP_LE_F16 S_CMP_GT_F16 S_CMP_LG_F16 S_CMP_GE_F16 S_CMP_O_F16
                       S_CMP_U_F16 S_CMP_NGE_F16 S_CMP_NLG_F16 S_CMP_NGT_F16 S_CMP_NLE_F16 S_CMP_NEQ_F16 S_CMP_NLT_F16: = F16 F16;
    }
    Sopk => {
        0x00 0x00 0x00 S_MOVK_I32: B32 = HEX;
        0x01 _    _    S_VERSION: = HEX;
        0x02 0x01 0x01 S_CMOVK_I32: B32 = HEX;
        [0x03 _] 0x02 0x02 S_CMPK_EQ_I32 S_CMPK_LG_I32 S_CMPK_GT_I32 S_CMPK_GE_I32 S_CMPK_LT_I32 S_CMPK_LE_I32: = I32 HEX;
        [0x09 _] 0x08 0x08 S_CMPK_EQ_U32 S_CMPK_LG_U32 S_CMPK_GT_U32 S_CMPK_GE_U32 S_CMPK_LT_U32 S_CMPK_LE_U32: = U32 HEX;
        0x0f 0x0e 0x0e S_ADDK_I32 S_MULK_I32 (gfx12 S_ADDK_CO_I32 S_MULK_I32): B32 = HEX;
        0x11 0x11 0x11 S_GETREG_B32: B32 = HWREG;
        0x12 0x12 0x12 S_SETREG_B32: = B32 HWREG;
        0x13 0x14 0x14 S_SETREG_IMM32_B32: = K32 HWREG;
        0x14 0x15 0x15 S_CALL_B64: B64 = LABEL;
        [0x16 _] _    _    S_SUBVECTOR_LOOP_BEGIN S_SUBVECTOR_LOOP_END: B32 = LABEL;
        [0x18 _] _    _    S_WAITCNT_VSCNT S_WAITCNT_VMCNT S_WAITCNT_EXPCNT S_WAITCNT_LGKMCNT: = NULL HEX;
    }
    Sopp => {
        0x00 0x00 0x00 S_NOP: = IMM;
        0x01 0x0b 0x0b S_SETKILL: = IMM;
        0x02 0x0d 0x0d S_SETHALT S_SLEEP: = IMM;
        [0x04 _] _ _ S_SET_INST_PREFETCH_DISTANCE: = HEX;
        0x05 _    _    S_CLAUSE: = HEX;
        0x07 _    _    S_DELAY_ALU: = DELAY;
        0x08 _    _    S_WAITCNT_DEPCTR (gfx12 S_WAIT_ALU): = DEPCTR;
        0x09 0x0c 0x0c S_WAITCNT: = WAITCNT;
        0x0a _    _    S_WAIT_IDLE: =;
        0x0b _    _    S_WAIT_EVENT: = EVENT;
        0x10 0x12 0x12 S_TRAP: = IMM;
        0x11 _    _    S_ROUND_MODE: = HEX;
        0x12 _    _    S_DENORM_MODE: = IMM;
        0x1f _    _    S_CODE_END: =;
        0x20 0x02 0x02 S_BRANCH: = LABEL;
        0x21 0x04 0x04 S_CBRANCH_SCC0 S_CBRANCH_SCC1 S_CBRANCH_VCCZ S_CBRANCH_VCCNZ S_CBRANCH_EXECZ
                       S_CBRANCH_EXECNZ: = LABEL;
        [0x27 _] 0x17 0x17 S_CBRANCH_CDBGSYS S_CBRANCH_CDBGUSER S_CBRANCH_CDBGSYS_OR_USER
                       S_CBRANCH_CDBGSYS_AND_USER: = LABEL;
        0x30 0x01 0x01 S_ENDPGM: = DEC;
        0x31 0x1b 0x1b S_ENDPGM_SAVED: =;
        [0x32 _] 0x1e 0x1e S_ENDPGM_ORDERED_PS_DONE: =;
        0x34 0x03 0x03 S_WAKEUP: =;
        0x35 0x0f 0x0f S_SETPRIO: = IMM;
        0x36 0x10 0x10 S_SENDMSG S_SENDMSGHALT: = MSG;
        0x38 0x14 0x14 S_INCPERFLEVEL S_DECPERFLEVEL: = IMM;
        0x3a 0x16 0x16 S_TTRACEDATA: =;
        0x3b _    _    S_TTRACEDATA_IMM: = HEX;
        0x3c 0x13 0x13 S_ICACHE_INV: =;
        [0x3d _] 0x0a 0x0a S_BARRIER: =;
        _    0x1c 0x1c S_SET_GPR_IDX_OFF: =;
        _    0x1d 0x1d S_SET_GPR_IDX_MODE: = GPRIDX;
        [_ 0x14] _ _ S_BARRIER_WAIT: = IMM;
        [_ 0x15] _ _ S_BARRIER_LEAVE: =;
        [_ 0x40] _ _ S_WAIT_LOADCNT S_WAIT_STORECNT S_WAIT_SAMPLECNT S_WAIT_BVHCNT S_WAIT_EXPCNT: = HEX;
        [_ 0x46] _ _ S_WAIT_DSCNT S_WAIT_KMCNT S_WAIT_LOADCNT_DSCNT S_WAIT_STORECNT_DSCNT: = HEX;
    }
    Smem => {
        0x00 0x00 0x00 S_LOAD_B32 (gfx9 S_LOAD_DWORD): B32 = B64 B32;
        0x01 0x01 0x01 S_LOAD_B64 (gfx9 S_LOAD_DWORDX2): B64 = B64 B32;
        0x02 0x02 0x02 S_LOAD_B128 (gfx9 S_LOAD_DWORDX4): B128 = B64 B32;
        0x03 0x03 0x03 S_LOAD_B256 (gfx9 S_LOAD_DWORDX8): B256 = B64 B32;
        0x04 0x04 0x04 S_LOAD_B512 (gfx9 S_LOAD_DWORDX16): B512 = B64 B32;
        [0x08 0x10] 0x08 0x08 S_BUFFER_LOAD_B32 (gfx9 S_BUFFER_LOAD_DWORD): B32 = B128 B32;
        [0x09 0x11] 0x09 0x09 S_BUFFER_LOAD_B64 (gfx9 S_BUFFER_LOAD_DWORDX2): B64 = B128 B32;
        [0x0a 0x12] 0x0a 0x0a S_BUFFER_LOAD_B128 (gfx9 S_BUFFER_LOAD_DWORDX4): B128 = B128 B32;
        [0x0b 0x13] 0x0b 0x0b S_BUFFER_LOAD_B256 (gfx9 S_BUFFER_LOAD_DWORDX8): B256 = B128 B32;
        [0x0c 0x14] 0x0c 0x0c S_BUFFER_LOAD_B512 (gfx9 S_BUFFER_LOAD_DWORDX16): B512 = B128 B32;
        [0x20 _] _    _    S_GL1_INV: =;
        0x21 0x20 0x20 S_DCACHE_INV: =;
        _    0x21 0x21 S_DCACHE_WB S_DCACHE_INV_VOL S_DCACHE_WB_VOL: =;
        _    0x24 0x24 S_MEMTIME S_MEMREALTIME: B64 =;
        [_ 0x05] _ _ S_LOAD_B96: B96 = B64 B32;
        [_ 0x08] _ _ S_LOAD_I8 S_LOAD_U8 S_LOAD_I16 S_LOAD_U16: B32 = B64 B32;
        [_ 0x15] _ _ S_BUFFER_LOAD_B96: B96 = B128 B32;
        [_ 0x18] _ _ S_BUFFER_LOAD_I8 S_BUFFER_LOAD_U8 S_BUFFER_LOAD_I16 S_BUFFER_LOAD_U16: B32 = B128 B32;
    }
    Vop1 => {
        0x00 0x00 0x00 V_NOP: = | (rdna NO_DPP);
        0x01 0x01 0x01 V_MOV_B32: B32 = B32;
        0x02 0x02 0x02 V_READFIRSTLANE_B32: S32 = V32 | NO_E64 NO_DPP NO_SDWA;
        0x03 0x03 0x03 V_CVT_I32_F64: I32 = F64 | CLAMP OMOD (gfx9 DPP);
        0x04 0x04 0x04 V_CVT_F64_I32: F64 = I32 | (gfx9 DPP);
        0x05 0x05 0x05 V_CVT_F32_I32: F32 = I32;
        0x06 0x06 0x06 V_CVT_F32_U32: F32 = U32;
        0x07 0x07 0x07 V_CVT_U32_F32: U32 = F32 | CLAMP OMOD;
        0x08 0x08 0x08 V_CVT_I32_F32: I32 = F32 | CLAMP OMOD;
        0x0a 0x0a 0x0a V_CVT_F16_F32: F16 = F32;
        0x0b 0x0b 0x0b V_CVT_F32_F16: F32 = F16;
        0x0c 0x0c 0x0c V_CVT_NEAREST_I32_F32 (gfx9 V_CVT_RPI_I32_F32): I32 = F32 | CLAMP;
        0x0d 0x0d 0x0d V_CVT_FLOOR_I32_F32 (gfx9 V_CVT_FLR_I32_F32): I32 = F32 | CLAMP;
        0x0e 0x0e 0x0e V_CVT_OFF_F32_I4: F32 = I32;
        0x0f 0x0f 0x0f V_CVT_F32_F64: F32 = F64 | (gfx9 DPP);
        0x10 0x10 0x10 V_CVT_F64_F32: F64 = F32 | (gfx9 DPP);
        0x11 0x11 0x11 V_CVT_F32_UBYTE0 V_CVT_F32_UBYTE1 V_CVT_F32_UBYTE2 V_CVT_F32_UBYTE3: F32 = U32;
        0x15 0x15 0x15 V_CVT_U32_F64: U32 = F64 | CLAMP OMOD (gfx9 DPP);
        0x16 0x16 0x16 V_CVT_F64_U32: F64 = U32 | (gfx9 DPP);
        0x17 0x17 0x17 V_TRUNC_F64 V_CEIL_F64 V_RNDNE_F64 V_FLOOR_F64: F64 = F64 | (gfx9 DPP);
        0x1b _    _    V_PIPEFLUSH: = | NO_DPP;
        0x1c _    _    V_MOV_B16: B16 = B16;
        0x20 0x1b 0x1b V_FRACT_F32 V_TRUNC_F32 V_CEIL_F32 V_RNDNE_F32 V_FLOOR_F32 V_EXP_F32: F32 = F32;
        0x27 0x21 0x21 V_LOG_F32: F32 = F32;
        0x2a 0x22 0x22 V_RCP_F32 V_RCP_IFLAG_F32: F32 = F32;
        0x2e 0x24 0x24 V_RSQ_F32: F32 = F32;
        0x2f 0x25 0x25 V_RCP_F64: F64 = F64 | (gfx9 DPP);
        0x31 0x26 0x26 V_RSQ_F64: F64 = F64 | (gfx9 DPP);
        0x33 0x27 0x27 V_SQRT_F32: F32 = F32;
        0x34 0x28 0x28 V_SQRT_F64: F64 = F64 | (gfx9 DPP);
        0x35 0x29 0x29 V_SIN_F32 V_COS_F32: F32 = F32;
        0x37 0x2b 0x2b V_NOT_B32: U32 = U32;
        0x38 0x2c 0x2c V_BFREV_B32: B32 = B32;
        0x39 0x2d 0x2d V_CLZ_I32_U32 (gfx9 V_FFBH_U32): I32 = U32;
        0x3a 0x2e 0x2e V_CTZ_I32_B32 (gfx9 V_FFBL_B32): I32 = U32;
        0x3b 0x2f 0x2f V_CLS_I32 (gfx9 V_FFBH_I32): I32 = I32;
        0x3c 0x30 0x30 V_FREXP_EXP_I32_F64: I32 = F64 | CLAMP OMOD (gfx9 DPP);
        0x3d 0x31 0x31 V_FREXP_MANT_F64 V_FRACT_F64: F64 = F64 | (gfx9 DPP);
        0x3f 0x33 0x33 V_FREXP_EXP_I32_F32: I32 = F32 | CLAMP;
        0x40 0x34 0x34 V_FREXP_MANT_F32: F32 = F32;
        0x42 _    _    V_MOVRELD_B32: V32 = B32;
        0x43 _    _    V_MOVRELS_B32 V_MOVRELSD_B32: V32 = V32;
        0x48 _    _    V_MOVRELSD_2_B32: V32 = V32;
        0x50 0x39 0x39 V_CVT_F16_U16: F16 = U16;
        0x51 0x3a 0x3a V_CVT_F16_I16: F16 = I16;
        0x52 0x3b 0x3b V_CVT_U16_F16: U16 = F16 | CLAMP OMOD;
        0x53 0x3c 0x3c V_CVT_I16_F16: I16 = F16 | CLAMP OMOD;
        0x54 0x3d 0x3d V_RCP_F16 V_SQRT_F16 V_RSQ_F16 V_LOG_F16 V_EXP_F16 V_FREXP_MANT_F16: F16 = F16;
        0x5a 0x43 0x43 V_FREXP_EXP_I16_F16: I16 = F16 | CLAMP OMOD;
        0x5b 0x44 0x44 V_FLOOR_F16 V_CEIL_F16 V_TRUNC_F16 V_RNDNE_F16 V_FRACT_F16 V_SIN_F16 V_COS_F16: F16 = F16;
        0x62 0x4f 0x4f V_SAT_PK_U8_I16: B16 = PKI16;
        0x63 0x4d 0x4d V_CVT_NORM_I16_F16: I16 = F16 | CLAMP OMOD;
        0x64 0x4e 0x4e V_CVT_NORM_U16_F16: U16 = F16 | CLAMP OMOD;
        0x65 0x51 0x51 V_SWAP_B32: V32 = V32 | NO_E64 NO_DPP NO_SDWA;
        0x66 _    _    V_SWAP_B16: V16 = V16 | NO_E64 NO_DPP;
        0x67 _    _    V_PERMLANE64_B32 V_SWAPREL_B32: V32 = V32 | NO_E64 NO_DPP;
        0x69 _    _    V_NOT_B16: U16 = U16;
        0x6a _    _    V_CVT_I32_I16: I32 = I16;
        0x6b _    _    V_CVT_U32_U16: U32 = U16;
        _    0x35 0x35 V_CLREXCP: =;
        _    _    0x38 V_MOV_B64: B64 = B64 | DPP;
        _    0x4b 0x4b V_EXP_LEGACY_F32 V_LOG_LEGACY_F32: F32 = F32;
        _    0x52 0x52 V_ACCVGPR_MOV_B32: A32 = A32 | NO_E64 NO_DPP NO_SDWA;
        _    _    0x54 V_CVT_F32_FP8 V_CVT_F32_BF8: F32 = B32;
        _    _    0x56 V_CVT_PK_F32_FP8 V_CVT_PK_F32_BF8: PKF32 = B32 | DPP SDWA;
    }
    Vop2 => {
        0x01 0x00 0x00 V_CNDMASK_B32: B32 = F32 F32 MASK;
        [0x02 _] 0x37 0x37 V_DOT2ACC_F32_F16 (gfx9 V_DOT2C_F32_F16): F32 = PKF16 PKF16 | NO_SDWA (rdna NO_E64);
        0x03 0x01 0x01 V_ADD_F32 V_SUB_F32 V_SUBREV_F32: F32 = F32 F32;
        [0x06 _] _    _    V_FMAC_DX9_ZERO_F32: F32 = F32 F32 | NO_DPP;
        0x07 _    _    V_MUL_DX9_ZERO_F32: F32 = F32 F32;
        0x08 0x05 0x05 V_MUL_F32: F32 = F32 F32;
        0x09 0x06 0x06 V_MUL_I32_I24: I32 = I32 I32 | CLAMP;
        0x0a 0x07 0x07 V_MUL_HI_I32_I24: I32 = I32 I32;
        0x0b 0x08 0x08 V_MUL_U32_U24: U32 = U32 U32 | CLAMP;
        0x0c 0x09 0x09 V_MUL_HI_U32_U24: U32 = U32 U32;
        [0x0f 0x15] 0x0a 0x0a V_MIN_F32 V_MAX_F32 (gfx12 V_MIN_NUM_F32 V_MAX_NUM_F32): F32 = F32 F32;
        0x11 0x0c 0x0c V_MIN_I32 V_MAX_I32: I32 = I32 I32;
        0x13 0x0e 0x0e V_MIN_U32 V_MAX_U32: U32 = U32 U32;
        0x18 0x12 0x12 V_LSHLREV_B32: U32 = U32 U32;
        0x19 0x10 0x10 V_LSHRREV_B32: U32 = U32 U32;
        0x1a 0x11 0x11 V_ASHRREV_I32: I32 = U32 I32;
        0x1b 0x13 0x13 V_AND_B32 V_OR_B32 V_XOR_B32: U32 = U32 U32;
        0x1e 0x3d 0x3d V_XNOR_B32: U32 = U32 U32;
        0x20 0x1c 0x1c V_ADD_CO_CI_U32 (gfx9 V_ADDC_CO_U32): U32 MASK = U32 U32 MASK | CLAMP;
        0x21 0x1d 0x1d V_SUB_CO_CI_U32 (gfx9 V_SUBB_CO_U32): U32 MASK = U32 U32 MASK | CLAMP;
        0x22 0x1e 0x1e V_SUBREV_CO_CI_U32 (gfx9 V_SUBBREV_CO_U32): U32 MASK = U32 U32 MASK | CLAMP;
        0x25 0x34 0x34 V_ADD_NC_U32 (gfx9 V_ADD_U32): U32 = U32 U32 | CLAMP;
        0x26 0x35 0x35 V_SUB_NC_U32 (gfx9 V_SUB_U32): U32 = U32 U32 | CLAMP;
        0x27 0x36 0x36 V_SUBREV_NC_U32 (gfx9 V_SUBREV_U32): U32 = U32 U32 | CLAMP;
        0x2b 0x3b 0x3b V_FMAC_F32: F32 = F32 F32 | NO_SDWA;
        0x2c _    0x17 V_FMAMK_F32: F32 = F32 K32 F32 | NO_E64 NO_DPP NO_SDWA;
        0x2d _    0x18 V_FMAAK_F32: F32 = F32 F32 K32 | NO_E64 NO_DPP NO_SDWA;
        0x2f _    _    V_CVT_PK_RTZ_F16_F32: PKF16 = F32 F32;
        0x32 0x1f 0x1f V_ADD_F16 V_SUB_F16 V_SUBREV_F16 V_MUL_F16: F16 = F16 F16;
        0x36 _    _    V_FMAC_F16: F16 = F16 F16;
        0x37 _    _    V_FMAMK_F16: F16 = F16 K16 F16 | NO_E64 NO_DPP;
        0x38 _    _    V_FMAAK_F16: F16 = F16 F16 K16 | NO_E64 NO_DPP;
        [0x39 0x31] 0x2d 0x2d V_MAX_F16 (gfx12 V_MAX_NUM_F16): F16 = F16 F16;
        [0x3a 0x30] 0x2e 0x2e V_MIN_F16 (gfx12 V_MIN_NUM_F16): F16 = F16 F16;
        0x3b 0x33 0x33 V_LDEXP_F16: F16 = F16 I16;
        0x3c 0x3c 0x3c V_PK_FMAC_F16: PKF16 = PKF16 PKF16 | (rdna NO_E64 NO_DPP);
        _    0x04 0x04 V_FMAC_F64: F64 = F64 F64 | DPP;
        _    0x16 _    V_MAC_F32: F32 = F32 F32 | NO_SDWA;
        _    0x17 _    V_MADMK_F32: F32 = F32 K32 F32 | NO_E64 NO_DPP NO_SDWA;
        _    0x18 _    V_MADAK_F32: F32 = F32 F32 K32 | NO_E64 NO_DPP NO_SDWA;
        _    0x23 0x23 V_MAC_F16: F16 = F16 F16 | NO_SDWA;
        _    0x24 0x24 V_MADMK_F16: F16 = F16 K16 F16 | NO_E64 NO_DPP NO_SDWA;
        _    0x25 0x25 V_MADAK_F16: F16 = F16 F16 K16 | NO_E64 NO_DPP NO_SDWA;
        _    0x28 0x28 V_SUBREV_NC_U16 (gfx9 V_SUBREV_U16): U16 = U16 U16 | CLAMP;
        _    0x38 0x38 V_DOT2C_I32_I16: I32 = PKI16 PKI16 | CLAMP NO_SDWA;
        _    0x39 0x39 V_DOT4C_I32_I8 V_DOT8C_I32_I4: I32 = B32 B32 | CLAMP NO_SDWA;
    }
    Vopc => {
        0x00 0x20 0x20 V_CMP_F_F16 V_CMP_LT_F16 V_CMP_EQ_F16 V_CMP_LE_F16 V_CMP_GT_F16 V_CMP_LG_F16 V_CMP_GE_F16
                       V_CMP_O_F16 V_CMP_U_F16 V_CMP_NGE_F16 V_CMP_NLG_F16 V_CMP_NGT_F16 V_CMP_NLE_F16 V_CMP_NEQ_F16
                       V_CMP_NLT_F16: MASK = F16 F16;
        0x0f 0x2f 0x2f V_CMP_T_F16 (gfx9 V_CMP_TRU_F16): MASK = F16 F16;
        0x10 0x40 0x40 V_CMP_F_F32 V_CMP_LT_F32 V_CMP_EQ_F32 V_CMP_LE_F32 V_CMP_GT_F32 V_CMP_LG_F32 V_CMP_GE_F32
                       V_CMP_O_F32 V_CMP_U_F32 V_CMP_NGE_F32 V_CMP_NLG_F32 V_CMP_NGT_F32 V_CMP_NLE_F32 V_CMP_NEQ_F32
                       V_CMP_NLT_F32: MASK = F32 F32;
        0x1f 0x4f 0x4f V_CMP_T_F32 (gfx9 V_CMP_TRU_F32): MASK = F32 F32;
        0x20 0x60 0x60 V_CMP_F_F64 V_CMP_LT_F64 V_CMP_EQ_F64 V_CMP_LE_F64 V_CMP_GT_F64 V_CMP_LG_F64 V_CMP_GE_F64
                       V_CMP_O_F64 V_CMP_U_F64 V_CMP_NGE_F64 V_CMP_NLG_F64 V_CMP_NGT_F64 V_CMP_NLE_F64 V_CMP_NEQ_F64
                       V_CMP_NLT_F64: MASK = F64 F64;
        0x2f 0x6f 0x6f V_CMP_T_F64 (gfx9 V_CMP_TRU_F64): MASK = F64 F64;
        0x31 0xa1 0xa1 V_CMP_LT_I16 V_CMP_EQ_I16 V_CMP_LE_I16 V_CMP_GT_I16 V_CMP_NE_I16 V_CMP_GE_I16: MASK = I16 I16;
        0x39 0xa9 0xa9 V_CMP_LT_U16 V_CMP_EQ_U16 V_CMP_LE_U16 V_CMP_GT_U16 V_CMP_NE_U16 V_CMP_GE_U16: MASK = U16 U16;
        0x40 0xc0 0xc0 V_CMP_F_I32 V_CMP_LT_I32 V_CMP_EQ_I32 V_CMP_LE_I32 V_CMP_GT_I32 V_CMP_NE_I32 V_CMP_GE_I32
                       V_CMP_T_I32: MASK = I32 I32;
        0x48 0xc8 0xc8 V_CMP_F_U32 V_CMP_LT_U32 V_CMP_EQ_U32 V_CMP_LE_U32 V_CMP_GT_U32 V_CMP_NE_U32 V_CMP_GE_U32
                       V_CMP_T_U32: MASK = U32 U32;
        0x50 0xe0 0xe0 V_CMP_F_I64 V_CMP_LT_I64 V_CMP_EQ_I64 V_CMP_LE_I64 V_CMP_GT_I64 V_CMP_NE_I64 V_CMP_GE_I64
                       V_CMP_T_I64: MASK = I64 I64;
        0x58 0xe8 0xe8 V_CMP_F_U64 V_CMP_LT_U64 V_CMP_EQ_U64 V_CMP_LE_U64 V_CMP_GT_U64 V_CMP_NE_U64 V_CMP_GE_U64
                       V_CMP_T_U64: MASK = U64 U64;
        0x7d _    _    V_CMP_CLASS_F16: MASK = F16 U16 | PLAIN;
        0x7e 0x10 0x10 V_CMP_CLASS_F32: MASK = F32 U32 | PLAIN;
        0x7f 0x12 0x12 V_CMP_CLASS_F64: MASK = F64 U32 | PLAIN;
        0x80 0x30 0x30 V_CMPX_F_F16 V_CMPX_LT_F16 V_CMPX_EQ_F16 V_CMPX_LE_F16 V_CMPX_GT_F16 V_CMPX_LG_F16
                       V_CMPX_GE_F16 V_CMPX_O_F16 V_CMPX_U_F16 V_CMPX_NGE_F16 V_CMPX_NLG_F16 V_CMPX_NGT_F16
                       V_CMPX_NLE_F16 V_CMPX_NEQ_F16 V_CMPX_NLT_F16: EXEC = F16 F16;
        0x8f 0x3f 0x3f V_CMPX_T_F16 (gfx9 V_CMPX_TRU_F16): EXEC = F16 F16;
        0x90 0x50 0x50 V_CMPX_F_F32 V_CMPX_LT_F32 V_CMPX_EQ_F32 V_CMPX_LE_F32 V_CMPX_GT_F32 V_CMPX_LG_F32
                       V_CMPX_GE_F32 V_CMPX_O_F32 V_CMPX_U_F32 V_CMPX_NGE_F32 V_CMPX_NLG_F32 V_CMPX_NGT_F32
                       V_CMPX_NLE_F32 V_CMPX_NEQ_F32 V_CMPX_NLT_F32: EXEC = F32 F32;
        0x9f 0x5f 0x5f V_CMPX_T_F32 (gfx9 V_CMPX_TRU_F32): EXEC = F32 F32;
        0xa0 0x70 0x70 V_CMPX_F_F64 V_CMPX_LT_F64 V_CMPX_EQ_F64 V_CMPX_LE_F64 V_CMPX_GT_F64 V_CMPX_LG_F64
                       V_CMPX_GE_F64 V_CMPX_O_F64 V_CMPX_U_F64 V_CMPX_NGE_F64 V_CMPX_NLG_F64 V_CMPX_NGT_F64
                       V_CMPX_NLE_F64 V_CMPX_NEQ_F64 V_CMPX_NLT_F64: EXEC = F64 F64;
        0xaf 0x7f 0x7f V_CMPX_T_F64 (gfx9 V_CMPX_TRU_F64): EXEC = F64 F64;
        0xb1 0xb1 0xb1 V_CMPX_LT_I16 V_CMPX_EQ_I16 V_CMPX_LE_I16 V_CMPX_GT_I16 V_CMPX_NE_I16
                       V_CMPX_GE_I16: EXEC = I16 I16;
        0xb9 0xb9 0xb9 V_CMPX_LT_U16 V_CMPX_EQ_U16 V_CMPX_LE_U16 V_CMPX_GT_U16 V_CMPX_NE_U16
                       V_CMPX_GE_U16: EXEC = U16 U16;
        0xc0 0xd0 0xd0 V_CMPX_F_I32 V_CMPX_LT_I32 V_CMPX_EQ_I32 V_CMPX_LE_I32 V_CMPX_GT_I32 V_CMPX_NE_I32
                       V_CMPX_GE_I32 V_CMPX_T_I32: EXEC = I32 I32;
        0xc8 0xd8 0xd8 V_CMPX_F_U32 V_CMPX_LT_U32 V_CMPX_EQ_U32 V_CMPX_LE_U32 V_CMPX_GT_U32 V_CMPX_NE_U32
                       V_CMPX_GE_U32 V_CMPX_T_U32: EXEC = U32 U32;
        0xd0 0xf0 0xf0 V_CMPX_F_I64 V_CMPX_LT_I64 V_CMPX_EQ_I64 V_CMPX_LE_I64 V_CMPX_GT_I64 V_CMPX_NE_I64
                       V_CMPX_GE_I64 V_CMPX_T_I64: EXEC = I64 I64;
        0xd8 0xf8 0xf8 V_CMPX_F_U64 V_CMPX_LT_U64 V_CMPX_EQ_U64 V_CMPX_LE_U64 V_CMPX_GT_U64 V_CMPX_NE_U64
                       V_CMPX_GE_U64 V_CMPX_T_U64: EXEC = U64 U64;
        0xfd _    _    V_CMPX_CLASS_F16: EXEC = F16 U16 | PLAIN;
        0xfe 0x11 0x11 V_CMPX_CLASS_F32: EXEC = F32 U32 | PLAIN;
        0xff 0x13 0x13 V_CMPX_CLASS_F64: EXEC = F64 U32 | PLAIN;
        _    0xa0 0xa0 V_CMP_F_I16: MASK = I16 I16;
        _    0xa7 0xa7 V_CMP_T_I16: MASK = I16 I16;
        _    0xa8 0xa8 V_CMP_F_U16: MASK = U16 U16;
        _    0xaf 0xaf V_CMP_T_U16: MASK = U16 U16;
        _    0xb0 0xb0 V_CMPX_F_I16: MASK = I16 I16;
        _    0xb7 0xb7 V_CMPX_T_I16: MASK = I16 I16;
        _    0xb8 0xb8 V_CMPX_F_U16: MASK = U16 U16;
        _    0xbf 0xbf V_CMPX_T_U16: MASK = U16 U16;
    }
    Vop3 => {
        0x209 _     _     V_FMA_DX9_ZERO_F32: F32 = F32 F32 F32 | NO_DPP;
        0x20a 0x1c2 0x1c2 V_MAD_I32_I24: I32 = I32 I32 I32 | CLAMP;
        0x20b 0x1c3 0x1c3 V_MAD_U32_U24: U32 = U32 U32 U32 | CLAMP;
        0x20c 0x1c4 0x1c4 V_CUBEID_F32 V_CUBESC_F32 V_CUBETC_F32 V_CUBEMA_F32: F32 = F32 F32 F32;
        0x210 0x1c8 0x1c8 V_BFE_U32: U32 = U32 U32 U32;
        0x211 0x1c9 0x1c9 V_BFE_I32: I32 = I32 U32 U32;
        0x212 0x1ca 0x1ca V_BFI_B32: U32 = U32 U32 U32;
        0x213 0x1cb 0x1cb V_FMA_F32: F32 = F32 F32 F32;
        0x214 0x1cc 0x1cc V_FMA_F64: F64 = F64 F64 F64;
        0x215 0x1cd 0x1cd V_LERP_U8: U32 = B32 B32 B32;
        0x216 0x1ce 0x1ce V_ALIGNBIT_B32 V_ALIGNBYTE_B32: U32 = U32 U32 U16 | CLAMP (gfx9 OP_SEL);
        0x218 _     _     V_MULLIT_F32: F32 = F32 F32 F32;
        [0x219 0x229] 0x1d0 0x1d0 V_MIN3_F32 (gfx12 V_MIN3_NUM_F32): F32 = F32 F32 F32;
        0x21a 0x1d1 0x1d1 V_MIN3_I32: I32 = I32 I32 I32;
        0x21b 0x1d2 0x1d2 V_MIN3_U32: U32 = U32 U32 U32;
        [0x21c 0x22a] 0x1d3 0x1d3 V_MAX3_F32 (gfx12 V_MAX3_NUM_F32): F32 = F32 F32 F32;
        0x21d 0x1d4 0x1d4 V_MAX3_I32: I32 = I32 I32 I32;
        0x21e 0x1d5 0x1d5 V_MAX3_U32: U32 = U32 U32 U32;
        [0x21f 0x231] 0x1d6 0x1d6 V_MED3_F32 (gfx12 V_MED3_NUM_F32): F32 = F32 F32 F32;
        0x220 0x1d7 0x1d7 V_MED3_I32: I32 = I32 I32 I32;
        0x221 0x1d8 0x1d8 V_MED3_U32: U32 = U32 U32 U32;
        0x222 0x1d9 0x1d9 V_SAD_U8 V_SAD_HI_U8: U32 = B32 B32 U32 | CLAMP;
        0x224 0x1db 0x1db V_SAD_U16: U32 = PKU16 PKU16 U32 | CLAMP;
        0x225 0x1dc 0x1dc V_SAD_U32: U32 = U32 U32 U32 | CLAMP;
        0x226 0x1dd 0x1dd V_CVT_PK_U8_F32: B32 = F32 B32 B32 | CLAMP;
        0x227 0x1de 0x1de V_DIV_FIXUP_F32: F32 = F32 F32 F32 | (rdna NO_DPP);
        0x228 0x1df 0x1df V_DIV_FIXUP_F64: F64 = F64 F64 F64;
        0x237 0x1e2 0x1e2 V_DIV_FMAS_F32: F32 = F32 F32 F32 | (rdna NO_DPP);
        0x238 0x1e3 0x1e3 V_DIV_FMAS_F64: F64 = F64 F64 F64;
        0x239 0x1e4 0x1e4 V_MSAD_U8: U32 = B32 B32 B32 | CLAMP;
        0x23a 0x1e5 0x1e5 V_QSAD_PK_U16_U8 V_MQSAD_PK_U16_U8: B64 = B64 B32 B64 | CLAMP;
        0x23d 0x1e7 0x1e7 V_MQSAD_U32_U8: B128 = B64 B32 V128 | CLAMP;
        0x240 _     _     V_XOR3_B32: U32 = U32 U32 U32;
        0x241 0x204 0x204 V_MAD_U16: U16 = U16 U16 U16 | CLAMP (gfx9 OP_SEL);
        0x244 0x1ed 0x1ed V_PERM_B32: B32 = B32 B32 B32;
        0x245 0x1f3 0x1f3 V_XAD_U32: U32 = U32 U32 U32;
        0x246 0x1fd 0x1fd V_LSHL_ADD_U32 V_ADD_LSHL_U32: U32 = U32 U32 U32;
        0x248 0x206 0x206 V_FMA_F16: F16 = F16 F16 F16 | (gfx9 OP_SEL);
        [0x249 0x22b] 0x1f4 0x1f4 V_MIN3_F16 (gfx12 V_MIN3_NUM_F16): F16 = F16 F16 F16 | (gfx9 OP_SEL);
        0x24a 0x1f5 0x1f5 V_MIN3_I16: I16 = I16 I16 I16 | CLAMP (gfx9 OP_SEL);
        0x24b 0x1f6 0x1f6 V_MIN3_U16: U16 = U16 U16 U16 | CLAMP (gfx9 OP_SEL);
        [0x24c 0x22c] 0x1f7 0x1f7 V_MAX3_F16 (gfx12 V_MAX3_NUM_F16): F16 = F16 F16 F16 | (gfx9 OP_SEL);
        0x24d 0x1f8 0x1f8 V_MAX3_I16: I16 = I16 I16 I16 | CLAMP (gfx9 OP_SEL);
        0x24e 0x1f9 0x1f9 V_MAX3_U16: U16 = U16 U16 U16 | CLAMP (gfx9 OP_SEL);
        [0x24f 0x232] 0x1fa 0x1fa V_MED3_F16 (gfx12 V_MED3_NUM_F16): F16 = F16 F16 F16 | (gfx9 OP_SEL);
        0x250 0x1fb 0x1fb V_MED3_I16: I16 = I16 I16 I16 | CLAMP (gfx9 OP_SEL);
        0x251 0x1fc 0x1fc V_MED3_U16: U16 = U16 U16 U16 | CLAMP (gfx9 OP_SEL);
        0x253 0x205 0x205 V_MAD_I16: I16 = I16 I16 I16 | CLAMP (gfx9 OP_SEL);
        0x254 0x207 0x207 V_DIV_FIXUP_F16: F16 = F16 F16 F16 | (gfx9 OP_SEL);
        0x255 0x1ff 0x1ff V_ADD3_U32 V_LSHL_OR_B32 V_AND_OR_B32 V_OR3_B32: U32 = U32 U32 U32;
        0x259 0x1f1 0x1f1 V_MAD_U32_U16: U32 = U16 U16 U32 | CLAMP (gfx9 OP_SEL);
        0x25a 0x1f2 0x1f2 V_MAD_I32_I16: I32 = I16 I16 I32 | CLAMP (gfx9 OP_SEL);
        0x25b _     _     V_PERMLANE16_B32 V_PERMLANEX16_B32: V32 = V32 S32 S32 | NO_DPP;
        0x25d _     _     V_CNDMASK_B16: B16 = F16 F16 MASK;
        [0x25e 0x269] _ _ V_MAXMIN_F32 (gfx12 V_MAXMIN_NUM_F32): F32 = F32 F32 F32;
        [0x25f 0x268] _ _ V_MINMAX_F32 (gfx12 V_MINMAX_NUM_F32): F32 = F32 F32 F32;
        [0x260 0x26b] _ _ V_MAXMIN_F16 (gfx12 V_MAXMIN_NUM_F16): F16 = F16 F16 F16;
        [0x261 0x26a] _ _ V_MINMAX_F16 (gfx12 V_MINMAX_NUM_F16): F16 = F16 F16 F16;
        0x262 _     _     V_MAXMIN_U32 V_MINMAX_U32: U32 = U32 U32 U32;
        0x264 _     _     V_MAXMIN_I32 V_MINMAX_I32: I32 = I32 I32 I32;
        0x266 _     _     V_DOT2_F16_F16: F16 = PKF16 PKF16 F16 | PLAIN;
        0x267 _     _     V_DOT2_BF16_BF16: BF16 = PKBF16 PKBF16 BF16 | PLAIN;
        0x303 _     _     V_ADD_NC_U16 V_SUB_NC_U16: U16 = U16 U16 | CLAMP;
        0x305 _     _     V_MUL_LO_U16: U16 = U16 U16;
        0x306 _     _     V_CVT_PK_I16_F32: PKI16 = F32 F32 | CLAMP;
        0x307 _     _     V_CVT_PK_U16_F32: PKU16 = F32 F32 | CLAMP;
        0x309 _     _     V_MAX_U16: U16 = U16 U16;
        0x30a _     _     V_MAX_I16: I16 = I16 I16;
        0x30b _     _     V_MIN_U16: U16 = U16 U16;
        0x30c _     _     V_MIN_I16: I16 = I16 I16;
        0x30d 0x29e 0x29e V_ADD_NC_I16 (gfx9 V_ADD_I16): I16 = I16 I16 | CLAMP (gfx9 OP_SEL);
        0x30e 0x29f 0x29f V_SUB_NC_I16 (gfx9 V_SUB_I16): I16 = I16 I16 | CLAMP (gfx9 OP_SEL);
        0x311 0x2a0 0x2a0 V_PACK_B32_F16: B32 = F16 F16 | CLAMP (gfx9 OP_SEL);
        0x312 0x299 0x299 V_CVT_PK_NORM_I16_F16 (gfx9 V_CVT_PKNORM_I16_F16): PKI16 = F16 F16 | CLAMP (gfx9 OP_SEL);
        0x313 0x29a 0x29a V_CVT_PK_NORM_U16_F16 (gfx9 V_CVT_PKNORM_U16_F16): PKU16 = F16 F16 | CLAMP (gfx9 OP_SEL);
        0x31c 0x288 0x288 V_LDEXP_F32: F32 = F32 I32;
        0x31d 0x293 0x293 V_BFM_B32: U32 = U32 U32;
        0x31e 0x28b 0x28b V_BCNT_U32_B32 V_MBCNT_LO_U32_B32 V_MBCNT_HI_U32_B32: U32 = U32 U32;
        0x321 0x294 0x294 V_CVT_PK_NORM_I16_F32 (gfx9 V_CVT_PKNORM_I16_F32): PKI16 = F32 F32 | CLAMP;
        0x322 0x295 0x295 V_CVT_PK_NORM_U16_F32 (gfx9 V_CVT_PKNORM_U16_F32): PKU16 = F32 F32 | CLAMP;
        0x323 0x297 0x297 V_CVT_PK_U16_U32: PKU16 = U32 U32;
        0x324 0x298 0x298 V_CVT_PK_I16_I32: PKI16 = I32 I32;
        0x325 0x29d 0x29d V_SUB_NC_I32 (gfx9 V_SUB_I32): I32 = I32 I32 | CLAMP;
        0x326 0x29c 0x29c V_ADD_NC_I32 (gfx9 V_ADD_I32): I32 = I32 I32 | CLAMP;
        [0x327 _] 0x280 0x280 V_ADD_F64 V_MUL_F64 V_MIN_F64 V_MAX_F64: F64 = F64 F64;
        0x32b 0x284 0x284 V_LDEXP_F64: F64 = F64 I32;
        0x32c 0x285 0x285 V_MUL_LO_U32 V_MUL_HI_U32: U32 = U32 U32 | (rdna NO_DPP);
        0x32e 0x287 0x287 V_MUL_HI_I32: I32 = I32 I32 | (rdna NO_DPP);
        0x32f 0x292 0x292 V_TRIG_PREOP_F64: F64 = F64 B32;
        0x338 _     _     V_LSHLREV_B16 V_LSHRREV_B16: B16 = U16 B16;
        0x33a _     _     V_ASHRREV_I16: I16 = U16 I16;
        [0x33c _] 0x28f 0x28f V_LSHLREV_B64: U64 = U32 U64;
        0x33d 0x290 0x290 V_LSHRREV_B64: U64 = U32 U64;
        0x33e 0x291 0x291 V_ASHRREV_I64: I64 = U32 I64;
        0x360 0x289 0x289 V_READLANE_B32: S32 = V32 LANE | (rdna NO_DPP);
        0x361 0x28a 0x28a V_WRITELANE_B32: V32 = S32 LANE | (rdna NO_DPP);
        0x362 _     _     V_AND_B16 V_OR_B16 V_XOR_B16: U16 = U16 U16;
        _     0x1c0 _     V_MAD_LEGACY_F32 V_MAD_F32: F32 = F32 F32 F32;
        _     0x1ea 0x1ea V_MAD_LEGACY_F16: F16 = F16 F16 F16;
        _     0x1eb 0x1eb V_MAD_LEGACY_U16: U16 = U16 U16 U16 | CLAMP;
        _     0x1ec 0x1ec V_MAD_LEGACY_I16: I16 = I16 I16 I16 | CLAMP;
        _     0x1ee 0x1ee V_FMA_LEGACY_F16 V_DIV_FIXUP_LEGACY_F16: F16 = F16 F16 F16;
        _     0x1f0 0x1f0 V_CVT_PKACCUM_U8_F32: B32 = F32 B32 | CLAMP;
        _     0x203 0x203 V_MAD_F16: F16 = F16 F16 F16 | OP_SEL;
        _     _     0x208 V_LSHL_ADD_U64: U64 = U64 U32 U64;
        _     _     0x2a2 V_CVT_PK_FP8_F32 V_CVT_PK_BF8_F32: PKF8 = F32 F32 | OP_SEL;
        _     _     0x2a4 V_CVT_SR_FP8_F32 V_CVT_SR_BF8_F32: PKF8 = F32 U32 | OP_SEL;
        [_ 0x22d] _ _ V_MINIMUM3_F32 V_MAXIMUM3_F32: F32 = F32 F32 F32;
        [_ 0x22f] _ _ V_MINIMUM3_F16 V_MAXIMUM3_F16: F16 = F16 F16 F16;
        [_ 0x26c] _ _ V_MINIMUMMAXIMUM_F32 V_MAXIMUMMINIMUM_F32: F32 = F32 F32 F32;
        [_ 0x26e] _ _ V_MINIMUMMAXIMUM_F16 V_MAXIMUMMINIMUM_F16: F16 = F16 F16 F16;
        [_ 0x280] _ _ V_S_EXP_F32: SF32 = SF32 | NO_DPP;
        [_ 0x281] _ _ V_S_EXP_F16: SF16 = SF16 | NO_DPP;
        [_ 0x282] _ _ V_S_LOG_F32: SF32 = SF32 | NO_DPP;
        [_ 0x283] _ _ V_S_LOG_F16: SF16 = SF16 | NO_DPP;
        [_ 0x284] _ _ V_S_RCP_F32: SF32 = SF32 | NO_DPP;
        [_ 0x285] _ _ V_S_RCP_F16: SF16 = SF16 | NO_DPP;
        [_ 0x286] _ _ V_S_RSQ_F32: SF32 = SF32 | NO_DPP;
        [_ 0x287] _ _ V_S_RSQ_F16: SF16 = SF16 | NO_DPP;
        [_ 0x288] _ _ V_S_SQRT_F32: SF32 = SF32 | NO_DPP;
        [_ 0x289] _ _ V_S_SQRT_F16: SF16 = SF16 | NO_DPP;
        [_ 0x30f] _ _ V_PERMLANE16_VAR_B32 V_PERMLANEX16_VAR_B32: V32 = V32 V32 | NO_DPP;
        [_ 0x341] _ _ V_MINIMUM_F64 V_MAXIMUM_F64: F64 = F64 F64;
        [_ 0x365] _ _ V_MINIMUM_F32 V_MAXIMUM_F32: F32 = F32 F32;
        [_ 0x367] _ _ V_MINIMUM_F16 V_MAXIMUM_F16: F16 = F16 F16;
    }
    Vop3Sd => {
        0x2fc 0x1e0 0x1e0 V_DIV_SCALE_F32: F32 MASK = F32 F32 F32 | (rdna NO_DPP);
        0x2fd 0x1e1 0x1e1 V_DIV_SCALE_F64: F64 MASK = F64 F64 F64;
        0x2fe 0x1e8 0x1e8 V_MAD_U64_U32 (gfx12 V_MAD_CO_U64_U32): U64 MASK = U32 U32 U64 | CLAMP;
        0x2ff 0x1e9 0x1e9 V_MAD_I64_I32 (gfx12 V_MAD_CO_I64_I32): I64 MASK = I32 I32 I64 | CLAMP;
        0x300 _    _    V_ADD_CO_U32 V_SUB_CO_U32 V_SUBREV_CO_U32: U32 MASK = U32 U32 | CLAMP;
    }
    Vop3p => {
        0x00 0x00 0x00 V_PK_MAD_I16: PKI16 = PKI16 PKI16 PKI16;
        0x01 0x01 0x01 V_PK_MUL_LO_U16: PKU16 = PKU16 PKU16;
        0x02 0x02 0x02 V_PK_ADD_I16 V_PK_SUB_I16: PKI16 = PKI16 PKI16;
        0x04 0x04 0x04 V_PK_LSHLREV_B16 V_PK_LSHRREV_B16: PKU16 = PKU16 PKU16;
        0x06 0x06 0x06 V_PK_ASHRREV_I16: PKI16 = PKU16 PKI16;
        0x07 0x07 0x07 V_PK_MAX_I16 V_PK_MIN_I16: PKI16 = PKI16 PKI16;
        0x09 0x09 0x09 V_PK_MAD_U16: PKU16 = PKU16 PKU16 PKU16;
        0x0a 0x0a 0x0a V_PK_ADD_U16 V_PK_SUB_U16 V_PK_MAX_U16 V_PK_MIN_U16: PKU16 = PKU16 PKU16;
        0x0e 0x0e 0x0e V_PK_FMA_F16: PKF16 = PKF16 PKF16 PKF16;
        0x0f 0x0f 0x0f V_PK_ADD_F16 V_PK_MUL_F16: PKF16 = PKF16 PKF16;
        [0x11 0x1b] 0x11 0x11 V_PK_MIN_F16 V_PK_MAX_F16 (gfx12 V_PK_MIN_NUM_F16 V_PK_MAX_NUM_F16): PKF16 = PKF16 PKF16;
        0x13 0x23 0x23 V_DOT2_F32_F16: F32 = PKF16 PKF16 F32 | (rdna DPP);
        0x16 _    _    V_DOT4_I32_IU8: I32 = B32 B32 I32;
        0x17 0x29 0x29 V_DOT4_U32_U8: U32 = B32 B32 U32;
        0x18 _    _    V_DOT8_I32_IU4: I32 = B32 B32 I32;
        0x19 0x2b 0x2b V_DOT8_U32_U4: U32 = B32 B32 U32;
        0x1a _    _    V_DOT2_F32_BF16: F32 = PKBF16 PKBF16 F32 | DPP;
        0x20 0x20 0x20 V_FMA_MIX_F32: F32 = MIX MIX MIX | (rdna DPP);
        0x21 0x21 0x21 V_FMA_MIXLO_F16 V_FMA_MIXHI_F16: B32 = MIX MIX MIX | (rdna DPP);
        [0x40 _] _    _    V_WMMA_F32_16X16X16_F16 V_WMMA_F32_16X16X16_BF16: ACC = V256 V256 ACC | PLAIN;
        [0x42 _] _    _    V_WMMA_F16_16X16X16_F16 V_WMMA_BF16_16X16X16_BF16: ACC = V256 V256 ACC | PLAIN OP_SEL;
        [0x44 _] _    _    V_WMMA_I32_16X16X16_IU8: ACC = V128 V128 ACC;
        [0x45 _] _    _    V_WMMA_I32_16X16X16_IU4: ACC = V64 V64 ACC;
        _    0x26 0x26 V_DOT2_I32_I16: I32 = PKI16 PKI16 I32;
        _    0x27 0x27 V_DOT2_U32_U16: U32 = PKU16 PKU16 U32;
        _    0x28 0x28 V_DOT4_I32_I8: I32 = B32 B32 I32;
        _    0x2a 0x2a V_DOT8_I32_I4: I32 = B32 B32 I32;
        _    0x30 0x30 V_PK_FMA_F32: PKF32 = PKF32 PKF32 PKF32;
        _    0x31 0x31 V_PK_MUL_F32 V_PK_ADD_F32: PKF32 = PKF32 PKF32;
        _    0x33 0x33 V_PK_MOV_B32: PKB32 = PKB32 PKB32;
        [_ 0x1d] _ _ V_PK_MINIMUM_F16 V_PK_MAXIMUM_F16: PKF16 = PKF16 PKF16;
    }
    Vopd => {
        0x0d _    _    V_DOT2ACC_F32_BF16: F32 = PKBF16 PKBF16;
    }
    Mai => {
        _    _    0x3e V_MFMA_F32_16X16X8_XF32: AV128 = AV64 AV64 AV128 | PLAIN;
        _    _    0x3f V_MFMA_F32_32X32X4_XF32: AV512 = AV64 AV64 AV512 | PLAIN;
        _    0x40 0x40 V_MFMA_F32_32X32X1_2B_F32 (gfx90a V_MFMA_F32_32X32X1F32): AV1024 = AV32 AV32 AV1024 | PLAIN;
        _    0x41 0x41 V_MFMA_F32_16X16X1_4B_F32 (gfx90a V_MFMA_F32_16X16X1F32): AV512 = AV32 AV32 AV512 | PLAIN;
        _    0x42 0x42 V_MFMA_F32_4X4X1_16B_F32 (gfx90a V_MFMA_F32_4X4X1F32): AV128 = AV32 AV32 AV128 | PLAIN;
        _    0x44 0x44 V_MFMA_F32_32X32X2_F32 (gfx90a V_MFMA_F32_32X32X2F32): AV512 = AV32 AV32 AV512 | PLAIN;
        _    0x45 0x45 V_MFMA_F32_16X16X4_F32 (gfx90a V_MFMA_F32_16X16X4F32): AV128 = AV32 AV32 AV128 | PLAIN;
        _    0x48 0x48 V_MFMA_F32_32X32X4_2B_F16 (gfx90a V_MFMA_F32_32X32X4F16): AV1024 = AV64 AV64 AV1024 | PLAIN;
        _    0x49 0x49 V_MFMA_F32_16X16X4_4B_F16 (gfx90a V_MFMA_F32_16X16X4F16): AV512 = AV64 AV64 AV512 | PLAIN;
        _    0x4a 0x4a V_MFMA_F32_4X4X4_16B_F16 (gfx90a V_MFMA_F32_4X4X4F16): AV128 = AV64 AV64 AV128 | PLAIN;
        _    0x4c 0x4c V_MFMA_F32_32X32X8_F16 (gfx90a V_MFMA_F32_32X32X8F16): AV512 = AV64 AV64 AV512 | PLAIN;
        _    0x4d 0x4d V_MFMA_F32_16X16X16_F16 (gfx90a V_MFMA_F32_16X16X16F16): AV128 = AV64 AV64 AV128 | PLAIN;
        _    0x50 0x50 V_MFMA_I32_32X32X4_2B_I8 (gfx90a V_MFMA_I32_32X32X4I8): AV1024 = AV32 AV32 AV1024 | PLAIN;
        _    0x51 0x51 V_MFMA_I32_16X16X4_4B_I8 (gfx90a V_MFMA_I32_16X16X4I8): AV512 = AV32 AV32 AV512 | PLAIN;
        _    0x52 0x52 V_MFMA_I32_4X4X4_16B_I8 (gfx90a V_MFMA_I32_4X4X4I8): AV128 = AV32 AV32 AV128 | PLAIN;
        _    0x54 _    V_MFMA_I32_32X32X8I8: AV512 = AV32 AV32 AV512 | PLAIN;
        _    0x55 _    V_MFMA_I32_16X16X16I8: AV128 = AV32 AV32 AV128 | PLAIN;
        _    _    0x56 V_MFMA_I32_32X32X16_I8: AV512 = AV64 AV64 AV512 | PLAIN;
        _    _    0x57 V_MFMA_I32_16X16X32_I8: AV128 = AV64 AV64 AV128 | PLAIN;
        _    0x58 0x58 V_ACCVGPR_READ_B32: V32 = A32 | PLAIN;
        _    0x59 0x59 V_ACCVGPR_WRITE_B32: A32 = B32 | PLAIN;
        _    0x63 0x5d V_MFMA_F32_32X32X4_2B_BF16 (gfx90a V_MFMA_F32_32X32X4BF16_1K): AV1024 = AV64 AV64 AV1024 | PLAIN;
        _    0x64 0x5e V_MFMA_F32_16X16X4_4B_BF16 (gfx90a V_MFMA_F32_16X16X4BF16_1K): AV512 = AV64 AV64 AV512 | PLAIN;
        _    0x65 0x5f V_MFMA_F32_4X4X4_16B_BF16 (gfx90a V_MFMA_F32_4X4X4BF16_1K): AV128 = AV64 AV64 AV128 | PLAIN;
        _    0x66 0x60 V_MFMA_F32_32X32X8_BF16 (gfx90a V_MFMA_F32_32X32X8BF16_1K): AV512 = AV64 AV64 AV512 | PLAIN;
        _    0x67 0x61 V_MFMA_F32_16X16X16_BF16 (gfx90a V_MFMA_F32_16X16X16BF16_1K): AV128 = AV64 AV64 AV128 | PLAIN;
        _    _    0x62 V_SMFMAC_F32_16X16X32_F16: AV128 = AV64 AV128 V32 | PLAIN;
        _    _    0x64 V_SMFMAC_F32_32X32X16_F16: AV512 = AV64 AV128 V32 | PLAIN;
        _    _    0x66 V_SMFMAC_F32_16X16X32_BF16: AV128 = AV64 AV128 V32 | PLAIN;
        _    0x68 _    V_MFMA_F32_32X32X2BF16: AV1024 = AV32 AV32 AV1024 | PLAIN;
        _    _    0x68 V_SMFMAC_F32_32X32X16_BF16: AV512 = AV64 AV128 V32 | PLAIN;
        _    0x69 _    V_MFMA_F32_16X16X2BF16: AV512 = AV32 AV32 AV512 | PLAIN;
        _    _    0x6a V_SMFMAC_I32_16X16X64_I8: AV128 = AV64 AV128 V32 | PLAIN;
        _    0x6b _    V_MFMA_F32_4X4X2BF16: AV128 = AV32 AV32 AV128 | PLAIN;
        _    0x6c _    V_MFMA_F32_32X32X4BF16: AV512 = AV32 AV32 AV512 | PLAIN;
        _    _    0x6c V_SMFMAC_I32_32X32X32_I8: AV512 = AV64 AV128 V32 | PLAIN;
        _    0x6d _    V_MFMA_F32_16X16X8BF16: AV128 = AV32 AV32 AV128 | PLAIN;
        _    0x6e 0x6e V_MFMA_F64_16X16X4_F64 (gfx90a V_MFMA_F64_16X16X4F64): AV256 = AV64 AV64 AV256 | PLAIN;
        _    0x6f 0x6f V_MFMA_F64_4X4X4_4B_F64 (gfx90a V_MFMA_F64_4X4X4F64): AV64 = AV64 AV64 AV64 | PLAIN;
        _    _    0x70 V_MFMA_F32_16X16X32_BF8_BF8 V_MFMA_F32_16X16X32_BF8_FP8 V_MFMA_F32_16X16X32_FP8_BF8
                       V_MFMA_F32_16X16X32_FP8_FP8: AV128 = AV64 AV64 AV128 | PLAIN;
        _    _    0x74 V_MFMA_F32_32X32X16_BF8_BF8 V_MFMA_F32_32X32X16_BF8_FP8 V_MFMA_F32_32X32X16_FP8_BF8
                       V_MFMA_F32_32X32X16_FP8_FP8: AV512 = AV64 AV64 AV512 | PLAIN;
        _    _    0x78 V_SMFMAC_F32_16X16X64_BF8_BF8 V_SMFMAC_F32_16X16X64_BF8_FP8 V_SMFMAC_F32_16X16X64_FP8_BF8
                       V_SMFMAC_F32_16X16X64_FP8_FP8: AV128 = AV64 AV128 V32 | PLAIN;
        _    _    0x7c V_SMFMAC_F32_32X32X32_BF8_BF8 V_SMFMAC_F32_32X32X32_BF8_FP8 V_SMFMAC_F32_32X32X32_FP8_BF8
                       V_SMFMAC_F32_32X32X32_FP8_FP8: AV512 = AV64 AV128 V32 | PLAIN;
    }
    Ds => {
        0x00 0x00 0x00 DS_ADD_U32 DS_SUB_U32 DS_RSUB_U32 DS_INC_U32 DS_DEC_U32 DS_MIN_I32 DS_MAX_I32 DS_MIN_U32
                       DS_MAX_U32 DS_AND_B32 DS_OR_B32 DS_XOR_B32: = B32 B32;
        0x0c 0x0c 0x0c DS_MSKOR_B32: = B32 B32 B32;
        0x0d 0x0d 0x0d DS_STORE_B32 (gfx9 DS_WRITE_B32): = B32 B32;
        0x0e 0x0e 0x0e DS_STORE_2ADDR_B32 (gfx9 DS_WRITE2_B32): = B32 B32 B32 | TWO_OFFSETS;
        0x0f 0x0f 0x0f DS_STORE_2ADDR_STRIDE64_B32 (gfx9 DS_WRITE2ST64_B32): = B32 B32 B32 | TWO_OFFSETS;
        0x10 0x10 0x10 DS_CMPSTORE_B32 (gfx9 DS_CMPST_B32): = B32 B32 B32;
        [0x11 _] 0x11 0x11 DS_CMPSTORE_F32 (gfx9 DS_CMPST_F32): = B32 B32 B32;
        0x12 0x12 0x12 DS_MIN_F32 DS_MAX_F32 (gfx12 DS_MIN_NUM_F32 DS_MAX_NUM_F32): = B32 B32;
        0x15 0x15 0x15 DS_ADD_F32: = B32 B32;
        [0x18 _] 0x98 0x98 DS_GWS_SEMA_RELEASE_ALL: = | GDS;
        [0x19 _] 0x99 0x99 DS_GWS_INIT: = B32 | GDS;
        [0x1a _] 0x9a 0x9a DS_GWS_SEMA_V: = | GDS;
        [0x1b _] 0x9b 0x9b DS_GWS_SEMA_BR: = B32 | GDS;
        [0x1c _] 0x9c 0x9c DS_GWS_SEMA_P: = | GDS;
        [0x1d _] 0x9d 0x9d DS_GWS_BARRIER: = B32 | GDS;
        0x1e 0x1e 0x1e DS_STORE_B8 (gfx9 DS_WRITE_B8): = B32 B32;
        0x1f 0x1f 0x1f DS_STORE_B16 (gfx9 DS_WRITE_B16): = B32 B32;
        0x20 0x20 0x20 DS_ADD_RTN_U32 DS_SUB_RTN_U32 DS_RSUB_RTN_U32 DS_INC_RTN_U32 DS_DEC_RTN_U32 DS_MIN_RTN_I32
                       DS_MAX_RTN_I32 DS_MIN_RTN_U32 DS_MAX_RTN_U32 DS_AND_RTN_B32 DS_OR_RTN_B32
                       DS_XOR_RTN_B32: B32 = B32 B32;
        0x2c 0x2c 0x2c DS_MSKOR_RTN_B32: B32 = B32 B32 B32;
        0x2d 0x2d 0x2d DS_STOREXCHG_RTN_B32 (gfx9 DS_WRXCHG_RTN_B32): B32 = B32 B32;
        0x2e 0x2e 0x2e DS_STOREXCHG_2ADDR_RTN_B32 (gfx9 DS_WRXCHG2_RTN_B32): B64 = B32 B32 B32 | TWO_OFFSETS;
        0x2f 0x2f 0x2f DS_STOREXCHG_2ADDR_STRIDE64_RTN_B32 (gfx9 DS_WRXCHG2ST64_RTN_B32): B64 = B32 B32 B32 | TWO_OFFSETS;
        0x30 0x30 0x30 DS_CMPSTORE_RTN_B32 (gfx9 DS_CMPST_RTN_B32): B32 = B32 B32 B32;
        [0x31 _] 0x31 0x31 DS_CMPSTORE_RTN_F32 (gfx9 DS_CMPST_RTN_F32): B32 = B32 B32 B32;
        0x32 0x32 0x32 DS_MIN_RTN_F32 DS_MAX_RTN_F32 (gfx12 DS_MIN_NUM_RTN_F32 DS_MAX_NUM_RTN_F32): B32 = B32 B32;
        [0x34 _] 0x34 0x34 DS_WRAP_RTN_B32: B32 = B32 B32 B32;
        0x35 0x3d 0x3d DS_SWIZZLE_B32: B32 = B32;
        0x36 0x36 0x36 DS_LOAD_B32 (gfx9 DS_READ_B32): B32 = B32;
        0x37 0x37 0x37 DS_LOAD_2ADDR_B32 (gfx9 DS_READ2_B32): B64 = B32 | TWO_OFFSETS;
        0x38 0x38 0x38 DS_LOAD_2ADDR_STRIDE64_B32 (gfx9 DS_READ2ST64_B32): B64 = B32 | TWO_OFFSETS;
        0x39 0x39 0x39 DS_LOAD_I8 (gfx9 DS_READ_I8): B32 = B32;
        0x3a 0x3a 0x3a DS_LOAD_U8 (gfx9 DS_READ_U8): B32 = B32;
        0x3b 0x3b 0x3b DS_LOAD_I16 (gfx9 DS_READ_I16): B32 = B32;
        0x3c 0x3c 0x3c DS_LOAD_U16 (gfx9 DS_READ_U16): B32 = B32;
        0x3d 0xbd 0xbd DS_CONSUME DS_APPEND: B32 =;
        [0x3f _] _    _    DS_ORDERED_COUNT: B32 = B32 | GDS;
        0x40 0x40 0x40 DS_ADD_U64 DS_SUB_U64 DS_RSUB_U64 DS_INC_U64 DS_DEC_U64 DS_MIN_I64 DS_MAX_I64 DS_MIN_U64
                       DS_MAX_U64 DS_AND_B64 DS_OR_B64 DS_XOR_B64: = B32 B64;
        0x4c 0x4c 0x4c DS_MSKOR_B64: = B32 B64 B64;
        0x4d 0x4d 0x4d DS_STORE_B64 (gfx9 DS_WRITE_B64): = B32 B64;
        0x4e 0x4e 0x4e DS_STORE_2ADDR_B64 (gfx9 DS_WRITE2_B64): = B32 B64 B64 | TWO_OFFSETS;
        0x4f 0x4f 0x4f DS_STORE_2ADDR_STRIDE64_B64 (gfx9 DS_WRITE2ST64_B64): = B32 B64 B64 | TWO_OFFSETS;
        0x50 0x50 0x50 DS_CMPSTORE_B64 (gfx9 DS_CMPST_B64): = B32 B64 B64;
        [0x51 _] 0x51 0x51 DS_CMPSTORE_F64 (gfx9 DS_CMPST_F64): = B32 B64 B64;
        0x52 0x52 0x52 DS_MIN_F64 DS_MAX_F64 (gfx12 DS_MIN_NUM_F64 DS_MAX_NUM_F64): = B32 B64;
        0x60 0x60 0x60 DS_ADD_RTN_U64 DS_SUB_RTN_U64 DS_RSUB_RTN_U64 DS_INC_RTN_U64 DS_DEC_RTN_U64 DS_MIN_RTN_I64
                       DS_MAX_RTN_I64 DS_MIN_RTN_U64 DS_MAX_RTN_U64 DS_AND_RTN_B64 DS_OR_RTN_B64
                       DS_XOR_RTN_B64: B64 = B32 B64;
        0x6c 0x6c 0x6c DS_MSKOR_RTN_B64: B64 = B32 B64 B64;
        0x6d 0x6d 0x6d DS_STOREXCHG_RTN_B64 (gfx9 DS_WRXCHG_RTN_B64): B64 = B32 B64;
        0x6e 0x6e 0x6e DS_STOREXCHG_2ADDR_RTN_B64 (gfx9 DS_WRXCHG2_RTN_B64): B128 = B32 B64 B64 | TWO_OFFSETS;
        0x6f 0x6f 0x6f DS_STOREXCHG_2ADDR_STRIDE64_RTN_B64 (gfx9 DS_WRXCHG2ST64_RTN_B64): B128 = B32 B64 B64 | TWO_OFFSETS;
        0x70 0x70 0x70 DS_CMPSTORE_RTN_B64 (gfx9 DS_CMPST_RTN_B64): B64 = B32 B64 B64;
        [0x71 _] 0x71 0x71 DS_CMPSTORE_RTN_F64 (gfx9 DS_CMPST_RTN_F64): B64 = B32 B64 B64;
        0x72 0x72 0x72 DS_MIN_RTN_F64 DS_MAX_RTN_F64 (gfx12 DS_MIN_NUM_RTN_F64 DS_MAX_NUM_RTN_F64): B64 = B32 B64;
        0x76 0x76 0x76 DS_LOAD_B64 (gfx9 DS_READ_B64): B64 = B32;
        0x77 0x77 0x77 DS_LOAD_2ADDR_B64 (gfx9 DS_READ2_B64): B128 = B32 | TWO_OFFSETS;
        0x78 0x78 0x78 DS_LOAD_2ADDR_STRIDE64_B64 (gfx9 DS_READ2ST64_B64): B128 = B32 | TWO_OFFSETS;
        0x79 0x35 0x35 DS_ADD_RTN_F32: B32 = B32 B32;
        [0x7a _] _    _    DS_ADD_GS_REG_RTN DS_SUB_GS_REG_RTN: B64 = NONE B32 | GDS;
        0x7e 0x7e 0x7e DS_CONDXCHG32_RTN_B64: B64 = B32 B64;
        0xa0 0x54 0x54 DS_STORE_B8_D16_HI (gfx9 DS_WRITE_B8_D16_HI): = B32 B32;
        0xa1 0x55 0x55 DS_STORE_B16_D16_HI (gfx9 DS_WRITE_B16_D16_HI): = B32 B32;
        0xa2 0x56 0x56 DS_LOAD_U8_D16 (gfx9 DS_READ_U8_D16): B32 = B32;
        0xa3 0x57 0x57 DS_LOAD_U8_D16_HI (gfx9 DS_READ_U8_D16_HI): B32 = B32;
        0xa4 0x58 0x58 DS_LOAD_I8_D16 (gfx9 DS_READ_I8_D16): B32 = B32;
        0xa5 0x59 0x59 DS_LOAD_I8_D16_HI (gfx9 DS_READ_I8_D16_HI): B32 = B32;
        0xa6 0x5a 0x5a DS_LOAD_U16_D16 (gfx9 DS_READ_U16_D16): B32 = B32;
        0xa7 0x5b 0x5b DS_LOAD_U16_D16_HI (gfx9 DS_READ_U16_D16_HI): B32 = B32;
        [0xad _] _    _    DS_BVH_STACK_RTN_B32: B32 = B32 B32 B128 | LDS;
        0xb0 0x1d 0x1d DS_STORE_ADDTID_B32 (gfx9 DS_WRITE_ADDTID_B32): = NONE B32;
        0xb1 0xb6 0xb6 DS_LOAD_ADDTID_B32 (gfx9 DS_READ_ADDTID_B32): B32 =;
        0xb2 0x3e 0x3e DS_PERMUTE_B32 DS_BPERMUTE_B32: B32 = B32 B32 | LDS;
        0xde 0xde 0xde DS_STORE_B96 (gfx9 DS_WRITE_B96): = B32 B96;
        0xdf 0xdf 0xdf DS_STORE_B128 (gfx9 DS_WRITE_B128): = B32 B128;
        0xfe 0xfe 0xfe DS_LOAD_B96 (gfx9 DS_READ_B96): B96 = B32;
        0xff 0xff 0xff DS_LOAD_B128 (gfx9 DS_READ_B128): B128 = B32;
        _    0x14 0x14 DS_NOP: =;
        [_ 0x9a] _ 0x17 DS_PK_ADD_F16 DS_PK_ADD_BF16: = B32 B32;
        _    0x5c 0x5c DS_ADD_F64: = B32 B64;
        _    0x7c 0x7c DS_ADD_RTN_F64: B64 = B32 B64;
        [_ 0xaa] _ 0xb7 DS_PK_ADD_RTN_F16 DS_PK_ADD_RTN_BF16: B32 = B32 B32;
        [_ 0x98] _ _ DS_COND_SUB_U32 DS_SUB_CLAMP_U32: = B32 B32;
        [_ 0xa8] _ _ DS_COND_SUB_RTN_U32 DS_SUB_CLAMP_RTN_U32: B32 = B32 B32;
        [_ 0xcd] _ _ DS_BPERMUTE_FI_B32: B32 = B32 B32;
    }
    Flat Global Scratch Mubuf(gfx9) => {
        0x10 0x10 0x10 LOAD_U8 (gfx9 LOAD_UBYTE): B32 = ADDRESS;
        0x11 0x11 0x11 LOAD_I8 (gfx9 LOAD_SBYTE): B32 = ADDRESS;
        0x12 0x12 0x12 LOAD_U16 (gfx9 LOAD_USHORT): B32 = ADDRESS;
        0x13 0x13 0x13 LOAD_I16 (gfx9 LOAD_SSHORT): B32 = ADDRESS;
        0x14 0x14 0x14 LOAD_B32 (gfx9 LOAD_DWORD): B32 = ADDRESS;
        0x15 0x15 0x15 LOAD_B64 (gfx9 LOAD_DWORDX2): B64 = ADDRESS;
        0x16 0x16 0x16 LOAD_B96 (gfx9 LOAD_DWORDX3): B96 = ADDRESS;
        0x17 0x17 0x17 LOAD_B128 (gfx9 LOAD_DWORDX4): B128 = ADDRESS;
        0x18 0x18 0x18 STORE_B8 (gfx9 STORE_BYTE): = ADDRESS B32;
        0x19 0x1a 0x1a STORE_B16 (gfx9 STORE_SHORT): = ADDRESS B32;
        0x1a 0x1c 0x1c STORE_B32 (gfx9 STORE_DWORD): = ADDRESS B32;
        0x1b 0x1d 0x1d STORE_B64 (gfx9 STORE_DWORDX2): = ADDRESS B64;
        0x1c 0x1e 0x1e STORE_B96 (gfx9 STORE_DWORDX3): = ADDRESS B96;
        0x1d 0x1f 0x1f STORE_B128 (gfx9 STORE_DWORDX4): = ADDRESS B128;
        0x1e 0x20 0x20 LOAD_D16_U8 (gfx9 LOAD_UBYTE_D16): B32 = ADDRESS;
        0x1f 0x22 0x22 LOAD_D16_I8 (gfx9 LOAD_SBYTE_D16): B32 = ADDRESS;
        0x20 0x24 0x24 LOAD_D16_B16 (gfx9 LOAD_SHORT_D16): B32 = ADDRESS;
        0x21 0x21 0x21 LOAD_D16_HI_U8 (gfx9 LOAD_UBYTE_D16_HI): B32 = ADDRESS;
        0x22 0x23 0x23 LOAD_D16_HI_I8 (gfx9 LOAD_SBYTE_D16_HI): B32 = ADDRESS;
        0x23 0x25 0x25 LOAD_D16_HI_B16 (gfx9 LOAD_SHORT_D16_HI): B32 = ADDRESS;
        0x24 0x19 0x19 STORE_D16_HI_B8 (gfx9 STORE_BYTE_D16_HI): = ADDRESS B32;
        0x25 0x1b 0x1b STORE_D16_HI_B16 (gfx9 STORE_SHORT_D16_HI): = ADDRESS B32;
    }
    Flat Global => {
        0x33 0x40 0x40 ATOMIC_SWAP_B32 (gfx9 ATOMIC_SWAP): B32 = ADDRESS B32;
        0x34 0x41 0x41 ATOMIC_CMPSWAP_B32 (gfx9 ATOMIC_CMPSWAP): B32 = ADDRESS B64;
        0x35 0x42 0x42 ATOMIC_ADD_U32 (gfx9 ATOMIC_ADD): B32 = ADDRESS B32;
        0x36 0x43 0x43 ATOMIC_SUB_U32 (gfx9 ATOMIC_SUB): B32 = ADDRESS B32;
        0x38 0x44 0x44 ATOMIC_MIN_I32 (gfx9 ATOMIC_SMIN): B32 = ADDRESS B32;
        0x39 0x45 0x45 ATOMIC_MIN_U32 (gfx9 ATOMIC_UMIN): B32 = ADDRESS B32;
        0x3a 0x46 0x46 ATOMIC_MAX_I32 (gfx9 ATOMIC_SMAX): B32 = ADDRESS B32;
        0x3b 0x47 0x47 ATOMIC_MAX_U32 (gfx9 ATOMIC_UMAX): B32 = ADDRESS B32;
        0x3c 0x48 0x48 ATOMIC_AND_B32 (gfx9 ATOMIC_AND): B32 = ADDRESS B32;
        0x3d 0x49 0x49 ATOMIC_OR_B32 (gfx9 ATOMIC_OR): B32 = ADDRESS B32;
        0x3e 0x4a 0x4a ATOMIC_XOR_B32 (gfx9 ATOMIC_XOR): B32 = ADDRESS B32;
        0x3f 0x4b 0x4b ATOMIC_INC_U32 (gfx9 ATOMIC_INC): B32 = ADDRESS B32;
        0x40 0x4c 0x4c ATOMIC_DEC_U32 (gfx9 ATOMIC_DEC): B32 = ADDRESS B32;
        0x41 0x60 0x60 ATOMIC_SWAP_B64 (gfx9 ATOMIC_SWAP_X2): B64 = ADDRESS B64;
        0x42 0x61 0x61 ATOMIC_CMPSWAP_B64 (gfx9 ATOMIC_CMPSWAP_X2): B64 = ADDRESS B128;
        0x43 0x62 0x62 ATOMIC_ADD_U64 (gfx9 ATOMIC_ADD_X2): B64 = ADDRESS B64;
        0x44 0x63 0x63 ATOMIC_SUB_U64 (gfx9 ATOMIC_SUB_X2): B64 = ADDRESS B64;
        0x45 0x64 0x64 ATOMIC_MIN_I64 (gfx9 ATOMIC_SMIN_X2): B64 = ADDRESS B64;
        0x46 0x65 0x65 ATOMIC_MIN_U64 (gfx9 ATOMIC_UMIN_X2): B64 = ADDRESS B64;
        0x47 0x66 0x66 ATOMIC_MAX_I64 (gfx9 ATOMIC_SMAX_X2): B64 = ADDRESS B64;
        0x48 0x67 0x67 ATOMIC_MAX_U64 (gfx9 ATOMIC_UMAX_X2): B64 = ADDRESS B64;
        0x49 0x68 0x68 ATOMIC_AND_B64 (gfx9 ATOMIC_AND_X2): B64 = ADDRESS B64;
        0x4a 0x69 0x69 ATOMIC_OR_B64 (gfx9 ATOMIC_OR_X2): B64 = ADDRESS B64;
        0x4b 0x6a 0x6a ATOMIC_XOR_B64 (gfx9 ATOMIC_XOR_X2): B64 = ADDRESS B64;
        0x4c 0x6b 0x6b ATOMIC_INC_U64 (gfx9 ATOMIC_INC_X2): B64 = ADDRESS B64;
        0x4d 0x6c 0x6c ATOMIC_DEC_U64 (gfx9 ATOMIC_DEC_X2): B64 = ADDRESS B64;
        [0x50 _] _    _    ATOMIC_CMPSWAP_F32: B32 = ADDRESS B64;
        0x51 _    _    ATOMIC_MIN_F32 ATOMIC_MAX_F32 (gfx12 ATOMIC_MIN_NUM_F32 ATOMIC_MAX_NUM_F32): B32 = ADDRESS B32;
        _    0x4f 0x4f ATOMIC_ADD_F64 ATOMIC_MIN_F64 ATOMIC_MAX_F64: B64 = ADDRESS B64;
        [_ 0x5a] _ 0x52 ATOMIC_PK_ADD_BF16: B32 = ADDRESS B32;
        [_ 0x50] _ _ ATOMIC_COND_SUB_U32: B32 = ADDRESS B32;
    }
    Global => {
        0x28 _    _    LOAD_ADDTID_B32: B32 =;
        0x29 _    _    STORE_ADDTID_B32: = NONE B32;
        [_ 0x2c] _ _ WB: =;
        [_ 0x4f] _ _ WBINV: =;
        0x37 _    _    ATOMIC_CSUB_U32 (gfx12 ATOMIC_SUB_CLAMP_U32): B32 = ADDRESS B32;
        0x56 0x4d 0x4d ATOMIC_ADD_F32: B32 = ADDRESS B32;
        [_ 0x59] 0x4e 0x4e ATOMIC_PK_ADD_F16: B32 = ADDRESS B32;
    }
    Global Scratch => {
        _    _    0x26 LOAD_LDS_U8 (gfx9 LOAD_LDS_UBYTE): = ADDRESS | TO_LDS;
        _    _    0x27 LOAD_LDS_I8 (gfx9 LOAD_LDS_SBYTE): = ADDRESS | TO_LDS;
        _    _    0x28 LOAD_LDS_U16 (gfx9 LOAD_LDS_USHORT): = ADDRESS | TO_LDS;
        _    _    0x29 LOAD_LDS_I16 (gfx9 LOAD_LDS_SSHORT): = ADDRESS | TO_LDS;
        _    _    0x2a LOAD_LDS_B32 (gfx9 LOAD_LDS_DWORD): = ADDRESS | TO_LDS;
    }

    Mubuf => {
        [0x2b _] _    _    GL0_INV GL1_INV: =;
        _    0x28 0x28 WBL2: =;
        _    0x29 _    INVL2: =;
        _    _    0x29 INV: =;
        _    0x3e _    WBINVL1 WBINVL1_VOL: =;
    }
}

// Operations with a row above, which have another format or other operands in gfx9, or also the format VOPD.
rows! {
    OTHERS
    Vop2 => {
        _    0x19 0x19 V_ADD_CO_U32 V_SUB_CO_U32 V_SUBREV_CO_U32: U32 MASK = U32 U32 | CLAMP;
        _    0x26 0x26 V_ADD_NC_U16 (gfx9 V_ADD_U16): U16 = U16 U16 | CLAMP;
        _    0x27 0x27 V_SUB_NC_U16 (gfx9 V_SUB_U16): U16 = U16 U16 | CLAMP;
        _    0x29 0x29 V_MUL_LO_U16: U16 = U16 U16;
        _    0x2a 0x2a V_LSHLREV_B16 V_LSHRREV_B16: B16 = U16 B16;
        _    0x2c 0x2c V_ASHRREV_I16: I16 = U16 I16;
        _    0x2f 0x2f V_MAX_U16: U16 = U16 U16;
        _    0x30 0x30 V_MAX_I16: I16 = I16 I16;
        _    0x31 0x31 V_MIN_U16: U16 = U16 U16;
        _    0x32 0x32 V_MIN_I16: I16 = I16 I16;
        [_ 0x02] _ _ V_ADD_F64: F64 = F64 F64;
        [_ 0x06] _ _ V_MUL_F64: F64 = F64 F64;
        [_ 0x0d] _ _ V_MIN_F64 V_MAX_F64 (gfx12 V_MIN_NUM_F64 V_MAX_NUM_F64): F64 = F64 F64;
        [_ 0x1f] _ _ V_LSHLREV_B64: U64 = U32 U64;
    }
    Vopc => {
        _    0x14 0x14 V_CMP_CLASS_F16 V_CMPX_CLASS_F16: MASK = F16 U32 | PLAIN;
    }
    Vop3 => {
        _     0x296 0x296 V_CVT_PK_RTZ_F16_F32 (gfx9 V_CVT_PKRTZ_F16_F32): PKF16 = F32 F32;
        _     0x2a1 0x2a1 V_MUL_DX9_ZERO_F32 (gfx9 V_MUL_LEGACY_F32): F32 = F32 F32;
    }
    Vopd => {
        0x00 _    _    V_FMAC_F32: F32 = F32 F32;
        0x01 _    _    V_FMAAK_F32: F32 = F32 F32 K32;
        0x02 _    _    V_FMAMK_F32: F32 = F32 K32 F32;
        0x03 _    _    V_MUL_F32 V_ADD_F32 V_SUB_F32 V_SUBREV_F32 V_MUL_DX9_ZERO_F32: F32 = F32 F32;
        0x08 _    _    V_MOV_B32: B32 = B32;
        0x09 _    _    V_CNDMASK_B32: B32 = B32 B32 MASK;
        0x0a _    _    V_MAX_F32 V_MIN_F32 (gfx12 V_MAX_NUM_F32 V_MIN_NUM_F32): F32 = F32 F32;
        0x0c _    _    V_DOT2ACC_F32_F16: F32 = PKF16 PKF16;
        0x10 _    _    V_ADD_NC_U32: U32 = U32 U32;
        0x11 _    _    V_LSHLREV_B32 V_AND_B32: B32 = B32 B32;
    }
    Flat => {
        [_ 0x37] _ _ ATOMIC_CSUB_U32 (gfx12 ATOMIC_SUB_CLAMP_U32): B32 = ADDRESS B32;
        0x56 _    0x4d ATOMIC_ADD_F32: B32 = ADDRESS B32;
        [_ 0x59] _ 0x4e ATOMIC_PK_ADD_F16: B32 = ADDRESS B32;
    }
    Global => {
        [_ 0x2b] _ _ INV: =;
    }
}
