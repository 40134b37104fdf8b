//! Reads the copies of the counters of code objects, and adds them to the counters.

use super::super::code_object::Lost;
use super::super::copy::Device;
use super::super::encode::{Counts, Draft};
use super::span::CounterCopies;
use crate::gpu::copy_layout::sums::Sums;
use crate::gpu::runtime::Error;
use std::ops::Range;

/// Adds the sums to the counters themselves.
fn add_to(sums: &Sums, counts: Counts, copies: &CounterCopies) {
    let Counts {
        start,
        counters,
        uniform,
        pairs,
    } = counts;
    let end = start + counters.len() as u64;
    for (range, first) in copies.locate(start..end) {
        let at = (range.start - start) as usize..(range.end - start) as usize;
        sums.add_all(first, &mut counters[at]);
    }
    for pair in pairs {
        let begin = start + pair.counters;
        for (range, first) in copies.locate(begin..begin + pair.size) {
            let at = (pair.uniform + (range.start - begin)) as usize;
            let size = (range.end - range.start) as usize;
            sums.add_full(first, &mut uniform[at..at + size]);
        }
    }
}

/// Adds the copies of the counters of code objects on one agent to the counters, which were copied. Reads the copies in
/// pieces that fit into the runtime's buffer. Fails if a batch takes too long.
pub fn add_up(
    device: Device,
    mut all: Vec<(&CounterCopies, &mut Result<Vec<Draft<'_>>, Lost>)>,
) -> Result<(), Error> {
    // Skip code objects whose counters are already lost.
    all.retain(|(_, drafts)| drafts.is_ok());
    let mut sums = Vec::with_capacity(all.len());
    for (copies, drafts) in &mut all {
        match Sums::new(copies.layout) {
            Ok(zeros) => sums.push(zeros),
            Err(error) => **drafts = Err(Lost::Copy(error.into())),
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
            Err(error) => *all[n].1 = Err(Lost::Copy(error.into())),
        }
    };
    device
        .runtime
        .read(device.agent, &pieces, device.limit, &mut take)?;
    for ((copies, drafts), sums) in all.into_iter().zip(sums) {
        let mut drafts_of = drafts.iter_mut().flatten();
        let added = drafts_of.try_for_each(|draft| {
            let counts = draft.counts();
            counts.map(|counts| add_to(&sums, counts, copies))
        });
        if let Err(error) = added {
            *drafts = Err(Lost::Copy(error.into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::span::{Counters, Span};
    use super::*;
    use crate::drain::encode::Pair;
    use crate::gpu::copy_layout::Layout;
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
        add_to(
            &sums,
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
}
