//! Decoded instructions.

use super::architecture::Architecture;
use super::encoding::Encoding;
use super::operand::Operand;
use super::tables::{Op, Spec};

/// The permutation of the lanes of source 0 (guide, "DPP").
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
    /// DPP8: eight 3-bit selectors, the first in the lowest bits; fetch inactive.
    Dpp8 {
        sel: u32,
        fi: bool,
    },
}

/// A part of a 32-bit register (SDWA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Byte(u8),
    Word(u8),
    Dword,
}

/// The effect of SDWA on the other bits of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    Pad,
    SignExtend,
    Preserve,
}

/// Sub-dword addressing of gfx9: parts of the sources and of the destination (MI300 guide, "SDWA").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdwa {
    pub dst: Part,
    pub unused: Unused,
    pub src: [Part; 2],
    /// Whether the source's part is sign-extended.
    pub sext: [bool; 2],
}

/// The Y half of a VOPD instruction. The X half is in the [`Inst`] itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dual {
    pub op: Op,
    pub dst: Operand,
    /// As in [`Inst::src`]: includes the literal of `v_dual_fmaak` and `v_dual_fmamk`, and VCC of `v_dual_cndmask`.
    pub src: [Operand; 3],
}

/// A decoded instruction.
///
/// `enc` determines which fields are used. The others are zero, false or [`Operand::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst {
    /// The operation: its mnemonic without encoding suffix (`V_ADD_F32` for e32, e64 and dpp).
    pub op: Op,
    pub enc: Encoding,
    pub arch: Architecture,
    /// The operation's row in the tables of the architecture.
    pub spec: &'static Spec,
    /// Bytes: 4, 8 or 12.
    pub len: u8,
    /// SDST, VDST, or SDATA of a load. NONE for an atomic without GLC, VCC for `v_cmp_*_e32`, EXEC for `v_cmpx`. An SDST
    /// field that is only read (`s_cmpk`, `s_setreg_b32`, `s_waitcnt_vscnt`) is in `src[0]` instead.
    pub dst: Operand,
    /// SDST of VOP3SD; VCC for the VOP2 forms that write it.
    pub dst2: Operand,
    /// In the assembler's order of sources. SMEM: sbase, soffset. DS: addr, data0, data1.
    /// FLAT, GLOBAL, SCRATCH: addr, data, saddr (NONE if the form does not have it). MUBUF: vaddr, data, soffset; the resource is
    /// in `dst2`.
    /// Includes VCC or the literal K that a VOP2 form reads implicitly.
    pub src: [Operand; 3],
    /// The 32 bits that follow the instruction, if an operand is [`Operand::LITERAL`]. The operation determines how they
    /// are extended to 64 bits (they are the high half of a 64-bit float).
    pub literal: u32,
    /// NEG, one bit per source; NEG_LO for VOP3P. Includes the source modifiers of DPP16.
    pub neg: u8,
    /// ABS, one bit per source; NEG_HI for VOP3P. Includes the source modifiers of DPP16.
    pub abs: u8,
    /// OP_SEL; bit 3 is the destination. The decoder sets the same bits for true16 operands in VOP1, VOP2 and VOPC, where
    /// the field value n from 128 up is the high half of VGPR n-128. The operand is then VGPR n-128.
    pub opsel: u8,
    /// OP_SEL_HI of VOP3P.
    pub opsel_hi: u8,
    /// CM / CLAMP.
    pub clamp: bool,
    /// CBSZ, ABID (4 bits) and BLGP of MAI.
    pub broadcast: [u8; 3],
    /// OMOD: 0 none, 1 times 2, 2 times 4, 3 divided by 2.
    pub omod: u8,
    /// SIMM16 of SOPK and SOPP and the offset of SMEM and FLAT, sign-extended. For DS, offset0, or the 16-bit offset of the
    /// forms with one offset.
    pub imm: i32,
    /// DS offset1 of the two-address forms.
    pub imm2: u8,
    /// GLC; SC0 of gfx942; the bit of TH of gfx12 with which an atomic returns the old value.
    pub glc: bool,
    /// SLC; NT of gfx942.
    pub slc: bool,
    /// SCOPE (two bits) and TH (three bits) of gfx12.
    pub cache: u8,
    /// DLC of gfx11, SCC of gfx90a, SC1 of gfx942.
    pub dlc: bool,
    /// DS: the GDS bit. SCRATCH: SVE, whether the VGPR address is used. MUBUF: OFFEN, the same.
    pub flag: bool,
    pub dpp: Dpp,
    pub sdwa: Option<Sdwa>,
    pub dual: Option<Dual>,
}

/// An instruction without operands and with length 0.
pub(super) fn blank(arch: Architecture, spec: &'static Spec, enc: Encoding) -> Inst {
    Inst {
        op: spec.op,
        enc,
        arch,
        spec,
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
        broadcast: [0; 3],
        omod: 0,
        imm: 0,
        imm2: 0,
        glc: false,
        slc: false,
        cache: 0,
        dlc: false,
        flag: false,
        dpp: Dpp::None,
        sdwa: None,
        dual: None,
    }
}

/// An instruction of the first architecture that has the operation, without operands.
#[cfg(test)]
pub(crate) fn example(op: Op, enc: Encoding) -> Inst {
    let with = |arch: &Architecture| Some((*arch, arch.row(op)?));
    let (arch, spec) = Architecture::ALL
        .iter()
        .find_map(with)
        .expect("every operation has a row");
    blank(arch, spec, enc)
}
