//! The microcode formats.

/// A microcode format (guide, 15.1 to 15.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    /// Only the cache invalidations: kernels that clang compiles do not use buffers.
    Mubuf,
    Vop1,
    Vop2,
    Vopc,
    /// Also the 64-bit forms of VOP1, VOP2 and VOPC.
    Vop3,
    /// VOP3 with a vector and a scalar destination (`dst2`).
    Vop3Sd,
    Vop3p,
    Vopd,
    Ds,
    Flat,
    Global,
    Scratch,
}
