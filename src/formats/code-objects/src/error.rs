//! The error type of all readers.

/// A problem of a file, or of a part of it, and its offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset:#x}: {message}")]
pub struct Error {
    /// From the beginning of the bytes that were read.
    pub offset: u64,
    pub message: String,
}

/// An error at an offset, with a formatted message.
macro_rules! error {
    ($at:expr; $($message:tt)+) => {
        $crate::error::Error::new($at, format!($($message)+))
    };
}

impl Error {
    pub fn new(offset: u64, message: impl Into<String>) -> Error {
        Error {
            offset,
            message: message.into(),
        }
    }

    /// Adds to the offset: the bytes that were read begin `by` bytes after the beginning of the caller's bytes.
    pub fn shifted(self, by: u64) -> Error {
        Error {
            offset: self.offset.saturating_add(by),
            ..self
        }
    }
}
