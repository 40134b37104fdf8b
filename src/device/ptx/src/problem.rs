//! What this crate cannot instrument.

/// Why a module or a function is not instrumented.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("line {line}: {what}")]
    Text { line: usize, what: &'static str },
    #[error("the module has no .address_size 64, and only 64-bit code is supported")]
    AddressSize,
    #[error("PTX {0} is not supported: 6.0 and later is")]
    Version(String),
    #[error("it branches to {0}, which it does not define")]
    NoLabel(String),
}

impl Problem {
    /// A problem at a position of the text.
    pub fn at(text: &str, at: usize, what: &'static str) -> Problem {
        let before = &text.as_bytes()[..at.min(text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Problem::Text { line, what }
    }
}
