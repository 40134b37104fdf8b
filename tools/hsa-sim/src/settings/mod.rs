//! What the environment asks for. A word that is not known is an error of `hsa_init`.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `HSA_SIM_AGENTS` | the GPU agents: target names between commas, `gfx1100` unless set; `gfx1100*8` is eight of them, empty is none |
//! | `HSA_SIM_PLAN`, `HSA_SIM_PLAN_FILE` | the fault plan, see [`crate::plan`] |
//! | `HSA_SIM_BAR` | `small`, unless set: the host cannot use the addresses of GPUs' memory, loaded code objects included (a load there is SIGSEGV), so a program has to copy; `large`: it can |
//! | `HSA_SIM_L2` | `writeback`: each GPU has a write-back cache for its coarse-grained memory and its code objects, which only fences at system scope write back and invalidate, see [`crate::l2`]; `coherent`, unless set |
//! | `HSA_SIM_KERNELS` | `null`: a kernel packet completes at once and no kernel runs, and packets of unknown types complete, too; `run`, unless set |
//! | `HSA_SIM_INTERCEPT` | `rocr-7.2.4`: what meets one of the two faults of ROCr 7.2.4's intercept queues ends the process, see [`crate::intercept`]; `sound`, unless set |
//! | `HSA_SIM_WATCH` | `segments`: a copy that reads from memory that HSA gave out and is not inside one loaded segment, or reads memory that HSA does not know at all, ends the process; `off`, unless set |
//! | `HSA_SIM_TOOLS` | `registered`: a tool of rocprofiler-sdk has registered, so the libraries of `HSA_TOOLS_LIB` are skipped without a message, unless `HSA_TOOLS_ROCPROFILER_V1_TOOLS` is on or `HSA_TOOLS_DISABLE_REGISTER` is 1; `load`, unless set |
//! | `HSA_SIM_TABLE_MAJOR` | the major version in the table that tools get, 3 unless set |
//! | `HSA_SIM_TABLE` | `rocr-7.2`: the `AmdExtTable` that tools get ends where ROCr 7.2.4's does (by the size in its version); `newest`, unless set: it goes on to `hsa_amd_queue_create`. The functions are exported in both cases |
//! | `GPU_MAX_HW_QUEUES`, `HSA_COUNTED_QUEUE_SIZE` | ROCr's: hardware queues and their packets, see [`crate::counted`] |
//! | `HSA_TOOLS_LIB`, `HSA_TOOLS_ROCPROFILER_V1_TOOLS`, `HSA_TOOLS_DISABLE_REGISTER` | ROCr's: tool libraries, see [`crate::tools`] |

pub mod target;
pub mod tools;

use target::Target;
use tools::ToolSettings;

/// The environment's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    pub gpus: Vec<&'static Target>,
    /// Copies may only read inside loaded segments.
    pub watch: bool,
    /// The host cannot reach the GPUs' memory.
    pub small_bar: bool,
    /// GPUs have write-back caches.
    pub write_back: bool,
    /// Kernels are executed.
    pub kernels: bool,
    /// Intercept queues have the faults of ROCr 7.2.4's.
    pub faulty_intercept: bool,
    pub tools: ToolSettings,
}

const MOST_AGENTS: usize = 4096;

impl Settings {
    /// Reads them.
    pub fn from_env() -> Result<Settings, String> {
        let gpus = match std::env::var("HSA_SIM_AGENTS") {
            Ok(text) => agents(&text).map_err(|error| format!("HSA_SIM_AGENTS={text}: {error}"))?,
            Err(_) => agents("gfx1100")?,
        };
        let watch = match std::env::var("HSA_SIM_WATCH").as_deref() {
            Err(_) | Ok("off") => false,
            Ok("segments") => true,
            Ok(other) => {
                return Err(format!(
                    "HSA_SIM_WATCH={other}: 'off' and 'segments' are known"
                ));
            }
        };
        let small_bar = match std::env::var("HSA_SIM_BAR").as_deref() {
            Err(_) | Ok("small") => true,
            Ok("large") => false,
            Ok(other) => {
                return Err(format!(
                    "HSA_SIM_BAR={other}: 'large' and 'small' are known"
                ));
            }
        };
        let write_back = match std::env::var("HSA_SIM_L2").as_deref() {
            Err(_) | Ok("coherent") => false,
            Ok("writeback") => true,
            Ok(other) => {
                return Err(format!(
                    "HSA_SIM_L2={other}: 'coherent' and 'writeback' are known"
                ));
            }
        };
        let kernels = match std::env::var("HSA_SIM_KERNELS").as_deref() {
            Err(_) | Ok("run") => true,
            Ok("null") => false,
            Ok(other) => {
                return Err(format!(
                    "HSA_SIM_KERNELS={other}: 'run' and 'null' are known"
                ));
            }
        };
        let faulty_intercept = match std::env::var("HSA_SIM_INTERCEPT").as_deref() {
            Err(_) | Ok("sound") => false,
            Ok("rocr-7.2.4") => true,
            Ok(other) => {
                return Err(format!(
                    "HSA_SIM_INTERCEPT={other}: 'sound' and 'rocr-7.2.4' are known"
                ));
            }
        };
        Ok(Settings {
            gpus,
            watch,
            small_bar,
            write_back,
            kernels,
            faulty_intercept,
            tools: ToolSettings::from_env()?,
        })
    }
}

fn agents(text: &str) -> Result<Vec<&'static Target>, String> {
    let mut gpus = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, count) = match part.split_once('*') {
            Some((name, count)) => (
                name,
                count
                    .parse()
                    .map_err(|_| format!("'{count}' is no number"))?,
            ),
            None => (part, 1),
        };
        let target = Target::find(name).ok_or_else(|| {
            let known: Vec<_> = Target::ALL.iter().map(|target| target.name).collect();
            format!("the model runs {}, not '{name}'", known.join(", "))
        })?;
        if gpus.len() + count > MOST_AGENTS {
            return Err(format!("more than {MOST_AGENTS} agents"));
        }
        gpus.extend(std::iter::repeat_n(target, count));
    }
    Ok(gpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_named_and_counted() {
        let names = |text: &str| {
            agents(text).map(|all| all.iter().map(|t| t.name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            names("gfx1100, gfx1101*2").unwrap(),
            "gfx1100 gfx1101 gfx1101"
        );
        assert_eq!(names("").unwrap(), "");
        assert_eq!(names("gfx1100*0").unwrap(), "");
        assert!(names("gfx90a").unwrap_err().contains("not 'gfx90a'"));
        assert!(names("gfx1100*x").unwrap_err().contains("'x' is no number"));
        assert!(names("gfx1100*5000").is_err());
    }
}
