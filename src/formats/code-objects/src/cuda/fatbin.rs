//! The entries of fat binaries in a file, and their decompression. The crate `fatbin` reads the headers.

use crate::budget::Limit;
use crate::bytes::Bytes;
use crate::error::Error;
use crate::packed::{self, Unpacker};
use crate::without_code;

use ::fatbin::{Damage, ENTRY, HEADER, Method, Packed};
pub use ::fatbin::{Entry, Header, Kind, MAGIC, Specific};

/// Limit on the uncompressed size of an entry that is compressed with LZ4, in bytes: it is unpacked in memory.
const MAX_LZ4: u64 = 256 << 20;

/// Reads the header at the beginning of `bytes`.
pub fn read(bytes: &Bytes) -> Result<Header, Error> {
    let head = bytes.read(0, (HEADER as u64).min(bytes.size()))?;
    ::fatbin::header(&head, bytes.size()).map_err(|damage| error(damage, 0))
}

/// Reads the header of the entry at offset `at`. `bytes`: the fat binary.
pub fn entry(bytes: &Bytes, at: u64) -> Result<Entry, Error> {
    let rest = bytes.from(at);
    let head = rest.read(0, (ENTRY as u64).min(rest.size()))?;
    ::fatbin::entry(&head, at, rest.size()).map_err(|damage| error(damage, at))
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

/// Decompresses the contents of an entry.
///
/// # Errors
/// The data is damaged, does not unpack to the claimed size, or exceeds the limit.
pub fn unpack(bytes: &Bytes, packed: Packed, limit: &Limit) -> Result<Bytes, Error> {
    let (name, unpacked) = match packed.method {
        Method::Lz4 => ("lz4", lz4(bytes, packed.unpacked, limit)),
        Method::Zstd => ("zstd", zstd(bytes, packed.unpacked, limit)),
    };
    unpacked.map_err(|why| error!(0; "cannot decompress ({name}): {why}"))
}

fn lz4(bytes: &Bytes, unpacked: u64, limit: &Limit) -> Result<Bytes, String> {
    packed::check(bytes.size(), unpacked, limit)?;
    let own = Limit::of_size(MAX_LZ4, "MiB of unpacked data in one entry");
    packed::check(bytes.size(), unpacked, &own)?;
    let input = bytes.read(0, bytes.size()).map_err(|error| error.message)?;
    let mut output = vec![0; unpacked as usize];
    let size =
        lz4_flex::block::decompress_into(&input, &mut output).map_err(|error| error.to_string())?;
    limit.take(size as u64)?;
    match unpacked - size as u64 {
        0 => Ok(Bytes::of_memory(output)),
        fewer => Err(format!("{fewer} bytes fewer than claimed")),
    }
}

fn zstd(bytes: &Bytes, unpacked: u64, limit: &Limit) -> Result<Bytes, String> {
    let mut unpacker = Unpacker::new(bytes, packed::Method::Zstd, unpacked, limit)?;
    let kept =
        without_code::read(&mut unpacker, Vec::new(), true).map_err(|error| error.to_string())?;
    unpacker.finish(bytes)?;
    Ok(kept)
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
