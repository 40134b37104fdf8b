//! Finds the kernel for an address in a dispatch packet. A code object may be loaded where an earlier one was unloaded
//! while dispatches of the earlier one are still to be recorded. Therefore each address has a list of kernels in the
//! order in which they were loaded, and a dispatch has the epoch in which its packet was written.

use crate::amd::kernels::{Kernel, Registers};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Incremented by each [`Kernels::add`].
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// The epoch for a packet that is being written.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

#[derive(Default)]
pub struct Kernels {
    /// Kernels by address: pairs of epoch and id, in ascending order of epochs.
    by_address: HashMap<u64, Vec<(u64, u32)>>,
    /// Kernels that were recorded. A code object that is loaded again adds none.
    ids: HashMap<Kernel, u32>,
    registers: Vec<Option<Registers>>,
    /// Code objects of HSA were loaded.
    is_loaded: bool,
}

impl Kernels {
    /// Adds the kernels of an executable that was frozen, keyed by address, before they can be dispatched. Calls
    /// `on_new` for kernels that were not known before.
    pub fn add(
        &mut self,
        kernels: impl IntoIterator<Item = (u64, Kernel)>,
        mut on_new: impl FnMut(u32, u64, &Kernel),
    ) {
        let epoch = EPOCH.load(Ordering::Relaxed) + 1;
        for (object, kernel) in kernels {
            self.is_loaded = true;
            let id = self.id(kernel, |id, kernel| on_new(id, object, kernel));
            let loaded = self.by_address.entry(object).or_default();
            if loaded.last().is_none_or(|&(_, last)| last != id) {
                loaded.push((epoch, id));
            }
        }
        EPOCH.store(epoch, Ordering::Release);
    }

    /// A kernel's id. Calls `on_new` if it was not known before.
    pub fn id(&mut self, kernel: Kernel, on_new: impl FnOnce(u32, &Kernel)) -> u32 {
        let registers = kernel.registers;
        let next = self.registers.len() as u32 + 1;
        let id = *self.ids.entry(kernel).or_insert_with_key(|kernel| {
            on_new(next, kernel);
            next
        });
        if id == next {
            self.registers.push(registers);
        }
        id
    }

    /// The id of the kernel at address `object` in `epoch`; 0 if there is none.
    pub fn find(&self, object: u64, epoch: u64) -> u32 {
        let loaded = self
            .by_address
            .get(&object)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let newest = loaded.iter().rev().find(|&&(since, _)| since <= epoch);
        newest.map_or(0, |&(_, id)| id)
    }

    /// Whether no kernel of HSA was loaded.
    pub fn is_empty(&self) -> bool {
        !self.is_loaded
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

    /// Another code object is loaded at a kernel's address: dispatches have the kernel of their epoch.
    #[test]
    fn an_address_means_the_kernel_loaded_when_the_packet_was_written() {
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
