//! Compares the results of instructions with C++ on the host: each program in `semantics/` computes on the device and on the
//! host. It runs in the Debian root that `tools/rocm-env setup` creates:
//!
//! - gfx1100: clang 23 compiles it at each optimization level and for both wave sizes. AMD's HIP and ROCr run it on the model.
//! - gfx90a and gfx942: clang 22 or 23 compiles it at each optimization level. ROCr's model mode does not start these GPUs, so
//!   the program uses `semantics/hip-on-hsa.cpp` instead of AMD's HIP, on tools/simulator/hsa-sim, which runs the model.
//!
//! A failure prints the seed of the inputs. `DEVPROF_SEED` sets the first seed.

mod debian;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Once, OnceLock};

use debian::{repo, text};

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
    debian::command(arguments)
        .output()
        .expect("tools/rocm-env starts")
}

fn first_seed() -> u64 {
    std::env::var("DEVPROF_SEED").map_or(1, |seed| seed.parse().expect("DEVPROF_SEED is a number"))
}

fn temporary(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

/// A folder with hsa-sim as `libhsa-runtime64.so`, and `hip-on-hsa.o`.
fn simulator() -> &'static (String, String) {
    static BUILT: OnceLock<(String, String)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let build = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "-p", "hsa-sim"])
            .args(["--message-format", "json-render-diagnostics"])
            .current_dir(repo())
            .output()
            .expect("cargo starts");
        assert!(build.status.success(), "cargo build --release -p hsa-sim");
        // The path of the shared library in cargo's messages.
        let messages = text(&build);
        let library = messages
            .split('"')
            .find(|part| part.ends_with("libhsa_sim.so"))
            .expect("cargo builds libhsa_sim.so");
        let folder = temporary("hsa-sim");
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["libhsa-runtime64.so", "libhsa-runtime64.so.1"] {
            std::fs::copy(library, Path::new(&folder).join(name)).expect("a copy of hsa-sim");
        }
        let object = temporary("hip-on-hsa.o");
        let compiled = rocm_env(&[
            "--no-model",
            "--",
            "clang++-23",
            "-std=c++20",
            "-D__HIP_PLATFORM_AMD__",
            "-c",
            "tools/simulator/gpu-model/tests/semantics/hip-on-hsa.cpp",
            "-o",
            &object,
        ]);
        assert!(compiled.status.success(), "{}", text(&compiled));
        (folder, object)
    })
}

/// Builds and runs `semantics/NAME.hip` for CDNA. Both compilers and all optimization levels are used, but not all
/// combinations for each target.
fn cdna(name: &str) {
    let (folder, object) = simulator();
    let source = format!("tools/simulator/gpu-model/tests/semantics/{name}.hip");
    let mut failures = String::new();
    for (number, target) in ["gfx90a", "gfx942"].into_iter().enumerate() {
        for (i, level) in ["-O0", "-O1", "-O2", "-O3"].iter().enumerate() {
            let compiler = ["clang++-22", "clang++-23"][(i / 2 + i + number) % 2];
            let variant = format!("{name} {target} {level} {compiler}");
            let binary = temporary(&format!("{name}-{target}{level}"));
            // The digits of the name.
            let define = format!("-DGFX9={}", target.replace(char::is_alphabetic, ""));
            let compiled = rocm_env(&[
                "--no-model",
                "--",
                compiler,
                "-x",
                "hip",
                &format!("--offload-arch={target}"),
                "--rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode",
                "-std=c++20",
                "-ffp-contract=off",
                &define,
                level,
                &source,
                "-x",
                "none",
                object,
                "-o",
                &binary,
                "-no-hip-rt",
                &format!("-L{folder}"),
                "-lhsa-runtime64",
                "-lamd_comgr",
            ]);
            assert!(
                compiled.status.success(),
                "{variant} does not compile: {}",
                text(&compiled)
            );
            let seed = (first_seed() + i as u64).to_string();
            let run = rocm_env(&[
                "--no-model",
                "--",
                "env",
                &format!("LD_LIBRARY_PATH={folder}"),
                &format!("HSA_SIM_AGENTS={target}"),
                "timeout",
                "300",
                &binary,
                &seed,
            ]);
            if !run.status.success() {
                failures += &format!("{variant}: {}\n{}\n", run.status, text(&run));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Builds and runs `semantics/NAME.hip` in all variants for gfx1100.
fn program(name: &str) {
    build_model();
    let first_seed = first_seed();
    let source = format!("tools/simulator/gpu-model/tests/semantics/{name}.hip");
    let mut failures = String::new();
    for (i, level) in ["-O0", "-O1", "-O2", "-O3"].iter().enumerate() {
        for lanes in [32, 64] {
            let variant = format!("{name} {level} wave{lanes}");
            let binary = temporary(&format!("{name}{level}-{lanes}"));
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
            command.extend([&source, "-o", &binary, "-lamdhip64"]);
            let compiled = rocm_env(&command);
            assert!(
                compiled.status.success(),
                "{variant} does not compile: {}",
                text(&compiled)
            );
            let seed = (first_seed + 2 * i as u64 + u64::from(lanes == 64)).to_string();
            let run = rocm_env(&["--", "timeout", "300", &binary, &seed]);
            if !run.status.success() {
                failures += &format!("{variant}: {}\n{}\n", run.status, text(&run));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn main() {
    let tests: &[(&str, fn())] = &[
        ("integers", || program("integer")),
        ("floats", || program("float")),
        ("functions_of_the_device_library", || program("math")),
        ("control_flow_and_calls", || program("control")),
        ("operations_across_lanes", || program("lanes")),
        ("memory_of_every_width", || program("memory")),
        ("atomics", || program("atomics")),
        ("copies_grids_and_streams", || program("host")),
        ("scalar_integers", || program("scalar")),
        ("instructions_with_builtins", || program("instructions")),
        ("integers_on_cdna", || cdna("integer")),
        ("floats_on_cdna", || cdna("float")),
        ("functions_of_the_device_library_on_cdna", || cdna("math")),
        ("control_flow_and_calls_on_cdna", || cdna("control")),
        ("operations_across_lanes_on_cdna", || cdna("lanes")),
        ("memory_of_every_width_on_cdna", || cdna("memory")),
        ("atomics_on_cdna", || cdna("atomics")),
        ("scalar_integers_on_cdna", || cdna("scalar")),
        ("instructions_with_builtins_on_cdna", || {
            cdna("instructions")
        }),
        ("matrices_and_other_instructions_of_cdna", || cdna("cdna")),
    ];
    debian::main("semantics", tests, &[]);
}
