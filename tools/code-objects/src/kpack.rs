//! ROCm's kpack archive: the kernels of a whole installation for one family of GPUs, taken out of its libraries. A
//! header, the code objects (each a zstd frame, or as they are), a table of contents in msgpack.

use crate::bytes::{Bad, Bytes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const MAGIC: &[u8] = b"KPAK";
/// A table of contents beyond this is a damaged offset.
const MOST_CONTENTS: u64 = 256 << 20;

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
    /// By the binary that they were in, and the architecture.
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
    /// What they were taken from.
    pub binary: String,
    pub arch: String,
    /// `hsaco`.
    pub kind: String,
    /// From the archive's beginning.
    pub at: u64,
    pub size: u64,
    /// They are packed.
    pub packed: bool,
    /// Bytes when unpacked, if that is told.
    pub unpacked: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kpack {
    pub group: String,
    pub family: String,
    pub packed: bool,
    /// In the order of their bytes.
    pub kernels: Vec<Kernels>,
    pub problems: Vec<Bad>,
}

pub fn read(bytes: &Bytes) -> Result<Kpack, Bad> {
    let head = bytes
        .read(0, 16)
        .map_err(|_| Bad::new(0, "the header of a kpack archive is cut off"))?;
    if !head.starts_with(MAGIC) {
        return Err(Bad::new(0, "no kpack archive"));
    }
    let version = u32::from_le_bytes(head[4..8].try_into().unwrap_or_default());
    if version != 1 {
        let what = format!("a kpack archive of version {version}; version 1 is known");
        return Err(Bad::new(4, what));
    }
    let at = u64::from_le_bytes(head[8..16].try_into().unwrap_or_default());
    let there = bytes.size();
    if at < 16 || at >= there {
        let what = format!("the contents are said to be at byte {at} of {there}");
        return Err(Bad::new(8, what));
    }
    if there - at > MOST_CONTENTS {
        let what = format!("a table of contents of {} bytes", there - at);
        return Err(Bad::new(8, what));
    }
    let table = bytes.read(at, there - at)?;
    let mut decoder = rmp_serde::Deserializer::from_read_ref(&table);
    decoder.set_max_depth(64);
    let contents = Contents::deserialize(&mut decoder)
        .map_err(|error| Bad::new(at, format!("the table of contents: {error}")))?;
    let (places, packed) = match contents.compression_scheme.as_deref() {
        None | Some("none") => (contents.blobs.clone(), false),
        Some("zstd-per-kernel") => (frames(bytes, &contents)?, true),
        Some(other) => {
            let what = format!("a kpack archive compressed as \"{other}\", which is not known");
            return Err(Bad::new(at, what));
        }
    };
    let mut kpack = Kpack {
        group: contents.group_name,
        family: contents.gfx_arch_family,
        packed,
        ..Kpack::default()
    };
    let mut seen = vec![false; places.len()];
    for (binary, archs) in contents.toc {
        for (arch, entry) in archs {
            let name = format!("the kernels of {binary} for {arch}");
            let n = usize::try_from(entry.ordinal).unwrap_or(usize::MAX);
            let Some(&Blob { offset, size }) = places.get(n) else {
                let what = format!("{name} are number {n} of {}", places.len());
                kpack.problems.push(Bad::new(at, what));
                continue;
            };
            if std::mem::replace(&mut seen[n], true) {
                let what = format!("{name} are those of another entry");
                kpack.problems.push(Bad::new(offset, what));
                continue;
            }
            if bytes.slice(offset, size).is_err() {
                let what = format!("{name} of {size} bytes end beyond the archive");
                kpack.problems.push(Bad::new(offset, what));
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
        let apart = kernels.at >= end;
        if apart {
            end = kernels.at + kernels.size;
        } else {
            let (binary, arch) = (&kernels.binary, &kernels.arch);
            let what = format!("the kernels of {binary} for {arch} lie over others");
            problems.push(Bad::new(kernels.at, what));
        }
        apart
    });
    Ok(kpack)
}

/// Where the frames are: a number of them, then each behind its size.
fn frames(bytes: &Bytes, contents: &Contents) -> Result<Vec<Blob>, Bad> {
    let start = contents.zstd_offset;
    let all = bytes
        .slice(start, contents.zstd_size)
        .map_err(|_| Bad::new(start, "the compressed kernels end beyond the archive"))?;
    let number = |at: u64| -> Result<u64, Bad> {
        let word = all.read(at, 4).map_err(|_| {
            Bad::new(
                start + at,
                "the sizes of the compressed kernels are cut off",
            )
        })?;
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

/// What a host binary says about the kernels that were taken out of it (`.rocm_kpack_ref`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Reference {
    /// The binary's name in the archives.
    #[serde(rename(deserialize = "kernel_name"), default)]
    pub binary: String,
    /// Relative to the binary; `@GFXARCH@` stands for the architecture.
    #[serde(rename(deserialize = "kpack_search_paths"), default)]
    pub archives: Vec<String>,
}

pub fn reference(bytes: &[u8]) -> Result<Reference, Bad> {
    let mut decoder = rmp_serde::Deserializer::from_read_ref(bytes);
    decoder.set_max_depth(64);
    Reference::deserialize(&mut decoder)
        .map_err(|error| Bad::new(0, format!("the reference to kpack archives: {error}")))
}
