//! HIP's streams: which one an API call names, and the ids of their records.
//!
//! A stream gets its id when a recorded call first names it. HIP reuses the handles of destroyed streams; a handle that
//! a function has just returned for a new stream has no id yet. A lookup takes no lock, except for the first one of
//! each stream.

use super::clock;
use crate::support::registry::Registry;
use crate::support::sync::lock;
use crate::sys::threads;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tracefile::format::{Record, Stream, stream};

/// The stream that the arguments of a call name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedStream {
    /// The call has no stream, or it is not known.
    None,
    /// The NULL stream (`hipStreamLegacy`).
    Null,
    /// The thread's default stream (`hipStreamPerThread`).
    PerThread,
    Created(u64),
}

/// `hipStreamLegacy`.
const LEGACY: u64 = 1;
/// `hipStreamPerThread`.
const PER_THREAD: u64 = 2;

impl NamedStream {
    /// The stream of a `hipStream_t`.
    #[inline]
    pub fn of(handle: *mut c_void) -> NamedStream {
        match handle as u64 {
            0 | LEGACY => NamedStream::Null,
            PER_THREAD => NamedStream::PerThread,
            handle => NamedStream::Created(handle),
        }
    }

    /// The stream of a `hipStream_t` that was passed to a function with the suffix `_spt`, for which NULL is the
    /// thread's default stream.
    #[inline]
    pub fn of_spt(handle: *mut c_void) -> NamedStream {
        if handle.is_null() {
            NamedStream::PerThread
        } else {
            NamedStream::of(handle)
        }
    }
}

/// Ids of created streams, by their handles. 0: the stream has no id yet.
static CREATED: Registry<AtomicU32> = Registry::new();
/// The NULL stream's id, 0 before its first use.
static NULL: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The id of this thread's default stream, 0 before its first use.
    static OF_THREAD: Cell<u32> = const { Cell::new(0) };
}

/// The streams whose records are not written yet.
struct New {
    /// The number of ids.
    ids: u32,
    records: Vec<Stream>,
}

static NEW: Mutex<New> = Mutex::new(New {
    ids: 0,
    records: Vec::new(),
});
/// In this forked process, [`NEW`] is locked by a thread of the parent.
static LOCKED_AT_FORK: AtomicBool = AtomicBool::new(false);

/// The id of the stream that a call names, 0 for none.
#[inline]
pub fn id(named: NamedStream) -> u32 {
    let known = match named {
        NamedStream::None => return 0,
        NamedStream::Null => NULL.load(Ordering::Acquire),
        NamedStream::PerThread => OF_THREAD.get(),
        NamedStream::Created(handle) => CREATED
            .find(handle)
            .map_or(0, |entry| entry.value.load(Ordering::Acquire)),
    };
    match known {
        0 => add(named),
        known => known,
    }
}

/// Gives a stream its id, unless another thread has just done so.
#[cold]
#[inline(never)]
fn add(named: NamedStream) -> u32 {
    if LOCKED_AT_FORK.load(Ordering::Relaxed) {
        return 0;
    }
    let mut new = lock(&NEW);
    let known: &AtomicU32 = match named {
        NamedStream::None => return 0,
        NamedStream::Null => &NULL,
        NamedStream::PerThread => {
            let id = new.add(stream::PER_THREAD, PER_THREAD, threads::thread_id());
            OF_THREAD.set(id);
            return id;
        }
        NamedStream::Created(handle) => match CREATED.find(handle) {
            Some(entry) => &entry.value,
            None => CREATED.add(
                handle,
                |value| {
                    value.store(0, Ordering::Relaxed);
                    true
                },
                AtomicU32::default,
            ),
        },
    };
    if known.load(Ordering::Relaxed) == 0 {
        let id = match named {
            NamedStream::Created(handle) => new.add(stream::CREATED, handle, 0),
            _ => new.add(stream::NULL, 0, 0),
        };
        // Release: a thread that has the id finds the record in `NEW`, unless it was taken.
        known.store(id, Ordering::Release);
    }
    known.load(Ordering::Relaxed)
}

impl New {
    fn add(&mut self, what: u32, handle: u64, thread: u32) -> u32 {
        self.ids += 1;
        let mut record = Stream::new(self.ids.into(), 0);
        record.first_use = clock::now().into();
        record.handle = handle.into();
        record.what = what.into();
        record.thread = thread.into();
        self.records.push(record);
        self.ids
    }
}

/// HIP has returned `handle` for a new stream: the id of an earlier stream with this handle is not its id.
pub fn created(handle: u64) {
    CREATED.remove(handle, |_| ());
}

/// Called in the child of a fork, before it has other threads. If another thread of the parent was giving a stream its
/// id, this process's streams are not recorded.
pub fn in_child() {
    LOCKED_AT_FORK.store(NEW.try_lock().is_err(), Ordering::Relaxed);
}

/// Takes the records of all streams that have an id and were not taken yet. A record that refers to a stream is made
/// after the stream's record, so its reader finds the stream's record here, unless it was taken before.
pub fn take_new() -> Vec<Stream> {
    if LOCKED_AT_FORK.load(Ordering::Relaxed) {
        return Vec::new();
    }
    std::mem::take(&mut lock(&NEW).records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(number: u64) -> *mut c_void {
        number as *mut c_void
    }

    /// One test, because the ids are global.
    #[test]
    fn each_stream_has_one_id() {
        use NamedStream::{Created, Null, PerThread};
        let special = [0, 1, 2, 0x10].map(|number| NamedStream::of(handle(number)));
        assert_eq!(special, [Null, Null, PerThread, Created(0x10)]);
        let special = [0, 1, 2, 0x10].map(|number| NamedStream::of_spt(handle(number)));
        assert_eq!(special, [PerThread, Null, PerThread, Created(0x10)]);

        assert_eq!(id(NamedStream::None), 0);
        let ids = [Created(0x10), Null, Created(0x20), PerThread].map(id);
        assert_eq!(ids, [1, 2, 3, 4]);
        assert_eq!([Created(0x10), Null, Created(0x20), PerThread].map(id), ids);
        let other = std::thread::spawn(|| [Created(0x20), PerThread, Null].map(id));
        assert_eq!(other.join().expect("no panic"), [3, 5, 2]);
        // The handle of a destroyed stream.
        created(0x20);
        assert_eq!(id(Created(0x20)), 6);
        assert_eq!(id(Created(0x10)), 1);
        // A handle that was never used.
        created(0x30);

        let records: Vec<_> = take_new()
            .iter()
            .map(|record| (record.head.id.get(), record.what.get(), record.handle.get()))
            .collect();
        let expected = [
            (1, stream::CREATED, 0x10),
            (2, stream::NULL, 0),
            (3, stream::CREATED, 0x20),
            (4, stream::PER_THREAD, 2),
            (5, stream::PER_THREAD, 2),
            (6, stream::CREATED, 0x20),
        ];
        assert_eq!(records, expected);
        assert!(take_new().is_empty());

        // Threads that use the same streams for the first time at the same time.
        let threads: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(|| (100..200).map(|n| id(Created(n))).collect::<Vec<_>>()))
            .collect();
        let all: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        assert!(all.iter().all(|ids| *ids == all[0]));
        assert_eq!(take_new().len(), 100);
    }
}
