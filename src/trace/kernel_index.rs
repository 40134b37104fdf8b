//! Which kernel an address in a dispatch packet is. Code objects come and go, and a later one may lie where an earlier
//! one lay, while dispatches of the earlier one wait to be recorded: each address has its kernels in the order in which
//! they were loaded, and a dispatch carries the epoch in which it was written.

use crate::gpu::hsa::kernels::{Kernel, Registers};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the executables that were frozen.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// The epoch for a packet that is written now.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

#[derive(Default)]
pub struct Kernels {
    /// Epoch and id, in ascending order.
    at: HashMap<u64, Vec<(u64, u32)>>,
    /// A code object that is loaded again brings no new kernels.
    ids: HashMap<Kernel, u32>,
    registers: Vec<Option<Registers>>,
}

impl Kernels {
    /// Takes the kernels of an executable that was frozen, with their addresses, before the first of them can be
    /// dispatched. `new` is told of those that were not known.
    pub fn add(
        &mut self,
        kernels: impl IntoIterator<Item = (u64, Kernel)>,
        mut new: impl FnMut(u32, u64, &Kernel),
    ) {
        let epoch = EPOCH.load(Ordering::Relaxed) + 1;
        for (object, kernel) in kernels {
            let registers = kernel.registers;
            let next = self.registers.len() as u32 + 1;
            let id = *self.ids.entry(kernel).or_insert_with_key(|kernel| {
                new(next, object, kernel);
                next
            });
            if id == next {
                self.registers.push(registers);
            }
            let here = self.at.entry(object).or_default();
            if here.last().is_none_or(|&(_, last)| last != id) {
                here.push((epoch, id));
            }
        }
        EPOCH.store(epoch, Ordering::Release);
    }

    /// The kernel that lay at `object` in `epoch`; 0 for none.
    pub fn find(&self, object: u64, epoch: u64) -> u32 {
        let here = self.at.get(&object).map(Vec::as_slice).unwrap_or_default();
        let newest = here.iter().rev().find(|&&(since, _)| since <= epoch);
        newest.map_or(0, |&(_, id)| id)
    }

    /// None was loaded.
    pub fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }

    pub fn registers(&self, id: u32) -> Option<Registers> {
        let index = (id as usize).checked_sub(1)?;
        *self.registers.get(index)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel {
            name: name.into(),
            agent: 1,
            kernarg: 8,
            lds: 0,
            scratch: 0,
            registers: None,
        }
    }

    /// A kernel's id by the epoch of its dispatch, when another code object was loaded at its address.
    #[test]
    fn an_address_means_what_lay_there_when_the_packet_was_written() {
        let mut kernels = Kernels::default();
        let mut new = Vec::new();
        let mut add = |kernels: &mut Kernels, name: &str| {
            kernels.add([(0x100, kernel(name))], |id, _, kernel| {
                new.push((id, kernel.name.clone()))
            });
            EPOCH.load(Ordering::Relaxed)
        };
        let first = add(&mut kernels, "a");
        let again = add(&mut kernels, "a");
        let second = add(&mut kernels, "b");
        let third = add(&mut kernels, "a");
        let id = |epoch| kernels.find(0x100, epoch);
        assert_eq!([first, again, second, third].map(id), [1, 1, 2, 1]);
        assert_eq!(kernels.find(0x100, first - 1), 0);
        assert_eq!(kernels.find(0x200, third), 0);
        assert_eq!(new, [(1, "a".into()), (2, "b".into())]);
    }
}
