//! Clang's offload bundle ("Clang Offload Bundler" in clang's documentation): a header that names an entry for each
//! target, then the entries.

use crate::bytes::{Bad, Bytes, read_some};
use std::io::Read;

pub const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// More entries are a damaged number; there are not so many targets.
const MOST_ENTRIES: u64 = 4096;
const MOST_ID: u64 = 1024;

/// What the header says of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// From 1.
    pub number: u32,
    /// From the bundle's beginning.
    pub offset: u64,
    pub size: u64,
    /// Such as `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+`.
    pub id: String,
}

/// The header of a bundle, and which entries can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// In the header's order.
    pub entries: Vec<Entry>,
    /// Bytes of the header.
    pub header: u64,
    /// Where the last entry ends.
    pub end: u64,
    /// What is wrong with it.
    pub problems: Vec<Bad>,
}

/// Reads a bundle's header from the front of `stream`, of which `size` bytes are there. Entries that lie outside, or
/// over one another, are left out.
pub fn read(stream: &mut dyn Read, size: u64) -> Result<Bundle, Bad> {
    let mut input = Counted { stream, at: 0 };
    let magic = input.bytes(MAGIC.len())?;
    if magic != MAGIC {
        return Err(Bad::new(
            0,
            "no offload bundle: it does not begin with its magic",
        ));
    }
    let count = input.word()?;
    if count > MOST_ENTRIES {
        let what = format!("an offload bundle that claims {count} entries");
        return Err(Bad::new(MAGIC.len() as u64, what));
    }
    let mut bundle = Bundle::default();
    for number in 1..=count as u32 {
        let at = input.at;
        let mut entry = || -> Result<Entry, Bad> {
            let (offset, size, length) = (input.word()?, input.word()?, input.word()?);
            if length > MOST_ID {
                let what =
                    format!("entry {number} of an offload bundle claims a name of {length} bytes");
                return Err(Bad::new(at, what));
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
            Err(bad) => {
                // Those before it are whole.
                bundle.problems.push(bad);
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
                // There is nothing of the host's in a fat binary.
                _ if entry.size == 0 => None,
                Some(end) if end > size => Some(format!(
                    "entry {number} {id} of {} bytes ends beyond the {size} bytes that are there",
                    entry.size
                )),
                None => Some(format!("entry {number} {id} claims {} bytes", entry.size)),
                Some(_) if entry.offset < self.end => {
                    Some(format!("entry {number} {id} lies over what is before it"))
                }
                Some(_) => None,
            };
            match wrong {
                Some(what) => self.problems.push(Bad::new(entry.offset, what)),
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

    /// The entries that have bytes, in the order of these.
    pub fn in_order(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.iter().filter(|e| e.size > 0).collect();
        entries.sort_by_key(|entry| entry.offset);
        entries
    }
}

struct Counted<'a> {
    stream: &'a mut dyn Read,
    at: u64,
}

impl Counted<'_> {
    fn bytes(&mut self, size: usize) -> Result<Vec<u8>, Bad> {
        let mut bytes = vec![0; size];
        let mut done = 0;
        while done < size {
            match read_some(self.stream, &mut bytes[done..]) {
                Ok(0) => {
                    return Err(Bad::new(
                        self.at,
                        "the header of an offload bundle is cut off",
                    ));
                }
                Ok(n) => done += n,
                Err(error) => {
                    let what = format!("the header of an offload bundle: {error}");
                    return Err(Bad::new(self.at, what));
                }
            }
        }
        self.at += size as u64;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u64, Bad> {
        let bytes = self.bytes(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }
}

/// Where the next bundle begins in `bytes`, from `at` on: its magic, compressed or not.
pub fn next(bytes: &Bytes, mut at: u64) -> Result<Option<u64>, Bad> {
    const STEP: u64 = 1 << 18;
    let known = |bytes: &[u8]| bytes.starts_with(MAGIC) || crate::packed::is_packed(bytes);
    while at < bytes.size() {
        // A magic may stand across the end of a step.
        let size = (STEP + MAGIC.len() as u64).min(bytes.size() - at);
        let part = bytes.read(at, size).map_err(|bad| bad.moved(at))?;
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
