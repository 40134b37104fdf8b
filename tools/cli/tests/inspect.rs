//! `devprof inspect` and `devprof extract` on damaged and unknown files: exit status, what is shown, what is said.

use clap::Parser;
use devprof_cli::{Cli, Colors, Console, run};
use fuzz::corpus::{archive, bundle};
use std::path::Path;

const OBJECT: &[u8] = include_bytes!("../../../fixtures/counted.raw11.co");

/// The exit status, stdout and the lines of stderr.
fn devprof(arguments: &[&str]) -> (u8, String, Vec<String>) {
    let (mut out, mut said) = (Vec::new(), Vec::new());
    let cli = Cli::parse_from([&["devprof"], arguments].concat());
    let status = run(
        &cli,
        &mut Console {
            out: &mut out,
            say: &mut |line| said.push(line.to_owned()),
            colors: Colors::default(),
        },
    );
    (status, String::from_utf8(out).unwrap(), said)
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
fn a_whole_file_a_damaged_one_and_one_of_another_kind() {
    let dir = tempfile::tempdir().unwrap();
    let whole = write(dir.path(), "whole", &two());
    let mut bytes = two();
    // The second entry's size.
    bytes[32 + 24 + 29 + 8..][..8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let damaged = write(dir.path(), "damaged", &bytes);
    let text = write(dir.path(), "text", b"hello, world");
    let gone = dir.path().join("gone").to_str().unwrap().to_owned();

    let (status, out, said) = devprof(&["inspect", &whole]);
    assert_eq!((status, said.len()), (0, 0));
    assert!(out.contains("gfx1100"), "{out}");
    let (status, out, said) = devprof(&["inspect", &damaged]);
    assert_eq!(status, 3);
    assert!(out.contains("gfx1100"), "the first entry is shown: {out}");
    let start = format!("devprof: {damaged}: bundle 1, at 0x");
    assert!(
        said[0].starts_with(&start) && said[0].contains("ends beyond"),
        "{said:?}"
    );
    let (status, out, said) = devprof(&["inspect", &text, &gone]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(
        said[0].ends_with(r#"it begins with 68 65 6c 6c 6f 2c 20 77 6f 72 6c 64 "hello, world""#)
    );
    assert!(
        said[1].contains("gone: at 0x0: cannot be opened: No such file"),
        "{said:?}"
    );
    let (status, out, _) = devprof(&["inspect", "--json", &whole, &text]);
    assert_eq!(status, 3);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let of = |n: usize, key: &str| json[n][key].clone();
    assert_eq!(
        (of(0, "whole"), of(1, "whole")),
        (true.into(), false.into())
    );
    assert_eq!(
        json[0]["found"][1]["place"]["steps"][1]["entry"]["number"],
        1
    );
    assert_eq!(json[0]["found"][1]["profile"]["raw_version"], 11);
    assert_eq!(json[0]["found"][1]["offset"], serde_json::Value::Null);

    let to = dir.path().join("out").to_str().unwrap().to_owned();
    let (status, out, said) = devprof(&["extract", &damaged, "-o", &to]);
    assert_eq!((status, out.lines().count(), said.len()), (3, 1, 1));
    assert_eq!(std::fs::read(out.trim_end()).unwrap(), OBJECT);
    let (status, out, said) = devprof(&["extract", &text, "-o", &to]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(said[0].contains("no code objects in"), "{said:?}");
    // Nothing but the code object is left in the directory.
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 1);
}

#[test]
fn kernels_are_shown_by_their_names_in_the_source() {
    // The kernel is `branch` in the fixture, and here the mangled name of `ab()`.
    let mut object = OBJECT.to_vec();
    let at: Vec<usize> = (0..object.len())
        .filter(|&n| object[n..].starts_with(b"branch"))
        .collect();
    at.iter()
        .for_each(|&n| object[n..n + 6].copy_from_slice(b"_Z2abv"));
    let dir = tempfile::tempdir().unwrap();
    let file = write(
        dir.path(),
        "a.a",
        &archive(&[("member-of-a-long-name.o", &object)]),
    );
    let (_, out, _) = devprof(&["inspect", "--kernels", &file]);
    let (_, raw, _) = devprof(&["inspect", "--kernels", "--no-demangle", &file]);
    assert!(
        out.contains("member member-of-a-long-name.o at 0x"),
        "{out}"
    );
    assert!(
        raw.contains("  _Z2abv\n") && out.contains("  ab()\n"),
        "{out}{raw}"
    );
    assert!(out.contains("__llvm_prf_cnts"), "{out}");
}
