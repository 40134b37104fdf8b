//! Descriptions of agents and kernels, for a trace.

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

/// What is constant in all dispatches of a kernel.
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
}
