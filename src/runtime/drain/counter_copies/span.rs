//! Where the counters of a code object and their copies are: plain data.

use crate::gpu::copy_layout::{Descriptor, Layout};
use std::ops::Range;

/// Counters that are farther apart than this get no copies, because the gap would be copied, too. Bytes.
const LARGEST_GAP: u64 = 64 << 10;

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

    /// The values that device code reads.
    pub fn descriptor(&self) -> Descriptor {
        self.layout.descriptor(self.memory, self.start)
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

    fn counters(start: u64, end: u64, device: u64) -> Counters {
        Counters {
            range: start..end,
            device,
        }
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
        let layout = Layout {
            part: 512,
            count: 2,
            shared: 1,
        };
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
