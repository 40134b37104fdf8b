//! `devprof demo`: a complete run of devprof that needs no GPU, HIP or clang. A program loads instrumented code objects
//! on two simulated GPUs and runs their kernels; devprof, as an HSA tool, saves the counters when the program exits.

pub mod program;

use crate::console::Console;
use crate::exit::Outcome;
use crate::functions::{Function, entered_and_blocks, in_file};
use crate::locate::{Component, is_built_by_cargo, this_program};
use crate::names::Naming;
use crate::readable::{listed, quoted};
use crate::run::Links;
use crate::table::Table;
use anyhow::{Context, bail};
use clap::Args;
use profraw::Layout;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args)]
pub struct Options {
    /// The directory to write the profiles to
    #[arg(short, long, value_name = "DIR", default_value = "devprof-demo")]
    output: PathBuf,
    #[command(flatten)]
    naming: Naming,
}

/// The simulated GPUs.
const GPUS: &str = "gfx1100*2";

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let libraries = Libraries::find()?;
    let out = &options.output;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    for path in profiles(out)? {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    // In HSA_TOOLS_LIB, a space separates libraries.
    let links = Links::default();
    let status = Command::new(this_program()?)
        .arg("demo-program")
        .env(program::LIBRARY, &libraries.hsa)
        .env("HSA_SIM_AGENTS", GPUS)
        .env(
            "HSA_TOOLS_LIB",
            links.without_separators(&libraries.devprof)?,
        )
        .env("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1")
        .env("LLVM_PROFILE_FILE", out.join("demo.profraw"))
        .env_remove("DEVPROF_DISABLE")
        .status()
        .context("cannot start the demo program")?;
    if !status.success() {
        bail!("the demo program failed: {status}");
    }
    console.print(&summary(out, options.naming)?)?;
    Ok(Outcome::Complete)
}

/// The shared libraries that the demo loads.
struct Libraries {
    hsa: PathBuf,
    devprof: PathBuf,
}

impl Libraries {
    /// Finds the libraries of the installation, or those that cargo built next to this program.
    fn find() -> anyhow::Result<Libraries> {
        if let (Some(hsa), Some(devprof)) = (
            Component::Simulator.find_installed(),
            Component::Library.find_installed(),
        ) {
            return Ok(Libraries { hsa, devprof });
        }
        let program = this_program()?;
        let next_to_it = |name| program.with_file_name(name);
        let (hsa, devprof) = (next_to_it("libhsa_sim.so"), next_to_it("libdevprof.so"));
        if !is_built_by_cargo(&program) {
            return Ok(Libraries {
                hsa: Component::Simulator.find()?,
                devprof: Component::Library.find()?,
            });
        }
        let missing: Vec<PathBuf> = [&hsa, &devprof]
            .into_iter()
            .filter(|library| !library.exists())
            .cloned()
            .collect();
        if !missing.is_empty() {
            bail!(
                "cannot find {}; {}",
                listed(&missing),
                Component::Simulator.remedy()
            );
        }
        Ok(Libraries { hsa, devprof })
    }
}

/// The raw profiles in a directory, in the order in which the runtime numbers them.
fn profiles(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let failed = || format!("cannot read {}", dir.display());
    let entries = fs::read_dir(dir).with_context(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut found: Vec<PathBuf> = paths.collect::<Result<_, _>>().with_context(failed)?;
    found.retain(|path| path.extension().is_some_and(|own| own == "profraw"));
    // gfx1100.demo, gfx1100.1.demo, … gfx1100.10.demo
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}

/// The contents of a raw profile.
struct Profile {
    path: PathBuf,
    version: u64,
    functions: Vec<Function>,
}

impl Profile {
    fn read(path: PathBuf) -> anyhow::Result<Profile> {
        let layout = Layout::read(&fs::read(&path)?)?;
        let mut functions = in_file(&path)?;
        functions.sort_by(|a, b| a.symbol.cmp(&b.symbol));
        Ok(Profile {
            version: layout.header.raw_version(),
            functions,
            path,
        })
    }
}

/// The names of the kernels in the code objects: the functions that have a kernel descriptor (`.kd`).
fn kernels() -> anyhow::Result<HashSet<String>> {
    let mut found = HashSet::new();
    for (version, file) in program::FIXTURES {
        let elf = goblin::elf::Elf::parse(file)
            .with_context(|| format!("the code object of raw version {version} is damaged"))?;
        let symbols = elf.dynsyms.iter();
        let names = symbols.filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name));
        let names = names.filter_map(|name| name.strip_suffix(".kd"));
        found.extend(names.map(str::to_owned));
    }
    Ok(found)
}

/// The counters of all profiles in a directory, and the next commands.
fn summary(dir: &Path, naming: Naming) -> anyhow::Result<String> {
    let kernels = kernels()?;
    let mut profiles_read = Vec::new();
    for path in profiles(dir)? {
        let failed = format!("cannot read {}", path.display());
        profiles_read.push(Profile::read(path).context(failed)?);
    }
    if profiles_read.is_empty() {
        bail!("the demo program wrote no profile to {}", dir.display());
    }
    let mut text = "\
Two simulated gfx1100 GPUs ran the kernels of two code objects each, built by clang 22 and 23.
devprof saved their counters when the program exited:\n\n"
        .to_owned();
    for profile in &profiles_read {
        let version = profile.version;
        let path = profile.path.display();
        text += &format!("{path}  (raw profile version {version})\n");
        let mut table = Table::new(&["function", "", "entered", "blocks"], &[0, 1, 3]).indented(2);
        for function in &profile.functions {
            let is_kernel = kernels.contains(&function.symbol);
            let kind = if is_kernel {
                "kernel"
            } else {
                "device function"
            };
            let [entered, blocks] = entered_and_blocks(&function.record);
            let name = naming.shown(&function.symbol);
            table.row([name, kind.to_owned(), entered, blocks]);
        }
        text += &table.text(false);
        text.push('\n');
    }
    text += &format!(
        "\
\"entered\" is how many work-items called the function, and \"blocks\" how many ran each of its other blocks that have a
counter (a branch or a loop).

Next, add up the counts of all profiles:
  devprof merge {} -o demo.profdata
The same with your own program (if you have a GPU, leave out --arch and --model):
  clang++ -x hip a.hip $(devprof flags --coverage --arch gfx1100) -o a
  devprof run --model ./a
  devprof report a --profile devprof-1
",
        quoted(dir)
    );
    Ok(text)
}
