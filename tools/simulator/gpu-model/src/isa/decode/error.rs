//! Why words do not decode to an instruction.

/// Why words do not decode to an instruction.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("not a supported instruction")]
    Unknown,
    #[error("the instruction is truncated")]
    Short,
}
