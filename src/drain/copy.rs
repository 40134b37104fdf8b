//! Third stage: which ranges of device memory to copy, in how many pieces, and where their bytes go.

use crate::hsa;
use crate::hsa::copy::{BATCH, Staging};
use crate::room::{self, NoRoom};
use std::ops::Range;
use std::time::Duration;

/// Ranges of one segment that are closer than this are copied as one: to submit a copy takes longer than to copy as many
/// bytes over PCIe.
const GAP: u64 = 16 << 10;

/// A range of device memory that is to be copied, inside a segment.
pub struct Read<'a> {
    /// What [`copy`] names it by.
    tag: usize,
    range: Range<u64>,
    segment: Range<u64>,
    to: &'a mut [u8],
    /// Whether all bytes of the range were copied.
    result: Result<(), hsa::Error>,
}

impl<'a> Read<'a> {
    /// `to` gets the bytes. `None` where the range is in no segment; the checks have ruled that out.
    pub fn new(
        tag: usize,
        range: Range<u64>,
        segments: &[Range<u64>],
        to: &'a mut [u8],
    ) -> Option<Read<'a>> {
        Some(Read {
            tag,
            segment: segment_of(&range, segments)?,
            range,
            to,
            result: Ok(()),
        })
    }

    /// Takes the part of `bytes`, which are those of `piece`, that belongs to the range.
    fn take(&mut self, piece: &Range<u64>, bytes: &Result<&[u8], hsa::Error>) {
        let start = self.range.start.max(piece.start);
        let end = self.range.end.min(piece.end);
        if start >= end {
            return;
        }
        match bytes {
            Ok(bytes) => {
                let size = (end - start) as usize;
                let to = &mut self.to[(start - self.range.start) as usize..][..size];
                to.copy_from_slice(&bytes[(start - piece.start) as usize..][..size]);
            }
            Err(error) => self.result = Err(error.clone()),
        }
    }
}

/// The segment that a range is in.
fn segment_of(range: &Range<u64>, segments: &[Range<u64>]) -> Option<Range<u64>> {
    let is_around = |s: &&Range<u64>| s.start <= range.start && range.end <= s.end;
    segments.iter().find(is_around).cloned()
}

/// Copies all ranges, in the fewest copies. Those that could not be copied, by their tags. `Err` if nothing can be copied,
/// or a batch takes longer than `limit`.
pub fn copy(
    staging: &mut Staging,
    mut reads: Vec<Read>,
    limit: Duration,
) -> Result<Vec<(usize, hsa::Error)>, hsa::Error> {
    reads.sort_by_key(|read| read.range.start);
    let pieces = pieces(&reads);
    let ranges: Vec<_> = pieces.iter().map(|piece| piece.range.clone()).collect();
    staging.copy(&ranges, limit, |n, bytes| {
        let Piece { range, reads: of } = &pieces[n];
        for read in &mut reads[of.clone()] {
            read.take(range, &bytes);
        }
    })?;
    let failed = |read: Read| Some((read.tag, read.result.err()?));
    Ok(reads.into_iter().filter_map(failed).collect())
}

/// What is copied at once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    range: Range<u64>,
    /// The reads that may want some of it, by their position.
    reads: Range<usize>,
}

/// The fewest pieces that hold all the ranges, which are in order of their start. None leaves a segment.
fn pieces(reads: &[Read]) -> Vec<Piece> {
    let mut spans: Vec<Piece> = Vec::new();
    let mut segment = 0..0;
    for (n, read) in reads.iter().enumerate() {
        match spans.last_mut() {
            Some(last)
                if segment == read.segment
                    && read.range.start <= last.range.end.saturating_add(GAP) =>
            {
                last.range.end = last.range.end.max(read.range.end);
                last.reads.end = n + 1;
            }
            _ => spans.push(Piece {
                range: read.range.clone(),
                reads: n..n + 1,
            }),
        }
        segment = read.segment.clone();
    }
    let cut = |span: Piece| {
        let Range { start, end } = span.range;
        (start..end).step_by(BATCH).map(move |start| Piece {
            range: start..end.min(start + BATCH as u64),
            reads: span.reads.clone(),
        })
    };
    spans.into_iter().flat_map(cut).collect()
}

/// Ranges whose bytes are to be kept in memory of their own.
#[derive(Default)]
pub struct Wanted(Vec<(Range<u64>, Range<u64>)>);

impl Wanted {
    pub fn add(&mut self, range: Range<u64>, segments: &[Range<u64>]) {
        // The checks have seen to it that there is one.
        if let Some(segment) = segment_of(&range, segments) {
            self.0.push((range, segment));
        }
    }

    /// Copies them, within `limit`.
    pub fn copy(mut self, staging: &mut Staging, limit: Duration) -> Result<Copies, hsa::Error> {
        let key = |range: &Range<u64>| (range.start, range.end);
        self.0.sort_by_key(|(range, _)| key(range));
        self.0.dedup_by_key(|(range, _)| key(range));
        let mut all: Vec<Copied> = Vec::with_capacity(self.0.len());
        for (range, _) in &self.0 {
            let mut bytes = Vec::new();
            let size = (range.end - range.start) as usize;
            let reserved = room::reserve(&mut bytes, size);
            if reserved.is_ok() {
                bytes.resize(size, 0);
            }
            all.push(Copied {
                range: range.clone(),
                bytes: reserved.map(|()| bytes).map_err(Failure::from),
            });
        }
        let mut reads: Vec<Read> = Vec::with_capacity(all.len());
        for (n, (copied, (_, segment))) in all.iter_mut().zip(&self.0).enumerate() {
            let Copied { range, bytes } = copied;
            if let Ok(bytes) = bytes {
                let segments = std::slice::from_ref(segment);
                reads.extend(Read::new(n, range.clone(), segments, bytes));
            }
        }
        for (n, error) in copy(staging, reads, limit)? {
            all[n].bytes = Err(error.into());
        }
        Ok(Copies(all))
    }
}

/// Why a range's bytes are not there.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Copy(#[from] hsa::Error),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// An internal error: nobody has asked for it.
    #[error("a part of it was not copied")]
    Absent,
}

struct Copied {
    range: Range<u64>,
    bytes: Result<Vec<u8>, Failure>,
}

/// Copied ranges, in order.
pub struct Copies(Vec<Copied>);

impl Copies {
    /// The bytes of a range that was wanted.
    pub fn get(&self, range: &Range<u64>) -> Result<&[u8], Failure> {
        if range.is_empty() {
            return Ok(&[]);
        }
        let key = |range: &Range<u64>| (range.start, range.end);
        let found = self.0.binary_search_by_key(&key(range), |c| key(&c.range));
        match found.map(|n| &self.0[n].bytes) {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(failure)) => Err(failure.clone()),
            Err(_) => Err(Failure::Absent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(range: Range<u64>, segments: &[Range<u64>], to: &'a mut Vec<u8>) -> Read<'a> {
        to.resize((range.end - range.start) as usize, 0);
        Read::new(0, range, segments, to).expect("in a segment")
    }

    #[test]
    fn near_ranges_of_a_segment_are_one_piece() {
        let segments = [0x1000..0x20000, 0x20000..0x30000];
        let ranges = [
            0x1000..0x1010,
            0x1020..0x1030,
            0x5031..0x5040,
            0x1ff00..0x20000,
            0x20000..0x20010,
        ];
        let mut buffers = vec![Vec::new(); ranges.len()];
        let reads: Vec<_> = ranges
            .into_iter()
            .zip(&mut buffers)
            .map(|(range, to)| read(range, &segments, to))
            .collect();
        let found: Vec<_> = pieces(&reads)
            .into_iter()
            .map(|piece| (piece.range, piece.reads))
            .collect();
        assert_eq!(
            found,
            [
                (0x1000..0x1030, 0..2),
                (0x5031..0x5040, 2..3),
                (0x1ff00..0x20000, 3..4),
                (0x20000..0x20010, 4..5),
            ]
        );
        assert!(Read::new(0, 0x1fff0..0x20010, &segments, &mut []).is_none());
    }

    #[test]
    fn a_large_range_is_cut_into_pieces_and_put_together_again() {
        let size = BATCH as u64;
        let segment = 0x1000..0x1000 + 3 * size;
        let segments = std::slice::from_ref(&segment);
        let (mut all, mut inner) = (Vec::new(), Vec::new());
        let mut reads = [
            read(0x1001..0x1001 + 2 * size + 5, segments, &mut all),
            read(0x1000 + size - 3..0x1000 + size + 3, segments, &mut inner),
        ];
        let pieces = pieces(&reads);
        let sizes: Vec<_> = pieces.iter().map(|p| p.range.end - p.range.start).collect();
        assert_eq!(sizes, [size, size, 5]);
        let byte = |address: u64| (address.wrapping_mul(0x9e37_79b9) >> 13) as u8;
        for piece in &pieces {
            let bytes: Vec<u8> = piece.range.clone().map(byte).collect();
            for read in &mut reads[piece.reads.clone()] {
                read.take(&piece.range, &Ok(&bytes));
            }
        }
        for read in &reads {
            assert!(read.range.clone().map(byte).eq(read.to.iter().copied()));
        }
        let error = hsa::Error::Missing("x");
        reads[1].take(&pieces[2].range, &Err(error.clone()));
        assert!(reads[1].result.is_ok());
        reads[1].take(&pieces[0].range, &Err(error));
        assert!(reads[1].result.is_err());
    }
}
