//! The seeds of the fuzz targets: small files of every kind that the readers support, made from the fixtures.

use profraw::format::Header;
use serde_json::json;
use std::io::Write;
use tracefile::format::{
    Agent, Call, Count, Counter, Dispatch, HEADER_SIZE, Kernel, Process, Queue, RECORD_SIZE,
    Record, pieces,
};
use zerocopy::IntoBytes;

#[derive(Clone, Copy)]
pub enum Method {
    Zlib,
    Zstd,
}

const RAW_10: &[u8] = include_bytes!("../../../fixtures/counted.raw10.co");
pub const RAW_11: &[u8] = include_bytes!("../../../fixtures/counted.raw11.co");
const CUBIN: &[u8] = include_bytes!("../../../fixtures/counted.cubin");

/// A kernel with a loop, inlined code and a scope, and what else can be in a module.
const PTX: &str = r#"//
.version 9.0
.target sm_90, debug
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 text[3] = {120, 37, 0};
.visible .entry k(.param .u64 p) .maxntid 32, 1, 1
{
.reg .pred %p<3>;
.loc 1 5 0
ld.param.u64 %rd1, [p]; /* an argument */
L: .pragma "nounroll";
.loc 2 4 1, function_name $L__info_string0+4, inlined_at 1 6 3
{ .reg .b32 r; call.uni (r), vprintf, (%rd1, %rd1); }
.loc 1 7 1
@!%p1 bra L;
t: .branchtargets L, E;
brx.idx %r1, t;
E: ret;
}
.file 1 "/a.cu", 12, 34
.file 2 "a.h"
.section .debug_str { $L__info_string0: .b8 0 }
"#;

/// The seeds of a target, by name.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let plain = bundle(&[
        ("host-x86_64-unknown-linux-gnu-", b""),
        ("hip-amdgcn-amd-amdhsa--gfx90a:xnack+", RAW_10),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", RAW_11),
    ]);
    let small = bundle(&[("hip-amdgcn-amd-amdhsa--gfx1100", &head(RAW_11))]);
    let seeds: Vec<(&str, Vec<u8>)> = match target {
        "bundle" => {
            let mut several = plain.clone();
            several.resize(several.len().next_multiple_of(4096), 0);
            several.extend_from_slice(&small);
            let long = [("a.o", &small[..]), ("long-name-of-a-member.o", &plain)];
            let nested = archive(&[("a.o", RAW_11)]);
            vec![
                ("archive", archive(&long)),
                ("nested", archive(&[("inner.a", &nested)])),
                ("thin", b"!<thin>\n//                                              6         `\nfuzz/\n\n/0              0           0     0     644     100       `\n".to_vec()),
                ("offload-1", offload(1, &[RAW_11])),
                ("offload-2", offload(2, &[RAW_10, RAW_11])),
                ("kpack", kpack(Some(RAW_11), None)),
                ("kpack-zstd", kpack(None, Some(RAW_11))),
                ("several", several),
                ("two-targets", plain),
                ("small", small),
            ]
        }
        "packed" => {
            let (zlib, zstd) = (Method::Zlib, Method::Zstd);
            let two = [
                packed(&small, zstd, 2),
                vec![0; 96],
                packed(&plain, zlib, 1),
            ];
            vec![
                ("plain-in-zlib", [&[0], &plain[..]].concat()),
                ("plain-in-zstd", [&[1], &plain[..]].concat()),
                ("small-in-zlib", [&[0], &small[..]].concat()),
                ("small-in-zstd", [&[1], &small[..]].concat()),
                ("zlib-1", packed(&small, zlib, 1)),
                ("zstd-1", packed(&small, zstd, 1)),
                ("zlib-2", packed(&small, zlib, 2)),
                ("zstd-2", packed(&small, zstd, 2)),
                ("zlib-3", packed(&small, zlib, 3)),
                ("zstd-3", packed(&small, zstd, 3)),
                ("two", two.concat()),
            ]
        }
        "fatbin" => {
            let mut start = head(CUBIN);
            // The program headers are at the end of a cubin. e_phoff, and e_phnum.
            start[32..40].fill(0);
            start[56..58].fill(0);
            let ptx = |arch, compression| {
                let text = format!(".version 9.0\n.target sm_{arch}\n");
                fat_entry(Fat::Ptx, arch, compression, text.as_bytes())
            };
            let all = [
                ptx(80, Compression::None),
                ptx(90, Compression::Zstd),
                fat_entry(Fat::Cubin, 80, Compression::None, &start),
                fat_entry(Fat::Cubin, 86, Compression::Lz4, &start),
                fat_entry(Fat::Cubin, 90, Compression::Zstd, &start),
            ];
            let complete = fat_entry(Fat::Cubin, 90, Compression::None, CUBIN);
            let both = [fat_binary(&all), fat_binary(&[complete])];
            vec![("entries", both[0].clone()), ("two", both.concat())]
        }
        "demangle" => [
            ("plain", "branch"),
            (
                "template",
                "_ZN3foo3bazIiEEvT_St6vectorIS2_IS1_SaIS1_EESaIS4_EE",
            ),
            ("lambda", "a.hip;_ZZ4mainENKUlT_E0_clIiEEDaS_"),
            ("internal", "_ZL4statPi.intern.7475e112c114f8e7"),
            ("pairs", "_Z1f1PIiiES_IS0_S0_ES_IS1_S1_ES_IS2_S2_E"),
        ]
        .map(|(name, symbol)| (name, symbol.into()))
        .into(),
        "lcov" | "markdown" => vec![
            (
                "functions",
                b"_Z1av\0a.hip\0_Z1bIiEvv\0a.hip\0_Z1bIjEvv\0b.h".to_vec(),
            ),
            ("breaks", b"a\nSF:/etc/passwd\0a\r.hip".to_vec()),
            ("markup", b"`a_b` <x>\0[a](b) `` ` ``` | \\".to_vec()),
        ],
        "mapping" => {
            let record = [words([7, 99 << 32 | 4, 1 << 32]), vec![0; 8]].concat();
            vec![
                ("code-object", RAW_11.to_vec()),
                ("cubin", CUBIN.to_vec()),
                ("section", [&[0], &record[..], &record].concat()),
            ]
        }
        "runlog" => vec![
            (
                "lost",
                b"7 loaded /a\n7 code \n7 mapped /l\\n\n7 lost a\n8 lost a\n".to_vec(),
            ),
            (
                "wrote",
                b"7 wrote /p\n8 added /p\n8 traced /t\n7 ended \n9 later x\n".to_vec(),
            ),
        ],
        "profraw" | "summary" => vec![
            ("host", profile(10, &[16, 8])),
            ("gpu", profile(11, &[])),
            ("two", [profile(10, &[]), profile(10, &[24])].concat()),
            ("ten", profile(10, &[])),
        ],
        "ptx" => vec![("loop", PTX.into())],
        "trace" => [("as-it-is", 0), ("sealed", 3), ("header-sealed", 1)]
            .map(|(name, choice)| (name, [vec![choice], trace()].concat()))
            .into(),
        _ => vec![
            ("raw-10", RAW_10.to_vec()),
            ("raw-11", RAW_11.to_vec()),
            ("head", head(RAW_11)),
            ("cubin", CUBIN.to_vec()),
        ],
    };
    let seeds = seeds.into_iter();
    seeds.map(|(name, seed)| (name.into(), seed)).collect()
}

/// The kind of an entry of a fat binary.
#[derive(Clone, Copy)]
pub enum Fat {
    Ptx = 1,
    Cubin = 2,
}

/// The compression of an entry of a fat binary.
#[derive(Clone, Copy)]
pub enum Compression {
    None,
    Lz4,
    Zstd,
}

/// A fat binary of CUDA.
pub fn fat_binary(entries: &[Vec<u8>]) -> Vec<u8> {
    let size: usize = entries.iter().map(Vec::len).sum();
    let head = [
        b"\x50\xed\x55\xba\x01\0\x10\0",
        &(size as u64).to_le_bytes()[..],
    ];
    [head.concat(), entries.concat()].concat()
}

/// An entry of a fat binary, with its header. `arch`: 90 for sm_90.
pub fn fat_entry(kind: Fat, arch: u32, compression: Compression, contents: &[u8]) -> Vec<u8> {
    let (flag, stored) = match compression {
        Compression::None => (0, contents.to_vec()),
        Compression::Lz4 => (LZ4, lz4_flex::block::compress(contents)),
        // Compressing in memory does not fail.
        Compression::Zstd => (0x8000, zstd::encode_all(contents, 3).unwrap_or_default()),
    };
    fat_stored(kind, arch, flag, stored, contents.len())
}

/// In the flags of an entry: it is compressed with LZ4.
pub const LZ4: u64 = 0x2000;

/// An entry whose contents may be compressed, according to `flag`: 0 if they are not.
pub fn fat_stored(
    kind: Fat,
    arch: u32,
    flag: u64,
    mut stored: Vec<u8>,
    unpacked: usize,
) -> Vec<u8> {
    let (packed, unpacked) = match flag {
        0 => (0, 0),
        _ => (stored.len() as u64, unpacked as u64),
    };
    stored.resize(stored.len().next_multiple_of(8), 0);
    let kind = kind as u64 | 0x101 << 16 | 64 << 32;
    let (arch, size) = (9 << 16 | u64::from(arch) << 32, stored.len() as u64);
    let header = words([kind, size, packed, arch, 0, 0x11 | flag, 0, unpacked]);
    [header, stored].concat()
}

/// A raw profile of two functions. `values`: the sizes of the value profiles of the first functions, in bytes.
pub fn profile(version: u64, values: &[u8]) -> Vec<u8> {
    let has_uniform = version > 10;
    let record: u64 = if has_uniform { 72 } else { 64 };
    let counters = 2 * record;
    let header = Header {
        version,
        binary_ids: 16,
        num_data: 2,
        num_counters: 3,
        num_uniform: if has_uniform { 3 } else { 0 },
        uniform_delta: if has_uniform { counters + 24 } else { 0 },
        counters_delta: counters,
        names: 9,
        ..Header::default()
    };
    let mut words = header.words();
    words.extend([8, u64::from_le_bytes(*b"build-id")]);
    for (n, (count, first)) in [(1u64, 0u64), (2, 8)].into_iter().enumerate() {
        let back = n as u64 * record;
        words.extend([7 + n as u64, 99, counters + first - back]);
        if has_uniform {
            words.push(counters + 24 + first - back);
        }
        words.extend([0; 3]);
        let sites = u64::from(n < values.len());
        words.extend([count | sites << 32, u64::from(has_uniform) << 21]);
    }
    words.extend([1000, 24, 500]);
    if has_uniform {
        words.extend([992, 0, 480]);
    }
    let mut bytes = self::words(words);
    bytes.extend(b"\x07\0one\x01two\0\0\0\0\0\0\0");
    for &size in values {
        let at = bytes.len();
        bytes.resize(at + usize::from(size), 0);
        bytes[at] = size;
    }
    bytes
}

/// A trace with all kinds of records.
pub fn trace() -> Vec<u8> {
    let header = tracefile::format::Header::new(4242, 1_000_000_000, 1000, 1_700_000_000);
    let mut records: Vec<[u8; RECORD_SIZE]> = pieces(1, "gfx1100").map(Record::seal).collect();
    records.extend(pieces(2, &"name".repeat(60)).map(Record::seal));
    let mut process = Process::new(4242, 0);
    process.command = 2.into();
    let mut agent = Agent::new(1, 0);
    agent.name = 1.into();
    let mut kernel = Kernel::new(1, 0);
    kernel.name = 2.into();
    records.extend([
        process.seal(),
        agent.seal(),
        Queue::new(1, 0).seal(),
        kernel.seal(),
        Call::new(1, 0).seal(),
        Dispatch::new(1, 0).seal(),
    ]);
    let mut bytes = header.page().to_vec();
    let number = Counter::new(records.len() as u64);
    let at = Count::Records.offset();
    bytes[at..at + size_of::<Counter>()].copy_from_slice(number.as_bytes());
    bytes.extend(records.concat());
    bytes
}

/// Corrects the checksum of a trace's header, if it has a complete one.
pub fn seal_header(bytes: &mut [u8]) {
    let size = size_of::<tracefile::format::Header>();
    if let Some(head) = bytes.get_mut(..size) {
        let crc = crc32fast::hash(&head[..size - 4]);
        head[size - 4..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Corrects the checksums of all records of a trace.
pub fn seal_records(bytes: &mut [u8]) {
    for record in bytes
        .get_mut(HEADER_SIZE..)
        .unwrap_or_default()
        .chunks_exact_mut(RECORD_SIZE)
    {
        let crc = tracefile::format::checksum(record);
        record[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The beginning of a code object: headers and notes, without section headers.
pub fn head(object: &[u8]) -> Vec<u8> {
    let mut head = object[..object.len().min(4096)].to_vec();
    // e_shoff, and e_shnum with e_shstrndx.
    head[40..48].fill(0);
    head[60..64].fill(0);
    head
}

/// An offload bundle with entries at multiples of 4,096 bytes.
pub fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend((entries.len() as u64).to_le_bytes());
    let mut at = 4096u64;
    for (id, bytes) in entries {
        bundle.extend(words([at, bytes.len() as u64, id.len() as u64]));
        bundle.extend_from_slice(id.as_bytes());
        at = (at + bytes.len() as u64).next_multiple_of(4096);
    }
    for (_, bytes) in entries.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        bundle.resize(bundle.len().next_multiple_of(4096), 0);
        bundle.extend_from_slice(bytes);
    }
    bundle
}

/// A compressed bundle with a header of this version.
pub fn packed(bundle: &[u8], method: Method, version: u16) -> Vec<u8> {
    let stream = match method {
        Method::Zlib => {
            let mut encoder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            // Writing to memory does not fail.
            let _ = encoder.write_all(bundle);
            encoder.finish().unwrap_or_default()
        }
        Method::Zstd => zstd::encode_all(bundle, 1).unwrap_or_default(),
    };
    let mut packed = b"CCOB".to_vec();
    packed.extend(version.to_le_bytes());
    packed.extend((method as u16).to_le_bytes());
    // The size of a number, and of the header.
    let (long, header) = [(4, 20), (4, 24), (8, 32)][usize::from(version.clamp(1, 3)) - 1];
    let size = if version > 1 {
        Some(header + stream.len())
    } else {
        None
    };
    for number in size.into_iter().chain([bundle.len()]) {
        packed.extend(&(number as u64).to_le_bytes()[..long]);
    }
    packed.extend([0; 8]);
    packed.extend(stream);
    packed
}

/// A static archive in GNU's format.
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let header = |name: &str, size: usize| format!("{name:<16}{:<32}{size:<10}`\n", "0");
    let mut names = String::new();
    let mut body = Vec::new();
    for (name, bytes) in members {
        let short = if name.len() < 16 {
            format!("{name}/")
        } else {
            let at = names.len();
            names += &format!("{name}/\n");
            format!("/{at}")
        };
        body.extend(header(&short, bytes.len()).bytes());
        body.extend_from_slice(bytes);
        body.resize(body.len().next_multiple_of(2), b'\n');
    }
    let mut archive = b"!<arch>\n".to_vec();
    if !names.is_empty() {
        archive.extend(header("//", names.len()).bytes());
        archive.extend(names.bytes());
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive.extend(body);
    archive
}

/// LLVM's offload binary.
pub fn offload(version: u32, images: &[&[u8]]) -> Vec<u8> {
    let mut strings = Vec::new();
    let mut append = |text: &str| {
        let at = strings.len();
        strings.extend(text.bytes());
        strings.push(0);
        at as u64
    };
    let pairs = [("triple", "amdgcn-amd-amdhsa"), ("arch", "gfx1100")]
        .map(|(key, value)| (append(key), append(value), value.len() as u64));
    let pair = if version == 1 { 16 } else { 24 };
    let entries = 32;
    let tables = entries + 40 * images.len() as u64;
    let texts = tables + pair * (pairs.len() * images.len()) as u64;
    let mut at = (texts + strings.len() as u64).next_multiple_of(8);
    let mut binary = vec![0x10, 0xff, 0x10, 0xad];
    binary.extend(version.to_le_bytes());
    let mut body = Vec::new();
    let mut table = Vec::new();
    for (n, image) in images.iter().enumerate() {
        body.extend([1, 0, 4, 0, 0, 0, 0, 0]);
        let strings = tables + pair * (pairs.len() * n) as u64;
        body.extend(words([strings, pairs.len() as u64, at, image.len() as u64]));
        for (key, value, size) in pairs {
            let all = words([texts + key, texts + value, size]);
            table.extend(&all[..pair as usize]);
        }
        at = (at + image.len() as u64).next_multiple_of(8);
    }
    let second = if version == 1 {
        40
    } else {
        images.len() as u64
    };
    binary.extend([words([at, entries, second]), body, table, strings].concat());
    for image in images {
        binary.resize(binary.len().next_multiple_of(8), 0);
        binary.extend_from_slice(image);
    }
    binary.resize(at as usize, 0);
    binary
}

/// A kpack archive with one code object, which is compressed with zstd or not.
pub fn kpack(plain: Option<&[u8]>, compressed: Option<&[u8]>) -> Vec<u8> {
    let object = plain.or(compressed).unwrap_or_default();
    let (scheme, body) = match compressed {
        None => ("none", object.to_vec()),
        Some(object) => {
            let frame = zstd::encode_all(object, 1).unwrap_or_default();
            let sizes = [1u32.to_le_bytes(), (frame.len() as u32).to_le_bytes()];
            ("zstd-per-kernel", [sizes.concat(), frame].concat())
        }
    };
    let size = body.len() as u64;
    let entry = json!({"type": "hsaco", "ordinal": 0, "original_size": object.len()});
    let contents = json!({
        "format_version": 1,
        "group_name": "rand",
        "gfx_arch_family": "gfx110X",
        "gfx_arches": ["gfx1100"],
        "compression_scheme": scheme,
        "blobs": [{"offset": 64, "size": size}],
        "zstd_offset": 64,
        "zstd_size": size,
        "toc": {"lib/librocrand.so.1": {"gfx1100": entry}},
    });
    let mut archive = b"KPAK\x01\0\0\0".to_vec();
    archive.extend((64 + size).to_le_bytes());
    archive.resize(64, 0);
    archive.extend(body);
    archive.extend(rmp_serde::to_vec_named(&contents).unwrap_or_default());
    archive
}

/// The bytes of 64-bit words.
pub fn words(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}
