//! A fat binary: a header, and one entry after another, each with its own header. Cubins and PTX can be compressed.

use super::{target, u16_at, u32_at, u64_at};
use crate::bytes::{Bytes, Keeper, read_some};
use crate::error::Error;
use crate::packed::{self, Unpacker};
use std::io;

/// 0xBA55ED50.
pub const MAGIC: &[u8] = b"\x50\xed\x55\xba";

/// Size of the header of a fat binary in bytes.
const HEADER: u64 = 16;
/// Smallest size of an entry's header in bytes.
const ENTRY: u64 = 64;
/// Limit on the size of an entry's header in bytes. It ends with the options of the compiler and the name of the source.
const MAX_ENTRY: u64 = 1 << 20;

/// Bits of an entry's flags.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
const FAMILY_SPECIFIC: u64 = 0x20_0000;

/// The highest compression ratio of LZ4: a byte of the input extends a match by at most 255 bytes.
const LZ4_RATIO: u64 = 255;
/// The highest compression ratio that is accepted for zstd, if the uncompressed size is larger than [`SMALL`].
const ZSTD_RATIO: u64 = 1000;
/// In bytes.
const SMALL: u64 = 16 << 20;

/// The header of a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Offset of the first entry in bytes.
    pub entries: u64,
    /// Size of the fat binary in bytes, with its header.
    pub size: u64,
}

/// What an entry contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ptx,
    Cubin,
    /// Another number, of which this reader does not know the contents.
    Other(u16),
}

/// An entry of a fat binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// For example `sm_90a`. For PTX, the lowest architecture that it can be compiled for.
    pub target: String,
    /// For PTX, its version: major and minor.
    pub version: (u16, u16),
    /// Offset of the contents in bytes, from the beginning of the fat binary.
    pub at: u64,
    /// Size of the contents in bytes, without padding.
    pub size: u64,
    pub packed: Option<Packed>,
    /// Offset of the next entry in bytes.
    pub next: u64,
}

/// Compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A block without a frame.
    Lz4,
    Zstd,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Lz4 => "lz4",
            Method::Zstd => "zstd",
        }
    }
}

/// The compression of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    pub method: Method,
    /// Uncompressed size in bytes.
    pub unpacked: u64,
}

/// Reads the header at the beginning of `bytes`.
pub fn read(bytes: &Bytes) -> Result<Header, Error> {
    let available = bytes.size();
    let head = bytes.read(0, HEADER).map_err(|_| {
        let what = format!(
            "truncated header of a fat binary: {HEADER} bytes needed, {available} available"
        );
        Error::new(0, what)
    })?;
    if !head.starts_with(MAGIC) {
        return Err(Error::new(0, "not a fat binary"));
    }
    let version = u16_at(&head, 4);
    if version != 1 {
        let what = format!("fat binary version {version} is not supported; version 1 is");
        return Err(Error::new(4, what));
    }
    let entries = u64::from(u16_at(&head, 6));
    if entries < HEADER {
        let what = format!("a fat binary claims a header of {entries} bytes, less than {HEADER}");
        return Err(Error::new(6, what));
    }
    let claimed = u64_at(&head, 8);
    match entries.checked_add(claimed) {
        Some(size) if size <= available => Ok(Header { entries, size }),
        _ => {
            let what = format!("a fat binary claims {claimed} bytes, but there are {available}");
            Err(Error::new(8, what))
        }
    }
}

/// Reads the header of the entry at offset `at`. `bytes`: the fat binary.
pub fn entry(bytes: &Bytes, at: u64) -> Result<Entry, Error> {
    let rest = bytes.from(at);
    let available = rest.size();
    let head = rest.read(0, ENTRY).map_err(|_| {
        let what =
            format!("truncated header of an entry: {ENTRY} bytes needed, {available} available");
        Error::new(at, what)
    })?;
    let kind = match u16_at(&head, 0) {
        1 => Kind::Ptx,
        2 => Kind::Cubin,
        other => Kind::Other(other),
    };
    let header = u64::from(u32_at(&head, 4));
    if !(ENTRY..=MAX_ENTRY).contains(&header) {
        let what = format!("an entry claims a header of {header} bytes");
        return Err(Error::new(at + 4, what));
    }
    let padded = u64_at(&head, 8);
    let end = header.checked_add(padded).filter(|end| *end <= available);
    let Some(end) = end else {
        let what =
            format!("an entry claims {padded} bytes, but there are {available} with its header");
        return Err(Error::new(at + 8, what));
    };
    let stored = u64::from(u32_at(&head, 16));
    let flags = u64_at(&head, 40);
    let method = match flags & (LZ4 | ZSTD) {
        0 => None,
        LZ4 => Some(Method::Lz4),
        ZSTD => Some(Method::Zstd),
        _ => {
            let what = format!("an entry claims two compression methods: flags {flags:#x}");
            return Err(Error::new(at + 40, what));
        }
    };
    let size = if method.is_some() { stored } else { padded };
    if size > padded {
        let what = format!("an entry claims {size} compressed bytes, but has {padded}");
        return Err(Error::new(at + 16, what));
    }
    let packed = match method {
        None => None,
        Some(method) => {
            let unpacked = u64_at(&head, 56);
            if unpacked > max_unpacked(method, size) {
                let what = format!("{size} bytes claim to unpack to {unpacked}");
                return Err(Error::new(at + 56, what));
            }
            Some(Packed { method, unpacked })
        }
    };
    let suffix = match flags & (ARCHITECTURE_SPECIFIC | FAMILY_SPECIFIC) {
        0 => "",
        ARCHITECTURE_SPECIFIC => "a",
        _ => "f",
    };
    Ok(Entry {
        kind,
        target: target::name(u32_at(&head, 28), suffix),
        version: (u16_at(&head, 26), u16_at(&head, 24)),
        at: at + header,
        size,
        packed,
        next: at + end,
    })
}

/// Limit on the uncompressed size of `packed` bytes.
fn max_unpacked(method: Method, packed: u64) -> u64 {
    match method {
        Method::Lz4 => packed.saturating_mul(LZ4_RATIO).saturating_add(LZ4_RATIO),
        Method::Zstd => packed.saturating_mul(ZSTD_RATIO).max(SMALL),
    }
}

/// Decompresses the contents of an entry.
///
/// # Errors
/// The data is damaged, or does not unpack to the claimed size.
pub fn unpack(bytes: &Bytes, packed: Packed) -> Result<Bytes, Error> {
    let name = packed.method.name();
    let failed = |why: String| Error::new(0, format!("cannot decompress ({name}): {why}"));
    match packed.method {
        Method::Lz4 => lz4(bytes, packed.unpacked, failed),
        Method::Zstd => zstd(bytes, packed.unpacked).map_err(failed),
    }
}

fn lz4(bytes: &Bytes, unpacked: u64, failed: impl Fn(String) -> Error) -> Result<Bytes, Error> {
    let input = bytes.read(0, bytes.size())?;
    // At most LZ4_RATIO times the size of the input.
    let mut output = vec![0; unpacked as usize];
    let size = lz4_flex::block::decompress_into(&input, &mut output)
        .map_err(|error| failed(error.to_string()))?;
    match unpacked - size as u64 {
        0 => Ok(Bytes::of_memory(output)),
        fewer => Err(failed(format!("{fewer} bytes fewer than claimed"))),
    }
}

fn zstd(bytes: &Bytes, unpacked: u64) -> Result<Bytes, String> {
    let mut unpacker =
        Unpacker::new(bytes, packed::Method::Zstd, unpacked).map_err(|error| error.to_string())?;
    let mut keeper = Keeper::default();
    let mut buffer = vec![0; 1 << 18];
    let mut at = 0;
    loop {
        let n = read_some(&mut unpacker, &mut buffer).map_err(|error| error.to_string())?;
        if n == 0 {
            break;
        }
        let kept: io::Result<()> = keeper.keep(at, &buffer[..n]);
        kept.map_err(|error| format!("cannot write a temporary file: {error}"))?;
        at += n as u64;
    }
    unpacker.finish(bytes)?;
    Ok(keeper.finish(at))
}

/// Offset of the first fat binary at or after `at`, found by its magic. Fat binaries are aligned to 8 bytes.
pub fn next(bytes: &Bytes, at: u64) -> Result<Option<u64>, Error> {
    const STEP: u64 = 1 << 18;
    let mut at = at.next_multiple_of(8);
    while at < bytes.size() {
        let size = STEP.min(bytes.size() - at);
        let part = bytes.read(at, size).map_err(|error| error.shifted(at))?;
        let mut words = part.chunks(8);
        if let Some(n) = words.position(|word| word.starts_with(MAGIC)) {
            return Ok(Some(at + 8 * n as u64));
        }
        at += STEP;
    }
    Ok(None)
}
