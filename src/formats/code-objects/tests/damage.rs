//! Damaged and hostile files: damage is reported with its file and offset, and the rest is still found.

mod common;

use code_objects::{Bytes, Found, Options, What, walk, walk_bytes};
use common::{assert_pattern, with};
use fuzz::corpus::{Method, archive, bundle, kpack, offload, packed};
use fuzz::hostile::cubin;
use std::ops::ControlFlow;
use std::path::Path;

const OBJECT: &[u8] = include_bytes!("../../../../fixtures/counted.raw11.co");
const OTHER: &[u8] = include_bytes!("../../../../fixtures/counted.raw10.co");

/// The number of code objects in a file, and the messages about damage.
fn read(bytes: Vec<u8>) -> (usize, Vec<String>) {
    let mut seen = Seen::default();
    walk_bytes(
        Path::new("f"),
        Bytes::of_memory(bytes),
        Options::default(),
        &mut |found| seen.take(found),
    );
    (seen.objects, seen.damage)
}

#[derive(Default)]
struct Seen {
    objects: usize,
    damage: Vec<String>,
}

impl Seen {
    fn take(&mut self, found: Found) -> ControlFlow<()> {
        match &found.what {
            What::CodeObject(_) => self.objects += 1,
            What::Damage { why } => self.damage.push(format!("{}: {why}", found.location)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn two() -> Vec<u8> {
    bundle(&[
        ("hip-amdgcn-amd-amdhsa--gfx900", OTHER),
        ("hip-amdgcn-amd-amdhsa--gfx1100", OBJECT),
    ])
}

/// Where the second entry's offset is in the header of [`two`].
const SECOND: usize = 32 + 24 + 29;

#[test]
fn an_entry_that_claims_2_to_the_60_bytes_is_reported_and_the_other_one_found() {
    for file in [
        with(two(), SECOND + 8, 1 << 60),
        with(two(), SECOND, u64::MAX - 8),
    ] {
        let (objects, damage) = read(file.clone());
        assert_eq!(objects, 1, "{damage:?}");
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_pattern(
            &damage[0],
            "f: bundle 1, at 0x*entry 2 hip-amdgcn-amd-amdhsa--gfx1100*",
        );
        // Also in a compressed bundle.
        let (objects, damage) = read(packed(&file, Method::Zstd, 3));
        assert_eq!(objects, 1, "{damage:?}");
        assert_pattern(&damage[0], "f: bundle 1, unpacked, at 0x*");
    }
    let (objects, damage) = read(with(two(), 24, 1 << 60));
    assert_eq!(objects, 0);
    assert_eq!(
        damage,
        ["f: bundle 1, at 0x18: an offload bundle claims 1152921504606846976 entries"]
    );
}

#[test]
fn overlapping_entries_are_reported() {
    let (objects, damage) = read(with(two(), SECOND, 4096));
    assert_eq!(objects, 1);
    assert_eq!(
        damage,
        [
            "f: bundle 1, at 0x1000: entry 2 hip-amdgcn-amd-amdhsa--gfx1100 overlaps the data before it"
        ]
    );
}

#[test]
fn a_damaged_bundle_does_not_hide_the_next_one() {
    let mut file = with(two(), 24, 1 << 60);
    file.resize(file.len().next_multiple_of(4096), 0);
    file.extend(two());
    let (objects, damage) = read(file);
    assert_eq!((objects, damage.len()), (2, 1));
    let mut cut = packed(&two(), Method::Zlib, 2);
    let at = cut.len() / 2;
    cut[at..at + 64].fill(0xff);
    cut.extend(two());
    let (objects, damage) = read(cut);
    assert!(
        objects >= 2 && damage[0].contains("corrupt deflate stream"),
        "{damage:?}"
    );
}

#[test]
fn bombs_are_not_unpacked() {
    let mut bomb = packed(&two(), Method::Zstd, 3);
    bomb[16..24].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let (_, damage) = read(bomb);
    assert_pattern(
        &damage[0],
        "f: bundle 1, at 0x20: *bytes claim to unpack to 1152921504606846976: more than 512 MiB of unpacked data",
    );
    // Bundles that unpack to more, and to less, than they claim.
    for (claim, expected) in [
        (5000u64, "more bytes than claimed"),
        (1 << 20, "fewer than claimed"),
    ] {
        let inner = bundle(&[("hip-amdgcn-amd-amdhsa--gfx1100", &OBJECT[..64])]);
        let mut file = packed(&[inner, vec![0; 8192]].concat(), Method::Zlib, 3);
        file[16..24].copy_from_slice(&claim.to_le_bytes());
        let (_, damage) = read(file);
        assert!(
            damage.iter().any(|damage| damage.contains(expected)),
            "{damage:?}"
        );
    }
    let mut file = kpack(None, Some(OBJECT));
    let at = file
        .windows(13)
        .position(|w| w == b"original_size")
        .unwrap()
        + 13;
    // A smaller value for this u16: fewer bytes than the stream has.
    assert_eq!(file[at], 0xcd);
    file[at + 1] = 0;
    let (objects, damage) = read(file);
    assert_eq!(objects, 1, "the claimed bytes are read");
    let expected = "f: kernels of lib/librocrand.so.1 for gfx1100, at 0x48: cannot decompress (zstd): more bytes than claimed";
    assert_eq!(damage.last().unwrap(), expected);
}

#[test]
fn the_first_members_of_a_truncated_archive_are_found() {
    let complete = archive(&[("a.o", OBJECT), ("b.o", OTHER)]);
    let (objects, damage) = read(complete[..complete.len() - 100].to_vec());
    assert_eq!(objects, 1);
    let at = 8 + 60 + OBJECT.len().next_multiple_of(2);
    let size = OTHER.len();
    let expected =
        format!("f: at {at:#x}: member b.o/ ({size} bytes) extends past the end of the archive");
    assert_eq!(damage, [expected]);
}

#[test]
fn an_archive_that_contains_itself_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("loop.a");
    let member = |name: &str| format!("{name:<16}{:<32}{:<10}`\n", 0, 100);
    std::fs::write(dir.path().join("a.o"), OBJECT).unwrap();
    let text = format!(
        "!<thin>\n{}{}{}{}",
        member("loop.a/"),
        member("a.o/"),
        member("a.o/"),
        member("missing.o/")
    );
    std::fs::write(&file, text).unwrap();
    let mut seen = Seen::default();
    walk(&file, Options::default(), &mut |found| seen.take(found));
    assert_eq!(seen.objects, 1);
    assert_pattern(&seen.damage[0], "*loop.a): was read already*");
    assert_pattern(&seen.damage[1], "*a.o): was read already*");
    assert_pattern(&seen.damage[2], "*cannot be opened: No such file*");
    // Too many nested archives.
    let mut deep = OBJECT.to_vec();
    for _ in 0..20 {
        deep = archive(&[("inner.a", &deep)]);
    }
    let (objects, damage) = read(deep);
    assert_eq!(objects, 0);
    assert_pattern(&damage[0], "*more than 8 nested containers");
}

#[test]
fn sections_out_of_bounds_are_reported_and_the_rest_is_read() {
    // Of each section header of the code object, the offset (24) and the size (32) are made too large.
    let table = u64::from_le_bytes(OBJECT[40..48].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes(OBJECT[60..62].try_into().unwrap()));
    let mut reported = 0;
    for section in 1..count {
        for field in [24, 32] {
            let (objects, damage) =
                read(with(OBJECT.to_vec(), table + 64 * section + field, 1 << 60));
            assert_eq!(objects, 1, "section {section}");
            reported += usize::from(!damage.is_empty());
        }
    }
    // For sections without bytes in the file, any offset and size is valid.
    assert!(reported >= 2 * (count - 1) - 8, "{reported} of {count}");
    let (objects, damage) = read(with(OBJECT.to_vec(), 40, 1 << 60));
    assert_eq!(objects, 1);
    assert_pattern(
        &damage[0],
        "*section headers extend past the end of the ELF file*",
    );
}

#[test]
fn images_out_of_bounds_of_an_offload_binary_are_reported() {
    let file = offload(2, &[OTHER, OBJECT]);
    let (objects, damage) = read(with(file.clone(), 32 + 40 + 32, 1 << 60));
    assert_eq!(objects, 1);
    assert_eq!(
        damage,
        ["f: at 0x48: contents of image 2 out of bounds of the offload binary"]
    );
    let (_, damage) = read(with(file, 8, 1 << 60));
    assert_pattern(&damage[0], "*claims 1152921504606846976 bytes*");
}

/// A small compressed file can contain bundles with many long names.
#[test]
fn names_that_would_fill_memory_are_skipped() {
    let name = "n".repeat(1024);
    let entries: Vec<(&str, &[u8])> = (0..4096).map(|_| (name.as_str(), &b""[..])).collect();
    let one = packed(&bundle(&entries), Method::Zstd, 3);
    assert!(one.len() < 100_000, "{}", one.len());
    let (_, damage) = read(one.repeat(100));
    let last = damage.last().unwrap();
    assert_pattern(last, "*256 MiB of names: the rest is skipped");
}

/// Tables and names can share their bytes, and each part is small.
#[test]
fn limits_hold_for_all_parts_together() {
    let names: Vec<Vec<u8>> = (0..70_000).map(|n| vec![b'a'; n % 3 + 1]).collect();
    let mut names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let (objects, damage) = read(cubin(1, &names));
    let expected = "f: an ELF file has more than 65536 symbols: the rest is not read";
    assert_eq!((objects, damage), (1, vec![expected.to_owned()]));
    let (objects, damage) = read(cubin(2000, &names[..10_000]));
    let expected = "f: an ELF file has more than 1 MiB of tables of symbols: the rest is not read";
    assert_eq!((objects, damage), (1, vec![expected.to_owned()]));
    // Compressed bundles in compressed bundles.
    let mut inner = two();
    for _ in 0..3 {
        let nested = packed(&inner, Method::Zstd, 3);
        inner = bundle(&[("hip-amdgcn-amd-amdhsa--gfx1100", &nested)]);
    }
    let (objects, damage) = read(inner);
    assert_eq!(objects, 0);
    assert_pattern(&damage[0], "*more than 2 nested compressed containers");
    // Each image has the same table of 1,024 strings.
    let mut images = offload(2, &vec![&OBJECT[..64]; 2000]);
    for n in 0..2000 {
        images[32 + 40 * n + 16..][..8].copy_from_slice(&1024u64.to_le_bytes());
    }
    let (_, damage) = read(images);
    let limit = "*more than 1 MiB of tables of strings: image * is not read";
    assert!(damage.len() < 200, "{}", damage.len());
    assert_pattern(damage.last().unwrap(), limit);
}

/// Memory use is much lower than the uncompressed size.
#[test]
fn unpacked_bytes_are_not_all_in_memory() {
    let mut zeros = OBJECT.to_vec();
    // Enough to be visible in the peak.
    zeros.resize(256 << 20, 0);
    let file = packed(
        &bundle(&[("hip-amdgcn-amd-amdhsa--gfx1100", &zeros)]),
        Method::Zstd,
        3,
    );
    drop(zeros);
    // These zeros are not in a segment of code, so they are kept: the first 72 MiB in memory, the rest in a file.
    // Resets the peak, if that is permitted.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    let (objects, damage) = read(file);
    assert_eq!((objects, damage.len()), (1, 0), "{damage:?}");
    let more = peak() - before;
    assert!(more < 96 << 10, "{more} KiB for 256 MiB");
}

/// Peak memory of this process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
