//! Bytes that are read anywhere in them, wherever they are: a range of a file, memory, or the parts that were worth
//! keeping of something that was unpacked. Files are read, never mapped: a file that shrinks is an error, and memory
//! holds what is looked at.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use tempfile::NamedTempFile;
use xxhash_rust::xxh3::Xxh3;

/// What is wrong with bytes, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// From their beginning.
    pub at: u64,
    pub what: String,
}

impl Bad {
    pub fn new(at: u64, what: impl Into<String>) -> Bad {
        Bad {
            at,
            what: what.into(),
        }
    }

    /// The same, of bytes that begin `by` before.
    pub fn moved(self, by: u64) -> Bad {
        Bad {
            at: self.at.saturating_add(by),
            ..self
        }
    }
}

#[derive(Debug)]
enum Store {
    File(File),
    Memory(Vec<u8>),
    /// Unpacked into a file that goes when nobody wants it any more.
    Unpacked(NamedTempFile),
    /// In order, with gaps.
    Parts(Vec<Part>),
}

/// A part that was kept of a stream.
#[derive(Debug)]
struct Part {
    /// From the stream's beginning.
    start: u64,
    size: u64,
    bytes: Kept,
}

#[derive(Debug)]
enum Kept {
    Memory(Vec<u8>),
    /// And where in the file it begins.
    Spilled(Rc<File>, u64),
}

/// Bytes that can be read anywhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bytes {
    store: Rc<Store>,
    start: u64,
    size: u64,
    digest: Option<u128>,
}

/// The most that is copied at once.
const CHUNK: usize = 1 << 20;

impl Bytes {
    pub fn of_file(file: File) -> io::Result<Bytes> {
        let size = file.metadata()?.len();
        Ok(Bytes::of(Store::File(file), size))
    }

    pub fn of_memory(bytes: Vec<u8>) -> Bytes {
        let size = bytes.len() as u64;
        Bytes::of(Store::Memory(bytes), size)
    }

    fn of(store: Store, size: u64) -> Bytes {
        Bytes {
            store: Rc::new(store),
            start: 0,
            size,
            digest: None,
        }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether every byte is there, not only those that tell what it is.
    pub fn is_whole(&self) -> bool {
        !matches!(*self.store, Store::Parts(_))
    }

    /// Fills `buffer` with the bytes from `at`.
    pub fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<(), Bad> {
        let end = at.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            let what = format!("{} bytes wanted, {} are there", buffer.len(), self.size);
            return Err(Bad::new(at, what));
        }
        let from = self.start + at;
        let failed = |error: io::Error| Bad::new(at, format!("cannot be read: {error}"));
        match &*self.store {
            Store::File(file) => file.read_exact_at(buffer, from).map_err(failed),
            Store::Unpacked(file) => file.as_file().read_exact_at(buffer, from).map_err(failed),
            Store::Memory(bytes) => {
                let from = from as usize;
                buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
                Ok(())
            }
            Store::Parts(parts) => {
                let after = parts.partition_point(|part| part.start <= from);
                let part = after.checked_sub(1).map(|n| &parts[n]);
                let inside = |part: &&Part| from + buffer.len() as u64 <= part.start + part.size;
                let Some(part) = part.filter(inside) else {
                    return Err(Bad::new(at, "lies where only code is expected"));
                };
                let from = from - part.start;
                match &part.bytes {
                    Kept::Memory(bytes) => {
                        let from = from as usize;
                        buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
                        Ok(())
                    }
                    Kept::Spilled(file, start) => {
                        file.read_exact_at(buffer, start + from).map_err(failed)
                    }
                }
            }
        }
    }

    /// `size` bytes from `at`.
    pub fn read(&self, at: u64, size: u64) -> Result<Vec<u8>, Bad> {
        self.slice(at, size)?;
        let mut buffer = vec![0; size as usize];
        self.read_into(at, &mut buffer)?;
        Ok(buffer)
    }

    /// What there is of the first `size` bytes.
    pub fn head(&self, size: u64) -> Result<Vec<u8>, Bad> {
        self.read(0, size.min(self.size))
    }

    /// `size` bytes from `at`, not read yet.
    pub fn slice(&self, at: u64, size: u64) -> Result<Bytes, Bad> {
        if at.checked_add(size).is_none_or(|end| end > self.size) {
            let what = format!("{size} bytes wanted, {} are there", self.size);
            return Err(Bad::new(at, what));
        }
        Ok(Bytes {
            store: self.store.clone(),
            start: self.start + at,
            size,
            digest: None,
        })
    }

    /// Everything from `at`.
    pub fn from(&self, at: u64) -> Bytes {
        let at = at.min(self.size);
        Bytes {
            store: self.store.clone(),
            start: self.start + at,
            size: self.size - at,
            digest: None,
        }
    }

    /// From front to back.
    pub fn reader(&self) -> Reader {
        Reader {
            bytes: self.clone(),
            at: 0,
        }
    }

    /// Writes all of it; the digest of what was written.
    pub fn copy_to(&self, to: &mut dyn Write) -> io::Result<u128> {
        let mut digest = Xxh3::new();
        let mut buffer = vec![0; CHUNK];
        let mut reader = self.reader();
        loop {
            let n = reader.read(&mut buffer)?;
            if n == 0 {
                return Ok(digest.digest128());
            }
            digest.update(&buffer[..n]);
            to.write_all(&buffer[..n])?;
        }
    }

    /// XXH3 (128 bits) of all of it.
    pub fn digest(&self) -> io::Result<u128> {
        match self.digest {
            Some(digest) => Ok(digest),
            None => self.copy_to(&mut io::sink()),
        }
    }

    /// The file that it was unpacked into and its digest, when it is all of that file and nobody else looks at it.
    pub fn into_unpacked(mut self) -> Result<(NamedTempFile, u128), Bytes> {
        let Some(digest) = self.digest else {
            return Err(self);
        };
        match Rc::try_unwrap(self.store) {
            Ok(Store::Unpacked(file)) => Ok((file, digest)),
            Ok(store) => {
                self.store = Rc::new(store);
                Err(self)
            }
            Err(store) => {
                self.store = store;
                Err(self)
            }
        }
    }

    /// Takes all of a stream into a file in `dir`.
    pub fn unpack(stream: &mut dyn Read, dir: &Path) -> io::Result<Bytes> {
        let mut file = tempfile::Builder::new()
            .prefix(".devprof-")
            .tempfile_in(dir)?;
        let mut digest = Xxh3::new();
        let mut buffer = vec![0; CHUNK];
        let mut size = 0;
        loop {
            let n = read_some(stream, &mut buffer)?;
            if n == 0 {
                break;
            }
            digest.update(&buffer[..n]);
            file.write_all(&buffer[..n])?;
            size += n as u64;
        }
        let mut bytes = Bytes::of(Store::Unpacked(file), size);
        bytes.digest = Some(digest.digest128());
        Ok(bytes)
    }
}

/// Reads once, whatever interrupts it.
pub fn read_some(stream: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads [`Bytes`] from front to back.
pub struct Reader {
    bytes: Bytes,
    at: u64,
}

impl Reader {
    /// Bytes that were not read yet.
    pub fn left(&self) -> u64 {
        self.bytes.size - self.at
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = (self.bytes.size - self.at).min(buffer.len() as u64) as usize;
        self.bytes
            .read_into(self.at, &mut buffer[..n])
            .map_err(|bad| io::Error::other(bad.what))?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Keeps the parts of a stream that are worth it: in memory, and beyond [`Keeper::IN_MEMORY`] in a file without a name.
#[derive(Default)]
pub struct Keeper {
    parts: Vec<Part>,
    in_memory: usize,
    spill: Option<(Rc<File>, u64)>,
}

impl Keeper {
    /// Bytes that are kept in memory. With zstd's window of 128 MiB it is below 256 MiB; RCCL's debug information for a
    /// GPU is below this.
    pub const IN_MEMORY: usize = 72 << 20;

    /// Keeps `bytes`, which stand at `at` in the stream. They come in order.
    pub fn keep(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let follows = |part: &&mut Part| part.start + part.size == at;
        let last = self.parts.last_mut().filter(follows);
        if self.in_memory + bytes.len() <= Self::IN_MEMORY {
            self.in_memory += bytes.len();
            match last {
                Some(Part {
                    size,
                    bytes: Kept::Memory(kept),
                    ..
                }) => {
                    kept.extend_from_slice(bytes);
                    *size += bytes.len() as u64;
                }
                _ => self.parts.push(Part {
                    start: at,
                    size: bytes.len() as u64,
                    bytes: Kept::Memory(bytes.to_vec()),
                }),
            }
            return Ok(());
        }
        // A part that is in memory goes on in the file, so that a read never crosses from one to the other.
        if let Some(part) = last
            && let Kept::Memory(kept) = &mut part.bytes
        {
            let kept = std::mem::take(kept);
            self.in_memory -= kept.len();
            let (file, start) = spill(&mut self.spill, &kept)?;
            part.bytes = Kept::Spilled(file, start);
        }
        let (file, start) = spill(&mut self.spill, bytes)?;
        let size = bytes.len() as u64;
        match self.parts.last_mut() {
            Some(part) if part.start + part.size == at => part.size += size,
            _ => self.parts.push(Part {
                start: at,
                size,
                bytes: Kept::Spilled(file, start),
            }),
        }
        Ok(())
    }

    /// What was kept of a stream of `size` bytes.
    pub fn finish(self, size: u64) -> Bytes {
        let mut parts = self.parts;
        let all = |part: &Part| part.start == 0 && part.size == size;
        match parts.as_mut_slice() {
            [part] if all(part) => match &mut part.bytes {
                Kept::Memory(bytes) => Bytes::of_memory(std::mem::take(bytes)),
                Kept::Spilled(..) => Bytes::of(Store::Parts(parts), size),
            },
            _ => Bytes::of(Store::Parts(parts), size),
        }
    }
}

/// Writes `bytes` at the end of the file, which is made when there is none. Where they are.
fn spill(to: &mut Option<(Rc<File>, u64)>, bytes: &[u8]) -> io::Result<(Rc<File>, u64)> {
    let (file, end) = match to {
        Some(spill) => spill,
        None => to.insert((Rc::new(tempfile::tempfile()?), 0)),
    };
    file.write_all_at(bytes, *end)?;
    let start = *end;
    *end += bytes.len() as u64;
    Ok((file.clone(), start))
}
