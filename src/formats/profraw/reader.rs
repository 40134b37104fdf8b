//! Reads raw profiles of versions 10 and 11 from any source. Nothing in them is trusted: each part is either inside
//! the file, or an error gives its offset.

use crate::format::{COUNTER, Format, Header, MAGIC, RawHeader, V10, V11, VARIANT_MASK};
use std::ops::Range;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

/// Size of a virtual table's record (`VTableProfData`) in bytes.
const VTABLE: u64 = 24;

/// Why bytes are not a valid raw profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `part` begins at byte `at` of the profile. `size` is the number of bytes from the profile's beginning to the end
    /// of the file.
    #[error("at byte {at:#x}: {part} extend past the end of the file ({size} bytes)")]
    Short {
        part: &'static str,
        at: u64,
        size: usize,
    },
    #[error("not a raw profile of a little-endian 64-bit target: it begins with {0:#x}")]
    Magic(u64),
    #[error("raw profile version {0} is not supported; versions 10 and 11 are")]
    Version(u64),
    #[error("record {record}: {part} out of bounds")]
    Record { record: usize, part: &'static str },
    /// A counter, or a byte of a bitmap, belongs to one function. `record` is the first one with which the records claim more
    /// than there are.
    #[error(
        "record {record}: the records up to it claim {claimed} {part}, but there are {existing}"
    )]
    Claimed {
        record: usize,
        part: &'static str,
        claimed: usize,
        existing: usize,
    },
    /// `at` is the offset of the value profile from the profile's beginning.
    #[error("at byte {at:#x}: the value profile of record {record} has an invalid size")]
    Values { record: usize, at: usize },
    #[error("no memory for the positions of its counters")]
    OutOfMemory,
}

/// The ranges of the parts of a raw profile, in bytes from its beginning. The parts are in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub header: Header,
    pub binary_ids: Range<usize>,
    pub data: Range<usize>,
    pub counters: Range<usize>,
    pub bitmap: Range<usize>,
    pub uniform: Range<usize>,
    pub names: Range<usize>,
    /// End of the names, or of the virtual tables, which only host profiles have. The value profiles follow, if the
    /// records have any, and then the next profile in the file: see [`end`].
    pub end: usize,
}

/// Lays out the parts of a profile one after another.
struct Parts {
    /// End of the parts so far.
    at: u64,
    size: usize,
}

impl Parts {
    /// The next part: `count` entries of `unit` bytes, then padding.
    fn next(
        &mut self,
        part: &'static str,
        count: u64,
        unit: u64,
        padding: u64,
    ) -> Result<Range<usize>, Error> {
        let (at, size) = (self.at, self.size);
        let ends = || {
            let end = count.checked_mul(unit)?.checked_add(at)?;
            Some((end, end.checked_add(padding)?))
        };
        let (end, next) = ends()
            .filter(|&(_, next)| next <= size as u64)
            .ok_or(Error::Short { part, at, size })?;
        self.at = next;
        Ok(at as usize..end as usize)
    }
}

impl Layout {
    /// Reads the header of the profile at the beginning of `bytes`, which extend to the end of the file.
    pub fn read(bytes: &[u8]) -> Result<Layout, Error> {
        Layout::of_file(bytes, bytes.len())
    }

    /// Like [`Layout::read`], given the first `bytes` of `size` bytes: [`crate::format::MAX_HEADER_SIZE`] are enough.
    pub fn of_file(bytes: &[u8], size: usize) -> Result<Layout, Error> {
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(U64::read_from_bytes(bytes).ok()?.get())
        };
        let cut_off = Error::Short {
            part: "header words",
            at: 0,
            size,
        };
        let magic = word(0).ok_or(cut_off.clone())?;
        if magic != MAGIC {
            return Err(Error::Magic(magic));
        }
        let version = word(8).ok_or(cut_off.clone())?;
        let raw_version = version & !VARIANT_MASK;
        let format = Format::of_version(raw_version).ok_or(Error::Version(raw_version))?;
        let raw = RawHeader::read(format, bytes).ok_or(cut_off)?;
        let header = Header {
            version,
            binary_ids: raw.binary_ids_size.get(),
            num_data: raw.num_data.get(),
            num_counters: raw.num_counters.get(),
            padding_after_counters: raw.padding_bytes_after_counters.get(),
            num_bitmap_bytes: raw.num_bitmap_bytes.get(),
            padding_after_bitmaps: raw.padding_bytes_after_bitmap_bytes.get(),
            bitmap_delta: raw.bitmap_delta.get(),
            num_uniform: raw.num_uniform_counters.get(),
            uniform_delta: raw.uniform_counters_delta.get(),
            names: raw.names_size.get(),
            counters_delta: raw.counters_delta.get(),
        };
        let mut parts = Parts {
            at: 8 * Header::words_of(version) as u64,
            size,
        };
        let (record, counter) = (format.record as u64, header.counter());
        let binary_ids = parts.next("binary ids", header.binary_ids, 1, 0)?;
        let after = raw.padding_bytes_before_counters.get();
        let data = parts.next("data records", header.num_data, record, after)?;
        let after = header.padding_after_counters;
        let counters = parts.next("counters", header.num_counters, counter, after)?;
        let after = header.padding_after_bitmaps;
        let bitmap = parts.next("bitmaps", header.num_bitmap_bytes, 1, after)?;
        let after = raw.padding_bytes_after_uniform_counters.get();
        let uniform = parts.next("uniform counters", header.num_uniform, COUNTER, after)?;
        let padding = |size: u64| size.wrapping_neg() % 8;
        let names = parts.next("names", header.names, 1, padding(header.names))?;
        parts.next("virtual tables", raw.num_vtables.get(), VTABLE, 0)?;
        let vtable_names = raw.vnames_size.get();
        let vtable_padding = padding(vtable_names);
        parts.next("names of virtual tables", vtable_names, 1, vtable_padding)?;
        Ok(Layout {
            header,
            binary_ids,
            data,
            counters,
            bitmap,
            uniform,
            names,
            end: parts.at as usize,
        })
    }

    pub fn format(&self) -> &'static Format {
        if self.header.raw_version() == V10.version {
            return &V10;
        }
        &V11
    }
}

/// The end of the names of files, next to profiles, with device code that the runtime has instrumented in a process.
pub const DEVICE_CODE: &str = ".devprof.cubin";

/// The directory, next to profiles, with a directory for each test.
pub const TESTS: &str = "tests";
/// The file in the directory of a test that has the test's name. The profiles in this directory have counts that others have as well.
pub const TEST_NAME: &str = ".devprof-test";

/// An id in hexadecimal.
pub fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The ids in [`Layout::binary_ids`], in hexadecimal. Each one is its length and its bytes, padded to a multiple of 8.
pub fn binary_ids(mut bytes: &[u8]) -> Vec<String> {
    let mut ids = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some(id) = rest.get(..length).filter(|id| !id.is_empty()) else {
            break;
        };
        ids.push(hex(id));
        bytes = rest.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    ids
}

/// End of the raw profile at the beginning of `bytes`. The next profile in the file starts there. The value profiles
/// (`ValueProfData`), one per record with value sites, follow the parts of the layout.
///
/// # Errors
/// A value profile's size is invalid.
pub fn end(bytes: &[u8], layout: &Layout) -> Result<usize, Error> {
    end_of_file(layout, bytes.len(), |range| Ok(bytes[range].to_vec()))
}

/// Like [`end`], for a profile in a file that is not in memory. `size` is the number of bytes from the beginning of the
/// profile to the end of the file, `read` reads a range of them.
pub fn end_of_file<E: From<Error>>(
    layout: &Layout,
    size: usize,
    mut read: impl FnMut(Range<usize>) -> Result<Vec<u8>, E>,
) -> Result<usize, E> {
    /// Records per read.
    const RECORDS: usize = 1024;
    let format = layout.format();
    let mut end = layout.end;
    for start in layout.data.clone().step_by(RECORDS * format.record) {
        let part = start..layout.data.end.min(start + RECORDS * format.record);
        let first = (start - layout.data.start) / format.record;
        for (n, record) in format.records(&read(part)?).enumerate() {
            if !record.has_value_sites() {
                continue;
            }
            let error = Error::Values {
                record: first + n,
                at: end,
            };
            if size - end < 8 {
                return Err(error.into());
            }
            // The first field is the total size in bytes.
            let Ok(total) = U32::read_from_bytes(&read(end..end + 4)?) else {
                return Err(error.into());
            };
            let total = total.get() as usize;
            if total < 8 || !total.is_multiple_of(8) || total > size - end {
                return Err(error.into());
            }
            end += total;
        }
    }
    Ok(end)
}

/// The counters of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Low 64 bits of the MD5 of the function's name.
    pub name: u64,
    /// Hash of the function's structure.
    pub hash: u64,
    /// Numbers of executions. With byte coverage, 1 means executed.
    pub counters: Vec<u64>,
    /// Numbers of executions by waves with all lanes active; `None` in raw version 10.
    pub uniform: Option<Vec<u64>>,
    /// MC/DC: a bit per test vector of each decision, 1 if it was executed. Empty without decisions.
    pub bitmap: Vec<u8>,
}

/// The ranges of one function's counters, in bytes from the beginning of the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRanges {
    /// See [`Record`].
    pub name: u64,
    pub hash: u64,
    pub counters: Range<usize>,
    pub uniform: Option<Range<usize>>,
    /// Empty if the function has none.
    pub bitmap: Range<usize>,
}

/// The functions of the raw profile at the beginning of `bytes`, in the order of its records. In a damaged file, ranges
/// may overlap, but together they have no more counters and bytes of bitmaps than the file. All errors are [`Error::Record`] or
/// [`Error::Claimed`].
pub fn counter_ranges<'a>(
    bytes: &'a [u8],
    layout: &'a Layout,
) -> impl Iterator<Item = Result<CounterRanges, Error>> + 'a {
    let format = layout.format();
    let records = format.records(&bytes[layout.data.clone()]);
    let header = &layout.header;
    let mut sections = [
        Section::new(
            "counters",
            &layout.counters,
            header.counters_delta,
            header.counter(),
        ),
        Section::new(
            "uniform counters",
            &layout.uniform,
            header.uniform_delta,
            COUNTER,
        ),
        Section::new("bytes of bitmaps", &layout.bitmap, header.bitmap_delta, 1),
    ];
    records.enumerate().map(move |(n, record)| {
        let start = (n * format.record) as u64;
        let [counters, uniform, bitmaps] = &mut sections;
        let count = record.num_counters.get();
        let counters = counters.claim(n, record.counter_ptr.get().wrapping_add(start), count)?;
        let uniform = match record.uniform_counter_ptr.get() {
            0 => None,
            pointer => Some(uniform.claim(n, pointer.wrapping_add(start), count)?),
        };
        let bitmap = match record.num_bitmap_bytes.get() {
            0 => 0..0,
            size => bitmaps.claim(n, record.bitmap_ptr.get().wrapping_add(start), size)?,
        };
        Ok(CounterRanges {
            name: record.name_ref.get(),
            hash: record.func_hash.get(),
            counters,
            uniform,
            bitmap,
        })
    })
}

/// A section with entries of functions.
struct Section<'a> {
    /// What its entries are called.
    part: &'static str,
    range: &'a Range<usize>,
    /// The distance from the first record, according to the header.
    delta: u64,
    /// Size of an entry in bytes.
    unit: usize,
    /// Number of entries of the functions so far.
    claimed: usize,
}

impl<'a> Section<'a> {
    fn new(part: &'static str, range: &'a Range<usize>, delta: u64, unit: u64) -> Section<'a> {
        Section {
            part,
            range,
            delta,
            unit: unit as usize,
            claimed: 0,
        }
    }

    /// The range of `count` entries of record `n`. `pointer` is relative to the first record.
    fn claim(&mut self, n: usize, pointer: u64, count: u32) -> Result<Range<usize>, Error> {
        let (part, count) = (self.part, count as usize);
        let range = || {
            let offset = usize::try_from(pointer.wrapping_sub(self.delta)).ok()?;
            let start = self.range.start.checked_add(offset)?;
            let end = start.checked_add(count.checked_mul(self.unit)?)?;
            (offset % self.unit == 0 && end <= self.range.end).then_some(start..end)
        };
        let range = range().ok_or(Error::Record { record: n, part })?;
        self.claimed += count;
        let existing = self.range.len() / self.unit;
        if self.claimed > existing {
            return Err(Error::Claimed {
                record: n,
                part,
                claimed: self.claimed,
                existing,
            });
        }
        Ok(range)
    }
}

/// The counters of all functions of the raw profile at the beginning of `bytes`.
///
/// # Errors
/// [`Error::Record`], [`Error::Claimed`]
pub fn records(bytes: &[u8], layout: &Layout) -> Result<Vec<Record>, Error> {
    let words = |range: Range<usize>| {
        let (words, _) = bytes[range].as_chunks();
        words.iter().map(|&word| u64::from_le_bytes(word)).collect()
    };
    counter_ranges(bytes, layout)
        .map(|ranges| {
            let ranges = ranges?;
            Ok(Record {
                name: ranges.name,
                hash: ranges.hash,
                counters: counts_in(bytes, layout, ranges.counters).collect(),
                uniform: ranges.uniform.map(words),
                bitmap: bytes[ranges.bitmap].to_vec(),
            })
        })
        .collect()
}

/// The counters in a range of a raw profile: numbers of executions, or 1 and 0 with byte coverage.
pub fn counts_in<'a>(
    bytes: &'a [u8],
    layout: &Layout,
    range: Range<usize>,
) -> impl Iterator<Item = u64> + 'a {
    let bytes = &bytes[range];
    // 0 means executed.
    let is_bytes = layout.header.counter() == 1;
    let (small, large) = if is_bytes {
        (bytes, &[][..])
    } else {
        (&[][..], bytes)
    };
    let small = small.iter().map(|&byte| u64::from(byte == 0));
    let large = large.as_chunks().0.iter();
    small.chain(large.map(|&word| u64::from_le_bytes(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 10: two records, a virtual table with a name of 3 bytes, and value profiles of these sizes.
    fn profile(sites: [u16; 2], values: &[u32]) -> Vec<u8> {
        let mut words = Header {
            version: V10.version,
            num_data: 2,
            ..Header::default()
        }
        .words();
        words[13] = 1;
        words[14] = 3;
        for sites in sites {
            words.extend([0, 0, 0, 0, 0, 0, u64::from(sites) << 32, 0]);
        }
        words.extend([0; 4]);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for size in values {
            bytes.extend(size.to_le_bytes());
            bytes.resize(bytes.len() - 4 + *size as usize, 0);
        }
        bytes
    }

    #[test]
    fn a_counter_belongs_to_one_record() {
        // Two counters, and records with these counter pointers and numbers of counters.
        let functions = |records: [(u64, u64); 2]| {
            let header = Header {
                version: V10.version,
                num_data: 2,
                num_counters: 2,
                counters_delta: 128,
                ..Header::default()
            };
            let mut words = header.words();
            for (pointer, counters) in records {
                words.extend([0, 0, pointer, 0, 0, 0, counters, 0]);
            }
            words.extend([3, 4]);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            super::records(&bytes, &Layout::read(&bytes)?)
        };
        let counters = |records| {
            let found: Vec<Record> = functions(records)?;
            Ok(found.into_iter().map(|found| found.counters).collect())
        };
        assert_eq!(counters([(128, 1), (72, 1)]), Ok(vec![vec![3], vec![4]]));
        let claimed = Error::Claimed {
            record: 1,
            part: "counters",
            claimed: 4,
            existing: 2,
        };
        assert_eq!(counters([(128, 2), (64, 2)]), Err(claimed));
    }

    fn ends(bytes: &[u8]) -> Result<usize, Error> {
        end(bytes, &Layout::read(bytes)?)
    }

    #[test]
    fn a_profile_ends_after_its_virtual_tables_and_value_profiles() {
        let plain = profile([0, 0], &[]);
        assert_eq!(ends(&plain), Ok(plain.len()));
        let both = profile([1, 2], &[16, 24]);
        assert_eq!(ends(&both), Ok(both.len()));
        let second = profile([0, 2], &[24]);
        assert_eq!(ends(&second), Ok(second.len()));
        let two = [second.clone(), both].concat();
        assert_eq!(ends(&two), Ok(second.len()));
        let missing = profile([1, 2], &[16]);
        let at = missing.len();
        assert_eq!(ends(&missing), Err(Error::Values { record: 1, at }));
        let odd = profile([1, 0], &[12]);
        let at = odd.len() - 12;
        assert_eq!(ends(&odd), Err(Error::Values { record: 0, at }));
        let short = &plain[..plain.len() - 8];
        let part = "names of virtual tables";
        assert!(matches!(ends(short), Err(Error::Short { part: found, .. }) if found == part));
    }
}
