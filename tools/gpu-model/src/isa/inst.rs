//! Decoded instructions.

use super::encoding::Encoding;
use super::operand::Operand;
use super::tables::Op;

/// How lanes are permuted on the way to source 0 (guide, "DPP").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dpp {
    None,
    /// DPP16: control, row mask, bank mask, bound control (`true`: an invalid lane reads 0), fetch inactive.
    Dpp16 {
        ctrl: u16,
        row_mask: u8,
        bank_mask: u8,
        bound_ctrl: bool,
        fi: bool,
    },
    /// DPP8: eight 3-bit selectors, first in the lowest bits; fetch inactive.
    Dpp8 {
        sel: u32,
        fi: bool,
    },
}

/// The Y half of a VOPD instruction. The X half is in the [`Inst`] itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dual {
    pub op: Op,
    pub dst: Operand,
    /// As [`Inst::src`]: `v_dual_fmaak` and `v_dual_fmamk` have the literal, `v_dual_cndmask` VCC in its place.
    pub src: [Operand; 3],
}

/// A decoded instruction.
///
/// Which fields count depends on `enc`; the others are zero, false or [`Operand::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst {
    /// The operation, by its mnemonic without encoding suffix (`V_ADD_F32` for e32, e64, dpp alike).
    pub op: Op,
    pub enc: Encoding,
    /// Bytes: 4, 8 or 12.
    pub len: u8,
    /// SDST, VDST, SDATA of a load, VDST of DS and FLAT (NONE for an atomic without GLC). `v_cmp_*_e32` has VCC
    /// here, `v_cmpx` EXEC. An SDST field that is only read (`s_cmpk`, `s_setreg_b32`, `s_waitcnt_vscnt`) is in
    /// `src[0]` instead.
    pub dst: Operand,
    /// SDST of VOP3SD, and VCC for the VOP2 forms that write it.
    pub dst2: Operand,
    /// In the assembler's order of sources. SMEM: sbase, soffset. DS: addr, data0, data1.
    /// FLAT, GLOBAL, SCRATCH: addr, data, saddr (NONE where the form has none).
    /// VOP2 forms that read VCC or a literal K implicitly have it here too, as the third (or, for
    /// `v_fmamk`, in the assembler's place).
    pub src: [Operand; 3],
    /// The 32 bits behind the instruction where an operand is [`Operand::LITERAL`]. How it widens to 64
    /// bits is the operation's affair (a 64-bit float takes it as its high half).
    pub literal: u32,
    /// NEG (bit per source); for VOP3P NEG_LO. For DPP16 the source modifiers are folded in here.
    pub neg: u8,
    /// ABS (bit per source). For VOP3P NEG_HI.
    pub abs: u8,
    /// OP_SEL, bit 3 the destination. For true16 operands in VOP1/2/C the decoder sets the same bits
    /// (VGPR number 128 and up means the high half of VGPR n-128) and the operand names n-128.
    pub opsel: u8,
    /// OP_SEL_HI of VOP3P.
    pub opsel_hi: u8,
    /// CM / CLAMP.
    pub clamp: bool,
    /// OMOD: 0 none, 1 times 2, 2 times 4, 3 divided by 2.
    pub omod: u8,
    /// SIMM16 sign-extended (SOPK, SOPP), the SMEM and FLAT offset sign-extended, DS offset0 (for the
    /// forms with one 16-bit offset, all of it).
    pub imm: i32,
    /// DS offset1 of the two-address forms.
    pub imm2: u8,
    pub glc: bool,
    pub slc: bool,
    pub dlc: bool,
    /// DS: the GDS bit. SCRATCH: SVE, whether the VGPR address counts.
    pub flag: bool,
    pub dpp: Dpp,
    pub dual: Option<Dual>,
}

/// An instruction without operands, of no length yet.
pub(crate) fn blank(op: Op, enc: Encoding) -> Inst {
    Inst {
        op,
        enc,
        len: 0,
        dst: Operand::NONE,
        dst2: Operand::NONE,
        src: [Operand::NONE; 3],
        literal: 0,
        neg: 0,
        abs: 0,
        opsel: 0,
        opsel_hi: 0,
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
