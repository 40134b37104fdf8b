//! Reads a trace in order, in bounded memory. Nothing in it is trusted: damage is reported with its offset, and reading
//! continues after it.
//!
//! The writer publishes the number of complete records. A file that is not closed can have more. These are read up to
//! the first incomplete one, which a running writer has not finished yet, or a killed writer never finished.

use crate::format::*;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use zerocopy::FromBytes;

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("not a trace of devprof: it does not begin with \"DEVPROFT\"")]
    Magic,
    #[error(
        "trace version {0} is not supported: this devprof reads versions {OLDEST_VERSION} to {VERSION}; use the devprof that wrote it, or a later one"
    )]
    Version(u32),
    #[error("the file is truncated after {0} bytes, inside its header of {HEADER_SIZE} bytes")]
    Short(u64),
    #[error("the header is damaged (bytes 0 to {COUNTERS}): wrong checksum")]
    Header,
}

/// A damaged part of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {what}")]
pub struct Damage {
    /// Offset in the file, in bytes.
    pub offset: u64,
    pub what: String,
}

/// A record in the file.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    Dispatch(Dispatch),
    Call(Call),
    Text(Text),
    Kernel(Kernel),
    Agent(Agent),
    Queue(Queue),
    Process(Process),
    Copy(MemoryCopy),
    Marker(Marker),
    Stream(Stream),
    Name(Name),
    Recording(Recording),
    /// A record of a kind that this version does not know.
    Unknown(u16),
}

/// Reads the records of a file in order.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    /// In the order of [`Count::ALL`]; `None` if damaged.
    counts: [Option<u64>; Count::ALL.len()],
    /// Offset of the next record in the file, in bytes.
    offset: u64,
    /// The record after zeros that were reported.
    after_gap: Option<Result<Item, Damage>>,
    ended: bool,
}

impl Reader<BufReader<File>> {
    pub fn open(path: &Path) -> Result<Self, Error> {
        Reader::new(BufReader::with_capacity(1 << 20, File::open(path)?))
    }
}

/// Fills `buffer`. Returns the number of bytes, which is smaller at the end of the input.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match input.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

impl<R: Read> Reader<R> {
    pub fn new(mut input: R) -> Result<Self, Error> {
        let mut page = [0; HEADER_SIZE];
        let length = fill(&mut input, &mut page)?;
        if length < MAGIC.len() || page[..MAGIC.len()] != MAGIC {
            return Err(Error::Magic);
        }
        let (header, _) = Header::read_from_prefix(&page).map_err(|_| Error::Header)?;
        if length >= 12 && !(OLDEST_VERSION..=VERSION).contains(&header.version.get()) {
            return Err(Error::Version(header.version.get()));
        }
        if length < HEADER_SIZE {
            return Err(Error::Short(length as u64));
        }
        let sizes = (header.header_size.get(), header.record_size.get());
        if header.crc.get() != header.checksum()
            || sizes != (HEADER_SIZE as u32, RECORD_SIZE as u32)
        {
            return Err(Error::Header);
        }
        let counts = Count::ALL.map(|count| {
            if count.since() > header.version.get() {
                return Some(0);
            }
            let (counter, _) = Counter::read_from_prefix(&page[count.offset()..]).ok()?;
            counter.get()
        });
        Ok(Reader {
            input,
            header,
            counts,
            offset: HEADER_SIZE as u64,
            after_gap: None,
            ended: false,
        })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The value of a counter when the file was opened. `None` if it is damaged.
    pub fn count(&self, count: Count) -> Option<u64> {
        self.counts[count as usize]
    }

    /// Number of bytes that were read, from the beginning of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the record at this offset is after those that the writer had published.
    fn is_unpublished(&self, offset: u64) -> bool {
        let index = (offset - HEADER_SIZE as u64) / RECORD_SIZE as u64;
        self.count(Count::Closed) == Some(0)
            && self.count(Count::Records).is_some_and(|n| index >= n)
    }

    /// The next record, or damage. `None` at the end.
    pub fn next_item(&mut self) -> io::Result<Option<Result<Item, Damage>>> {
        if let Some(item) = self.after_gap.take() {
            return Ok(Some(item));
        }
        let mut zeros = 0u64;
        while !self.ended {
            let mut record = [0; RECORD_SIZE];
            let length = fill(&mut self.input, &mut record)?;
            if length < RECORD_SIZE {
                self.ended = true;
                return Ok(self.end(zeros, &record[..length]).map(Err));
            }
            let at = self.offset;
            self.offset += RECORD_SIZE as u64;
            if record.iter().all(|&byte| byte == 0) {
                zeros += RECORD_SIZE as u64;
                continue;
            }
            let item = item(&record).map_err(|what| Damage { offset: at, what });
            if (zeros != 0 || item.is_err()) && self.is_unpublished(at - zeros) {
                self.ended = true;
                return Ok(None);
            }
            if zeros == 0 {
                return Ok(Some(item));
            }
            // Records are written without gaps, so these zeros are damage.
            self.after_gap = Some(item);
            return Ok(Some(Err(Damage {
                offset: at - zeros,
                what: format!("{} records are zeros", zeros / RECORD_SIZE as u64),
            })));
        }
        Ok(None)
    }

    /// Damage at the end of the file, where the last `zeros` bytes were not written and `rest` is an incomplete record.
    fn end(&self, zeros: u64, rest: &[u8]) -> Option<Damage> {
        let written = self.offset - zeros;
        let damage = |offset, what: String| Some(Damage { offset, what });
        let Some(records) = self.count(Count::Records) else {
            let what = "the number of records is damaged: the file may be truncated";
            return damage(Count::Records.offset() as u64, what.into());
        };
        let present = (written - HEADER_SIZE as u64) / RECORD_SIZE as u64;
        if present < records {
            let what = format!(
                "the file is truncated: {} of {records} records are missing",
                records - present
            );
            return damage(written, what);
        }
        if rest.iter().any(|&byte| byte != 0) {
            return damage(
                self.offset,
                format!("{} bytes after the last complete record", rest.len()),
            );
        }
        None
    }
}

/// Reads a record. The error describes the damage.
fn item(bytes: &[u8; RECORD_SIZE]) -> Result<Item, String> {
    fn read<T: Record>(bytes: &[u8; RECORD_SIZE]) -> Result<T, String> {
        T::read_from_bytes(bytes).map_err(|_| "a record of the wrong size".into())
    }
    let (head, _) = Head::read_from_prefix(bytes).map_err(|_| "a record of the wrong size")?;
    if head.crc.get() != checksum(bytes) {
        return Err("a damaged record: wrong checksum".into());
    }
    Ok(match head.kind.get() {
        kind::DISPATCH => Item::Dispatch(read(bytes)?),
        kind::CALL => Item::Call(read(bytes)?),
        kind::TEXT => Item::Text(read(bytes)?),
        kind::KERNEL => Item::Kernel(read(bytes)?),
        kind::AGENT => Item::Agent(read(bytes)?),
        kind::QUEUE => Item::Queue(read(bytes)?),
        kind::PROCESS => Item::Process(read(bytes)?),
        kind::COPY => Item::Copy(read(bytes)?),
        kind::MARKER => Item::Marker(read(bytes)?),
        kind::STREAM => Item::Stream(read(bytes)?),
        kind::NAME => Item::Name(read(bytes)?),
        kind::RECORDING => Item::Recording(read(bytes)?),
        other => Item::Unknown(other),
    })
}

/// The records to which others refer by id (texts, kernels, agents, queues, streams), names, and the process.
#[derive(Debug, Default)]
pub struct Tables {
    texts: HashMap<u64, (u32, Vec<u8>)>,
    pub kernels: HashMap<u32, Kernel>,
    pub agents: HashMap<u32, Agent>,
    pub queues: HashMap<u32, Queue>,
    pub streams: HashMap<u32, Stream>,
    /// Names that the program gave, by type ([`named`]) and id.
    pub names: HashMap<(u32, u64), Name>,
    pub process: Option<Process>,
}

impl Tables {
    /// Adds a record, if other records can refer to it.
    ///
    /// # Errors
    /// A text is damaged.
    pub fn take(&mut self, item: &Item) -> Result<(), String> {
        let id = |head: &Head| head.id.get() as u32;
        match item {
            Item::Text(text) => return self.take_text(text),
            Item::Kernel(kernel) => _ = self.kernels.insert(id(&kernel.head), *kernel),
            Item::Agent(agent) => _ = self.agents.insert(id(&agent.head), *agent),
            Item::Queue(queue) => _ = self.queues.insert(id(&queue.head), *queue),
            Item::Stream(stream) => _ = self.streams.insert(id(&stream.head), *stream),
            Item::Name(name) => {
                let object = (name.what.get(), name.head.id.get());
                self.names.insert(object, *name);
            }
            Item::Process(process) => self.process = Some(*process),
            Item::Dispatch(_)
            | Item::Call(_)
            | Item::Copy(_)
            | Item::Marker(_)
            | Item::Recording(_)
            | Item::Unknown(_) => {}
        }
        Ok(())
    }

    fn take_text(&mut self, piece: &Text) -> Result<(), String> {
        let (length, offset) = (piece.length.get(), piece.offset.get());
        let id = piece.head.id.get();
        let (total, bytes) = self.texts.entry(id).or_insert((length, Vec::new()));
        if *total != length || bytes.len() != offset as usize || offset > length {
            return Err(format!(
                "a piece of text {id} is missing before byte {offset}"
            ));
        }
        let rest = (length - offset) as usize;
        bytes.extend_from_slice(&piece.bytes[..rest.min(PIECE)]);
        if rest <= PIECE && std::str::from_utf8(bytes).is_err() {
            return Err(format!("text {id} is not UTF-8"));
        }
        Ok(())
    }

    /// A text, if it is complete. No text has the id 0.
    pub fn text(&self, id: u32) -> Option<&str> {
        let (length, bytes) = self.texts.get(&u64::from(id))?;
        (bytes.len() == *length as usize).then(|| std::str::from_utf8(bytes).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn file(records: &[[u8; RECORD_SIZE]]) -> Vec<u8> {
        let mut bytes = Header::new(1, 1_000_000_000, 5, 6).page().to_vec();
        set(&mut bytes, Count::Records, records.len() as u64);
        bytes.extend(records.concat());
        bytes
    }

    fn set(file: &mut [u8], count: Count, value: u64) {
        let at = count.offset();
        file[at..at + size_of::<Counter>()].copy_from_slice(Counter::new(value).as_bytes());
    }

    /// A name of two pieces, a kernel with this name, and a dispatch of this kernel.
    fn example() -> Vec<u8> {
        let mut records: Vec<_> = pieces(1, &"x".repeat(150)).map(Record::seal).collect();
        let mut kernel = Kernel::new(1, 0);
        kernel.name = 1.into();
        let mut dispatch = Dispatch::new(1, flag::NO_CALL);
        dispatch.kernel = 1.into();
        records.extend([kernel.seal(), dispatch.seal()]);
        file(&records)
    }

    fn read(bytes: &[u8]) -> Result<(Tables, Vec<u64>, Vec<Damage>), Error> {
        let mut reader = Reader::new(bytes)?;
        let mut tables = Tables::default();
        let (mut dispatches, mut damages) = (Vec::new(), Vec::new());
        while let Some(item) = reader.next_item()? {
            match item {
                Ok(Item::Dispatch(dispatch)) => dispatches.push(dispatch.head.id.get()),
                Ok(item) => {
                    // A name is incomplete if one of its pieces is damaged.
                    let _ = tables.take(&item);
                }
                Err(damage) => damages.push(damage),
            }
        }
        Ok((tables, dispatches, damages))
    }

    #[test]
    fn written_records_are_read() {
        let (tables, dispatches, damages) = read(&example()).unwrap();
        assert_eq!(dispatches, [1]);
        assert_eq!(damages, []);
        assert_eq!(
            tables.text(tables.kernels[&1].name.get()),
            Some(&*"x".repeat(150))
        );
    }

    /// Build IDs are in bytes that earlier builds wrote as 0, and that readers of earlier builds ignore.
    #[test]
    fn a_kernel_may_refer_to_a_build_id() {
        let mut records: Vec<_> = pieces(1, "kernel")
            .chain(pieces(2, &"0f".repeat(20)))
            .map(Record::seal)
            .collect();
        for (id, build_id) in [(1, 2), (2, 0)] {
            let mut kernel = Kernel::new(id, 0);
            kernel.name = 1.into();
            kernel.build_id = build_id.into();
            records.push(kernel.seal());
            assert_eq!(records.last().unwrap()[52..56], build_id.to_le_bytes());
        }
        let (tables, ..) = read(&file(&records)).unwrap();
        let build_id = |kernel| tables.text(tables.kernels[&kernel].build_id.get());
        assert_eq!(build_id(1), Some(&*"0f".repeat(20)));
        assert_eq!(build_id(2), None);
    }

    #[test]
    fn each_damaged_byte_is_reported_and_affects_one_record_at_most() {
        let example = example();
        for at in 0..example.len() {
            let mut bytes = example.clone();
            bytes[at] ^= 0x40;
            let in_counters = (COUNTERS..HEADER_SIZE).contains(&at);
            match read(&bytes) {
                Err(_) => assert!(at < COUNTERS, "byte {at}"),
                Ok((_, dispatches, damages)) => {
                    let records = Count::Records.offset()..Count::Records.offset() + 16;
                    assert!(at >= COUNTERS);
                    assert_eq!(
                        damages.len(),
                        usize::from(!in_counters || records.contains(&at)),
                        "byte {at}"
                    );
                    let hit = at >= HEADER_SIZE + 3 * RECORD_SIZE;
                    assert_eq!(dispatches.len(), usize::from(!hit), "byte {at}");
                    if !in_counters {
                        let record = (at - HEADER_SIZE) / RECORD_SIZE;
                        assert_eq!(
                            damages[0].offset as usize,
                            HEADER_SIZE + record * RECORD_SIZE
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn truncation_is_reported_at_each_length() {
        let example = example();
        for length in 0..example.len() {
            match read(&example[..length]) {
                Err(error) => assert!(length < HEADER_SIZE, "{length}: {error}"),
                Ok((_, _, damages)) => {
                    assert_eq!(damages.len(), 1, "{length}");
                    assert!(damages[0].what.contains("truncated"), "{length}");
                }
            }
        }
    }

    #[test]
    fn unwritten_space_is_valid_but_a_gap_is_damage() {
        let mut bytes = example();
        bytes.extend([0; 3 * RECORD_SIZE]);
        assert_eq!(read(&bytes).unwrap().2, []);
        bytes.extend(Dispatch::new(2, 0).seal());
        set(&mut bytes, Count::Records, 8);
        let (_, dispatches, damages) = read(&bytes).unwrap();
        assert_eq!(dispatches, [1, 2]);
        assert_eq!(damages[0].what, "3 records are zeros");
    }

    #[test]
    fn a_file_is_read_while_it_is_written() {
        let next = Dispatch::new(2, 0).seal();
        let last = Dispatch::new(3, 0).seal();
        let mut torn = last;
        torn[100..].fill(1);
        // A reader can see a later part of a write before an earlier one.
        for (middle, damage) in [
            ([0; RECORD_SIZE], "1 records are zeros"),
            (torn, "a damaged record: wrong checksum"),
        ] {
            let mut bytes = example();
            bytes.extend([next, middle, last].concat());
            let (_, dispatches, damages) = read(&bytes).unwrap();
            assert_eq!((dispatches, damages), (vec![1, 2], vec![]), "{damage}");
            for (count, value) in [(Count::Closed, 1), (Count::Records, 7)] {
                let mut bytes = bytes.clone();
                set(&mut bytes, count, value);
                let (_, dispatches, damages) = read(&bytes).unwrap();
                assert_eq!(dispatches, [1, 2, 3], "{count:?}");
                assert_eq!(damages[0].what, damage, "{count:?}");
            }
        }
    }

    #[test]
    fn an_unknown_version_is_rejected() {
        let mut bytes = example();
        for version in [0, 3] {
            bytes[8] = version;
            assert!(matches!(read(&bytes), Err(Error::Version(found)) if found == version.into()));
        }
    }

    /// Version 1 has six counters; the bytes of the others are 0.
    #[test]
    fn version_1_is_read() {
        let mut bytes = example();
        bytes[8] = 1;
        let (mut header, _) = Header::read_from_prefix(&bytes).unwrap();
        header.crc = header.checksum().into();
        bytes[..COUNTERS].copy_from_slice(header.as_bytes());
        bytes[Count::DroppedCopies.offset()..HEADER_SIZE].fill(0);
        assert_eq!(read(&bytes).unwrap().1, [1]);
        let reader = Reader::new(&*bytes).unwrap();
        assert_eq!(reader.count(Count::DroppedMarkers), Some(0));
    }
}
