//! The state of one wave: everything that an instruction reads and writes, except memory.

use crate::isa::Operand;

/// One vector register: a value per lane. A wave32 uses the first 32.
pub type VReg = [u32; 64];

/// The registers of one wave.
pub struct Wave {
    /// GPU virtual address of the next instruction.
    pub pc: u64,
    /// The wave size: 32 or 64.
    pub lanes: usize,
    /// Scalar registers by operand code: 0-105 SGPRs (gfx9: 102-103 FLAT_SCRATCH, 104-105 XNACK_MASK), 106-107 VCC, 108-123 TTMPs, 124 NULL (always 0),
    /// 125 M0, 126-127 EXEC.
    pub sgpr: [u32; 128],
    pub scc: bool,
    /// As many vector registers as the kernel descriptor allocates.
    pub vgpr: Vec<VReg>,
    /// The AccVGPRs of gfx9 that the kernel descriptor allocates.
    pub agpr: Vec<VReg>,
    /// MODE (guide, 3.3 "MODE register"): bits 0-3 rounding, 4-7 denormals, 8 DX10_CLAMP, 9 IEEE, 27 GPR_IDX_EN. Set by the kernel
    /// descriptor, `s_setreg`, `s_round_mode` and `s_denorm_mode`.
    pub mode: u32,
    /// HW_ID1 of gfx11, HW_ID of gfx9: which SIMD executes the wave (guides, "Hardware registers").
    pub hw_id: u32,
    /// XCC_ID of gfx942: which accelerator complex die executes the wave.
    pub xcc_id: u32,
    /// The wave waits at a barrier of GWS until there were more releases than this.
    pub gws_wait: Option<u64>,
    /// How many barriers of the workgroup the wave has signalled, and how many it has passed or waits for.
    pub barriers_signalled: u32,
    pub barriers_passed: u32,
}

impl Wave {
    /// The active lanes. A wave32 ignores EXEC_HI.
    #[inline]
    pub fn exec(&self) -> u64 {
        self.mask(Operand::EXEC_LO)
    }
    /// Ignores the bits from `lanes` up.
    #[inline]
    pub fn set_exec(&mut self, mask: u64) {
        self.set_mask(Operand::EXEC_LO, mask);
    }
    /// The number of active lanes.
    #[inline]
    pub fn active_lanes(&self) -> u64 {
        match self.exec() {
            // The most frequent mask. Counting takes a dozen instructions on baseline x86-64.
            0xffff_ffff => 32,
            mask => mask.count_ones().into(),
        }
    }
    #[inline]
    pub fn vcc(&self) -> u64 {
        self.mask(Operand::VCC_LO)
    }
    /// The value of a pair of scalar registers; 0 for NULL.
    #[inline]
    pub fn sgpr64(&self, reg: Operand) -> u64 {
        if reg == Operand::NULL {
            return 0;
        }
        let n = reg.0 as usize;
        u64::from(self.sgpr[n]) | u64::from(self.sgpr[n + 1]) << 32
    }
    /// Writes a pair of scalar registers. A write to NULL is ignored.
    #[inline]
    pub fn set_sgpr64(&mut self, reg: Operand, value: u64) {
        if reg == Operand::NULL {
            return;
        }
        let n = reg.0 as usize;
        self.sgpr[n] = value as u32;
        self.sgpr[n + 1] = (value >> 32) as u32;
    }
    /// A lane mask: one scalar register in a wave32, a pair in a wave64.
    #[inline]
    pub fn mask(&self, reg: Operand) -> u64 {
        if self.lanes == 32 {
            if reg == Operand::NULL {
                0
            } else {
                u64::from(self.sgpr[reg.0 as usize])
            }
        } else {
            self.sgpr64(reg)
        }
    }
    #[inline]
    pub fn set_mask(&mut self, reg: Operand, value: u64) {
        if reg == Operand::NULL {
            return;
        }
        if self.lanes == 32 {
            self.sgpr[reg.0 as usize] = value as u32;
        } else {
            self.set_sgpr64(reg, value);
        }
    }
}
