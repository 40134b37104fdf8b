//! The names section: chunks of (ULEB128 uncompressed size, ULEB128 compressed size or 0, bytes), with zeros as padding
//! between translation units. Uncompressed names are UTF-8, separated by a byte 1 (`readAndDecodeStrings` in LLVM's
//! `InstrProf.cpp`).

/// Why a names section is invalid. `at` is an offset in the section, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid names section at byte {at}: {what}")]
pub struct Damage {
    pub at: usize,
    pub what: &'static str,
}

/// One chunk of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// Not compressed.
    Plain(&'a str),
    /// Compressed by zlib.
    Packed {
        bytes: &'a [u8],
        /// Uncompressed size in bytes according to the section, not validated.
        size: u64,
    },
}

/// The chunks of a names section, up to the first damage.
pub fn chunks(bytes: &[u8]) -> impl Iterator<Item = Result<Chunk<'_>, Damage>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes[at..].iter().take_while(|&&byte| byte == 0).count();
        if at == bytes.len() {
            return None;
        }
        let found = chunk(bytes, &mut at);
        if found.is_err() {
            at = bytes.len();
        }
        Some(found)
    })
}

fn chunk<'a>(bytes: &'a [u8], at: &mut usize) -> Result<Chunk<'a>, Damage> {
    let start = *at;
    let damage = |what| Damage { at: start, what };
    let endless = damage("unterminated size");
    let size = uleb128(bytes, at).ok_or(endless.clone())?;
    let packed = uleb128(bytes, at).ok_or(endless)?;
    let length = if packed == 0 { size } else { packed };
    let end = usize::try_from(length)
        .ok()
        .and_then(|length| at.checked_add(length))
        .filter(|&end| end <= bytes.len())
        .ok_or(damage("a size past the end of the section"))?;
    let bytes = &bytes[std::mem::replace(at, end)..end];
    if packed != 0 {
        return Ok(Chunk::Packed { bytes, size });
    }
    std::str::from_utf8(bytes)
        .map(Chunk::Plain)
        .map_err(|error| Damage {
            at: end - bytes.len() + error.valid_up_to(),
            what: "not UTF-8",
        })
}

fn uleb128(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let low = u64::from(byte & 0x7f);
        value |= low.checked_shl(shift).filter(|v| v >> shift == low)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bytes: &[u8]) -> Result<Vec<Chunk<'_>>, (usize, &'static str)> {
        chunks(bytes)
            .collect::<Result<_, _>>()
            .map_err(|damage| (damage.at, damage.what))
    }

    #[test]
    fn chunks_end_inside_the_section_and_are_utf8() {
        let two = names(b"\x04\x00main\0\0\0\x01\x00x");
        assert_eq!(two, Ok(vec![Chunk::Plain("main"), Chunk::Plain("x")]));
        let packed = Chunk::Packed {
            bytes: b"\xff\xfe\xfd",
            size: 128,
        };
        assert_eq!(
            names(b"\x80\x01\x03\xff\xfe\xfd"),
            Ok(vec![packed]),
            "compressed bytes need not be UTF-8"
        );
        assert_eq!(
            names(b"\x05\x00main"),
            Err((0, "a size past the end of the section"))
        );
        assert_eq!(names(b"\x03\x00a\xffb"), Err((3, "not UTF-8")));
        let endless = b"\x01\x00a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00";
        assert_eq!(names(endless), Err((3, "unterminated size")));
        assert_eq!(names(b"\x80"), Err((0, "unterminated size")));
        assert_eq!(names(b"\0\0"), Ok(vec![]));
    }
}
