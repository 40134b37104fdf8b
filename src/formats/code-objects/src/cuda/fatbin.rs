//! The entries of fat binaries in a file, and their decompression. The crate `fatbin` reads the headers.

use crate::bytes::{Bytes, Keeper, read_some};
use crate::error::Error;
use crate::packed::{self, Unpacker};
use std::io;

use ::fatbin::{Damage, ENTRY, HEADER, Method, Packed};
pub use ::fatbin::{Entry, Header, Kind, MAGIC, Specific};

/// The highest compression ratio of LZ4: a byte of the input extends a match by at most 255 bytes.
const LZ4_RATIO: u64 = 255;
/// The highest compression ratio that is accepted for zstd, if the uncompressed size is larger than [`SMALL`].
const ZSTD_RATIO: u64 = 1000;
/// In bytes.
const SMALL: u64 = 16 << 20;

/// Reads the header at the beginning of `bytes`.
pub fn read(bytes: &Bytes) -> Result<Header, Error> {
    let head = bytes.read(0, (HEADER as u64).min(bytes.size()))?;
    ::fatbin::header(&head, bytes.size()).map_err(|damage| error(damage, 0))
}

/// Reads the header of the entry at offset `at`. `bytes`: the fat binary.
pub fn entry(bytes: &Bytes, at: u64) -> Result<Entry, Error> {
    let rest = bytes.from(at);
    let head = rest.read(0, (ENTRY as u64).min(rest.size()))?;
    let entry = ::fatbin::entry(&head, at, rest.size()).map_err(|damage| error(damage, at))?;
    if let Some(Packed { method, unpacked }) = entry.packed
        && unpacked > max_unpacked(method, entry.size)
    {
        return Err(error!(at + 56; "{} bytes claim to unpack to {unpacked}", entry.size));
    }
    Ok(entry)
}

/// `at`: the offset of the header that is damaged.
fn error(damage: Damage, at: u64) -> Error {
    Error::new(at + damage.offset(), damage.to_string())
}

/// The architecture that an entry is for, for example `sm_90a`.
pub fn target(entry: &Entry) -> String {
    let suffix = match entry.specific {
        Specific::No => "",
        Specific::Family => "f",
        Specific::Architecture => "a",
    };
    super::target::name(entry.architecture, suffix)
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
    let name = match packed.method {
        Method::Lz4 => "lz4",
        Method::Zstd => "zstd",
    };
    let failed = |why: String| error!(0; "cannot decompress ({name}): {why}");
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
    let mut keeper = Keeper::new();
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
