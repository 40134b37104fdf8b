//! `devprof demo`: devprof's whole job, with nothing installed but Rust. A program of its own loads instrumented code
//! objects on two simulated GPUs and runs their kernels; devprof, its HSA tool, drains them at its exit.

pub mod program;

use crate::names::{self, Naming};
use crate::parts::Part;
use crate::readable::quoted;
use clap::Args;
use profraw::{Layout, Record, records};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args)]
pub struct Options {
    /// Where to write the profiles
    #[arg(short, long, value_name = "DIR", default_value = "devprof-demo")]
    output: PathBuf,
    #[command(flatten)]
    naming: Naming,
}

/// The code objects that the program loads, by the raw version of their profile: those of clang 22 and clang 23.
pub const FIXTURES: [(u64, &[u8]); 2] = [
    (10, include_bytes!("../../../fixtures/counted.raw10.co")),
    (11, include_bytes!("../../../fixtures/counted.raw11.co")),
];

/// The simulated GPUs.
const GPUS: &str = "gfx1100*2";

pub fn run(options: &Options) -> Result<(), String> {
    let libraries = libraries()?;
    let out = &options.output;
    fs::create_dir_all(out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    for path in profiles(out)? {
        fs::remove_file(&path).map_err(|e| format!("cannot remove {}: {e}", path.display()))?;
    }
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let status = Command::new(program)
        .arg("demo-program")
        .env(program::LIBRARY, &libraries.hsa)
        .env("HSA_SIM_AGENTS", GPUS)
        .env("HSA_TOOLS_LIB", &libraries.devprof)
        .env("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1")
        .env("LLVM_PROFILE_FILE", out.join("demo.profraw"))
        .env_remove("DEVPROF_DISABLE")
        .status()
        .map_err(|e| format!("cannot start the program to watch: {e}"))?;
    if !status.success() {
        return Err(format!("the program to watch ended with {status}"));
    }
    show(out, options.naming)
}

struct Libraries {
    hsa: PathBuf,
    devprof: PathBuf,
}

/// The two shared libraries: an installation's, or those that cargo puts beside this program but does not build with it.
fn libraries() -> Result<Libraries, String> {
    if let (Some(hsa), Some(devprof)) = (
        Part::Simulator.find_installed(),
        Part::Library.find_installed(),
    ) {
        return Ok(Libraries { hsa, devprof });
    }
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--quiet", "-p", "devprof", "-p", "hsa-sim"])
        .current_dir(checkout);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    // A program that was copied elsewhere comes with its libraries.
    if checkout.is_dir() {
        let status = command
            .status()
            .map_err(|e| format!("cannot start cargo to build the libraries: {e}"))?;
        if !status.success() {
            return Err(format!("cargo could not build the libraries ({status})"));
        }
    }
    let found = |name: &str| {
        let path = beside.join(name);
        match path.exists() {
            true => Ok(path),
            false => Err(format!(
                "no {}: run cargo build --release in devprof's checkout",
                path.display()
            )),
        }
    };
    Ok(Libraries {
        hsa: found("libhsa_sim.so")?,
        devprof: found("libdevprof.so")?,
    })
}

fn profiles(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e| format!("cannot read {}: {e}", dir.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "profraw")
        {
            found.push(path);
        }
    }
    // gfx1100.demo, gfx1100.1.demo, … gfx1100.10.demo
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}

/// One profile as it was read.
struct Profile {
    path: PathBuf,
    version: u64,
    functions: BTreeMap<String, Record>,
}

fn read(path: PathBuf) -> Result<Profile, String> {
    let failed = |e: &dyn std::fmt::Display| format!("cannot read {}: {e}", path.display());
    let bytes = fs::read(&path).map_err(|e| failed(&e))?;
    let layout = Layout::read(&bytes).map_err(|e| failed(&e))?;
    let names = names::by_hash(&bytes[layout.names.clone()]).map_err(|e| failed(&e))?;
    let functions = records(&bytes, &layout)
        .map_err(|e| failed(&e))?
        .into_iter()
        .map(|record| {
            (
                names
                    .get(&record.name)
                    .cloned()
                    .unwrap_or_else(|| format!("{:#x}", record.name)),
                record,
            )
        })
        .collect();
    Ok(Profile {
        version: layout.header.raw_version(),
        functions,
        path,
    })
}

/// Whatever is a kernel in one of the code objects: it has a descriptor beside it.
fn kernels() -> Result<HashSet<String>, String> {
    let mut found = HashSet::new();
    for (version, file) in FIXTURES {
        let elf = goblin::elf::Elf::parse(file)
            .map_err(|e| format!("the code object of raw version {version} is damaged: {e}"))?;
        let names = elf
            .dynsyms
            .iter()
            .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name));
        found.extend(
            names
                .filter_map(|name| name.strip_suffix(".kd"))
                .map(str::to_owned),
        );
    }
    Ok(found)
}

fn show(dir: &Path, naming: Naming) -> Result<(), String> {
    let kernels = kernels()?;
    let profiles = profiles(dir)?
        .into_iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>()?;
    if profiles.is_empty() {
        return Err(format!("there is no profile in {}", dir.display()));
    }
    println!(
        "Two simulated gfx1100 GPUs ran the kernels of two code objects each, built by clang 22 and 23."
    );
    println!("devprof drained their counters when the program ended:\n");
    for profile in &profiles {
        println!(
            "{}  (raw profile version {})",
            profile.path.display(),
            profile.version
        );
        println!("  {:<24} {:<16} {:>8}   blocks", "function", "", "entered");
        for (name, record) in &profile.functions {
            let kind = if kernels.contains(name) {
                "kernel"
            } else {
                "device function"
            };
            let blocks: Vec<String> = record.counters.iter().skip(1).map(u64::to_string).collect();
            let entered = record.counters.first().copied().unwrap_or_default();
            println!(
                "  {:<24} {kind:<16} {entered:>8}   {}",
                naming.shown(name),
                blocks.join(" ")
            );
        }
        println!();
    }
    println!("Next:");
    for (version, clang) in [(10, 22), (11, 23)] {
        let files: Vec<String> = profiles
            .iter()
            .filter(|profile| profile.version == version)
            .map(|profile| quoted(&profile.path))
            .collect();
        if !files.is_empty() {
            println!(
                "  llvm-profdata-{clang} merge {} -o demo-{clang}.profdata",
                files.join(" ")
            );
        }
    }
    println!(
        "  clang++ -x hip a.hip $(devprof flags --coverage) -o a && devprof run ./a     the same with a program of yours"
    );
    Ok(())
}
