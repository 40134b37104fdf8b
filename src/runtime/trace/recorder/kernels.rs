//! The kernels of the trace and their ids. A code object that is loaded again adds none.

use crate::gpu::description::{Kernel, Registers};
use std::collections::HashMap;

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
