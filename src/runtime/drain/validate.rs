//! The second stage: checks all addresses and sizes in device memory against the loaded segments. Ranges that pass are
//! safe to copy.

use crate::gpu::runtime::{Variable, inside};
use crate::support::alloc::{self, OutOfMemory};
use profraw::format::{
    BYTE_COVERAGE, COUNTER, DataRecord, Format, SectionBounds, TableLayout, V10, VARIANT_MASK,
    counter_size, refused_variant,
};
use std::ops::Range;

/// An invalid table, record or name of a code object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    #[error("{0} has {1} bytes; tables of 48, 56 and 72 bytes are supported")]
    TableSize(String, u64),
    #[error("{name} at {address:#x} is outside the loaded segments")]
    TableOutside { name: String, address: u64 },
    #[error("only {0} bytes of a table were copied")]
    Truncated(usize),
    #[error("{part} end before they begin ({start:#x} to {end:#x})")]
    EndBeforeStart {
        part: &'static str,
        start: u64,
        end: u64,
    },
    #[error("{part} at {start:#x} to {end:#x}: outside the loaded segments")]
    Outside {
        part: &'static str,
        start: u64,
        end: u64,
    },
    #[error("{part} at {start:#x} are not aligned to 8 bytes")]
    Unaligned { part: &'static str, start: u64 },
    #[error("{part} have {size} bytes, not a multiple of {unit}")]
    PartialEntry {
        part: &'static str,
        size: u64,
        unit: u64,
    },
    #[error("raw profile version {found} in a table with the layout of version {expected}")]
    Version { found: u64, expected: u64 },
    #[error("profiles of kind '{0}' are not supported on devices")]
    Variant(String),
    #[error(transparent)]
    Names(#[from] profraw::names::Damage),
    #[error("none of the {0} records points to counters")]
    NoRecord(usize),
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// The bounds of one table's sections. Device addresses; each section is inside one loaded segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub layout: TableLayout,
    pub names: Range<u64>,
    pub counters: Range<u64>,
    pub data: Range<u64>,
    /// Empty if the raw version has none.
    pub uniform: Range<u64>,
    /// The address of the raw version; `None` in the oldest layout.
    pub version: Option<u64>,
}

impl Bounds {
    pub fn format(&self) -> &'static Format {
        self.layout.format()
    }

    /// Whether the table's translation units have no instrumented functions.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.counters.is_empty()
    }

    /// The ranges to read once. They are constant, except for the records.
    pub fn fixed(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let version = self.version.map(|at| at..at + 8);
        [self.names.clone(), self.data.clone()]
            .into_iter()
            .chain(version)
            .filter(|range| !range.is_empty())
    }
}

/// The layout and the range of a table, validated by its size and address.
pub fn table(
    table: &Variable,
    segments: &[Range<u64>],
) -> Result<(TableLayout, Range<u64>), Defect> {
    let layout = TableLayout::from_size(table.size)
        .ok_or_else(|| Defect::TableSize(table.name.clone(), table.size))?;
    let outside = || Defect::TableOutside {
        name: table.name.clone(),
        address: table.address,
    };
    let range = table.address..table.address.checked_add(table.size).ok_or_else(outside)?;
    if inside(&range, segments) {
        Ok((layout, range))
    } else {
        Err(outside())
    }
}

/// The validated bounds in a table's bytes.
pub fn bounds(
    layout: TableLayout,
    bytes: &[u8],
    segments: &[Range<u64>],
) -> Result<Bounds, Defect> {
    let table = layout.read(bytes).ok_or(Defect::Truncated(bytes.len()))?;
    let part = |part, bounds: SectionBounds| {
        section(part, bounds.start.get()..bounds.stop.get(), segments)
    };
    let uniform = table
        .uniform
        .map(|uniform| part("the uniform counters", uniform));
    let bounds = Bounds {
        layout,
        uniform: uniform.transpose()?.unwrap_or_default(),
        names: part("the names", table.names)?,
        counters: part("the counters", table.counters)?,
        data: part("the data records", table.data)?,
        version: table.version,
    };
    let record = bounds.format().record as u64;
    let size = bounds.data.end - bounds.data.start;
    if !size.is_multiple_of(record) {
        return Err(Defect::PartialEntry {
            part: "the data records",
            size,
            unit: record,
        });
    }
    check_aligned("the data records", &bounds.data)?;
    check_aligned("the uniform counters", &bounds.uniform)?;
    if let Some(at) = bounds.version {
        let end = at
            .checked_add(8)
            .filter(|&end| inside(&(at..end), segments));
        end.ok_or(Defect::Outside {
            part: "the raw version",
            start: at,
            end: at.saturating_add(8),
        })?;
    }
    Ok(bounds)
}

fn check_aligned(part: &'static str, range: &Range<u64>) -> Result<(), Defect> {
    let start = range.start;
    if start.is_multiple_of(8) {
        return Ok(());
    }
    Err(Defect::Unaligned { part, start })
}

fn section(
    part: &'static str,
    range: Range<u64>,
    segments: &[Range<u64>],
) -> Result<Range<u64>, Defect> {
    let Range { start, end } = range;
    if end < start {
        return Err(Defect::EndBeforeStart { part, start, end });
    }
    // The addresses of an empty section are arbitrary.
    if start == end {
        return Ok(0..0);
    }
    if !inside(&range, segments) {
        return Err(Defect::Outside { part, start, end });
    }
    Ok(range)
}

/// Validates the raw version, with its variant flags, against the layout and the size of the counters. `found`: the
/// version in device memory; `None` for the oldest layout, which does not contain it. `records`: the bytes of the data records.
pub fn version(bounds: &Bounds, found: Option<u64>, records: &[u8]) -> Result<u64, Defect> {
    let expected = bounds.format().version;
    let mut version = found.unwrap_or(expected);
    if version & !VARIANT_MASK != expected {
        return Err(Defect::Version {
            found: version & !VARIANT_MASK,
            expected,
        });
    }
    if let Some(name) = refused_variant(version) {
        return Err(Defect::Variant(name));
    }
    if version == V10.version && has_bytes(bounds, records) {
        version |= BYTE_COVERAGE;
    }
    let counter = counter_size(version);
    // Counters of one byte begin wherever the linker put them.
    if counter == COUNTER {
        check_aligned("the counters", &bounds.counters)?;
    }
    for (part, range, unit) in [
        ("the counters", &bounds.counters, counter),
        ("the uniform counters", &bounds.uniform, COUNTER),
    ] {
        let size = range.end - range.start;
        if !size.is_multiple_of(unit) {
            return Err(Defect::PartialEntry { part, size, unit });
        }
    }
    Ok(version)
}

/// Adjacent MC/DC bitmaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmaps {
    /// Device addresses.
    pub range: Range<u64>,
    /// The size of all bitmaps at lower addresses. In a profile, all bitmaps follow one another.
    pub offset: u64,
}

/// The MC/DC bitmaps of valid records, sorted by their addresses, as few as possible. The table does not contain their section. A bitmap
/// that is not inside a loaded segment, or overlaps with other sections of the table, is left out. `records`: the bytes of the
/// data records.
pub fn bitmaps(
    bounds: &Bounds,
    records: &[u8],
    segments: &[Range<u64>],
) -> Result<Vec<Bitmaps>, OutOfMemory> {
    let records = bounds.format().records(records);
    let addresses = bounds.data.clone().step_by(bounds.format().record);
    let valid = records.zip(addresses).filter_map(|(record, address)| {
        let range = bitmap(&record, address)?;
        let others = [
            &bounds.names,
            &bounds.counters,
            &bounds.data,
            &bounds.uniform,
            &bounds.version.map_or(0..0, |at| at..at.saturating_add(8)),
        ];
        let overlaps = |other: &&Range<u64>| range.start < other.end && other.start < range.end;
        let is_valid = inside(&range, segments) && !others.iter().any(overlaps);
        is_valid.then_some(range)
    });
    let mut found: Vec<Bitmaps> = Vec::new();
    for range in valid {
        alloc::reserve(&mut found, 1)?;
        found.push(Bitmaps { range, offset: 0 });
    }
    found.sort_unstable_by_key(|bitmaps| bitmaps.range.start);
    found.dedup_by(|Bitmaps { range: next, .. }, Bitmaps { range: last, .. }| {
        // A range in two segments could not be copied.
        let joined = last.start..last.end.max(next.end);
        let is_joined = next.start <= last.end && inside(&joined, segments);
        if is_joined {
            *last = joined;
        }
        is_joined
    });
    let mut offset = 0;
    for bitmaps in &mut found {
        bitmaps.offset = offset;
        offset += bitmaps.range.end - bitmaps.range.start;
    }
    Ok(found)
}

/// The bitmap of a record at `address`, not validated. `None` if it has none, or its address is too large.
pub fn bitmap(record: &DataRecord, address: u64) -> Option<Range<u64>> {
    let size = u64::from(record.num_bitmap_bytes.get());
    let start = address.wrapping_add(record.bitmap_ptr.get());
    let end = start.checked_add(size)?;
    (size > 0).then_some(start..end)
}

/// Whether counters are bytes: there are as many as bytes. clang 22 removes the variable with the flag for byte coverage from
/// device code, because nothing refers to it, and the device runtime's has no flags.
fn has_bytes(bounds: &Bounds, records: &[u8]) -> bool {
    let format = bounds.format();
    let records = records.chunks_exact(format.record);
    let numbers = records.filter_map(|record| format.read_record(record));
    let all: u64 = numbers.map(|r| u64::from(r.num_counters.get())).sum();
    all > 0 && all == bounds.counters.end - bounds.counters.start
}

/// Validates the names section, which is written unchanged.
pub fn names(bytes: &[u8]) -> Result<(), Defect> {
    profraw::names::chunks(bytes).try_for_each(|chunk| chunk.map(|_| ()).map_err(Defect::Names))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: &[Range<u64>] = &[0x1000..0x2000, 0x4000..0x5000];

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn valid() -> [u64; 9] {
        [
            0x1100,
            0x1121,
            0x4000,
            0x4030,
            0x4060,
            0x4060 + 2 * 72,
            0x4030,
            0x4060,
            0x10f8,
        ]
    }

    fn changed(n: usize, to: u64) -> Result<Bounds, Defect> {
        let mut words = valid();
        words[n] = to;
        bounds(TableLayout::Uniform, &bytes(&words), SEGMENTS)
    }

    #[test]
    fn a_valid_table_has_bounds() {
        let bounds = bounds(TableLayout::Uniform, &bytes(&valid()), SEGMENTS).unwrap();
        assert_eq!(
            (bounds.names, bounds.data),
            (0x1100..0x1121, 0x4060..0x40f0)
        );
        assert_eq!(
            (bounds.counters, bounds.uniform, bounds.version),
            (0x4000..0x4030, 0x4030..0x4060, Some(0x10f8))
        );
    }

    #[test]
    fn invalid_sections_are_refused() {
        let defects = [
            (1, 0x10ff),
            (1, 0x2001),
            (2, 0x3000),
            (3, u64::MAX),
            (6, 0x4031),
            (5, 0x40ef),
            (7, 0x4020),
            (8, 0x1ff9),
            (8, u64::MAX),
        ]
        .map(|(n, to)| changed(n, to).unwrap_err().to_string());
        let expected = "\
the names end before they begin (0x1100 to 0x10ff)
the names at 0x1100 to 0x2001: outside the loaded segments
the counters at 0x3000 to 0x4030: outside the loaded segments
the counters at 0x4000 to 0xffffffffffffffff: outside the loaded segments
the uniform counters at 0x4031 are not aligned to 8 bytes
the data records have 143 bytes, not a multiple of 72
the uniform counters end before they begin (0x4030 to 0x4020)
the raw version at 0x1ff9 to 0x2001: outside the loaded segments
the raw version at 0xffffffffffffffff to 0xffffffffffffffff: outside the loaded segments";
        assert_eq!(defects.join("\n"), expected);
        // A range that spans two segments is outside, too.
        assert!(changed(0, 0x1000).is_ok());
        let mut words = valid();
        (words[2], words[3]) = (0x1ff8, 0x4008);
        assert!(matches!(
            bounds(TableLayout::Uniform, &bytes(&words), SEGMENTS),
            Err(Defect::Outside { .. })
        ));
    }

    #[test]
    fn a_table_must_be_in_a_segment_and_have_a_supported_size() {
        let symbol = |address, size| Variable {
            name: "t".into(),
            address,
            size,
        };
        assert_eq!(
            table(&symbol(0x4000, 72), SEGMENTS),
            Ok((TableLayout::Uniform, 0x4000..0x4048))
        );
        assert_eq!(
            table(&symbol(0x4000, 64), SEGMENTS),
            Err(Defect::TableSize("t".into(), 64))
        );
        for address in [0xff8, 0x1fc0, 0x3000, u64::MAX - 8] {
            assert!(
                matches!(
                    table(&symbol(address, 72), SEGMENTS),
                    Err(Defect::TableOutside { .. })
                ),
                "{address:#x}"
            );
        }
    }

    /// The starts and ends of the bitmaps, of which the offsets follow from their sizes.
    fn ranges(bounds: &Bounds, records: &[u8], segments: &[Range<u64>]) -> Vec<(u64, u64)> {
        let mut offset = 0;
        let found = bitmaps(bounds, records, segments).unwrap();
        let range = |bitmaps: Bitmaps| {
            assert_eq!(bitmaps.offset, offset);
            offset += bitmaps.range.end - bitmaps.range.start;
            (bitmaps.range.start, bitmaps.range.end)
        };
        found.into_iter().map(range).collect()
    }

    #[test]
    fn counters_are_aligned_unless_they_are_bytes() {
        let mut words = valid();
        words[2] = 0x4001;
        let bounds = bounds(TableLayout::Uniform, &bytes(&words), SEGMENTS).unwrap();
        let unaligned = Defect::Unaligned {
            part: "the counters",
            start: 0x4001,
        };
        assert_eq!(version(&bounds, Some(11), &[]), Err(unaligned));
        let flags = 11 | BYTE_COVERAGE;
        assert_eq!(version(&bounds, Some(flags), &[]), Ok(flags));
    }

    #[test]
    fn bitmaps_are_found_by_their_records_and_validated() {
        let bounds = bounds(TableLayout::Uniform, &bytes(&valid()), SEGMENTS).unwrap();
        // Addresses and sizes of two bitmaps, and the ranges that are found.
        for (given, found) in [
            ([(0x4010, 0), (0x4020, 0)], vec![]),
            // After all sections, in one range and in two; the same one twice.
            ([(0x4103, 5), (0x4100, 3)], vec![(0x4100, 0x4108)]),
            (
                [(0x4110, 5), (0x4100, 3)],
                vec![(0x4100, 0x4103), (0x4110, 0x4115)],
            ),
            ([(0x4100, 3), (0x4100, 3)], vec![(0x4100, 0x4103)]),
            // Outside the segments, or in two.
            ([(0x4fff, 2), (0x1fff, 1)], vec![(0x1fff, 0x2000)]),
            ([(0x3000, 1), (u64::MAX, 1)], vec![]),
            ([(0x4100, u32::MAX), (0x1000, 0xf8)], vec![(0x1000, 0x10f8)]),
            // In the raw version, the names, the counters, the records, the uniform counters.
            ([(0x10ff, 1), (0x10f0, 9)], vec![]),
            ([(0x1120, 1), (0x4000, 1)], vec![]),
            ([(0x40ef, 2), (0x4058, 8)], vec![]),
            ([(0x3fff, 0x101), (0x40f0, 1)], vec![(0x40f0, 0x40f1)]),
        ] {
            let mut records = [0; 2 * 72];
            for (n, (address, size)) in given.into_iter().enumerate() {
                let at = 0x4060 + 72 * n as u64;
                let pointer = u64::wrapping_sub(address, at);
                records[72 * n + 32..][..8].copy_from_slice(&pointer.to_le_bytes());
                records[72 * n + 68..][..4].copy_from_slice(&u32::to_le_bytes(size));
            }
            assert_eq!(ranges(&bounds, &records, SEGMENTS), found, "{given:#x?}");
        }
    }

    /// Nothing can be copied across the end of a segment.
    #[test]
    fn bitmaps_of_adjacent_segments_are_not_joined() {
        let segments = [0x1000..0x2000, 0x4000..0x4100, 0x4100..0x4200];
        let bounds = bounds(TableLayout::Uniform, &bytes(&valid()), &segments).unwrap();
        let mut records = [0; 2 * 72];
        for (n, address) in [0x40f8_u64, 0x4100].into_iter().enumerate() {
            let pointer = address.wrapping_sub(0x4060 + 72 * n as u64);
            records[72 * n + 32..][..8].copy_from_slice(&pointer.to_le_bytes());
            records[72 * n + 68] = 8;
        }
        assert_eq!(
            ranges(&bounds, &records, &segments),
            [(0x40f8, 0x4100), (0x4100, 0x4108)]
        );
    }

    #[test]
    fn counters_of_version_10_are_bytes_if_there_are_as_many_as_bytes() {
        let words = [
            0x1100,
            0x1121,
            0x4001,
            0x4007,
            0x4060,
            0x4060 + 2 * 64,
            0x10f8,
        ];
        let bounds = bounds(TableLayout::Versioned, &bytes(&words), SEGMENTS).unwrap();
        let records = |counters: u32| {
            let mut bytes = [0; 2 * 64];
            for record in [0, 64] {
                bytes[record + 48..][..4].copy_from_slice(&counters.to_le_bytes());
            }
            version(&bounds, Some(10), &bytes)
        };
        assert_eq!(records(3), Ok(10 | BYTE_COVERAGE));
        assert!(matches!(records(1), Err(Defect::Unaligned { .. })));
    }

    #[test]
    fn the_version_must_match_the_layout_and_its_flags_must_be_supported() {
        let bounds = bounds(TableLayout::Uniform, &bytes(&valid()), SEGMENTS).unwrap();
        let other = |found| {
            Err(Defect::Version {
                found,
                expected: 11,
            })
        };
        for (found, result) in [
            (11, Ok(11)),
            (11 | 1 << 56, Ok(11 | 1 << 56)),
            (10, other(10)),
            (12, other(12)),
            (11 | BYTE_COVERAGE, Ok(11 | BYTE_COVERAGE)),
            (11 | 1 << 63, Err(Defect::Variant("temporal".into()))),
            (11 | 1 << 40, Err(Defect::Variant("flag 40".into()))),
        ] {
            assert_eq!(version(&bounds, Some(found), &[]), result);
        }
    }
}
