//! Random access to bytes in a file, in memory, or in the parts of a stream that were kept. Files are read, not mapped:
//! a file that shrinks meanwhile causes an error, not a signal, and memory use is bounded.

use crate::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use tempfile::{SpooledData, SpooledTempFile};
use xxhash_rust::xxh3::Xxh3;

#[derive(Debug)]
enum Store {
    File(File),
    Memory(Vec<u8>),
    /// Parts of a stream in order, with gaps, and the store that has them.
    Parts(Vec<Part>, Box<Store>),
}

/// A part of a stream that was kept.
#[derive(Debug)]
struct Part {
    /// Offset in the stream, in bytes.
    start: u64,
    /// In bytes.
    size: u64,
    /// Offset in the store, in bytes.
    at: u64,
}

impl Store {
    /// Fills `buffer` with the bytes at offset `from`. The error is a message.
    fn read(&self, from: u64, buffer: &mut [u8]) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot be read: {error}");
        match self {
            Store::File(file) => file.read_exact_at(buffer, from).map_err(failed),
            Store::Memory(bytes) => {
                let from = from as usize;
                buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
                Ok(())
            }
            Store::Parts(parts, kept) => {
                let after = parts.partition_point(|part| part.start <= from);
                let part = after.checked_sub(1).map(|n| &parts[n]);
                let inside = |part: &&Part| from + buffer.len() as u64 <= part.start + part.size;
                match part.filter(inside) {
                    Some(part) => kept.read(part.at + (from - part.start), buffer),
                    None => Err("out of bounds: inside the code of a code object".into()),
                }
            }
        }
    }
}

/// A range of bytes with random access. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bytes {
    store: Rc<Store>,
    start: u64,
    size: u64,
}

/// Bytes per copy.
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
        }
    }

    /// Number of bytes, including those that were not kept.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` with the bytes at offset `at`.
    ///
    /// # Errors
    /// They are out of bounds, were not kept, or reading the file fails.
    pub fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let end = at.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(error!(at; "{} bytes requested, {} available", buffer.len(), self.size));
        }
        let read = self.store.read(self.start + at, buffer);
        read.map_err(|what| Error::new(at, what))
    }

    /// Reads `size` bytes at offset `at`. See [`Bytes::read_into`].
    pub fn read(&self, at: u64, size: u64) -> Result<Vec<u8>, Error> {
        self.slice(at, size)?;
        let mut buffer = vec![0; size as usize];
        self.read_into(at, &mut buffer)?;
        Ok(buffer)
    }

    /// Reads the first `size` bytes, or all if there are fewer.
    pub fn head(&self, size: u64) -> Result<Vec<u8>, Error> {
        self.read(0, size.min(self.size))
    }

    /// The range of `size` bytes at offset `at`, without reading it.
    ///
    /// # Errors
    /// It is out of bounds.
    pub fn slice(&self, at: u64, size: u64) -> Result<Bytes, Error> {
        if at.checked_add(size).is_none_or(|end| end > self.size) {
            return Err(error!(at; "{size} bytes requested, {} available", self.size));
        }
        Ok(Bytes {
            store: self.store.clone(),
            start: self.start + at,
            size,
        })
    }

    /// The range from offset `at` to the end.
    pub fn from(&self, at: u64) -> Bytes {
        let at = at.min(self.size);
        Bytes {
            store: self.store.clone(),
            start: self.start + at,
            size: self.size - at,
        }
    }

    /// Reads all bytes in order.
    pub fn reader(&self) -> Reader {
        Reader {
            bytes: self.clone(),
            at: 0,
        }
    }

    /// Writes all bytes to `to`. Returns XXH3 (128 bits) of them.
    pub fn copy_to(&self, to: &mut dyn Write) -> io::Result<u128> {
        let mut digest = Xxh3::new();
        let mut buffer = vec![0; CHUNK];
        let mut stream = self.reader();
        loop {
            let n = read_some(&mut stream, &mut buffer)?;
            if n == 0 {
                return Ok(digest.digest128());
            }
            digest.update(&buffer[..n]);
            to.write_all(&buffer[..n])?;
        }
    }

    /// XXH3 (128 bits) of all bytes.
    pub fn digest(&self) -> io::Result<u128> {
        self.copy_to(&mut io::sink())
    }
}

/// Reads once, and again if a signal interrupts it. Returns the number of bytes; 0 at the end.
pub fn read_some(stream: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads [`Bytes`] in order.
pub struct Reader {
    bytes: Bytes,
    at: u64,
}

impl Reader {
    /// Number of bytes that were not read yet.
    pub fn left(&self) -> u64 {
        self.bytes.size - self.at
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = (self.bytes.size - self.at).min(buffer.len() as u64) as usize;
        self.bytes
            .read_into(self.at, &mut buffer[..n])
            .map_err(|error| io::Error::other(error.message))?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Keeps parts of a stream: in memory up to [`Keeper::IN_MEMORY`], otherwise in an unnamed file.
pub struct Keeper {
    parts: Vec<Part>,
    kept: SpooledTempFile,
    /// The total size of the parts, in bytes.
    size: u64,
}

impl Keeper {
    /// Limit on the bytes in memory. Together with zstd's window of 128 MiB it is below 256 MiB. RCCL's debug information
    /// for one GPU fits.
    const IN_MEMORY: usize = 72 << 20;

    pub fn new() -> Keeper {
        Keeper {
            parts: Vec::new(),
            kept: SpooledTempFile::new(Self::IN_MEMORY),
            size: 0,
        }
    }

    /// Keeps `bytes`, which are at offset `at` of the stream. Must be called in the order of the stream.
    pub fn keep(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.kept.write_all(bytes)?;
        let size = bytes.len() as u64;
        match self.parts.last_mut() {
            Some(last) if last.start + last.size == at => last.size += size,
            _ => self.parts.push(Part {
                start: at,
                size,
                at: self.size,
            }),
        }
        self.size += size;
        Ok(())
    }

    /// The kept parts of a stream of `size` bytes.
    pub fn finish(self, size: u64) -> Bytes {
        let kept = match self.kept.into_inner() {
            SpooledData::InMemory(bytes) => Store::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => Store::File(file),
        };
        if self.size == size {
            return Bytes::of(kept, size);
        }
        Bytes::of(Store::Parts(self.parts, Box::new(kept)), size)
    }
}
