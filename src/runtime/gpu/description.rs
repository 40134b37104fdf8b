//! What a GPU runtime knows about agents and kernels, for the trace.

/// What a GPU runtime reports about an agent.
pub struct AgentDescription {
    /// Position in the trace's order: HSA's agents, then CUDA's devices.
    pub index: u32,
    /// Ticks per second of its clock, 0 if unknown.
    pub frequency: u64,
    /// A GPU's target, for example `gfx1100`, or a CPU's name.
    pub target: String,
    pub product: Option<String>,
    pub node: u32,
    /// A CPU's cores.
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
    /// The values of a record's fields `vgprs`, `accum_vgprs` and `sgprs`.
    pub fn fields(self) -> Option<[u16; 3]> {
        match self {
            Registers::Unknown => None,
            Registers::Amd {
                vgprs,
                accum_vgprs,
                sgprs,
            } => Some([vgprs, accum_vgprs, sgprs]),
            Registers::Nvidia { per_thread } => Some([per_thread, 0, 0]),
        }
    }
}

/// What is constant in all dispatches of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Of a kernel of HSA, without the `.kd` of the descriptor's symbol.
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
