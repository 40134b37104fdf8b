//! The error type of all readers.

/// What is wrong with a file, or a part of it, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset:#x}: {message}")]
pub struct Error {
    /// From the beginning of what was read, in bytes.
    pub offset: u64,
    pub message: String,
}

impl Error {
    pub fn new(offset: u64, message: impl Into<String>) -> Error {
        Error {
            offset,
            message: message.into(),
        }
    }

    /// Adds to the offset: what was read begins `by` bytes after the beginning of the caller's bytes.
    pub fn shifted(self, by: u64) -> Error {
        Error {
            offset: self.offset.saturating_add(by),
            ..self
        }
    }
}
