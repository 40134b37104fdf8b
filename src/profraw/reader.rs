//! Reading a raw profile of version 10 or 11, of anybody's making. Bytes are hostile until checked: every part is
//! inside the file, or there is an error that says where it is not.

use crate::format::{COUNTER, Format, Header, MAGIC, V10, V11, VARIANT_MASK};
use byteorder::{ByteOrder, LittleEndian};
use std::ops::Range;

/// Bytes of a virtual table's record.
const VTABLE: u64 = 24;

/// Why bytes are no raw profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("at byte {at:#x}: {part} end beyond the file's {size} bytes")]
    Short {
        part: &'static str,
        at: u64,
        size: usize,
    },
    #[error("no raw profile of a little-endian 64-bit target: it begins with {0:#x}")]
    Magic(u64),
    #[error("raw profile version {0}; versions 10 and 11 are known")]
    Version(u64),
    #[error("record {record} has its {part} outside the profile's")]
    Record { record: usize, part: &'static str },
    #[error("at byte {at:#x}: the value profile of record {record} has no size that fits")]
    Values { record: usize, at: usize },
}

/// Where the parts of one raw profile are, in bytes from its beginning. They follow one another in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub header: Header,
    pub binary_ids: Range<usize>,
    pub data: Range<usize>,
    pub counters: Range<usize>,
    pub bitmap: Range<usize>,
    pub uniform: Range<usize>,
    pub names: Range<usize>,
    /// Behind the names (and the virtual tables, which only a host has). Value profiles follow, if the records have
    /// any, and then the next profile of the file: see [`end`].
    pub end: usize,
}

impl Layout {
    /// Reads the header at the beginning of `bytes`.
    pub fn read(bytes: &[u8]) -> Result<Layout, Error> {
        Layout::of_file(bytes, bytes.len())
    }

    /// Reads the header in `bytes`, which may be the first ones of a file of `size` bytes.
    pub fn of_file(bytes: &[u8], size: usize) -> Result<Layout, Error> {
        let word = |n: usize| {
            let at = 8 * n;
            bytes
                .get(at..at + 8)
                .map(LittleEndian::read_u64)
                .ok_or(Error::Short {
                    part: "the header",
                    at: at as u64,
                    size,
                })
        };
        let magic = word(0)?;
        if magic != MAGIC {
            return Err(Error::Magic(magic));
        }
        let version = word(1)?;
        let (format, uniform): (&Format, usize) = match version & !VARIANT_MASK {
            10 => (&V10, 0),
            11 => (&V11, 3),
            other => return Err(Error::Version(other)),
        };
        // The words behind the uniform counters' three are three places later where these are.
        let after = |n: usize| word(n + uniform);
        let header = Header {
            version,
            binary_ids: word(2)?,
            num_data: word(3)?,
            num_counters: word(5)?,
            padding_after_counters: word(6)?,
            num_uniform: if uniform > 0 { word(9)? } else { 0 },
            uniform_delta: if uniform > 0 { word(11)? } else { 0 },
            names: after(9)?,
            counters_delta: after(10)?,
        };
        let counter = header.counter();
        let mut at = 8 * (16 + uniform as u64);
        let mut part = |part: &'static str,
                        count: u64,
                        unit: u64,
                        padding: u64|
         -> Result<Range<usize>, Error> {
            let short = Error::Short { part, at, size };
            let end = count
                .checked_mul(unit)
                .and_then(|size| at.checked_add(size))
                .ok_or(short.clone())?;
            let next = end.checked_add(padding).ok_or(short.clone())?;
            if next > size as u64 {
                return Err(short);
            }
            let range = at as usize..end as usize;
            at = next;
            Ok(range)
        };
        let binary_ids = part("the binary ids", header.binary_ids, 1, 0)?;
        let data = part(
            "the data records",
            header.num_data,
            format.record as u64,
            word(4)?,
        )?;
        let counters = part(
            "the counters",
            header.num_counters,
            counter,
            header.padding_after_counters,
        )?;
        let bitmap = part("the bitmaps", word(7)?, 1, word(8)?)?;
        let uniform_padding = if uniform > 0 { word(10)? } else { 0 };
        let uniform = part(
            "the uniform counters",
            header.num_uniform,
            COUNTER,
            uniform_padding,
        )?;
        let padding = header.names.wrapping_neg() % 8;
        let names = part("the names", header.names, 1, padding)?;
        part("the virtual tables", after(13)?, VTABLE, 0)?;
        let vtable_names = after(14)?;
        let padding = vtable_names.wrapping_neg() % 8;
        part("the names of virtual tables", vtable_names, 1, padding)?;
        Ok(Layout {
            header,
            binary_ids,
            data,
            counters,
            bitmap,
            uniform,
            names,
            end: at as usize,
        })
    }

    pub fn format(&self) -> &'static Format {
        if self.header.raw_version() == V10.version {
            &V10
        } else {
            &V11
        }
    }
}

/// Where the raw profile at the beginning of `bytes` ends, and the next one begins, if the file holds several. Behind
/// the parts of its layout there is a value profile (`ValueProfData`) for each record that has value sites.
pub fn end(bytes: &[u8], layout: &Layout) -> Result<usize, Error> {
    end_of_file(layout, bytes.len(), |range| Ok(bytes[range].to_vec()))
}

/// The same of a file of `size` bytes that is read part by part: `read` gets ranges of it.
pub fn end_of_file<E: From<Error>>(
    layout: &Layout,
    size: usize,
    mut read: impl FnMut(Range<usize>) -> Result<Vec<u8>, E>,
) -> Result<usize, E> {
    /// Records that are read at once.
    const RECORDS: usize = 1024;
    let format = layout.format();
    let mut end = layout.end;
    for start in layout.data.clone().step_by(RECORDS * format.record) {
        let part = start..layout.data.end.min(start + RECORDS * format.record);
        let first = (start - layout.data.start) / format.record;
        for (n, record) in read(part)?.chunks_exact(format.record).enumerate() {
            let sites = &record[format.value_sites.clone()];
            if sites.iter().all(|&byte| byte == 0) {
                continue;
            }
            let error = Error::Values {
                record: first + n,
                at: end,
            };
            if size - end < 8 {
                return Err(error.into());
            }
            // The first field is the size of the whole, itself included.
            let own = LittleEndian::read_u32(&read(end..end + 4)?) as usize;
            if own < 8 || !own.is_multiple_of(8) || own > size - end {
                return Err(error.into());
            }
            end += own;
        }
    }
    Ok(end)
}

/// What one function counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The low 64 bits of the MD5 of the function's name.
    pub name: u64,
    /// Of the function's structure.
    pub hash: u64,
    pub counters: Vec<u64>,
    /// What was counted by waves that were active as a whole; `None` in raw version 10.
    pub uniform: Option<Vec<u64>>,
}

/// Where one function's counters are, in bytes from the profile's beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// See [`Record`].
    pub name: u64,
    pub hash: u64,
    pub counters: Range<usize>,
    pub uniform: Option<Range<usize>>,
}

/// The records of the raw profile at the beginning of `bytes`, without their counters. Those of a damaged file may lie
/// over one another.
pub fn places<'a>(
    bytes: &'a [u8],
    layout: &'a Layout,
) -> impl Iterator<Item = Result<Place, Error>> + 'a {
    let format = layout.format();
    let all = bytes[layout.data.clone()].chunks_exact(format.record);
    all.enumerate().map(move |(n, record)| {
        let pointer = |at: usize| LittleEndian::read_u64(&record[at..]);
        let count = LittleEndian::read_u32(&record[format.num_counters..]) as usize;
        let start = (n * format.record) as u64;
        let place = |part, pointer: u64, delta: u64, section: &Range<usize>, unit: usize| {
            // Pointers count from the record, and `delta` from the first one, to the section's beginning.
            let offset = pointer.wrapping_add(start).wrapping_sub(delta);
            usize::try_from(offset)
                .ok()
                .filter(|offset| offset % unit == 0)
                .and_then(|offset| {
                    let start = section.start.checked_add(offset)?;
                    Some(start..start.checked_add(count.checked_mul(unit)?)?)
                })
                .filter(|range| range.end <= section.end)
                .ok_or(Error::Record { record: n, part })
        };
        let header = &layout.header;
        let uniform = match format.uniform_ptr {
            Some(at) if pointer(at) != 0 => Some(place(
                "uniform counters",
                pointer(at),
                header.uniform_delta,
                &layout.uniform,
                COUNTER as usize,
            )?),
            _ => None,
        };
        Ok(Place {
            name: pointer(0),
            hash: pointer(8),
            counters: place(
                "counters",
                pointer(format.counter_ptr),
                header.counters_delta,
                &layout.counters,
                header.counter() as usize,
            )?,
            uniform,
        })
    })
}

/// The records of the raw profile at the beginning of `bytes`.
pub fn records(bytes: &[u8], layout: &Layout) -> Result<Vec<Record>, Error> {
    let words = |range: Range<usize>| {
        let words = bytes[range].chunks_exact(COUNTER as usize);
        words.map(LittleEndian::read_u64).collect()
    };
    places(bytes, layout)
        .map(|place| {
            let place = place?;
            Ok(Record {
                name: place.name,
                hash: place.hash,
                counters: match layout.header.counter() {
                    // A byte is 0 where the code ran.
                    1 => bytes[place.counters]
                        .iter()
                        .map(|&byte| u64::from(byte == 0))
                        .collect(),
                    _ => words(place.counters),
                },
                uniform: place.uniform.map(words),
            })
        })
        .collect()
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

    fn ends(bytes: &[u8]) -> Result<usize, Error> {
        end(bytes, &Layout::read(bytes)?)
    }

    #[test]
    fn a_profile_ends_behind_its_virtual_tables_and_value_profiles() {
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
        let part = "the names of virtual tables";
        assert!(matches!(ends(short), Err(Error::Short { part: found, .. }) if found == part));
    }
}
