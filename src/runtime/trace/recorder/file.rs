//! Writes the trace file ([`tracefile::format`]) through a mapped window that moves through the file. Appended records
//! stay in the file if the process is killed.

use super::file_name::{self, Named};
use crate::output::atomic_file;
use crate::support::diagnostics;
use crate::support::run_log::{self, Event};
use crate::sys::{files, writes};
use memmap2::MmapMut;
use std::collections::{HashMap, VecDeque};
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::fence;
use std::time::{Duration, Instant};
use tracefile::format::*;
use zerocopy::IntoBytes;

/// Size of the window in bytes.
const WINDOW: u64 = 1 << 20;

/// The maximum size of a generation of messages that are kept, in bytes.
const GENERATION: usize = 1 << 20;

/// How long to wait after a failed extension of the file before the next attempt.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

pub struct TraceFile {
    path: PathBuf,
    file: File,
    id: Id,
    /// When the file was created, system clock.
    started: u64,
    header: MmapMut,
    window: Option<MmapMut>,
    /// File offset of the window.
    window_start: u64,
    /// File offset of the next record.
    next_record: u64,
    counts: [u64; Count::ALL.len()],
    /// Texts that are used again and again, such as names of kernels.
    texts: HashMap<String, u32>,
    /// Texts of the program, of which every one may be different.
    messages: Messages,
    /// The id of the last text.
    last_text: u32,
    /// Addresses and lengths of static texts, and their ids.
    static_texts: [((usize, usize), u32); 64],
    full_since: Option<Instant>,
    /// The result of the last check. It holds for the records up to the next [`TraceFile::publish`], which are written at
    /// once; see [`TraceFile::end_batch`].
    state: State,
    /// Records with the counter [`Count::DroppedOthers`] that could not be written because the disk was full. Later
    /// records may refer to them, so they are written later. Until then they count as dropped.
    deferred: VecDeque<[u8; RECORD_SIZE]>,
}

/// The last texts: since the last change of generations, and from the generation before.
#[derive(Default)]
struct Messages {
    new: HashMap<String, u32>,
    old: HashMap<String, u32>,
    /// The sizes of the texts in `new`, in bytes.
    size: usize,
}

impl Messages {
    fn find(&mut self, text: &str) -> Option<u32> {
        if let Some(&id) = self.new.get(text) {
            return Some(id);
        }
        let (text, id) = self.old.remove_entry(text)?;
        self.add(&text, id);
        Some(id)
    }

    fn add(&mut self, text: &str, id: u32) {
        // An estimate of the entry's size without the text.
        let size = text.len() + 64;
        if self.size + size > GENERATION {
            self.old = std::mem::take(&mut self.new);
            self.size = 0;
        }
        self.size += size;
        self.new.insert(text.to_owned(), id);
    }
}

/// Another process may truncate the file: a write to a mapped page beyond the end of the file raises SIGBUS. And the
/// program may close the file's descriptor: sooner or later it is another file's descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unchecked,
    Complete,
    /// Nothing more is written.
    Lost,
}

/// Identifies a file: device and inode.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Id(u64, u64);

impl Id {
    fn of(metadata: &Metadata) -> Id {
        Id(metadata.dev(), metadata.ino())
    }
}

/// Allocates disk space for the window at file offset `start`, and maps it.
fn map_window(file: &File, start: u64) -> io::Result<MmapMut> {
    files::reserve(file, start, WINDOW)?;
    files::map(file, start, WINDOW as usize)
}

/// Whether a lock failed because the file system does not support locks (Lustre without `-o flock`, some NFS). The
/// trace is then written without locks.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::ENOLCK)
    )
}

impl TraceFile {
    /// Creates the file under a hidden name, then renames it to `path`, or to another name if a trace is there that must
    /// stay. This function or `devprof run` reports the different name.
    pub fn create(path: &Path, header: &Header) -> io::Result<TraceFile> {
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        // The rename would replace a device or a pipe.
        if std::fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
            return Err(io::Error::other("it exists and is not a regular file"));
        }
        std::fs::create_dir_all(directory)?;
        let mut hidden = atomic_file::hidden_file(directory)?;
        // The error of `NamedTempFile` would contain the hidden name.
        writes::without_signals(|| hidden.as_file_mut().write_all(&header.page()))?;
        // The lock is held while this process writes.
        match hidden.as_file().try_lock() {
            Err(TryLockError::Error(error)) if is_unsupported(&error) => {}
            locked => locked?,
        }
        let mapped = files::map(hidden.as_file(), 0, HEADER_SIZE)?;
        let Named {
            file,
            path,
            instead,
        } = file_name::give(hidden, path, header)?;
        if let Some(message) = instead
            && !run_log::is_enabled()
        {
            diagnostics::lost(message);
        }
        let file = files::with_high_descriptor(file);
        let id = Id::of(&file.metadata()?);
        run_log::append_path(Event::Traced, &path);
        Ok(TraceFile {
            path,
            file,
            id,
            started: header.started.get(),
            header: mapped,
            window: None,
            window_start: 0,
            next_record: HEADER_SIZE as u64,
            counts: [0; Count::ALL.len()],
            texts: HashMap::new(),
            messages: Messages::default(),
            last_text: 0,
            static_texts: [((0, 0), 0); 64],
            full_since: None,
            state: State::Unchecked,
            deferred: VecDeque::new(),
        })
    }

    /// When the file was created, system clock.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Checks the file, unless it was checked since records were last published. If false is returned, it must not be
    /// written to.
    fn check(&mut self) -> bool {
        if self.state == State::Unchecked {
            let mapped = match self.window {
                Some(_) => self.window_start + WINDOW,
                None => self.next_record,
            };
            let found = self.file.metadata();
            let found = found.ok().filter(|data| Id::of(data) == self.id);
            let why = match found {
                None => Some("was closed by the program".to_owned()),
                Some(data) if data.len() < mapped => Some(format!(
                    "was truncated to {} bytes while it was being written",
                    data.len()
                )),
                Some(_) => None,
            };
            self.state = match why {
                None => State::Complete,
                Some(why) => {
                    diagnostics::lost(format_args!(
                        "the trace {} {why}: nothing more is recorded",
                        self.path.display()
                    ));
                    State::Lost
                }
            };
        }
        self.state == State::Complete
    }

    /// As [`TraceFile::check`], before the descriptor is used.
    fn check_again(&mut self) -> bool {
        self.end_batch();
        self.check()
    }

    /// The next write may be much later: the file is checked again.
    fn end_batch(&mut self) {
        if self.state == State::Complete {
            self.state = State::Unchecked;
        }
    }

    /// Adds `more` to one of the file's counters.
    pub fn add_to_counter(&mut self, count: Count, more: u64) {
        if more > 0 {
            let value = &mut self.counts[count as usize];
            *value = value.saturating_add(more);
            self.write_counter(count);
        }
    }

    fn write_counter(&mut self, count: Count) {
        let counter = Counter::new(self.counts[count as usize]);
        if !self.check() {
            return;
        }
        let at = count.offset();
        self.header[at..at + size_of::<Counter>()].copy_from_slice(counter.as_bytes());
    }

    /// Sets [`Count::Closed`].
    fn set_closed(&mut self, closed: bool) {
        self.counts[Count::Closed as usize] = closed.into();
        self.write_counter(Count::Closed);
    }

    /// Moves the window, if necessary, so that it has space for a record. False: the disk is full.
    fn reserve_space(&mut self) -> bool {
        if self.window.is_some()
            && self.next_record + (RECORD_SIZE as u64) <= self.window_start + WINDOW
        {
            return true;
        }
        if self
            .full_since
            .is_some_and(|since| since.elapsed() < RETRY_INTERVAL)
        {
            return false;
        }
        if !self.check_again() {
            return false;
        }
        // A mapping begins at a page boundary.
        let start = self.next_record / 4096 * 4096;
        match map_window(&self.file, start) {
            Ok(window) => {
                self.window = Some(window);
                self.window_start = start;
                self.full_since = None;
                if self.counts[Count::Closed as usize] != 0 {
                    self.set_closed(false);
                }
                true
            }
            Err(error) => {
                self.full_since = Some(Instant::now());
                diagnostics::lost(format_args!(
                    "cannot extend the trace {}: {error}; records are dropped and counted until there is space",
                    self.path.display()
                ));
                false
            }
        }
    }

    /// Appends a record. If there is no space for it, adds one to the counter `dropped`.
    pub fn append<T: Record>(&mut self, record: T, dropped: Count) {
        if !self.check() {
            return;
        }
        let record = record.seal();
        while self.reserve_space() {
            let Some(deferred) = self.deferred.pop_front() else {
                self.write(&record);
                return;
            };
            self.write(&deferred);
            self.counts[Count::DroppedOthers as usize] -= 1;
            self.write_counter(Count::DroppedOthers);
        }
        self.add_to_counter(dropped, 1);
        if dropped == Count::DroppedOthers {
            self.deferred.push_back(record);
        }
    }

    /// Writes a record into the window, which has space for it.
    fn write(&mut self, record: &[u8; RECORD_SIZE]) {
        let Some(window) = &mut self.window else {
            return;
        };
        let at = (self.next_record - self.window_start) as usize;
        window[at..at + RECORD_SIZE].copy_from_slice(record);
        self.next_record += RECORD_SIZE as u64;
        self.counts[Count::Records as usize] += 1;
    }

    /// Publishes the number of records after some were appended. Readers of the open file treat these records as
    /// complete.
    pub fn publish(&mut self) {
        fence(Release);
        self.write_counter(Count::Records);
        self.end_batch();
    }

    /// A text's id. A new text is written.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.texts.get(text) {
            return id;
        }
        let id = self.new_text(text);
        self.texts.insert(text.to_owned(), id);
        id
    }

    fn new_text(&mut self, text: &str) -> u32 {
        self.last_text += 1;
        for piece in pieces(self.last_text, text) {
            self.append(piece, Count::DroppedOthers);
        }
        self.last_text
    }

    /// As [`TraceFile::text`], for texts of which every one may be different: only the last ones are kept, so a text
    /// may be written several times. `None` if there is no space in the file.
    pub fn message(&mut self, text: &str) -> Option<u32> {
        if let Some(id) = self.messages.find(text) {
            return Some(id);
        }
        if !self.check() || !self.reserve_space() {
            return None;
        }
        let id = self.new_text(text);
        self.messages.add(text, id);
        Some(id)
    }

    /// Whether the file has all records until now: it was not truncated, and there is space.
    pub fn is_complete(&mut self) -> bool {
        let is_valid = self.check();
        self.end_batch();
        is_valid && self.full_since.is_none() && self.deferred.is_empty()
    }

    /// As [`TraceFile::text`], faster for texts that occur often.
    pub fn static_text(&mut self, text: &'static str) -> u32 {
        let location = (text.as_ptr() as usize, text.len());
        let slot = location.0 / 8 % self.static_texts.len();
        if self.static_texts[slot].0 != location {
            self.static_texts[slot] = (location, self.text(text));
        }
        self.static_texts[slot].1
    }

    /// Truncates the file after its last record and marks it as closed. Records can be appended again.
    pub fn close(&mut self) {
        self.publish();
        self.window = None;
        if !self.check_again() {
            return;
        }
        if let Err(error) = self.file.set_len(self.next_record) {
            diagnostics::lost(format_args!(
                "cannot remove unwritten space from the end of the trace {}: {error}",
                self.path.display()
            ));
        }
        self.set_closed(true);
        self.end_batch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_file() -> (tempfile::TempDir, PathBuf, TraceFile) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.trace");
        let file = TraceFile::create(&path, &Header::new(1, 1, 1, 1)).expect("a trace");
        (directory, path, file)
    }

    #[test]
    fn a_truncated_file_is_not_written_to() {
        for keep in [0, HEADER_SIZE as u64 + RECORD_SIZE as u64] {
            let (_directory, path, mut file) = new_file();
            file.append(Dispatch::new(1, 0), Count::DroppedDispatches);
            file.publish();
            // This check says nothing about the time of the next record.
            assert!(file.is_complete());
            let other = File::options().write(true).open(&path).expect("a trace");
            other.set_len(keep).expect("truncated");
            for id in 2..100_000 {
                file.append(Dispatch::new(id, 0), Count::DroppedDispatches);
            }
            file.publish();
            file.close();
            assert_eq!(std::fs::metadata(&path).expect("a trace").len(), keep);
        }
    }

    /// The program closes the descriptor and opens its own file, which gets the number.
    #[test]
    fn a_file_that_is_not_the_trace_is_not_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let others = directory.path().join("others");
        let content = vec![7; 3 << 20];
        std::fs::write(&others, &content).expect("written");
        for published in [false, true] {
            let (_directory, _, mut file) = new_file();
            file.append(Dispatch::new(1, 0), Count::DroppedDispatches);
            let mut options = File::options();
            file.file = options.read(true).write(true).open(&others).expect("open");
            if published {
                file.publish();
            }
            for id in 2..20_000 {
                file.append(Dispatch::new(id, 0), Count::DroppedDispatches);
            }
            file.close();
            assert!(std::fs::read(&others).expect("read") == content);
        }
    }

    #[test]
    fn a_file_that_is_truncated_after_it_was_closed_is_not_written_to() {
        let (_directory, path, mut file) = new_file();
        file.append(Dispatch::new(1, 0), Count::DroppedDispatches);
        file.close();
        let other = File::options().write(true).open(&path).expect("a trace");
        other.set_len(0).expect("truncated");
        file.append(Dispatch::new(2, 0), Count::DroppedDispatches);
        file.add_to_counter(Count::DroppedDispatches, 1);
        file.publish();
        assert_eq!(std::fs::metadata(&path).expect("a trace").len(), 0);
    }

    #[test]
    fn only_the_last_messages_are_kept() {
        let (_directory, _, mut file) = new_file();
        let often = file.message("often");
        let once = file.message("step 0");
        for n in 1..100_000 {
            assert_eq!(file.message(&format!("step {n}")), Some(n + 2));
            if n % 1000 == 0 {
                assert_eq!(file.message("often"), often);
            }
        }
        assert!(file.messages.new.len() + file.messages.old.len() < 2 * GENERATION / 64);
        assert_ne!(file.message("step 0"), once);
        // Ids are unique among all texts.
        assert_eq!(file.text("often"), 100_003);
        file.full_since = Some(Instant::now());
        file.window = None;
        assert_eq!(file.message("no space"), None);
        assert_eq!(file.message("often"), often);
        assert_eq!(file.counts[Count::DroppedOthers as usize], 0);
    }

    #[test]
    fn names_that_did_not_fit_are_written_when_there_is_space() {
        let (_directory, path, mut file) = new_file();
        let dropped = |file: &TraceFile| {
            [Count::DroppedDispatches, Count::DroppedOthers].map(|n| file.counts[n as usize])
        };
        let full = Instant::now() + Duration::from_secs(60);
        file.full_since = Some(full);
        let text = file.text("kernel");
        file.append(Dispatch::new(1, 0), Count::DroppedDispatches);
        assert_eq!(dropped(&file), [1, 1]);
        file.full_since = None;
        file.append(Dispatch::new(2, 0), Count::DroppedDispatches);
        assert_eq!(dropped(&file), [1, 0]);
        assert_eq!(file.text("kernel"), text);
        file.close();
        let bytes = std::fs::read(&path).expect("the trace");
        let kinds = bytes[HEADER_SIZE..].chunks(RECORD_SIZE);
        let kinds: Vec<_> = kinds
            .map(|record| u16::from_le_bytes([record[4], record[5]]))
            .collect();
        assert_eq!(kinds, [kind::TEXT, kind::DISPATCH]);
    }
}
