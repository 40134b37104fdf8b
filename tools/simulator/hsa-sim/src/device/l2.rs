//! The write-back cache of a GPU, for its coarse-grained memory and its code objects (`HSA_SIM_L2=writeback`).
//!
//! Kernels read and write cached bytes. Copies, and the host with a large BAR, access memory only. A packet with a release
//! fence at system scope, on any queue of the agent, writes all dirty bytes to memory when it completes. A packet with an
//! acquire fence at system scope reads all clean bytes from memory again before it starts. Other packets do neither.
//!
//! The cache contains all bytes of an allocation from the beginning. So a kernel without an acquire fence never sees bytes
//! that were copied to the device since; on hardware it may see them after an eviction. A byte is dirty if it differs from
//! the value that cache and memory last had in common. A fence compares all cached memory.

use super::mapping::Mapping;
use crate::sync::locked;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// The cache of an agent.
#[derive(Debug, Default)]
pub struct L2 {
    /// The cached allocations, by the address that programs use.
    lines: Mutex<BTreeMap<usize, Lines>>,
}

/// The cached bytes of an allocation.
#[derive(Debug)]
struct Lines {
    /// The address of the bytes in memory.
    memory: usize,
    /// The bytes that kernels access.
    cached: Mapping,
    /// The value of each byte when it was last written back or read from memory.
    synced: Mapping,
}

const WORD: usize = size_of::<u64>();

impl L2 {
    /// Caches an allocation of `size` bytes (a multiple of a page), all of them zero. Returns the address of the bytes that
    /// kernels access.
    ///
    /// # Safety
    /// `memory` is valid until [`L2::remove`] is called for `base`. All accesses to it are atomic, or allow concurrent atomic
    /// accesses.
    pub unsafe fn insert(&self, base: usize, memory: usize, size: usize) -> Option<usize> {
        let lines = Lines {
            memory,
            cached: Mapping::device(size, true)?,
            synced: Mapping::device(size, true)?,
        };
        let kernels = lines.cached.bytes();
        locked(&self.lines).insert(base, lines);
        Some(kernels)
    }

    /// Drops the cached bytes of an allocation, including dirty ones.
    pub fn remove(&self, base: usize) {
        locked(&self.lines).remove(&base);
    }

    /// A release fence at system scope.
    pub fn write_back(&self) {
        for lines in locked(&self.lines).values() {
            lines.each(Lines::write_back);
        }
    }

    /// An acquire fence at system scope.
    pub fn invalidate(&self) {
        for lines in locked(&self.lines).values() {
            lines.each(Lines::invalidate);
        }
    }

    /// Reads the clean bytes of one allocation from memory again.
    pub fn invalidate_allocation(&self, base: usize) {
        if let Some(lines) = locked(&self.lines).get(&base) {
            lines.each(Lines::invalidate);
        }
    }
}

/// Eight bytes: in memory, in the cache, and their last common value.
struct Word<'a> {
    memory: &'a AtomicU64,
    cached: &'a AtomicU64,
    synced: &'a AtomicU64,
}

/// 0xff for each byte that differs, 0 for the others.
fn different(a: u64, b: u64) -> u64 {
    let bytes = (a ^ b).to_le_bytes();
    u64::from_le_bytes(bytes.map(|byte| if byte == 0 { 0 } else { 0xff }))
}

impl Lines {
    /// Calls `work` for each word. The caller holds the lock.
    fn each(&self, work: fn(&Word)) {
        for at in (0..self.cached.size()).step_by(WORD) {
            // SAFETY: inside three page-aligned ranges of the same size, which live as long as `self` (see `L2::insert`). All
            // accesses are atomic, or allow concurrent atomic accesses.
            let word = |base: usize| unsafe { &*((base + at) as *const AtomicU64) };
            work(&Word {
                memory: word(self.memory),
                cached: word(self.cached.bytes()),
                synced: word(self.synced.bytes()),
            });
        }
    }

    fn write_back(word: &Word) {
        let cached = word.cached.load(Acquire);
        let dirty = different(cached, word.synced.load(Relaxed));
        if dirty == 0 {
            return;
        }
        let address = word.memory.as_ptr().cast::<u8>();
        for (n, byte) in cached.to_le_bytes().into_iter().enumerate() {
            if dirty >> (8 * n) & 1 != 0 {
                // SAFETY: a byte of the word. A copy may change the others at the same time.
                unsafe { (*address.add(n).cast::<AtomicU8>()).store(byte, Release) };
            }
        }
        word.synced.store(cached, Relaxed);
    }

    fn invalidate(word: &Word) {
        loop {
            let (memory, cached) = (word.memory.load(Acquire), word.cached.load(Acquire));
            let synced = word.synced.load(Relaxed);
            if memory == cached && cached == synced {
                return;
            }
            let dirty = different(cached, synced);
            let fresh = |old: u64| old & dirty | memory & !dirty;
            // A kernel may write to it at the same time.
            let changed = word
                .cached
                .compare_exchange(cached, fresh(cached), AcqRel, Relaxed);
            if changed.is_ok() {
                word.synced.store(fresh(synced), Relaxed);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::mapping::PAGE;

    #[test]
    fn fences_write_dirty_bytes_and_read_clean_ones() {
        let memory = Mapping::device(PAGE, true).expect("memory");
        let l2 = L2::default();
        // SAFETY: removed below, before the memory is unmapped.
        let kernels = unsafe { l2.insert(0x1000, memory.bytes(), PAGE) }.expect("memory");
        // SAFETY: the last word of each.
        let [of_memory, of_kernels] = [memory.bytes(), kernels]
            .map(|base| unsafe { &*((base + PAGE - WORD) as *const AtomicU64) });
        let both = || [of_memory.load(Relaxed), of_kernels.load(Relaxed)];
        of_kernels.store(0x0100_0002, Relaxed);
        assert_eq!(both(), [0, 0x0100_0002]);
        // A copy to a byte that is clean, and one to a byte that is dirty.
        of_memory.store(0x77_0000_0055, Relaxed);
        assert_eq!(both(), [0x77_0000_0055, 0x0100_0002]);
        l2.invalidate();
        assert_eq!(both(), [0x77_0000_0055, 0x77_0100_0002]);
        l2.write_back();
        assert_eq!(both(), [0x77_0100_0002; 2]);
        // All is clean now.
        of_memory.store(9, Relaxed);
        l2.write_back();
        assert_eq!(both(), [9, 0x77_0100_0002]);
        l2.invalidate_allocation(0x1000);
        assert_eq!(both(), [9, 9]);
        of_kernels.store(10, Relaxed);
        l2.remove(0x1000);
        l2.write_back();
        assert_eq!(of_memory.load(Relaxed), 9);
    }

    #[test]
    fn no_concurrent_write_of_a_kernel_is_lost() {
        let memory = Mapping::device(PAGE, true).expect("memory");
        let l2 = L2::default();
        // SAFETY: removed below, before the memory is unmapped.
        let kernels = unsafe { l2.insert(0, memory.bytes(), PAGE) }.expect("memory");
        // SAFETY: the first word of each.
        let [of_memory, of_kernels] =
            [memory.bytes(), kernels].map(|base| unsafe { &*(base as *const AtomicU64) });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100_000 {
                    of_kernels.fetch_add(1, AcqRel);
                }
            });
            while of_memory.load(Acquire) < 50_000 {
                l2.write_back();
                l2.invalidate();
            }
        });
        l2.write_back();
        assert_eq!(of_memory.load(Relaxed), 100_000);
        l2.remove(0);
    }
}
