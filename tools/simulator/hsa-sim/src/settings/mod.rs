//! Settings from the environment. An unknown value is an error of `hsa_init`.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `HSA_SIM_AGENTS` | the GPU agents: target names separated by commas, `gfx1100` by default; `gfx1100*8` means eight agents; `gfx942/cpx` is a partition of MI300X in the mode CPX (also `dpx`, `qpx`), and `gfx942/mi300a`, `/mi308x`, `/mi350x` have the compute units of these GPUs; empty: none |
//! | `ROCR_VISIBLE_DEVICES` | a setting of ROCr: which of them the process sees, see [`visible`] |
//! | `HSA_SIM_MEMORY_MB` | the memory of each GPU in MiB, 16384 by default. If it is used up, allocations fail |
//! | `HSA_SIM_PLAN`, `HSA_SIM_PLAN_FILE` | the fault plan, see [`crate::faults`] |
//! | `HSA_SIM_BAR` | `small` (default): the host cannot access the memory of GPUs, which includes loaded code objects: an access raises SIGSEGV, and programs have to copy; `large`: the host can access it |
//! | `HSA_SIM_L2` | `writeback`: each GPU has a write-back cache for its coarse-grained memory and its code objects, and only fences at system scope write it back and invalidate it, see [`crate::device::l2`]; `coherent` (default) |
//! | `HSA_SIM_ATOMICS` | `none`: the PCIe link has no atomics, so a copy engine does not decrement a completion signal but writes the value that the signal had at the request, minus 1; `pcie` (default) |
//! | `HSA_SIM_KERNELS` | `null`: a kernel packet completes at once and no kernel runs, and packets of unknown types complete, too; `run` (default) |
//! | `HSA_SIM_PACKETS` | `newest`: the packets of ROCr's development branch: hints in the lowest bits of completion signals, and `AQL_IB_JUMP`; `rocr-7.2` (default): a packet with these is an error |
//! | `HSA_SIM_INTERCEPT` | `rocr-7.2.4`: a program that triggers one of two bugs of ROCr 7.2.4's intercept queues is aborted, see [`crate::queues::interception`]; `sound` (default) |
//! | `HSA_SIM_WATCH` | `segments`: a copy to the host whose source is not in one loaded code object or one allocation of a GPU's memory ends the process; `off` (default) |
//! | `HSA_SIM_TOOLS` | `registered`: a tool of rocprofiler-sdk has registered, so the libraries of `HSA_TOOLS_LIB` are skipped without a message, unless `HSA_TOOLS_ROCPROFILER_V1_TOOLS` is on or `HSA_TOOLS_DISABLE_REGISTER` is 1; `load` (default) |
//! | `HSA_SIM_TABLE_MAJOR` | the major version of the table for tools, 3 by default |
//! | `HSA_SIM_TABLE` | `rocr-7.2`: the `AmdExtTable` for tools ends as in ROCr 7.2.4 (by the size in its version); `newest` (default): it ends with `hsa_amd_queue_create`. The functions are exported in both cases |
//! | `HSA_ENABLE_SDMA` | a setting of ROCr: `0`: kernels copy, not the copy engines |
//! | `GPU_MAX_HW_QUEUES`, `HSA_COUNTED_QUEUE_SIZE` | settings of ROCr: the number of hardware queues, and their size in packets, see [`crate::queues::counted`] |
//! | `HSA_TOOLS_LIB`, `HSA_TOOLS_ROCPROFILER_V1_TOOLS`, `HSA_TOOLS_DISABLE_REGISTER` | settings of ROCr: tool libraries, see [`crate::tools`] |

pub mod isa;
pub mod target;
pub mod tools;
pub mod variable;
pub mod visible;

use gpu_model::topology::Units;
use std::env::VarError;
use target::Target;
use tools::ToolSettings;
use variable::is_chosen;

/// A GPU of the simulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    pub target: &'static Target,
    pub units: Units,
    /// The number of its node in the machine, which does not depend on `ROCR_VISIBLE_DEVICES`. Node 0 is the CPU.
    pub node: usize,
}

impl Device {
    /// `HSA_AMD_AGENT_INFO_UUID`, without the terminator.
    pub fn uuid(&self) -> String {
        format!("GPU-{:016x}", self.node)
    }
}

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The GPUs that the process sees.
    pub gpus: Vec<Device>,
    /// The size of each GPU's memory, bytes.
    pub memory: usize,
    /// Copies to the host may only read loaded code objects and memory that was allocated on a GPU.
    pub watch: bool,
    /// The host cannot access the GPUs' memory.
    pub small_bar: bool,
    /// GPUs have write-back caches.
    pub write_back: bool,
    /// Kernels are executed.
    pub kernels: bool,
    /// Packets may be of the kinds of ROCr's development branch.
    pub newest_packets: bool,
    /// Intercept queues have two bugs of ROCr 7.2.4, which end the process.
    pub faulty_intercept: bool,
    /// GPUs have copy engines.
    pub copy_engines: bool,
    /// The links between the host and the GPUs have atomics.
    pub pcie_atomics: bool,
    pub tools: ToolSettings,
}

const MAX_AGENTS: usize = 4096;

/// The default of `HSA_SIM_MEMORY_MB`, in bytes.
const GPU_MEMORY: usize = 16 << 30;

impl Settings {
    /// Reads the settings from the environment.
    pub fn from_env() -> Result<Settings, String> {
        let gpus = match std::env::var("HSA_SIM_AGENTS") {
            Ok(text) => agents(&text).map_err(|error| format!("HSA_SIM_AGENTS={text}: {error}"))?,
            Err(_) => agents("gfx1100")?,
        };
        let gpus = match std::env::var("ROCR_VISIBLE_DEVICES") {
            Ok(text) => visible_of(&text, &gpus)
                .map_err(|error| format!("ROCR_VISIBLE_DEVICES={text}: {error}"))?,
            Err(VarError::NotPresent) => gpus,
            Err(error) => return Err(format!("ROCR_VISIBLE_DEVICES: {error}")),
        };
        let memory = match std::env::var("HSA_SIM_MEMORY_MB") {
            Err(_) => GPU_MEMORY,
            Ok(text) => text
                .parse()
                .ok()
                .and_then(|number: usize| number.checked_mul(1 << 20))
                .ok_or_else(|| format!("HSA_SIM_MEMORY_MB={text}: not a number of MiB"))?,
        };
        Ok(Settings {
            gpus,
            memory,
            watch: is_chosen("HSA_SIM_WATCH", "off", "segments")?,
            small_bar: !is_chosen("HSA_SIM_BAR", "small", "large")?,
            write_back: is_chosen("HSA_SIM_L2", "coherent", "writeback")?,
            kernels: !is_chosen("HSA_SIM_KERNELS", "run", "null")?,
            newest_packets: is_chosen("HSA_SIM_PACKETS", "rocr-7.2", "newest")?,
            faulty_intercept: is_chosen("HSA_SIM_INTERCEPT", "sound", "rocr-7.2.4")?,
            pcie_atomics: !is_chosen("HSA_SIM_ATOMICS", "pcie", "none")?,
            copy_engines: std::env::var("HSA_ENABLE_SDMA").as_deref() != Ok("0"),
            tools: ToolSettings::from_env()?,
        })
    }
}

/// The GPUs that `ROCR_VISIBLE_DEVICES` selects.
fn visible_of(text: &str, gpus: &[Device]) -> Result<Vec<Device>, String> {
    let uuids: Vec<_> = gpus.iter().map(Device::uuid).collect();
    let numbers = visible::visible(text, &uuids)?;
    Ok(numbers.into_iter().map(|number| gpus[number]).collect())
}

fn agents(text: &str) -> Result<Vec<Device>, String> {
    let mut gpus = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, count) = match part.split_once('*') {
            Some((name, count)) => (
                name,
                count
                    .parse()
                    .map_err(|_| format!("'{count}' is not a number"))?,
            ),
            None => (part, 1),
        };
        let (name, variant) = match name.split_once('/') {
            Some((name, variant)) => (name, Some(variant)),
            None => (name, None),
        };
        let target = Target::find(name).ok_or_else(|| {
            let known: Vec<_> = Target::ALL.iter().map(|target| target.name).collect();
            format!("the model runs {}, not '{name}'", known.join(", "))
        })?;
        let units = units(target, variant)?;
        if gpus.len() + count > MAX_AGENTS {
            return Err(format!("more than {MAX_AGENTS} agents"));
        }
        let nodes = gpus.len() + 1..=gpus.len() + count;
        gpus.extend(nodes.map(|node| Device {
            target,
            units,
            node,
        }));
    }
    Ok(gpus)
}

/// The compute units of a target's variant.
fn units(target: &Target, variant: Option<&str>) -> Result<Units, String> {
    let Some(variant) = variant else {
        return Ok(Units::of(target.architecture()));
    };
    let all = Units::variants(target.architecture());
    let found = all.iter().find(|(name, _)| *name == variant);
    found.map(|&(_, units)| units).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        let (name, known) = (target.name, known.join(", "));
        format!("'{variant}' is not a variant of {name} ({known})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_have_names_and_counts() {
        let names = |text: &str| {
            agents(text).map(|all| {
                let names: Vec<_> = all.iter().map(|gpu| gpu.target.name).collect();
                names.join(" ")
            })
        };
        assert_eq!(
            names("gfx1100, gfx1101*2").unwrap(),
            "gfx1100 gfx1101 gfx1101"
        );
        assert_eq!(names("").unwrap(), "");
        assert_eq!(names("gfx1100*0").unwrap(), "");
        assert!(names("gfx908").unwrap_err().contains("not 'gfx908'"));
        assert!(
            names("gfx1100*x")
                .unwrap_err()
                .contains("'x' is not a number")
        );
        assert!(names("gfx1100*5000").is_err());
    }
    #[test]
    fn visible_gpus_keep_their_nodes() {
        let all = agents("gfx1100,gfx942*3").unwrap();
        let visible = visible_of("GPU-0000000000000004,0", &all).unwrap();
        let found: Vec<_> = visible.iter().map(|g| (g.target.name, g.node)).collect();
        assert_eq!(found, [("gfx942", 4), ("gfx1100", 1)]);
    }
}
