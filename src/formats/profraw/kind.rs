//! Recognizes LLVM's profiles by their first bytes.

use crate::format::MAGIC;

/// First word of a raw profile of a 32-bit target (`INSTR_PROF_RAW_MAGIC_32`): `\xff l p r o f R \x81`.
const MAGIC_32: u64 = 0xff6c_7072_6f66_5281;

/// First bytes of an indexed profile (`IndexedInstrProf::Magic`).
const INDEXED: &[u8] = b"\xfflprofi\x81";

/// The kind of a binary profile. `version` is its second 64-bit word, with variant flags; `None` if the file ends
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A raw profile, as an instrumented program writes it.
    Raw {
        /// Word size of the target: 32 or 64.
        bits: u8,
        /// Byte order of the target, and of all words of the file.
        big_endian: bool,
        version: Option<u64>,
    },
    /// An indexed profile, as `llvm-profdata merge` writes it. Little endian.
    Indexed { version: Option<u64> },
}

impl Kind {
    /// `head`: the first bytes of the file; 16 are enough. `None` if it is not a binary profile.
    pub fn of(head: &[u8]) -> Option<Kind> {
        let (magic, rest) = head.split_first_chunk::<8>()?;
        let version = rest.first_chunk::<8>();
        if magic == INDEXED {
            return Some(Kind::Indexed {
                version: version.map(|&word| u64::from_le_bytes(word)),
            });
        }
        let raw = |bits, big_endian| {
            let word = if big_endian {
                u64::from_be_bytes
            } else {
                u64::from_le_bytes
            };
            Some(Kind::Raw {
                bits,
                big_endian,
                version: version.map(|&bytes| word(bytes)),
            })
        };
        match (u64::from_le_bytes(*magic), u64::from_be_bytes(*magic)) {
            (MAGIC, _) => raw(64, false),
            (MAGIC_32, _) => raw(32, false),
            (_, MAGIC) => raw(64, true),
            (_, MAGIC_32) => raw(32, true),
            _ => None,
        }
    }
}

/// Whether a file that begins with `head` can be a text profile. Like LLVM (`TextInstrProfReader::hasFormat`), this
/// checks that the first 8 bytes are ASCII text.
pub fn is_text(head: &[u8]) -> bool {
    let mut first = head.iter().take(8);
    first.all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_recognized_by_their_first_bytes() {
        let raw = |bits, big_endian, version| {
            Some(Kind::Raw {
                bits,
                big_endian,
                version,
            })
        };
        let little = b"\x81rforpl\xff\x0b\0\0\0\0\0\0\x01";
        assert_eq!(Kind::of(little), raw(64, false, Some(11 | 1 << 56)));
        assert_eq!(Kind::of(&little[..15]), raw(64, false, None));
        assert_eq!(Kind::of(&little[..7]), None);
        assert_eq!(Kind::of(b"\x81Rforpl\xff"), raw(32, false, None));
        let big = b"\xfflprofr\x81\0\0\0\0\0\0\0\x0a";
        assert_eq!(Kind::of(big), raw(64, true, Some(10)));
        let indexed = Some(Kind::Indexed { version: Some(13) });
        assert_eq!(Kind::of(b"\xfflprofi\x81\x0d\0\0\0\0\0\0\0"), indexed);
        assert_eq!(Kind::of(b":ir\nmain\n1\n"), None);
        assert!(is_text(b":ir\nmain\n1\n") && is_text(b"") && !is_text(little));
    }
}
