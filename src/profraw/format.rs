//! LLVM's raw profile format, versions 10 and 11: where things are in a bounds table, in a data record and in the file.
//! Mirrors `profile/InstrProfData.inc` of LLVM 22 and 23. All values are little endian.

/// First word of a raw profile of a 64-bit target: `\xff l p r o f r \x81`.
pub const MAGIC: u64 = 0xff6c_7072_6f66_7281;

/// `IPVK_Last`: the highest kind of value profile that the format knows.
pub const VALUE_KIND_LAST: u64 = 2;

/// Bytes of one counter. With [`BYTE_COVERAGE`] it is one byte.
pub const COUNTER: u64 = 8;

/// The version's upper half says what kind of profile it is (`VARIANT_MASK_*`).
pub const VARIANT_MASK: u64 = 0xffff_ffff_0000_0000;
/// Counters are single bytes (`VARIANT_MASK_BYTE_COVERAGE`).
pub const BYTE_COVERAGE: u64 = 1 << 60;

/// Bytes of one counter in a profile of `version`, which has its variant flags.
pub fn counter_size(version: u64) -> u64 {
    if version & BYTE_COVERAGE != 0 {
        1
    } else {
        COUNTER
    }
}

/// The variants, by the names that LLVM's options give them, and whether a file of them can be written from what the
/// device holds.
const VARIANTS: &[(u32, &str, bool)] = &[
    (55, "loop entries", true),
    (56, "IR-level", true),
    (57, "context-sensitive IR-level", true),
    (58, "function entries first", true),
    (59, "debug-info correlation", false),
    (60, "byte coverage", true),
    (61, "function entries only", true),
    (62, "memory profile", false),
    (63, "temporal", false),
];

/// The variant flags in `version` by name.
pub fn variants(version: u64) -> Vec<String> {
    let known = |bit| VARIANTS.iter().find(|(known, _, _)| *known == bit);
    (32..64)
        .filter(|bit| version & (1 << bit) != 0)
        .map(|bit| match known(bit) {
            Some((_, name, _)) => (*name).to_owned(),
            None => format!("flag {bit}"),
        })
        .collect()
}

/// The first variant flag in `version` that devprof cannot keep, by name.
pub fn refused_variant(version: u64) -> Option<String> {
    (32..64)
        .filter(|bit| version & (1 << bit) != 0)
        .find_map(
            |bit| match VARIANTS.iter().find(|(known, _, _)| *known == bit) {
                Some((_, _, true)) => None,
                Some((_, name, false)) => Some((*name).to_owned()),
                None => Some(format!("flag {bit}")),
            },
        )
}

/// The layout of a table of bounds, told by its size before any pointer in it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLayout {
    /// 48 bytes: names, counters, data. The first designs, all of raw version 10.
    Plain,
    /// 56 bytes: and the address of the raw version. Raw version 10.
    Versioned,
    /// 72 bytes: and the uniform counters, before the version. Raw version 11.
    Uniform,
}

impl TableLayout {
    pub fn from_size(size: u64) -> Option<TableLayout> {
        match size {
            48 => Some(TableLayout::Plain),
            56 => Some(TableLayout::Versioned),
            72 => Some(TableLayout::Uniform),
            _ => None,
        }
    }

    /// The raw version that goes with the layout.
    pub fn format(self) -> &'static Format {
        match self {
            TableLayout::Plain | TableLayout::Versioned => &V10,
            TableLayout::Uniform => &V11,
        }
    }
}

/// The offsets of one raw version's data record, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    pub version: u64,
    pub record: usize,
    pub counter_ptr: usize,
    pub uniform_ptr: Option<usize>,
    /// BitmapPtr, FunctionPointer and Values: device addresses, of no use in a file.
    pub addresses: std::ops::Range<usize>,
    pub num_counters: usize,
    /// NumValueSites: three u16.
    pub value_sites: std::ops::Range<usize>,
    /// OffloadDeviceWaveSize: u16, 0 until the device has run the function.
    pub wave_size: Option<usize>,
    pub num_bitmap_bytes: usize,
}

/// Raw version 10 (LLVM 19 to 22).
pub const V10: Format = Format {
    version: 10,
    record: 64,
    counter_ptr: 16,
    uniform_ptr: None,
    addresses: 24..48,
    num_counters: 48,
    value_sites: 52..58,
    wave_size: None,
    num_bitmap_bytes: 60,
};

/// Raw version 11 (LLVM 23).
pub const V11: Format = Format {
    version: 11,
    record: 72,
    counter_ptr: 16,
    uniform_ptr: Some(24),
    addresses: 32..56,
    num_counters: 56,
    value_sites: 60..66,
    wave_size: Some(66),
    num_bitmap_bytes: 68,
};

/// The header's fields that say how large the file's parts are, in bytes where they are not numbers of things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// With the variant flags.
    pub version: u64,
    pub binary_ids: u64,
    pub num_data: u64,
    pub num_counters: u64,
    pub padding_after_counters: u64,
    pub num_uniform: u64,
    pub uniform_delta: u64,
    pub names: u64,
    pub counters_delta: u64,
}

impl Header {
    /// Without the variant flags.
    pub fn raw_version(&self) -> u64 {
        self.version & !VARIANT_MASK
    }

    /// See [`counter_size`].
    pub fn counter(&self) -> u64 {
        counter_size(self.version)
    }

    /// How many words the header of a profile of `version`, which may have its variant flags, has.
    pub fn words_of(version: u64) -> usize {
        match version & !VARIANT_MASK >= V11.version {
            true => 19,
            false => 16,
        }
    }

    /// The words in the file's order. Parts that a device profile never has are 0: padding before the counters,
    /// bitmaps, virtual tables.
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![
            MAGIC,
            self.version,
            self.binary_ids,
            self.num_data,
            0,
            self.num_counters,
            self.padding_after_counters,
            0,
            0,
        ];
        if self.raw_version() >= V11.version {
            words.extend([self.num_uniform, 0, self.uniform_delta]);
        }
        words.extend([self.names, self.counters_delta, 0, 0, 0, 0, VALUE_KIND_LAST]);
        words
    }
}
