//! The PTX in code that a program passes to the driver.

#![forbid(unsafe_code)]

use super::code;
use crate::support::alloc;
use fatbin::{Entry, Kind, Method};
use goblin::elf::header::ELFMAG;
use std::borrow::Cow;

/// The largest PTX that is unpacked, bytes.
const LARGEST: u64 = 256 << 20;

/// Why PTX cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("the fat binary is damaged")]
    FatBinary,
    #[error("it cannot be decompressed: {0}")]
    Packed(String),
    #[error("it is not valid UTF-8")]
    Text,
}

/// PTX in code.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a> {
    pub text: Cow<'a, str>,
    /// The driver would use a cubin.
    pub replaces_cubin: bool,
}

/// What code contains.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    Ptx(Found<'a>),
    /// One cubin, not a fat binary.
    Cubin,
    /// No PTX for these devices.
    Other,
}

/// Finds the PTX that the driver could use on devices, of which the oldest has the architecture `arch`. Code that has more than one
/// form of PTX for them has the newest.
///
/// # Errors
/// There is PTX, but it cannot be read.
pub fn find(code: &[u8], arch: u32) -> Result<Part<'_>, Damage> {
    if code.starts_with(ELFMAG) {
        return Ok(Part::Cubin);
    }
    if !code.starts_with(fatbin::MAGIC) {
        if !ptx::is_ptx(code) {
            return Ok(Part::Other);
        }
        let text = text(code)?.into();
        let replaces_cubin = false;
        return Ok(Part::Ptx(Found {
            text,
            replaces_cubin,
        }));
    }
    let header = fatbin::header(code, code.len() as u64).map_err(|_| Damage::FatBinary)?;
    let (mut best, mut replaces_cubin) = (None::<Entry>, false);
    let mut at = header.entries;
    while at < header.size {
        let rest = &code[at as usize..];
        let entry = fatbin::entry(rest, at, header.size - at).map_err(|_| Damage::FatBinary)?;
        at = entry.next;
        let is_ptx = entry.kind == Kind::Ptx;
        if !code::runs_on(entry.architecture, entry.specific, is_ptx, arch) {
            continue;
        }
        replaces_cubin |= entry.kind == Kind::Cubin;
        let rank = |entry: &Entry| (entry.architecture, entry.specific);
        if is_ptx && best.is_none_or(|best| rank(&best) < rank(&entry)) {
            best = Some(entry);
        }
    }
    let Some(entry) = best else {
        return Ok(Part::Other);
    };
    let content = &code[entry.at as usize..][..entry.size as usize];
    let text = match entry.packed {
        None => Cow::Borrowed(text(content)?),
        Some(packed) => {
            let size = packed.unpacked;
            let unpacked = unpack(content, packed.method, size).map_err(Damage::Packed)?;
            Cow::Owned(text(&unpacked)?.to_owned())
        }
    };
    Ok(Part::Ptx(Found {
        text,
        replaces_cubin,
    }))
}

fn unpack(packed: &[u8], method: Method, size: u64) -> Result<Vec<u8>, String> {
    if size > LARGEST {
        return Err(format!("{size} bytes are too many"));
    }
    let mut unpacked = alloc::zeroed(size as usize).map_err(|error| error.to_string())?;
    let written = match method {
        Method::Lz4 => lz4_flex::block::decompress_into(packed, &mut unpacked)
            .map_err(|error| error.to_string()),
        Method::Zstd => zstd::bulk::decompress_to_buffer(packed, &mut unpacked)
            .map_err(|error| error.to_string()),
    }?;
    unpacked.truncate(written);
    Ok(unpacked)
}

/// Text, without the zeros at its end.
fn text(bytes: &[u8]) -> Result<&str, Damage> {
    let end = bytes.iter().rposition(|&byte| byte != 0);
    let bytes = &bytes[..end.map_or(0, |last| last + 1)];
    str::from_utf8(bytes).map_err(|_| Damage::Text)
}

#[cfg(test)]
mod tests {
    use super::super::code::tests::{CUBIN, PTX, entry_bytes, fat};
    use super::*;

    const TEXT: &str = "// a comment\n.version 9.0\n.target sm_80\n";

    fn found(code: &[u8], arch: u32) -> (String, bool) {
        match find(code, arch) {
            Ok(Part::Ptx(found)) => (found.text.into_owned(), found.replaces_cubin),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn text_may_have_zeros_at_its_end() {
        for end in ["", "\0", "\0\0\0"] {
            let code = format!("{TEXT}{end}");
            assert_eq!(found(code.as_bytes(), 90), (TEXT.to_owned(), false));
        }
        assert_eq!(find(b"text", 90), Ok(Part::Other));
        assert_eq!(find(b"\x7fELF and more", 90), Ok(Part::Cubin));
        assert_eq!(find(b".version 9.0 // \xff", 90), Err(Damage::Text));
    }

    #[test]
    fn the_newest_ptx_for_all_devices_is_found() {
        let ptx = |arch| entry_bytes(PTX, arch, 0, format!("{TEXT}// {arch}").as_bytes());
        let code = fat(&[ptx(75), ptx(80), ptx(100), entry_bytes(CUBIN, 86, 0, b"x")]);
        let expected = |arch, is_cubin| (format!("{TEXT}// {arch}"), is_cubin);
        assert_eq!(found(&code, 90), expected(80, false));
        assert_eq!(found(&code, 86), expected(80, true));
        assert_eq!(found(&code, 120), expected(100, false));
        assert_eq!(find(&code, 70), Ok(Part::Other));
        assert_eq!(find(&code[..code.len() - 1], 90), Err(Damage::FatBinary));
    }

    #[test]
    fn compressed_ptx_is_unpacked() {
        let packed = [
            (0x2000, lz4_flex::block::compress(TEXT.as_bytes())),
            (0x8000, zstd::bulk::compress(TEXT.as_bytes(), 3).unwrap()),
        ];
        for (flag, packed) in packed {
            let entry = |unpacked: usize| {
                let mut bytes = entry_bytes(PTX, 80, flag, &packed);
                bytes[16..20].copy_from_slice(&(packed.len() as u32).to_le_bytes());
                bytes[56..64].copy_from_slice(&(unpacked as u64).to_le_bytes());
                fat(&[bytes])
            };
            assert_eq!(found(&entry(TEXT.len()), 90), (TEXT.to_owned(), false));
            for size in [1, usize::MAX] {
                assert!(matches!(find(&entry(size), 90), Err(Damage::Packed(_))));
            }
        }
    }
}
