//! An operation of an architecture, and its properties.

use super::super::architecture::Architecture;
use super::super::encoding::Encoding;
use super::kind::{Kind, flag};
use super::rows::{Op, Row};

/// An operation of an architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    pub op: Op,
    /// The architecture's mnemonic in upper case without encoding suffix.
    pub name: &'static str,
    /// The format of the row.
    pub format: Encoding,
    pub code: u16,
    /// VDST or SDST, then SDST of VOP3SD.
    pub dst: [Kind; 2],
    pub src: [Kind; 3],
    flags: u16,
}

impl Spec {
    /// The row's operation `i` in an architecture, if the architecture has it.
    pub(super) fn new(row: &Row, i: usize, arch: Architecture) -> Option<Spec> {
        let code = row.codes[arch as usize]? + i as u16;
        // gfx12 has no comparisons that are always false or always true.
        let constant = ["V_CMP_F_", "V_CMP_T_", "V_CMPX_F_", "V_CMPX_T_"];
        if arch == Architecture::Gfx12 && constant.iter().any(|name| row.names[i].starts_with(name))
        {
            return None;
        }
        let other = row.renamed.iter().find(|(of, _)| of.includes(arch));
        let flags = row.flags_of.iter().filter(|(of, _)| of.includes(arch));
        let mut dst = row.dst;
        // `v_cmpx` of gfx9 writes a lane mask as well as EXEC.
        if arch.is_gfx9() && matches!(dst[0], Kind::EXEC) {
            dst[0] = Kind::MASK;
        }
        Some(Spec {
            op: row.ops[i],
            name: other.map_or(row.names, |(_, names)| names)[i],
            format: row.format,
            code,
            dst,
            src: row.src,
            flags: flags.fold(row.flags, |all, (_, flags)| all | flags),
        })
    }

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
    /// Whether an operand has more than 32 bits.
    pub fn has_wide_operand(&self) -> bool {
        let mut kinds = self.dst.iter().chain(&self.src);
        kinds.any(|&kind| kind != Kind::MASK && kind.bits(32) > 32)
    }
    /// Whether source 0 can have DPP.
    pub fn has_dpp(&self) -> bool {
        if self.has(flag::DPP) {
            return true;
        }
        self.format != Encoding::Vop3p && !self.has(flag::NO_DPP) && !self.has_wide_operand()
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
        self.has(flag::SDWA) || !self.has_wide_operand() && !self.has(flag::NO_SDWA)
    }
    /// Whether OP_SEL is FI and BOUND_CTRL.
    pub fn is_permlane16(&self) -> bool {
        matches!(
            self.op,
            Op::V_PERMLANE16_B32
                | Op::V_PERMLANEX16_B32
                | Op::V_PERMLANE16_VAR_B32
                | Op::V_PERMLANEX16_VAR_B32
        )
    }
    /// Whether it is an atomic operation of FLAT or GLOBAL.
    pub fn is_atomic(&self) -> bool {
        let format = matches!(self.format, Encoding::Flat | Encoding::Global);
        format && self.dst[0] != Kind::NONE && self.src[1] != Kind::NONE
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
