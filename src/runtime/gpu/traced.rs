//! The interface between the trace and GPU runtimes: [`TracedRuntime`], and the descriptions of agents and kernels.
//! Sources of records that only one runtime has, such as HSA's dispatches, call that runtime themselves.

use super::runtime::Error;
use std::sync::Arc;

/// Identifies an agent in its GPU runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKey {
    /// The handle of HSA's agent.
    Hsa(u64),
    /// CUDA's number of the device.
    Cuda(u32),
}

/// The clock of a trace.
pub trait SystemClock: Sync {
    /// Ticks of the clock; 0 if its runtime is not initialized.
    fn time(&self) -> u64;

    /// Ticks per second.
    fn frequency(&self) -> Result<u64, Error>;
}

/// A GPU runtime, as the trace sees it. It need not be loaded or initialized. The times that it reports are of the trace's
/// clock.
pub trait TracedRuntime: Sync {
    /// All its agents, in its order. Empty if it is not initialized.
    fn agents(&self) -> Vec<AgentKey>;

    /// The agent that the program's API for this runtime (HIP or CUDA) numbers `number`.
    fn numbered(&self, number: u64) -> Option<AgentKey>;

    /// The description of a GPU or a CPU, with the index in the runtime's list. `None` for another agent, and if the runtime
    /// returns an error, which is reported.
    fn describe(&self, agent: AgentKey) -> Option<Agent>;
}

/// The GPU runtimes of a process, in the order in which their agents are numbered.
#[derive(Clone, Copy)]
pub struct TracedRuntimes {
    pub clock: &'static dyn SystemClock,
    pub hsa: &'static dyn TracedRuntime,
    pub cuda: &'static dyn TracedRuntime,
}

impl TracedRuntimes {
    /// The runtime that an agent belongs to.
    pub fn of(&self, agent: AgentKey) -> &'static dyn TracedRuntime {
        match agent {
            AgentKey::Hsa(_) => self.hsa,
            AgentKey::Cuda(_) => self.cuda,
        }
    }
}

/// A GPU, or a CPU whose memory is copied.
#[derive(Default)]
pub struct Agent {
    /// Position in the trace's order: HSA's agents, then CUDA's devices.
    pub index: u32,
    /// Ticks per second of its clock, 0 if unknown.
    pub frequency: u64,
    /// For example `gfx1100` or `sm_90`; of a CPU its name.
    pub target: String,
    pub product: Option<String>,
    pub node: u32,
    /// How many agents of its type precede it in its runtime.
    pub number: u32,
    /// Of a CPU its cores, of NVIDIA's GPUs the multiprocessors.
    pub compute_units: u32,
    pub is_gpu: bool,
}

/// The registers that a kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Registers {
    Unknown,
    Amd {
        vgprs: u16,
        accum_vgprs: u16,
        sgprs: u16,
    },
    Nvidia {
        per_thread: u16,
    },
}

impl Registers {
    /// The fields `vgprs`, `accum_vgprs` and `sgprs` of a trace's records.
    pub fn fields(self) -> [u16; 3] {
        match self {
            Registers::Unknown => [0; 3],
            Registers::Amd {
                vgprs,
                accum_vgprs,
                sgprs,
            } => [vgprs, accum_vgprs, sgprs],
            Registers::Nvidia { per_thread } => [per_thread, 0, 0],
        }
    }
}

/// The properties that are the same in all dispatches of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    pub name: String,
    /// Index of the agent.
    pub agent: u32,
    /// Bytes.
    pub kernarg: u32,
    /// Bytes per workgroup.
    pub lds: u32,
    /// Bytes per work-item.
    pub scratch: u32,
    pub registers: Registers,
    /// The build id of its code object, in hexadecimal, if it is known.
    pub build_id: Option<Arc<str>>,
}
