//! The trace file while it is written: a mapped window that moves through the file ([`tracefile::format`]). What was
//! appended stays when the process is killed.

use crate::support::diagnostics;
use crate::support::run_log::{self, Event};
use crate::sys::files;
use memmap2::MmapMut;
use std::collections::{HashMap, VecDeque};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::fence;
use std::time::{Duration, Instant};
use tracefile::format::*;
use zerocopy::IntoBytes;

/// Bytes of the window.
const WINDOW: u64 = 1 << 20;

/// How long a full disk is left alone.
const PAUSE: Duration = Duration::from_secs(1);

pub struct TraceFile {
    path: PathBuf,
    file: File,
    header: MmapMut,
    window: Option<MmapMut>,
    /// Bytes before the window.
    start: u64,
    /// Bytes before the next record.
    at: u64,
    counts: [u64; Count::ALL.len()],
    texts: HashMap<String, u32>,
    full_since: Option<Instant>,
    /// What is known of the file's length since records were last published.
    length: Length,
    /// Names, kernels, queues and agents for which there was no room: later records may need them. Counted as dropped
    /// until they are written.
    owed: VecDeque<[u8; RECORD_SIZE]>,
}

/// The file belongs to others, too, and to write to a mapping of what was cut off ends the process (SIGBUS).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Unknown,
    Whole,
    /// Nothing is written any more.
    Cut,
}

/// Holds the window's place in the file: room on the disk, and then a mapping.
fn map(file: &File, start: u64) -> io::Result<MmapMut> {
    files::reserve(file, start, WINDOW)?;
    files::map(file, start, WINDOW as usize)
}

/// Whether a lock failed because the file system has none (Lustre without `-o flock`, some NFS). Then a trace is written
/// without.
fn has_no_locks(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::ENOLCK)
    )
}

impl TraceFile {
    /// Makes `path`, under a hidden name first. A file that another process still writes to is left alone, and so is one
    /// that an earlier process of the same `devprof run` has written: then this one's gets the process id appended,
    /// which is said, here or by `devprof run`.
    pub fn create(path: &Path, header: &Header) -> io::Result<TraceFile> {
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        // A device or a pipe would be replaced.
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(io::Error::other("it is there and is no regular file"));
        }
        std::fs::create_dir_all(directory)?;
        let mut made = crate::output::atomic_file::hidden_file(directory)?;
        made.write_all(&header.page())?;
        // Held while this process writes.
        match made.as_file().try_lock() {
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {}
            locked => locked?,
        }
        let mapped = files::map(made.as_file(), 0, HEADER_SIZE)?;
        // Two processes that begin at the same moment: one after the other.
        let directory = File::open(directory)?;
        match directory.lock() {
            Err(error) if has_no_locks(&error) => {}
            locked => locked?,
        }
        let mut path = path.to_owned();
        let is_locked = |old: File| matches!(old.try_lock(), Err(TryLockError::WouldBlock));
        let is_written = File::open(&path).is_ok_and(is_locked);
        if is_written || run_log::has_path(Event::Traced, &path) {
            let mut name = path.clone().into_os_string();
            name.push(format!(".{}", std::process::id()));
            if !run_log::is_enabled() {
                diagnostics::lost(format_args!(
                    "another process is writing the trace {}: this one goes to {} (%p in DEVPROF_TRACE gives each process its own)",
                    path.display(),
                    name.display()
                ));
            }
            path = name.into();
        }
        let file = made.persist(&path).map_err(|error| error.error)?;
        run_log::append_path(Event::Traced, &path);
        Ok(TraceFile {
            path,
            file,
            header: mapped,
            window: None,
            start: 0,
            at: HEADER_SIZE as u64,
            counts: [0; Count::ALL.len()],
            texts: HashMap::new(),
            full_since: None,
            length: Length::Unknown,
            owed: VecDeque::new(),
        })
    }

    /// Whether the file can be written to: nobody has cut it.
    fn is_whole(&mut self) -> bool {
        if self.length == Length::Unknown {
            let mapped = match self.window {
                Some(_) => self.start + WINDOW,
                None => self.at,
            };
            self.length = match self.file.metadata() {
                Ok(data) if data.len() < mapped => {
                    diagnostics::lost(format_args!(
                        "the trace {} was cut to {} bytes while it is written: nothing is recorded from now on",
                        self.path.display(),
                        data.len()
                    ));
                    Length::Cut
                }
                _ => Length::Whole,
            };
        }
        self.length == Length::Whole
    }

    /// Adds to one of the file's counters.
    pub fn count(&mut self, count: Count, more: u64) {
        let value = &mut self.counts[count as usize];
        *value = value.saturating_add(more);
        let counter = Counter::new(*value);
        if !self.is_whole() {
            return;
        }
        let at = count.offset();
        self.header[at..at + size_of::<Counter>()].copy_from_slice(counter.as_bytes());
    }

    /// Sets [`Count::Closed`].
    fn set_closed(&mut self, closed: bool) {
        self.counts[Count::Closed as usize] = 0;
        self.count(Count::Closed, closed.into());
    }

    /// Makes sure that there is room for a record. False: the disk is full.
    fn room(&mut self) -> bool {
        if self.window.is_some() && self.at + (RECORD_SIZE as u64) <= self.start + WINDOW {
            return true;
        }
        if self.full_since.is_some_and(|since| since.elapsed() < PAUSE) {
            return false;
        }
        // Windows begin at a page.
        let start = self.at / 4096 * 4096;
        match map(&self.file, start) {
            Ok(window) => {
                self.window = Some(window);
                self.start = start;
                self.full_since = None;
                if self.counts[Count::Closed as usize] != 0 {
                    self.set_closed(false);
                }
                true
            }
            Err(error) => {
                self.full_since = Some(Instant::now());
                diagnostics::lost(format_args!(
                    "cannot extend the trace {}: {error}; records are dropped until there is room, the file has their number",
                    self.path.display()
                ));
                false
            }
        }
    }

    /// Appends a record; what cannot be kept is counted in `or`.
    pub fn append<T: Record>(&mut self, record: T, or: Count) {
        if !self.is_whole() {
            return;
        }
        let record = record.seal();
        while self.room() {
            let Some(owed) = self.owed.pop_front() else {
                self.put(&record);
                return;
            };
            self.put(&owed);
            self.counts[Count::DroppedOthers as usize] -= 1;
            self.count(Count::DroppedOthers, 0);
        }
        self.count(or, 1);
        if or == Count::DroppedOthers {
            self.owed.push_back(record);
        }
    }

    /// Writes a record where there is room for it.
    fn put(&mut self, record: &[u8; RECORD_SIZE]) {
        let Some(window) = &mut self.window else {
            return;
        };
        let at = (self.at - self.start) as usize;
        window[at..at + RECORD_SIZE].copy_from_slice(record);
        self.at += RECORD_SIZE as u64;
        self.counts[Count::Records as usize] += 1;
    }

    /// Publishes how many records there are, after some were appended. A reader of the open file takes those for whole.
    pub fn publish(&mut self) {
        fence(Release);
        self.count(Count::Records, 0);
        if self.length == Length::Whole {
            self.length = Length::Unknown;
        }
    }

    /// A text's number; it is written when it is new.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.texts.get(text) {
            return id;
        }
        let id = self.texts.len() as u32 + 1;
        for piece in pieces(id, text) {
            self.append(piece, Count::DroppedOthers);
        }
        self.texts.insert(text.to_owned(), id);
        id
    }

    /// Cuts the file to its length. It can be appended to again.
    pub fn close(&mut self) {
        self.publish();
        self.window = None;
        if !self.is_whole() {
            return;
        }
        if let Err(error) = self.file.set_len(self.at) {
            diagnostics::lost(format_args!(
                "cannot cut the trace {} to its length: {error}; readers see unwritten space at its end",
                self.path.display()
            ));
        }
        self.set_closed(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_cut_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        for keep in [0, HEADER_SIZE as u64 + RECORD_SIZE as u64] {
            let path = directory.path().join("x.trace");
            let mut file = TraceFile::create(&path, &Header::new(1, 1, 1, 1)).expect("a trace");
            file.append(Dispatch::new(1, 0), Count::DroppedDispatches);
            file.publish();
            let other = File::options().write(true).open(&path).expect("a trace");
            other.set_len(keep).expect("cut");
            for id in 2..100_000 {
                file.append(Dispatch::new(id, 0), Count::DroppedDispatches);
            }
            file.publish();
            file.close();
            assert_eq!(std::fs::metadata(&path).expect("a trace").len(), keep);
        }
    }

    #[test]
    fn names_that_found_no_room_are_written_when_there_is_some() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.trace");
        let mut file = TraceFile::create(&path, &Header::new(1, 1, 1, 1)).expect("a trace");
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
