//! The headers of CUDA's fat binaries: one header, and one entry after another, each with its own header. An entry is a
//! cubin or PTX for one architecture, and can be compressed.
//!
//! NVIDIA does not document the format. The layout here was compared with files of CUDA 12.4's and 13.0's fatbinary and
//! with the output of cuobjdump. Nothing is allocated, and nothing in a header is trusted.

#![no_std]
#![forbid(unsafe_code)]

mod id;

pub use id::CubinId;

/// 0xBA55ED50.
pub const MAGIC: &[u8] = b"\x50\xed\x55\xba";
/// Size of the header of a fat binary in bytes.
pub const HEADER: usize = 16;
/// Smallest size of an entry's header in bytes.
pub const ENTRY: usize = 64;
/// Limit on the size of an entry's header in bytes. It ends with the options of the compiler and the name of the source.
const MAX_ENTRY: u64 = 1 << 20;

/// Bits of an entry's flags.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
const FAMILY_SPECIFIC: u64 = 0x20_0000;

/// The header of a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Offset of the first entry in bytes.
    pub entries: u64,
    /// Size of the fat binary in bytes, with its header.
    pub size: u64,
}

/// The contents of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ptx,
    Cubin,
    /// A number whose meaning is not known.
    Other(u16),
}

/// On which devices code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Specific {
    /// On later architectures, too.
    No,
    /// Devices of the same major version that are not older.
    Family,
    /// Only this architecture.
    Architecture,
}

/// Compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A block without a frame.
    Lz4,
    Zstd,
}

/// The compression of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    pub method: Method,
    /// Uncompressed size in bytes, as claimed.
    pub unpacked: u64,
}

/// An entry of a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// For example 90 for `sm_90`. For PTX, the lowest architecture that it can be compiled for.
    pub architecture: u32,
    pub specific: Specific,
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

/// Why a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("truncated header of a fat binary: {HEADER} bytes needed, {available} available")]
    Truncated { available: u64 },
    #[error("not a fat binary")]
    Magic,
    #[error("fat binary version {0} is not supported; version 1 is")]
    Version(u16),
    #[error("a fat binary claims a header of {0} bytes, less than {HEADER}")]
    HeaderSize(u64),
    #[error("a fat binary claims {claimed} bytes, but there are {available}")]
    Size { claimed: u64, available: u64 },
    #[error("truncated header of an entry: {ENTRY} bytes needed, {available} available")]
    EntryTruncated { available: u64 },
    #[error("an entry claims a header of {0} bytes")]
    EntryHeaderSize(u64),
    #[error("an entry claims {claimed} bytes, but there are {available} with its header")]
    EntrySize { claimed: u64, available: u64 },
    #[error("an entry claims two compression methods: flags {flags:#x}")]
    EntryMethods { flags: u64 },
    #[error("an entry claims {claimed} compressed bytes, but has {available}")]
    EntryPackedSize { claimed: u64, available: u64 },
}

impl Damage {
    /// Offset of the wrong number in bytes, from the beginning of the header.
    pub fn offset(self) -> u64 {
        match self {
            Damage::Truncated { .. } | Damage::Magic | Damage::EntryTruncated { .. } => 0,
            Damage::Version(_) | Damage::EntryHeaderSize(_) => 4,
            Damage::HeaderSize(_) => 6,
            Damage::Size { .. } | Damage::EntrySize { .. } => 8,
            Damage::EntryPackedSize { .. } => 16,
            Damage::EntryMethods { .. } => 40,
        }
    }
}

/// Reads the header of a fat binary. `head`: its first bytes, at least [`HEADER`]. `available`: the number of bytes that
/// the fat binary can have.
pub fn header(head: &[u8], available: u64) -> Result<Header, Damage> {
    let Some(head) = head.first_chunk::<HEADER>() else {
        return Err(Damage::Truncated { available });
    };
    if !head.starts_with(MAGIC) {
        return Err(Damage::Magic);
    }
    let version = u16_at(head, 4);
    if version != 1 {
        return Err(Damage::Version(version));
    }
    let entries = u64::from(u16_at(head, 6));
    if entries < HEADER as u64 {
        return Err(Damage::HeaderSize(entries));
    }
    let claimed = u64_at(head, 8);
    match entries.checked_add(claimed) {
        Some(size) if size <= available => Ok(Header { entries, size }),
        _ => Err(Damage::Size { claimed, available }),
    }
}

/// Reads the header of the entry at offset `at`. `head`: its first bytes, at least [`ENTRY`]. `available`: the number of
/// bytes from there to the end of the fat binary.
pub fn entry(head: &[u8], at: u64, available: u64) -> Result<Entry, Damage> {
    let Some(head) = head.first_chunk::<ENTRY>() else {
        return Err(Damage::EntryTruncated { available });
    };
    let header = u64::from(u32_at(head, 4));
    if !(ENTRY as u64..=MAX_ENTRY).contains(&header) {
        return Err(Damage::EntryHeaderSize(header));
    }
    let padded = u64_at(head, 8);
    let end = header.checked_add(padded).filter(|end| *end <= available);
    let Some(next) = end.and_then(|end| at.checked_add(end)) else {
        let claimed = padded;
        return Err(Damage::EntrySize { claimed, available });
    };
    let flags = u64_at(head, 40);
    let method = match flags & (LZ4 | ZSTD) {
        0 => None,
        LZ4 => Some(Method::Lz4),
        ZSTD => Some(Method::Zstd),
        _ => return Err(Damage::EntryMethods { flags }),
    };
    let size = if method.is_some() {
        u64::from(u32_at(head, 16))
    } else {
        padded
    };
    if size > padded {
        return Err(Damage::EntryPackedSize {
            claimed: size,
            available: padded,
        });
    }
    Ok(Entry {
        kind: match u16_at(head, 0) {
            1 => Kind::Ptx,
            2 => Kind::Cubin,
            other => Kind::Other(other),
        },
        architecture: u32_at(head, 28),
        specific: match flags & (ARCHITECTURE_SPECIFIC | FAMILY_SPECIFIC) {
            0 => Specific::No,
            FAMILY_SPECIFIC => Specific::Family,
            _ => Specific::Architecture,
        },
        version: (u16_at(head, 26), u16_at(head, 24)),
        at: at + header,
        size,
        packed: method.map(|method| Packed {
            method,
            unpacked: u64_at(head, 56),
        }),
        next,
    })
}

fn u16_at(head: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(head, at))
}

fn u32_at(head: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(head, at))
}

fn u64_at(head: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(head, at))
}

/// The bytes at offset `at` of a header, which has them.
fn array<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&head[at..at + N]);
    array
}
