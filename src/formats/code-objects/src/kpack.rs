//! ROCm's kpack archive: the code objects of an installation for one family of GPUs, moved out of its libraries. It has
//! a header, the code objects (each a zstd frame, or not compressed) and a table of contents in MessagePack.

use crate::budget::Limit;
use crate::bytes::Bytes;
use crate::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const MAGIC: &[u8] = b"KPAK";
/// Limit on the table of contents in bytes. A larger one means that its offset is damaged.
const MAX_CONTENTS: u64 = 256 << 20;

#[derive(Deserialize)]
struct Contents {
    #[serde(default)]
    group_name: String,
    #[serde(default)]
    gfx_arch_family: String,
    #[serde(default)]
    compression_scheme: Option<String>,
    #[serde(default)]
    blobs: Vec<Blob>,
    #[serde(default)]
    zstd_offset: u64,
    #[serde(default)]
    zstd_size: u64,
    /// By the name of the binary and the architecture.
    toc: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Blob {
    offset: u64,
    size: u64,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type", default)]
    kind: String,
    ordinal: u64,
    #[serde(default)]
    original_size: Option<u64>,
}

/// A code object in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Name of the binary that it was moved from.
    pub binary: String,
    pub arch: String,
    /// `hsaco`.
    pub kind: String,
    /// Offset in the archive, in bytes.
    pub at: u64,
    /// In bytes.
    pub size: u64,
    /// It is compressed.
    pub packed: bool,
    /// Uncompressed size in bytes, if the table has it.
    pub unpacked: Option<u64>,
}

/// The valid entries of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kpack {
    pub group: String,
    pub family: String,
    pub packed: bool,
    /// In the order of their offsets, not overlapping.
    pub kernels: Vec<Kernels>,
    /// Why other entries were left out.
    pub problems: Vec<Error>,
}

/// Reads the header and the table of contents. Entries that are out of bounds, or overlap others, are left out.
pub fn read(bytes: &Bytes) -> Result<Kpack, Error> {
    let head = bytes
        .read(0, 16)
        .map_err(|_| Error::new(0, "truncated header of a kpack archive"))?;
    if !head.starts_with(MAGIC) {
        return Err(Error::new(0, "not a kpack archive"));
    }
    let version = u32::from_le_bytes(head[4..8].try_into().unwrap_or_default());
    if version != 1 {
        return Err(error!(4; "kpack archive version {version} is not supported; version 1 is"));
    }
    let at = u64::from_le_bytes(head[8..16].try_into().unwrap_or_default());
    let end = bytes.size();
    if at < 16 || at >= end {
        return Err(error!(8; "table of contents at byte {at}, but the archive has {end} bytes"));
    }
    if end - at > MAX_CONTENTS {
        return Err(error!(8; "a table of contents with {} bytes", end - at));
    }
    let table = bytes.read(at, end - at)?;
    let mut decoder = rmp_serde::Deserializer::from_read_ref(&table);
    decoder.set_max_depth(64);
    let contents = Contents::deserialize(&mut decoder)
        .map_err(|error| error!(at; "table of contents: {error}"))?;
    let (blobs, packed) = match contents.compression_scheme.as_deref() {
        None | Some("none") => (contents.blobs.clone(), false),
        Some("zstd-per-kernel") => (frames(bytes, &contents)?, true),
        Some(other) => {
            return Err(error!(at; "unknown compression scheme \"{other}\" of a kpack archive"));
        }
    };
    let mut kpack = Kpack {
        group: contents.group_name,
        family: contents.gfx_arch_family,
        packed,
        ..Kpack::default()
    };
    let mut seen = vec![false; blobs.len()];
    // Each entry has the name of its binary.
    let limit = Limit::of_shared((end - at).min(16 << 20), "MiB of names");
    'contents: for (binary, archs) in contents.toc {
        for (arch, entry) in archs {
            if let Err(why) = limit.take((binary.len() + arch.len()) as u64) {
                let problem = error!(at; "a kpack archive has {why}: the rest is not read");
                kpack.problems.push(problem);
                break 'contents;
            }
            let name = format!("kernels of {binary} for {arch}");
            let n = usize::try_from(entry.ordinal).unwrap_or(usize::MAX);
            let Some(&Blob { offset, size }) = blobs.get(n) else {
                kpack
                    .problems
                    .push(error!(at; "{name}: ordinal {n}, but there are {} blobs", blobs.len()));
                continue;
            };
            if std::mem::replace(&mut seen[n], true) {
                kpack
                    .problems
                    .push(error!(offset; "{name}: another entry has the same ordinal"));
                continue;
            }
            if bytes.slice(offset, size).is_err() {
                kpack.problems.push(
                    error!(offset; "{name} ({size} bytes) extend past the end of the archive"),
                );
                continue;
            }
            kpack.kernels.push(Kernels {
                binary: binary.clone(),
                arch,
                kind: entry.kind,
                at: offset,
                size,
                packed,
                unpacked: entry.original_size,
            });
        }
    }
    kpack.kernels.sort_by_key(|kernels| kernels.at);
    let mut end = 0;
    let problems = &mut kpack.problems;
    kpack.kernels.retain(|kernels| {
        let is_separate = kernels.at >= end;
        if is_separate {
            end = kernels.at + kernels.size;
        } else {
            let (binary, arch) = (&kernels.binary, &kernels.arch);
            problems.push(error!(kernels.at; "kernels of {binary} for {arch} overlap others"));
        }
        is_separate
    });
    Ok(kpack)
}

/// The locations of the compressed code objects. The archive has their number, then the size and the bytes of each.
fn frames(bytes: &Bytes, contents: &Contents) -> Result<Vec<Blob>, Error> {
    let start = contents.zstd_offset;
    let all = bytes
        .slice(start, contents.zstd_size)
        .map_err(|_| error!(start; "the compressed kernels extend past the end of the archive"))?;
    let number = |at: u64| -> Result<u64, Error> {
        let word = all
            .read(at, 4)
            .map_err(|_| Error::new(start + at, "truncated sizes of the compressed kernels"))?;
        Ok(u64::from(u32::from_le_bytes(
            word.try_into().unwrap_or_default(),
        )))
    };
    let count = number(0)?;
    let mut frames = Vec::new();
    let mut at = 4;
    for _ in 0..count {
        let size = number(at)?;
        frames.push(Blob {
            offset: start + at + 4,
            size,
        });
        at += 4 + size;
    }
    Ok(frames)
}

/// The kpack archives to which the code objects of a host binary were moved (section `.rocm_kpack_ref`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Reference {
    /// The binary's name in the archives.
    #[serde(rename(deserialize = "kernel_name"), default)]
    pub binary: String,
    /// Paths relative to the binary. `@GFXARCH@` stands for the architecture.
    #[serde(rename(deserialize = "kpack_search_paths"), default)]
    pub archives: Vec<String>,
}

/// Reads the contents of the section `.rocm_kpack_ref`.
pub fn reference(bytes: &[u8]) -> Result<Reference, Error> {
    let mut decoder = rmp_serde::Deserializer::from_read_ref(bytes);
    decoder.set_max_depth(64);
    Reference::deserialize(&mut decoder)
        .map_err(|error| error!(0; "reference to kpack archives: {error}"))
}
