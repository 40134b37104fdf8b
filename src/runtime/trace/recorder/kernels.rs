//! The kernels of the trace and their ids. A code object that is loaded again adds none.

use std::collections::HashMap;

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

/// Ids count from 1.
#[derive(Default)]
pub struct Kernels {
    ids: HashMap<Kernel, u32>,
    registers: Vec<Registers>,
}

impl Kernels {
    pub fn find(&self, kernel: &Kernel) -> Option<u32> {
        self.ids.get(kernel).copied()
    }

    /// The id of the kernel that is added next.
    pub fn next_id(&self) -> u32 {
        self.registers.len() as u32 + 1
    }

    pub fn add(&mut self, kernel: Kernel) {
        self.registers.push(kernel.registers);
        self.ids.insert(kernel, self.registers.len() as u32);
    }

    /// The registers of the kernel with this id.
    pub fn registers(&self, id: u32) -> Registers {
        let index = (id as usize).checked_sub(1);
        let known = index.and_then(|index| self.registers.get(index));
        known.copied().unwrap_or(Registers::Unknown)
    }
}
