//! Third stage: which ranges of device memory to copy, in the fewest copies, and their bytes.

use crate::hsa;
use crate::hsa::copy::{Copied, Staging};
use std::ops::Range;
use std::time::Duration;

/// Ranges to copy, each inside a segment.
#[derive(Default)]
pub struct Wanted(Vec<(Range<u64>, Range<u64>)>);

/// Ranges of one segment that are closer than this are copied at once: a copy costs more than these bytes.
const GAP: u64 = 256;

impl Wanted {
    pub fn add(&mut self, range: Range<u64>, segments: &[Range<u64>]) {
        // The checks have seen to it that there is one.
        if let Some(segment) = segments
            .iter()
            .find(|s| s.start <= range.start && range.end <= s.end)
        {
            self.0.push((range, segment.clone()));
        }
    }

    /// Copies them, within `limit`.
    pub fn copy(self, staging: &mut Staging, limit: Duration) -> Result<Copies<'_>, hsa::Error> {
        let ranges = self.coalesced();
        let copied = staging.copy(&ranges, limit)?;
        Ok(Copies { ranges, copied })
    }

    /// The fewest copies, none of which leaves a segment.
    fn coalesced(mut self) -> Vec<Range<u64>> {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut out: Vec<(Range<u64>, Range<u64>)> = Vec::new();
        for (range, segment) in self.0 {
            match out.last_mut() {
                Some((last, of))
                    if *of == segment && range.start <= last.end.saturating_add(GAP) =>
                {
                    last.end = last.end.max(range.end);
                }
                _ => out.push((range, segment)),
            }
        }
        out.into_iter().map(|(range, _)| range).collect()
    }
}

/// Copied ranges, by device address.
pub struct Copies<'a> {
    /// In order of their start.
    ranges: Vec<Range<u64>>,
    copied: Copied<'a>,
}

impl<'a> Copies<'a> {
    /// The bytes of a range that was wanted.
    pub fn get(&self, range: &Range<u64>) -> Result<&'a [u8], hsa::Error> {
        if range.is_empty() {
            return Ok(&[]);
        }
        let n = self
            .ranges
            .partition_point(|copied| copied.start <= range.start)
            .saturating_sub(1);
        let whole = &self.ranges[n];
        let bytes = self.copied.get(n, (whole.end - whole.start) as usize)?;
        let start = (range.start - whole.start) as usize;
        let end = start + (range.end - range.start) as usize;
        Ok(&bytes[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_of_a_segment_are_copied_at_once() {
        let segments = [0x1000..0x2000, 0x2000..0x3000];
        let mut wanted = Wanted::default();
        for range in [
            0x1800..0x1810,
            0x1000..0x1010,
            0x1020..0x1030,
            0x1ff0..0x2000,
            0x2000..0x2010,
        ] {
            wanted.add(range, &segments);
        }
        assert_eq!(
            wanted.coalesced(),
            [
                0x1000..0x1030,
                0x1800..0x1810,
                0x1ff0..0x2000,
                0x2000..0x2010
            ]
        );
    }
}
