//! The tokens of PTX. Comments and white space separate them.

use crate::problem::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// An identifier, a directive, an instruction with its modifiers, a register or a number.
    Word(&'a str),
    /// The content of a string, as it is in the text.
    Text(&'a str),
    Sign(u8),
}

/// A token and its position.
pub type Located<'a> = (usize, Token<'a>);

/// Reads all tokens.
///
/// # Errors
/// A comment or a string does not end, or a character is outside of both that PTX does not have.
pub fn read(text: &str) -> Result<Vec<Located<'_>>, Problem> {
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest
                .find("*/")
                .ok_or_else(|| Problem::at(text, at, "a comment does not end"))?
                + 2;
        } else if byte == b'"' {
            let end = end_of_string(rest.as_bytes());
            let end = end.ok_or_else(|| Problem::at(text, at, "a string does not end"))?;
            found.push((at, Token::Text(&rest[1..end])));
            at += end + 1;
        } else if is_word(byte) {
            let length = word(rest.as_bytes());
            found.push((at, Token::Word(&rest[..length])));
            at += length;
        } else if byte.is_ascii_graphic() {
            found.push((at, Token::Sign(byte)));
            at += 1;
        } else {
            return Err(Problem::at(text, at, "a character that PTX does not have"));
        }
    }
    Ok(found)
}

/// The position of the quotation mark that ends a string.
fn end_of_string(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at),
            _ => at += 1,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

/// The length of a word. Two colons are part of a modifier (`.shared::cluster`), one ends a label.
fn word(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(&byte) if is_word(byte) => at += 1,
            Some(b':') if bytes.get(at + 1) == Some(&b':') => at += 2,
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Token::{Sign, Text, Word};

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let found = read(text).unwrap();
        for (at, token) in &found {
            if let Word(word) = token {
                assert!(text[*at..].starts_with(word));
            }
        }
        found.into_iter().map(|(_, token)| token).collect()
    }

    #[test]
    fn words_keep_their_modifiers() {
        assert_eq!(
            tokens("cp.async.bulk.shared::cluster [%r1+4]; $L__BB0_1:"),
            [
                Word("cp.async.bulk.shared::cluster"),
                Sign(b'['),
                Word("%r1"),
                Sign(b'+'),
                Word("4"),
                Sign(b']'),
                Sign(b';'),
                Word("$L__BB0_1"),
                Sign(b':'),
            ]
        );
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        assert_eq!(
            tokens("ret /* ; { \n */; // }\n.file 1 \"a\\\"; {.cu\" // ü"),
            [
                Word("ret"),
                Sign(b';'),
                Word(".file"),
                Word("1"),
                Text("a\\\"; {.cu"),
            ]
        );
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        for (text, line, what) in [
            ("\n/* ", 2, "a comment does not end"),
            ("\"a\\\"", 1, "a string does not end"),
            ("ret;\n\nü", 3, "a character that PTX does not have"),
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!(problem, Problem::Text { line, what });
        }
    }
}
