//! The fourth stage: encodes a raw profile, in the version that the device code was compiled for.
//!
//! The device's bytes are copied directly to their location in the file, so a drain needs no other memory:
//! [`Draft::new`] lays out the file, [`Draft::targets`] returns the destination of each range, and [`Draft::finish`]
//! converts device addresses to offsets in the file.

use super::validate::{self, Bitmaps, Bounds, Defect};
use crate::support::alloc::{self, OutOfMemory};
use byteorder::{ByteOrder, LittleEndian};
use profraw::format::{COUNTER, DataRecord, Header, counter_size};
use std::ops::Range;

/// The sections of one table, of which the version and the names were read.
pub struct Sections {
    pub bounds: Bounds,
    /// Validated, with the variant flags.
    pub version: u64,
    pub names: Vec<u8>,
    /// See [`validate::bitmaps`].
    pub bitmaps: Vec<Bitmaps>,
}

/// A raw profile.
#[derive(Debug)]
pub struct Image {
    pub bytes: Vec<u8>,
    pub records: usize,
    /// The number of records that were left out because they point outside the counters.
    pub dropped: usize,
    /// The number of records without their bitmap, which is not valid.
    pub dropped_bitmaps: usize,
    /// Whether a counter has counted.
    pub has_counts: bool,
}

/// The counters in an incomplete raw profile, as they were copied.
pub struct Counts<'a> {
    /// The device address of the first counter.
    pub start: u64,
    pub counters: &'a mut [u8],
    pub uniform: &'a mut [u8],
    /// Of each record that has uniform counters.
    pub pairs: Vec<Pair>,
}

/// Which uniform counters belong to which counters. Offsets in their sections and a size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    pub uniform: u64,
    pub counters: u64,
    pub size: u64,
}

/// An incomplete raw profile: without the header, the device's bytes and the names.
pub struct Draft<'a> {
    sections: &'a Sections,
    binary_id: Vec<u8>,
    bytes: Vec<u8>,
    /// The sections' ranges in `bytes`. They are adjacent, with padding after the counters and the bitmaps.
    data: Range<usize>,
    counters: Range<usize>,
    bitmaps: Range<usize>,
    uniform: Range<usize>,
}

impl<'a> Draft<'a> {
    /// Lays out the file and allocates its memory.
    pub fn new(sections: &'a Sections, binary_id: Option<&[u8]>) -> Result<Draft<'a>, Defect> {
        // llvm-profdata refuses a file with an empty id.
        let binary_id = binary_id
            .filter(|id| !id.is_empty())
            .map(padded_id)
            .unwrap_or_default();
        let start = 8 * Header::words_of(sections.version) + binary_id.len();
        let after = |start: usize, size: u64| {
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            Some(start..end)
        };
        let size = |range: &Range<u64>| range.end - range.start;
        let lay_out = || {
            let bounds = &sections.bounds;
            let data = after(start, size(&bounds.data))?;
            let counters = after(data.end, size(&bounds.counters))?;
            let last = sections.bitmaps.last();
            let bitmap_size = last.map_or(0, |last| last.offset + size(&last.range));
            let bitmaps = after(counters.end.checked_next_multiple_of(8)?, bitmap_size)?;
            let uniform = after(
                bitmaps.end.checked_next_multiple_of(8)?,
                size(&bounds.uniform),
            )?;
            let end = uniform.end.checked_add(sections.names.len())?;
            let end = end.checked_next_multiple_of(8)?;
            Some((data, counters, bitmaps, uniform, end))
        };
        let (data, counters, bitmaps, uniform, end) = lay_out().ok_or(OutOfMemory(usize::MAX))?;
        let mut bytes = Vec::new();
        alloc::reserve(&mut bytes, end)?;
        bytes.resize(uniform.end, 0);
        Ok(Draft {
            sections,
            binary_id,
            bytes,
            data,
            counters,
            bitmaps,
            uniform,
        })
    }

    /// The non-empty ranges on the device, and the memory to copy each to.
    pub fn targets(&mut self) -> impl Iterator<Item = (Range<u64>, &mut [u8])> {
        let (before, uniform) = self.bytes.split_at_mut(self.uniform.start);
        let (before, mut bitmaps) = before.split_at_mut(self.bitmaps.start);
        let (before, counters) = before.split_at_mut(self.counters.start);
        let data = &mut before[self.data.clone()];
        let counters = &mut counters[..self.counters.len()];
        let bounds = &self.sections.bounds;
        let bitmaps = self
            .sections
            .bitmaps
            .iter()
            .map(move |Bitmaps { range, .. }| {
                let size = (range.end - range.start) as usize;
                let (bytes, rest) = std::mem::take(&mut bitmaps).split_at_mut(size);
                bitmaps = rest;
                (range.clone(), bytes)
            });
        [
            (bounds.data.clone(), data),
            (bounds.counters.clone(), counters),
            (bounds.uniform.clone(), uniform),
        ]
        .into_iter()
        .chain(bitmaps)
        .filter(|(_, bytes)| !bytes.is_empty())
    }

    /// The counters, after the device's bytes were copied. Not for byte coverage.
    pub fn counts(&mut self) -> Result<Counts<'_>, OutOfMemory> {
        let total = self.data.len() / self.sections.bounds.format().record;
        let pair = |n| {
            let offsets = self.offsets(n)?;
            Some(Pair {
                uniform: offsets.uniform?,
                counters: offsets.counters,
                size: COUNTER * offsets.count,
            })
        };
        let mut pairs: Vec<Pair> = Vec::new();
        alloc::reserve(&mut pairs, total)?;
        pairs.extend((0..total).filter_map(pair));
        // Two records of the same counters.
        pairs.sort_unstable();
        pairs.dedup_by_key(|pair| pair.uniform);
        let (before, uniform) = self.bytes.split_at_mut(self.uniform.start);
        Ok(Counts {
            start: self.sections.bounds.counters.start,
            counters: &mut before[self.counters.clone()],
            uniform,
            pairs,
        })
    }

    /// Completes the profile after the device's bytes were copied.
    ///
    /// Counter pointers become relative to the file's layout. Device addresses are written as 0, so that two runs write
    /// the same bytes.
    pub fn finish(mut self) -> Result<Image, Defect> {
        let format = self.sections.bounds.format();
        let counter = counter_size(self.sections.version);
        let has_counts = [&self.counters, &self.uniform].into_iter().any(|range| {
            // A counter of one byte is cleared when its block runs.
            let unused = if counter == 1 { 0xff } else { 0 };
            self.bytes[range.clone()].iter().any(|&byte| byte != unused)
        });
        let total = self.data.len() / format.record;
        let has_uniform = !self.uniform.is_empty();
        let (mut kept, mut zeros) = (0, 0);
        for n in 0..total {
            let Some(offsets) = self.offsets(n) else {
                continue;
            };
            kept += 1;
            // If there are uniform counters, llvm-profdata expects some for each record. A record without uniform
            // counters points to zeros after them.
            if has_uniform && offsets.uniform.is_none() {
                zeros = zeros.max(COUNTER * offsets.count);
            }
        }
        if kept == 0 && total > 0 {
            return Err(Defect::NoRecord(total));
        }
        let data = (kept * format.record) as u64;
        let counters = self.counters.len() as u64;
        let padding_after_counters = counters.next_multiple_of(8) - counters;
        let bitmap_delta = data + counters + padding_after_counters;
        let bitmaps = self.bitmaps.len() as u64;
        let padding_after_bitmaps = bitmaps.next_multiple_of(8) - bitmaps;
        let uniform = self.uniform.len() as u64;
        let header = Header {
            version: self.sections.version,
            binary_ids: self.binary_id.len() as u64,
            num_data: kept as u64,
            num_counters: counters / counter,
            padding_after_counters,
            num_bitmap_bytes: bitmaps,
            padding_after_bitmaps,
            bitmap_delta: if bitmaps == 0 { 0 } else { bitmap_delta },
            num_uniform: (uniform + zeros) / COUNTER,
            uniform_delta: if has_uniform {
                bitmap_delta + bitmaps + padding_after_bitmaps
            } else {
                0
            },
            names: self.sections.names.len() as u64,
            counters_delta: data,
        };
        let (mut next, mut dropped_bitmaps) = (0, 0);
        for n in 0..total {
            let Some(offsets) = self.offsets(n) else {
                continue;
            };
            let Some(mut record) = self.record(n) else {
                continue;
            };
            // Device addresses are of no use in a file.
            record.function_pointer = 0.into();
            record.values = 0.into();
            // Devices have no value profiles.
            record.num_value_sites = [0.into(); 3];
            // Pointers are relative to their record.
            let start = (next * format.record) as u64;
            record.bitmap_ptr = match offsets.bitmap {
                Some(offset) => (header.bitmap_delta + offset).wrapping_sub(start).into(),
                None => {
                    dropped_bitmaps += usize::from(record.num_bitmap_bytes != 0);
                    record.num_bitmap_bytes = 0.into();
                    0.into()
                }
            };
            let pointer = (header.counters_delta + offsets.counters).wrapping_sub(start);
            record.counter_ptr = pointer.into();
            let pointer = if has_uniform {
                (header.uniform_delta + offsets.uniform.unwrap_or(uniform)).wrapping_sub(start)
            } else {
                0
            };
            record.uniform_counter_ptr = pointer.into();
            let to = &mut self.bytes[self.data.start + next * format.record..];
            format
                .write_record(&record, to)
                .ok_or(Defect::NoRecord(total))?;
            next += 1;
        }
        // Remove the space of the dropped records.
        let end = self.data.start + kept * format.record;
        self.bytes.drain(end..self.data.end);
        let words = header.words();
        LittleEndian::write_u64_into(&words, &mut self.bytes[..8 * words.len()]);
        let id = self.data.start - self.binary_id.len();
        self.bytes[id..self.data.start].copy_from_slice(&self.binary_id);
        let rest = zeros as usize + self.sections.names.len() + 8;
        alloc::reserve(&mut self.bytes, rest)?;
        self.bytes.resize(self.bytes.len() + zeros as usize, 0);
        self.bytes.extend_from_slice(&self.sections.names);
        pad(&mut self.bytes);
        Ok(Image {
            bytes: self.bytes,
            records: kept,
            dropped: total - kept,
            dropped_bitmaps,
            has_counts,
        })
    }

    /// Record `n` of the device.
    fn record(&self, n: usize) -> Option<DataRecord> {
        let format = self.sections.bounds.format();
        let start = self.data.start + n * format.record;
        format.read_record(self.bytes.get(start..self.data.end)?)
    }

    /// The location of the counters of record `n`. `None` if it points outside the counters.
    fn offsets(&self, n: usize) -> Option<CounterOffsets> {
        let bounds = &self.sections.bounds;
        let record = self.record(n)?;
        let size = bounds.format().record;
        let address = bounds.data.start.wrapping_add((n * size) as u64);
        let target = |pointer: u64| address.wrapping_add(pointer);
        let count = u64::from(record.num_counters.get());
        let counter = counter_size(self.sections.version);
        let pointer = record.counter_ptr.get();
        let counters = offset(target(pointer), &bounds.counters, counter, count)?;
        let uniform = match record.uniform_counter_ptr.get() {
            0 => None,
            pointer => Some(offset(target(pointer), &bounds.uniform, COUNTER, count)?),
        };
        let bitmap = validate::bitmap(&record, address);
        Some(CounterOffsets {
            counters,
            uniform,
            bitmap: bitmap.and_then(|bitmap| offset_in(&bitmap, &self.sections.bitmaps)),
            count,
        })
    }
}

/// The location of a record's counters, in bytes from the start of their sections.
struct CounterOffsets {
    counters: u64,
    uniform: Option<u64>,
    /// `None`: it has none, or it is not valid.
    bitmap: Option<u64>,
    /// Number of counters.
    count: u64,
}

/// The offset of `target` in the section, if `count` aligned entries from there on are inside the section.
fn offset(target: u64, section: &Range<u64>, entry: u64, count: u64) -> Option<u64> {
    let offset = target.checked_sub(section.start)?;
    let end = count.checked_mul(entry)?.checked_add(offset)?;
    let is_inside = end <= section.end - section.start;
    (count > 0 && offset % entry == 0 && is_inside).then_some(offset)
}

/// The offset of a bitmap in all bitmaps. `None` if it is not one of them.
fn offset_in(bitmap: &Range<u64>, all: &[Bitmaps]) -> Option<u64> {
    let after = all.partition_point(|bitmaps| bitmaps.range.start <= bitmap.start);
    let Bitmaps { range, offset } = all.get(after.checked_sub(1)?)?;
    (bitmap.end <= range.end).then(|| offset + bitmap.start - range.start)
}

/// A binary id in the file's format: its length, its bytes, padding to 8 bytes.
fn padded_id(id: &[u8]) -> Vec<u8> {
    let mut out = (id.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(id);
    pad(&mut out);
    out
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0);
}

/// Encodes sections whose bytes a test provides: the records, the counters, the uniform counters, the bitmaps.
#[cfg(test)]
pub fn encode<const N: usize>(
    sections: &Sections,
    bytes: [&[u8]; N],
    binary_id: Option<&[u8]>,
) -> Result<Image, Defect> {
    let mut draft = Draft::new(sections, binary_id)?;
    let filled = bytes.into_iter().filter(|bytes| !bytes.is_empty());
    for ((_, target), bytes) in draft.targets().zip(filled) {
        target.copy_from_slice(bytes);
    }
    draft.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::TableLayout;

    const DATA: u64 = 0x4060;
    const COUNTERS: u64 = 0x4000;
    const UNIFORM: u64 = 0x4030;

    /// A record of version 11 in device memory whose counters are at `counter` and `uniform`.
    fn record(n: u64, counter: u64, uniform: u64, count: u32) -> Vec<u8> {
        let at = DATA + n * 72;
        let mut words = vec![
            100 + n,
            200 + n,
            counter.wrapping_sub(at),
            uniform.wrapping_sub(at),
            7,
            8,
            9,
        ];
        words.push(u64::from(count));
        words.push(32 << 16);
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn range(start: u64, bytes: &[u8]) -> Range<u64> {
        start..start + bytes.len() as u64
    }

    fn bounds(layout: TableLayout, [data, counters, uniform]: [Range<u64>; 3]) -> Bounds {
        Bounds {
            layout,
            names: 0..0,
            counters,
            data,
            uniform,
            version: None,
        }
    }

    fn sections(
        version: u64,
        layout: TableLayout,
        [data, counters, uniform]: [&[u8]; 3],
    ) -> Sections {
        let (counters, uniform) = (range(COUNTERS, counters), range(UNIFORM, uniform));
        Sections {
            version,
            bounds: bounds(layout, [range(DATA, data), counters, uniform]),
            names: b"\x03\x00abc".into(),
            bitmaps: Vec::new(),
        }
    }

    /// Of version 11.
    fn uniform_sections(bytes: [&[u8]; 3]) -> Sections {
        sections(11, TableLayout::Uniform, bytes)
    }

    fn word(bytes: &[u8], n: usize) -> u64 {
        LittleEndian::read_u64(&bytes[8 * n..])
    }

    #[test]
    fn a_profile_contains_header_id_records_counters_and_names_in_this_order() {
        let data = [
            record(0, COUNTERS + 16, UNIFORM + 16, 1),
            record(1, COUNTERS, UNIFORM, 2),
        ]
        .concat();
        let counters: Vec<u8> = [1u64, 2, 3].iter().flat_map(|c| c.to_le_bytes()).collect();
        let bytes = [&data[..], &counters, &counters];
        let image = encode(&uniform_sections(bytes), bytes, Some(&[0xaa; 20])).unwrap();
        assert_eq!((image.dropped, image.dropped_bitmaps), (0, 0));
        let bytes = &image.bytes;
        let header: Vec<u64> = (0..19).map(|n| word(bytes, n)).collect();
        let rest = [11, 32, 2, 0, 3, 0, 0, 0, 3, 0, 168, 5, 144, 0, 0, 0, 0, 2];
        assert_eq!(
            (header[0], &header[1..]),
            (profraw::format::MAGIC, &rest[..])
        );
        let ids = 19 * 8;
        assert_eq!(
            (word(&bytes[ids..], 0), bytes[ids + 27], bytes[ids + 28]),
            (20, 0xaa, 0)
        );
        let data = ids + 32;
        // The first record points 16 bytes into the counters, the second one to their start.
        assert_eq!(word(&bytes[data..], 2), 144 + 16);
        assert_eq!(word(&bytes[data + 72..], 2), 144 - 72);
        assert_eq!(word(&bytes[data..], 3), 168 + 16);
        assert_eq!(&bytes[data + 32..data + 56], &[0; 24]);
        assert_eq!(word(&bytes[data + 144..], 2), 3);
        assert_eq!(&bytes[data + 144 + 48..], b"\x03\x00abc\0\0\0");
    }

    #[test]
    fn records_say_which_uniform_counters_belong_to_which_counters() {
        let data = [
            record(0, COUNTERS + 16, UNIFORM, 1),
            record(1, COUNTERS, UNIFORM + 8, 2),
            // Of the same counters, without uniform counters, and outside the counters.
            record(2, COUNTERS + 16, UNIFORM, 1),
            record(3, COUNTERS, DATA + 3 * 72, 1),
            record(4, COUNTERS + 24, UNIFORM, 1),
        ]
        .concat();
        let counters: Vec<u8> = (0..24).collect();
        let uniform: Vec<u8> = (100..124).collect();
        let bytes = [&data[..], &counters, &uniform];
        let sections = uniform_sections(bytes);
        let mut draft = Draft::new(&sections, Some(&[7; 5])).unwrap();
        for ((_, target), bytes) in draft.targets().zip(bytes) {
            target.copy_from_slice(bytes);
        }
        let counts = draft.counts().unwrap();
        assert_eq!(counts.start, COUNTERS);
        assert_eq!(
            (&*counts.counters, &*counts.uniform),
            (&counters[..], &uniform[..])
        );
        let pair = |uniform, counters, size| Pair {
            uniform,
            counters,
            size,
        };
        assert_eq!(counts.pairs, [pair(0, 16, 8), pair(8, 0, 16)]);
    }

    #[test]
    fn records_that_point_outside_the_counters_are_dropped() {
        let counters = [0u8; 24];
        for (counter, uniform, count) in [
            (COUNTERS - 8, UNIFORM, 1),
            (COUNTERS + 24, UNIFORM, 1),
            (COUNTERS + 16, UNIFORM, 2),
            (COUNTERS + 4, UNIFORM, 1),
            (COUNTERS, UNIFORM + 24, 1),
            (COUNTERS, UNIFORM, u32::MAX),
            (COUNTERS, UNIFORM, 0),
        ] {
            let bad = record(0, counter, uniform, count);
            let both = [bad.clone(), record(1, COUNTERS, UNIFORM, 3)].concat();
            let bytes = [&both[..], &counters, &counters];
            let image = encode(&uniform_sections(bytes), bytes, None).unwrap();
            assert_eq!(image.dropped, 1, "{counter:#x} {uniform:#x} {count}");
            // The remaining record is the first in the file, and its pointer is relative to that location.
            assert_eq!(
                (word(&image.bytes, 3), word(&image.bytes[19 * 8..], 2)),
                (1, 72)
            );
            let bytes = [&bad[..], &counters, &counters];
            assert!(matches!(
                encode(&uniform_sections(bytes), bytes, None),
                Err(Defect::NoRecord(1))
            ));
        }
    }

    /// Counters of byte coverage are padded to 8 bytes.
    #[test]
    fn version_10_has_no_uniform_counters() {
        let byte_coverage = profraw::format::BYTE_COVERAGE;
        // The flags; the first counter of the record, and how many it has; all counters; their number and padding.
        for (flags, first, count, counters, expected) in [
            (0, 0, 1, &[5, 0, 0, 0, 0, 0, 0, 0][..], (1, 0)),
            (byte_coverage, 1, 2, &[0xff, 0, 0xff], (3, 5)),
        ] {
            let mut data = [0u8; 64];
            LittleEndian::write_u64(&mut data[16..], (COUNTERS + first).wrapping_sub(DATA));
            LittleEndian::write_u32(&mut data[48..], count);
            let bytes = [&data[..], counters, &[]];
            let sections = sections(10 | flags, TableLayout::Plain, bytes);
            let image = encode(&sections, bytes, None).unwrap().bytes;
            assert_eq!(image.len(), 16 * 8 + 64 + 8 + 8);
            assert_eq!((word(&image, 5), word(&image, 6)), expected);
            assert_eq!([9, 10, 15].map(|n| word(&image, n)), [5, 64, 2]);
        }
    }

    /// In both versions, with counters of 64 bits and of bytes.
    #[test]
    fn bitmaps_follow_the_counters() {
        let bitmap_at = |n| [0x8000, 0x9000, 0x8003, 0x8001][n];
        for (layout, flags) in [
            (TableLayout::Plain, 0),
            (TableLayout::Plain, profraw::format::BYTE_COVERAGE),
            (TableLayout::Uniform, 0),
            (TableLayout::Uniform, profraw::format::BYTE_COVERAGE),
        ] {
            let format = layout.format();
            let unit = counter_size(format.version | flags);
            let mut data = Vec::new();
            // The third record has no bitmap, and the bitmap of the last one is not valid.
            for (n, size) in [3u32, 2, 0, 3].into_iter().enumerate() {
                let at = DATA + data.len() as u64;
                let mut record = format.read_record(&[0; 72]).unwrap();
                record.counter_ptr = (COUNTERS + unit * n as u64).wrapping_sub(at).into();
                record.num_counters = 1.into();
                record.bitmap_ptr = u64::wrapping_sub(bitmap_at(n), at).into();
                record.num_bitmap_bytes = size.into();
                let mut bytes = vec![0; format.record];
                format.write_record(&record, &mut bytes).unwrap();
                data.extend(bytes);
            }
            let counters = vec![0xff; 4 * unit as usize];
            let uniform: &[u8] = if format.has_uniform { &[5; 32] } else { &[] };
            let mut sections =
                sections(format.version | flags, layout, [&data, &counters, uniform]);
            sections.bitmaps = [(0x8000..0x8003, 0), (0x9000..0x9002, 3)]
                .map(|(range, offset)| Bitmaps { range, offset })
                .into();
            let bytes = [&data[..], &counters, uniform, &[1, 2, 4], &[8, 16]];
            let image = encode(&sections, bytes, Some(b"id")).unwrap();
            assert_eq!((image.records, image.dropped_bitmaps), (4, 1));
            let layout = profraw::Layout::read(&image.bytes).unwrap();
            assert_eq!(layout.end, image.bytes.len());
            assert_eq!(&image.bytes[layout.bitmap.clone()], [1, 2, 4, 8, 16]);
            assert_eq!(layout.header.padding_after_bitmaps, 3);
            assert_eq!(layout.names.len(), 5);
            let records = profraw::records(&image.bytes, &layout).unwrap();
            let found: Vec<_> = records.iter().map(|record| &record.bitmap[..]).collect();
            assert_eq!(found, [&[1, 2, 4][..], &[8, 16], &[], &[]]);
            let records = format.records(&image.bytes[layout.data]);
            let unused: Vec<_> = records
                .map(|record| (record.bitmap_ptr.get(), record.num_bitmap_bytes.get()))
                .skip(2)
                .collect();
            assert_eq!(unused, [(0, 0); 2]);
        }
    }

    /// The low 64 bits of the MD5 hash of a function's name, as in LLVM.
    fn name_ref(name: &str) -> u64 {
        use md5::{Digest, Md5};
        LittleEndian::read_u64(&Md5::digest(name.as_bytes()))
    }

    /// Encodes random sections of both versions, and reads them. If DEVPROF_ENCODED is set, writes some of the profiles
    /// to this directory, each with the lines that llvm-profdata is expected to print (llvm-tests/peer/encoder.test).
    #[test]
    fn encoded_profiles_can_be_read() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let out = std::env::var_os("DEVPROF_ENCODED").map(std::path::PathBuf::from);
        for round in 0..2000 {
            let layout = [TableLayout::Plain, TableLayout::Uniform][random(2) as usize];
            let format = layout.format();
            let bytes_only = random(4) == 0;
            let unit = if bytes_only { 1 } else { COUNTER };
            let total = 1 + random(40);
            let entry = |random: &mut dyn FnMut(u64) -> u64| match unit {
                1 => vec![if random(2) == 0 { 0 } else { 0xff }],
                _ => random(profraw::counts::MAX_COUNT).to_le_bytes().to_vec(),
            };
            let counters: Vec<u8> = (0..total).flat_map(|_| entry(&mut random)).collect();
            let count = if format.has_uniform { total } else { 0 };
            let uniform = (0..count).flat_map(|_| random(u64::MAX).to_le_bytes());
            let uniform: Vec<u8> = uniform.collect();
            let [data_start, counters_start, uniform_start, bitmaps_start] =
                [0; 4].map(|_| 8 * random(1 << 50));
            let (mut data, mut bitmaps) = (Vec::new(), Vec::new());
            let mut expected = Vec::new();
            let mut functions = Vec::new();
            // A counter belongs to one function.
            let mut next = 0;
            for n in 0..random(12) {
                let first = next + random(4);
                if first >= total {
                    break;
                }
                functions.push(format!("function_{round}_{n}"));
                let name = name_ref(&functions[n as usize]);
                let count = 1 + random((total - first).min(10));
                next = first + count;
                let has_uniform = format.has_uniform && random(3) > 0;
                let record_start = data_start + n * format.record as u64;
                let mut bytes = vec![0xee; format.record];
                let mut record = format.read_record(&bytes).unwrap();
                record.name_ref = name.into();
                record.func_hash = (n + 1000).into();
                let pointer = (counters_start + first * unit).wrapping_sub(record_start);
                record.counter_ptr = pointer.into();
                let pointer = (uniform_start + first * 8).wrapping_sub(record_start);
                record.uniform_counter_ptr = if has_uniform { pointer } else { 0 }.into();
                record.num_counters = (count as u32).into();
                let bitmap: Vec<u8> = (0..random(4)).map(|_| random(256) as u8).collect();
                let pointer = (bitmaps_start + bitmaps.len() as u64).wrapping_sub(record_start);
                record.bitmap_ptr = pointer.into();
                record.num_bitmap_bytes = (bitmap.len() as u32).into();
                bitmaps.extend_from_slice(&bitmap);
                format.write_record(&record, &mut bytes).unwrap();
                data.extend_from_slice(&bytes);
                let (from, to) = (first as usize, (first + count) as usize);
                let words = |bytes: &[u8]| {
                    bytes[8 * from..8 * to]
                        .chunks_exact(8)
                        .map(LittleEndian::read_u64)
                        .collect()
                };
                expected.push(profraw::Record {
                    name,
                    hash: n + 1000,
                    counters: match unit {
                        1 => counters[from..to]
                            .iter()
                            .map(|&b| u64::from(b == 0))
                            .collect(),
                        _ => words(&counters),
                    },
                    uniform: format.has_uniform.then(|| {
                        if has_uniform {
                            words(&uniform)
                        } else {
                            vec![0; count as usize]
                        }
                    }),
                    bitmap,
                });
            }
            let flag = if bytes_only {
                profraw::format::BYTE_COVERAGE
            } else {
                0
            };
            let names = functions.join("\x01");
            // The size as two bytes of ULEB128, even if one is enough, and 0: not compressed.
            let size = [names.len() as u8 | 0x80, (names.len() >> 7) as u8, 0];
            let names = [&size, names.as_bytes()].concat();
            let id = vec![7; random(30) as usize];
            let sections = Sections {
                version: format.version | flag,
                bounds: bounds(
                    layout,
                    [
                        range(data_start, &data),
                        range(counters_start, &counters),
                        range(uniform_start, &uniform),
                    ],
                ),
                names,
                bitmaps: vec![Bitmaps {
                    range: range(bitmaps_start, &bitmaps),
                    offset: 0,
                }],
            };
            let bytes = [&data[..], &counters, &uniform, &bitmaps];
            let image = encode(&sections, bytes, (round % 2 == 0).then_some(&id))
                .unwrap()
                .bytes;
            let layout = profraw::Layout::read(&image).unwrap();
            assert_eq!(layout.end, image.len());
            assert_eq!(&image[layout.bitmap.clone()], bitmaps);
            assert_eq!(&image[layout.names.clone()], sections.names);
            assert_eq!(profraw::records(&image, &layout).unwrap(), expected);
            if let Some(dir) = &out
                && round < 200
                && !expected.is_empty()
            {
                let lines = functions.iter().zip(&expected);
                let mut lines: Vec<_> = lines
                    .map(|(name, record)| {
                        format!("{name}: {:?} {:?}\n", record.counters, record.bitmap)
                    })
                    .collect();
                lines.sort();
                let file = dir.join(format!("{round}.raw{}", format.version));
                std::fs::write(file.with_extension("expected"), lines.concat()).unwrap();
                std::fs::write(&file, &image).unwrap();
            }
        }
    }
}
