//! The flags for CUDA. clang's driver drops the profile flags of device code, so `-Xclang` passes them to the compiler
//! itself, and nothing is linked on the device: the device side of the profile runtime is a header
//! (src/device/device-rt/cuda.h).

use super::options::{Options, for_device};
use super::usable_profile;
use crate::clang::{Clang, offload_flags};
use crate::console::Console;
use crate::cuda_installation::CudaInstallation;
use crate::cuda_registers::for_threads;
use crate::exit::usage;
use crate::gpus;
use crate::locate::Component;
use anyhow::{Context, bail};
use std::path::Path;

/// The device runtime compares the lanes of a warp, which older GPUs cannot do.
const OLDEST_ARCHITECTURE: u32 = 70;

/// The largest number of registers of a thread.
const MOST_REGISTERS: u32 = 255;

/// All flags except for devprof's archive.
pub fn flags(
    options: &Options,
    clang: &Clang,
    console: &mut Console,
) -> anyhow::Result<Vec<String>> {
    let cuda = CudaInstallation::find()?;
    if !clang.instruments_cuda()? {
        bail!(
            "{clang} cannot instrument CUDA device code: clang 23 and later can, if they are built with the NVPTX target; name another clang with --clang"
        );
    }
    let compiles = !options.link;
    let links = !options.compile && !options.module;
    let mut flags = Vec::new();
    if compiles || options.rdc {
        flags.extend(target(options, clang, &cuda)?);
    }
    if options.rdc {
        flags.push("-fgpu-rdc".to_owned());
    }
    if options.module {
        flags.extend(["--offload-device-only", "-c"].map(String::from));
    }
    if compiles {
        if let Some(cccl) = cuda.cccl() {
            flags.extend(["-isystem".to_owned(), cccl.display().to_string()]);
        }
        match &options.purpose.pgo_use {
            Some(profile) => flags.extend(optimizing(clang, profile)?),
            None => flags.extend(instrumenting(options, console)?),
        }
        if let Some(threads) = options.max_threads {
            let registers = for_threads(threads).min(MOST_REGISTERS);
            flags.push("-Xcuda-ptxas".to_owned());
            flags.push(format!("--maxrregcount={registers}"));
        }
        if let Some(source) = &options.source {
            flags.extend(for_compiler(&["-main-file-name", &unit_name(source)?]));
        }
    }
    if links {
        flags.extend(linking(options, &cuda)?);
    }
    Ok(flags)
}

/// Passes arguments to the compiler itself. clang's driver passes them to the compilations of both host and device.
fn for_compiler(arguments: &[&str]) -> Vec<String> {
    let pairs = arguments.iter().flat_map(|argument| ["-Xclang", argument]);
    pairs.map(str::to_owned).collect()
}

/// The GPUs and the CUDA installation.
fn target(
    options: &Options,
    clang: &Clang,
    cuda: &CudaInstallation,
) -> anyhow::Result<Vec<String>> {
    let mut flags = offload_flags(&architectures(options, clang)?);
    flags.push(format!("--cuda-path={}", cuda.path.display()));
    if let Some(error) = clang.driver_error("cuda", &flags)? {
        bail!(
            "{clang} cannot compile CUDA with {}: {error}",
            cuda.path.display()
        );
    }
    Ok(flags)
}

/// The GPUs to compile for. `native` without --arch: clang asks the driver.
fn architectures(options: &Options, clang: &Clang) -> anyhow::Result<Vec<String>> {
    if options.arch.is_empty() {
        if gpus::nvidia(Path::new("/")).is_empty() {
            return Err(usage(
                "no NVIDIA GPU found: name the GPU to compile for with --arch (--arch sm_90)",
            ));
        }
        return Ok(vec!["native".to_owned()]);
    }
    let known = clang.nvptx_architectures()?;
    let is_usable = |name: &str| generation(name).is_some_and(|sm| sm >= OLDEST_ARCHITECTURE);
    for name in options.arch.iter().filter(|name| *name != "native") {
        if !known.contains(name) || !is_usable(name) {
            let usable = known.iter().map(String::as_str);
            let usable: Vec<&str> = usable.filter(|name| is_usable(name)).collect();
            return Err(usage(format!(
                "--arch {name}: {clang} does not support it with devprof; supported are {}",
                usable.join(", ")
            )));
        }
    }
    Ok(options.arch.clone())
}

/// 90 for `sm_90` and `sm_90a`.
fn generation(architecture: &str) -> Option<u32> {
    let digits = architecture.strip_prefix("sm_")?;
    digits.trim_end_matches(char::is_alphabetic).parse().ok()
}

fn instrumenting(options: &Options, console: &mut Console) -> anyhow::Result<Vec<String>> {
    let runtime = Component::CudaDeviceRuntime
        .find()
        .and_then(|path| Ok(path.canonicalize()?))
        .context("cannot find the device side of the profile runtime for CUDA")?;
    let is_coverage = options.purpose.coverage.is_some();
    let mut flags = Vec::new();
    // The driver's flags are for the host. It would warn about them if it compiles no host code.
    if !options.module {
        flags.push("-fprofile-instr-generate".to_owned());
        if is_coverage {
            flags.push("-fcoverage-mapping".to_owned());
        }
    }
    // Front-end instrumentation, also for PGO: IR-level instrumentation adds an alias to each kernel, which PTX does not
    // have, and appends a hash with a dot to names.
    flags.extend(for_compiler(&["-fprofile-instrument=clang"]));
    if is_coverage {
        flags.extend(for_compiler(&["-fcoverage-mapping"]));
        flags.extend(compilation_dir(console)?);
    }
    if options.mcdc {
        // Lanes set bits of the same bytes. There is no way to pass the second option for device code alone.
        flags.extend(for_compiler(&[
            "-fcoverage-mcdc",
            "-fprofile-update=atomic",
        ]));
    }
    if options.sampling {
        flags.push("-DDEVPROF_SAMPLING".to_owned());
    } else {
        flags.extend(for_device("-mllvm=--offload-pgo-sampling=0"));
    }
    flags.extend(["-include".to_owned(), runtime.display().to_string()]);
    Ok(flags)
}

/// The directory to which file names in the coverage mapping are relative: the driver passes it only for host code. It is
/// the current directory, which is also clang's if a shell substitutes the flags.
fn compilation_dir(console: &mut Console) -> anyhow::Result<Vec<String>> {
    let dir = std::env::current_dir().context("cannot determine the current directory")?;
    let flag = format!("-fcoverage-compilation-dir={}", dir.display());
    if flag.contains(char::is_whitespace) {
        console.warn(format!(
            "a shell would split {}, so relative file names in the coverage mapping of device code stay relative: run `devprof report` in this directory",
            dir.display()
        ));
        return Ok(Vec::new());
    }
    Ok(for_compiler(&[&flag]))
}

fn optimizing(clang: &Clang, profile: &Path) -> anyhow::Result<Vec<String>> {
    let path = usable_profile::checked(clang, profile)?;
    if usable_profile::is_ir_level(profile)? {
        bail!(
            "{path} was made with IR-level instrumentation (-fprofile-generate), which clang cannot use for CUDA device code: compile with `devprof flags --pgo-generate --cuda`, and run the program again"
        );
    }
    Ok(for_compiler(&[
        "-fprofile-instrument-use=clang",
        &format!("-fprofile-instrument-use-path={path}"),
    ]))
}

fn linking(options: &Options, cuda: &CudaInstallation) -> anyhow::Result<Vec<String>> {
    let mut flags = Vec::new();
    if options.link && options.purpose.pgo_use.is_none() {
        flags.push("-fprofile-instr-generate".to_owned());
    }
    if options.rdc {
        if options.link {
            flags.push("--offload-link".to_owned());
        }
        // With -foffload-lto, clang removes hidden kernels, such as CUB's. These options have no effect without it.
        for option in ["enable-lto-internalization", "compute-dead"] {
            flags.push("-Xoffload-linker".to_owned());
            flags.push(format!("-mllvm=-{option}=false"));
        }
    }
    flags.push(format!("-L{}", cuda.libraries()?.display()));
    flags.extend(["-lcudart_static", "-ldl", "-lrt", "-pthread"].map(String::from));
    Ok(flags)
}

/// A name for a source file that can be part of a symbol in PTX: letters, digits and `_`.
///
/// The counters of an internal function (`static`, or in an anonymous namespace) have the name of the source file in
/// their names. A dot is not allowed there.
fn unit_name(source: &Path) -> anyhow::Result<String> {
    let text = source.to_str().filter(|text| !text.is_empty());
    let invalid = || usage(format!("--source {}: not a valid name", source.display()));
    let text = text.ok_or_else(invalid)?.trim_start_matches("./");
    Ok(text.replace(|char: char| !char.is_ascii_alphanumeric(), "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sources_are_valid_in_ptx() {
        let name = |source: &str| unit_name(Path::new(source)).unwrap();
        assert_eq!(name("a.cu"), "a_cu");
        assert_eq!(name("./src/sort-keys.v2.cu"), "src_sort_keys_v2_cu");
        assert_eq!(name("größe.cu"), "gr__e_cu");
        assert!(unit_name(Path::new("")).is_err());
    }

    #[test]
    fn architectures_have_a_number() {
        assert_eq!(generation("sm_90"), Some(90));
        assert_eq!(generation("sm_103a"), Some(103));
        assert_eq!(generation("gfx1100"), None);
        assert_eq!(generation("sm_"), None);
    }
}
