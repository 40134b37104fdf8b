//! Why a wave cannot continue.

/// Why a wave cannot go on. Whoever runs the wave adds kernel, program counter and words.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// The instruction, or this form of it, is not modelled.
    #[error("instruction not modelled")]
    Unknown,
    /// The words at the program counter are no instruction.
    #[error("no instruction of gfx1100")]
    Illegal,
    /// A register beyond those that the kernel descriptor granted.
    #[error("register v{0} beyond those the kernel was granted")]
    Vgpr(usize),
    /// A scalar register beyond s105.
    #[error("register s{0}, which does not exist")]
    Sgpr(usize),
    /// An access outside what was allocated.
    #[error("{} of {size} bytes at {address:#x}, where no {}memory is allocated",
        if *write { "write" } else { "read" }, if *write { "writable " } else { "" })]
    Memory {
        address: u64,
        size: usize,
        write: bool,
        /// The lane of a vector access; here and in the others.
        lane: Option<u8>,
    },
    /// An access outside the lane's private segment.
    #[error(
        "access of {size} bytes at private offset {offset:#x}, outside the {limit:#x} bytes of the lane"
    )]
    Scratch {
        offset: u64,
        size: usize,
        limit: usize,
        lane: Option<u8>,
    },
    /// An access outside the workgroup's LDS.
    #[error(
        "access of {size} bytes at LDS offset {offset:#x}, outside the {limit:#x} bytes of the workgroup"
    )]
    Lds {
        offset: u64,
        size: usize,
        limit: usize,
        lane: Option<u8>,
    },
    /// An atomic access must be naturally aligned.
    #[error("atomic access of {size} bytes at {address:#x}, which is not aligned")]
    Alignment {
        address: u64,
        size: usize,
        lane: Option<u8>,
    },
    /// `s_trap`: how `__builtin_trap`, `abort` and a failed `assert` of device code end.
    #[error("the kernel trapped (s_trap {0}: __builtin_trap, abort or a failed assert)")]
    Trap(u8),
}

impl Fault {
    /// The same, of this lane.
    pub(crate) fn in_lane(mut self, number: usize) -> Fault {
        use Fault::*;
        if let Memory { lane, .. }
        | Scratch { lane, .. }
        | Lds { lane, .. }
        | Alignment { lane, .. } = &mut self
        {
            *lane = Some(number as u8);
        }
        self
    }

    /// The lane whose access it was.
    pub fn lane(&self) -> Option<u8> {
        use Fault::*;
        match self {
            Memory { lane, .. }
            | Scratch { lane, .. }
            | Lds { lane, .. }
            | Alignment { lane, .. } => *lane,
            Unknown | Illegal | Vgpr(_) | Sgpr(_) | Trap(_) => None,
        }
    }
}
