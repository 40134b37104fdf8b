//! Why a wave cannot continue.

/// Why a wave cannot continue. A dispatch's error adds kernel, program counter and words.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// The model does not execute the instruction or this form of it.
    #[error("instruction not modelled")]
    Unknown,
    /// The decoder rejects the words at the program counter: they are not a valid instruction, or one that it does not
    /// support.
    #[error("not a supported {0} instruction")]
    Illegal(&'static str),
    /// A vector register that the kernel descriptor does not allocate.
    #[error("register v{0} is not allocated by the kernel descriptor")]
    Vgpr(usize),
    /// An AccVGPR that the kernel descriptor does not allocate.
    #[error("register a{0} is not allocated by the kernel descriptor")]
    Agpr(usize),
    /// A scalar register above the last one.
    #[error("register s{0} does not exist")]
    Sgpr(usize),
    /// An access outside of the allocated ranges.
    #[error("{} of {size} bytes at {address:#x}: no {}memory is allocated there",
        if *write { "write" } else { "read" }, if *write { "writable " } else { "" })]
    Memory {
        address: u64,
        size: usize,
        write: bool,
        /// The lane, if it was a vector access. This is the same in the other variants.
        lane: Option<u8>,
    },
    /// An access outside of the lane's private segment.
    #[error(
        "access of {size} bytes at private offset {offset:#x}, but the lane has {limit:#x} bytes"
    )]
    Scratch {
        offset: u64,
        size: usize,
        limit: usize,
        lane: Option<u8>,
    },
    /// An access outside of the workgroup's LDS.
    #[error(
        "access of {size} bytes at LDS offset {offset:#x}, but the workgroup has {limit:#x} bytes"
    )]
    Lds {
        offset: u64,
        size: usize,
        limit: usize,
        lane: Option<u8>,
    },
    /// An atomic access that is not naturally aligned.
    #[error("atomic access of {size} bytes at {address:#x} is not aligned")]
    Alignment {
        address: u64,
        size: usize,
        lane: Option<u8>,
    },
    /// `s_trap`, which `__builtin_trap`, `abort` and a failed `assert` in device code execute.
    #[error("the kernel trapped (s_trap {0}: __builtin_trap, abort or a failed assert)")]
    Trap(u8),
}

impl Fault {
    /// Checks the address of an atomic access of `size` bytes.
    #[inline]
    pub(crate) fn check_alignment(address: u64, size: usize) -> Result<(), Fault> {
        if address.is_multiple_of(size as u64) {
            return Ok(());
        }
        Err(Fault::Alignment {
            address,
            size,
            lane: None,
        })
    }

    /// The same fault, with its lane.
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

    /// The lane that caused it, if it was a vector access.
    pub fn lane(&self) -> Option<u8> {
        use Fault::*;
        match self {
            Memory { lane, .. }
            | Scratch { lane, .. }
            | Lds { lane, .. }
            | Alignment { lane, .. } => *lane,
            Unknown | Illegal(_) | Vgpr(_) | Agpr(_) | Sgpr(_) | Trap(_) => None,
        }
    }
}
