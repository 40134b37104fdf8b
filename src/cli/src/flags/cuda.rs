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

/// The flags to compile and link CUDA.
pub fn toolchain(options: &Options, clang: &Clang) -> anyhow::Result<Vec<String>> {
    let cuda = CudaInstallation::find()?;
    let mut flags = Vec::new();
    if !options.link || options.rdc {
        flags.extend(target(options, clang, &cuda)?);
    }
    if options.rdc {
        flags.push("-fgpu-rdc".to_owned());
    }
    if options.module {
        flags.extend(["--offload-device-only", "-c"].map(String::from));
    }
    if !options.link
        && let Some(cccl) = cuda.cccl()
    {
        flags.extend(["-isystem".to_owned(), cccl.display().to_string()]);
    }
    if options.rdc && options.link {
        flags.push("--offload-link".to_owned());
    }
    if !options.compile && !options.module {
        flags.push(format!("-L{}", cuda.libraries()?.display()));
        flags.push("-lcudart_static".to_owned());
        flags.extend(SYSTEM_LIBRARIES.map(String::from));
    }
    Ok(flags)
}

/// The libraries that CUDA's runtime and devprof's archive need.
pub const SYSTEM_LIBRARIES: [&str; 3] = ["-ldl", "-lrt", "-pthread"];

/// The flags for profiling, except for plugins and devprof's archive.
pub fn profiling(options: &Options, clang: &Clang) -> anyhow::Result<Vec<String>> {
    let own = &options.profiling;
    let mut flags = Vec::new();
    if !options.link {
        if !clang.instruments_cuda()? {
            bail!(
                "{clang} cannot instrument CUDA device code: clang 23 and later can, if they are built with the NVPTX target; name another clang with --clang"
            );
        }
        match &own.purpose.pgo_use {
            Some(profile) => flags.extend(optimizing(clang, profile)?),
            None => flags.extend(instrumenting(options)?),
        }
        if let Some(threads) = own.max_threads {
            let registers = for_threads(threads).min(MOST_REGISTERS);
            flags.push("-Xcuda-ptxas".to_owned());
            flags.push(format!("--maxrregcount={registers}"));
        }
    }
    if options.link && own.purpose.pgo_use.is_none() {
        flags.push("-fprofile-instr-generate".to_owned());
    }
    if options.rdc && !options.compile && !options.module {
        // With -foffload-lto, clang removes hidden kernels, such as CUB's. These options have no effect without it.
        for option in ["enable-lto-internalization", "compute-dead"] {
            flags.push("-Xoffload-linker".to_owned());
            flags.push(format!("-mllvm=-{option}=false"));
        }
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

fn instrumenting(options: &Options) -> anyhow::Result<Vec<String>> {
    let runtime = Component::CudaDeviceRuntime
        .find()
        .and_then(|path| Ok(path.canonicalize()?))
        .context("cannot find the device side of the profile runtime for CUDA")?;
    let is_coverage = options.profiling.purpose.coverage.is_some();
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
        flags.extend(compilation_dir()?);
    }
    if options.profiling.mcdc {
        // Lanes set bits of the same bytes. There is no way to pass the second option for device code alone.
        flags.extend(for_compiler(&[
            "-fcoverage-mcdc",
            "-fprofile-update=atomic",
        ]));
    }
    if options.profiling.sampling {
        flags.push("-DDEVPROF_SAMPLING".to_owned());
    } else {
        flags.extend(for_device("-mllvm=--offload-pgo-sampling=0"));
    }
    flags.extend(["-include".to_owned(), runtime.display().to_string()]);
    Ok(flags)
}

const COMPILATION_DIR: &str = "-fcoverage-compilation-dir=";

/// The directory to which file names in the coverage mapping are relative: the driver passes it only for host code. It is
/// the current directory, which is also clang's if a shell substitutes the flags.
fn compilation_dir() -> anyhow::Result<Vec<String>> {
    let dir = std::env::current_dir().context("cannot determine the current directory")?;
    Ok(for_compiler(&[&format!(
        "{COMPILATION_DIR}{}",
        dir.display()
    )]))
}

/// Leaves out the directory of [`compilation_dir`] if a shell would split it.
pub fn omit_spaced_directory(flags: &mut Vec<String>, console: &mut Console) {
    let is_split =
        |flag: &String| flag.starts_with(COMPILATION_DIR) && flag.contains(char::is_whitespace);
    if let Some(n) = flags.iter().position(is_split) {
        console.warn(format!(
            "a shell would split {}, so relative file names in the coverage mapping of device code stay relative: run `devprof report` in this directory",
            &flags[n][COMPILATION_DIR.len()..]
        ));
        // And -Xclang.
        flags.drain(n - 1..=n);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_have_a_number() {
        assert_eq!(generation("sm_90"), Some(90));
        assert_eq!(generation("sm_103a"), Some(103));
        assert_eq!(generation("gfx1100"), None);
        assert_eq!(generation("sm_"), None);
    }
}
