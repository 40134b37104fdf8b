//! Adds the copies of counters up. One pass over what was copied, in simple loops over 64-bit numbers.

use super::super::code_object::Lost;
use super::super::copy::Device;
use super::super::encode::{Counts, Draft};
use super::span::CounterCopies;
use crate::gpu::counter_copies::Layout;
use crate::gpu::runtime::Error;
use crate::support::alloc::{self, OutOfMemory};
use std::ops::Range;

/// The sums of all copies of a code object's counters.
#[derive(Debug, PartialEq, Eq)]
pub struct Sums {
    /// What waves counted in which not all lanes were active.
    partial: Vec<u64>,
    full: Vec<u64>,
}

impl Sums {
    fn new(layout: Layout) -> Result<Sums, OutOfMemory> {
        let count = (layout.part / 8) as usize;
        let zeros = || {
            let mut zeros = Vec::new();
            alloc::reserve(&mut zeros, count)?;
            zeros.resize(count, 0);
            Ok(zeros)
        };
        Ok(Sums {
            partial: zeros()?,
            full: zeros()?,
        })
    }

    /// Adds the bytes at `offset` in the copies. Both are multiples of 8.
    fn take(&mut self, mut offset: usize, mut bytes: &[u8]) {
        let part = 8 * self.partial.len();
        while !bytes.is_empty() && part > 0 {
            let at = offset % part;
            let to = match offset / part % 2 {
                0 => &mut self.partial,
                _ => &mut self.full,
            };
            let (now, rest) = bytes.split_at(bytes.len().min(part - at));
            add_bytes(&mut to[at / 8..], now);
            offset += now.len();
            bytes = rest;
        }
    }

    /// Adds the sums to the counters themselves.
    fn add_to(&self, counts: Counts, copies: &CounterCopies) {
        let Counts {
            start,
            counters,
            uniform,
            pairs,
        } = counts;
        let end = start + counters.len() as u64;
        for (range, first) in copies.locate(start..end) {
            let at = (range.start - start) as usize..(range.end - start) as usize;
            add_numbers(&mut counters[at.clone()], &self.partial[first..]);
            add_numbers(&mut counters[at], &self.full[first..]);
        }
        for pair in pairs {
            let begin = start + pair.counters;
            for (range, first) in copies.locate(begin..begin + pair.size) {
                let at = (pair.uniform + (range.start - begin)) as usize;
                let size = (range.end - range.start) as usize;
                add_numbers(&mut uniform[at..at + size], &self.full[first..]);
            }
        }
    }
}

/// Adds little-endian numbers in `bytes` to numbers.
fn add_bytes(to: &mut [u64], bytes: &[u8]) {
    for (sum, bytes) in to.iter_mut().zip(bytes.as_chunks().0) {
        *sum = sum.wrapping_add(u64::from_le_bytes(*bytes));
    }
}

/// Adds numbers to the little-endian numbers in `to`.
fn add_numbers(to: &mut [u8], numbers: &[u64]) {
    for (bytes, number) in to.as_chunks_mut().0.iter_mut().zip(numbers) {
        *bytes = u64::from_le_bytes(*bytes)
            .wrapping_add(*number)
            .to_le_bytes();
    }
}

/// Adds the copies of the counters of code objects on one agent to the counters, which were copied. Reads the copies in
/// pieces that fit into the runtime's buffer. Fails if a batch takes too long.
pub fn add_up(
    device: Device,
    mut all: Vec<(&CounterCopies, &mut Result<Vec<Draft<'_>>, Lost>)>,
) -> Result<(), Error> {
    // What is lost need not be read.
    all.retain(|(_, drafts)| drafts.is_ok());
    let mut sums = Vec::with_capacity(all.len());
    for (copies, drafts) in &mut all {
        match Sums::new(copies.layout) {
            Ok(zeros) => sums.push(zeros),
            Err(error) => **drafts = Err(error.into()),
        }
    }
    all.retain(|(_, drafts)| drafts.is_ok());
    if all.is_empty() {
        return Ok(());
    }
    let sizes = all.iter().map(|(copies, _)| copies.layout.size() as usize);
    let largest = device.runtime.largest_piece(device.agent, sizes.sum());
    // A number must be in one piece.
    let largest = largest / 8 * 8;
    let (mut pieces, mut owners) = (Vec::new(), Vec::new());
    for (n, (copies, _)) in all.iter().enumerate() {
        let Range { start, end } = copies.range();
        for at in (start..end).step_by(largest) {
            pieces.push(at..end.min(at + largest as u64));
            owners.push((n, (at - start) as usize));
        }
    }
    let mut take = |piece: usize, bytes: Result<&[u8], Error>| {
        let (n, offset) = owners[piece];
        match bytes {
            Ok(bytes) => sums[n].take(offset, bytes),
            Err(error) => *all[n].1 = Err(Lost::Copy(error)),
        }
    };
    device
        .runtime
        .read(device.agent, &pieces, device.limit, &mut take)?;
    for ((copies, drafts), sums) in all.into_iter().zip(sums) {
        for draft in drafts.iter_mut().flatten() {
            sums.add_to(draft.counts(), copies);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::span::{Counters, Span};
    use super::*;
    use crate::drain::encode::Pair;
    use crate::gpu::runtime::Units;

    const UNITS: Units = Units {
        count: 4,
        is_limited: false,
    };

    fn copies(counters: &[(Range<u64>, u64)]) -> CounterCopies {
        let counters = counters.iter().cloned();
        let counters = counters.map(|(range, device)| Counters { range, device });
        let span = Span::new(counters.collect()).unwrap();
        let layout = Layout::all(span.size(), UNITS, u64::MAX).next().unwrap();
        span.copies(layout, 0x10000)
    }

    /// Copies in which counter `n` of part `m` is `value(m, n)`.
    fn bytes(copies: &CounterCopies, value: impl Fn(usize, usize) -> u64) -> Vec<u8> {
        let count = (copies.layout.part / 8) as usize;
        let parts = 2 * copies.layout.count as usize;
        let all = (0..parts).flat_map(|m| (0..count).map(move |n| (m, n)));
        all.flat_map(|(m, n)| value(m, n).to_le_bytes()).collect()
    }

    fn numbers(bytes: &[u8]) -> Vec<u64> {
        let (words, _) = bytes.as_chunks();
        words.iter().map(|&word| u64::from_le_bytes(word)).collect()
    }

    #[test]
    fn pieces_of_any_size_have_the_same_sums() {
        let copies = copies(&[(0x1000..0x1200, 0x1000)]);
        let value = |m: usize, n: usize| (1u64 << (8 * m)) + n as u64;
        let all = bytes(&copies, value);
        assert_eq!(all.len() as u64, copies.layout.size());
        for size in [8, 24, 504, 512, 520, 1024, 4096] {
            let mut sums = Sums::new(copies.layout).unwrap();
            for (n, piece) in all.chunks(size).enumerate() {
                sums.take(n * size, piece);
            }
            for n in 0..64 {
                let of = |parts: [usize; 4]| parts.into_iter().map(|m| value(m, n)).sum::<u64>();
                assert_eq!(
                    (sums.partial[n], sums.full[n]),
                    (of([0, 2, 4, 6]), of([1, 3, 5, 7])),
                    "{size} bytes, counter {n}"
                );
            }
        }
    }

    #[test]
    fn counters_get_both_sums_and_uniform_counters_that_of_full_waves() {
        // Two tables, whose counters are at other addresses on the device and in the other order. The first one's are two
        // variables.
        let copies = copies(&[
            (0x1000..0x1010, 0x9100),
            (0x1010..0x1020, 0x9200),
            (0x2000..0x2010, 0x9000),
        ]);
        let mut sums = Sums::new(copies.layout).unwrap();
        // Part 0 is for partial waves, 1 for full waves.
        sums.take(
            0,
            &bytes(&copies, |m, n| match m {
                0 => 100 + n as u64,
                1 => 1000 + n as u64,
                _ => 0,
            }),
        );
        let mut counters: Vec<u8> = [7u64, 7, 7, u64::MAX]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        let mut uniform = [5u64; 5]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect::<Vec<_>>();
        let pair = |counters, uniform, size| Pair {
            counters,
            uniform,
            size,
        };
        sums.add_to(
            Counts {
                start: 0x1000,
                counters: &mut counters,
                uniform: &mut uniform,
                pairs: vec![pair(8, 16, 16), pair(24, 0, 8)],
            },
            &copies,
        );
        // 0x9100 is 32 counters after 0x9000, 0x9200 64 counters.
        assert_eq!(
            numbers(&counters),
            [
                7 + 132 + 1032,
                7 + 133 + 1033,
                7 + 164 + 1064,
                165 + 1065 - 1
            ]
        );
        assert_eq!(numbers(&uniform), [5 + 1065, 5, 5 + 1033, 5 + 1064, 5]);
    }

    #[test]
    fn counts_above_32_bits_are_added() {
        let copies = copies(&[(0x1000..0x1008, 0x1000)]);
        let mut sums = Sums::new(copies.layout).unwrap();
        sums.take(0, &bytes(&copies, |_, _| (1 << 40) + 3));
        assert_eq!(sums.partial[0], 4 * ((1 << 40) + 3));
        assert_eq!(sums.full[0], 4 * ((1 << 40) + 3));
    }
}
