//! Small files whose readers would need much memory, disk or time without limits.

use crate::corpus::{
    Fat, LZ4, Method, RAW_11, bundle, fat_binary, fat_stored, head, packed, words,
};
use profraw::format::{Header, V10};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// The id of the entries in bundles.
const TARGET: &str = "hip-amdgcn-amd-amdhsa--gfx1100";

/// A file, and what reading it reports.
pub struct Hostile {
    pub name: &'static str,
    /// The commands that read it, with `FILE` for its path and `DIR` for a directory.
    pub arguments: &'static [&'static str],
    pub bytes: fn() -> Vec<u8>,
    /// The file is extended to this size by a hole, in bytes.
    pub size: Option<u64>,
    /// A part of a message on stderr, which names the limit.
    pub message: &'static str,
}

const INSPECT: &[&str] = &["inspect", "FILE"];

/// All files.
pub const FILES: [Hostile; 8] = [
    Hostile {
        name: "tables-of-symbols.cubin",
        arguments: INSPECT,
        bytes: || {
            cubin(
                80,
                &(0..2000).map(|n| &SHARED[n * 17..]).collect::<Vec<_>>(),
            )
        },
        size: None,
        message: "more than 1 MiB of names of symbols",
    },
    Hostile {
        name: "demangled-name.cubin",
        arguments: &["inspect", "--kernels", "FILE"],
        bytes: || cubin(1, &[&pairs()]),
        size: None,
        message: "demangled, one has more than 1 MiB",
    },
    Hostile {
        name: "nested.bundle",
        arguments: INSPECT,
        bytes: || {
            let inner = large_bundle(256).repeat(300);
            packed(&bundle(&[(TARGET, &inner)]), Method::Zstd, 3)
        },
        size: None,
        message: "claim to unpack to 268435456: more than 512 MiB of unpacked data",
    },
    Hostile {
        name: "4-gib.bundle",
        arguments: INSPECT,
        bytes: || large_bundle(4096),
        size: None,
        message: "claim to unpack to 4294967296: more than 512 MiB of unpacked data",
    },
    Hostile {
        name: "3-gib.bundles",
        arguments: &["extract", "FILE", "-o", "DIR/out"],
        bytes: || large_bundle(256).repeat(12),
        size: None,
        message: "claim to unpack to 268435456: more than 512 MiB of unpacked data",
    },
    Hostile {
        name: "lz4.fatbin",
        arguments: INSPECT,
        bytes: lz4,
        size: None,
        message: "claim to unpack to 2040000025: more than 763 MiB of unpacked data",
    },
    Hostile {
        name: "shared.profraw",
        arguments: &["merge", "FILE", "-o", "DIR/merged.profdata"],
        bytes: || profile(100_000, 100_000, 100_000),
        size: None,
        message: "the records up to it claim 200000 counters, but there are 100000",
    },
    Hostile {
        name: "sparse.profraw",
        arguments: &["merge", "FILE", "-o", "DIR/merged.profdata"],
        bytes: || profile(1, (2 << 40) / 8 - 1000, 0),
        size: Some(2 << 40),
        message: "more than 4096 MiB of raw profiles: the file has 2199023255552 bytes",
    },
];

impl Hostile {
    /// Writes the file to a directory.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&(self.bytes)())?;
        match self.size {
            Some(size) => file.set_len(size),
            None => Ok(()),
        }
    }
}

/// Names that share their bytes: each begins in it, and has the rest.
const SHARED: &[u8] = &[b'n'; 34_000];

/// A function's symbol of which each type is a pair of the previous one twice. Its name in the source has more than 2^30
/// types.
pub fn pairs() -> Vec<u8> {
    let digits = "0123456789ABCDEFGHIJKLMNOPQRST".chars();
    let pairs: String = digits.map(|n| format!("S_IS{n}_S{n}_E")).collect();
    format!("_Z1f1PIiiES_IS0_S0_E{pairs}").into_bytes()
}

/// A cubin of which each kernel has a symbol that `tables` section headers have. Names that are the end of the first one share
/// its bytes.
pub fn cubin(tables: usize, names: &[&[u8]]) -> Vec<u8> {
    let (header, section, symbol) = (64, 64, 24);
    let longest = names.first().copied().unwrap_or_default();
    let mut strings = vec![0];
    strings.extend(longest);
    strings.push(0);
    let symbols_at = header + strings.len();
    let symbols_size = symbol * names.len();
    let sections_at = symbols_at + symbols_size;
    let mut cubin = b"\x7fELF\x02\x01\x01\x41\x08".to_vec();
    cubin.resize(16, 0);
    // ET_EXEC for EM_CUDA, and the flags of sm_90.
    cubin.extend([2, 0, 190, 0, 1, 0, 0, 0]);
    cubin.extend(words([0, 0, sections_at as u64]));
    cubin.extend([4, 90, 0, 6, 64, 0, 56, 0, 0, 0, 64, 0]);
    cubin.extend((tables as u16 + 2).to_le_bytes());
    cubin.extend([0, 0]);
    cubin.extend(&strings);
    for name in names {
        let at = 1 + longest.len() - name.len();
        cubin.extend((at as u32).to_le_bytes());
        // STT_FUNC, STO_CUDA_ENTRY, in section 1.
        cubin.extend([0x12, 0x10, 1, 0]);
        cubin.extend(words([0, 16]));
    }
    let mut headers = vec![0; section];
    let mut add = |kind: u64, at: usize, size: usize, link: u64, entry: usize| {
        headers.extend(words([
            kind << 32,
            0,
            0,
            at as u64,
            size as u64,
            link,
            0,
            entry as u64,
        ]));
    };
    add(3, header, strings.len(), 0, 0);
    for _ in 0..tables {
        add(2, symbols_at, symbols_size, 1, symbol);
    }
    cubin.extend(headers);
    cubin
}

/// A compressed bundle of `mib` MiB. Its entry is the beginning of a code object and zeros.
fn large_bundle(mib: u64) -> Vec<u8> {
    /// Bytes of a block, the most that zstd permits.
    const BLOCK: u64 = 128 << 10;
    let size = mib << 20;
    let mut start = bundle(&[(TARGET, &head(RAW_11))]);
    // The size of the entry.
    start[40..48].copy_from_slice(&(size - 4096).to_le_bytes());
    start.resize(BLOCK as usize, 0);
    // A frame without the size of its contents, and a window of 128 KiB.
    let mut stream = b"\x28\xb5\x2f\xfd\x00\x38".to_vec();
    let mut block = |kind: u64, is_last: u64, contents: &[u8]| {
        let header = BLOCK << 3 | kind << 1 | is_last;
        stream.extend(&header.to_le_bytes()[..3]);
        stream.extend(contents);
    };
    let (raw, repeated) = (0, 1);
    block(raw, 0, &start);
    let more = size / BLOCK - 1;
    for n in 1..=more {
        block(repeated, u64::from(n == more), &[0]);
    }
    let mut packed = packed(b"", Method::Zstd, 3);
    packed.truncate(32);
    packed.extend(&stream);
    let header = words([32 + stream.len() as u64, size]);
    packed[8..24].copy_from_slice(&header);
    packed
}

/// A fat binary of 8 MB with an entry that LZ4 unpacks to 255 times its size: a zero, and a match that repeats it.
fn lz4() -> Vec<u8> {
    const EXTENSIONS: usize = 8_000_000;
    let repeat = [&[0x1f, 0, 1, 0], &vec![0xff; EXTENSIONS][..], &[0]].concat();
    let end = [0x50, 1, 2, 3, 4, 5];
    let unpacked = 1 + 4 + 15 + 255 * EXTENSIONS + 5;
    let stored = [&repeat[..], &end].concat();
    fat_binary(&[fat_stored(Fat::Cubin, 90, LZ4, stored, unpacked)])
}

/// A raw profile of which each record claims `claimed` counters from the first one on.
pub fn profile(records: u64, counters: u64, claimed: u32) -> Vec<u8> {
    let record = V10.record as u64;
    let header = Header {
        version: V10.version,
        num_data: records,
        num_counters: counters,
        counters_delta: records * record,
        ..Header::default()
    };
    let mut all = header.words();
    for n in 0..records {
        let pointer = (records - n) * record;
        all.extend([n, 0, pointer, 0, 0, 0, u64::from(claimed), 0]);
    }
    if claimed > 0 {
        all.extend(vec![0; counters as usize]);
    }
    words(all)
}
