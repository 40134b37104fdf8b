//! `devprof cc`: runs a compiler with the flags that profile what it compiles or links. It prints nothing itself, and the
//! compiler takes its place (`exec`), so build systems cannot tell the two apart.

mod task;

use crate::clang::Clang;
use crate::color::Colors;
use crate::console::Console;
use crate::cuda_toolkit;
use crate::exit::{Outcome, StartError, usage};
use crate::flags::{self, Coverage, Profiling, cuda};
use crate::llvm;
use crate::locate::find_in_path;
use anyhow::{Context, bail};
use clap::Args;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use task::{Language, Task};

#[derive(Args)]
#[group(skip)]
#[command(override_usage = "devprof cc <PURPOSE> [OPTIONS] [--] <COMPILER> [ARGUMENTS]...")]
pub struct Options {
    #[command(flatten)]
    profiling: Profiling,
    /// The compiler and its arguments: a clang, or the nvcc of `devprof cuda-toolkit`; after ccache or sccache, if that is used
    #[arg(required = true, trailing_var_arg = true, value_name = "COMPILER")]
    command: Vec<OsString>,
}

/// Programs that start the compiler that follows.
const LAUNCHERS: [&str; 2] = ["ccache", "sccache"];

/// Around flags about which clang would print a warning if this command does not need them.
const UNUSED: [&str; 2] = ["--start-no-unused-arguments", "--end-no-unused-arguments"];

/// Returns only if the compiler cannot be started.
pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    // ccache finds the same object with and without a prefix, so later builds would have code that is not instrumented, or too much that
    // is.
    let prefix = env::var_os("CCACHE_PREFIX").unwrap_or_default();
    if prefix.to_string_lossy().contains("devprof") {
        return Err(usage(
            "CCACHE_PREFIX: ccache ignores it when it searches for an object: use `devprof cc … -- ccache COMPILER`",
        ));
    }
    let is_launcher = |name: &OsString| LAUNCHERS.iter().any(|own| is_named(name, own));
    let launchers = options.command.iter().take_while(|name| is_launcher(name));
    let compiler = launchers.count().min(options.command.len() - 1);
    let (name, arguments) = (&options.command[compiler], &options.command[compiler + 1..]);
    let flags = if is_named(name, "nvcc") {
        for_nvcc(options, name, arguments)?
    } else {
        for_clang(options, name, arguments)?
    };
    // What follows `--` is a file.
    let end = arguments.iter().position(|argument| argument == "--");
    let (before, after) = arguments.split_at(end.unwrap_or(arguments.len()));
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..=compiler]);
    command.args(before).args(flags).args(after);
    Err(StartError {
        program: options.command[0].display().to_string(),
        source: command.exec(),
    }
    .into())
}

fn is_named(program: &OsStr, name: &str) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(name))
}

/// nvcc's own toolkit instruments what it compiles.
fn for_nvcc(
    options: &Options,
    name: &OsStr,
    arguments: &[OsString],
) -> anyhow::Result<Vec<String>> {
    let path = find_in_path(name).unwrap_or_else(|| name.into());
    if options.profiling.purpose.coverage != Some(Coverage::Ran) || options.profiling.mcdc {
        return Err(usage("nvcc: only --coverage is possible"));
    }
    if !cuda_toolkit::has_program(&path) {
        bail!(
            "{} does not instrument device code: make a toolkit with `devprof cuda-toolkit DIR`, and compile with DIR/bin/nvcc",
            path.display()
        );
    }
    let line_info = ["-lineinfo", "--generate-line-info", "-G", "--device-debug"];
    let has_lines = line_info
        .iter()
        .any(|own| arguments.iter().any(|given| given == own));
    Ok(match has_lines {
        true => Vec::new(),
        false => vec![line_info[0].to_owned()],
    })
}

fn for_clang(
    options: &Options,
    name: &OsStr,
    arguments: &[OsString],
) -> anyhow::Result<Vec<String>> {
    let path = find_in_path(name).unwrap_or_else(|| PathBuf::from(name));
    // -v also prints the version.
    let phases = Command::new(&path)
        .args(["-v", "-ccc-print-phases"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", path.display()))?;
    let printed = String::from_utf8_lossy(&phases.stderr);
    if !phases.status.success() {
        // If it is a clang, it reports its error itself.
        let found = Clang::at(path);
        found.map_err(|error| usage(format!("{error:#}; `devprof cc` starts clang or nvcc")))?;
        return Ok(Vec::new());
    }
    let task = Task::read(&printed);
    if !task.makes_code() {
        return Ok(Vec::new());
    }
    let mut flags = match task.language {
        Some(language) => {
            let version = printed.lines().find(|line| line.contains("clang version "));
            let clang = match version {
                Some(version) => Clang::with_version(path, version)?,
                None => Clang::at(path)?,
            };
            for_device(options, &task, language, &clang)?
        }
        None => for_host(&options.profiling, &task),
    };
    flags.retain(|flag| !UNUSED.contains(&&**flag));
    let [start, end] = UNUSED.map(str::to_owned);
    Ok([vec![start], flags, vec![end]].concat())
}

/// The flags for a command without device code. Only coverage is also of host code.
fn for_host(profiling: &Profiling, task: &Task) -> Vec<String> {
    if profiling.purpose.coverage.is_none() || profiling.device_only {
        return Vec::new();
    }
    let mut flags = vec!["-fprofile-instr-generate"];
    if task.compiles_host {
        flags.push("-fcoverage-mapping");
        flags.extend(profiling.mcdc.then_some("-fcoverage-mcdc"));
    }
    flags.into_iter().map(str::to_owned).collect()
}

fn for_device(
    options: &Options,
    task: &Task,
    language: Language,
    clang: &Clang,
) -> anyhow::Result<Vec<String>> {
    let profiling = options.profiling.clone();
    let compiles = task.compiles_host || task.compiles_device;
    let is_cuda = language == Language::Cuda;
    let has_only_device = task.compiles_device && !task.compiles_host;
    if is_cuda && profiling.device_only {
        return Err(usage("--device-only is not possible for CUDA"));
    }
    let request = flags::Options {
        profiling,
        arch: Vec::new(),
        compile: !task.links,
        link: !compiles,
        module: has_only_device && (is_cuda || task.links_device),
        cuda: is_cuda,
        rdc: task.is_rdc || (is_cuda && !compiles),
        clang: None,
        llvm: llvm::Options::default(),
    };
    let (mut out, mut err) = (io::sink(), io::sink());
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        colors: Colors::default(),
    };
    let mut added = flags::profiling(&request, clang, &mut console)?;
    if is_cuda && task.links && !request.profiling.no_runtime {
        added.extend(cuda::SYSTEM_LIBRARIES.map(String::from));
    }
    // Otherwise ptxas refuses the name of the source in the names of counters.
    let needs_name = request.profiling.no_plugin || flags::plugin(flags::NAMES, clang).is_err();
    if let [source] = &task.sources[..]
        && is_cuda
        && needs_name
    {
        added.extend(["-Xclang", "-main-file-name", "-Xclang"].map(String::from));
        added.push(unit_name(source));
    }
    Ok(added)
}

/// A name for a source file that can be part of a symbol in PTX: letters, digits and `_`.
fn unit_name(source: &str) -> String {
    let name = source.trim_start_matches("./");
    name.replace(|char: char| !char.is_ascii_alphanumeric(), "_")
}

#[cfg(test)]
mod tests {
    use super::unit_name;

    #[test]
    fn names_of_sources_are_valid_in_ptx() {
        assert_eq!(unit_name("a.cu"), "a_cu");
        assert_eq!(unit_name("./src/sort-keys.v2.cu"), "src_sort_keys_v2_cu");
        assert_eq!(unit_name("größe.cu"), "gr__e_cu");
    }
}
