//! The headers of profiles and traces.

use crate::bytes::Bytes;
use crate::error::Error;
use profraw::Layout;
use profraw::format::{Format, MAX_HEADER_SIZE, VARIANT_MASK, variants};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;
use tracefile::format::Count;

/// A file of raw profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Raw {
    /// Version of the first one, without variant flags.
    pub version: u64,
    /// Names of its variant flags.
    pub variants: Vec<String>,
    /// Word size of the target: 32 or 64.
    pub bits: u8,
    /// Byte order of the target.
    pub big_endian: bool,
    /// Number of consecutive profiles in the file.
    pub profiles: u64,
    /// Number of functions. `None` in versions other than 10 and 11.
    pub functions: Option<u64>,
    /// Number of counters. `None` in versions other than 10 and 11.
    pub counters: Option<u64>,
    /// In hexadecimal.
    pub binary_ids: Vec<String>,
}

/// An indexed profile, as llvm-profdata writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Indexed {
    /// Without variant flags.
    pub version: u64,
    /// Names of the variant flags.
    pub variants: Vec<String>,
}

/// A devprof trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trace {
    /// Id of the process that wrote it.
    pub process: u32,
    /// Number of complete records. `None` if it is damaged.
    pub records: Option<u64>,
    /// The process closed it. False if the process still runs or was killed.
    pub closed: bool,
}

/// Reads the headers of the raw profiles in a file. Also returns why the rest of the file could not be read.
pub fn raw(bytes: &Bytes, bits: u8, big_endian: bool) -> (Raw, Option<Error>) {
    let mut raw = Raw {
        bits,
        big_endian,
        ..Raw::default()
    };
    let problem = raw.read(bytes).err();
    (raw, problem)
}

impl From<profraw::Error> for Error {
    fn from(error: profraw::Error) -> Error {
        error!(0; "raw profile: {error}")
    }
}

impl Raw {
    fn read(&mut self, bytes: &Bytes) -> Result<(), Error> {
        let head = bytes
            .read(0, 16)
            .map_err(|_| Error::new(8, "truncated header of a raw profile"))?;
        let word: [u8; 8] = head[8..].try_into().unwrap_or_default();
        let word = if self.big_endian {
            u64::from_be_bytes(word)
        } else {
            u64::from_le_bytes(word)
        };
        self.version = word & !VARIANT_MASK;
        self.variants = variants(word);
        self.profiles = 1;
        let is_known = Format::of_version(self.version).is_some();
        if !is_known || self.bits != 64 || self.big_endian {
            return Ok(());
        }
        self.profiles = 0;
        let mut at = 0;
        while at < bytes.size() {
            let rest = bytes.from(at);
            let head = rest
                .head(MAX_HEADER_SIZE as u64)
                .map_err(|error| error.shifted(at))?;
            let size = usize::try_from(rest.size()).unwrap_or(usize::MAX);
            let layout =
                Layout::of_file(&head, size).map_err(|error| Error::from(error).shifted(at))?;
            let header = &layout.header;
            self.profiles += 1;
            let add = |sum: &mut Option<u64>, more| {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            };
            add(&mut self.functions, header.num_data);
            add(&mut self.counters, header.num_counters);
            let ids = &layout.binary_ids;
            if self.binary_ids.is_empty() && !ids.is_empty() && ids.len() <= 4096 {
                let ids = rest.read(ids.start as u64, ids.len() as u64)?;
                self.binary_ids = profraw::binary_ids(&ids);
            }
            let read = |range: Range<usize>| rest.read(range.start as u64, range.len() as u64);
            let end = profraw::end_of_file(&layout, size, read);
            at += end.map_err(|error: Error| error.shifted(at))? as u64;
        }
        Ok(())
    }
}

/// Describes an indexed profile. `version`: as in its header, with variant flags; `None` if the header is truncated.
pub fn indexed(version: Option<u64>) -> Result<Indexed, Error> {
    let version = version.ok_or_else(|| Error::new(8, "truncated header of an indexed profile"))?;
    Ok(Indexed {
        version: version & !VARIANT_MASK,
        variants: variants(version),
    })
}

/// Reads the header of a trace.
pub fn trace(bytes: &Bytes) -> Result<Trace, Error> {
    let reader =
        tracefile::Reader::new(bytes.reader()).map_err(|error| Error::new(0, error.to_string()))?;
    Ok(Trace {
        process: reader.header().pid.get(),
        records: reader.count(Count::Records),
        closed: reader.count(Count::Closed) == Some(1),
    })
}
