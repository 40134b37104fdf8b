//! The microcode formats.

/// A microcode format (RDNA3 guide, 15.1 to 15.9; MI300 guide, 13.1 to 13.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    /// SOP1, SOP2 and SOPC with floats (gfx12).
    ScalarFloat,
    /// The instructions of MUBUF without operands: invalidations and write-backs of caches.
    Cache,
    Vop1,
    Vop2,
    Vopc,
    /// Also the 64-bit forms of VOP1, VOP2 and VOPC.
    Vop3,
    /// VOP3 with a vector and a scalar destination (`dst2`).
    Vop3Sd,
    Vop3p,
    Vopd,
    /// VOP3P-MAI: matrices and AccVGPRs (gfx9).
    Mai,
    Ds,
    Flat,
    Global,
    Scratch,
    /// Loads and stores with a buffer resource (gfx9). The tables contain the rows of `Cache` in this format.
    Mubuf,
}

impl Encoding {
    pub(super) const COUNT: usize = Encoding::Mubuf as usize + 1;

    /// Whether the instruction is executed once per active lane.
    #[inline]
    pub const fn is_vector(self) -> bool {
        self as u8 > Encoding::Cache as u8
    }
}
