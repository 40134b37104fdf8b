//! The structures of a raw profile (`.profraw`), versions 10 and 11: header, data records, and the tables of section
//! bounds in device memory. They mirror `profile/InstrProfData.inc` of LLVM 22 (version 10) and 23 (version 11).
//! All values are little endian.

use std::mem::offset_of;
use std::ops::Range;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First word of a raw profile of a 64-bit target (`INSTR_PROF_RAW_MAGIC_64`): `\xff l p r o f r \x81`.
pub const MAGIC: u64 = 0xff6c_7072_6f66_7281;

/// `IPVK_Last`: the highest kind of value profile in the format.
pub const VALUE_KIND_LAST: u64 = 2;

/// Size of one counter in bytes. With [`BYTE_COVERAGE`] it is one byte.
pub const COUNTER: u64 = 8;

/// The upper half of the version holds the variant flags (`VARIANT_MASK_*`).
pub const VARIANT_MASK: u64 = 0xffff_ffff_0000_0000;
/// Counters are single bytes (`VARIANT_MASK_BYTE_COVERAGE`).
pub const BYTE_COVERAGE: u64 = 1 << 60;

/// Size of one counter in bytes, given a version with its variant flags.
pub fn counter_size(version: u64) -> u64 {
    if version & BYTE_COVERAGE != 0 {
        1
    } else {
        COUNTER
    }
}

/// A kind of profile, selected by a flag in the version.
struct Variant {
    bit: u32,
    /// As in LLVM's options.
    name: &'static str,
    /// A file of this kind can be written from device memory alone.
    on_devices: bool,
    /// llvm-profdata merges files of this kind by adding their 64-bit counters.
    sums: bool,
}

const fn variant(bit: u32, name: &'static str, on_devices: bool, sums: bool) -> Variant {
    Variant {
        bit,
        name,
        on_devices,
        sums,
    }
}

/// `VARIANT_MASK_*`.
const VARIANTS: &[Variant] = &[
    variant(55, "loop entries", true, true),
    variant(56, "IR-level", true, true),
    variant(57, "context-sensitive IR-level", true, true),
    variant(58, "function entries first", true, true),
    variant(59, "debug-info correlation", false, false),
    variant(60, "byte coverage", true, false),
    variant(61, "function entries only", true, false),
    variant(62, "memory profile", false, false),
    variant(63, "temporal", false, false),
];

/// The variant flags in `version`: the bit of each, and its variant if the bit is known.
fn flags(version: u64) -> impl Iterator<Item = (u32, Option<&'static Variant>)> {
    (32..64)
        .filter(move |bit| version & (1 << bit) != 0)
        .map(|bit| (bit, VARIANTS.iter().find(|variant| variant.bit == bit)))
}

fn flag_name((bit, variant): (u32, Option<&Variant>)) -> String {
    variant.map_or_else(|| format!("flag {bit}"), |variant| variant.name.to_owned())
}

/// The names of the variant flags in `version`.
pub fn variants(version: u64) -> Vec<String> {
    flags(version).map(flag_name).collect()
}

/// The name of the first variant flag in `version` whose files cannot be written from device memory alone.
pub fn refused_variant(version: u64) -> Option<String> {
    flags(version)
        .find(|(_, variant)| !variant.is_some_and(|variant| variant.on_devices))
        .map(flag_name)
}

/// Whether llvm-profdata merges profiles of this version by adding their 64-bit counters.
pub(crate) fn sums(version: u64) -> bool {
    flags(version).all(|(_, variant)| variant.is_some_and(|variant| variant.sums))
}

/// The layout of a table of section bounds in device memory (`__llvm_profile_sections`), identified by the
/// size of its symbol before any pointer in it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLayout {
    /// 48 bytes: names, counters, data. Raw version 10, before LLVM had the layouts below.
    Plain,
    /// 56 bytes: [`TableLayout::Plain`], then the address of the raw version. Raw version 10.
    Versioned,
    /// 72 bytes: names, counters, data, uniform counters, then the address of the raw version. Raw version 11.
    Uniform,
}

/// First address of a section, and the address after its last byte.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SectionBounds {
    pub start: U64,
    pub stop: U64,
}

/// The contents of a table of section bounds, in any of its layouts. Device addresses, not validated.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub names: SectionBounds,
    pub counters: SectionBounds,
    pub data: SectionBounds,
    /// [`TableLayout::Uniform`] only.
    pub uniform: Option<SectionBounds>,
    /// Address of the raw version, a 64-bit word with variant flags. Not in [`TableLayout::Plain`].
    pub version: Option<u64>,
}

impl TableLayout {
    /// `size`: of the table's symbol, in bytes.
    pub fn from_size(size: u64) -> Option<TableLayout> {
        match size {
            48 => Some(TableLayout::Plain),
            56 => Some(TableLayout::Versioned),
            72 => Some(TableLayout::Uniform),
            _ => None,
        }
    }

    /// The format of the raw profiles of a code object with this table.
    pub fn format(self) -> &'static Format {
        match self {
            TableLayout::Plain | TableLayout::Versioned => &V10,
            TableLayout::Uniform => &V11,
        }
    }

    /// Reads the table at the beginning of `bytes`. `None` if `bytes` is shorter than the layout.
    pub fn read(self, bytes: &[u8]) -> Option<Table> {
        let ([names, counters, data], rest) = <[SectionBounds; 3]>::read_from_prefix(bytes).ok()?;
        let (uniform, rest) = match self {
            TableLayout::Plain | TableLayout::Versioned => (None, rest),
            TableLayout::Uniform => {
                let (uniform, rest) = SectionBounds::read_from_prefix(rest).ok()?;
                (Some(uniform), rest)
            }
        };
        let version = match self {
            TableLayout::Plain => None,
            TableLayout::Versioned | TableLayout::Uniform => {
                Some(U64::read_from_prefix(rest).ok()?.0.get())
            }
        };
        Some(Table {
            names,
            counters,
            data,
            uniform,
            version,
        })
    }
}

/// A function's data record (`__llvm_profile_data`), with the fields of raw version 11. Version 10 has no uniform
/// counters and no wave size; both are 0 in its records.
///
/// In memory, pointers are relative to the record. In a file, `counter_ptr`, `uniform_counter_ptr` and `bitmap_ptr` are too,
/// with [`Header::counters_delta`], [`Header::uniform_delta`] and [`Header::bitmap_delta`] as the distance from the first
/// record to the sections.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DataRecord {
    /// Low 64 bits of the MD5 of the function's name.
    pub name_ref: U64,
    /// Hash of the function's structure.
    pub func_hash: U64,
    pub counter_ptr: U64,
    /// 0: the function has no uniform counters.
    pub uniform_counter_ptr: U64,
    /// Meaningless without bitmap bytes.
    pub bitmap_ptr: U64,
    pub function_pointer: U64,
    pub values: U64,
    pub num_counters: U32,
    /// By kind of value profile (`IPVK_*`).
    pub num_value_sites: [U16; 3],
    /// Lanes in a wave of the device; 0 until the device has run the function.
    pub offload_device_wave_size: U16,
    /// Size of the function's MC/DC bitmap: one bit per test vector of each decision.
    pub num_bitmap_bytes: U32,
}

impl DataRecord {
    /// The function has value profiles.
    pub fn has_value_sites(&self) -> bool {
        self.num_value_sites != [U16::ZERO; 3]
    }
}

/// The fields of [`DataRecord`] that version 10 does not have, in bytes. It also has padding instead of the wave size.
const UNIFORM_IN_RECORD: Range<usize> =
    offset_of!(DataRecord, uniform_counter_ptr)..offset_of!(DataRecord, bitmap_ptr);

/// A raw version and its data records.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// Without variant flags.
    pub version: u64,
    /// Size of a data record in bytes.
    pub record: usize,
    /// Functions have uniform counters.
    pub has_uniform: bool,
    /// Offset of [`DataRecord::offload_device_wave_size`] in bytes.
    pub wave_size: Option<usize>,
}

/// Raw version 10 (LLVM 19 to 22).
pub const V10: Format = Format {
    version: 10,
    record: size_of::<DataRecord>() - size_of::<U64>(),
    has_uniform: false,
    wave_size: None,
};

/// Raw version 11 (LLVM 23).
pub const V11: Format = Format {
    version: 11,
    record: size_of::<DataRecord>(),
    has_uniform: true,
    wave_size: Some(offset_of!(DataRecord, offload_device_wave_size)),
};

const _: () = assert!(V10.record == 64 && V11.record == 72);

impl Format {
    /// The format of a raw version without variant flags. `None` if it is neither 10 nor 11.
    pub fn of_version(version: u64) -> Option<&'static Format> {
        [&V10, &V11]
            .into_iter()
            .find(|format| format.version == version)
    }

    /// Reads the record at the beginning of `bytes`. `None` if `bytes` is shorter than a record.
    pub fn read_record(&self, bytes: &[u8]) -> Option<DataRecord> {
        let mut record: DataRecord = read(bytes, self.missing(UNIFORM_IN_RECORD))?;
        if self.wave_size.is_none() {
            record.offload_device_wave_size = U16::ZERO;
        }
        Some(record)
    }

    /// Writes a record to the beginning of `bytes`, without the fields that the raw version does not have. `None` if
    /// `bytes` is shorter than a record.
    pub fn write_record(&self, record: &DataRecord, bytes: &mut [u8]) -> Option<()> {
        let mut record = *record;
        if self.wave_size.is_none() {
            record.offload_device_wave_size = U16::ZERO;
        }
        let [first, rest] = present(&record, self.missing(UNIFORM_IN_RECORD));
        let (to_first, to_rest) = bytes.get_mut(..self.record)?.split_at_mut(first.len());
        to_first.copy_from_slice(first);
        to_rest.copy_from_slice(rest);
        Some(())
    }

    /// The bytes of a struct of version 11 that are missing in this version. `uniform`: the fields of uniform counters.
    fn missing(&self, uniform: Range<usize>) -> Range<usize> {
        if self.has_uniform { 0..0 } else { uniform }
    }

    /// The records in a data section. Bytes after the last complete record are ignored.
    pub fn records<'a>(&'static self, data: &'a [u8]) -> impl Iterator<Item = DataRecord> + 'a {
        data.chunks_exact(self.record)
            .map_while(|record| self.read_record(record))
    }
}

/// Reads a struct at the beginning of `bytes`, in which the bytes of the range `missing` are missing: they are 0 in the
/// result. `None` if `bytes` is too short.
fn read<T: FromBytes + IntoBytes>(bytes: &[u8], missing: Range<usize>) -> Option<T> {
    let mut result = T::new_zeroed();
    let to = result.as_mut_bytes();
    let (first, rest) = bytes
        .get(..to.len() - missing.len())?
        .split_at(missing.start);
    to[..missing.start].copy_from_slice(first);
    to[missing.end..].copy_from_slice(rest);
    Some(result)
}

/// The bytes of a struct in front of and after the range `missing`.
fn present<T: IntoBytes + Immutable>(value: &T, missing: Range<usize>) -> [&[u8]; 2] {
    let bytes = value.as_bytes();
    [&bytes[..missing.start], &bytes[missing.end..]]
}

/// A file's header (`INSTR_PROF_RAW_HEADER`) of version 11.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RawHeader {
    pub magic: U64,
    pub version: U64,
    pub binary_ids_size: U64,
    pub num_data: U64,
    pub padding_bytes_before_counters: U64,
    pub num_counters: U64,
    pub padding_bytes_after_counters: U64,
    pub num_bitmap_bytes: U64,
    pub padding_bytes_after_bitmap_bytes: U64,
    pub num_uniform_counters: U64,
    pub padding_bytes_after_uniform_counters: U64,
    pub uniform_counters_delta: U64,
    pub names_size: U64,
    pub counters_delta: U64,
    pub bitmap_delta: U64,
    pub names_delta: U64,
    pub num_vtables: U64,
    pub vnames_size: U64,
    pub value_kind_last: U64,
}

/// The fields of [`RawHeader`] that version 10 does not have, in bytes.
const UNIFORM_IN_HEADER: Range<usize> =
    offset_of!(RawHeader, num_uniform_counters)..offset_of!(RawHeader, names_size);

impl RawHeader {
    /// Reads a header in `format` at the beginning of `bytes`. In version 10, the fields of uniform counters are 0. `None`
    /// if `bytes` is shorter than the header.
    pub fn read(format: &Format, bytes: &[u8]) -> Option<RawHeader> {
        read(bytes, format.missing(UNIFORM_IN_HEADER))
    }
}

/// Size of the larger header, which version 11 has, in bytes.
pub const MAX_HEADER_SIZE: usize = size_of::<RawHeader>();

/// The fields of a file's header that give the sizes of its sections. A device profile has 0 in the others: padding
/// before the counters, virtual tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// With variant flags.
    pub version: u64,
    /// Size of the binary ids, in bytes.
    pub binary_ids: u64,
    /// Number of data records.
    pub num_data: u64,
    /// Number of counters, of [`Header::counter`] bytes each.
    pub num_counters: u64,
    /// In bytes.
    pub padding_after_counters: u64,
    /// Size of all bitmaps, in bytes.
    pub num_bitmap_bytes: u64,
    /// In bytes.
    pub padding_after_bitmaps: u64,
    /// See [`DataRecord`].
    pub bitmap_delta: u64,
    /// Number of uniform counters, of [`COUNTER`] bytes each. 0 in version 10.
    pub num_uniform: u64,
    /// See [`DataRecord`]. 0 in version 10.
    pub uniform_delta: u64,
    /// Size of the names, in bytes, without the padding after them.
    pub names: u64,
    /// See [`DataRecord`].
    pub counters_delta: u64,
}

impl Header {
    /// The version without variant flags.
    pub fn raw_version(&self) -> u64 {
        self.version & !VARIANT_MASK
    }

    /// Size of one counter in bytes. See [`counter_size`].
    pub fn counter(&self) -> u64 {
        counter_size(self.version)
    }

    /// The bytes of [`RawHeader`] that are missing in the header of a profile of `version`, with or without variant flags.
    fn missing(version: u64) -> Range<usize> {
        if version & !VARIANT_MASK >= V11.version {
            return 0..0;
        }
        UNIFORM_IN_HEADER
    }

    /// Number of 64-bit words in the header of a profile of `version`, with or without variant flags.
    pub fn words_of(version: u64) -> usize {
        (size_of::<RawHeader>() - Header::missing(version).len()) / size_of::<U64>()
    }

    /// The header's 64-bit words in the order of the file.
    pub fn words(&self) -> Vec<u64> {
        let header = RawHeader {
            magic: MAGIC.into(),
            version: self.version.into(),
            binary_ids_size: self.binary_ids.into(),
            num_data: self.num_data.into(),
            num_counters: self.num_counters.into(),
            padding_bytes_after_counters: self.padding_after_counters.into(),
            num_bitmap_bytes: self.num_bitmap_bytes.into(),
            padding_bytes_after_bitmap_bytes: self.padding_after_bitmaps.into(),
            bitmap_delta: self.bitmap_delta.into(),
            num_uniform_counters: self.num_uniform.into(),
            uniform_counters_delta: self.uniform_delta.into(),
            names_size: self.names.into(),
            counters_delta: self.counters_delta.into(),
            value_kind_last: VALUE_KIND_LAST.into(),
            ..RawHeader::new_zeroed()
        };
        let bytes = present(&header, Header::missing(self.version)).concat();
        let (words, _) = bytes.as_chunks();
        words.iter().map(|&word| u64::from_le_bytes(word)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_read_and_written_keeps_its_fields() {
        for format in [&V10, &V11] {
            let mut bytes: Vec<u8> = (1..=format.record as u8).collect();
            if format.version == 10 {
                bytes[58..60].fill(0);
            }
            let record = format.read_record(&bytes).unwrap();
            // Offset 48 in version 10, 56 in version 11 (InstrProfData.inc).
            let num_counters = if format.version == 10 { 48 } else { 56 };
            assert_eq!(
                record.num_counters.get().to_le_bytes(),
                bytes[num_counters..][..4]
            );
            let mut written = vec![0; format.record];
            format.write_record(&record, &mut written).unwrap();
            assert_eq!(written, bytes);
            assert!(format.read_record(&bytes[1..]).is_none());
            assert!(format.write_record(&record, &mut written[1..]).is_none());
        }
    }

    #[test]
    fn tables_of_each_layout_are_read() {
        let words: Vec<u8> = (0..9u64).flat_map(u64::to_le_bytes).collect();
        for (layout, size, version, uniform) in [
            (TableLayout::Plain, 48, None, None),
            (TableLayout::Versioned, 56, Some(6), None),
            (TableLayout::Uniform, 72, Some(8), Some((6, 7))),
        ] {
            assert_eq!(TableLayout::from_size(size), Some(layout));
            let table = layout.read(&words).unwrap();
            assert_eq!((table.data.start.get(), table.data.stop.get()), (4, 5));
            assert_eq!(table.version, version);
            let bounds = table
                .uniform
                .map(|bounds| (bounds.start.get(), bounds.stop.get()));
            assert_eq!(bounds, uniform);
            assert!(layout.read(&words[..size as usize - 1]).is_none());
        }
    }
}
