//! Compares the results of instructions with C++ on the host: each program in `semantics/` computes on the device and on the
//! host. It runs in the Debian root that `tools/rocm-env setup` creates:
//!
//! - gfx1100: clang 23 compiles it at one or more of three optimization levels, for waves of 32 or 64 lanes. AMD's HIP and ROCr
//!   run it on the model.
//! - gfx90a, gfx942 and gfx1201: clang 22 or 23 compiles it with or without optimization. ROCr's model mode does not start these GPUs, so
//!   the program uses `semantics/hip-on-hsa.cpp` instead of AMD's HIP, on tools/simulator/hsa-sim, which runs the model.
//!
//! Nearly all of the time is clang's. So the host code of a program is compiled once, without optimization, or once per target
//! if it depends on that, `semantics/check.h` is a precompiled header, and no program has all variants ([`PROGRAMS`]).
//!
//! A failure prints the seed of the inputs. `DEVPROF_SEED` sets the first seed.

mod debian;

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, Once, OnceLock};

use debian::{Test, repo, text};

const SOURCES: &str = "tools/simulator/gpu-model/tests/semantics";

fn rocm_env(arguments: &[&str]) -> Output {
    debian::command(arguments)
        .output()
        .expect("tools/rocm-env starts")
}

fn compile(compiler: &str, arguments: &[&str]) {
    let compiled = rocm_env(&[&["--no-model", "--", compiler], arguments].concat());
    assert!(
        compiled.status.success(),
        "{compiler} {arguments:?}: {}",
        text(&compiled)
    );
}

fn first_seed() -> u64 {
    std::env::var("DEVPROF_SEED").map_or(1, |seed| seed.parse().expect("DEVPROF_SEED is a number"))
}

fn temporary(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

/// The path of a temporary file that several tests use. The first one makes it.
fn shared(name: &str, make: impl FnOnce(&str)) -> String {
    static MADE: Mutex<Option<HashMap<String, Arc<OnceLock<()>>>>> = Mutex::new(None);
    let mut made = MADE.lock().expect("no panic while it is locked");
    let once = made.get_or_insert_default().entry(name.into()).or_default();
    let once = Arc::clone(once);
    drop(made);
    let path = temporary(name);
    once.get_or_init(|| make(&path));
    path
}

/// Builds the library that ROCr loads (`tools/rocm-env` only builds it if it does not exist), and a folder with hsa-sim as
/// `libhsa-runtime64.so`. Returns the folder.
fn build_libraries() -> String {
    static BUILT: Once = Once::new();
    let folder = temporary("hsa-sim");
    BUILT.call_once(|| {
        let build = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "-p", "gpu-model"])
            .args(["-p", "hsa-sim", "--message-format"])
            .arg("json-render-diagnostics")
            .current_dir(repo())
            .output()
            .expect("cargo starts");
        assert!(build.status.success(), "cargo build --release");
        // The path of the shared library in cargo's messages.
        let messages = text(&build);
        let library = messages
            .split('"')
            .find(|part| part.ends_with("libhsa_sim.so"))
            .expect("cargo builds libhsa_sim.so");
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["libhsa-runtime64.so", "libhsa-runtime64.so.1"] {
            std::fs::copy(library, Path::new(&folder).join(name)).expect("a copy of hsa-sim");
        }
    });
    folder
}

/// How to compile the device code.
#[derive(Clone, Copy)]
struct Variant {
    target: &'static str,
    compiler: &'static str,
    level: &'static str,
    lanes: u32,
}

impl Variant {
    const fn new(
        target: &'static str,
        compiler: &'static str,
        level: &'static str,
        lanes: u32,
    ) -> Variant {
        Variant {
            target,
            compiler,
            level,
            lanes,
        }
    }

    /// The host code of a program, which its variants share. `GFX9` is in the programs in which it depends on the target.
    fn host(self, source: &str) -> Variant {
        let depends = source.contains("GFX9") && self.is_gfx9();
        let target = if depends { self.target } else { "gfx1100" };
        Variant::new(target, "clang++-23", "-O0", 0)
    }

    fn is_gfx9(self) -> bool {
        self.target.starts_with("gfx9")
    }

    fn name(self) -> String {
        let Variant {
            target,
            compiler,
            level,
            lanes,
        } = self;
        format!("{target}{level}-{lanes}-{compiler}")
    }

    /// Compiles HIP, for the host if this is [`Variant::host`], otherwise for the device.
    fn compile(self, arguments: &[&str]) {
        let arch = format!("--offload-arch={}", self.target);
        // The digits of the name.
        let define = format!("-DGFX9={}", self.target.replace(char::is_alphabetic, ""));
        let mut all = vec![
            "-x",
            "hip",
            &arch,
            "--rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode",
            // With C++20, the headers take clang nearly twice as long.
            "-std=c++17",
            // With contraction, the results would differ from the host's.
            "-ffp-contract=off",
            // Host code and device code have the same names of kernels.
            "-cuid=semantics",
            "-Wno-cuda-compat",
            self.level,
        ];
        if self.is_gfx9() {
            all.push(&define);
        } else if self.lanes == 64 {
            all.push("-mwavefrontsize64");
        }
        let partial = self.level == "-O1" || self.target != "gfx1100" && self.level == "-O0";
        if partial && self.lanes != 0 {
            // The code for grids that are not a multiple of the workgroup's size. Without this option, HIP refuses them.
            all.push("-fno-offload-uniform-block");
        }
        all.push(match self.lanes {
            0 => "--cuda-host-only",
            _ => "--cuda-device-only",
        });
        compile(self.compiler, &[&all, arguments].concat());
    }

    /// Compiles `semantics/NAME.hip` to an object for the host, or to an offload bundle.
    fn compile_program(self, name: &str, out: &str) {
        // The header does not depend on the target.
        let included = if self.lanes == 0 { self.host("") } else { self };
        let Variant {
            target,
            compiler,
            lanes,
            ..
        } = included;
        let header = format!("check-{target}-{lanes}-{compiler}.pch");
        let header = shared(&header, |path| {
            let source = format!("{SOURCES}/check.h");
            // The driver does not make precompiled headers of device code.
            let emit = ["-fsyntax-only", "-Xclang", "-emit-pch", "-Xclang", "-o"];
            included.compile(&[&emit[..], &["-Xclang", path, &source]].concat());
        });
        // The header does not depend on the other options, either, but clang requires the same ones.
        let mut options = vec!["-Xclang", "-fno-validate-pch"];
        options.extend(["-Xclang", "-include-pch", "-Xclang", &header]);
        let source = format!("{SOURCES}/{name}.hip");
        let stop = if self.lanes == 0 {
            "-c"
        } else {
            "--gpu-bundle-output"
        };
        options.extend([&source[..], stop, "-o", out]);
        self.compile(&options);
    }

    /// Builds `semantics/NAME.hip`. Returns the path of the program.
    fn build(self, name: &str) -> String {
        let folder = build_libraries();
        let source = std::fs::read_to_string(repo().join(format!("{SOURCES}/{name}.hip")));
        let variant = self.host(&source.expect("a program"));
        let host = shared(&format!("{name}-{}.o", variant.target), |path| {
            variant.compile_program(name, path);
        });
        let binary = temporary(&format!("{name}-{}", self.name()));
        let bundle = format!("{binary}.hipfb");
        self.compile_program(name, &bundle);
        // The host's code refers to the bundle by a name that ends with 16 digits.
        let object = std::fs::read(&host).expect("the host's object");
        let prefix = b"__hip_fatbin_";
        let symbol = object
            .windows(prefix.len() + 16)
            .find(|name| name.starts_with(prefix) && name.iter().all(|byte| *byte != 0))
            .map(String::from_utf8_lossy)
            .expect("the bundle's symbol");
        let assembly = format!("{binary}.s");
        let contents = format!(
            ".section .hip_fatbin, \"a\"\n.p2align 12\n.globl {symbol}\n{symbol}: .incbin \"{bundle}\"\n"
        );
        std::fs::write(&assembly, contents).expect("an assembly file");
        // GNU ld takes three times as long.
        let mut arguments = vec!["-fuse-ld=lld", &host[..], &assembly, "-o", &binary];
        let hip = shared("hip-on-hsa.o", |path| {
            let source = format!("{SOURCES}/hip-on-hsa.cpp");
            let define = "-D__HIP_PLATFORM_AMD__";
            compile(
                "clang++-23",
                &["-std=c++20", define, "-c", &source, "-o", path],
            );
        });
        let path = format!("-L{folder}");
        if self.target == "gfx1100" {
            arguments.push("-lamdhip64");
        } else {
            arguments.extend([&hip[..], &path, "-lhsa-runtime64", "-lamd_comgr"]);
        }
        compile("clang++-23", &arguments);
        binary
    }

    fn run(self, binary: &str, seed: u64) -> Output {
        let seed = seed.to_string();
        let command = ["timeout", "300", binary, &seed, self.level];
        if self.target == "gfx1100" {
            return rocm_env(&[&["--"], &command[..]].concat());
        }
        let library_path = format!("LD_LIBRARY_PATH={}", build_libraries());
        let agents = format!("HSA_SIM_AGENTS={}", self.target);
        let env = ["--no-model", "--", "env", &library_path, &agents];
        rocm_env(&[&env[..], &command].concat())
    }
}

/// Builds and runs `semantics/NAME.hip` in these variants.
fn program(name: &str, variants: &[Variant]) {
    let mut failures = String::new();
    for (seed, variant) in (first_seed()..).zip(variants) {
        let run = variant.run(&variant.build(name), seed);
        if !run.status.success() {
            let variant = variant.name();
            failures += &format!("{name} {variant}: {}\n{}\n", run.status, text(&run));
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

// -O2 makes the same machine code as -O3: for gfx1100, 16 of 22 code objects were identical.
const GFX11_O0: Variant = Variant::new("gfx1100", "clang++-23", "-O0", 64);
const GFX11_O1: Variant = Variant::new("gfx1100", "clang++-23", "-O1", 32);
const GFX11_O3: Variant = Variant::new("gfx1100", "clang++-23", "-O3", 64);
const GFX12_O0: Variant = Variant::new("gfx1201", "clang++-23", "-O0", 32);
const GFX12_O3: Variant = Variant::new("gfx1201", "clang++-23", "-O3", 32);
const GFX12_O3W: Variant = Variant::new("gfx1201", "clang++-23", "-O3", 64);
const GFX12_O1: Variant = Variant::new("gfx1201", "clang++-22", "-O1", 32);
const GFX90A_O0: Variant = Variant::new("gfx90a", "clang++-22", "-O0", 64);
const GFX90A_O3: Variant = Variant::new("gfx90a", "clang++-23", "-O3", 64);
const GFX942_O0: Variant = Variant::new("gfx942", "clang++-23", "-O0", 64);
const GFX942_O3: Variant = Variant::new("gfx942", "clang++-22", "-O3", 64);

/// The name of a test, its program, and its variants: those whose machine code has instructions, not only encodings of them, that no
/// other one has, or other stack frames, or another wave size where it matters. gfx90a and gfx942 execute only accesses to memory,
/// atomics, matrices and `s_getreg` differently (`Architecture::` in `src/exec`), so a program without them has one of the two. With
/// all variants of all programs, there would be six more instructions for gfx11 or gfx9: five comparisons and `v_bfm_b32`, which have
/// unit tests.
/// gfx1201 has one variant each of the programs whose machine code has instructions that gfx11 does not have or encodes differently.
const PROGRAMS: &[(&str, &str, &[Variant])] = &[
    ("integers", "integer", &[GFX11_O3, GFX90A_O3]),
    (
        "floats",
        "float",
        &[GFX12_O0, GFX11_O0, GFX11_O1, GFX90A_O3, GFX942_O3],
    ),
    (
        "operations_across_lanes",
        "lanes",
        &[GFX12_O3W, GFX11_O1, GFX11_O3, GFX942_O3],
    ),
    (
        "functions_of_the_device_library",
        "math",
        &[GFX11_O0, GFX11_O1, GFX942_O3],
    ),
    (
        "control_flow_and_calls",
        "control",
        &[
            GFX12_O3, GFX11_O0, GFX11_O1, GFX11_O3, GFX90A_O0, GFX90A_O3, GFX942_O0, GFX942_O3,
        ],
    ),
    (
        "memory_of_every_width",
        "memory",
        &[
            GFX12_O3, GFX11_O0, GFX11_O1, GFX90A_O0, GFX90A_O3, GFX942_O3,
        ],
    ),
    (
        "atomics",
        "atomics",
        &[GFX12_O3, GFX11_O3, GFX90A_O3, GFX942_O3],
    ),
    ("copies_grids_and_streams", "host", &[GFX11_O1]),
    ("concurrent_queues", "concurrency", &[GFX11_O3]),
    (
        "scalar_integers",
        "scalar",
        &[GFX12_O3, GFX11_O3, GFX942_O3],
    ),
    (
        "instructions_with_builtins",
        "instructions",
        &[GFX12_O1, GFX11_O3, GFX942_O3],
    ),
    (
        "scalar_floats_and_other_instructions_of_rdna4",
        "rdna4",
        &[GFX12_O3],
    ),
    (
        "matrices_and_other_instructions_of_cdna",
        "cdna",
        &[GFX90A_O3, GFX942_O0, GFX942_O3],
    ),
];

fn a_fault_ends_the_process_and_prints_the_location() {
    let binary = GFX11_O1.build("faults");
    let run = |mode| rocm_env(&["--", &binary, mode]);
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
        let output = run(mode);
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
    let output = run("none");
    assert!(output.status.success(), "{}", text(&output));
}

fn main() {
    let mut tests = vec![];
    for (name, source, variants) in PROGRAMS {
        for variants in variants.chunk_by(|a, b| a.target == b.target) {
            let name = format!("{name}_on_{}", variants[0].target);
            tests.push(Test::new(&name, move || program(source, variants)));
        }
    }
    tests.push(Test::new(
        "a_fault_ends_the_process_and_prints_the_location",
        a_fault_ends_the_process_and_prints_the_location,
    ));
    debian::main("semantics", tests, vec![]);
}
