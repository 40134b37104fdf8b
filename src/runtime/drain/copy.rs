//! The third stage: copies ranges of device memory, in as few pieces as possible.

use crate::gpu::runtime::{AgentId, Error, Runtime, segment_of};
use crate::support::alloc::{self, OutOfMemory};
use std::ops::Range;
use std::time::Duration;

/// Ranges of one segment that are closer than this are copied together: submitting a copy takes longer than copying this
/// many bytes over PCIe.
const GAP: u64 = 16 << 10;

/// A range of device memory, inside a segment, and the memory to copy it to.
pub struct Read<'a> {
    /// Identifies it in the result of [`copy`].
    tag: usize,
    range: Range<u64>,
    segment: Range<u64>,
    to: &'a mut [u8],
    /// Whether all bytes of the range were copied.
    result: Result<(), Error>,
}

impl<'a> Read<'a> {
    /// `to`: as many bytes as the range has. `None` if the range is in no segment; validated ranges are.
    pub fn new(
        tag: usize,
        range: Range<u64>,
        segments: &[Range<u64>],
        to: &'a mut [u8],
    ) -> Option<Read<'a>> {
        Some(Read {
            tag,
            segment: segment_of(&range, segments)?.clone(),
            range,
            to,
            result: Ok(()),
        })
    }

    /// Copies the part of `bytes`, which is the content of `piece`, that belongs to the range.
    fn take(&mut self, piece: &Range<u64>, bytes: &Result<&[u8], Error>) {
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

/// A GPU runtime and the agent to copy from.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    pub runtime: &'a dyn Runtime,
    pub agent: AgentId,
    /// The longest time for a batch of copies.
    pub limit: Duration,
}

/// Copies all ranges. Returns the tags of those that could not be copied. Fails if nothing can be copied, or if a batch
/// takes too long.
pub fn copy(device: Device, mut reads: Vec<Read>) -> Result<Vec<(usize, Error)>, Error> {
    let (runtime, agent) = (device.runtime, device.agent);
    reads.sort_unstable_by_key(|read| read.range.start);
    let spans = spans(&reads);
    let size = |span: &Piece| (span.range.end - span.range.start) as usize;
    let total = spans.iter().map(size).fold(0, usize::saturating_add);
    let pieces = cut(spans, runtime.largest_piece(agent, total));
    let ranges: Vec<_> = pieces.iter().map(|piece| piece.range.clone()).collect();
    runtime.read(agent, &ranges, device.limit, &mut |n, bytes| {
        let Piece { range, reads: of } = &pieces[n];
        for read in &mut reads[of.clone()] {
            read.take(range, &bytes);
        }
    })?;
    let failed = |read: Read| Some((read.tag, read.result.err()?));
    Ok(reads.into_iter().filter_map(failed).collect())
}

/// A range that is copied at once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    range: Range<u64>,
    /// Indices of the reads that may need a part of it.
    reads: Range<usize>,
}

/// Pieces that contain all the ranges, which are sorted by their start. A piece is inside one segment.
fn spans(reads: &[Read]) -> Vec<Piece> {
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
    spans
}

/// Cuts pieces into pieces of at most `largest` bytes.
fn cut(spans: Vec<Piece>, largest: usize) -> Vec<Piece> {
    let cut = |span: Piece| {
        let Range { start, end } = span.range;
        (start..end).step_by(largest).map(move |start| Piece {
            range: start..end.min(start + largest as u64),
            reads: span.reads.clone(),
        })
    };
    spans.into_iter().flat_map(cut).collect()
}

/// Ranges to copy into memory that is allocated for them.
#[derive(Default)]
pub struct CopyRequests(Vec<(Range<u64>, Range<u64>)>);

impl CopyRequests {
    pub fn add(&mut self, range: Range<u64>, segments: &[Range<u64>]) {
        // Validated ranges are in a segment.
        if let Some(segment) = segment_of(&range, segments) {
            self.0.push((range, segment.clone()));
        }
    }

    pub fn copy(mut self, device: Device) -> Result<Copies, Error> {
        let key = |range: &Range<u64>| (range.start, range.end);
        self.0.sort_unstable_by_key(|(range, _)| key(range));
        self.0.dedup_by_key(|(range, _)| key(range));
        let mut all: Vec<Copied> = Vec::with_capacity(self.0.len());
        for (range, _) in &self.0 {
            let size = (range.end - range.start) as usize;
            all.push(Copied {
                range: range.clone(),
                bytes: alloc::zeroed(size).map_err(Failure::from),
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
        for (n, error) in copy(device, reads)? {
            all[n].bytes = Err(error.into());
        }
        Ok(Copies(all))
    }
}

/// Why a range was not copied.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Copy(#[from] Error),
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// An internal error: the range was not requested.
    #[error("a part of it was not copied")]
    Absent,
}

impl Failure {
    /// Whether the next drain may succeed.
    pub fn is_temporary(&self) -> bool {
        !matches!(self, Failure::Absent)
    }
}

struct Copied {
    range: Range<u64>,
    bytes: Result<Vec<u8>, Failure>,
}

/// Copied ranges, sorted.
pub struct Copies(Vec<Copied>);

impl Copies {
    /// The bytes of a requested range.
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

    const LARGEST: usize = 16 << 20;

    fn read<'a>(range: Range<u64>, segments: &[Range<u64>], to: &'a mut Vec<u8>) -> Read<'a> {
        to.resize((range.end - range.start) as usize, 0);
        Read::new(0, range, segments, to).expect("in a segment")
    }

    #[test]
    fn close_ranges_of_a_segment_are_copied_together() {
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
        let found: Vec<_> = cut(spans(&reads), LARGEST)
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
    fn a_large_range_is_split_into_pieces_and_reassembled() {
        let size = LARGEST as u64;
        let segment = 0x1000..0x1000 + 3 * size;
        let segments = std::slice::from_ref(&segment);
        let (mut all, mut inner) = (Vec::new(), Vec::new());
        let mut reads = [
            read(0x1001..0x1001 + 2 * size + 5, segments, &mut all),
            read(0x1000 + size - 3..0x1000 + size + 3, segments, &mut inner),
        ];
        let pieces = cut(spans(&reads), LARGEST);
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
        let error = Error::Missing {
            runtime: "HSA",
            function: "x",
        };
        reads[1].take(&pieces[2].range, &Err(error.clone()));
        assert!(reads[1].result.is_ok());
        reads[1].take(&pieces[0].range, &Err(error));
        assert!(reads[1].result.is_err());
    }
}
