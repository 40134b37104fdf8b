//! `devprof flags`: prints the compiler and linker flags for the installed clang, like llvm-config for LLVM.

pub mod cuda;
mod options;
mod usable_profile;

use options::for_device;
pub use options::{Coverage, Options, Profiling};

use crate::clang::{Clang, Instrumentation, offload_flags};
use crate::console::{Console, Diagnostic};
use crate::exit::{Outcome, usage};
use crate::gpus::{self, SIMULATED};
use crate::locate::{Component, build_plugin, install_device_runtime};
use crate::returns::LONG_BRANCHES;
use anyhow::{Context, anyhow, bail};
use std::path::{Path, PathBuf};

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    if options.profiling.max_threads.is_some() && !options.cuda {
        return Err(usage("--max-threads is for CUDA: add --cuda"));
    }
    let clang = Clang::find(options.clang.as_deref(), &options.llvm)?;
    let added = profiling(options, &clang, console)?;
    let toolchain = if options.cuda {
        cuda::toolchain(options, &clang)?
    } else {
        hip_toolchain(options, &clang, console)?
    };
    let mut flags = [toolchain, added].concat();
    cuda::omit_spaced_directory(&mut flags, console);
    for flag in &flags {
        if flag.contains(char::is_whitespace) {
            bail!("a shell would split {flag:?} at its space: move the file to another directory");
        }
    }
    if options.clang.is_none() && !clang.path.ends_with("clang++") {
        console.warn(format!(
            "no clang++ in PATH: these flags are for {}",
            clang.path.display()
        ));
    }
    console.print(&format!("{}\n", flags.join(" ")))?;
    Ok(Outcome::Complete)
}

/// The flags for profiling, which a build needs in addition to those with which it compiles HIP or CUDA.
pub fn profiling(
    options: &Options,
    clang: &Clang,
    console: &mut Console,
) -> anyhow::Result<Vec<String>> {
    let own = &options.profiling;
    if own.hoist && own.only_ran() {
        return Err(usage(
            "--hoist is for exact counts: add --coverage=counts, or omit it",
        ));
    }
    let mut flags = match (&own.purpose.pgo_use, options.cuda) {
        (Some(profile), false) => optimizing(options, clang, profile)?,
        (None, false) => instrumenting(options, clang)?,
        (_, true) => cuda::profiling(options, clang)?,
    };
    let instruments = own.purpose.pgo_use.is_none();
    if instruments && !options.link {
        if options.cuda {
            flags.extend(valid_names(options, clang, console)?);
        }
        if own.hoist {
            flags.push(for_passes(&plugin("hoist", clang)?));
        }
        flags.extend(plugin_or_stock(options, clang, console)?);
    }
    if instruments && !own.no_runtime && !options.compile && !options.module {
        flags.extend(runtime(options)?);
    }
    Ok(flags)
}

/// The flags to compile and link HIP.
fn hip_toolchain(
    options: &Options,
    clang: &Clang,
    console: &mut Console,
) -> anyhow::Result<Vec<String>> {
    let architectures = architectures(options, console);
    let mut flags = offload_flags(&architectures);
    let libraries = clang.device_libraries(&architectures);
    // The driver refuses unknown names of GPUs, but accepts other targets, such as amdgcnspirv.
    if libraries.is_err() || !options.arch.iter().all(|name| name.starts_with("gfx")) {
        check_architectures(options, clang)?;
    }
    flags.extend(libraries?);
    if options.link {
        flags.push("--hip-link".to_owned());
    }
    if options.module {
        flags.extend(["--offload-device-only", "--no-gpu-bundle-output"].map(String::from));
    }
    Ok(flags)
}

/// The oldest clang for which src/device/counter-pass is written.
pub const OLDEST_WITH_PLUGINS: u32 = 23;

/// LLVM's options for a flag of one byte per block, which is tested before it is written.
const STOCK_FLAGS: [&str; 2] = [
    "-enable-single-byte-coverage",
    "-conditional-counter-update",
];

/// The flags that load devprof's plugin for what is recorded. Without the plugin, LLVM's options have the same result in
/// the report, but code takes longer to run, or to compile.
fn plugin_or_stock(
    options: &Options,
    clang: &Clang,
    console: &mut Console,
) -> anyhow::Result<Vec<String>> {
    type Plugin = fn(&Clang) -> anyhow::Result<Vec<String>>;
    let slow = "large templates will take long to compile";
    let (plugin, costs): (Plugin, &str) = match (options.profiling.only_ran(), options.cuda) {
        (true, _) => (coverage, "coverage will cost more time"),
        (false, false) => (compact, slow),
        // Lists change which warps are full, which only an optimizer looks at.
        (false, true)
            if options.profiling.purpose.coverage.is_some() && !options.profiling.hoist =>
        {
            (cuda_lists, slow)
        }
        (false, true) if options.profiling.mcdc => {
            (|_| Ok(Vec::new()), "coverage will cost more time")
        }
        (false, true) => return Ok(Vec::new()),
    };
    let load = || -> anyhow::Result<Vec<String>> {
        let mut flags = plugin(clang)?;
        // Loaded for its passes alone, it is for bits of decisions.
        if options.profiling.mcdc && !options.profiling.only_ran() {
            flags.push(for_passes(&self::plugin("coverage", clang)?));
        }
        Ok(flags)
    };
    // LLVM defines the raw version in each file, and nvlink refuses the second one.
    let needs_plugin = options.profiling.only_ran() && options.rdc;
    if needs_plugin && options.profiling.no_plugin {
        return Err(usage(
            "--rdc needs the plugin for --coverage: omit --no-plugin, or use --coverage=counts",
        ));
    }
    if clang.major >= OLDEST_WITH_PLUGINS && !options.profiling.no_plugin {
        match load() {
            Ok(flags) => return Ok(flags),
            Err(error) if needs_plugin => {
                return Err(error.context(
                    "--rdc needs the plugin for --coverage (--coverage=counts does not)",
                ));
            }
            Err(error) => console.warn(format!("{costs}: {error:#} (--no-plugin: no warning)")),
        }
    }
    Ok(match (options.profiling.only_ran(), options.cuda) {
        (false, _) => Vec::new(),
        (true, true) => {
            let all = STOCK_FLAGS.map(|option| for_device(&format!("-mllvm={option}")));
            all.into_iter().flatten().collect()
        }
        // As options for the device alone, clang would pass them to lld, too, which does not know them.
        (true, false) => {
            let all = STOCK_FLAGS.map(|option| ["-Xclang", "-mllvm", "-Xclang", option]);
            all.into_iter().flatten().map(str::to_owned).collect()
        }
    })
}

/// The flag that loads a plugin's passes.
fn for_passes(plugin: &Path) -> String {
    format!("-fpass-plugin={}", plugin.display())
}

/// The plugin with which internal device functions compile for NVIDIA GPUs.
pub const NAMES: &str = "names";

/// The flag that loads the plugin for [`NAMES`]. Without it, other code compiles.
fn valid_names(
    options: &Options,
    clang: &Clang,
    console: &mut Console,
) -> anyhow::Result<Option<String>> {
    if options.profiling.no_plugin {
        return Ok(None);
    }
    Ok(match plugin(NAMES, clang) {
        Ok(plugin) => Some(for_passes(&plugin)),
        Err(error) => {
            console.warn(format!(
                "internal device functions (`static`, or in an anonymous namespace) will not compile: {error:#} (--no-plugin: no warning)"
            ));
            None
        }
    })
}

/// A plugin of src/device/counter-pass. Plugins ignore host code.
pub fn plugin(name: &'static str, clang: &Clang) -> anyhow::Result<PathBuf> {
    if clang.major < OLDEST_WITH_PLUGINS {
        bail!(
            "--{name} needs clang {OLDEST_WITH_PLUGINS} or later, and {} is {}: name another one with --clang",
            clang.path.display(),
            clang.version
        );
    }
    let plugin = Component::Plugin(name, clang.major).find();
    let plugin = plugin.map_err(|_| {
        anyhow!(
            "devprof has no plugin {name}.so for {clang}: {}",
            build_plugin(name, &clang.path, clang.major)
        )
    })?;
    // Another clang of the same major version may have other classes.
    let built_for = std::fs::read_to_string(plugin.with_extension("clang")).unwrap_or_default();
    if built_for.trim() != clang.version {
        bail!(
            "{} is for {}, not for {clang}: {}",
            plugin.display(),
            match built_for.trim() {
                "" => "an unknown clang",
                known => known,
            },
            build_plugin(name, &clang.path, clang.major)
        );
    }
    Ok(plugin)
}

/// The flags that load the plugin for byte coverage: before the front end, where it turns LLVM's byte coverage on for device
/// code, so that host code keeps its counts, and for its passes.
fn coverage(clang: &Clang) -> anyhow::Result<Vec<String>> {
    let plugin = plugin("coverage", clang)?;
    Ok(vec![
        format!("-fplugin={}", plugin.display()),
        for_passes(&plugin),
    ])
}

/// The flags that load the plugin for smaller code. The functions that it calls are in devprof's device runtime, but not in LLVM's.
fn compact(clang: &Clang) -> anyhow::Result<Vec<String>> {
    let plugin = plugin("compact", clang)?;
    let archive = device_archive(clang)?;
    let content =
        std::fs::read(&archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let name = b"__devprof_copy_offset";
    if !content.windows(name.len()).any(|bytes| bytes == name) {
        bail!(
            "{} is not the device runtime of this devprof: {}",
            archive.display(),
            install_device_runtime(&clang.path).map_or_else(
                || Component::DeviceRuntimeBuild.remedy(),
                |command| format!("replace it with {command}")
            )
        );
    }
    Ok(vec![for_passes(&plugin)])
}

/// The flags that load the plugin for smaller code, and define the function for lists in the device runtime, which is a header.
fn cuda_lists(clang: &Clang) -> anyhow::Result<Vec<String>> {
    let plugin = plugin("compact", clang)?;
    Ok(vec!["-DDEVPROF_LISTS".to_owned(), for_passes(&plugin)])
}

/// The flags that link devprof's archive.
fn runtime(options: &Options) -> anyhow::Result<Vec<String>> {
    let (mut archive, mut name) = (Component::Archive, "libdevprof.a");
    if options.cuda {
        (archive, name) = (Component::CudaArchive, "libdevprof_cuda.a");
    }
    let archive = archive
        .find()
        .with_context(|| format!("cannot find {name} (--no-runtime does not need it)"))?;
    if archive.as_os_str().as_encoded_bytes().contains(&b',') {
        bail!(
            "clang would split {} at its comma: move devprof to another directory",
            archive.display()
        );
    }
    let mut flags = vec!["-Wl,-u,__llvm_profile_hip_collect_device_data".to_owned()];
    if !options.cuda {
        flags.push(export_hsa());
    }
    // For the linker: after `-x hip` clang would compile the archive as HIP source.
    flags.push(format!("-Wl,{}", archive.display()));
    Ok(flags)
}

/// LLVM's own limits of what it spends on large functions, made lower. They change none of rocPRIM's code, or 0.1 % of it:
///
/// - Of a virtual register with more than 32 values (100 without the option), the register coalescer removes at most 32 copies
///   (256 without the option). In rocPRIM's device_reduce, instrumented or not, half the time of the link is in such registers.
/// - In a block, the SLP vectorizer looks at this many instructions to order them (100,000 without the option). In device_scan
///   with flags, it takes a second to find out that nothing can be vectorized.
const LIMITS: [&str; 3] = [
    "-large-interval-size-threshold=32",
    "-large-interval-freq-threshold=32",
    "-slp-schedule-budget=5000",
];

/// HSA functions that the archive interposes. HIP's library calls the program's functions instead of ROCr's only if the
/// program exports them. GNU ld exports them by default, because HIP's library refers to them. lld, gold and mold do
/// not: for them the version is part of the name (`hsa_init@ROCR_1`). The option requires GNU ld 2.35 and has no effect
/// in a program without these functions.
const HSA_FUNCTIONS: [&str; 7] = [
    "hsa_init",
    "hsa_shut_down",
    "hsa_executable_freeze",
    "hsa_executable_destroy",
    "hsa_queue_create",
    "hsa_queue_destroy",
    "hsa_queue_inactivate",
];

/// The linker flag that exports [`HSA_FUNCTIONS`].
fn export_hsa() -> String {
    let options = HSA_FUNCTIONS.map(|name| format!(",--export-dynamic-symbol={name}"));
    format!("-Wl{}", options.concat())
}

/// The GPUs to compile for.
fn architectures(options: &Options, console: &mut Console) -> Vec<String> {
    if !options.arch.is_empty() {
        return options.arch.clone();
    }
    let present: Vec<String> = gpus::architectures().into_iter().collect();
    if !present.is_empty() {
        return present;
    }
    console.report(&Diagnostic::note(format!(
        "no AMD GPU found, so the flags are for {SIMULATED}, which `devprof run --model` simulates: choose another architecture with --arch"
    )));
    vec![SIMULATED.to_owned()]
}

/// # Errors
/// The clang does not support one of the named architectures.
fn check_architectures(options: &Options, clang: &Clang) -> anyhow::Result<()> {
    if options.arch.is_empty() {
        return Ok(());
    }
    let known = clang.architectures()?;
    for name in &options.arch {
        let base = name.split(':').next().unwrap_or(name);
        if base != "native" && !known.iter().any(|known| known == base) {
            return Err(usage(format!(
                "--arch {name}: {clang} does not support it; supported are {}",
                known.join(", ")
            )));
        }
    }
    Ok(())
}

/// The flags, restricted to the device compilation if the options ask for that.
fn scoped(options: &Options, flags: &[&str]) -> Vec<String> {
    let is_scoped = options.profiling.device_only || options.module;
    let device = is_scoped.then_some("-Xarch_device");
    let scoped = flags
        .iter()
        .flat_map(|flag| device.into_iter().chain([*flag]));
    scoped.map(str::to_owned).collect()
}

fn instrumenting(options: &Options, clang: &Clang) -> anyhow::Result<Vec<String>> {
    let kind = clang.instrumentation()?;
    let (raw_version, samples) = (kind.raw_version, kind.samples);
    if ![10, 11].contains(&raw_version) {
        bail!(
            "{clang} writes raw profiles of version {raw_version}, but devprof supports versions 10 and 11 (LLVM 22 and 23): name another clang with --clang"
        );
    }
    let is_coverage = options.profiling.purpose.coverage.is_some();
    let mut flags = match (is_coverage, options.link) {
        (true, false) => scoped(options, &["-fprofile-instr-generate", "-fcoverage-mapping"]),
        (true, true) => scoped(options, &["-fprofile-instr-generate"]),
        (false, _) => scoped(options, &["-fprofile-generate"]),
    };
    if options.profiling.mcdc && options.profiling.only_ran() && raw_version < 11 {
        return Err(usage(format!(
            "--mcdc needs --coverage=counts with {clang}, which records no decisions with flags"
        )));
    }
    if options.profiling.mcdc && !options.link {
        flags.extend(scoped(options, &["-fcoverage-mcdc"]));
    }
    if options.profiling.sampling && !samples {
        bail!("{clang} has no sampling: omit --sampling");
    }
    if samples && !options.profiling.sampling && !options.link {
        flags.extend(for_device("-mllvm=--offload-pgo-sampling=0"));
    }
    // Up to version 10 clang increments counters inline, which loses counts unless the increments are atomic. Since
    // version 11 the device runtime increments them, always atomically. Bits of MC/DC are always set inline.
    if (raw_version < 11 || options.profiling.mcdc) && !options.link {
        flags.extend(for_device("-fprofile-update=atomic"));
    }
    flags.extend(device_runtime(options, clang, kind)?);
    // Either the compiler or the device linker generates the code: with LTO, the linker, which most of clang 23's ways of
    // building use.
    for option in [LONG_BRANCHES].into_iter().chain(LIMITS) {
        if !options.link {
            flags.extend(for_device(&format!("-mllvm={option}")));
        }
        flags.extend(if_used(options, format!("-mllvm={option}")));
    }
    // It is in the profiles, too, so that a report reads each code object with its own profile.
    flags.extend(if_used(options, "--build-id".to_owned()));
    Ok(flags)
}

/// Passes an argument to the device linker, without a warning if it does not run. The device is linked when the host is compiled, or,
/// relocatable (-fgpu-rdc), when the host is linked.
fn if_used(options: &Options, argument: String) -> Vec<String> {
    let mut flags = vec!["-Xoffload-linker".to_owned(), argument];
    if options.compile || options.link {
        flags.insert(0, "--start-no-unused-arguments".to_owned());
        flags.push("--end-no-unused-arguments".to_owned());
    }
    flags
}

/// The flags with which the device link finds the device side of the profile runtime.
fn device_runtime(
    options: &Options,
    clang: &Clang,
    kind: Instrumentation,
) -> anyhow::Result<Vec<String>> {
    // clang 22 and earlier never link it; no clang links it into a module.
    let is_linked = kind.raw_version >= 11 && !options.module;
    let mut flags = Vec::new();
    if options.module && kind.raw_version >= 11 {
        flags.push("-foffload-lto".to_owned());
    }
    let path = device_archive(clang)?;
    if is_linked && path == clang.device_runtime()? {
        return Ok(flags);
    }
    flags.extend(if_used(options, path.display().to_string()));
    Ok(flags)
}

/// The device side of the profile runtime: clang's own, which may be devprof's, too, or else devprof's for this clang.
fn device_archive(clang: &Clang) -> anyhow::Result<PathBuf> {
    let own = clang.device_runtime()?;
    if own.exists() {
        return Ok(own);
    }
    Component::DeviceRuntime(clang.major).find().map_err(|_| {
        anyhow!(
            "{clang} has no device side of the profile runtime: {} does not exist, and devprof has none for this clang; {}",
            own.display(),
            match install_device_runtime(&clang.path) {
                Some(command) => format!(
                    "build it with {command}, as a user who can write to that directory"
                ),
                None => Component::DeviceRuntimeBuild.remedy(),
            }
        )
    })
}

fn optimizing(options: &Options, clang: &Clang, profile: &Path) -> anyhow::Result<Vec<String>> {
    let path = usable_profile::checked(clang, profile)?;
    if options.link {
        return Ok(Vec::new());
    }
    Ok(scoped(options, &[&format!("-fprofile-use={path}")]))
}
