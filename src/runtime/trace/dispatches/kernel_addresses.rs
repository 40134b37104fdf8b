//! Finds the kernel for an address in a dispatch packet. A code object may be loaded where an earlier one was unloaded
//! while dispatches of the earlier one are still to be recorded. Therefore each address has a list of kernels in the
//! order in which they were loaded, and a dispatch has the epoch in which its packet was written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Incremented by each [`KernelAddresses::add`].
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// The epoch for a packet that is being written.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// Pairs of epoch and id by address, in ascending order of epochs.
#[derive(Default)]
pub struct KernelAddresses(HashMap<u64, Vec<(u64, u32)>>);

impl KernelAddresses {
    /// Adds the kernels of an executable that was frozen, pairs of address and id, before they can be dispatched.
    pub fn add(&mut self, kernels: impl IntoIterator<Item = (u64, u32)>) {
        let epoch = EPOCH.load(Ordering::Relaxed) + 1;
        for (object, id) in kernels {
            let loaded = self.0.entry(object).or_default();
            if loaded.last().is_none_or(|&(_, last)| last != id) {
                loaded.push((epoch, id));
            }
        }
        EPOCH.store(epoch, Ordering::Release);
    }

    /// The id of the kernel at address `object` in `epoch`; 0 if there is none.
    pub fn find(&self, object: u64, epoch: u64) -> u32 {
        let loaded = self.0.get(&object).map(Vec::as_slice).unwrap_or_default();
        let newest = loaded.iter().rev().find(|&&(since, _)| since <= epoch);
        newest.map_or(0, |&(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another code object is loaded at a kernel's address: dispatches have the kernel of their epoch.
    #[test]
    fn an_address_means_the_kernel_loaded_when_the_packet_was_written() {
        let mut kernels = KernelAddresses::default();
        let mut add = |id| {
            kernels.add([(0x100, id)]);
            EPOCH.load(Ordering::Relaxed)
        };
        let [first, again, second, third] = [1, 1, 2, 1].map(&mut add);
        let id = |epoch| kernels.find(0x100, epoch);
        assert_eq!([first, again, second, third].map(id), [1, 1, 2, 1]);
        assert_eq!(kernels.find(0x100, first - 1), 0);
        assert_eq!(kernels.find(0x200, third), 0);
    }
}
