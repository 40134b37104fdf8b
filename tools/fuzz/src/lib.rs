//! The fuzz targets. `tools/fuzz/run TARGET` fuzzes one with libFuzzer, starting from the corpus. The tests here run all
//! of them on the corpus and on simple damage to it.

pub mod corpus;
pub mod hostile;

use ::profraw::counts::{self, Counts, MAX_COUNT};
use code_objects::cuda::coverage;
use code_objects::{Bytes, Options, What, walk_bytes};
use std::ops::ControlFlow;
use std::path::Path;

pub type Target = fn(&[u8]);

/// The targets of the formats by name. The command line has others (`devprof_cli::fuzzing`).
pub const TARGETS: &[(&str, Target)] = &[
    ("bundle", inspect),
    ("packed", packed),
    ("fatbin", inspect),
    ("elf", elf),
    ("profraw", profraw),
    ("trace", trace),
    ("ptx", instrument),
];

/// The targets whose seeds contain code objects.
#[cfg(test)]
const CODE: [&str; 4] = ["bundle", "packed", "fatbin", "elf"];

/// A compressed offload bundle. If the first byte is 0 or 1, the other bytes are compressed first, so that the stream is
/// valid. Otherwise the decompressor would reject nearly all damaged inputs before their contents are read.
pub fn packed(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    match choice {
        0 => inspect(&corpus::packed(rest, corpus::Method::Zlib, 2)),
        1 => inspect(&corpus::packed(rest, corpus::Method::Zstd, 3)),
        _ => inspect(bytes),
    }
}

/// A code object. If it is a cubin, also its coverage mapping.
pub fn elf(bytes: &[u8]) {
    inspect(bytes);
    if let Ok(sections) = coverage::read(&Bytes::of_memory(bytes.to_vec())) {
        let size = sections.files.len() + sections.functions.len() + sections.names.len();
        // Each part can be padded.
        assert!(size <= 9 * bytes.len() + 16, "{size} bytes of mapping");
    }
}

/// Raw profiles, one after another, as `devprof merge` and the runtime read them.
pub fn profraw(bytes: &[u8]) {
    inspect(bytes);
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(layout) = ::profraw::Layout::read(rest) else {
            return;
        };
        let functions: Vec<_> = ::profraw::counter_ranges(rest, &layout).collect();
        assert_eq!(functions.len() as u64, layout.header.num_data);
        for ranges in functions.into_iter().flatten() {
            let (counters, uniform) = (ranges.counters, ranges.uniform);
            assert!(layout.counters.contains(&counters.start) || counters.is_empty());
            assert!(counters.end <= layout.counters.end);
            assert!(uniform.is_none_or(|range| range.end <= layout.uniform.end));
        }
        let _ = ::profraw::records(rest, &layout);
        for chunk in ::profraw::names::chunks(&rest[layout.names.clone()]) {
            let _ = chunk.map_err(|damage| assert!(damage.at < layout.names.len()));
        }
        let Ok(end) = ::profraw::end(rest, &layout) else {
            return;
        };
        assert!(end > 0);
        rest = &rest[end..];
    }
    if let Ok(counts) = Counts::read(bytes) {
        let mut sum = bytes.to_vec();
        assert!(counts.add(&mut sum, bytes, None).is_ok());
        assert!(counts.words(&sum).all(|count| count <= MAX_COUNT));
        assert_eq!(counts::has_decreased(bytes, bytes), Ok(false));
    }
}

/// A trace. Two bits of the first byte select which checksums are corrected first. Wrong checksums would hide nearly all
/// other damage from the reader.
pub fn trace(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let mut bytes = rest.to_vec();
    if choice & 1 != 0 {
        corpus::seal_header(&mut bytes);
    }
    if choice & 2 != 0 {
        corpus::seal_records(&mut bytes);
    }
    let size = bytes.len() as u64;
    let Ok(mut reader) = tracefile::Reader::new(bytes.as_slice()) else {
        return;
    };
    let mut tables = tracefile::Tables::default();
    let mut items = 0;
    // Reading from memory does not fail.
    while let Ok(Some(item)) = reader.next_item() {
        items += 1;
        match item {
            Ok(item) => {
                let _ = tables.take(&item);
            }
            Err(damage) => assert!(damage.offset <= size, "damage after the end of the file"),
        }
    }
    assert!(reader.offset() <= size);
    // At most one record and one gap per 128 bytes (the size of a record), and damage at the end.
    assert!(
        items <= 2 * (size / 128) + 1,
        "{items} items in {size} bytes"
    );
    for id in 0..256 {
        let _ = tables.text(id).map(str::len);
    }
}

/// PTX, which is instrumented once.
pub fn instrument(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let run = |text: &str| {
        ptx::instrument(text, Path::new("/"), ptx::Origin::Build, |name| {
            name.ends_with(".h")
        })
    };
    let Ok(Some(done)) = run(&text) else {
        return;
    };
    assert!(done.text.len() >= text.len() && done.without_lines.len() <= done.functions);
    assert!(done.functions == 0 || matches!(run(&done.text), Ok(None)));
}

/// Any file with code objects.
pub fn inspect(bytes: &[u8]) {
    let mut parts = 0;
    let size = bytes.len() as u64;
    walk_bytes(
        Path::new("fuzzed"),
        Bytes::of_memory(bytes.to_vec()),
        Options::default(),
        &mut |found| {
            parts += 1;
            let _ = format!("{}", found.location);
            if let What::CodeObject(object) = &found.what {
                assert!(
                    object.kernels.len() as u64 <= 64 + object.size,
                    "more kernels than bytes"
                );
                let _ = format!("{} {:?}", object.target, object);
            }
            if let (Some(bytes), true) = (&found.bytes, found.location.steps.is_empty()) {
                assert!(bytes.size() <= size);
            }
            // No file of this size contains more.
            assert!(parts <= 10_000 + size, "{parts} parts in {size} bytes");
            ControlFlow::Continue(())
        },
    );
}

/// Runs a target on its seeds, truncated and with changed bytes.
pub fn damaged_seeds(target: &str, run: Target) {
    for (_, seed) in corpus::seeds(target) {
        let step = (seed.len() / 40).max(1);
        for length in (0..seed.len()).step_by(step).chain(0..seed.len().min(64)) {
            run(&seed[..length]);
        }
        for at in (0..seed.len()).step_by(step).chain(0..seed.len().min(200)) {
            for value in [0x00, 0x7f, 0xff] {
                let mut changed = seed.clone();
                changed[at] = value;
                run(&changed);
            }
        }
        run(&seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the seeds for tools/fuzz/run, which names the directory and the target.
    #[test]
    fn seeds_are_written() {
        let Some(dir) = std::env::var_os("DEVPROF_SEEDS") else {
            return;
        };
        let target = std::env::var("DEVPROF_TARGET").unwrap();
        for file in hostile::FILES.iter().filter(|_| target == "hostile") {
            file.write(&Path::new(&dir).join(file.name)).unwrap();
        }
        for (name, seed) in corpus::seeds(&target) {
            std::fs::write(Path::new(&dir).join(name), seed).unwrap();
        }
    }

    /// No damage is reported in seeds.
    #[test]
    fn every_seed_is_valid() {
        for target in CODE {
            for (name, seed) in corpus::seeds(target) {
                let seed = match seed.as_slice() {
                    [0, rest @ ..] => corpus::packed(rest, corpus::Method::Zlib, 1),
                    [1, rest @ ..] => corpus::packed(rest, corpus::Method::Zstd, 2),
                    _ => seed,
                };
                let file = Path::new(&name);
                let mut objects = 0;
                walk_bytes(
                    file,
                    Bytes::of_memory(seed),
                    Options::default(),
                    &mut |found| {
                        match &found.what {
                            What::CodeObject(_) => objects += 1,
                            What::Damage { why } if name != "thin" => {
                                panic!("{}: {why}", found.location)
                            }
                            What::Unknown { .. } => panic!("{} is unknown", found.location),
                            _ => {}
                        }
                        ControlFlow::Continue(())
                    },
                );
                assert!(
                    objects > 0 || name == "thin",
                    "{target} {name} has no code object"
                );
            }
        }
    }

    #[test]
    fn seeds_of_profiles_and_traces_are_valid() {
        for (name, seed) in corpus::seeds("profraw") {
            let mut rest = seed.as_slice();
            while !rest.is_empty() {
                let layout = ::profraw::Layout::read(rest).unwrap();
                assert!(::profraw::records(rest, &layout).is_ok(), "{name}");
                rest = &rest[::profraw::end(rest, &layout).unwrap()..];
            }
        }
        for (name, seed) in corpus::seeds("trace") {
            let mut reader = tracefile::Reader::new(&seed[1..]).unwrap();
            let mut items = 0;
            while let Some(item) = reader.next_item().unwrap() {
                assert!(item.is_ok(), "{name}: {item:?}");
                items += 1;
            }
            assert!(items > 5, "{name}");
        }
    }

    #[test]
    fn the_seed_of_ptx_is_instrumented() {
        for (_, seed) in corpus::seeds("ptx") {
            let text = String::from_utf8(seed).unwrap();
            let done = ptx::instrument(&text, Path::new("/"), ptx::Origin::Build, |_| false);
            let done = done.unwrap().unwrap();
            assert_eq!((done.functions, done.not_instrumented), (1, Vec::new()));
        }
    }

    #[test]
    fn truncated_and_changed_seeds_do_not_panic() {
        for (target, run) in TARGETS {
            damaged_seeds(target, *run);
        }
    }

    /// Inputs that libFuzzer found. To test one in each run, copy it to `found/TARGET`.
    #[test]
    fn inputs_that_libfuzzer_found_do_not_panic() {
        for (target, run) in TARGETS {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("found")
                .join(target);
            for entry in std::fs::read_dir(dir).into_iter().flatten() {
                run(&std::fs::read(entry.unwrap().path()).unwrap());
            }
        }
    }
}
