//! File name patterns. They expand as in LLVM's host runtime ("Source-based Code Coverage", "Running the instrumented
//! program"), so that the device profiles are next to the host profile.

use crate::support::environment::Values;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// LLVM's file name if there is no pattern, or if the pattern is invalid.
pub const DEFAULT: &str = "default.profraw";

/// An expanded file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub path: PathBuf,
    /// The pattern has %m or %Nm: several processes add their counts to the file.
    pub merge: bool,
    /// A warning if the name differs from the pattern's meaning.
    pub warning: Option<&'static str>,
}

const CONTINUOUS: &str =
    "%c (continuous mode) in LLVM_PROFILE_FILE is ignored: device counters are not in host memory";
const INVALID: &str = "invalid pattern for profile names: %m or %c occurs twice, or TMPDIR is not set for %t; using default.profraw, as LLVM does";

/// Identifies a code object in a file name.
#[derive(Clone, Copy)]
pub struct ObjectId<'a> {
    /// For %m: code objects with different functions get different files.
    pub fingerprint: u64,
    /// For %b. If the code object has no build id, the fingerprint is used.
    pub build_id: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Text(&'a [u8]),
    /// %p
    Process,
    /// %h
    Host,
    /// %t: TMPDIR and a slash.
    Temporary,
    /// %b
    BuildId,
    /// %m or %Nm: the signature, and the number of a file in a pool of this size.
    MergePool(u32),
    /// %c
    Continuous,
    /// A percent sign that does not start a specifier, and the character after it, if any.
    Unknown,
}

pub fn tokenize(pattern: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let text = rest.iter().position(|&byte| byte == b'%');
        let (before, after) = rest.split_at(text.unwrap_or(rest.len()));
        if !before.is_empty() {
            tokens.push(Token::Text(before));
        }
        let Some((_, after)) = after.split_first() else {
            break;
        };
        let (token, size) = match after.first() {
            Some(b'p') => (Token::Process, 1),
            Some(b'h') => (Token::Host, 1),
            Some(b't') => (Token::Temporary, 1),
            Some(b'b') => (Token::BuildId, 1),
            Some(b'c') => (Token::Continuous, 1),
            _ => merge_pool(after).unwrap_or((Token::Unknown, after.len().min(1))),
        };
        tokens.push(token);
        rest = &after[size..];
    }
    tokens
}

/// Parses %m or %Nm without the percent sign. Returns the token and its length. The number wraps as a C `unsigned`, and
/// 0 means 1.
fn merge_pool(text: &[u8]) -> Option<(Token<'static>, usize)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let add = |number: u32, digit: &u8| {
        number
            .wrapping_mul(10)
            .wrapping_add(u32::from(digit - b'0'))
    };
    let size = text[..digits].iter().fold(0, add);
    (text.get(digits) == Some(&b'm')).then_some((Token::MergePool(size.max(1)), digits + 1))
}

/// Whether LLVM's runtime accepts the pattern. If %m or %c occurs twice, or if TMPDIR is not set for %t, it prints a
/// warning and uses the default name.
pub fn is_valid(tokens: &[Token], values: &Values) -> bool {
    let count = |is: fn(&Token) -> bool| tokens.iter().filter(|token| is(token)).count();
    count(|token| matches!(token, Token::MergePool(_))) < 2
        && count(|token| *token == Token::Continuous) < 2
        && (values.tmp.is_some() || !tokens.contains(&Token::Temporary))
}

/// Whether the pattern has no specifiers. Such a pattern is the name, including its percent signs.
pub fn is_plain_name(tokens: &[Token]) -> bool {
    tokens
        .iter()
        .all(|token| matches!(token, Token::Text(_) | Token::Unknown))
}

/// The values of the specifiers.
pub struct Substitutions<'a> {
    pub values: &'a Values,
    /// The process id that selects a file of a merge pool.
    pub pool_pid: u32,
    pub signature: u64,
    pub build_id: &'a [u8],
}

impl Substitutions<'_> {
    /// The expanded name. Unknown specifiers are removed, even `%%`.
    pub fn expand(&self, tokens: &[Token]) -> Vec<u8> {
        let mut name = Vec::new();
        for token in tokens {
            match token {
                Token::Text(text) => name.extend_from_slice(text),
                Token::Process => name.extend(self.values.pid.to_string().bytes()),
                Token::Host => name.extend_from_slice(self.values.host.as_bytes()),
                Token::Temporary => {
                    name.extend_from_slice(
                        self.values.tmp.as_deref().unwrap_or_default().as_bytes(),
                    );
                    name.push(b'/');
                }
                Token::BuildId => name.extend_from_slice(self.build_id),
                Token::MergePool(size) => {
                    name.extend(format!("{}_{}", self.signature, self.pool_pid % size).bytes());
                }
                Token::Continuous | Token::Unknown => {}
            }
        }
        name
    }
}

/// Expands `pattern` for a code object.
pub fn expand(pattern: &[u8], values: &Values, object: ObjectId) -> Destination {
    let tokens = tokenize(pattern);
    let named = |name: &[u8], warning| Destination {
        path: PathBuf::from(OsStr::from_bytes(name)),
        merge: false,
        warning,
    };
    if !is_valid(&tokens, values) {
        return named(DEFAULT.as_bytes(), Some(INVALID));
    }
    if is_plain_name(&tokens) {
        return named(pattern, None);
    }
    let build_id = match object.build_id {
        Some(id) => profraw::hex(id),
        None => object.fingerprint.to_string(),
    };
    let substitutions = Substitutions {
        values,
        pool_pid: values.pid,
        signature: object.fingerprint,
        build_id: build_id.as_bytes(),
    };
    Destination {
        path: PathBuf::from(OsString::from_vec(substitutions.expand(&tokens))),
        merge: tokens
            .iter()
            .any(|token| matches!(token, Token::MergePool(_))),
        warning: tokens.contains(&Token::Continuous).then_some(CONTINUOUS),
    }
}

/// Expands a pattern for a file that is not specific to a code object: %p, %h, %t, and %% for a percent sign.
pub fn expand_process(pattern: &OsStr, values: &Values) -> PathBuf {
    let mut path = Vec::new();
    let mut bytes = pattern.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'p') => path.extend(values.pid.to_string().bytes()),
            Some(b'h') => path.extend(values.host.as_bytes()),
            Some(b't') => path.extend(values.tmp.as_deref().unwrap_or("/tmp".as_ref()).as_bytes()),
            Some(b'%') => path.push(b'%'),
            // Unknown specifiers stay unchanged.
            Some(&other) => path.extend([b'%', other]),
            None => path.push(b'%'),
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::path::Path;

    pub const OBJECT: ObjectId = ObjectId {
        fingerprint: 99,
        build_id: Some(&[0x0a, 0xff]),
    };

    pub fn values() -> Values {
        Values {
            pid: 4711,
            host: "box".into(),
            tmp: Some("/var/tmp".into()),
        }
    }

    fn expanded(pattern: &str) -> (String, bool) {
        let to = expand(pattern.as_bytes(), &values(), OBJECT);
        (to.path.to_str().unwrap().to_owned(), to.merge)
    }

    #[test]
    fn patterns_expand_as_in_llvm() {
        for (pattern, name, merge) in [
            ("a.profraw", "a.profraw", false),
            ("d/%p-%h.profraw", "d/4711-box.profraw", false),
            ("%t/x", "/var/tmp//x", false),
            ("x-%m", "x-99_0", true),
            ("x-%0m", "x-99_0", true),
            ("x-%4m", "x-99_3", true),
            ("x-%100m", "x-99_11", true),
            ("x-%4294967297m", "x-99_0", true),
            ("%m%2m", "default.profraw", false),
            ("x-%b", "x-0aff", false),
            // Without specifiers, the pattern is the name.
            ("100%%.%q4%", "100%%.%q4%", false),
            ("100%%.%q4%p%", "100.44711", false),
            ("%12x%p", "2x4711", false),
            ("%%m%p", "m4711", false),
            ("%3%m", "99_0", true),
        ] {
            assert_eq!(expanded(pattern), (name.into(), merge), "{pattern}");
        }
        let expand = |pattern: &str, values| expand(pattern.as_bytes(), &values, OBJECT);
        assert_eq!(expand("%c%p", values()).warning, Some(CONTINUOUS));
        assert_eq!(expand("a%c%q", values()).path, Path::new("a"));
        assert_eq!(expand("%c%c", values()).warning, Some(INVALID));
        let without = Values {
            tmp: None,
            ..values()
        };
        assert_eq!(expand("%tx", without).path, Path::new(DEFAULT));
    }

    #[test]
    fn the_name_of_a_process_has_no_specifiers_of_code_objects() {
        let expanded = |pattern| expand_process(OsStr::new(pattern), &values());
        assert_eq!(
            expanded("%t/%h-%p.trace"),
            Path::new("/var/tmp/box-4711.trace")
        );
        assert_eq!(expanded("100%%-%q%"), Path::new("100%-%q%"));
    }
}
