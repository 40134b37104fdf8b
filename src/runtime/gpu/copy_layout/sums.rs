//! Adds copies of counters up: one pass over their bytes, in simple loops over 64-bit numbers.

use super::Layout;
use crate::support::alloc::{self, OutOfMemory};

/// The sums of all copies of a code object's counters, one number for each counter of a part.
#[derive(Debug, PartialEq, Eq)]
pub struct Sums {
    /// Counts of waves in which not all lanes were active.
    pub partial: Vec<u64>,
    /// Counts of full waves.
    pub full: Vec<u64>,
}

impl Sums {
    pub fn new(layout: Layout) -> Result<Sums, OutOfMemory> {
        let count = (layout.part / 8) as usize;
        Ok(Sums {
            partial: alloc::zeroed(count)?,
            full: alloc::zeroed(count)?,
        })
    }

    /// Adds the bytes at `offset` in the copies. Both are multiples of 8.
    pub fn take(&mut self, mut offset: usize, mut bytes: &[u8]) {
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

    /// Adds the sums of all waves, from number `first` on, to little-endian counters.
    pub fn add_all(&self, first: usize, counters: &mut [u8]) {
        add_numbers(counters, &self.partial[first..]);
        add_numbers(counters, &self.full[first..]);
    }

    /// Adds the sums of full waves, from number `first` on, to little-endian uniform counters.
    pub fn add_full(&self, first: usize, counters: &mut [u8]) {
        add_numbers(counters, &self.full[first..]);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies in which counter `n` of part `m` is `value(m, n)`.
    fn bytes(layout: Layout, value: impl Fn(usize, usize) -> u64) -> Vec<u8> {
        let count = (layout.part / 8) as usize;
        let parts = 2 * layout.count as usize;
        let all = (0..parts).flat_map(|m| (0..count).map(move |n| (m, n)));
        all.flat_map(|(m, n)| value(m, n).to_le_bytes()).collect()
    }

    #[test]
    fn pieces_of_any_size_have_the_same_sums() {
        let layout = Layout {
            part: 512,
            count: 4,
            shared: 1,
        };
        let value = |m: usize, n: usize| (1u64 << (8 * m)) + n as u64;
        let all = bytes(layout, value);
        assert_eq!(all.len() as u64, layout.size());
        for size in [8, 24, 504, 512, 520, 1024, 4096] {
            let mut sums = Sums::new(layout).unwrap();
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
    fn counts_above_32_bits_are_added() {
        let layout = Layout {
            part: 256,
            count: 4,
            shared: 1,
        };
        let mut sums = Sums::new(layout).unwrap();
        sums.take(0, &bytes(layout, |_, _| (1 << 40) + 3));
        let sum = 4 * ((1 << 40) + 3);
        assert_eq!((sums.partial[0], sums.full[0]), (sum, sum));
        let mut counter = u64::MAX.to_le_bytes();
        sums.add_all(0, &mut counter);
        assert_eq!(u64::from_le_bytes(counter), 2 * sum - 1);
        sums.add_full(0, &mut counter);
        assert_eq!(u64::from_le_bytes(counter), 3 * sum - 1);
    }
}
