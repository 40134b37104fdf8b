//! How the copies of a code object's counters are arranged: plain data.

use crate::gpu::runtime::Units;
use std::ops::Range;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{Immutable, IntoBytes};

/// The alignment of copies, bytes: lines of any GPU's caches, so that two units never share one.
const ALIGNMENT: u64 = 256;
/// Counters that are farther apart than this get no copies, because the gap would be copied, too. Bytes.
const LARGEST_GAP: u64 = 64 << 10;
/// Device code computes the offset of a copy with 32 bits.
const LARGEST: u64 = 1 << 32;

/// The contents of the variable `__devprof_counter_copies` (tools/device-rt).
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub struct Descriptor {
    /// The address of a counter's copy for unit 0 and partial waves, minus the counter's own address.
    offset: U64,
    /// Bytes from one unit's copy to the next one's.
    stride: U32,
    /// Bytes from the counters of partial waves to those of full waves. 0: there are no copies.
    full: U32,
    /// The copy of a unit is number `unit & mask`.
    mask: U32,
    /// How the number of the unit is read: [`Units::number`].
    unit: U32,
}

/// The size of the variable in bytes. It identifies the layout.
pub const DESCRIPTOR: u64 = size_of::<Descriptor>() as u64;

/// The number and the size of copies. Each has the counters of partial waves, then those of full waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of one of the two parts.
    pub part: u64,
    pub count: u32,
    mask: u32,
}

impl Layout {
    /// The layouts for `span` bytes of counters that fit into `budget` bytes, beginning with the one with the most copies: at
    /// most one for each unit, at least two.
    pub fn all(span: u64, units: Units, budget: u64) -> impl Iterator<Item = Layout> {
        let (each, power) = match units.are_consecutive {
            true => (Some(units.count), units.count.checked_ilog2().unwrap_or(0)),
            false => (
                None,
                units.count.max(2).next_power_of_two().trailing_zeros(),
            ),
        };
        let each = each.map(|count| (count, u32::MAX));
        let shared = (1..=power.min(31)).rev().map(|power| 1 << power);
        let part = span.next_multiple_of(ALIGNMENT);
        each.into_iter()
            .chain(shared.map(|count| (count, count - 1)))
            .map(move |(count, mask)| Layout { part, count, mask })
            .filter(move |layout| {
                let size = layout.part.checked_mul(2 * u64::from(layout.count));
                layout.count > 1 && size.is_some_and(|size| size <= budget.min(LARGEST))
            })
    }

    /// Bytes of all copies.
    pub fn size(&self) -> u64 {
        2 * self.part * u64::from(self.count)
    }
}

/// The copies of the counters of a code object.
#[derive(Debug)]
pub struct CounterCopies {
    /// The device address of the first copy.
    pub memory: u64,
    pub layout: Layout,
    /// Sorted by address.
    counters: Vec<Counters>,
    /// The lowest device address of a counter.
    start: u64,
}

/// Adjacent counters.
#[derive(Clone, Debug)]
pub struct Counters {
    /// The addresses at which the host reads them.
    pub range: Range<u64>,
    /// The address at which device code accesses the first one.
    pub device: u64,
}

impl Counters {
    /// The address for the host minus that for device code.
    fn shift(&self) -> u64 {
        self.range.start.wrapping_sub(self.device)
    }
}

/// Why counters cannot have copies.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("its counters are not adjacent")]
pub struct Scattered;

/// The counters of a code object, ready to be copied.
#[derive(Debug)]
pub struct Span {
    counters: Vec<Counters>,
    /// Device addresses.
    range: Range<u64>,
}

impl Span {
    /// The counters may overlap if device code accesses them at the same address. There is at least one.
    pub fn new(mut all: Vec<Counters>) -> Result<Span, Scattered> {
        all.sort_unstable_by_key(|counters| counters.range.start);
        let mut merged: Vec<Counters> = Vec::new();
        for next in all {
            let is_aligned = [next.range.start, next.range.end, next.device]
                .iter()
                .all(|address| address.is_multiple_of(8));
            if !is_aligned {
                return Err(Scattered);
            }
            match merged.last_mut() {
                Some(last) if next.range.start < last.range.end => {
                    if next.shift() != last.shift() {
                        return Err(Scattered);
                    }
                    last.range.end = last.range.end.max(next.range.end);
                }
                _ => merged.push(next),
            }
        }
        let mut on_device = Vec::new();
        for counters in &merged {
            let size = counters.range.end - counters.range.start;
            let end = counters.device.checked_add(size).ok_or(Scattered)?;
            on_device.push(counters.device..end);
        }
        on_device.sort_unstable_by_key(|range| range.start);
        let first = on_device.first().ok_or(Scattered)?.clone();
        let mut range = first.clone();
        for next in on_device {
            if next.start > range.end.saturating_add(LARGEST_GAP) {
                return Err(Scattered);
            }
            range.end = range.end.max(next.end);
        }
        Ok(Span {
            counters: merged,
            range,
        })
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The copies in memory of [`Layout::size`] bytes.
    pub fn copies(self, layout: Layout, memory: u64) -> CounterCopies {
        CounterCopies {
            memory,
            layout,
            counters: self.counters,
            start: self.range.start,
        }
    }
}

impl CounterCopies {
    /// Device addresses.
    pub fn range(&self) -> Range<u64> {
        self.memory..self.memory + self.layout.size()
    }

    /// What device code needs. `unit`: [`Units::number`].
    pub fn descriptor(&self, unit: u32) -> Descriptor {
        let Layout { part, mask, .. } = self.layout;
        Descriptor {
            offset: self.memory.wrapping_sub(self.start).into(),
            // At most `LARGEST` / 2, because there are at least two copies.
            stride: (2 * part as u32).into(),
            full: (part as u32).into(),
            mask: mask.into(),
            unit: unit.into(),
        }
    }

    /// The parts of a range of counters that have copies. With each, the index of its first counter in a copy.
    pub fn locate(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, usize)> {
        let first = self
            .counters
            .partition_point(|counters| counters.range.end <= range.start);
        self.counters[first..]
            .iter()
            .take_while(move |counters| counters.range.start < range.end)
            .map(move |counters| {
                let start = counters.range.start.max(range.start);
                let end = counters.range.end.min(range.end);
                let device = counters.device + (start - counters.range.start);
                (start..end, ((device - self.start) / 8) as usize)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(count: u32, are_consecutive: bool) -> Units {
        Units {
            count,
            number: 3,
            are_consecutive,
        }
    }

    fn counts(span: u64, units: Units, budget: u64) -> Vec<(u32, u32)> {
        let all = Layout::all(span, units, budget);
        all.map(|layout| (layout.count, layout.mask)).collect()
    }

    fn counters(start: u64, end: u64, device: u64) -> Counters {
        Counters {
            range: start..end,
            device,
        }
    }

    #[test]
    fn there_is_a_copy_for_each_unit_if_the_budget_allows_it() {
        let powers = |first: u32| -> Vec<_> {
            let all = std::iter::successors(Some(first), |n| Some(n / 2));
            all.take_while(|&n| n > 1).map(|n| (n, n - 1)).collect()
        };
        assert_eq!(counts(8, units(96, false), u64::MAX), powers(128));
        assert_eq!(counts(256, units(96, false), 512 * 127), powers(64));
        assert_eq!(counts(257, units(96, false), 1024 * 127), powers(64));
        assert_eq!(counts(8, units(1, false), 1024), [(2, 1)]);
        assert_eq!(counts(8, units(1, false), 1023), []);
        let mut each = vec![(132, u32::MAX)];
        each.extend(powers(128));
        assert_eq!(counts(8, units(132, true), u64::MAX), each);
        assert_eq!(counts(8, units(132, true), 512 * 131), powers(128));
        assert_eq!(counts(8, units(1, true), u64::MAX), []);
        assert_eq!(counts(8, units(0, true), u64::MAX), []);
        // The offset of each copy has 32 bits, also without a budget.
        assert_eq!(counts(64 << 20, units(300, false), u64::MAX), powers(32));
        assert_eq!(counts(2 << 30, units(300, false), u64::MAX), []);
        assert_eq!(counts(1 << 30, units(300, false), u64::MAX), powers(2));
        assert_eq!(counts(u64::MAX - 1000, units(300, false), u64::MAX), []);
    }

    #[test]
    fn device_code_gets_offsets_from_counters_to_their_copies() {
        let span = Span::new(vec![counters(0x4008, 0x4018, 0x4008)]).unwrap();
        assert_eq!(span.size(), 0x10);
        let layout = Layout::all(span.size(), units(3, false), u64::MAX)
            .next()
            .unwrap();
        let copies = span.copies(layout, 0x1000);
        assert_eq!(copies.range(), 0x1000..0x1000 + 4 * 512);
        let mut expected = 0x1000u64.wrapping_sub(0x4008).to_le_bytes().to_vec();
        for word in [512u32, 256, 3, 2] {
            expected.extend(word.to_le_bytes());
        }
        assert_eq!(copies.descriptor(2).as_bytes(), expected);
        assert_eq!(DESCRIPTOR, 24);
    }

    #[test]
    fn counters_of_several_tables_have_one_span() {
        // The host reads the second and the third at other addresses than the device.
        let span = Span::new(vec![
            counters(0x9000, 0x9010, 0x2100),
            counters(0x1000, 0x1010, 0x2200),
            counters(0x9008, 0x9020, 0x2108),
        ])
        .unwrap();
        assert_eq!(span.size(), 0x110);
        let layout = Layout::all(1, units(2, false), u64::MAX).next().unwrap();
        let copies = span.copies(layout, 0x10000);
        let at = |range| copies.locate(range).collect::<Vec<_>>();
        assert_eq!(at(0x9000..0x9020), [(0x9000..0x9020, 0)]);
        assert_eq!(at(0x1008..0x1010), [(0x1008..0x1010, 33)]);
        assert_eq!(at(0..0x9018), [(0x1000..0x1010, 32), (0x9000..0x9018, 0)]);
        assert_eq!(at(0x1010..0x9000), []);
    }

    #[test]
    fn scattered_counters_have_no_copies() {
        let near = 0x1010 + LARGEST_GAP;
        let two = |second: Counters| Span::new(vec![counters(0x1000, 0x1010, 0x1000), second]);
        assert_eq!(
            two(counters(near, near + 8, near)).unwrap().size(),
            LARGEST_GAP + 0x18
        );
        for second in [
            counters(near, near + 8, near + 8),
            counters(0x1008, 0x1018, 0x2008),
            counters(0x1012, 0x1020, 0x1012),
            counters(0x2000, 0x2010, u64::MAX - 7),
        ] {
            assert_eq!(two(second).unwrap_err(), Scattered);
        }
        assert_eq!(Span::new(Vec::new()).unwrap_err(), Scattered);
    }
}
