//! Instruction words to [`Inst`]. (Placeholder until the decoder lands.)
use super::Inst;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("no such instruction")]
    Unknown,
    #[error("the instruction is cut off")]
    Short,
}

/// Decodes the instruction at the start of `words`.
pub fn decode(words: &[u32]) -> Result<Inst, DecodeError> {
    let word = words.first().ok_or(DecodeError::Short)?;
    super::tables::lookup(super::Encoding::Sop1, word >> 8 & 0xff).ok_or(DecodeError::Unknown)?;
    Err(DecodeError::Unknown)
}
