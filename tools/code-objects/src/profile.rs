//! Profiles and traces: what their headers say.

use crate::bytes::{Bad, Bytes};
use profraw::Layout;
use profraw::format::{VARIANT_MASK, variants};
use serde::Serialize;
use std::ops::Range;
use tracefile::format::Count;

/// A raw profile; a file may hold several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Raw {
    /// Without the variant flags.
    pub version: u64,
    pub variants: Vec<String>,
    /// 32 or 64, of the machine that it counts.
    pub bits: u8,
    pub big_endian: bool,
    /// Profiles one after the other, all alike.
    pub profiles: u64,
    /// The numbers that versions 10 and 11 tell.
    pub functions: Option<u64>,
    pub counters: Option<u64>,
    pub binary_ids: Vec<String>,
}

/// A profile as llvm-profdata writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Indexed {
    /// Of the format.
    pub version: u64,
    pub variants: Vec<String>,
}

/// A trace of devprof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Of the process that it is about.
    pub process: u32,
    pub records: Option<u64>,
    /// Its writer ended in order.
    pub closed: bool,
}

const RAW_64: u64 = 0xff6c_7072_6f66_7281;
const RAW_32: u64 = 0xff6c_7072_6f66_5281;
const INDEXED: u64 = 0xff6c_7072_6f66_6981;

/// Whether the first 8 bytes are a raw profile's: bits and whether it is big-endian.
pub fn raw_kind(head: &[u8]) -> Option<(u8, bool)> {
    let word: [u8; 8] = head.get(..8)?.try_into().ok()?;
    match (u64::from_le_bytes(word), u64::from_be_bytes(word)) {
        (RAW_64, _) => Some((64, false)),
        (RAW_32, _) => Some((32, false)),
        (_, RAW_64) => Some((64, true)),
        (_, RAW_32) => Some((32, true)),
        _ => None,
    }
}

pub fn is_indexed(head: &[u8]) -> bool {
    // The magic stands in reading order; all numbers behind it are little-endian.
    head.starts_with(&INDEXED.to_be_bytes())
}

/// The raw profiles in a file, and what is wrong with it.
pub fn raw(bytes: &Bytes, bits: u8, big_endian: bool) -> (Raw, Option<Bad>) {
    let mut raw = Raw {
        bits,
        big_endian,
        ..Raw::default()
    };
    let bad = raw.read(bytes).err();
    (raw, bad)
}

/// Why the end of a profile is not found.
enum Unread {
    Bytes(Bad),
    Profile(profraw::Error),
}

impl From<profraw::Error> for Unread {
    fn from(error: profraw::Error) -> Unread {
        Unread::Profile(error)
    }
}

/// The largest header.
const HEAD: u64 = 19 * 8;

impl Raw {
    fn read(&mut self, bytes: &Bytes) -> Result<(), Bad> {
        let head = bytes
            .read(0, 16)
            .map_err(|_| Bad::new(8, "the raw profile is cut off in its header"))?;
        let word: [u8; 8] = head[8..].try_into().unwrap_or_default();
        let word = match self.big_endian {
            true => u64::from_be_bytes(word),
            false => u64::from_le_bytes(word),
        };
        self.version = word & !VARIANT_MASK;
        self.variants = variants(word);
        self.profiles = 1;
        let is_known = [10, 11].contains(&self.version) && self.bits == 64 && !self.big_endian;
        if !is_known {
            return Ok(());
        }
        self.profiles = 0;
        let mut at = 0;
        while at < bytes.size() {
            let rest = bytes.from(at);
            let head = rest.head(HEAD).map_err(|bad| bad.moved(at))?;
            let size = usize::try_from(rest.size()).unwrap_or(usize::MAX);
            let layout = Layout::of_file(&head, size)
                .map_err(|error| Bad::new(at, format!("raw profile: {error}")))?;
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
                self.binary_ids = binary_ids(&ids);
            }
            let read = |range: Range<usize>| rest.read(range.start as u64, range.len() as u64);
            let end =
                profraw::end_of_file(&layout, size, |range| read(range).map_err(Unread::Bytes));
            at += end.map_err(|why| match why {
                Unread::Bytes(bad) => bad.moved(at),
                Unread::Profile(error) => Bad::new(at, format!("raw profile: {error}")),
            })? as u64;
        }
        Ok(())
    }
}

/// Each is a length and so many bytes, padded to 8.
fn binary_ids(mut bytes: &[u8]) -> Vec<String> {
    let mut ids = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some(id) = rest.get(..length).filter(|id| !id.is_empty()) else {
            break;
        };
        ids.push(id.iter().map(|byte| format!("{byte:02x}")).collect());
        bytes = rest.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    ids
}

pub fn indexed(bytes: &Bytes) -> Result<Indexed, Bad> {
    let word = bytes
        .read(8, 8)
        .map_err(|_| Bad::new(8, "the profile is cut off in its header"))?;
    let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
    Ok(Indexed {
        version: word & !VARIANT_MASK,
        variants: variants(word),
    })
}

pub fn trace(bytes: &Bytes) -> Result<Trace, Bad> {
    let reader =
        tracefile::Reader::new(bytes.reader()).map_err(|error| Bad::new(0, error.to_string()))?;
    Ok(Trace {
        process: reader.header().pid.get(),
        records: reader.count(Count::Records),
        closed: reader.count(Count::Closed) == Some(1),
    })
}
