//! The rows of the tables: the kinds of operands, and the properties of an operation.

use super::super::encoding::Encoding;
use super::super::op::Op;

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
    /// Two packed 32-bit values, in two registers.
    PKF32,
    PKB32,
    /// Two packed 8-bit floats in the half of a register that OP_SEL selects.
    PKF8,
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
    /// An AccVGPR.
    A32,
    /// A VGPR or an AccVGPR, or several.
    AV32,
    AV64,
    AV128,
    AV256,
    AV512,
    AV1024,
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
    GPRIDX,
}

impl Kind {
    /// The width of a register operand in a wave of `lanes` lanes; 0 for immediates.
    pub const fn bits(self, lanes: usize) -> usize {
        use Kind::*;
        match self {
            B16 | F16 | BF16 | I16 | U16 | V16 | K16 => 16,
            B32 | F32 | I32 | U32 | PKF16 | PKBF16 | PKI16 | PKU16 | S32 | LANE | R32 | NULL
            | V32 | A32 | AV32 | MIX | K32 | PKF8 => 32,
            B64 | F64 | I64 | U64 | R64 | V64 | AV64 | PKF32 | PKB32 => 64,
            B96 => 96,
            B128 | V128 | AV128 => 128,
            B256 | V256 | AV256 => 256,
            B512 | AV512 => 512,
            AV1024 => 1024,
            ACC => 8192 / lanes,
            MASK | EXEC => lanes,
            NONE | IMM | DEC | HEX | LABEL | HWREG | MSG | WAITCNT | DELAY | DEPCTR | EVENT
            | GPRIDX => 0,
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
        matches!(self, F16 | BF16 | F32 | F64 | PKF16 | PKBF16 | PKF32 | MIX)
    }
    /// Whether the operand is in SIMM16.
    pub const fn is_immediate(self) -> bool {
        use Kind::*;
        matches!(
            self,
            IMM | DEC | HEX | LABEL | HWREG | MSG | WAITCNT | DELAY | DEPCTR | EVENT | GPRIDX
        )
    }
}

/// Properties of a row that do not follow from its operand kinds. The output modifiers of a row without `PLAIN`, `CLAMP` and
/// `OMOD` follow from the kinds: OMOD and CLAMP for a float result, CLAMP for a comparison of floats and in VOP3P.
pub mod flag {
    /// Neither CLAMP nor OMOD.
    pub const PLAIN: u16 = 1;
    pub const CLAMP: u16 = 1 << 1;
    pub const OMOD: u16 = 1 << 2;
    /// No VOP3 form.
    pub const NO_E64: u16 = 1 << 3;
    /// No DPP, although all operands have less than 64 bits.
    pub const NO_DPP: u16 = 1 << 4;
    /// DPP in VOP3P or with 64-bit operands, where most operations do not have it.
    pub const DPP: u16 = 1 << 9;
    /// SDWA although an operand has 64 bits.
    pub const SDWA: u16 = 1 << 10;
    /// No SDWA, although all operands have less than 64 bits.
    pub const NO_SDWA: u16 = 1 << 11;
    /// VOP3P: has OP_SEL and OP_SEL_HI although no source is packed. VOP3 of gfx9: has OP_SEL.
    pub const OP_SEL: u16 = 1 << 5;
    /// DS: OFFSET0 and OFFSET1 are two offsets, not one 16-bit offset.
    pub const TWO_OFFSETS: u16 = 1 << 6;
    /// DS: only with the GDS bit.
    pub const GDS: u16 = 1 << 7;
    /// DS: only without the GDS bit.
    pub const LDS: u16 = 1 << 8;
    /// GLOBAL and SCRATCH: loads to LDS.
    pub const TO_LDS: u16 = 1 << 12;
}

/// A row of the tables.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    pub op: Op,
    /// The architecture's mnemonic in upper case without encoding suffix.
    pub name: &'static str,
    /// The format of the table that contains the row.
    pub format: Encoding,
    pub code: u16,
    /// VDST or SDST, then SDST of VOP3SD.
    pub dst: [Kind; 2],
    pub src: [Kind; 3],
    pub(super) flags: u16,
}

impl Spec {
    pub const fn has(&self, flag: u16) -> bool {
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
        if self.has(flag::DPP) {
            return true;
        }
        self.format != Encoding::Vop3p
            && !self.has(flag::NO_DPP)
            && !wide(&self.dst)
            && !wide(&self.src)
    }
    /// Whether SDWA can sign-extend source `i`: not a float, and not the 8-bit floats of a conversion.
    pub fn has_sext(&self, i: usize) -> bool {
        !self.src[i].is_float() && !self.converts_8_bit_floats()
    }
    /// Whether it converts 8-bit floats to f32. Its SDWA has neither DST_SEL nor DST_UNUSED.
    pub fn converts_8_bit_floats(&self) -> bool {
        matches!(
            self.op,
            Op::V_CVT_F32_FP8 | Op::V_CVT_F32_BF8 | Op::V_CVT_PK_F32_FP8 | Op::V_CVT_PK_F32_BF8
        )
    }
    /// Whether VOP1, VOP2 or VOPC of gfx9 can have SDWA.
    pub fn has_sdwa(&self) -> bool {
        let wide = |kinds: &[Kind]| {
            kinds
                .iter()
                .any(|&kind| kind != Kind::MASK && kind.bits(32) > 32)
        };
        let narrow = !wide(&self.dst) && !wide(&self.src);
        self.has(flag::SDWA) || narrow && !self.has(flag::NO_SDWA)
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
        self.has(flag::OP_SEL)
            || self.format == Encoding::Vop3p
                && matches!(
                    self.src[0],
                    PKF16 | PKBF16 | PKI16 | PKU16 | PKF32 | PKB32 | MIX
                )
    }
    /// Whether an instruction of gfx9 with a 16-bit result keeps the other half of the destination. (LLVM's
    /// `zeroesHigh16BitsOfDest` lists those that do not.)
    pub fn keeps_other_half(&self) -> bool {
        self.format == Encoding::Vop3p || self.has(flag::OP_SEL)
    }
    /// One bit per source that the operation has.
    pub fn present_sources(&self) -> u8 {
        let bit = |i: usize| u8::from(self.src[i] != Kind::NONE) << i;
        bit(0) | bit(1) | bit(2)
    }
}

/// The kinds, padded with NONE.
pub const fn padded<const N: usize>(kinds: &[Kind]) -> [Kind; N] {
    let mut out = [Kind::NONE; N];
    let mut i = 0;
    while i < kinds.len() {
        out[i] = kinds[i];
        i += 1;
    }
    out
}

/// Defines a constant with the rows of one or several architectures.
macro_rules! rows {
    ($table:ident $($format:ident { $(
        $code:literal $name:ident $(as $mnemonic:ident)? : $($dst:ident)* = $($src:ident)* $(| $($flag:ident)+)? ;
    )* })*) => {
        pub(super) const $table: &[Spec] = &[$($(Spec {
            op: Op::$name,
            name: rows!(@name $name $($mnemonic)?),
            format: Encoding::$format,
            code: $code,
            dst: padded(&[$(Kind::$dst),*]),
            src: padded(&[$(Kind::$src),*]),
            flags: 0 $($(| flag::$flag)+)?,
        },)*)*];
    };
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $mnemonic:ident) => { stringify!($mnemonic) };
}
pub(super) use rows;
