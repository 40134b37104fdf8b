//! Compares the results of instructions with C++ on the host: each program in `semantics/` computes on the device and on the
//! host. clang 23 compiles it at each optimization level and for both wave sizes. AMD's HIP and ROCr run it on the model, in
//! the Debian root that `tools/rocm-env setup` creates.
//!
//! A failure prints the seed of the inputs. `DEVPROF_SEED` sets the first seed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the library that ROCr loads: `tools/rocm-env` only builds it if it does not exist.
fn build_model() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "-p", "gpu-model"])
            .current_dir(repo())
            .status()
            .expect("cargo starts");
        assert!(status.success(), "cargo build --release -p gpu-model");
    });
}

fn rocm_env(arguments: &[&str]) -> Output {
    Command::new(repo().join("tools/rocm-env"))
        .arg("run")
        .args(arguments)
        .current_dir(repo())
        .output()
        .expect("tools/rocm-env starts")
}

fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Builds and runs `semantics/NAME.hip` in all variants.
fn program(name: &str) {
    build_model();
    let first_seed: u64 = std::env::var("DEVPROF_SEED")
        .map_or(1, |seed| seed.parse().expect("DEVPROF_SEED is a number"));
    let source = format!("tools/gpu-model/tests/semantics/{name}.hip");
    let mut failures = String::new();
    for (i, level) in ["-O0", "-O1", "-O2", "-O3"].iter().enumerate() {
        for lanes in [32, 64] {
            let variant = format!("{name} {level} wave{lanes}");
            let binary =
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}{level}-{lanes}"));
            let binary = binary.to_str().expect("a path in UTF-8");
            let mut command = vec![
                "--no-model",
                "--",
                "clang++-23",
                "-x",
                "hip",
                "--offload-arch=gfx1100",
                "--rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode",
                "-std=c++20",
                // With contraction, the results would differ from the host's.
                "-ffp-contract=off",
                level,
            ];
            if lanes == 64 {
                command.push("-mwavefrontsize64");
            }
            command.extend([&source, "-o", binary, "-lamdhip64"]);
            let compiled = rocm_env(&command);
            assert!(
                compiled.status.success(),
                "{variant} does not compile: {}",
                text(&compiled)
            );
            let seed = (first_seed + 2 * i as u64 + u64::from(lanes == 64)).to_string();
            let run = rocm_env(&["--", "timeout", "300", binary, &seed]);
            if !run.status.success() {
                failures += &format!("{variant}: {}\n{}\n", run.status, text(&run));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn integers() {
    program("integer");
}

#[test]
fn floats() {
    program("float");
}

#[test]
fn functions_of_the_device_library() {
    program("math");
}

#[test]
fn control_flow_and_calls() {
    program("control");
}

#[test]
fn operations_across_lanes() {
    program("lanes");
}

#[test]
fn memory_of_every_width() {
    program("memory");
}

#[test]
fn atomics() {
    program("atomics");
}

#[test]
fn copies_grids_and_streams() {
    program("host");
}

#[test]
fn scalar_integers() {
    program("scalar");
}

#[test]
fn instructions_with_builtins() {
    program("instructions");
}
