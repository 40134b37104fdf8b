//! The write-back cache of a GPU, for its coarse-grained memory and its code objects (`HSA_SIM_L2=writeback`).
//!
//! Kernels read and write what is cached. Copies, and the host with a large BAR, see memory alone. A packet whose header
//! asks for a release at system scope, on any queue of the agent, writes everything that is dirty to memory when it
//! completes; one that asks for an acquire at system scope makes the clean bytes anew from memory before it starts. No
//! other packet does either.
//!
//! The cache has all bytes of an allocation from the start, so a kernel without an acquire never sees what was copied to
//! the device since: hardware may or may not have evicted it. A byte is dirty if it is not what it was when cache and
//! memory were last the same. A fence costs a comparison of all memory that is cached.

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
    /// By the address that programs use.
    lines: Mutex<BTreeMap<usize, Lines>>,
}

/// What is cached of an allocation.
#[derive(Debug)]
struct Lines {
    /// Where the bytes in memory are.
    memory: usize,
    /// What kernels see.
    cached: Mapping,
    /// What cache and memory both had when a byte was last written back or read.
    synced: Mapping,
}

const WORD: usize = size_of::<u64>();

impl L2 {
    /// Caches an allocation of `size` bytes (a multiple of a page), all of them zero. Gives the address of what kernels
    /// see.
    ///
    /// # Safety
    /// `memory` has the bytes until [`L2::remove`] is called for `base`, and others use them only in ways that allow for
    /// concurrent atomic accesses.
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

    /// Drops what is cached of an allocation, dirty or not.
    pub fn remove(&self, base: usize) {
        locked(&self.lines).remove(&base);
    }

    /// A release at system scope.
    pub fn write_back(&self) {
        for lines in locked(&self.lines).values() {
            lines.each(Lines::write_back);
        }
    }

    /// An acquire at system scope.
    pub fn invalidate(&self) {
        for lines in locked(&self.lines).values() {
            lines.each(Lines::invalidate);
        }
    }

    /// Makes the clean bytes of one allocation anew from memory.
    pub fn invalidate_allocation(&self, base: usize) {
        if let Some(lines) = locked(&self.lines).get(&base) {
            lines.each(Lines::invalidate);
        }
    }
}

/// Eight bytes in memory, as kernels see them, and as they were when both were the same.
struct Word<'a> {
    memory: &'a AtomicU64,
    cached: &'a AtomicU64,
    synced: &'a AtomicU64,
}

/// All ones in each byte that is not the same.
fn different(a: u64, b: u64) -> u64 {
    let bytes = (a ^ b).to_le_bytes();
    u64::from_le_bytes(bytes.map(|byte| if byte == 0 { 0 } else { 0xff }))
}

impl Lines {
    /// Does `work` for each word. Only called with the lock held.
    fn each(&self, work: fn(&Word)) {
        for at in (0..self.cached.size()).step_by(WORD) {
            // SAFETY: inside three ranges of the same size, which live as long as `self` (see `L2::insert`), and page
            // aligned. Everybody uses them by atomic accesses, or in ways that allow for these.
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
                // SAFETY: a byte of the word. The others may be changed by a copy at this moment.
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
            // A kernel may write to it at this moment.
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
    fn dirty_bytes_go_to_memory_and_clean_ones_come_from_it() {
        let memory = Mapping::device(PAGE, true).expect("memory");
        let l2 = L2::default();
        // SAFETY: removed below, before the memory goes.
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
    fn nothing_that_kernels_write_at_the_same_time_is_lost() {
        let memory = Mapping::device(PAGE, true).expect("memory");
        let l2 = L2::default();
        // SAFETY: removed with the cache, before the memory goes.
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
