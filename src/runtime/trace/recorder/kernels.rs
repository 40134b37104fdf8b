//! The kernels of the trace and their ids. A code object that is loaded again adds none; another one with kernels of the same
//! names does.

use crate::gpu::traced::{Kernel, Registers};
use std::collections::HashMap;

/// Ids count from 1.
#[derive(Default)]
pub struct Kernels {
    ids: HashMap<Kernel, u32>,
    registers: Vec<Registers>,
}

impl Kernels {
    /// The id of a kernel, and whether it is new.
    pub fn add(&mut self, kernel: &Kernel) -> (u32, bool) {
        if let Some(&id) = self.ids.get(kernel) {
            return (id, false);
        }
        self.registers.push(kernel.registers);
        let id = self.registers.len() as u32;
        self.ids.insert(kernel.clone(), id);
        (id, true)
    }

    /// The registers of the kernel with this id.
    pub fn registers(&self, id: u32) -> Registers {
        let index = (id as usize).checked_sub(1);
        let known = index.and_then(|index| self.registers.get(index));
        known.copied().unwrap_or(Registers::Unknown)
    }
}
