//! HIP programs, compiled by unmodified clang at each optimization level for wave32 and wave64, and run with AMD's HIP and
//! ROCr on the model. They compare the results of the device with those of the host, and print differences.
//!
//! They run in the Debian root that `tools/rocm-env setup` creates.

mod debian;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Once;

use debian::{repo, text};

/// Builds the model once and runs a shell command in the Debian root.
fn in_rocm(command: &str) -> Output {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "-p", "gpu-model"])
            .current_dir(repo())
            .status();
        assert!(
            built.is_ok_and(|status| status.success()),
            "cannot build the model"
        );
    });
    debian::command(&["--", "sh", "-c", command])
        .output()
        .expect("tools/rocm-env starts")
}

/// The command that compiles a program of tests/hip to `out`.
fn compile(program: &str, out: &Path, flags: &str) -> String {
    format!(
        "clang++-23 -x hip --offload-arch=gfx1100 -std=c++17 -Wall -fno-offload-uniform-block \
         --rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode {flags} \
         '{}/tests/hip/{program}.hip' -o '{}' -lamdhip64",
        env!("CARGO_MANIFEST_DIR"),
        out.display()
    )
}

fn all_variants(program: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut failures = String::new();
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for wave in ["", "-mwavefrontsize64"] {
            let out = directory.path().join(program);
            let command = compile(program, &out, &format!("{level} {wave}"));
            let output = in_rocm(&format!("{command} && '{}'", out.display()));
            if !output.status.success() {
                failures += &format!("{level} {wave}: {}\n{}\n", output.status, text(&output));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn a_fault_ends_the_process_and_prints_the_location() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("faults");
    let output = in_rocm(&compile("faults", &out, "-O1"));
    assert!(output.status.success(), "{}", text(&output));
    for (mode, expected) in [
        (
            "outside",
            [
                "kernel _Z7outsidePi: write of 4 bytes at 0x",
                "workgroup (0, 0, 0), wave 1, lane 5",
            ],
        ),
        (
            "lds",
            [
                "kernel _Z10beyond_ldsPi: access of 4 bytes at LDS offset 0x61a80",
                "ds_store_b32",
            ],
        ),
        ("trap", ["kernel _Z4trapPi: the kernel trapped", "s_trap 2"]),
        (
            "assert",
            [
                "Assertion `*array == 1' failed",
                "kernel _Z7assertsPi: the kernel trapped",
            ],
        ),
        (
            "unknown",
            [
                "kernel _Z7unknownPi: not a supported gfx1100 instruction",
                ": f0000",
            ],
        ),
    ] {
        let output = in_rocm(&format!("'{}' {mode}", out.display()));
        let printed = text(&output).replace("Device-side assertion", "Assertion");
        // SIGABRT
        assert_eq!(
            output.status.code().unwrap_or(134),
            134,
            "{mode}: {printed}"
        );
        for expected in expected {
            assert!(
                printed.contains(expected),
                "{mode}: {expected:?} is missing in: {printed}"
            );
        }
    }
    let output = in_rocm(&format!("'{}' none", out.display()));
    assert!(output.status.success(), "{}", text(&output));
}

fn main() {
    let tests: &[(&str, fn())] = &[
        ("memory", || all_variants("memory")),
        ("lanes", || all_variants("lanes")),
        ("arithmetic", || all_variants("arithmetic")),
        ("concurrency", || all_variants("concurrency")),
        (
            "a_fault_ends_the_process_and_prints_the_location",
            a_fault_ends_the_process_and_prints_the_location,
        ),
    ];
    debian::main("hip", tests, &[]);
}
