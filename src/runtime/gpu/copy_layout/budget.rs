//! How much memory the copies of counters may take.

use crate::gpu::runtime::Memory;

/// The part of a GPU's memory that the copies of one process may take: of its free memory, so that many processes on one GPU
/// leave most of it to others. If that is unknown, of its size.
const SHARE: u64 = 32;
/// The part of the rest that one code object gets, so that some is left for the next ones.
const SHARE_OF_REST: u64 = 4;

/// The most bytes that copies for one more code object may take. `limit`: the setting, for all copies on the GPU. `used`: the
/// bytes of the copies that exist.
pub fn for_code_object(limit: u64, used: u64, memory: Memory) -> u64 {
    let free = memory.free.map(|free| free.saturating_add(used));
    let of_memory = free.or(memory.size).map(|bytes| bytes / SHARE);
    let all = of_memory.map_or(limit, |bytes| bytes.min(limit));
    all.saturating_sub(used) / SHARE_OF_REST
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const UNKNOWN: Memory = Memory {
        size: None,
        free: None,
    };

    fn memory(size: u64, free: u64) -> Memory {
        Memory {
            size: Some(size * MIB),
            free: Some(free * MIB),
        }
    }

    #[test]
    fn a_small_part_of_the_memory_is_used() {
        let size_only = Memory {
            free: None,
            ..memory(8192, 0)
        };
        for (memory, all) in [
            (UNKNOWN, 1024),
            (size_only, 256),
            (memory(196_608, 190_000), 1024),
            (memory(196_608, 16_384), 512),
            (memory(8192, 3200), 100),
            (memory(512, 480), 15),
            (memory(512, 0), 0),
        ] {
            assert_eq!(
                for_code_object(1024 * MIB, 0, memory),
                all * MIB / 4,
                "{memory:?}"
            );
        }
        assert_eq!(for_code_object(0, 0, UNKNOWN), 0);
    }

    #[test]
    fn later_code_objects_get_a_part_of_the_rest() {
        let after = |used| for_code_object(1024 * MIB, used * MIB, UNKNOWN) / MIB;
        assert_eq!([0, 256, 448, 1024, 2000].map(after), [256, 192, 144, 0, 0]);
        // The memory of the copies is not free, but counts as if it were.
        let after = |used| for_code_object(1024 * MIB, used * MIB, memory(65_536, 3200 - used));
        assert_eq!([0, 60, 100].map(after), [25 * MIB, 10 * MIB, 0]);
    }

    #[test]
    fn processes_that_share_a_gpu_leave_most_of_its_memory_to_others() {
        // Each loads code objects until there is no memory for their copies, and then the next process starts.
        for (processes, percent) in [(1, 4), (8, 23), (16, 40)] {
            let size = 8192 * MIB;
            let mut used = vec![0; processes];
            for n in 0..processes {
                for _ in 0..100 {
                    let free = size - used.iter().sum::<u64>();
                    let memory = Memory {
                        size: Some(size),
                        free: Some(free),
                    };
                    used[n] += for_code_object(1024 * MIB, used[n], memory);
                }
            }
            let all: u64 = used.iter().sum();
            assert!(all * 100 < size * percent, "{processes}: {} MiB", all / MIB);
        }
    }
}
