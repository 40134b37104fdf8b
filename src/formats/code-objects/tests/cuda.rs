//! CUDA's fat binaries and cubins, valid, damaged and hostile.

mod common;

use code_objects::cuda::coverage;
use code_objects::{Bytes, CodeObject, Options, Ptx, Sampling, Step, Wanted, What, walk_bytes};
use common::{assert_pattern, with};
use fuzz::corpus::{Compression, Fat, fat_binary, fat_entry};
use std::ops::ControlFlow;
use std::path::Path;

/// Compiled by fixtures/make-cuda.
const CUBIN: &[u8] = include_bytes!("../../../../fixtures/counted.cubin");
const PTX: &[u8] = b".version 9.0\n.target sm_80\n";

const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

#[derive(Default)]
struct Read {
    objects: Vec<CodeObject>,
    ptx: Vec<Ptx>,
    /// The last step of each code object.
    steps: Vec<Step>,
    bytes: Vec<Vec<u8>>,
    damage: Vec<String>,
}

fn read(bytes: &[u8], wanted: Option<Wanted>) -> Read {
    let mut read = Read::default();
    let options = Options {
        wanted,
        ..Options::default()
    };
    let bytes = Bytes::of_memory(bytes.to_vec());
    walk_bytes(Path::new("f"), bytes, options, &mut |found| {
        match found.what {
            What::CodeObject(object) => {
                read.objects.push(*object);
                read.steps.extend(found.location.steps.last().cloned());
                let bytes = found.bytes.unwrap();
                read.bytes.push(bytes.read(0, bytes.size()).unwrap());
            }
            What::Ptx(ptx) => read.ptx.push(ptx),
            What::Damage { why } => read.damage.push(format!("{}: {why}", found.location)),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    read
}

#[test]
fn compressed_ptx_is_unpacked_on_request() {
    let entry = |arch| fat_entry(Fat::Ptx, arch, Compression::Zstd, PTX);
    let fat = fat_binary(&[entry(80), entry(120)]);
    let texts = |ptx| {
        let mut texts = Vec::new();
        let options = Options {
            ptx,
            ..Options::default()
        };
        let bytes = Bytes::of_memory(fat.clone());
        walk_bytes(Path::new("f"), bytes, options, &mut |found| {
            if let What::Ptx(_) = found.what {
                let text = found.bytes.map(|own| own.read(0, own.size()).unwrap());
                texts.push(text);
            }
            ControlFlow::Continue(())
        });
        texts
    };
    assert_eq!(texts(None), [None, None]);
    let is_old = |target: &str| target == "sm_80";
    assert_eq!(texts(Some(&is_old)), [Some(PTX.to_vec()), None]);
}

#[test]
fn a_cubin_has_kernels_counters_and_a_mapping() {
    let read = read(CUBIN, None);
    assert_eq!(read.damage, [""; 0]);
    let object = &read.objects[0];
    assert_eq!(object.triple, "nvptx64-nvidia-cuda");
    assert_eq!(
        (object.target.to_string().as_str(), object.version),
        ("sm_90", 8)
    );
    assert!(object.is_cuda() && !object.relocatable);
    let kernel = |name: &str| object.kernels.iter().find(|kernel| kernel.name == name);
    let branch = kernel("branch").unwrap();
    // As `cuobjdump -res-usage` and `-elf` print them.
    assert_eq!(
        (branch.vgprs, branch.lds, branch.scratch, branch.arguments),
        (20, 0, 0, 8)
    );
    assert_eq!((branch.workgroup, branch.wave), (1024, 32));
    assert!(kernel("loop").is_some() && kernel("_Z6halvedj").is_none());
    let profile = object.profile.as_ref().unwrap();
    assert_eq!(profile.raw_version, Some(11));
    assert_eq!(profile.sampling, Sampling::No);
    let sections: Vec<_> = profile
        .sections
        .iter()
        .map(|section| (section.name.as_str(), section.size))
        .collect();
    assert_eq!(
        sections,
        [
            ("__llvm_prf_cnts", 48),
            ("__llvm_prf_ucnts", 48),
            ("__llvm_prf_data", 216),
            ("__llvm_prf_names", 32),
        ]
    );
    let coverage = object.coverage.as_ref().unwrap();
    assert_eq!((coverage.functions, coverage.files), (79 + 79 + 70, 48));
    let mapping = coverage::read(&Bytes::of_memory(CUBIN.to_vec())).unwrap();
    assert_eq!(mapping.functions.len(), 80 + 80 + 72);
    assert_eq!((mapping.files.len(), mapping.names.len()), (48, 32));
}

/// In code that nvcc compiles with -rdc=true, variables without initial values and those in shared memory have sections of types of
/// their own, without contents.
#[test]
fn sections_of_memory_have_no_contents() {
    // `.nv.global`: section 21.
    let header = 0x31c0 + 21 * 64;
    let damage = |kind: u64| {
        let large = with(CUBIN.to_vec(), header + 32, 1 << 30);
        // Behind the type are the flags, for writing (1) and memory (2).
        read(&with(large, header + 4, 3 << 32 | kind), None).damage
    };
    for kind in [8, 0x7000_0007, 0x7000_000a] {
        assert_eq!(damage(kind), [""; 0], "{kind:#x}");
    }
    assert_eq!(
        damage(1),
        ["f: at 0x2d90: section .nv.global extends past the end of the ELF file (14608 bytes)"]
    );
}

#[test]
fn entries_are_found_compressed_or_not() {
    let mut entries: Vec<_> = ALL
        .into_iter()
        .map(|compression| fat_entry(Fat::Cubin, 90, compression, CUBIN))
        .collect();
    entries.extend(ALL.map(|compression| fat_entry(Fat::Ptx, 80, compression, PTX)));
    let mut file = fat_binary(&entries);
    // Several fat binaries, with zeros between them.
    file.extend([0; 24]);
    file.extend(fat_binary(&entries[..1]));
    let read = read(&file, None);
    assert_eq!(read.damage, [""; 0]);
    assert!(read.bytes.iter().all(|bytes| bytes == CUBIN));
    let entry = |number| Step::Entry {
        number,
        id: "sm_90".into(),
    };
    let steps = [entry(1), Step::Unpacked, Step::Unpacked, entry(1)];
    assert_eq!(read.steps, steps);
    let ptx = Ptx {
        target: "sm_80".into(),
        version: "9.0".into(),
        size: PTX.len() as u64,
    };
    assert_eq!(read.ptx.len(), 3);
    // Without compression, the size includes the padding.
    assert_eq!(read.ptx[1..], [ptx.clone(), ptx]);
}

#[test]
fn targets_are_selected() {
    let file = fat_binary(&[fat_entry(Fat::Cubin, 90, Compression::Lz4, CUBIN)]);
    for (name, number) in [("sm_90", 1), ("sm_90a", 0), ("sm_80", 0)] {
        let found = read(&file, Some(&|target| target.is(name)));
        assert_eq!(found.objects.len(), number, "{name}");
    }
}

/// Offsets in a fat binary whose first entry is a compressed cubin.
const SIZE: usize = 8;
const ENTRY: usize = 16;

#[test]
fn claims_that_exceed_the_file_are_reported() {
    let entry = |compression| fat_entry(Fat::Cubin, 90, compression, CUBIN);
    let two = fat_binary(&[entry(Compression::None), entry(Compression::Zstd)]);
    for (at, value, expected) in [
        (
            SIZE,
            1 << 60,
            "claims 1152921504606846976 bytes, but there are",
        ),
        (SIZE, u64::MAX, "claims 18446744073709551615 bytes"),
        (
            ENTRY + 8,
            1 << 60,
            "an entry claims 1152921504606846976 bytes",
        ),
        (
            0,
            0x0010_0002_ba55_ed50,
            "fat binary version 2 is not supported",
        ),
        (0, 0x0008_0001_ba55_ed50, "claims a header of 8 bytes"),
        (
            ENTRY,
            0x0000_0008_0101_0002,
            "an entry claims a header of 8 bytes",
        ),
        (
            ENTRY,
            0xffff_ffff_0101_0002,
            "an entry claims a header of 4294967295",
        ),
        (ENTRY, 0x0000_0040_0101_0003, "entry of the unknown kind 3"),
        (ENTRY + 40, 0xa011, "two compression methods"),
    ] {
        let found = read(&with(two.clone(), at, value), None);
        assert_eq!(found.damage.len(), 1, "{expected}: {:?}", found.damage);
        assert_pattern(&found.damage[0], &format!("f: fat binary 1, *{expected}*"));
    }
    // The next fat binary is found all the same.
    let mut several = with(two.clone(), SIZE, 1 << 60);
    several.extend(&two);
    let found = read(&several, None);
    assert_eq!((found.objects.len(), found.damage.len()), (2, 1));
    let truncated = read(&two[..ENTRY + 40], None);
    assert_pattern(&truncated.damage[0], "*but there are*");
    let header = read(&two[..12], None);
    let expected = "*truncated header of a fat binary: 16 bytes needed, 12 available";
    assert_pattern(&header.damage[0], expected);
}

#[test]
fn bombs_and_damaged_streams_are_reported() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let file = fat_binary(&[fat_entry(Fat::Cubin, 90, compression, CUBIN)]);
        let unpacked = CUBIN.len() as u64;
        for (at, value, expected) in [
            (
                ENTRY + 56,
                1 << 40,
                "bytes claim to unpack to 1099511627776",
            ),
            (ENTRY + 56, unpacked + 1, "1 bytes fewer than claimed"),
            (ENTRY + 56, unpacked - 1, "cannot decompress"),
            (ENTRY + 16, u64::from(u32::MAX), "compressed bytes, but has"),
            (ENTRY + 16, 200, "cannot decompress"),
            (ENTRY + 64 + 64, u64::MAX, ""),
        ] {
            let found = read(&with(file.clone(), at, value), None);
            assert_pattern(&found.damage[0], &format!("*{expected}*"));
        }
    }
}

#[test]
fn a_mapping_outside_of_the_cubin_is_an_error() {
    // The size of each symbol.
    let table = u64::from_le_bytes(CUBIN[40..48].try_into().unwrap()) as usize;
    let symbols = (0..40)
        .map(|section| table + 64 * section)
        .find(|at| CUBIN[at + 4..at + 8] == [2, 0, 0, 0])
        .unwrap();
    let word = |at: usize| u64::from_le_bytes(CUBIN[at..at + 8].try_into().unwrap()) as usize;
    let (start, size) = (word(symbols + 24), word(symbols + 32));
    let mut errors = Vec::new();
    for symbol in (start..start + size).step_by(24) {
        for (at, value) in [
            (symbol + 16, 1 << 60),
            (symbol + 16, 4096),
            (symbol + 8, 1 << 60),
        ] {
            let bytes = with(CUBIN.to_vec(), at, value);
            let objects = read(&bytes, None).objects.len();
            assert_eq!(objects, 1);
            errors.extend(coverage::read(&Bytes::of_memory(bytes)).err());
        }
    }
    // Five symbols have the mapping.
    assert_eq!(errors.len(), 15, "{errors:?}");
    let has = |text: &str| errors.iter().any(|error| error.to_string().contains(text));
    assert!(has("claim 11529215046068"), "{errors:?}");
    assert!(
        has("__llvm_prf_nm (4096 bytes) is not in the cubin"),
        "{errors:?}"
    );
}
