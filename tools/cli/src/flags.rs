//! `devprof flags`: what to compile and link with, for the clang that is here, as llvm-config tells it for LLVM.

use crate::clang::{Clang, Instrumentation};
use crate::parts::{Part, device_runtime_build};
use crate::{Console, gpus, llvm};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    purpose: Purpose,
    /// The GPUs to compile for (gfx1100, gfx90a:xnack-, native, …); without it, those of this machine
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    arch: Vec<String>,
    /// Only the flags that a compilation to an object file needs
    #[arg(long, conflicts_with = "link")]
    compile: bool,
    /// Only the flags that linking needs
    #[arg(long)]
    link: bool,
    /// Count (or optimise) device code only, not the host's
    #[arg(long)]
    device_only: bool,
    /// For a file that hipModuleLoad loads: no host code
    #[arg(long, conflicts_with_all = ["compile", "link"])]
    module: bool,
    /// Do not link devprof's archive into the program, which then has to be run with `devprof run`
    ///
    /// LLVM's own collector, where the toolchain has one, is in the program then; devprof's takes its place otherwise.
    #[arg(long)]
    no_runtime: bool,
    /// The compiler; without it, clang++ in PATH, or the newest that there is
    #[arg(long, value_name = "CLANG")]
    clang: Option<PathBuf>,
    #[command(flatten)]
    llvm: llvm::Options,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Purpose {
    /// Count every block and keep the mapping to the source
    #[arg(long)]
    coverage: bool,
    /// Count for the optimiser, which is cheaper
    #[arg(long)]
    pgo_generate: bool,
    /// Optimise with what `devprof merge` has made of the counts
    #[arg(long, value_name = "FILE.profdata")]
    pgo_use: Option<PathBuf>,
}

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let clang = Clang::find(options.clang.as_deref(), &options.llvm)?;
    let architectures = architectures(options, &clang, console)?;
    let mut flags: Vec<String> = architectures
        .iter()
        .map(|name| format!("--offload-arch={name}"))
        .collect();
    flags.extend(clang.device_libraries(&architectures)?);
    if options.link {
        flags.push("--hip-link".to_owned());
    }
    if options.module {
        flags.extend(["--offload-device-only", "--no-gpu-bundle-output"].map(String::from));
    }
    match &options.purpose.pgo_use {
        Some(profile) => flags.extend(with_profile(options, &clang, profile)?),
        None => flags.extend(counting(options, &clang)?),
    }
    let counts = options.purpose.pgo_use.is_none();
    if counts && !options.no_runtime && !options.compile && !options.module {
        let archive = Part::Archive.find().map_err(|error| {
            format!("no libdevprof.a to link in (--no-runtime goes without): {error}")
        })?;
        if archive.as_os_str().as_encoded_bytes().contains(&b',') {
            return Err(format!(
                "clang would split {} at its comma: put devprof elsewhere",
                archive.display()
            ));
        }
        flags.push("-Wl,-u,__llvm_profile_hip_collect_device_data".to_owned());
        flags.push(export_hsa());
        // By the linker, which has no idea of HIP: after `-x hip` clang would compile it.
        flags.push(format!("-Wl,{}", archive.display()));
    }
    for flag in &flags {
        if flag.contains(char::is_whitespace) {
            return Err(format!(
                "a shell would take {flag:?} for several flags, as it has a space in it: put the file elsewhere"
            ));
        }
    }
    if options.clang.is_none() && !is_plain(&clang) {
        (console.say)(&format!(
            "devprof: there is no clang++ in PATH; these flags are for {}",
            clang.path.display()
        ));
    }
    console.print(&format!("{}\n", flags.join(" ")))?;
    Ok(0)
}

/// Functions of HSA that the archive defines in front of ROCr's. HIP's library calls the program's only if the program
/// exports them. GNU ld exports them without being asked, since HIP's library refers to them. lld, gold and mold do not:
/// they compare the names together with the version of the reference (`hsa_init@ROCR_1`). The option needs GNU ld 2.35,
/// and does nothing in a program without these functions.
const HSA_FUNCTIONS: [&str; 4] = [
    "hsa_init",
    "hsa_shut_down",
    "hsa_executable_freeze",
    "hsa_executable_destroy",
];

fn export_hsa() -> String {
    let options = HSA_FUNCTIONS.map(|name| format!(",--export-dynamic-symbol={name}"));
    format!("-Wl{}", options.concat())
}

/// It is what a shell starts by the name of clang++.
fn is_plain(clang: &Clang) -> bool {
    clang.path.file_name().is_some_and(|name| name == "clang++")
}

/// The GPUs to compile for.
fn architectures(
    options: &Options,
    clang: &Clang,
    console: &mut Console,
) -> Result<Vec<String>, String> {
    if options.arch.is_empty() {
        let here: Vec<String> = gpus::architectures().into_iter().collect();
        if here.is_empty() {
            (console.say)(
                "devprof: there is no AMD GPU here to compile for, and clang takes its default: name one with --arch (gfx1100 is what `devprof run --model` has)",
            );
        }
        return Ok(here);
    }
    let known = clang.architectures()?;
    for name in &options.arch {
        let base = name.split(':').next().unwrap_or(name);
        if base != "native" && !known.iter().any(|known| known == base) {
            return Err(format!(
                "--arch {name}: {} ({}) makes no code for it; it does for {}",
                clang.path.display(),
                clang.version,
                known.join(", ")
            ));
        }
    }
    Ok(options.arch.clone())
}

/// Each flag, for the device alone where the host is not meant.
fn scoped(options: &Options, flags: &[&str]) -> Vec<String> {
    let device = "-Xarch_device".to_owned();
    let mut scoped = Vec::new();
    for flag in flags {
        if options.device_only || options.module {
            scoped.push(device.clone());
        }
        scoped.push((*flag).to_owned());
    }
    scoped
}

fn counting(options: &Options, clang: &Clang) -> Result<Vec<String>, String> {
    let kind = clang.instrumentation()?;
    let Instrumentation {
        raw_version,
        samples,
    } = kind;
    if ![10, 11].contains(&raw_version) {
        return Err(format!(
            "{} ({}) writes raw profiles of version {raw_version}, and devprof knows versions 10 and 11 (LLVM 22 and 23): name another clang with --clang",
            clang.path.display(),
            clang.version
        ));
    }
    let is_coverage = options.purpose.coverage;
    let mut flags = match (is_coverage, options.link) {
        (true, false) => scoped(options, &["-fprofile-instr-generate", "-fcoverage-mapping"]),
        (true, true) => scoped(options, &["-fprofile-instr-generate"]),
        (false, _) => scoped(options, &["-fprofile-generate"]),
    };
    let for_device = |flag: &str| ["-Xarch_device".to_owned(), flag.to_owned()];
    if samples && is_coverage && !options.link {
        flags.extend(for_device("-mllvm=--offload-pgo-sampling=0"));
    }
    // Without the runtime's functions, which add atomically, clang's own increments lose counts.
    if raw_version < 11 && !options.link {
        flags.extend(for_device("-fprofile-update=atomic"));
    }
    flags.extend(device_runtime(options, clang, kind)?);
    Ok(flags)
}

/// What makes the device's link find the device side of the profile runtime.
fn device_runtime(
    options: &Options,
    clang: &Clang,
    kind: Instrumentation,
) -> Result<Vec<String>, String> {
    let own = clang.device_runtime()?;
    // clang 22 and earlier never look; nobody does for a module.
    let is_taken = kind.raw_version >= 11 && !options.module;
    let mut flags = Vec::new();
    if options.module && kind.raw_version >= 11 {
        flags.push("-foffload-lto".to_owned());
    }
    let path = match own.exists() {
        true if is_taken => return Ok(flags),
        true => own,
        false => Part::DeviceRuntime(clang.major).find().map_err(|_| {
            format!(
                "{} ({}) has no device side of the profile runtime: {} is not there, and devprof has none for it; {} --clang {} --install makes it, as the user who may write there",
                clang.path.display(),
                clang.version,
                own.display(),
                device_runtime_build(),
                clang.path.display(),
            )
        })?,
    };
    // The device is linked when the host is compiled, or, relocatable (-fgpu-rdc), when the host is linked.
    let is_apart = options.compile || options.link;
    if is_apart {
        flags.push("--start-no-unused-arguments".to_owned());
    }
    flags.push("-Xoffload-linker".to_owned());
    flags.push(path.display().to_string());
    if is_apart {
        flags.push("--end-no-unused-arguments".to_owned());
    }
    Ok(flags)
}

fn with_profile(options: &Options, clang: &Clang, profile: &Path) -> Result<Vec<String>, String> {
    let path = profile.canonicalize().map_err(|error| {
        format!(
            "cannot read {}: {error}; `devprof merge` makes it of what a program has counted",
            profile.display()
        )
    })?;
    let path = path.display().to_string();
    if let Some(error) = clang.refuses_profile(&path)? {
        return Err(format!(
            "{} ({}) cannot use {path}: {error}; `devprof merge` makes it of raw profiles, with the llvm-profdata of the clang that compiled the program",
            clang.path.display(),
            clang.version
        ));
    }
    match options.link {
        true => Ok(Vec::new()),
        false => Ok(scoped(options, &[&format!("-fprofile-use={path}")])),
    }
}
