//! The kinds of operands, and the flags of rows.

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
    /// A float in a scalar register or constant, in an operation of VOP3 without vectors.
    SF16,
    SF32,
    /// The number of a barrier: a constant, or M0.
    BARRIER,
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
            B16 | F16 | BF16 | I16 | U16 | V16 | K16 | SF16 => 16,
            B32 | F32 | I32 | U32 | PKF16 | PKBF16 | PKI16 | PKU16 | S32 | SF32 | LANE
            | BARRIER | R32 | NULL | V32 | A32 | AV32 | MIX | K32 | PKF8 => 32,
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
        matches!(
            self,
            F16 | BF16 | F32 | F64 | PKF16 | PKBF16 | PKF32 | MIX | SF16 | SF32
        )
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
