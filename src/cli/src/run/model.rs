//! `devprof run --model`: the simulators of GPUs, and the environment for them.

use super::links::Links;
use crate::exit::usage;
use crate::gpus::SIMULATED;
use crate::locate::Component;
use anyhow::Context;
use clap::{Args, ValueEnum};
use libloading::Library;
use std::collections::BTreeSet;
use std::env;
use std::ffi::{CStr, OsString, c_char};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The simulator's GPUs.
const AGENTS: &str = "HSA_SIM_AGENTS";
/// Whether the host can access the simulated GPUs' memory.
const BAR: &str = "HSA_SIM_BAR";

/// The largest number of simulated GPUs.
const MOST: usize = 64;

/// The software that simulates the GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Platform {
    /// devprof's simulator instead of AMD's HSA runtime: any number of GPUs
    Sim,
    /// AMD's HSA runtime in its model mode: one gfx1100 GPU
    Rocr,
}

#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// Run on simulated GPUs, whether or not this machine has GPUs
    #[arg(
        long,
        value_name = "PLATFORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "sim"
    )]
    model: Option<Platform>,
    /// Simulate this many GPUs [default: one of each architecture]
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus: Option<u32>,
    /// Simulate GPUs of these architectures, in turn [default: gfx1100]
    #[arg(long, value_name = "ARCH", value_delimiter = ',', requires = "model")]
    arch: Vec<String>,
}

/// The simulated GPUs.
pub struct Model {
    platform: Platform,
    /// The architecture of each GPU.
    gpus: Vec<String>,
}

impl Options {
    /// The simulated GPUs, if the program is to run on them.
    pub fn model(&self) -> anyhow::Result<Option<Model>> {
        let Some(platform) = self.model else {
            return Ok(None);
        };
        let gpus = match (platform, env::var(AGENTS).ok()) {
            (Platform::Sim, Some(agents)) if self.gpus.is_none() && self.arch.is_empty() => {
                let invalid = || {
                    usage(format!(
                        "{AGENTS}={agents}: not a list of GPUs, such as gfx1100*2,gfx1101"
                    ))
                };
                listed(&agents).ok_or_else(invalid)?
            }
            (Platform::Sim, Some(agents)) => {
                return Err(usage(format!(
                    "{AGENTS}={agents} is set, too: omit --gpus and --arch, or unset it"
                )));
            }
            _ => self.agents(),
        };
        let model = Model { platform, gpus };
        model.check()?;
        Ok(Some(model))
    }

    fn agents(&self) -> Vec<String> {
        let one = [SIMULATED.to_owned()];
        let architectures = if self.arch.is_empty() {
            &one[..]
        } else {
            &self.arch
        };
        let count = self.gpus.map_or(architectures.len(), |gpus| gpus as usize);
        architectures.iter().cloned().cycle().take(count).collect()
    }
}

/// The GPUs in the simulator's own variable: `gfx1100*2,gfx1101`. `None`: there are none, too many, or it is invalid.
fn listed(agents: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for part in agents.split(',') {
        let (name, count) = part.split_once('*').unwrap_or((part, "1"));
        let count: usize = count.trim().parse().ok()?;
        if name.trim().is_empty() || count == 0 || all.len() + count > MOST {
            return None;
        }
        all.extend(std::iter::repeat_n(name.trim().to_owned(), count));
    }
    Some(all)
}

impl Model {
    pub fn architectures(&self) -> BTreeSet<String> {
        self.gpus.iter().cloned().collect()
    }

    /// Checks that the platform has these GPUs.
    fn check(&self) -> anyhow::Result<()> {
        let (name, known) = match self.platform {
            Platform::Sim => ("the simulator", targets(&simulator()?)?),
            Platform::Rocr if self.gpus.len() > 1 => {
                return Err(usage(
                    "--model=rocr has one GPU: use --model for several".to_owned(),
                ));
            }
            Platform::Rocr => ("--model=rocr", vec![SIMULATED.to_owned()]),
        };
        match self.gpus.iter().find(|gpu| !known.contains(gpu)) {
            None => Ok(()),
            Some(unknown) => Err(usage(format!(
                "--arch {unknown}: {name} has {}",
                known.join(", ")
            ))),
        }
    }

    /// Sets the environment of the program. Returns the libraries to preload.
    pub fn prepare(&self, command: &mut Command, links: &Links) -> anyhow::Result<Vec<PathBuf>> {
        match self.platform {
            Platform::Sim => self.prepare_simulator(command, links),
            Platform::Rocr => prepare_rocr(command, links),
        }
    }

    fn prepare_simulator(
        &self,
        command: &mut Command,
        links: &Links,
    ) -> anyhow::Result<Vec<PathBuf>> {
        let library = simulator()?;
        command.env(AGENTS, self.gpus.join(","));
        // The host can access the GPUs' memory, as on most systems: LLVM's own runtime, which may be in the program,
        // crashes otherwise.
        if env::var_os(BAR).is_none() {
            command.env(BAR, "large");
        }
        // Preloaded, it also replaces a library that an RPATH names. LLVM's libomptarget loads it by a name without the
        // version, which is a link next to it.
        if let Some(dir) = library.parent() {
            let mut path = OsString::from(dir);
            if let Some(old) = env::var_os("LD_LIBRARY_PATH").filter(|old| !old.is_empty()) {
                path.push(":");
                path.push(old);
            }
            command.env("LD_LIBRARY_PATH", path);
        }
        Ok(vec![links.without_separators(&library)?])
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let architectures = self.architectures();
        let names = Vec::from_iter(architectures.iter().map(String::as_str)).join(", ");
        let platform = match self.platform {
            Platform::Sim => "devprof's simulator",
            Platform::Rocr => "ROCr's model mode",
        };
        match self.gpus.len() {
            1 => write!(f, "the GPU is a simulated {names} ({platform})"),
            count => write!(f, "the {count} GPUs are simulated: {names} ({platform})"),
        }
    }
}

fn simulator() -> anyhow::Result<PathBuf> {
    let found = Component::HsaRuntime.find();
    found.context("--model: cannot find the simulator")
}

/// The architectures that the simulator has. Empty if there is no simulator.
pub fn known() -> Vec<String> {
    let targets = simulator().and_then(|library| targets(&library));
    targets.unwrap_or_default()
}

/// The architectures that a simulator has.
fn targets(library: &Path) -> anyhow::Result<Vec<String>> {
    let failed = || format!("cannot read the architectures of {}", library.display());
    // SAFETY: devprof's own library, which has no constructors.
    let loaded = unsafe { Library::new(library) }.with_context(failed)?;
    // SAFETY: the function's type.
    let targets =
        unsafe { loaded.get::<unsafe extern "C" fn() -> *const c_char>(b"hsa_sim_targets\0") };
    // SAFETY: it returns a static C string.
    let names = unsafe { CStr::from_ptr(targets.with_context(failed)?()) };
    let names = names.to_str().with_context(failed)?;
    Ok(names.split(',').map(str::to_owned).collect())
}

/// Sets the environment for the GPU model in ROCr. Returns the library to preload for it.
fn prepare_rocr(command: &mut Command, links: &Links) -> anyhow::Result<Vec<PathBuf>> {
    let find = |component: Component| {
        component
            .find()
            .context("--model: cannot find the GPU model")
    };
    command
        .env("HSA_MODEL_LIB", find(Component::Model)?)
        .env("HSA_MODEL_TOPOLOGY", find(Component::Topology)?)
        // No interrupt signals: in model mode ROCr's threads would spin on their events. No SDMA: the model copies with
        // kernels. No pinning of host memory for copies below this size in MiB: ROCr's model mode does not support it
        // and aborts ("userptr not supported").
        .env("HSA_ENABLE_INTERRUPT", "0")
        .env("HSA_ENABLE_SDMA", "0")
        .env("GPU_PINNED_MIN_XFER_SIZE", "4095");
    let start = find(Component::ModelStart)?;
    Ok(vec![links.without_separators(&start)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_alternate() {
        let agents = |gpus, arch: &[&str]| {
            let arch = arch.iter().map(|&name| name.to_owned()).collect();
            let model = Some(Platform::Sim);
            Options { model, gpus, arch }.agents().join(" ")
        };
        assert_eq!(agents(None, &[]), "gfx1100");
        assert_eq!(agents(Some(2), &[]), "gfx1100 gfx1100");
        assert_eq!(agents(None, &["gfx1101", "gfx1102"]), "gfx1101 gfx1102");
        assert_eq!(
            agents(Some(3), &["gfx1101", "gfx1102"]),
            "gfx1101 gfx1102 gfx1101"
        );
        assert_eq!(
            listed("gfx1100, gfx1101*2").unwrap().join(" "),
            "gfx1100 gfx1101 gfx1101"
        );
        for invalid in [
            "",
            ",",
            "gfx1100*x",
            "gfx1100*0",
            "*2",
            "gfx1100*65",
            "gfx1100*9999999999",
        ] {
            assert_eq!(listed(invalid), None, "{invalid}");
        }
    }
}
