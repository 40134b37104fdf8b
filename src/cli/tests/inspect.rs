//! `devprof inspect` and `devprof extract` on damaged and unknown files: exit status, results and diagnostics.

use clap::Parser;
use devprof_cli::{Cli, Colors, Console, run};
use fuzz::corpus::{archive, bundle};
use std::path::Path;

const OBJECT: &[u8] = include_bytes!("../../../fixtures/counted.raw11.co");

/// The exit status, stdout and the lines of stderr.
fn devprof(arguments: &[&str]) -> (u8, String, Vec<String>) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let cli = Cli::parse_from([&["devprof"], arguments].concat());
    let status = run(
        &cli,
        &mut Console {
            out: &mut out,
            err: &mut err,
            colors: Colors::default(),
        },
    );
    let err = String::from_utf8(err).unwrap();
    let lines = err.lines().map(str::to_owned).collect();
    (status, String::from_utf8(out).unwrap(), lines)
}

#[track_caller]
fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> String {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn two() -> Vec<u8> {
    bundle(&[
        ("hip-amdgcn-amd-amdhsa--gfx900", OBJECT),
        ("hip-amdgcn-amd-amdhsa--gfx1100", OBJECT),
    ])
}

#[test]
fn valid_damaged_and_unknown_files() {
    let dir = tempfile::tempdir().unwrap();
    let valid = write(dir.path(), "valid", &two());
    let mut bytes = two();
    // The second entry's size.
    bytes[32 + 24 + 29 + 8..][..8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let damaged = write(dir.path(), "damaged", &bytes);
    let text = write(dir.path(), "text", b"hello, world");
    let missing = dir.path().join("missing").to_str().unwrap().to_owned();

    let (status, out, lines) = devprof(&["inspect", &valid]);
    assert_eq!((status, lines.len()), (0, 0));
    assert_has(&out, "gfx1100");
    let (status, out, lines) = devprof(&["inspect", &damaged]);
    assert_eq!(status, 3);
    assert!(out.contains("gfx1100"), "the first entry is shown: {out}");
    let start = format!("devprof: {damaged}: bundle 1, at 0x");
    assert!(lines[0].starts_with(&start), "{lines:?}");
    assert_has(&lines[0], "extends past");
    let (status, out, lines) = devprof(&["inspect", &text, &missing]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(
        lines[0].ends_with(r#"it begins with 68 65 6c 6c 6f 2c 20 77 6f 72 6c 64 "hello, world""#)
    );
    assert_has(&lines[1], "missing: cannot be opened: No such file");
    let (status, out, _) = devprof(&["inspect", "--json", &valid, &text]);
    assert_eq!(status, 3);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["format"], "devprof inspect");
    assert_eq!(json["version"], 2);
    let json = &json["files"];
    assert_eq!(json[0]["complete"], true);
    assert_eq!(json[1]["complete"], false);
    let found = &json[0]["found"][1];
    assert_eq!(found["location"]["steps"][1]["entry"]["number"], 1);
    assert_eq!(found["profile"]["raw_version"], 11);
    assert_eq!(found["offset"], serde_json::Value::Null);

    let to = dir.path().join("out").to_str().unwrap().to_owned();
    let (status, out, lines) = devprof(&["extract", &damaged, "-o", &to]);
    assert_eq!((status, out.lines().count(), lines.len()), (3, 1, 1));
    assert_eq!(std::fs::read(out.trim_end()).unwrap(), OBJECT);
    let (status, out, lines) = devprof(&["extract", &text, "-o", &to]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert_has(&lines[0], "no code objects in");
    // The code object is the only file in the directory.
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 1);
}

#[test]
fn kernel_names_are_demangled() {
    // The fixture's kernel `branch` gets the mangled name of `ab()`.
    let mut object = OBJECT.to_vec();
    for n in 0..object.len() {
        if object[n..].starts_with(b"branch") {
            object[n..n + 6].copy_from_slice(b"_Z2abv");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let archive = archive(&[("member-of-a-long-name.o", &object)]);
    let file = write(dir.path(), "a.a", &archive);
    let (_, out, _) = devprof(&["inspect", "--kernels", &file]);
    let (_, raw, _) = devprof(&["inspect", "--kernels", "--no-demangle", &file]);
    assert_has(&out, "member member-of-a-long-name.o at 0x");
    assert_has(&raw, "  _Z2abv\n");
    assert_has(&out, "  ab()\n");
    assert_has(&out, "__llvm_prf_cnts");
}

#[test]
fn different_code_objects_with_the_same_build_id_are_extracted_to_different_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = OBJECT.to_vec();
    let at = other.windows(5).position(|w| w == b"clang").unwrap();
    other[at] = b'C';
    let file = write(
        dir.path(),
        "fat",
        &bundle(&[
            ("hip-amdgcn-amd-amdhsa--gfx1100", OBJECT),
            ("hip-amdgcn-amd-amdhsa--gfx1101", &other),
            ("hip-amdgcn-amd-amdhsa--gfx1102", OBJECT),
        ]),
    );
    let to = dir.path().join("out").to_str().unwrap().to_owned();
    let (status, out, _) = devprof(&["extract", &file, "-o", &to]);
    let files: Vec<&str> = out.lines().collect();
    assert_eq!((status, files.len()), (0, 2), "{out}");
    // The note of the build id is its type (3), `GNU` and 20 bytes.
    let note = OBJECT.windows(8).position(|w| w == b"\x03\0\0\0GNU\0");
    let id = &OBJECT[note.unwrap() + 8..][..20];
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(files[0].ends_with(&format!("gfx1100.{id}.co")), "{out}");
    assert_eq!(std::fs::read(files[0]).unwrap(), OBJECT);
    assert_eq!(std::fs::read(files[1]).unwrap(), other);
    // If the files exist, they are not written again under other names.
    assert_eq!(devprof(&["extract", &file, "-o", &to]).1, out);
}

#[test]
fn raw_profiles_of_any_version_and_byte_order_are_recognized() {
    let dir = tempfile::tempdir().unwrap();
    let version = 9u64 | 1 << 56;
    let (wide, narrow) = (0xff6c_7072_6f66_7281u64, 0xff6c_7072_6f66_5281);
    for (magic, version, is_big, expected) in [
        (wide, version, false, "9, 64-bit little-endian, IR-level"),
        (wide, version, true, "9, 64-bit big-endian, IR-level"),
        (narrow, 8, false, "8, 32-bit little-endian"),
        (narrow, 12, true, "12, 32-bit big-endian"),
    ] {
        let order = if is_big {
            u64::to_be_bytes
        } else {
            u64::to_le_bytes
        };
        let bytes = [order(magic), order(version)].concat();
        let bytes = [bytes, vec![0; 112]].concat();
        let expected = format!("raw profile, version {expected}");
        let file = write(dir.path(), "a.profraw", &bytes);
        let (status, out, lines) = devprof(&["inspect", &file]);
        assert_eq!((status, lines.len()), (0, 0), "{lines:?}");
        assert!(out.lines().any(|line| line.trim() == expected), "{out}");
    }
    // For version 11, more is shown and the size is checked. The file has two complete profiles and a
    // truncated one.
    let header = profraw::format::Header {
        version: 11,
        num_data: 1,
        ..Default::default()
    };
    let words = header.words();
    let mut one: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    one.resize(one.len() + 72, 0);
    let three = [&one[..], &one[..], &one[..100]].concat();
    let file = write(dir.path(), "b.profraw", &three);
    let (status, out, lines) = devprof(&["inspect", &file]);
    assert_eq!(status, 3);
    assert_has(
        &out,
        "version 11, 64-bit little-endian, 2 profiles, 2 functions, 0 counters",
    );
    assert!(
        lines[0].contains(&format!("at {:#x}: raw profile", 2 * one.len())),
        "{lines:?}"
    );
}

#[test]
fn the_functions_of_raw_profiles() {
    let file = "../../fixtures/h200/sm_90.coverage.profraw";
    let (status, out, lines) = devprof(&["inspect", "--functions", file]);
    assert_eq!((status, lines.len()), (0, 0), "{lines:?}");
    assert_has(&out, "Entered  Blocks");
    let (_, plain, _) = devprof(&["inspect", file]);
    assert!(out.starts_with(&plain), "{out}");
    let (_, json, _) = devprof(&["inspect", "--functions", "--json", file]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let part = &json["files"][0]["found"][0];
    let functions = part["function_counts"].as_array().unwrap();
    assert_eq!(part["functions"], functions.len());
    let counters = functions.iter().map(|one| one["counters"].as_array());
    let counters: usize = counters.map(|list| list.unwrap().len()).sum();
    assert_eq!(part["counters"], counters);
    // One row per function, under the headings.
    let rows = out[plain.len()..].lines();
    assert_eq!(rows.count(), functions.len() + 1);

    // The names say that they are compressed, and are not.
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(file).unwrap();
    let names = profraw::Layout::read(&bytes).unwrap().names;
    bytes[names.start + 1] = 1;
    let damaged = write(dir.path(), "damaged.profraw", &bytes);
    let (status, out, lines) = devprof(&["inspect", "--functions", &damaged]);
    assert_eq!((status, lines.len()), (3, 1), "{lines:?}");
    let start = format!("devprof: {damaged}");
    assert!(lines[0].starts_with(&start), "{lines:?}");
    assert_has(&out, "raw profile, version 11");
}

#[test]
fn each_error_is_reported_once_with_the_file_that_it_concerns() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let file = write(dir.path(), "file", &two());
    let here = dir.path().to_str().unwrap();
    let (out, missing) = (at("out"), at("missing"));
    let none = "cannot be opened: No such file or directory (os error 2)";
    let cases = format!(
        "extract {missing} -o {out} = devprof: {missing}: {none}
        inspect {here} = devprof: {here}: a directory; pass its files instead
        extract {file} -o {file} = devprof: cannot write to {file}: it is not a directory
        report {missing} --profile {missing} = : {missing}: {none}"
    );
    for case in cases.lines() {
        let (command, error) = case.split_once(" = ").unwrap();
        let command: Vec<&str> = command.split_whitespace().collect();
        let (status, _, lines) = devprof(&command);
        assert_eq!((status, lines.len()), (1, 1), "{command:?}: {lines:?}");
        assert!(lines[0].ends_with(error), "{}", lines[0]);
    }
}
