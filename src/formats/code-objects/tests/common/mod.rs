//! What several tests use.

/// The bytes with a number at an offset.
pub fn with(mut bytes: Vec<u8>, at: usize, value: u64) -> Vec<u8> {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// Asserts that a text has a pattern, in which `*` stands for any text.
#[track_caller]
pub fn assert_pattern(text: &str, pattern: &str) {
    let mut parts = pattern.split('*');
    let mut rest = text.strip_prefix(parts.next().unwrap_or_default());
    for part in parts {
        rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
    }
    let end = pattern.rsplit('*').next().unwrap_or_default();
    assert!(
        rest.is_some() && text.ends_with(end),
        "{text} has not {pattern}"
    );
}
