//! HIP programs through stock clang and AMD's own HIP and ROCr, executed by the model: their device results against
//! those of the host, at each optimisation level, in wave32 and wave64.
//!
//! They run in the root that `tools/rocm-env setup` makes. A program checks itself and prints what is wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a shell command in the root, on the model as it is now.
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
    Command::new(repo().join("tools/rocm-env"))
        .args(["run", "--", "sh", "-c", command])
        .current_dir(repo())
        .output()
        .expect("tools/rocm-env starts")
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
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

fn everywhere(program: &str) {
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

#[test]
fn memory() {
    everywhere("memory");
}

#[test]
fn lanes() {
    everywhere("lanes");
}

#[test]
fn arithmetic() {
    everywhere("arithmetic");
}

#[test]
fn concurrency() {
    everywhere("concurrency");
}

#[test]
fn faults_end_the_process_with_the_place() {
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
            ["kernel _Z7unknownPi: no instruction of gfx1100", ": f0000"],
        ),
    ] {
        let output = in_rocm(&format!("'{}' {mode}", out.display()));
        let said = text(&output).replace("Device-side assertion", "Assertion");
        // SIGABRT
        assert_eq!(output.status.code().unwrap_or(134), 134, "{mode}: {said}");
        for expected in expected {
            assert!(
                said.contains(expected),
                "{mode}: no {expected:?} in: {said}"
            );
        }
    }
    let output = in_rocm(&format!("'{}' none", out.display()));
    assert!(output.status.success(), "{}", text(&output));
}
