//! Copies of counters: how device code finds them, and their sums. Plain data.

pub mod budget;
pub mod sums;

use super::runtime::Units;
use std::ffi::CStr;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{Immutable, IntoBytes};

/// The variable of devprof's device runtime.
pub const VARIABLE: &CStr = c"__devprof_counter_copies";
/// The alignment of copies, bytes: lines of any GPU's caches, so that two units never share one.
const ALIGNMENT: u64 = 256;
/// Device code computes the offset of a copy with 32 bits.
const LARGEST: u64 = 1 << 32;

/// The contents of [`VARIABLE`] (src/device/device-rt/counting.h).
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub struct Descriptor {
    /// The address of a counter's copy for unit 0 and partial waves, minus the counter's own address.
    offset: U64,
    /// Bytes from the copy of a unit to the copy of the next unit. Less than a copy if units share copies.
    stride: U32,
    /// Bytes from the counters of partial waves to the counters of full waves. 0: there are no copies.
    full: U32,
    /// The copy of a unit is at `(unit & mask) * stride`. If units share copies, the lowest bits are 0.
    mask: U32,
    /// The highest value of `unit & mask`. The device runtime for CUDA uses it for higher ones.
    last: U32,
}

/// The size of the variable in bytes. It identifies the layout.
pub const DESCRIPTOR: u64 = size_of::<Descriptor>() as u64;

/// The number and the size of copies. Each has the counters of partial waves, then of full waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of one of the two parts.
    pub part: u64,
    /// At least 2. A power of two, unless the device runtime limits the numbers of units.
    pub count: u32,
    /// How many units with adjacent numbers share a copy. A power of two. On AMD GPUs they are neighbours: the lowest bits
    /// of the number identify a unit within its shader engine, the highest ones are the XCC.
    pub shared: u32,
}

impl Layout {
    /// The layouts for `span` bytes of counters that fit into `budget` bytes, beginning with the one with the most copies: at
    /// most one for each number of a unit, at least two.
    pub fn all(span: u64, units: Units, budget: u64) -> impl Iterator<Item = Layout> {
        let power = if units.is_limited {
            units.count.checked_ilog2().unwrap_or(0)
        } else {
            units.count.max(2).next_power_of_two().trailing_zeros()
        };
        let power = power.min(31);
        let each = Some(units.count).filter(|count| units.is_limited && !count.is_power_of_two());
        let part = span.next_multiple_of(ALIGNMENT);
        let layout = move |count, shared| Layout {
            part,
            count,
            shared,
        };
        let powers = (1..=power).rev().map(move |n| {
            if units.is_limited {
                layout(1 << n, 1)
            } else {
                layout(1 << n, 1 << (power - n))
            }
        });
        each.map(|count| layout(count, 1))
            .into_iter()
            .chain(powers)
            .filter(move |layout| {
                let size = layout.part.checked_mul(2 * u64::from(layout.count));
                // Otherwise the stride is not a whole number.
                let is_divisible = u64::from(layout.shared) <= 2 * ALIGNMENT;
                layout.count > 1
                    && is_divisible
                    && size.is_some_and(|size| size <= budget.min(LARGEST))
            })
    }

    /// For copies at the address `memory` of counters that begin at the address `counters`. Both are device addresses.
    pub fn descriptor(&self, memory: u64, counters: u64) -> Descriptor {
        // Less than `LARGEST`, because there are at least two copies.
        let part = self.part as u32;
        let powers = self.count.checked_next_power_of_two();
        let mask = powers.map_or(u32::MAX, |powers| powers - 1);
        Descriptor {
            offset: memory.wrapping_sub(counters).into(),
            stride: (2 * part / self.shared).into(),
            full: part.into(),
            mask: (mask * self.shared).into(),
            last: ((self.count - 1) * self.shared).into(),
        }
    }

    /// Bytes of all copies.
    pub fn size(&self) -> u64 {
        2 * self.part * u64::from(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(span: u64, count: u32, is_limited: bool, budget: u64) -> Vec<u32> {
        let all = Layout::all(span, Units { count, is_limited }, budget);
        all.map(|layout| layout.count).collect()
    }

    #[test]
    fn there_is_a_copy_for_each_unit_if_the_budget_allows_it() {
        let powers = |first: u32| -> Vec<_> {
            let all = std::iter::successors(Some(first), |n| Some(n / 2));
            all.take_while(|&n| n > 1).collect()
        };
        assert_eq!(counts(8, 96, false, u64::MAX), powers(128));
        assert_eq!(counts(256, 96, false, 512 * 127), powers(64));
        assert_eq!(counts(257, 96, false, 1024 * 127), powers(64));
        assert_eq!(counts(8, 1, false, 1024), [2]);
        assert_eq!(counts(8, 1, false, 1023), []);
        let mut each = vec![132];
        each.extend(powers(128));
        assert_eq!(counts(8, 132, true, u64::MAX), each);
        assert_eq!(counts(8, 132, true, 512 * 131), powers(128));
        assert_eq!(counts(8, 128, true, u64::MAX), powers(128));
        assert_eq!(counts(8, 1, true, u64::MAX), []);
        assert_eq!(counts(8, 0, true, u64::MAX), []);
        // The offset of each copy has 32 bits, also without a budget.
        assert_eq!(counts(64 << 20, 300, false, u64::MAX), powers(32));
        assert_eq!(counts(2 << 30, 300, false, u64::MAX), []);
        assert_eq!(counts(1 << 30, 300, false, u64::MAX), powers(2));
        assert_eq!(counts(u64::MAX - 1000, 300, false, u64::MAX), []);
    }

    #[test]
    fn every_number_of_a_unit_has_a_copy() {
        for (count, is_limited) in [2u32, 3, 4, 131, 132, 133, 256]
            .into_iter()
            .flat_map(|count| [(count, true), (count, false)])
        {
            for layout in Layout::all(1000, Units { count, is_limited }, u64::MAX) {
                let Descriptor {
                    stride, mask, last, ..
                } = layout.descriptor(0, 0);
                let copy = |unit: u32| {
                    let offset = (unit & mask.get()).min(last.get()) * stride.get();
                    assert_eq!(u64::from(offset) % (2 * layout.part), 0);
                    offset / (2 * layout.part as u32)
                };
                let numbers = layout.count * layout.shared;
                for unit in 0..numbers {
                    assert_eq!(copy(unit), unit / layout.shared);
                }
                for unit in [numbers, 2 * numbers, 1000, u32::MAX] {
                    assert!(copy(unit) < layout.count, "unit {unit}: {layout:?}");
                }
                // Device runtimes for AMD GPUs do not use `last`.
                assert!(is_limited || mask == last);
            }
        }
    }

    #[test]
    fn device_code_gets_offsets_from_counters_to_their_copies() {
        let descriptor = |count, shared, words: [u32; 4]| {
            let layout = Layout {
                part: 256,
                count,
                shared,
            };
            let mut expected = 0x1000u64.wrapping_sub(0x4008).to_le_bytes().to_vec();
            expected.extend(words.into_iter().flat_map(u32::to_le_bytes));
            assert_eq!(layout.descriptor(0x1000, 0x4008).as_bytes(), expected);
        };
        descriptor(3, 1, [512, 256, 3, 2]);
        descriptor(8, 1, [512, 256, 7, 7]);
        descriptor(2, 4, [128, 256, 4, 4]);
        assert_eq!(DESCRIPTOR, 24);
    }

    /// The number of a gfx942's unit in the device runtime (src/device/device-rt/profile.c).
    fn gfx942_number([xcc, engine, cu]: [u32; 3]) -> u32 {
        xcc << 6 | engine << 4 | cu
    }

    /// How many units of a GPU have the same copy, at most.
    fn most_sharing(layout: Layout, units: &[u32]) -> usize {
        let Descriptor { mask, .. } = layout.descriptor(0, 0);
        let mut users = std::collections::HashMap::new();
        for unit in units {
            *users.entry(unit & mask.get()).or_insert(0) += 1;
        }
        users.into_values().max().unwrap_or(0)
    }

    #[test]
    fn units_of_different_dies_share_copies_last() {
        let count = 512;
        let units = Units {
            count,
            is_limited: false,
        };
        let per_xcc = (0..4).flat_map(|engine| (0..10).map(move |cu| (engine, cu)));
        let numbers = |xcc| {
            let numbers = per_xcc
                .clone()
                .map(move |(engine, cu)| gfx942_number([xcc, engine, cu]));
            numbers.collect::<Vec<_>>()
        };
        let all: Vec<u32> = (0..8).flat_map(numbers).collect();
        let most = |count| {
            let layout = Layout::all(8, units, u64::MAX).find(|layout| layout.count == count);
            layout.map(|layout| most_sharing(layout, &all))
        };
        let found: Vec<_> = [512, 256, 128, 64, 32, 16, 8].map(most).into();
        assert_eq!(found, [1, 2, 4, 8, 10, 20, 40].map(Some));
    }
}
