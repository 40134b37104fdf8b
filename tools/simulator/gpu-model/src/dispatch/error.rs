//! Errors of a dispatch.

use std::fmt;

use crate::fault::Fault;

/// Why a dispatch did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller requested a stop.
    #[error("stopped")]
    Stopped,
    /// The packet or the kernel descriptor is invalid, or requests something that the model does not support.
    #[error("kernel {kernel}: {reason}")]
    Packet { kernel: String, reason: String },
    /// A wave cannot continue.
    #[error(transparent)]
    Fault(Box<FaultReport>),
}

/// A fault, and where it happened.
#[derive(Debug)]
pub struct FaultReport {
    /// The kernel's name, or the address of its descriptor if the code object in memory has no symbol for it.
    pub kernel: String,
    pub entry: u64,
    pub pc: u64,
    /// The words of the instruction, as far as they can be read.
    pub words: Vec<u32>,
    /// The instruction in assembly, if the words decode to one.
    pub text: Option<String>,
    pub fault: Fault,
    pub workgroup: [u32; 3],
    pub wave: usize,
    pub exec: u64,
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, distance) = if self.pc >= self.entry {
            ('+', self.pc - self.entry)
        } else {
            ('-', self.entry - self.pc)
        };
        write!(
            f,
            "kernel {}: {}\n  at {:#x} (the kernel's entry {sign} {distance:#x}):",
            self.kernel, self.fault, self.pc
        )?;
        for word in &self.words {
            write!(f, " {word:08x}")?;
        }
        if let Some(text) = &self.text {
            write!(f, "  {text}")?;
        }
        let [x, y, z] = self.workgroup;
        write!(f, "\n  workgroup ({x}, {y}, {z}), wave {}", self.wave)?;
        if let Some(lane) = self.fault.lane() {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ", exec {:#x}", self.exec)
    }
}

impl std::error::Error for FaultReport {}
