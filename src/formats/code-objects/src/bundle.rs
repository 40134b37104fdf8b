//! Clang's offload bundle ("Clang Offload Bundler" in clang's documentation): a header with one entry per target, then
//! the contents of the entries.

use crate::bytes::{Bytes, read_some};
use crate::error::Error;
use std::io::Read;

pub const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Limit on the number of entries. There are fewer targets, so a larger number is damage.
const MAX_ENTRIES: u64 = 4096;
/// Limit on the length of an id in bytes.
const MAX_ID: u64 = 1024;

/// An entry in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counts from 1.
    pub number: u32,
    /// Bytes from the beginning of the bundle.
    pub offset: u64,
    /// In bytes.
    pub size: u64,
    /// Target, for example `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+`.
    pub id: String,
}

/// The valid entries of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// In the order of the header.
    pub entries: Vec<Entry>,
    /// Size of the header in bytes.
    pub header: u64,
    /// Offset after the last entry, in bytes.
    pub end: u64,
    /// Why other entries were left out.
    pub problems: Vec<Error>,
}

/// Reads a bundle's header from `stream`, which has `size` bytes. Entries that are out of bounds, or overlap others, are
/// left out.
pub fn read(stream: &mut dyn Read, size: u64) -> Result<Bundle, Error> {
    let mut input = Counted { stream, at: 0 };
    let magic = input.bytes(MAGIC.len())?;
    if magic != MAGIC {
        return Err(Error::new(0, "not an offload bundle"));
    }
    let count = input.word()?;
    if count > MAX_ENTRIES {
        return Err(error!(MAGIC.len() as u64; "an offload bundle claims {count} entries"));
    }
    let mut bundle = Bundle::default();
    for number in 1..=count as u32 {
        let at = input.at;
        let mut entry = || -> Result<Entry, Error> {
            let (offset, size, length) = (input.word()?, input.word()?, input.word()?);
            if length > MAX_ID {
                let what =
                    format!("entry {number} of an offload bundle claims an id of {length} bytes");
                return Err(Error::new(at, what));
            }
            let id = input.bytes(length as usize)?;
            Ok(Entry {
                number,
                offset,
                size,
                id: String::from_utf8_lossy(&id).into_owned(),
            })
        };
        match entry() {
            Ok(entry) => bundle.entries.push(entry),
            Err(error) => {
                // Earlier entries are valid.
                bundle.problems.push(error);
                break;
            }
        }
    }
    bundle.header = input.at;
    bundle.check(size);
    Ok(bundle)
}

impl Bundle {
    fn check(&mut self, size: u64) {
        let mut all = std::mem::take(&mut self.entries);
        all.sort_by_key(|entry| (entry.offset, entry.number));
        self.end = self.header;
        for entry in all {
            let Entry { number, id, .. } = &entry;
            let wrong = match entry.offset.checked_add(entry.size) {
                // In a fat binary, the entry of the host is empty.
                _ if entry.size == 0 => None,
                Some(end) if end > size => Some(format!(
                    "entry {number} {id} ({} bytes) extends past the end of the data ({size} bytes)",
                    entry.size
                )),
                None => Some(format!("entry {number} {id} claims {} bytes", entry.size)),
                Some(_) if entry.offset < self.end => {
                    Some(format!("entry {number} {id} overlaps the data before it"))
                }
                Some(_) => None,
            };
            match wrong {
                Some(what) => self.problems.push(Error::new(entry.offset, what)),
                None => {
                    if entry.size > 0 {
                        self.end = entry.offset + entry.size;
                    }
                    self.entries.push(entry);
                }
            }
        }
        self.entries.sort_by_key(|entry| entry.number);
    }

    /// The entries that are not empty, in the order of their contents.
    pub fn in_order(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.iter().filter(|e| e.size > 0).collect();
        entries.sort_by_key(|entry| entry.offset);
        entries
    }
}

/// A stream, and the number of bytes that were read from it.
struct Counted<'a> {
    stream: &'a mut dyn Read,
    at: u64,
}

impl Counted<'_> {
    fn bytes(&mut self, size: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; size];
        let mut done = 0;
        while done < size {
            match read_some(self.stream, &mut bytes[done..]) {
                Ok(0) => {
                    return Err(Error::new(self.at, "truncated header of an offload bundle"));
                }
                Ok(n) => done += n,
                Err(error) => {
                    return Err(error!(self.at; "header of an offload bundle: {error}"));
                }
            }
        }
        self.at += size as u64;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u64, Error> {
        let bytes = self.bytes(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }
}

/// Offset of the first bundle at or after `at`, found by its magic. It can be compressed.
pub fn next(bytes: &Bytes, mut at: u64) -> Result<Option<u64>, Error> {
    const STEP: u64 = 1 << 18;
    let known = |bytes: &[u8]| bytes.starts_with(MAGIC) || crate::packed::is_packed(bytes);
    while at < bytes.size() {
        // A magic can extend into the next step.
        let size = (STEP + MAGIC.len() as u64).min(bytes.size() - at);
        let part = bytes.read(at, size).map_err(|error| error.shifted(at))?;
        let starts = part.iter().enumerate().take(STEP as usize);
        let found = starts
            .filter(|(_, byte)| [MAGIC[0], b'C'].contains(byte))
            .find(|(n, _)| known(&part[*n..]));
        if let Some((n, _)) = found {
            return Ok(Some(at + n as u64));
        }
        at += STEP;
    }
    Ok(None)
}
