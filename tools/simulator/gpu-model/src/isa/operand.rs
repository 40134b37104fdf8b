//! Operands by their codes.

/// An operand by the hardware's 9-bit source code (guide, table "Source operands"):
/// 0-105 SGPRs, 106-107 VCC, 108-123 TTMPs, 124 NULL, 125 M0, 126-127 EXEC, 128-208 and 240-248 inline
/// constants, 235-238 apertures, 251 VCCZ, 252 EXECZ, 253 SCC, 255 the literal, 256-511 VGPRs, 512-767 AccVGPRs.
///
/// The decoder converts seven- and eight-bit fields to this code (it adds 256 to a VGPR field), so the meaning of an
/// `Operand` does not depend on its field. The codes are the codes of gfx11; the decoder converts M0 of gfx9 (124). In gfx9,
/// 102-103 are FLAT_SCRATCH and 104-105 XNACK_MASK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand(pub u16);

impl Operand {
    /// No operand.
    pub const NONE: Operand = Operand(u16::MAX);
    pub const FLAT_SCRATCH: Operand = Operand(102);
    pub const VCC_LO: Operand = Operand(106);
    pub const VCC_HI: Operand = Operand(107);
    pub const NULL: Operand = Operand(124);
    pub const M0: Operand = Operand(125);
    pub const EXEC_LO: Operand = Operand(126);
    pub const EXEC_HI: Operand = Operand(127);
    pub const SCC: Operand = Operand(253);
    pub const LITERAL: Operand = Operand(255);

    pub const fn vgpr(n: u16) -> Operand {
        Operand(256 + n)
    }
    pub const fn agpr(n: u16) -> Operand {
        Operand(512 + n)
    }
    /// The number of the AccVGPR, if it is an AccVGPR.
    pub const fn as_agpr(self) -> Option<usize> {
        if self.0 >= 512 && self.0 < 768 {
            Some(self.0 as usize - 512)
        } else {
            None
        }
    }
    /// The number of the VGPR, if it is a VGPR.
    pub const fn as_vgpr(self) -> Option<usize> {
        if self.0 >= 256 && self.0 < 512 {
            Some(self.0 as usize - 256)
        } else {
            None
        }
    }
    /// The number of the scalar register, if it is one, including VCC, TTMPs, M0 and EXEC, but not NULL.
    pub const fn as_sgpr(self) -> Option<usize> {
        if self.0 < 128 && self.0 != 124 {
            Some(self.0 as usize)
        } else {
            None
        }
    }
}
