//! Comma-separated values.

/// The text in quotes. Quotes within it are doubled.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
