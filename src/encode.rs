//! Fourth stage: the copied sections become a raw profile of the version that the device code was built for.

use crate::check::Defect;
use crate::room;
use byteorder::{ByteOrder, LittleEndian};
use profraw::format::{COUNTER, Format, Header, counter_size};

/// One table's sections, copied from the device.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    /// Checked, with the variant flags.
    pub version: u64,
    pub format: &'static Format,
    pub data: &'a [u8],
    /// Device address of the first record.
    pub data_start: u64,
    pub counters: &'a [u8],
    /// Device address of the first counter.
    pub counters_start: u64,
    pub uniform: &'a [u8],
    /// Device address of the first uniform counter.
    pub uniform_start: u64,
    pub names: &'a [u8],
}

/// A raw profile.
#[derive(Debug)]
pub struct Image {
    pub bytes: Vec<u8>,
    /// Records that were left out because their counters are not in the counters section.
    pub dropped: usize,
    /// Records whose bitmap (MC/DC) stays behind on the device: the table does not say where it is.
    pub bitmaps: usize,
}

/// Appends one raw profile to `out`, which has a whole number of 8-byte words.
///
/// Counter pointers are made relative to the file's layout, where the data records come right before the counters and
/// these right before the uniform ones; device addresses are written as 0, so that two runs give the same bytes.
pub fn encode(sections: &Sections, binary_id: Option<&[u8]>) -> Result<Image, Defect> {
    let Sections { format, .. } = *sections;
    let counter = counter_size(sections.version);
    let all = sections.data.chunks_exact(format.record);
    let total = all.len();
    let mut kept: Vec<(&[u8], Place)> = Vec::new();
    room::reserve(&mut kept, total)?;
    kept.extend(
        all.enumerate()
            .filter_map(|(n, record)| Some((record, place(sections, counter, n, record)?))),
    );
    if kept.is_empty() && total > 0 {
        return Err(Defect::NoRecord(total));
    }
    let data = (kept.len() * format.record) as u64;
    let counters = sections.counters.len() as u64;
    let padding_after_counters = counters.next_multiple_of(8) - counters;
    // An id of no bytes is none: llvm-profdata would take the file for damaged.
    let binary_id = binary_id
        .filter(|id| !id.is_empty())
        .map(padded_id)
        .unwrap_or_default();
    let has_uniform = !sections.uniform.is_empty();
    // Where there are uniform counters, llvm-profdata wants every record to have some: a record without points to
    // zeros behind them, which say that nothing it counted was uniform.
    let without = kept
        .iter()
        .filter(|(_, place)| has_uniform && place.uniform.is_none());
    let zeros = COUNTER * without.map(|(_, place)| place.count).max().unwrap_or(0);
    let uniform = sections.uniform.len() as u64;
    let header = Header {
        version: sections.version,
        binary_ids: binary_id.len() as u64,
        num_data: kept.len() as u64,
        num_counters: counters / counter,
        padding_after_counters,
        num_uniform: (uniform + zeros) / COUNTER,
        uniform_delta: if has_uniform {
            data + counters + padding_after_counters
        } else {
            0
        },
        names: sections.names.len() as u64,
        counters_delta: data,
    };
    let words = header.words();
    let size = [
        8 * words.len(),
        binary_id.len(),
        data as usize,
        sections.counters.len(),
        sections.uniform.len(),
        zeros as usize,
        sections.names.len(),
        2 * 8,
    ]
    .into_iter()
    .try_fold(0usize, usize::checked_add)
    .unwrap_or(usize::MAX);
    let mut out = Vec::new();
    room::reserve(&mut out, size)?;
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.extend_from_slice(&binary_id);
    let mut bitmaps = 0;
    for (n, (record, place)) in kept.iter().enumerate() {
        // A record's pointers count from the record itself.
        let record_start = (n * format.record) as u64;
        let start = out.len();
        out.extend_from_slice(record);
        let written = &mut out[start..];
        written[format.addresses.clone()].fill(0);
        // No value profile is kept on a device, so none is promised.
        written[format.value_sites.clone()].fill(0);
        bitmaps += usize::from(LittleEndian::read_u32(&written[format.num_bitmap_bytes..]) != 0);
        written[format.num_bitmap_bytes..][..4].fill(0);
        let counter_ptr = (header.counters_delta + place.counters).wrapping_sub(record_start);
        LittleEndian::write_u64(&mut written[format.counter_ptr..], counter_ptr);
        if let Some(at) = format.uniform_ptr {
            let pointer = match place.uniform {
                _ if !has_uniform => 0,
                offset => {
                    (header.uniform_delta + offset.unwrap_or(uniform)).wrapping_sub(record_start)
                }
            };
            LittleEndian::write_u64(&mut written[at..], pointer);
        }
    }
    out.extend_from_slice(sections.counters);
    pad(&mut out);
    out.extend_from_slice(sections.uniform);
    out.resize(out.len() + zeros as usize, 0);
    out.extend_from_slice(sections.names);
    pad(&mut out);
    Ok(Image {
        bytes: out,
        dropped: total - kept.len(),
        bitmaps,
    })
}

/// Where a record's counters are, in bytes from the start of their sections.
struct Place {
    counters: u64,
    uniform: Option<u64>,
    /// How many counters.
    count: u64,
}

/// `None` when the record points elsewhere.
fn place(sections: &Sections, counter: u64, n: usize, record: &[u8]) -> Option<Place> {
    let format = sections.format;
    let address = sections.data_start.wrapping_add((n * format.record) as u64);
    let pointer = |at: usize| LittleEndian::read_u64(&record[at..]);
    let count = u64::from(LittleEndian::read_u32(&record[format.num_counters..]));
    let target = |at| address.wrapping_add(pointer(at));
    let counters = offset(
        target(format.counter_ptr),
        sections.counters_start,
        sections.counters,
        counter,
        count,
    )?;
    let uniform = match format.uniform_ptr {
        Some(at) if pointer(at) != 0 => Some(offset(
            target(at),
            sections.uniform_start,
            sections.uniform,
            COUNTER,
            count,
        )?),
        _ => None,
    };
    Some(Place {
        counters,
        uniform,
        count,
    })
}

/// The offset of `target` in the section, when `count` aligned entries from there lie inside it.
fn offset(target: u64, start: u64, section: &[u8], entry: u64, count: u64) -> Option<u64> {
    let offset = target.checked_sub(start)?;
    let end = count.checked_mul(entry)?.checked_add(offset)?;
    (count > 0 && offset % entry == 0 && end <= section.len() as u64).then_some(offset)
}

/// A binary id as the file has it: its length, its bytes, zeros up to a word.
fn padded_id(id: &[u8]) -> Vec<u8> {
    let mut out = (id.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(id);
    pad(&mut out);
    out
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::{V10, V11};

    const DATA: u64 = 0x4060;
    const COUNTERS: u64 = 0x4000;
    const UNIFORM: u64 = 0x4030;

    /// A record of version 11 as the device has it, its counters at `counter` and `uniform`.
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

    fn sections<'a>(data: &'a [u8], counters: &'a [u8], uniform: &'a [u8]) -> Sections<'a> {
        Sections {
            version: 11,
            format: &V11,
            data,
            data_start: DATA,
            counters,
            counters_start: COUNTERS,
            uniform,
            uniform_start: UNIFORM,
            names: b"\x03\x00abc",
        }
    }

    fn word(bytes: &[u8], n: usize) -> u64 {
        LittleEndian::read_u64(&bytes[8 * n..])
    }

    #[test]
    fn a_profile_has_header_id_records_counters_and_names_in_this_order() {
        let data = [
            record(0, COUNTERS + 16, UNIFORM + 16, 1),
            record(1, COUNTERS, UNIFORM, 2),
        ]
        .concat();
        let counters: Vec<u8> = [1u64, 2, 3].iter().flat_map(|c| c.to_le_bytes()).collect();
        let image = encode(&sections(&data, &counters, &counters), Some(&[0xaa; 20])).unwrap();
        assert_eq!((image.dropped, image.bitmaps), (0, 0));
        let bytes = &image.bytes;
        let header: Vec<u64> = (0..19).map(|n| word(bytes, n)).collect();
        assert_eq!(
            header,
            [
                profraw::format::MAGIC,
                11,
                32,
                2,
                0,
                3,
                0,
                0,
                0,
                3,
                0,
                168,
                5,
                144,
                0,
                0,
                0,
                0,
                2
            ]
        );
        let ids = 19 * 8;
        assert_eq!(
            (word(&bytes[ids..], 0), bytes[ids + 27], bytes[ids + 28]),
            (20, 0xaa, 0)
        );
        let data = ids + 32;
        // From the first record 16 bytes into the counters; from the second to their beginning.
        assert_eq!(word(&bytes[data..], 2), 144 + 16);
        assert_eq!(word(&bytes[data + 72..], 2), 144 - 72);
        assert_eq!(word(&bytes[data..], 3), 168 + 16);
        assert_eq!(&bytes[data + 32..data + 56], &[0; 24]);
        assert_eq!(word(&bytes[data + 144..], 2), 3);
        assert_eq!(&bytes[data + 144 + 48..], b"\x03\x00abc\0\0\0");
    }

    #[test]
    fn records_that_point_out_of_the_counters_are_dropped_and_counted() {
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
            let image = encode(&sections(&both, &counters, &counters), None).unwrap();
            assert_eq!(image.dropped, 1, "{counter:#x} {uniform:#x} {count}");
            // The record that is left is the first in the file, and its pointer counts from there.
            assert_eq!(
                (word(&image.bytes, 3), word(&image.bytes[19 * 8..], 2)),
                (1, 72)
            );
            assert!(matches!(
                encode(&sections(&bad, &counters, &counters), None),
                Err(Defect::NoRecord(1))
            ));
        }
    }

    #[test]
    fn version_10_has_no_uniform_counters() {
        let mut data = vec![0u8; 64];
        LittleEndian::write_u64(&mut data[16..], COUNTERS.wrapping_sub(DATA));
        LittleEndian::write_u32(&mut data[48..], 1);
        let sections = Sections {
            version: 10,
            format: &V10,
            ..sections(&data, &[5, 0, 0, 0, 0, 0, 0, 0], &[])
        };
        let image = encode(&sections, None).unwrap();
        assert_eq!(image.bytes.len(), 16 * 8 + 64 + 8 + 8);
        assert_eq!(
            (
                word(&image.bytes, 9),
                word(&image.bytes, 10),
                word(&image.bytes, 15)
            ),
            (5, 64, 2)
        );
    }

    #[test]
    fn byte_coverage_counts_in_bytes_and_pads() {
        let mut data = vec![0u8; 64];
        LittleEndian::write_u64(&mut data[16..], (COUNTERS + 1).wrapping_sub(DATA));
        LittleEndian::write_u32(&mut data[48..], 2);
        let version = 10 | profraw::format::BYTE_COVERAGE;
        let sections = Sections {
            version,
            format: &V10,
            ..sections(&data, &[0xff, 0, 0xff], &[])
        };
        let image = encode(&sections, None).unwrap();
        assert_eq!((word(&image.bytes, 5), word(&image.bytes, 6)), (3, 5));
    }

    /// The low 64 bits of the MD5, as LLVM has it for a function's name.
    fn name_ref(name: &str) -> u64 {
        use md5::{Digest, Md5};
        LittleEndian::read_u64(&Md5::digest(name.as_bytes()))
    }

    /// Random sections of either version: what is written reads back as what the device had. DEVPROF_ENCODED names a
    /// directory for some of the profiles, each with the lines that llvm-profdata has to make of it
    /// (llvm-tests/encoder.test).
    #[test]
    fn what_is_written_reads_back() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let out = std::env::var_os("DEVPROF_ENCODED").map(std::path::PathBuf::from);
        for round in 0..2000 {
            let format = if random(2) == 0 { &V10 } else { &V11 };
            let bytes_only = random(4) == 0;
            let unit = if bytes_only { 1 } else { COUNTER };
            let total = 1 + random(40);
            let entry = |random: &mut dyn FnMut(u64) -> u64| match unit {
                1 => vec![if random(2) == 0 { 0 } else { 0xff }],
                // LLVM gives the highest values a meaning of their own.
                _ => random(1 << 62).to_le_bytes().to_vec(),
            };
            let counters: Vec<u8> = (0..total).flat_map(|_| entry(&mut random)).collect();
            let uniform: Vec<u8> = match format.uniform_ptr {
                Some(_) => (0..total)
                    .flat_map(|_| random(u64::MAX).to_le_bytes())
                    .collect(),
                None => Vec::new(),
            };
            let (data_start, counters_start, uniform_start) = (
                8 * random(1 << 50),
                8 * random(1 << 50),
                8 * random(1 << 50),
            );
            let mut data = Vec::new();
            let mut expected = Vec::new();
            let mut functions = Vec::new();
            for n in 0..random(12) {
                functions.push(format!("function_{round}_{n}"));
                let name = name_ref(&functions[n as usize]);
                let first = random(total);
                let count = 1 + random(total - first);
                let has_uniform = format.uniform_ptr.is_some() && random(3) > 0;
                let record_start = data_start + n * format.record as u64;
                let mut record = vec![0xee; format.record];
                LittleEndian::write_u64(&mut record[0..], name);
                LittleEndian::write_u64(&mut record[8..], n + 1000);
                let pointer = (counters_start + first * unit).wrapping_sub(record_start);
                LittleEndian::write_u64(&mut record[format.counter_ptr..], pointer);
                if let Some(at) = format.uniform_ptr {
                    let pointer = (uniform_start + first * 8).wrapping_sub(record_start);
                    LittleEndian::write_u64(
                        &mut record[at..],
                        if has_uniform { pointer } else { 0 },
                    );
                }
                LittleEndian::write_u32(&mut record[format.num_counters..], count as u32);
                data.extend_from_slice(&record);
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
                    uniform: format.uniform_ptr.map(|_| match has_uniform {
                        true => words(&uniform),
                        false => vec![0; count as usize],
                    }),
                });
            }
            let flag = if bytes_only {
                profraw::format::BYTE_COVERAGE
            } else {
                0
            };
            let names = functions.join("\x01");
            // Two bytes of ULEB128 for the size, which may be more than needed, and 0: not compressed.
            let size = [names.len() as u8 | 0x80, (names.len() >> 7) as u8, 0];
            let names = [&size, names.as_bytes()].concat();
            let id = vec![7; random(30) as usize];
            let sections = Sections {
                version: format.version | flag,
                format,
                data: &data,
                data_start,
                counters: &counters,
                counters_start,
                uniform: &uniform,
                uniform_start,
                names: &names,
            };
            let image = encode(&sections, (round % 2 == 0).then_some(&id))
                .unwrap()
                .bytes;
            let layout = profraw::Layout::read(&image).unwrap();
            assert_eq!(layout.end, image.len());
            assert_eq!(&image[layout.names.clone()], names);
            assert_eq!(profraw::records(&image, &layout).unwrap(), expected);
            if let Some(dir) = &out
                && round < 200
                && !expected.is_empty()
            {
                let lines = functions.iter().zip(&expected);
                let mut lines: Vec<_> = lines
                    .map(|(name, record)| format!("{name}: {:?}\n", record.counters))
                    .collect();
                lines.sort();
                let file = dir.join(format!("{round}.raw{}", format.version));
                std::fs::write(file.with_extension("expected"), lines.concat()).unwrap();
                std::fs::write(&file, &image).unwrap();
            }
        }
    }
}
