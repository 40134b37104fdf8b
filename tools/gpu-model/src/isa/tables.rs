//! All operations that the model decodes, with their operands. Decoder, assembly text and executors use these tables.
//! Opcodes are those of the RDNA3 guide, chapter 15. Operations that LLVM's gfx11 does not have are not included.
//!
//! The syntax of a row is `opcode NAME: destinations = sources | flags;`, with operands in the assembler's order. The
//! `_e64` forms of VOP1, VOP2 and VOPC do not have their own rows: their VOP3 opcodes are the row's opcode plus 0x180, 0x100
//! and 0.

use super::encoding::Encoding;

/// The kind of an operand: its width, its type, and which registers or constants it can be.
///
/// `B`, `F`, `I`, `U` are bits, floats, signed and unsigned integers of the given width. A 16-bit kind is "true16" in VOP1,
/// VOP2, VOPC and VOP3: half of a VGPR, selected by OP_SEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    NONE,
    B16,
    F16,
    BF16,
    I16,
    U16,
    B32,
    F32,
    I32,
    U32,
    B64,
    F64,
    I64,
    U64,
    B96,
    B128,
    B256,
    B512,
    /// Two packed 16-bit values.
    PKF16,
    PKBF16,
    PKI16,
    PKU16,
    /// A 32-bit scalar register or constant, in an operation whose other operands are vectors.
    S32,
    /// S32 without literals: a lane number.
    LANE,
    /// A scalar register (or a pair), although the field can also name constants.
    R32,
    R64,
    /// Only NULL.
    NULL,
    /// A VGPR (or half of one, or several), although the field can also name other operands.
    V16,
    V32,
    V64,
    V128,
    V256,
    /// A source of `v_fma_mix`: OP_SEL_HI selects an f32 or one of two f16.
    MIX,
    /// A matrix accumulator: eight VGPRs in wave32, four in wave64.
    ACC,
    /// One bit per lane: a scalar register in wave32, a pair in wave64.
    MASK,
    /// EXEC, the implicit destination of `v_cmpx`.
    EXEC,
    /// The 32-bit (or 16-bit) constant that follows the instruction.
    K32,
    K16,
    /// SIMM16. The kind determines how the assembler writes it.
    IMM,
    DEC,
    HEX,
    LABEL,
    HWREG,
    MSG,
    WAITCNT,
    DELAY,
    DEPCTR,
    EVENT,
}

impl Kind {
    /// The width of a register operand in a wave of `lanes` lanes; 0 for immediates.
    pub const fn bits(self, lanes: usize) -> usize {
        use Kind::*;
        match self {
            B16 | F16 | BF16 | I16 | U16 | V16 | K16 => 16,
            B32 | F32 | I32 | U32 | PKF16 | PKBF16 | PKI16 | PKU16 | S32 | LANE | R32 | NULL
            | V32 | MIX | K32 => 32,
            B64 | F64 | I64 | U64 | R64 | V64 => 64,
            B96 => 96,
            B128 | V128 => 128,
            B256 | V256 => 256,
            B512 => 512,
            ACC => 8192 / lanes,
            MASK | EXEC => lanes,
            NONE | IMM | DEC | HEX | LABEL | HWREG | MSG | WAITCNT | DELAY | DEPCTR | EVENT => 0,
        }
    }
    /// Whether the operand is half of a VGPR in the VALU formats.
    pub const fn is_true16(self) -> bool {
        use Kind::*;
        matches!(self, B16 | F16 | BF16 | I16 | U16 | V16)
    }
    /// Whether the operand is a float or packed floats, so that NEG and ABS apply to it.
    pub const fn is_float(self) -> bool {
        use Kind::*;
        matches!(self, F16 | BF16 | F32 | F64 | PKF16 | PKBF16 | MIX)
    }
    /// Whether the operand is in SIMM16.
    pub const fn is_immediate(self) -> bool {
        use Kind::*;
        matches!(
            self,
            IMM | DEC | HEX | LABEL | HWREG | MSG | WAITCNT | DELAY | DEPCTR | EVENT
        )
    }
}

/// Properties of a row that do not follow from its operand kinds. The output modifiers of a row without `PLAIN`, `CLAMP` and
/// `OMOD` follow from the kinds: OMOD and CLAMP for a float result, CLAMP for a comparison of floats and in VOP3P.
pub(super) mod flag {
    /// Neither CLAMP nor OMOD.
    pub const PLAIN: u16 = 1;
    pub const CLAMP: u16 = 1 << 1;
    pub const OMOD: u16 = 1 << 2;
    /// No VOP3 form.
    pub const NO_E64: u16 = 1 << 3;
    /// No DPP, although all operands have less than 64 bits.
    pub const NO_DPP: u16 = 1 << 4;
    /// DPP in VOP3P, where most operations do not have it.
    pub const DPP: u16 = 1 << 9;
    /// VOP3P: has OP_SEL and OP_SEL_HI although no source is packed.
    pub const OP_SEL: u16 = 1 << 5;
    /// DS: OFFSET0 and OFFSET1 are two offsets, not one 16-bit offset.
    pub const TWO_OFFSETS: u16 = 1 << 6;
    /// DS: only with the GDS bit.
    pub const GDS: u16 = 1 << 7;
    /// DS: only without the GDS bit.
    pub const LDS: u16 = 1 << 8;
}

/// A row of the tables.
#[derive(Debug)]
pub struct Spec {
    /// The mnemonic in upper case without encoding suffix.
    pub name: &'static str,
    /// The format of the table that contains the row.
    pub format: Encoding,
    pub code: u16,
    /// VDST or SDST, then SDST of VOP3SD.
    pub dst: [Kind; 2],
    pub src: [Kind; 3],
    flags: u16,
}

impl Spec {
    pub(super) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
    /// Whether a VOP1, VOP2 or VOPC operation also has a VOP3 form.
    pub fn has_e64(&self) -> bool {
        !self.has(flag::NO_E64) && self.src[0] != Kind::NONE
    }
    /// Whether the VOP3 form has OMOD.
    pub fn has_omod(&self) -> bool {
        if self.has(flag::PLAIN | flag::CLAMP | flag::OMOD) {
            return self.has(flag::OMOD);
        }
        self.format != Encoding::Vop3p && self.dst[0].is_float()
    }
    /// Whether the VOP3 form has CLAMP.
    pub fn has_clamp(&self) -> bool {
        if self.has(flag::PLAIN | flag::CLAMP | flag::OMOD) {
            return self.has(flag::CLAMP);
        }
        let compares_floats =
            matches!(self.dst[0], Kind::MASK | Kind::EXEC) && self.src[0].is_float();
        self.format == Encoding::Vop3p || self.dst[0].is_float() || compares_floats
    }
    /// Whether source 0 can have DPP.
    pub fn has_dpp(&self) -> bool {
        let wide = |kinds: &[Kind]| {
            kinds
                .iter()
                .any(|&kind| kind != Kind::MASK && kind.bits(32) > 32)
        };
        if self.format == Encoding::Vop3p {
            return self.has(flag::DPP);
        }
        !self.has(flag::NO_DPP) && !wide(&self.dst) && !wide(&self.src)
    }
    /// DS: whether there are two offsets.
    pub fn has_two_offsets(&self) -> bool {
        self.has(flag::TWO_OFFSETS)
    }
    /// DS: whether the operation is only for the GDS.
    pub fn is_gds(&self) -> bool {
        self.has(flag::GDS)
    }
    /// VOP3P: whether the operation has OP_SEL and OP_SEL_HI.
    pub fn has_op_sel(&self) -> bool {
        use Kind::*;
        self.has(flag::OP_SEL) || matches!(self.src[0], PKF16 | PKBF16 | PKI16 | PKU16 | MIX)
    }
    /// One bit per source that the operation has.
    pub(super) fn present_sources(&self) -> u8 {
        let bit = |i: usize| u8::from(self.src[i] != Kind::NONE) << i;
        bit(0) | bit(1) | bit(2)
    }
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

macro_rules! operations {
    ($($format:ident { $($code:literal $name:ident : $($dst:ident)* = $($src:ident)* $(| $($flag:ident)+)? ;)* })*) => {
        /// An operation: its mnemonic without encoding suffix.
        #[expect(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Op { $($($name,)*)* }

        impl Op {
            /// All operations in the order of the tables.
            pub const ALL: &[Op] = &[$($(Op::$name,)*)*];
        }

        static SPECS: [Spec; Op::ALL.len()] = [$($(Spec {
            name: stringify!($name),
            format: Encoding::$format,
            code: $code,
            dst: padded(&[$(Kind::$dst),*]),
            src: padded(&[$(Kind::$src),*]),
            flags: 0 $($(| flag::$flag)+)?,
        },)*)*];

        const CODES: [(Encoding, u16); Op::ALL.len()] = [$($((Encoding::$format, $code),)*)*];
    };
}

impl Op {
    /// The operation's row in the tables.
    pub fn operands(self) -> &'static Spec {
        &SPECS[self as usize]
    }
}

const FORMATS: usize = Encoding::Scratch as usize + 1;
const NO_OP: u16 = u16::MAX;

static BY_CODE: [[u16; 1024]; FORMATS] = {
    let mut table = [[NO_OP; 1024]; FORMATS];
    let mut i = 0;
    while i < CODES.len() {
        let (format, code) = CODES[i];
        assert!(
            table[format as usize][code as usize] == NO_OP,
            "two rows with one opcode"
        );
        table[format as usize][code as usize] = i as u16;
        i += 1;
    }
    table
};

/// The operation with this opcode in the format's table.
pub(super) fn lookup(format: Encoding, code: u32) -> Option<Op> {
    match BY_CODE[format as usize].get(code as usize) {
        Some(&i) if i != NO_OP => Some(Op::ALL[i as usize]),
        _ => None,
    }
}

operations! {
    Sop1 {
        0x00 S_MOV_B32: B32 = B32;
        0x01 S_MOV_B64: B64 = B64;
        0x02 S_CMOV_B32: B32 = B32;
        0x03 S_CMOV_B64: B64 = B64;
        0x04 S_BREV_B32: U32 = U32;
        0x05 S_BREV_B64: U64 = U64;
        0x08 S_CTZ_I32_B32: I32 = U32;
        0x09 S_CTZ_I32_B64: I32 = U64;
        0x0a S_CLZ_I32_U32: I32 = U32;
        0x0b S_CLZ_I32_U64: I32 = U64;
        0x0c S_CLS_I32: I32 = I32;
        0x0d S_CLS_I32_I64: I32 = I64;
        0x0e S_SEXT_I32_I8: I32 = B32;
        0x0f S_SEXT_I32_I16: I32 = B32;
        0x10 S_BITSET0_B32: B32 = U32;
        0x11 S_BITSET0_B64: B64 = U32;
        0x12 S_BITSET1_B32: B32 = U32;
        0x13 S_BITSET1_B64: B64 = U32;
        0x14 S_BITREPLICATE_B64_B32: U64 = U32;
        0x15 S_ABS_I32: I32 = I32;
        0x16 S_BCNT0_I32_B32: I32 = U32;
        0x17 S_BCNT0_I32_B64: I32 = U64;
        0x18 S_BCNT1_I32_B32: I32 = U32;
        0x19 S_BCNT1_I32_B64: I32 = U64;
        0x1a S_QUADMASK_B32: U32 = U32;
        0x1b S_QUADMASK_B64: U64 = U64;
        0x1c S_WQM_B32: U32 = U32;
        0x1d S_WQM_B64: U64 = U64;
        0x1e S_NOT_B32: U32 = U32;
        0x1f S_NOT_B64: U64 = U64;
        0x20 S_AND_SAVEEXEC_B32: U32 = U32;
        0x21 S_AND_SAVEEXEC_B64: U64 = U64;
        0x22 S_OR_SAVEEXEC_B32: U32 = U32;
        0x23 S_OR_SAVEEXEC_B64: U64 = U64;
        0x24 S_XOR_SAVEEXEC_B32: U32 = U32;
        0x25 S_XOR_SAVEEXEC_B64: U64 = U64;
        0x26 S_NAND_SAVEEXEC_B32: U32 = U32;
        0x27 S_NAND_SAVEEXEC_B64: U64 = U64;
        0x28 S_NOR_SAVEEXEC_B32: U32 = U32;
        0x29 S_NOR_SAVEEXEC_B64: U64 = U64;
        0x2a S_XNOR_SAVEEXEC_B32: U32 = U32;
        0x2b S_XNOR_SAVEEXEC_B64: U64 = U64;
        0x2c S_AND_NOT0_SAVEEXEC_B32: U32 = U32;
        0x2d S_AND_NOT0_SAVEEXEC_B64: U64 = U64;
        0x2e S_OR_NOT0_SAVEEXEC_B32: U32 = U32;
        0x2f S_OR_NOT0_SAVEEXEC_B64: U64 = U64;
        0x30 S_AND_NOT1_SAVEEXEC_B32: U32 = U32;
        0x31 S_AND_NOT1_SAVEEXEC_B64: U64 = U64;
        0x32 S_OR_NOT1_SAVEEXEC_B32: U32 = U32;
        0x33 S_OR_NOT1_SAVEEXEC_B64: U64 = U64;
        0x34 S_AND_NOT0_WREXEC_B32: U32 = U32;
        0x35 S_AND_NOT0_WREXEC_B64: U64 = U64;
        0x36 S_AND_NOT1_WREXEC_B32: U32 = U32;
        0x37 S_AND_NOT1_WREXEC_B64: U64 = U64;
        0x40 S_MOVRELS_B32: B32 = R32;
        0x41 S_MOVRELS_B64: B64 = R64;
        0x42 S_MOVRELD_B32: B32 = B32;
        0x43 S_MOVRELD_B64: B64 = B64;
        0x44 S_MOVRELSD_2_B32: B32 = R32;
        0x47 S_GETPC_B64: B64 =;
        0x48 S_SETPC_B64: = R64;
        0x49 S_SWAPPC_B64: B64 = B64;
        0x4a S_RFE_B64: = R64;
        0x4c S_SENDMSG_RTN_B32: B32 = MSG;
        0x4d S_SENDMSG_RTN_B64: B64 = MSG;
    }
    Sop2 {
        0x00 S_ADD_U32: U32 = U32 U32;
        0x01 S_SUB_U32: U32 = U32 U32;
        0x02 S_ADD_I32: I32 = I32 I32;
        0x03 S_SUB_I32: I32 = I32 I32;
        0x04 S_ADDC_U32: U32 = U32 U32;
        0x05 S_SUBB_U32: U32 = U32 U32;
        0x06 S_ABSDIFF_I32: I32 = I32 I32;
        0x08 S_LSHL_B32: U32 = U32 U32;
        0x09 S_LSHL_B64: U64 = U64 U32;
        0x0a S_LSHR_B32: U32 = U32 U32;
        0x0b S_LSHR_B64: U64 = U64 U32;
        0x0c S_ASHR_I32: I32 = I32 U32;
        0x0d S_ASHR_I64: I64 = I64 U32;
        0x0e S_LSHL1_ADD_U32: U32 = U32 U32;
        0x0f S_LSHL2_ADD_U32: U32 = U32 U32;
        0x10 S_LSHL3_ADD_U32: U32 = U32 U32;
        0x11 S_LSHL4_ADD_U32: U32 = U32 U32;
        0x12 S_MIN_I32: I32 = I32 I32;
        0x13 S_MIN_U32: U32 = U32 U32;
        0x14 S_MAX_I32: I32 = I32 I32;
        0x15 S_MAX_U32: U32 = U32 U32;
        0x16 S_AND_B32: U32 = U32 U32;
        0x17 S_AND_B64: U64 = U64 U64;
        0x18 S_OR_B32: U32 = U32 U32;
        0x19 S_OR_B64: U64 = U64 U64;
        0x1a S_XOR_B32: U32 = U32 U32;
        0x1b S_XOR_B64: U64 = U64 U64;
        0x1c S_NAND_B32: U32 = U32 U32;
        0x1d S_NAND_B64: U64 = U64 U64;
        0x1e S_NOR_B32: U32 = U32 U32;
        0x1f S_NOR_B64: U64 = U64 U64;
        0x20 S_XNOR_B32: U32 = U32 U32;
        0x21 S_XNOR_B64: U64 = U64 U64;
        0x22 S_AND_NOT1_B32: U32 = U32 U32;
        0x23 S_AND_NOT1_B64: U64 = U64 U64;
        0x24 S_OR_NOT1_B32: U32 = U32 U32;
        0x25 S_OR_NOT1_B64: U64 = U64 U64;
        0x26 S_BFE_U32: U32 = U32 U32;
        0x27 S_BFE_I32: I32 = I32 U32;
        0x28 S_BFE_U64: U64 = U64 U32;
        0x29 S_BFE_I64: I64 = I64 U32;
        0x2a S_BFM_B32: U32 = U32 U32;
        0x2b S_BFM_B64: U64 = U32 U32;
        0x2c S_MUL_I32: I32 = I32 I32;
        0x2d S_MUL_HI_U32: U32 = U32 U32;
        0x2e S_MUL_HI_I32: I32 = I32 I32;
        0x30 S_CSELECT_B32: B32 = B32 B32;
        0x31 S_CSELECT_B64: B64 = B64 B64;
        0x32 S_PACK_LL_B32_B16: B32 = B32 B32;
        0x33 S_PACK_LH_B32_B16: B32 = B32 B32;
        0x34 S_PACK_HH_B32_B16: B32 = B32 B32;
        0x35 S_PACK_HL_B32_B16: B32 = B32 B32;
    }
    Sopc {
        0x00 S_CMP_EQ_I32: = I32 I32;
        0x01 S_CMP_LG_I32: = I32 I32;
        0x02 S_CMP_GT_I32: = I32 I32;
        0x03 S_CMP_GE_I32: = I32 I32;
        0x04 S_CMP_LT_I32: = I32 I32;
        0x05 S_CMP_LE_I32: = I32 I32;
        0x06 S_CMP_EQ_U32: = U32 U32;
        0x07 S_CMP_LG_U32: = U32 U32;
        0x08 S_CMP_GT_U32: = U32 U32;
        0x09 S_CMP_GE_U32: = U32 U32;
        0x0a S_CMP_LT_U32: = U32 U32;
        0x0b S_CMP_LE_U32: = U32 U32;
        0x0c S_BITCMP0_B32: = U32 U32;
        0x0d S_BITCMP1_B32: = U32 U32;
        0x0e S_BITCMP0_B64: = U64 U32;
        0x0f S_BITCMP1_B64: = U64 U32;
        0x10 S_CMP_EQ_U64: = U64 U64;
        0x11 S_CMP_LG_U64: = U64 U64;
    }
    Sopk {
        0x00 S_MOVK_I32: B32 = HEX;
        0x01 S_VERSION: = HEX;
        0x02 S_CMOVK_I32: B32 = HEX;
        0x03 S_CMPK_EQ_I32: = I32 HEX;
        0x04 S_CMPK_LG_I32: = I32 HEX;
        0x05 S_CMPK_GT_I32: = I32 HEX;
        0x06 S_CMPK_GE_I32: = I32 HEX;
        0x07 S_CMPK_LT_I32: = I32 HEX;
        0x08 S_CMPK_LE_I32: = I32 HEX;
        0x09 S_CMPK_EQ_U32: = U32 HEX;
        0x0a S_CMPK_LG_U32: = U32 HEX;
        0x0b S_CMPK_GT_U32: = U32 HEX;
        0x0c S_CMPK_GE_U32: = U32 HEX;
        0x0d S_CMPK_LT_U32: = U32 HEX;
        0x0e S_CMPK_LE_U32: = U32 HEX;
        0x0f S_ADDK_I32: B32 = HEX;
        0x10 S_MULK_I32: B32 = HEX;
        0x11 S_GETREG_B32: B32 = HWREG;
        0x12 S_SETREG_B32: = B32 HWREG;
        0x13 S_SETREG_IMM32_B32: = K32 HWREG;
        0x14 S_CALL_B64: B64 = LABEL;
        0x16 S_SUBVECTOR_LOOP_BEGIN: B32 = LABEL;
        0x17 S_SUBVECTOR_LOOP_END: B32 = LABEL;
        0x18 S_WAITCNT_VSCNT: = NULL HEX;
        0x19 S_WAITCNT_VMCNT: = NULL HEX;
        0x1a S_WAITCNT_EXPCNT: = NULL HEX;
        0x1b S_WAITCNT_LGKMCNT: = NULL HEX;
    }
    Sopp {
        0x00 S_NOP: = IMM;
        0x01 S_SETKILL: = IMM;
        0x02 S_SETHALT: = IMM;
        0x03 S_SLEEP: = IMM;
        0x04 S_SET_INST_PREFETCH_DISTANCE: = HEX;
        0x05 S_CLAUSE: = HEX;
        0x07 S_DELAY_ALU: = DELAY;
        0x08 S_WAITCNT_DEPCTR: = DEPCTR;
        0x09 S_WAITCNT: = WAITCNT;
        0x0a S_WAIT_IDLE: =;
        0x0b S_WAIT_EVENT: = EVENT;
        0x10 S_TRAP: = IMM;
        0x11 S_ROUND_MODE: = HEX;
        0x12 S_DENORM_MODE: = IMM;
        0x1f S_CODE_END: =;
        0x20 S_BRANCH: = LABEL;
        0x21 S_CBRANCH_SCC0: = LABEL;
        0x22 S_CBRANCH_SCC1: = LABEL;
        0x23 S_CBRANCH_VCCZ: = LABEL;
        0x24 S_CBRANCH_VCCNZ: = LABEL;
        0x25 S_CBRANCH_EXECZ: = LABEL;
        0x26 S_CBRANCH_EXECNZ: = LABEL;
        0x27 S_CBRANCH_CDBGSYS: = LABEL;
        0x28 S_CBRANCH_CDBGUSER: = LABEL;
        0x29 S_CBRANCH_CDBGSYS_OR_USER: = LABEL;
        0x2a S_CBRANCH_CDBGSYS_AND_USER: = LABEL;
        0x30 S_ENDPGM: = DEC;
        0x31 S_ENDPGM_SAVED: =;
        0x32 S_ENDPGM_ORDERED_PS_DONE: =;
        0x34 S_WAKEUP: =;
        0x35 S_SETPRIO: = IMM;
        0x36 S_SENDMSG: = MSG;
        0x37 S_SENDMSGHALT: = MSG;
        0x38 S_INCPERFLEVEL: = IMM;
        0x39 S_DECPERFLEVEL: = IMM;
        0x3a S_TTRACEDATA: =;
        0x3b S_TTRACEDATA_IMM: = HEX;
        0x3c S_ICACHE_INV: =;
        0x3d S_BARRIER: =;
    }
    Smem {
        0x00 S_LOAD_B32: B32 = B64 B32;
        0x01 S_LOAD_B64: B64 = B64 B32;
        0x02 S_LOAD_B128: B128 = B64 B32;
        0x03 S_LOAD_B256: B256 = B64 B32;
        0x04 S_LOAD_B512: B512 = B64 B32;
        0x08 S_BUFFER_LOAD_B32: B32 = B128 B32;
        0x09 S_BUFFER_LOAD_B64: B64 = B128 B32;
        0x0a S_BUFFER_LOAD_B128: B128 = B128 B32;
        0x0b S_BUFFER_LOAD_B256: B256 = B128 B32;
        0x0c S_BUFFER_LOAD_B512: B512 = B128 B32;
        0x20 S_GL1_INV: =;
        0x21 S_DCACHE_INV: =;
    }
    Mubuf {
        0x2b BUFFER_GL0_INV: =;
        0x2c BUFFER_GL1_INV: =;
    }
    Vop1 {
        0x00 V_NOP: = | NO_DPP;
        0x01 V_MOV_B32: B32 = B32;
        0x02 V_READFIRSTLANE_B32: S32 = V32 | NO_E64 NO_DPP;
        0x03 V_CVT_I32_F64: I32 = F64 | CLAMP OMOD;
        0x04 V_CVT_F64_I32: F64 = I32;
        0x05 V_CVT_F32_I32: F32 = I32;
        0x06 V_CVT_F32_U32: F32 = U32;
        0x07 V_CVT_U32_F32: U32 = F32 | CLAMP OMOD;
        0x08 V_CVT_I32_F32: I32 = F32 | CLAMP OMOD;
        0x0a V_CVT_F16_F32: F16 = F32;
        0x0b V_CVT_F32_F16: F32 = F16;
        0x0c V_CVT_NEAREST_I32_F32: I32 = F32 | CLAMP;
        0x0d V_CVT_FLOOR_I32_F32: I32 = F32 | CLAMP;
        0x0e V_CVT_OFF_F32_I4: F32 = I32;
        0x0f V_CVT_F32_F64: F32 = F64;
        0x10 V_CVT_F64_F32: F64 = F32;
        0x11 V_CVT_F32_UBYTE0: F32 = U32;
        0x12 V_CVT_F32_UBYTE1: F32 = U32;
        0x13 V_CVT_F32_UBYTE2: F32 = U32;
        0x14 V_CVT_F32_UBYTE3: F32 = U32;
        0x15 V_CVT_U32_F64: U32 = F64 | CLAMP OMOD;
        0x16 V_CVT_F64_U32: F64 = U32;
        0x17 V_TRUNC_F64: F64 = F64;
        0x18 V_CEIL_F64: F64 = F64;
        0x19 V_RNDNE_F64: F64 = F64;
        0x1a V_FLOOR_F64: F64 = F64;
        0x1b V_PIPEFLUSH: = | NO_DPP;
        0x1c V_MOV_B16: B16 = B16;
        0x20 V_FRACT_F32: F32 = F32;
        0x21 V_TRUNC_F32: F32 = F32;
        0x22 V_CEIL_F32: F32 = F32;
        0x23 V_RNDNE_F32: F32 = F32;
        0x24 V_FLOOR_F32: F32 = F32;
        0x25 V_EXP_F32: F32 = F32;
        0x27 V_LOG_F32: F32 = F32;
        0x2a V_RCP_F32: F32 = F32;
        0x2b V_RCP_IFLAG_F32: F32 = F32;
        0x2e V_RSQ_F32: F32 = F32;
        0x2f V_RCP_F64: F64 = F64;
        0x31 V_RSQ_F64: F64 = F64;
        0x33 V_SQRT_F32: F32 = F32;
        0x34 V_SQRT_F64: F64 = F64;
        0x35 V_SIN_F32: F32 = F32;
        0x36 V_COS_F32: F32 = F32;
        0x37 V_NOT_B32: U32 = U32;
        0x38 V_BFREV_B32: B32 = B32;
        0x39 V_CLZ_I32_U32: I32 = U32;
        0x3a V_CTZ_I32_B32: I32 = U32;
        0x3b V_CLS_I32: I32 = I32;
        0x3c V_FREXP_EXP_I32_F64: I32 = F64 | CLAMP OMOD;
        0x3d V_FREXP_MANT_F64: F64 = F64;
        0x3e V_FRACT_F64: F64 = F64;
        0x3f V_FREXP_EXP_I32_F32: I32 = F32 | CLAMP;
        0x40 V_FREXP_MANT_F32: F32 = F32;
        0x42 V_MOVRELD_B32: V32 = B32;
        0x43 V_MOVRELS_B32: V32 = V32;
        0x44 V_MOVRELSD_B32: V32 = V32;
        0x48 V_MOVRELSD_2_B32: V32 = V32;
        0x50 V_CVT_F16_U16: F16 = U16;
        0x51 V_CVT_F16_I16: F16 = I16;
        0x52 V_CVT_U16_F16: U16 = F16 | CLAMP OMOD;
        0x53 V_CVT_I16_F16: I16 = F16 | CLAMP OMOD;
        0x54 V_RCP_F16: F16 = F16;
        0x55 V_SQRT_F16: F16 = F16;
        0x56 V_RSQ_F16: F16 = F16;
        0x57 V_LOG_F16: F16 = F16;
        0x58 V_EXP_F16: F16 = F16;
        0x59 V_FREXP_MANT_F16: F16 = F16;
        0x5a V_FREXP_EXP_I16_F16: I16 = F16 | CLAMP OMOD;
        0x5b V_FLOOR_F16: F16 = F16;
        0x5c V_CEIL_F16: F16 = F16;
        0x5d V_TRUNC_F16: F16 = F16;
        0x5e V_RNDNE_F16: F16 = F16;
        0x5f V_FRACT_F16: F16 = F16;
        0x60 V_SIN_F16: F16 = F16;
        0x61 V_COS_F16: F16 = F16;
        0x62 V_SAT_PK_U8_I16: B16 = PKI16;
        0x63 V_CVT_NORM_I16_F16: I16 = F16 | CLAMP OMOD;
        0x64 V_CVT_NORM_U16_F16: U16 = F16 | CLAMP OMOD;
        0x65 V_SWAP_B32: V32 = V32 | NO_E64 NO_DPP;
        0x66 V_SWAP_B16: V16 = V16 | NO_E64 NO_DPP;
        0x67 V_PERMLANE64_B32: V32 = V32 | NO_E64 NO_DPP;
        0x68 V_SWAPREL_B32: V32 = V32 | NO_E64 NO_DPP;
        0x69 V_NOT_B16: U16 = U16;
        0x6a V_CVT_I32_I16: I32 = I16;
        0x6b V_CVT_U32_U16: U32 = U16;
    }
    Vop2 {
        0x01 V_CNDMASK_B32: B32 = F32 F32 MASK;
        0x02 V_DOT2ACC_F32_F16: F32 = PKF16 PKF16 | NO_E64;
        0x03 V_ADD_F32: F32 = F32 F32;
        0x04 V_SUB_F32: F32 = F32 F32;
        0x05 V_SUBREV_F32: F32 = F32 F32;
        0x06 V_FMAC_DX9_ZERO_F32: F32 = F32 F32 | NO_DPP;
        0x07 V_MUL_DX9_ZERO_F32: F32 = F32 F32;
        0x08 V_MUL_F32: F32 = F32 F32;
        0x09 V_MUL_I32_I24: I32 = I32 I32 | CLAMP;
        0x0a V_MUL_HI_I32_I24: I32 = I32 I32;
        0x0b V_MUL_U32_U24: U32 = U32 U32 | CLAMP;
        0x0c V_MUL_HI_U32_U24: U32 = U32 U32;
        0x0f V_MIN_F32: F32 = F32 F32;
        0x10 V_MAX_F32: F32 = F32 F32;
        0x11 V_MIN_I32: I32 = I32 I32;
        0x12 V_MAX_I32: I32 = I32 I32;
        0x13 V_MIN_U32: U32 = U32 U32;
        0x14 V_MAX_U32: U32 = U32 U32;
        0x18 V_LSHLREV_B32: U32 = U32 U32;
        0x19 V_LSHRREV_B32: U32 = U32 U32;
        0x1a V_ASHRREV_I32: I32 = U32 I32;
        0x1b V_AND_B32: U32 = U32 U32;
        0x1c V_OR_B32: U32 = U32 U32;
        0x1d V_XOR_B32: U32 = U32 U32;
        0x1e V_XNOR_B32: U32 = U32 U32;
        0x20 V_ADD_CO_CI_U32: U32 MASK = U32 U32 MASK | CLAMP;
        0x21 V_SUB_CO_CI_U32: U32 MASK = U32 U32 MASK | CLAMP;
        0x22 V_SUBREV_CO_CI_U32: U32 MASK = U32 U32 MASK | CLAMP;
        0x25 V_ADD_NC_U32: U32 = U32 U32 | CLAMP;
        0x26 V_SUB_NC_U32: U32 = U32 U32 | CLAMP;
        0x27 V_SUBREV_NC_U32: U32 = U32 U32 | CLAMP;
        0x2b V_FMAC_F32: F32 = F32 F32;
        0x2c V_FMAMK_F32: F32 = F32 K32 F32 | NO_E64 NO_DPP;
        0x2d V_FMAAK_F32: F32 = F32 F32 K32 | NO_E64 NO_DPP;
        0x2f V_CVT_PK_RTZ_F16_F32: PKF16 = F32 F32;
        0x32 V_ADD_F16: F16 = F16 F16;
        0x33 V_SUB_F16: F16 = F16 F16;
        0x34 V_SUBREV_F16: F16 = F16 F16;
        0x35 V_MUL_F16: F16 = F16 F16;
        0x36 V_FMAC_F16: F16 = F16 F16;
        0x37 V_FMAMK_F16: F16 = F16 K16 F16 | NO_E64 NO_DPP;
        0x38 V_FMAAK_F16: F16 = F16 F16 K16 | NO_E64 NO_DPP;
        0x39 V_MAX_F16: F16 = F16 F16;
        0x3a V_MIN_F16: F16 = F16 F16;
        0x3b V_LDEXP_F16: F16 = F16 I16;
        0x3c V_PK_FMAC_F16: PKF16 = PKF16 PKF16 | NO_E64 NO_DPP;
    }
    Vopc {
        0x00 V_CMP_F_F16: MASK = F16 F16;
        0x01 V_CMP_LT_F16: MASK = F16 F16;
        0x02 V_CMP_EQ_F16: MASK = F16 F16;
        0x03 V_CMP_LE_F16: MASK = F16 F16;
        0x04 V_CMP_GT_F16: MASK = F16 F16;
        0x05 V_CMP_LG_F16: MASK = F16 F16;
        0x06 V_CMP_GE_F16: MASK = F16 F16;
        0x07 V_CMP_O_F16: MASK = F16 F16;
        0x08 V_CMP_U_F16: MASK = F16 F16;
        0x09 V_CMP_NGE_F16: MASK = F16 F16;
        0x0a V_CMP_NLG_F16: MASK = F16 F16;
        0x0b V_CMP_NGT_F16: MASK = F16 F16;
        0x0c V_CMP_NLE_F16: MASK = F16 F16;
        0x0d V_CMP_NEQ_F16: MASK = F16 F16;
        0x0e V_CMP_NLT_F16: MASK = F16 F16;
        0x0f V_CMP_T_F16: MASK = F16 F16;
        0x10 V_CMP_F_F32: MASK = F32 F32;
        0x11 V_CMP_LT_F32: MASK = F32 F32;
        0x12 V_CMP_EQ_F32: MASK = F32 F32;
        0x13 V_CMP_LE_F32: MASK = F32 F32;
        0x14 V_CMP_GT_F32: MASK = F32 F32;
        0x15 V_CMP_LG_F32: MASK = F32 F32;
        0x16 V_CMP_GE_F32: MASK = F32 F32;
        0x17 V_CMP_O_F32: MASK = F32 F32;
        0x18 V_CMP_U_F32: MASK = F32 F32;
        0x19 V_CMP_NGE_F32: MASK = F32 F32;
        0x1a V_CMP_NLG_F32: MASK = F32 F32;
        0x1b V_CMP_NGT_F32: MASK = F32 F32;
        0x1c V_CMP_NLE_F32: MASK = F32 F32;
        0x1d V_CMP_NEQ_F32: MASK = F32 F32;
        0x1e V_CMP_NLT_F32: MASK = F32 F32;
        0x1f V_CMP_T_F32: MASK = F32 F32;
        0x20 V_CMP_F_F64: MASK = F64 F64;
        0x21 V_CMP_LT_F64: MASK = F64 F64;
        0x22 V_CMP_EQ_F64: MASK = F64 F64;
        0x23 V_CMP_LE_F64: MASK = F64 F64;
        0x24 V_CMP_GT_F64: MASK = F64 F64;
        0x25 V_CMP_LG_F64: MASK = F64 F64;
        0x26 V_CMP_GE_F64: MASK = F64 F64;
        0x27 V_CMP_O_F64: MASK = F64 F64;
        0x28 V_CMP_U_F64: MASK = F64 F64;
        0x29 V_CMP_NGE_F64: MASK = F64 F64;
        0x2a V_CMP_NLG_F64: MASK = F64 F64;
        0x2b V_CMP_NGT_F64: MASK = F64 F64;
        0x2c V_CMP_NLE_F64: MASK = F64 F64;
        0x2d V_CMP_NEQ_F64: MASK = F64 F64;
        0x2e V_CMP_NLT_F64: MASK = F64 F64;
        0x2f V_CMP_T_F64: MASK = F64 F64;
        0x31 V_CMP_LT_I16: MASK = I16 I16;
        0x32 V_CMP_EQ_I16: MASK = I16 I16;
        0x33 V_CMP_LE_I16: MASK = I16 I16;
        0x34 V_CMP_GT_I16: MASK = I16 I16;
        0x35 V_CMP_NE_I16: MASK = I16 I16;
        0x36 V_CMP_GE_I16: MASK = I16 I16;
        0x39 V_CMP_LT_U16: MASK = U16 U16;
        0x3a V_CMP_EQ_U16: MASK = U16 U16;
        0x3b V_CMP_LE_U16: MASK = U16 U16;
        0x3c V_CMP_GT_U16: MASK = U16 U16;
        0x3d V_CMP_NE_U16: MASK = U16 U16;
        0x3e V_CMP_GE_U16: MASK = U16 U16;
        0x40 V_CMP_F_I32: MASK = I32 I32;
        0x41 V_CMP_LT_I32: MASK = I32 I32;
        0x42 V_CMP_EQ_I32: MASK = I32 I32;
        0x43 V_CMP_LE_I32: MASK = I32 I32;
        0x44 V_CMP_GT_I32: MASK = I32 I32;
        0x45 V_CMP_NE_I32: MASK = I32 I32;
        0x46 V_CMP_GE_I32: MASK = I32 I32;
        0x47 V_CMP_T_I32: MASK = I32 I32;
        0x48 V_CMP_F_U32: MASK = U32 U32;
        0x49 V_CMP_LT_U32: MASK = U32 U32;
        0x4a V_CMP_EQ_U32: MASK = U32 U32;
        0x4b V_CMP_LE_U32: MASK = U32 U32;
        0x4c V_CMP_GT_U32: MASK = U32 U32;
        0x4d V_CMP_NE_U32: MASK = U32 U32;
        0x4e V_CMP_GE_U32: MASK = U32 U32;
        0x4f V_CMP_T_U32: MASK = U32 U32;
        0x50 V_CMP_F_I64: MASK = I64 I64;
        0x51 V_CMP_LT_I64: MASK = I64 I64;
        0x52 V_CMP_EQ_I64: MASK = I64 I64;
        0x53 V_CMP_LE_I64: MASK = I64 I64;
        0x54 V_CMP_GT_I64: MASK = I64 I64;
        0x55 V_CMP_NE_I64: MASK = I64 I64;
        0x56 V_CMP_GE_I64: MASK = I64 I64;
        0x57 V_CMP_T_I64: MASK = I64 I64;
        0x58 V_CMP_F_U64: MASK = U64 U64;
        0x59 V_CMP_LT_U64: MASK = U64 U64;
        0x5a V_CMP_EQ_U64: MASK = U64 U64;
        0x5b V_CMP_LE_U64: MASK = U64 U64;
        0x5c V_CMP_GT_U64: MASK = U64 U64;
        0x5d V_CMP_NE_U64: MASK = U64 U64;
        0x5e V_CMP_GE_U64: MASK = U64 U64;
        0x5f V_CMP_T_U64: MASK = U64 U64;
        0x7d V_CMP_CLASS_F16: MASK = F16 U16 | PLAIN;
        0x7e V_CMP_CLASS_F32: MASK = F32 U32 | PLAIN;
        0x7f V_CMP_CLASS_F64: MASK = F64 U32 | PLAIN;
        0x80 V_CMPX_F_F16: EXEC = F16 F16;
        0x81 V_CMPX_LT_F16: EXEC = F16 F16;
        0x82 V_CMPX_EQ_F16: EXEC = F16 F16;
        0x83 V_CMPX_LE_F16: EXEC = F16 F16;
        0x84 V_CMPX_GT_F16: EXEC = F16 F16;
        0x85 V_CMPX_LG_F16: EXEC = F16 F16;
        0x86 V_CMPX_GE_F16: EXEC = F16 F16;
        0x87 V_CMPX_O_F16: EXEC = F16 F16;
        0x88 V_CMPX_U_F16: EXEC = F16 F16;
        0x89 V_CMPX_NGE_F16: EXEC = F16 F16;
        0x8a V_CMPX_NLG_F16: EXEC = F16 F16;
        0x8b V_CMPX_NGT_F16: EXEC = F16 F16;
        0x8c V_CMPX_NLE_F16: EXEC = F16 F16;
        0x8d V_CMPX_NEQ_F16: EXEC = F16 F16;
        0x8e V_CMPX_NLT_F16: EXEC = F16 F16;
        0x8f V_CMPX_T_F16: EXEC = F16 F16;
        0x90 V_CMPX_F_F32: EXEC = F32 F32;
        0x91 V_CMPX_LT_F32: EXEC = F32 F32;
        0x92 V_CMPX_EQ_F32: EXEC = F32 F32;
        0x93 V_CMPX_LE_F32: EXEC = F32 F32;
        0x94 V_CMPX_GT_F32: EXEC = F32 F32;
        0x95 V_CMPX_LG_F32: EXEC = F32 F32;
        0x96 V_CMPX_GE_F32: EXEC = F32 F32;
        0x97 V_CMPX_O_F32: EXEC = F32 F32;
        0x98 V_CMPX_U_F32: EXEC = F32 F32;
        0x99 V_CMPX_NGE_F32: EXEC = F32 F32;
        0x9a V_CMPX_NLG_F32: EXEC = F32 F32;
        0x9b V_CMPX_NGT_F32: EXEC = F32 F32;
        0x9c V_CMPX_NLE_F32: EXEC = F32 F32;
        0x9d V_CMPX_NEQ_F32: EXEC = F32 F32;
        0x9e V_CMPX_NLT_F32: EXEC = F32 F32;
        0x9f V_CMPX_T_F32: EXEC = F32 F32;
        0xa0 V_CMPX_F_F64: EXEC = F64 F64;
        0xa1 V_CMPX_LT_F64: EXEC = F64 F64;
        0xa2 V_CMPX_EQ_F64: EXEC = F64 F64;
        0xa3 V_CMPX_LE_F64: EXEC = F64 F64;
        0xa4 V_CMPX_GT_F64: EXEC = F64 F64;
        0xa5 V_CMPX_LG_F64: EXEC = F64 F64;
        0xa6 V_CMPX_GE_F64: EXEC = F64 F64;
        0xa7 V_CMPX_O_F64: EXEC = F64 F64;
        0xa8 V_CMPX_U_F64: EXEC = F64 F64;
        0xa9 V_CMPX_NGE_F64: EXEC = F64 F64;
        0xaa V_CMPX_NLG_F64: EXEC = F64 F64;
        0xab V_CMPX_NGT_F64: EXEC = F64 F64;
        0xac V_CMPX_NLE_F64: EXEC = F64 F64;
        0xad V_CMPX_NEQ_F64: EXEC = F64 F64;
        0xae V_CMPX_NLT_F64: EXEC = F64 F64;
        0xaf V_CMPX_T_F64: EXEC = F64 F64;
        0xb1 V_CMPX_LT_I16: EXEC = I16 I16;
        0xb2 V_CMPX_EQ_I16: EXEC = I16 I16;
        0xb3 V_CMPX_LE_I16: EXEC = I16 I16;
        0xb4 V_CMPX_GT_I16: EXEC = I16 I16;
        0xb5 V_CMPX_NE_I16: EXEC = I16 I16;
        0xb6 V_CMPX_GE_I16: EXEC = I16 I16;
        0xb9 V_CMPX_LT_U16: EXEC = U16 U16;
        0xba V_CMPX_EQ_U16: EXEC = U16 U16;
        0xbb V_CMPX_LE_U16: EXEC = U16 U16;
        0xbc V_CMPX_GT_U16: EXEC = U16 U16;
        0xbd V_CMPX_NE_U16: EXEC = U16 U16;
        0xbe V_CMPX_GE_U16: EXEC = U16 U16;
        0xc0 V_CMPX_F_I32: EXEC = I32 I32;
        0xc1 V_CMPX_LT_I32: EXEC = I32 I32;
        0xc2 V_CMPX_EQ_I32: EXEC = I32 I32;
        0xc3 V_CMPX_LE_I32: EXEC = I32 I32;
        0xc4 V_CMPX_GT_I32: EXEC = I32 I32;
        0xc5 V_CMPX_NE_I32: EXEC = I32 I32;
        0xc6 V_CMPX_GE_I32: EXEC = I32 I32;
        0xc7 V_CMPX_T_I32: EXEC = I32 I32;
        0xc8 V_CMPX_F_U32: EXEC = U32 U32;
        0xc9 V_CMPX_LT_U32: EXEC = U32 U32;
        0xca V_CMPX_EQ_U32: EXEC = U32 U32;
        0xcb V_CMPX_LE_U32: EXEC = U32 U32;
        0xcc V_CMPX_GT_U32: EXEC = U32 U32;
        0xcd V_CMPX_NE_U32: EXEC = U32 U32;
        0xce V_CMPX_GE_U32: EXEC = U32 U32;
        0xcf V_CMPX_T_U32: EXEC = U32 U32;
        0xd0 V_CMPX_F_I64: EXEC = I64 I64;
        0xd1 V_CMPX_LT_I64: EXEC = I64 I64;
        0xd2 V_CMPX_EQ_I64: EXEC = I64 I64;
        0xd3 V_CMPX_LE_I64: EXEC = I64 I64;
        0xd4 V_CMPX_GT_I64: EXEC = I64 I64;
        0xd5 V_CMPX_NE_I64: EXEC = I64 I64;
        0xd6 V_CMPX_GE_I64: EXEC = I64 I64;
        0xd7 V_CMPX_T_I64: EXEC = I64 I64;
        0xd8 V_CMPX_F_U64: EXEC = U64 U64;
        0xd9 V_CMPX_LT_U64: EXEC = U64 U64;
        0xda V_CMPX_EQ_U64: EXEC = U64 U64;
        0xdb V_CMPX_LE_U64: EXEC = U64 U64;
        0xdc V_CMPX_GT_U64: EXEC = U64 U64;
        0xdd V_CMPX_NE_U64: EXEC = U64 U64;
        0xde V_CMPX_GE_U64: EXEC = U64 U64;
        0xdf V_CMPX_T_U64: EXEC = U64 U64;
        0xfd V_CMPX_CLASS_F16: EXEC = F16 U16 | PLAIN;
        0xfe V_CMPX_CLASS_F32: EXEC = F32 U32 | PLAIN;
        0xff V_CMPX_CLASS_F64: EXEC = F64 U32 | PLAIN;
    }
    Vop3 {
        0x209 V_FMA_DX9_ZERO_F32: F32 = F32 F32 F32 | NO_DPP;
        0x20a V_MAD_I32_I24: I32 = I32 I32 I32 | CLAMP;
        0x20b V_MAD_U32_U24: U32 = U32 U32 U32 | CLAMP;
        0x20c V_CUBEID_F32: F32 = F32 F32 F32;
        0x20d V_CUBESC_F32: F32 = F32 F32 F32;
        0x20e V_CUBETC_F32: F32 = F32 F32 F32;
        0x20f V_CUBEMA_F32: F32 = F32 F32 F32;
        0x210 V_BFE_U32: U32 = U32 U32 U32;
        0x211 V_BFE_I32: I32 = I32 U32 U32;
        0x212 V_BFI_B32: U32 = U32 U32 U32;
        0x213 V_FMA_F32: F32 = F32 F32 F32;
        0x214 V_FMA_F64: F64 = F64 F64 F64;
        0x215 V_LERP_U8: U32 = B32 B32 B32;
        0x216 V_ALIGNBIT_B32: U32 = U32 U32 U16 | CLAMP;
        0x217 V_ALIGNBYTE_B32: U32 = U32 U32 U16 | CLAMP;
        0x218 V_MULLIT_F32: F32 = F32 F32 F32;
        0x219 V_MIN3_F32: F32 = F32 F32 F32;
        0x21a V_MIN3_I32: I32 = I32 I32 I32;
        0x21b V_MIN3_U32: U32 = U32 U32 U32;
        0x21c V_MAX3_F32: F32 = F32 F32 F32;
        0x21d V_MAX3_I32: I32 = I32 I32 I32;
        0x21e V_MAX3_U32: U32 = U32 U32 U32;
        0x21f V_MED3_F32: F32 = F32 F32 F32;
        0x220 V_MED3_I32: I32 = I32 I32 I32;
        0x221 V_MED3_U32: U32 = U32 U32 U32;
        0x222 V_SAD_U8: U32 = B32 B32 U32 | CLAMP;
        0x223 V_SAD_HI_U8: U32 = B32 B32 U32 | CLAMP;
        0x224 V_SAD_U16: U32 = PKU16 PKU16 U32 | CLAMP;
        0x225 V_SAD_U32: U32 = U32 U32 U32 | CLAMP;
        0x226 V_CVT_PK_U8_F32: B32 = F32 B32 B32 | CLAMP;
        0x227 V_DIV_FIXUP_F32: F32 = F32 F32 F32 | NO_DPP;
        0x228 V_DIV_FIXUP_F64: F64 = F64 F64 F64;
        0x237 V_DIV_FMAS_F32: F32 = F32 F32 F32 | NO_DPP;
        0x238 V_DIV_FMAS_F64: F64 = F64 F64 F64;
        0x239 V_MSAD_U8: U32 = B32 B32 B32 | CLAMP;
        0x23a V_QSAD_PK_U16_U8: B64 = B64 B32 B64 | CLAMP;
        0x23b V_MQSAD_PK_U16_U8: B64 = B64 B32 B64 | CLAMP;
        0x23d V_MQSAD_U32_U8: B128 = B64 B32 V128 | CLAMP;
        0x240 V_XOR3_B32: U32 = U32 U32 U32;
        0x241 V_MAD_U16: U16 = U16 U16 U16 | CLAMP;
        0x244 V_PERM_B32: B32 = B32 B32 B32;
        0x245 V_XAD_U32: U32 = U32 U32 U32;
        0x246 V_LSHL_ADD_U32: U32 = U32 U32 U32;
        0x247 V_ADD_LSHL_U32: U32 = U32 U32 U32;
        0x248 V_FMA_F16: F16 = F16 F16 F16;
        0x249 V_MIN3_F16: F16 = F16 F16 F16;
        0x24a V_MIN3_I16: I16 = I16 I16 I16 | CLAMP;
        0x24b V_MIN3_U16: U16 = U16 U16 U16 | CLAMP;
        0x24c V_MAX3_F16: F16 = F16 F16 F16;
        0x24d V_MAX3_I16: I16 = I16 I16 I16 | CLAMP;
        0x24e V_MAX3_U16: U16 = U16 U16 U16 | CLAMP;
        0x24f V_MED3_F16: F16 = F16 F16 F16;
        0x250 V_MED3_I16: I16 = I16 I16 I16 | CLAMP;
        0x251 V_MED3_U16: U16 = U16 U16 U16 | CLAMP;
        0x253 V_MAD_I16: I16 = I16 I16 I16 | CLAMP;
        0x254 V_DIV_FIXUP_F16: F16 = F16 F16 F16;
        0x255 V_ADD3_U32: U32 = U32 U32 U32;
        0x256 V_LSHL_OR_B32: U32 = U32 U32 U32;
        0x257 V_AND_OR_B32: U32 = U32 U32 U32;
        0x258 V_OR3_B32: U32 = U32 U32 U32;
        0x259 V_MAD_U32_U16: U32 = U16 U16 U32 | CLAMP;
        0x25a V_MAD_I32_I16: I32 = I16 I16 I32 | CLAMP;
        0x25b V_PERMLANE16_B32: V32 = V32 S32 S32 | NO_DPP;
        0x25c V_PERMLANEX16_B32: V32 = V32 S32 S32 | NO_DPP;
        0x25d V_CNDMASK_B16: B16 = F16 F16 MASK;
        0x25e V_MAXMIN_F32: F32 = F32 F32 F32;
        0x25f V_MINMAX_F32: F32 = F32 F32 F32;
        0x260 V_MAXMIN_F16: F16 = F16 F16 F16;
        0x261 V_MINMAX_F16: F16 = F16 F16 F16;
        0x262 V_MAXMIN_U32: U32 = U32 U32 U32;
        0x263 V_MINMAX_U32: U32 = U32 U32 U32;
        0x264 V_MAXMIN_I32: I32 = I32 I32 I32;
        0x265 V_MINMAX_I32: I32 = I32 I32 I32;
        0x266 V_DOT2_F16_F16: F16 = PKF16 PKF16 F16 | PLAIN;
        0x267 V_DOT2_BF16_BF16: BF16 = PKBF16 PKBF16 BF16 | PLAIN;
        0x303 V_ADD_NC_U16: U16 = U16 U16 | CLAMP;
        0x304 V_SUB_NC_U16: U16 = U16 U16 | CLAMP;
        0x305 V_MUL_LO_U16: U16 = U16 U16;
        0x306 V_CVT_PK_I16_F32: PKI16 = F32 F32 | CLAMP;
        0x307 V_CVT_PK_U16_F32: PKU16 = F32 F32 | CLAMP;
        0x309 V_MAX_U16: U16 = U16 U16;
        0x30a V_MAX_I16: I16 = I16 I16;
        0x30b V_MIN_U16: U16 = U16 U16;
        0x30c V_MIN_I16: I16 = I16 I16;
        0x30d V_ADD_NC_I16: I16 = I16 I16 | CLAMP;
        0x30e V_SUB_NC_I16: I16 = I16 I16 | CLAMP;
        0x311 V_PACK_B32_F16: B32 = F16 F16 | CLAMP;
        0x312 V_CVT_PK_NORM_I16_F16: PKI16 = F16 F16 | CLAMP;
        0x313 V_CVT_PK_NORM_U16_F16: PKU16 = F16 F16 | CLAMP;
        0x31c V_LDEXP_F32: F32 = F32 I32;
        0x31d V_BFM_B32: U32 = U32 U32;
        0x31e V_BCNT_U32_B32: U32 = U32 U32;
        0x31f V_MBCNT_LO_U32_B32: U32 = U32 U32;
        0x320 V_MBCNT_HI_U32_B32: U32 = U32 U32;
        0x321 V_CVT_PK_NORM_I16_F32: PKI16 = F32 F32 | CLAMP;
        0x322 V_CVT_PK_NORM_U16_F32: PKU16 = F32 F32 | CLAMP;
        0x323 V_CVT_PK_U16_U32: PKU16 = U32 U32;
        0x324 V_CVT_PK_I16_I32: PKI16 = I32 I32;
        0x325 V_SUB_NC_I32: I32 = I32 I32 | CLAMP;
        0x326 V_ADD_NC_I32: I32 = I32 I32 | CLAMP;
        0x327 V_ADD_F64: F64 = F64 F64;
        0x328 V_MUL_F64: F64 = F64 F64;
        0x329 V_MIN_F64: F64 = F64 F64;
        0x32a V_MAX_F64: F64 = F64 F64;
        0x32b V_LDEXP_F64: F64 = F64 I32;
        0x32c V_MUL_LO_U32: U32 = U32 U32 | NO_DPP;
        0x32d V_MUL_HI_U32: U32 = U32 U32 | NO_DPP;
        0x32e V_MUL_HI_I32: I32 = I32 I32 | NO_DPP;
        0x32f V_TRIG_PREOP_F64: F64 = F64 B32;
        0x338 V_LSHLREV_B16: B16 = U16 B16;
        0x339 V_LSHRREV_B16: B16 = U16 B16;
        0x33a V_ASHRREV_I16: I16 = U16 I16;
        0x33c V_LSHLREV_B64: U64 = U32 U64;
        0x33d V_LSHRREV_B64: U64 = U32 U64;
        0x33e V_ASHRREV_I64: I64 = U32 I64;
        0x360 V_READLANE_B32: S32 = V32 LANE | NO_DPP;
        0x361 V_WRITELANE_B32: V32 = S32 LANE | NO_DPP;
        0x362 V_AND_B16: U16 = U16 U16;
        0x363 V_OR_B16: U16 = U16 U16;
        0x364 V_XOR_B16: U16 = U16 U16;
    }
    Vop3Sd {
        0x2fc V_DIV_SCALE_F32: F32 MASK = F32 F32 F32 | NO_DPP;
        0x2fd V_DIV_SCALE_F64: F64 MASK = F64 F64 F64;
        0x2fe V_MAD_U64_U32: U64 MASK = U32 U32 U64 | CLAMP;
        0x2ff V_MAD_I64_I32: I64 MASK = I32 I32 I64 | CLAMP;
        0x300 V_ADD_CO_U32: U32 MASK = U32 U32 | CLAMP;
        0x301 V_SUB_CO_U32: U32 MASK = U32 U32 | CLAMP;
        0x302 V_SUBREV_CO_U32: U32 MASK = U32 U32 | CLAMP;
    }
    Vop3p {
        0x00 V_PK_MAD_I16: PKI16 = PKI16 PKI16 PKI16;
        0x01 V_PK_MUL_LO_U16: PKU16 = PKU16 PKU16;
        0x02 V_PK_ADD_I16: PKI16 = PKI16 PKI16;
        0x03 V_PK_SUB_I16: PKI16 = PKI16 PKI16;
        0x04 V_PK_LSHLREV_B16: PKU16 = PKU16 PKU16;
        0x05 V_PK_LSHRREV_B16: PKU16 = PKU16 PKU16;
        0x06 V_PK_ASHRREV_I16: PKI16 = PKU16 PKI16;
        0x07 V_PK_MAX_I16: PKI16 = PKI16 PKI16;
        0x08 V_PK_MIN_I16: PKI16 = PKI16 PKI16;
        0x09 V_PK_MAD_U16: PKU16 = PKU16 PKU16 PKU16;
        0x0a V_PK_ADD_U16: PKU16 = PKU16 PKU16;
        0x0b V_PK_SUB_U16: PKU16 = PKU16 PKU16;
        0x0c V_PK_MAX_U16: PKU16 = PKU16 PKU16;
        0x0d V_PK_MIN_U16: PKU16 = PKU16 PKU16;
        0x0e V_PK_FMA_F16: PKF16 = PKF16 PKF16 PKF16;
        0x0f V_PK_ADD_F16: PKF16 = PKF16 PKF16;
        0x10 V_PK_MUL_F16: PKF16 = PKF16 PKF16;
        0x11 V_PK_MIN_F16: PKF16 = PKF16 PKF16;
        0x12 V_PK_MAX_F16: PKF16 = PKF16 PKF16;
        0x13 V_DOT2_F32_F16: F32 = PKF16 PKF16 F32 | DPP;
        0x16 V_DOT4_I32_IU8: I32 = B32 B32 I32;
        0x17 V_DOT4_U32_U8: U32 = B32 B32 U32;
        0x18 V_DOT8_I32_IU4: I32 = B32 B32 I32;
        0x19 V_DOT8_U32_U4: U32 = B32 B32 U32;
        0x1a V_DOT2_F32_BF16: F32 = PKBF16 PKBF16 F32 | DPP;
        0x20 V_FMA_MIX_F32: F32 = MIX MIX MIX | DPP;
        0x21 V_FMA_MIXLO_F16: B32 = MIX MIX MIX | DPP;
        0x22 V_FMA_MIXHI_F16: B32 = MIX MIX MIX | DPP;
        0x40 V_WMMA_F32_16X16X16_F16: ACC = V256 V256 ACC | PLAIN;
        0x41 V_WMMA_F32_16X16X16_BF16: ACC = V256 V256 ACC | PLAIN;
        0x42 V_WMMA_F16_16X16X16_F16: ACC = V256 V256 ACC | PLAIN OP_SEL;
        0x43 V_WMMA_BF16_16X16X16_BF16: ACC = V256 V256 ACC | PLAIN OP_SEL;
        0x44 V_WMMA_I32_16X16X16_IU8: ACC = V128 V128 ACC;
        0x45 V_WMMA_I32_16X16X16_IU4: ACC = V64 V64 ACC;
    }
    Vopd {
        0x00 V_DUAL_FMAC_F32: F32 = F32 F32;
        0x01 V_DUAL_FMAAK_F32: F32 = F32 F32 K32;
        0x02 V_DUAL_FMAMK_F32: F32 = F32 K32 F32;
        0x03 V_DUAL_MUL_F32: F32 = F32 F32;
        0x04 V_DUAL_ADD_F32: F32 = F32 F32;
        0x05 V_DUAL_SUB_F32: F32 = F32 F32;
        0x06 V_DUAL_SUBREV_F32: F32 = F32 F32;
        0x07 V_DUAL_MUL_DX9_ZERO_F32: F32 = F32 F32;
        0x08 V_DUAL_MOV_B32: B32 = B32;
        0x09 V_DUAL_CNDMASK_B32: B32 = B32 B32 MASK;
        0x0a V_DUAL_MAX_F32: F32 = F32 F32;
        0x0b V_DUAL_MIN_F32: F32 = F32 F32;
        0x0c V_DUAL_DOT2ACC_F32_F16: F32 = PKF16 PKF16;
        0x0d V_DUAL_DOT2ACC_F32_BF16: F32 = PKBF16 PKBF16;
        0x10 V_DUAL_ADD_NC_U32: U32 = U32 U32;
        0x11 V_DUAL_LSHLREV_B32: B32 = B32 B32;
        0x12 V_DUAL_AND_B32: B32 = B32 B32;
    }
    Ds {
        0x00 DS_ADD_U32: = B32 B32;
        0x01 DS_SUB_U32: = B32 B32;
        0x02 DS_RSUB_U32: = B32 B32;
        0x03 DS_INC_U32: = B32 B32;
        0x04 DS_DEC_U32: = B32 B32;
        0x05 DS_MIN_I32: = B32 B32;
        0x06 DS_MAX_I32: = B32 B32;
        0x07 DS_MIN_U32: = B32 B32;
        0x08 DS_MAX_U32: = B32 B32;
        0x09 DS_AND_B32: = B32 B32;
        0x0a DS_OR_B32: = B32 B32;
        0x0b DS_XOR_B32: = B32 B32;
        0x0c DS_MSKOR_B32: = B32 B32 B32;
        0x0d DS_STORE_B32: = B32 B32;
        0x0e DS_STORE_2ADDR_B32: = B32 B32 B32 | TWO_OFFSETS;
        0x0f DS_STORE_2ADDR_STRIDE64_B32: = B32 B32 B32 | TWO_OFFSETS;
        0x10 DS_CMPSTORE_B32: = B32 B32 B32;
        0x11 DS_CMPSTORE_F32: = B32 B32 B32;
        0x12 DS_MIN_F32: = B32 B32;
        0x13 DS_MAX_F32: = B32 B32;
        0x15 DS_ADD_F32: = B32 B32;
        0x18 DS_GWS_SEMA_RELEASE_ALL: = | GDS;
        0x19 DS_GWS_INIT: = B32 | GDS;
        0x1a DS_GWS_SEMA_V: = | GDS;
        0x1b DS_GWS_SEMA_BR: = B32 | GDS;
        0x1c DS_GWS_SEMA_P: = | GDS;
        0x1d DS_GWS_BARRIER: = B32 | GDS;
        0x1e DS_STORE_B8: = B32 B32;
        0x1f DS_STORE_B16: = B32 B32;
        0x20 DS_ADD_RTN_U32: B32 = B32 B32;
        0x21 DS_SUB_RTN_U32: B32 = B32 B32;
        0x22 DS_RSUB_RTN_U32: B32 = B32 B32;
        0x23 DS_INC_RTN_U32: B32 = B32 B32;
        0x24 DS_DEC_RTN_U32: B32 = B32 B32;
        0x25 DS_MIN_RTN_I32: B32 = B32 B32;
        0x26 DS_MAX_RTN_I32: B32 = B32 B32;
        0x27 DS_MIN_RTN_U32: B32 = B32 B32;
        0x28 DS_MAX_RTN_U32: B32 = B32 B32;
        0x29 DS_AND_RTN_B32: B32 = B32 B32;
        0x2a DS_OR_RTN_B32: B32 = B32 B32;
        0x2b DS_XOR_RTN_B32: B32 = B32 B32;
        0x2c DS_MSKOR_RTN_B32: B32 = B32 B32 B32;
        0x2d DS_STOREXCHG_RTN_B32: B32 = B32 B32;
        0x2e DS_STOREXCHG_2ADDR_RTN_B32: B64 = B32 B32 B32 | TWO_OFFSETS;
        0x2f DS_STOREXCHG_2ADDR_STRIDE64_RTN_B32: B64 = B32 B32 B32 | TWO_OFFSETS;
        0x30 DS_CMPSTORE_RTN_B32: B32 = B32 B32 B32;
        0x31 DS_CMPSTORE_RTN_F32: B32 = B32 B32 B32;
        0x32 DS_MIN_RTN_F32: B32 = B32 B32;
        0x33 DS_MAX_RTN_F32: B32 = B32 B32;
        0x34 DS_WRAP_RTN_B32: B32 = B32 B32 B32;
        0x35 DS_SWIZZLE_B32: B32 = B32;
        0x36 DS_LOAD_B32: B32 = B32;
        0x37 DS_LOAD_2ADDR_B32: B64 = B32 | TWO_OFFSETS;
        0x38 DS_LOAD_2ADDR_STRIDE64_B32: B64 = B32 | TWO_OFFSETS;
        0x39 DS_LOAD_I8: B32 = B32;
        0x3a DS_LOAD_U8: B32 = B32;
        0x3b DS_LOAD_I16: B32 = B32;
        0x3c DS_LOAD_U16: B32 = B32;
        0x3d DS_CONSUME: B32 =;
        0x3e DS_APPEND: B32 =;
        0x3f DS_ORDERED_COUNT: B32 = B32 | GDS;
        0x40 DS_ADD_U64: = B32 B64;
        0x41 DS_SUB_U64: = B32 B64;
        0x42 DS_RSUB_U64: = B32 B64;
        0x43 DS_INC_U64: = B32 B64;
        0x44 DS_DEC_U64: = B32 B64;
        0x45 DS_MIN_I64: = B32 B64;
        0x46 DS_MAX_I64: = B32 B64;
        0x47 DS_MIN_U64: = B32 B64;
        0x48 DS_MAX_U64: = B32 B64;
        0x49 DS_AND_B64: = B32 B64;
        0x4a DS_OR_B64: = B32 B64;
        0x4b DS_XOR_B64: = B32 B64;
        0x4c DS_MSKOR_B64: = B32 B64 B64;
        0x4d DS_STORE_B64: = B32 B64;
        0x4e DS_STORE_2ADDR_B64: = B32 B64 B64 | TWO_OFFSETS;
        0x4f DS_STORE_2ADDR_STRIDE64_B64: = B32 B64 B64 | TWO_OFFSETS;
        0x50 DS_CMPSTORE_B64: = B32 B64 B64;
        0x51 DS_CMPSTORE_F64: = B32 B64 B64;
        0x52 DS_MIN_F64: = B32 B64;
        0x53 DS_MAX_F64: = B32 B64;
        0x60 DS_ADD_RTN_U64: B64 = B32 B64;
        0x61 DS_SUB_RTN_U64: B64 = B32 B64;
        0x62 DS_RSUB_RTN_U64: B64 = B32 B64;
        0x63 DS_INC_RTN_U64: B64 = B32 B64;
        0x64 DS_DEC_RTN_U64: B64 = B32 B64;
        0x65 DS_MIN_RTN_I64: B64 = B32 B64;
        0x66 DS_MAX_RTN_I64: B64 = B32 B64;
        0x67 DS_MIN_RTN_U64: B64 = B32 B64;
        0x68 DS_MAX_RTN_U64: B64 = B32 B64;
        0x69 DS_AND_RTN_B64: B64 = B32 B64;
        0x6a DS_OR_RTN_B64: B64 = B32 B64;
        0x6b DS_XOR_RTN_B64: B64 = B32 B64;
        0x6c DS_MSKOR_RTN_B64: B64 = B32 B64 B64;
        0x6d DS_STOREXCHG_RTN_B64: B64 = B32 B64;
        0x6e DS_STOREXCHG_2ADDR_RTN_B64: B128 = B32 B64 B64 | TWO_OFFSETS;
        0x6f DS_STOREXCHG_2ADDR_STRIDE64_RTN_B64: B128 = B32 B64 B64 | TWO_OFFSETS;
        0x70 DS_CMPSTORE_RTN_B64: B64 = B32 B64 B64;
        0x71 DS_CMPSTORE_RTN_F64: B64 = B32 B64 B64;
        0x72 DS_MIN_RTN_F64: B64 = B32 B64;
        0x73 DS_MAX_RTN_F64: B64 = B32 B64;
        0x76 DS_LOAD_B64: B64 = B32;
        0x77 DS_LOAD_2ADDR_B64: B128 = B32 | TWO_OFFSETS;
        0x78 DS_LOAD_2ADDR_STRIDE64_B64: B128 = B32 | TWO_OFFSETS;
        0x79 DS_ADD_RTN_F32: B32 = B32 B32;
        0x7a DS_ADD_GS_REG_RTN: B64 = NONE B32 | GDS;
        0x7b DS_SUB_GS_REG_RTN: B64 = NONE B32 | GDS;
        0x7e DS_CONDXCHG32_RTN_B64: B64 = B32 B64;
        0xa0 DS_STORE_B8_D16_HI: = B32 B32;
        0xa1 DS_STORE_B16_D16_HI: = B32 B32;
        0xa2 DS_LOAD_U8_D16: B32 = B32;
        0xa3 DS_LOAD_U8_D16_HI: B32 = B32;
        0xa4 DS_LOAD_I8_D16: B32 = B32;
        0xa5 DS_LOAD_I8_D16_HI: B32 = B32;
        0xa6 DS_LOAD_U16_D16: B32 = B32;
        0xa7 DS_LOAD_U16_D16_HI: B32 = B32;
        0xad DS_BVH_STACK_RTN_B32: B32 = B32 B32 B128 | LDS;
        0xb0 DS_STORE_ADDTID_B32: = NONE B32;
        0xb1 DS_LOAD_ADDTID_B32: B32 =;
        0xb2 DS_PERMUTE_B32: B32 = B32 B32 | LDS;
        0xb3 DS_BPERMUTE_B32: B32 = B32 B32 | LDS;
        0xde DS_STORE_B96: = B32 B96;
        0xdf DS_STORE_B128: = B32 B128;
        0xfe DS_LOAD_B96: B96 = B32;
        0xff DS_LOAD_B128: B128 = B32;
    }
    Flat {
        0x10 FLAT_LOAD_U8: B32 = B64;
        0x11 FLAT_LOAD_I8: B32 = B64;
        0x12 FLAT_LOAD_U16: B32 = B64;
        0x13 FLAT_LOAD_I16: B32 = B64;
        0x14 FLAT_LOAD_B32: B32 = B64;
        0x15 FLAT_LOAD_B64: B64 = B64;
        0x16 FLAT_LOAD_B96: B96 = B64;
        0x17 FLAT_LOAD_B128: B128 = B64;
        0x18 FLAT_STORE_B8: = B64 B32;
        0x19 FLAT_STORE_B16: = B64 B32;
        0x1a FLAT_STORE_B32: = B64 B32;
        0x1b FLAT_STORE_B64: = B64 B64;
        0x1c FLAT_STORE_B96: = B64 B96;
        0x1d FLAT_STORE_B128: = B64 B128;
        0x1e FLAT_LOAD_D16_U8: B32 = B64;
        0x1f FLAT_LOAD_D16_I8: B32 = B64;
        0x20 FLAT_LOAD_D16_B16: B32 = B64;
        0x21 FLAT_LOAD_D16_HI_U8: B32 = B64;
        0x22 FLAT_LOAD_D16_HI_I8: B32 = B64;
        0x23 FLAT_LOAD_D16_HI_B16: B32 = B64;
        0x24 FLAT_STORE_D16_HI_B8: = B64 B32;
        0x25 FLAT_STORE_D16_HI_B16: = B64 B32;
        0x33 FLAT_ATOMIC_SWAP_B32: B32 = B64 B32;
        0x34 FLAT_ATOMIC_CMPSWAP_B32: B32 = B64 B64;
        0x35 FLAT_ATOMIC_ADD_U32: B32 = B64 B32;
        0x36 FLAT_ATOMIC_SUB_U32: B32 = B64 B32;
        0x38 FLAT_ATOMIC_MIN_I32: B32 = B64 B32;
        0x39 FLAT_ATOMIC_MIN_U32: B32 = B64 B32;
        0x3a FLAT_ATOMIC_MAX_I32: B32 = B64 B32;
        0x3b FLAT_ATOMIC_MAX_U32: B32 = B64 B32;
        0x3c FLAT_ATOMIC_AND_B32: B32 = B64 B32;
        0x3d FLAT_ATOMIC_OR_B32: B32 = B64 B32;
        0x3e FLAT_ATOMIC_XOR_B32: B32 = B64 B32;
        0x3f FLAT_ATOMIC_INC_U32: B32 = B64 B32;
        0x40 FLAT_ATOMIC_DEC_U32: B32 = B64 B32;
        0x41 FLAT_ATOMIC_SWAP_B64: B64 = B64 B64;
        0x42 FLAT_ATOMIC_CMPSWAP_B64: B64 = B64 B128;
        0x43 FLAT_ATOMIC_ADD_U64: B64 = B64 B64;
        0x44 FLAT_ATOMIC_SUB_U64: B64 = B64 B64;
        0x45 FLAT_ATOMIC_MIN_I64: B64 = B64 B64;
        0x46 FLAT_ATOMIC_MIN_U64: B64 = B64 B64;
        0x47 FLAT_ATOMIC_MAX_I64: B64 = B64 B64;
        0x48 FLAT_ATOMIC_MAX_U64: B64 = B64 B64;
        0x49 FLAT_ATOMIC_AND_B64: B64 = B64 B64;
        0x4a FLAT_ATOMIC_OR_B64: B64 = B64 B64;
        0x4b FLAT_ATOMIC_XOR_B64: B64 = B64 B64;
        0x4c FLAT_ATOMIC_INC_U64: B64 = B64 B64;
        0x4d FLAT_ATOMIC_DEC_U64: B64 = B64 B64;
        0x50 FLAT_ATOMIC_CMPSWAP_F32: B32 = B64 B64;
        0x51 FLAT_ATOMIC_MIN_F32: B32 = B64 B32;
        0x52 FLAT_ATOMIC_MAX_F32: B32 = B64 B32;
        0x56 FLAT_ATOMIC_ADD_F32: B32 = B64 B32;
    }
    Global {
        0x10 GLOBAL_LOAD_U8: B32 = B64;
        0x11 GLOBAL_LOAD_I8: B32 = B64;
        0x12 GLOBAL_LOAD_U16: B32 = B64;
        0x13 GLOBAL_LOAD_I16: B32 = B64;
        0x14 GLOBAL_LOAD_B32: B32 = B64;
        0x15 GLOBAL_LOAD_B64: B64 = B64;
        0x16 GLOBAL_LOAD_B96: B96 = B64;
        0x17 GLOBAL_LOAD_B128: B128 = B64;
        0x18 GLOBAL_STORE_B8: = B64 B32;
        0x19 GLOBAL_STORE_B16: = B64 B32;
        0x1a GLOBAL_STORE_B32: = B64 B32;
        0x1b GLOBAL_STORE_B64: = B64 B64;
        0x1c GLOBAL_STORE_B96: = B64 B96;
        0x1d GLOBAL_STORE_B128: = B64 B128;
        0x1e GLOBAL_LOAD_D16_U8: B32 = B64;
        0x1f GLOBAL_LOAD_D16_I8: B32 = B64;
        0x20 GLOBAL_LOAD_D16_B16: B32 = B64;
        0x21 GLOBAL_LOAD_D16_HI_U8: B32 = B64;
        0x22 GLOBAL_LOAD_D16_HI_I8: B32 = B64;
        0x23 GLOBAL_LOAD_D16_HI_B16: B32 = B64;
        0x24 GLOBAL_STORE_D16_HI_B8: = B64 B32;
        0x25 GLOBAL_STORE_D16_HI_B16: = B64 B32;
        0x28 GLOBAL_LOAD_ADDTID_B32: B32 =;
        0x29 GLOBAL_STORE_ADDTID_B32: = NONE B32;
        0x33 GLOBAL_ATOMIC_SWAP_B32: B32 = B64 B32;
        0x34 GLOBAL_ATOMIC_CMPSWAP_B32: B32 = B64 B64;
        0x35 GLOBAL_ATOMIC_ADD_U32: B32 = B64 B32;
        0x36 GLOBAL_ATOMIC_SUB_U32: B32 = B64 B32;
        0x37 GLOBAL_ATOMIC_CSUB_U32: B32 = B64 B32;
        0x38 GLOBAL_ATOMIC_MIN_I32: B32 = B64 B32;
        0x39 GLOBAL_ATOMIC_MIN_U32: B32 = B64 B32;
        0x3a GLOBAL_ATOMIC_MAX_I32: B32 = B64 B32;
        0x3b GLOBAL_ATOMIC_MAX_U32: B32 = B64 B32;
        0x3c GLOBAL_ATOMIC_AND_B32: B32 = B64 B32;
        0x3d GLOBAL_ATOMIC_OR_B32: B32 = B64 B32;
        0x3e GLOBAL_ATOMIC_XOR_B32: B32 = B64 B32;
        0x3f GLOBAL_ATOMIC_INC_U32: B32 = B64 B32;
        0x40 GLOBAL_ATOMIC_DEC_U32: B32 = B64 B32;
        0x41 GLOBAL_ATOMIC_SWAP_B64: B64 = B64 B64;
        0x42 GLOBAL_ATOMIC_CMPSWAP_B64: B64 = B64 B128;
        0x43 GLOBAL_ATOMIC_ADD_U64: B64 = B64 B64;
        0x44 GLOBAL_ATOMIC_SUB_U64: B64 = B64 B64;
        0x45 GLOBAL_ATOMIC_MIN_I64: B64 = B64 B64;
        0x46 GLOBAL_ATOMIC_MIN_U64: B64 = B64 B64;
        0x47 GLOBAL_ATOMIC_MAX_I64: B64 = B64 B64;
        0x48 GLOBAL_ATOMIC_MAX_U64: B64 = B64 B64;
        0x49 GLOBAL_ATOMIC_AND_B64: B64 = B64 B64;
        0x4a GLOBAL_ATOMIC_OR_B64: B64 = B64 B64;
        0x4b GLOBAL_ATOMIC_XOR_B64: B64 = B64 B64;
        0x4c GLOBAL_ATOMIC_INC_U64: B64 = B64 B64;
        0x4d GLOBAL_ATOMIC_DEC_U64: B64 = B64 B64;
        0x50 GLOBAL_ATOMIC_CMPSWAP_F32: B32 = B64 B64;
        0x51 GLOBAL_ATOMIC_MIN_F32: B32 = B64 B32;
        0x52 GLOBAL_ATOMIC_MAX_F32: B32 = B64 B32;
        0x56 GLOBAL_ATOMIC_ADD_F32: B32 = B64 B32;
    }
    Scratch {
        0x10 SCRATCH_LOAD_U8: B32 = B32;
        0x11 SCRATCH_LOAD_I8: B32 = B32;
        0x12 SCRATCH_LOAD_U16: B32 = B32;
        0x13 SCRATCH_LOAD_I16: B32 = B32;
        0x14 SCRATCH_LOAD_B32: B32 = B32;
        0x15 SCRATCH_LOAD_B64: B64 = B32;
        0x16 SCRATCH_LOAD_B96: B96 = B32;
        0x17 SCRATCH_LOAD_B128: B128 = B32;
        0x18 SCRATCH_STORE_B8: = B32 B32;
        0x19 SCRATCH_STORE_B16: = B32 B32;
        0x1a SCRATCH_STORE_B32: = B32 B32;
        0x1b SCRATCH_STORE_B64: = B32 B64;
        0x1c SCRATCH_STORE_B96: = B32 B96;
        0x1d SCRATCH_STORE_B128: = B32 B128;
        0x1e SCRATCH_LOAD_D16_U8: B32 = B32;
        0x1f SCRATCH_LOAD_D16_I8: B32 = B32;
        0x20 SCRATCH_LOAD_D16_B16: B32 = B32;
        0x21 SCRATCH_LOAD_D16_HI_U8: B32 = B32;
        0x22 SCRATCH_LOAD_D16_HI_I8: B32 = B32;
        0x23 SCRATCH_LOAD_D16_HI_B16: B32 = B32;
        0x24 SCRATCH_STORE_D16_HI_B8: = B32 B32;
        0x25 SCRATCH_STORE_D16_HI_B16: = B32 B32;
    }
}
