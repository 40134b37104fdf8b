//! Sorts events by their line and time, with a limited amount of memory: all but the last events are in sorted runs in
//! a temporary file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// An event of any line. The meaning of `detail` and `other` depends on `kind`: see [`kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Event {
    /// The index of its plane in the upper half, the index of its line in the lower half.
    pub line_index: u64,
    /// Nanoseconds.
    pub start: u64,
    pub end: u64,
    pub correlation: u64,
    pub detail: u64,
    pub name: u32,
    pub other: u32,
    pub kind: u32,
    pub flags: u32,
}

/// [`Event::kind`], and the meaning of its fields `detail` and `other`.
pub mod kind {
    /// The ID of its launch parameters; its queue.
    pub const KERNEL: u32 = 0;
    /// Its size in bytes; the agent of its destination.
    pub const COPY: u32 = 1;
    /// Like a copy.
    pub const FILL: u32 = 2;
    /// Its stream or [`super::NO_STREAM`]; the status.
    pub const CALL: u32 = 3;
    pub const MARKER: u32 = 4;
}

/// An API call without a stream in its arguments.
pub const NO_STREAM: u64 = u64::MAX;

/// [`Event::flags`].
pub const IS_UNFINISHED: u32 = 1;

type Key = (u64, u64, Reverse<u64>);

impl Event {
    /// The order in which readers need events: an event comes before the events that it contains.
    fn key(&self) -> Key {
        (self.line_index, self.start, Reverse(self.end))
    }
}

/// How many events are in memory before they are written to the file.
const CAPACITY: usize = 1 << 18;
/// How many events of a run are read at a time.
const BATCH: usize = 1 << 10;

/// Takes events in any order.
pub struct Sorter {
    /// Where to create the temporary file.
    dir: PathBuf,
    capacity: usize,
    events: Vec<Event>,
    file: Option<File>,
    /// The number of events in each run in the file.
    runs: Vec<u64>,
}

impl Sorter {
    pub fn new(dir: &Path) -> Sorter {
        Sorter::with_capacity(dir, CAPACITY)
    }

    fn with_capacity(dir: &Path, capacity: usize) -> Sorter {
        Sorter {
            dir: dir.to_owned(),
            capacity,
            events: Vec::new(),
            file: None,
            runs: Vec::new(),
        }
    }

    pub fn push(&mut self, event: Event) -> io::Result<()> {
        self.events.push(event);
        if self.events.len() < self.capacity {
            Ok(())
        } else {
            self.spill()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.runs.is_empty()
    }

    /// Appends the events in memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        self.events.sort_by_key(Event::key);
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.dir)?,
        };
        file.write_all(self.events.as_bytes())?;
        self.file = Some(file);
        self.runs.push(self.events.len() as u64);
        self.events.clear();
        Ok(())
    }

    /// All events in their order. Events with the same line and times are in the order in which they were pushed.
    pub fn sorted(mut self) -> io::Result<Sorted> {
        self.events.sort_by_key(Event::key);
        let mut sorted = Sorted {
            file: self.file,
            runs: Vec::new(),
            heads: BinaryHeap::new(),
        };
        let mut at = 0;
        for count in self.runs {
            sorted.add(Run {
                at,
                left: count,
                batch: Vec::new().into_iter(),
            })?;
            at += count * size_of::<Event>() as u64;
        }
        sorted.add(Run {
            at: 0,
            left: 0,
            batch: self.events.into_iter(),
        })?;
        Ok(sorted)
    }
}

/// A sorted part of the events.
struct Run {
    /// Offset in the file of the next batch, in bytes.
    at: u64,
    /// The number of events in the file that have not been read.
    left: u64,
    batch: std::vec::IntoIter<Event>,
}

impl Run {
    fn next(&mut self, file: Option<&File>) -> io::Result<Option<Event>> {
        if let Some(event) = self.batch.next() {
            return Ok(Some(event));
        }
        let count = self.left.min(BATCH as u64) as usize;
        let Some(file) = file.filter(|_| count != 0) else {
            return Ok(None);
        };
        let mut events = vec![Event::new_zeroed(); count];
        let bytes = events.as_mut_bytes();
        file.read_exact_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        self.left -= count as u64;
        self.batch = events.into_iter();
        Ok(self.batch.next())
    }
}

/// The events in their order.
pub struct Sorted {
    file: Option<File>,
    runs: Vec<Run>,
    /// The next event of each run.
    heads: BinaryHeap<Reverse<Head>>,
}

/// The next event of a run. Only one event of a run is a head, so the rest of the event does not matter for the order.
#[derive(PartialEq, Eq)]
struct Head {
    run: usize,
    event: Event,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        (self.event.key(), self.run).cmp(&(other.event.key(), other.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Sorted {
    fn add(&mut self, mut run: Run) -> io::Result<()> {
        let first = run.next(self.file.as_ref())?;
        let number = self.runs.len();
        self.runs.push(run);
        self.heads
            .extend(first.map(|event| Reverse(Head { run: number, event })));
        Ok(())
    }

    /// The line of the next event ([`Event::line_index`]).
    fn next_line(&self) -> Option<u64> {
        self.heads.peek().map(|head| head.0.event.line_index)
    }

    pub fn next(&mut self) -> io::Result<Option<Event>> {
        let Some(mut head) = self.heads.peek_mut() else {
            return Ok(None);
        };
        let Head { run, event } = head.0;
        match self.runs[run].next(self.file.as_ref())? {
            Some(next) => head.0.event = next,
            None => {
                std::collections::binary_heap::PeekMut::pop(head);
            }
        }
        Ok(Some(event))
    }

    /// The next event, if it is on this line.
    pub fn next_on(&mut self, line_index: u64) -> io::Result<Option<Event>> {
        if self.next_line() == Some(line_index) {
            self.next()
        } else {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line_index: u64, start: u64, end: u64, name: u32) -> Event {
        Event {
            line_index,
            start,
            end,
            name,
            ..Event::new_zeroed()
        }
    }

    fn all(sorter: Sorter) -> Vec<Event> {
        let mut sorted = sorter.sorted().unwrap();
        let mut events = Vec::new();
        while let Some(event) = sorted.next().unwrap() {
            events.push(event);
        }
        events
    }

    #[test]
    fn events_are_sorted_in_memory_and_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        // Pseudorandom numbers, with many equal times.
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let events: Vec<Event> = (0..10_000)
            .map(|n| event(random(4) << 32, random(50), random(50), n))
            .collect();
        let mut expected = events.clone();
        expected.sort_by_key(Event::key);
        // Without a file, with runs of less and of more than a batch, and with a file that has all events.
        for capacity in [1 << 20, 7, 3000, 5000] {
            let mut sorter = Sorter::with_capacity(dir.path(), capacity);
            assert!(sorter.is_empty());
            for &event in &events {
                sorter.push(event).unwrap();
            }
            assert!(!sorter.is_empty());
            assert_eq!(sorter.file.is_some(), capacity <= events.len());
            assert!(all(sorter) == expected, "capacity {capacity}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_event_precedes_those_that_it_contains() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(dir.path());
        let order = [
            event(1, 5, 9, 0),
            event(1, 5, 7, 1),
            event(1, 5, 5, 2),
            event(2, 0, 1, 3),
        ];
        for at in [2, 3, 1, 0] {
            sorter.push(order[at]).unwrap();
        }
        let mut sorted = sorter.sorted().unwrap();
        assert_eq!(sorted.next_line(), Some(1));
        for event in &order[..3] {
            assert_eq!(sorted.next_on(1).unwrap(), Some(*event));
        }
        assert_eq!(sorted.next_on(1).unwrap(), None);
        assert_eq!(sorted.next_on(2).unwrap(), Some(order[3]));
        assert_eq!(sorted.next().unwrap(), None);
    }
}
