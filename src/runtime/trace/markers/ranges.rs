//! Pairs the beginnings and ends of the program's ranges, and makes records of them and of marks. Used under the
//! session's lock.
//!
//! A thread's entries are in order, entries of different threads are not: the end of a process range may be collected
//! before its beginning, which is then collected in the next round.

use super::domains;
use crate::trace::recorder::Recorder;
use std::collections::HashMap;
use tracefile::format::{Count, Marker, Record, flag, marker};

/// Longer messages and names are cut after this number of bytes.
pub const MAX_TEXT: usize = 4096;
/// Bytes of a text in one entry, so that an entry fills a cache line.
pub const PIECE: usize = 40;

/// The value of an [`Action::Push`], [`Action::Pop`] or [`Action::Mark`] in a domain of NVTX.
pub fn level_in(domain: u32, depth: u32) -> u64 {
    u64::from(domain) << 32 | u64::from(depth)
}

/// The id of a process range in a domain of NVTX. roctx's ids are smaller than 2^48.
pub fn range_in(domain: usize, id: u64) -> u64 {
    (domain as u64) << 48 | id
}

/// An action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `value`: see [`level_in`].
    Mark,
    /// `value`: how many ranges of the thread contain the new one, see [`level_in`].
    Push,
    /// `value`: as for the [`Action::Push`] that began the range.
    Pop,
    /// `value`: the range's id.
    Start,
    /// `value`: the range's id.
    Stop,
    /// `value`: the thread (`gettid`), 0 for the calling thread.
    NameThread,
    /// `value`: the agent's handle.
    NameAgent,
    /// `value`: HIP's number of the device.
    NameDevice,
    /// `value`: CUDA's number of the device.
    NameCudaDevice,
    /// `value`: the stream's id.
    NameStream,
    /// More bytes of the text of the preceding entry.
    More,
}

impl Action {
    /// Whether it ends a range. An end without its beginning is ignored.
    pub fn ends(self) -> bool {
        matches!(self, Action::Pop | Action::Stop)
    }

    /// Whether it names something, for the whole trace.
    pub fn names(self) -> bool {
        use Action::{NameAgent, NameCudaDevice, NameDevice, NameStream, NameThread};
        matches!(
            self,
            NameThread | NameAgent | NameDevice | NameCudaDevice | NameStream
        )
    }
}

/// An entry of a thread's queue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The system clock, or [`clock::early`] if `is_early`.
    pub time: u64,
    pub value: u64,
    /// `gettid`.
    pub thread: u32,
    pub action: Action,
    /// HSA's clock was not available.
    pub is_early: bool,
    /// Length of the text in bytes, of which the rest is in the following entries.
    pub length: u16,
    /// The beginning of the text, or for [`Action::More`] a later piece of it.
    pub text: [u8; PIECE],
}

const _: () = assert!(size_of::<Entry>() == 64 && MAX_TEXT <= u16::MAX as usize);

/// A range that has not ended.
#[derive(Clone, Copy)]
struct Open {
    start: u64,
    thread: u32,
    /// Id of the message; `None` if there was no space for it in the file.
    text: Option<u32>,
    /// How many ranges of the thread and the domain contain it, for a range of a thread.
    depth: u32,
    /// The number of a domain of NVTX, or 0.
    domain: u32,
}

impl Open {
    fn begin(entry: &Entry, text: &[u8], to: &mut Recorder) -> Open {
        Open {
            start: entry.time,
            thread: entry.thread,
            text: file_text(to, text),
            depth: match entry.action {
                Action::Push => entry.value as u32,
                _ => 0,
            },
            domain: match entry.action {
                Action::Start => (entry.value >> 48) as u32,
                _ => (entry.value >> 32) as u32,
            },
        }
    }
}

/// The state of the entries of one thread.
#[derive(Default)]
pub struct ThreadRanges {
    /// The ranges that are not popped.
    open: Vec<Open>,
    /// An entry whose text is not complete, and the text so far.
    partial: Option<(Entry, Vec<u8>)>,
}

/// The end of a range.
#[derive(Clone, Copy)]
struct End {
    time: u64,
    thread: u32,
    /// [`flag::UNFINISHED`] or 0.
    flags: u16,
}

impl End {
    fn of(entry: &Entry) -> End {
        End {
            time: entry.time,
            thread: entry.thread,
            flags: 0,
        }
    }
}

/// A name that the program has given to something.
pub struct Named {
    pub action: Action,
    /// See [`Action`].
    pub value: u64,
    /// The thread that gave the name.
    pub thread: u32,
    /// Id of a text.
    pub text: u32,
}

#[derive(Default)]
pub struct Ranges {
    /// The process ranges that have not ended, by id.
    open: HashMap<u64, Open>,
    /// Ends of process ranges whose beginning was not collected yet, by id, and the rounds in which they were
    /// collected.
    ends: HashMap<u64, (End, u64)>,
    round: u64,
    /// Id of the last marker.
    last: u64,
    /// Names since the last round.
    pub names: Vec<Named>,
    /// How many entries were processed.
    pub processed: usize,
}

impl Ranges {
    /// Takes the next entry of a thread.
    pub fn take(&mut self, thread: &mut ThreadRanges, entry: Entry, to: &mut Recorder) {
        self.processed += 1;
        let Some((entry, text)) = complete(&mut thread.partial, entry) else {
            return;
        };
        match entry.action {
            Action::Mark => {
                let open = Open::begin(&entry, &text, to);
                self.write(marker::MARK, 0, open, End::of(&entry), to);
            }
            Action::Push => {
                // Ranges that were popped by an entry in another queue, the queue of a signal handler.
                let new = Open::begin(&entry, &text, to);
                thread
                    .open
                    .retain(|open| open.domain != new.domain || open.depth < new.depth);
                thread.open.push(new);
            }
            Action::Pop => {
                let is_this = |open: &Open| level_in(open.domain, open.depth) == entry.value;
                if let Some(n) = thread.open.iter().rposition(is_this) {
                    let open = thread.open.remove(n);
                    self.write(marker::RANGE, 0, open, End::of(&entry), to);
                }
            }
            Action::Start => {
                let open = Open::begin(&entry, &text, to);
                if let Some((end, _)) = self.ends.remove(&entry.value) {
                    self.write(marker::PROCESS_RANGE, entry.value, open, end, to);
                } else if let Some(old) = self.open.insert(entry.value, open) {
                    // The id was used again.
                    self.write_unfinished(marker::PROCESS_RANGE, entry.value, old, entry.time, to);
                }
            }
            Action::Stop => match self.open.remove(&entry.value) {
                Some(open) => {
                    let end = End::of(&entry);
                    self.write(marker::PROCESS_RANGE, entry.value, open, end, to);
                }
                None => {
                    self.ends.insert(entry.value, (End::of(&entry), self.round));
                }
            },
            Action::NameThread
            | Action::NameAgent
            | Action::NameDevice
            | Action::NameCudaDevice
            | Action::NameStream => match file_text(to, &text) {
                Some(text) => self.names.push(Named {
                    action: entry.action,
                    value: entry.value,
                    thread: entry.thread,
                    text,
                }),
                None => to.file.add_to_counter(Count::DroppedMarkers, 1),
            },
            Action::More => {}
        }
    }

    /// A round of all threads is over. The beginning of a range precedes its end, so a beginning that was not found until now
    /// does not exist.
    pub fn end_round(&mut self) {
        let round = self.round;
        self.ends.retain(|_, (_, ended)| *ended == round);
        self.round += 1;
    }

    /// Records a thread's ranges as unfinished.
    pub fn end_thread(&mut self, thread: &mut ThreadRanges, now: u64, to: &mut Recorder) {
        while let Some(open) = thread.open.pop() {
            self.write_unfinished(marker::RANGE, 0, open, now, to);
        }
    }

    /// Records the process ranges as unfinished.
    pub fn end_process(&mut self, now: u64, to: &mut Recorder) {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(_, open)| open.start);
        for (id, open) in open {
            self.write_unfinished(marker::PROCESS_RANGE, id, open, now, to);
        }
    }

    fn write_unfinished(
        &mut self,
        what: u32,
        range: u64,
        open: Open,
        time: u64,
        to: &mut Recorder,
    ) {
        let end = End {
            time,
            thread: open.thread,
            flags: flag::UNFINISHED,
        };
        self.write(what, range, open, end, to);
    }

    fn write(&mut self, what: u32, range: u64, open: Open, end: End, to: &mut Recorder) {
        self.last += 1;
        let Some(text) = open.text else {
            to.file.add_to_counter(Count::DroppedMarkers, 1);
            return;
        };
        let mut record = Marker::new(self.last, end.flags);
        record.start = open.start.into();
        record.end = end.time.max(open.start).into();
        record.thread = open.thread.into();
        record.end_thread = end.thread.into();
        record.text = text.into();
        record.what = what.into();
        record.range = range.into();
        record.depth = open.depth.into();
        if let Some(domain) = domains::name(open.domain) {
            record.domain = to.file.text(&domain).into();
        }
        to.file.append(record, Count::DroppedMarkers);
    }
}

/// Adds an entry's piece of a text. Returns the text's first entry and the text, if it is complete.
fn complete(partial: &mut Option<(Entry, Vec<u8>)>, entry: Entry) -> Option<(Entry, Vec<u8>)> {
    let (first, mut text) = match (entry.action, partial.take()) {
        (Action::More, Some(partial)) => partial,
        (Action::More, None) => return None,
        (_, _) => (entry, Vec::new()),
    };
    let missing = usize::from(first.length) - text.len();
    text.extend_from_slice(&entry.text[..missing.min(PIECE)]);
    if missing > PIECE {
        *partial = Some((first, text));
        return None;
    }
    Some((first, text))
}

/// The id of a text in the file. Invalid UTF-8 is replaced; `None` if there is no space.
fn file_text(to: &mut Recorder, text: &[u8]) -> Option<u32> {
    let mut text = text;
    // A text that was cut may end within a character.
    if text.len() == MAX_TEXT
        && let Some(last) = text.utf8_chunks().last()
        && !last.invalid().is_empty()
        && std::str::from_utf8(last.invalid()).is_err_and(|error| error.error_len().is_none())
    {
        text = &text[..text.len() - last.invalid().len()];
    }
    to.file.message(&String::from_utf8_lossy(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::runtime::Error;
    use crate::gpu::traced::{Agent, AgentKey, SystemClock, TracedRuntime, TracedRuntimes};
    use tracefile::format::{HEADER_SIZE, Header, RECORD_SIZE, kind};
    use zerocopy::FromBytes;

    /// No agents are used.
    struct NoRuntime;

    impl TracedRuntime for NoRuntime {
        fn agents(&self) -> Vec<AgentKey> {
            Vec::new()
        }
        fn numbered(&self, _: u64) -> Option<AgentKey> {
            None
        }
        fn describe(&self, _: AgentKey) -> Option<Agent> {
            None
        }
    }

    impl SystemClock for NoRuntime {
        fn time(&self) -> u64 {
            0
        }
        fn frequency(&self) -> Result<u64, Error> {
            Ok(1)
        }
    }

    const NO_RUNTIMES: TracedRuntimes = TracedRuntimes {
        clock: &NoRuntime,
        hsa: &NoRuntime,
        cuda: &NoRuntime,
    };

    struct Test {
        _directory: tempfile::TempDir,
        path: std::path::PathBuf,
        recorder: Recorder,
        ranges: Ranges,
        time: u64,
    }

    impl Test {
        fn new() -> Test {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("x.trace");
            let header = Header::new(1, 1, 1, 1);
            let recorder = Recorder::create(&path, &header, NO_RUNTIMES).expect("a trace");
            Test {
                _directory: directory,
                path,
                recorder,
                ranges: Ranges::default(),
                time: 0,
            }
        }

        /// Takes the next entry of a thread.
        fn take(&mut self, thread: &mut ThreadRanges, action: Action, value: u64, text: &str) {
            self.time += 1;
            let mut entry = Entry {
                time: self.time,
                value,
                thread: 7,
                action,
                is_early: false,
                length: text.len() as u16,
                text: [0; PIECE],
            };
            for piece in text.as_bytes().chunks(PIECE) {
                entry.text[..piece.len()].copy_from_slice(piece);
                self.ranges.take(thread, entry, &mut self.recorder);
                entry.action = Action::More;
            }
            if text.is_empty() {
                self.ranges.take(thread, entry, &mut self.recorder);
            }
        }

        /// The records: type, text id, start, end, whether it is finished.
        fn records(&mut self) -> Vec<(u32, u32, u64, u64, bool)> {
            self.recorder.file.close();
            let bytes = std::fs::read(&self.path).expect("the trace");
            bytes[HEADER_SIZE..]
                .chunks(RECORD_SIZE)
                .filter_map(|record| Marker::read_from_bytes(record).ok())
                .filter(|marker| marker.head.kind.get() == kind::MARKER)
                .map(|marker| {
                    (
                        marker.what.get(),
                        marker.text.get(),
                        marker.start.get(),
                        marker.end.get(),
                        marker.head.flags.get() == 0,
                    )
                })
                .collect()
        }
    }

    #[test]
    fn an_end_may_be_collected_before_its_beginning() {
        let (mut test, mut one, mut other) = (
            Test::new(),
            ThreadRanges::default(),
            ThreadRanges::default(),
        );
        test.take(&mut other, Action::Stop, 1, "");
        test.ranges.end_round();
        test.take(&mut one, Action::Start, 1, "a");
        test.ranges.end_round();
        // Nothing has started this range, so the end does not count for one that starts later.
        test.take(&mut other, Action::Stop, 2, "");
        test.ranges.end_round();
        test.ranges.end_round();
        test.take(&mut one, Action::Start, 2, "b");
        // The id is used again.
        test.take(&mut one, Action::Start, 2, "c");
        test.take(&mut other, Action::Stop, 2, "");
        test.take(&mut one, Action::Start, 3, "d");
        test.ranges.end_process(100, &mut test.recorder);
        let process = marker::PROCESS_RANGE;
        assert_eq!(
            test.records(),
            [
                // It ends when it starts, because the test's clock is not the threads' clock.
                (process, 1, 2, 2, true),
                (process, 2, 4, 5, false),
                (process, 3, 5, 6, true),
                (process, 4, 7, 100, false),
            ]
        );
        assert!(test.ranges.ends.is_empty());
    }

    #[test]
    fn ranges_of_a_thread_that_were_not_recorded_are_ignored() {
        let (mut test, mut thread) = (Test::new(), ThreadRanges::default());
        test.take(&mut thread, Action::Push, 0, "outer");
        // The push with level 1 was not recorded.
        test.take(&mut thread, Action::Push, 2, "inner");
        test.take(&mut thread, Action::Pop, 2, "");
        test.take(&mut thread, Action::Pop, 1, "");
        test.take(&mut thread, Action::Pop, 0, "");
        test.take(&mut thread, Action::Pop, 0, "");
        test.take(&mut thread, Action::Push, 3, "open");
        // The pop of level 3 is in the queue of a signal handler.
        test.take(&mut thread, Action::Push, 2, "left");
        test.ranges.end_thread(&mut thread, 50, &mut test.recorder);
        test.ranges.end_thread(&mut thread, 60, &mut test.recorder);
        let range = marker::RANGE;
        assert_eq!(
            test.records(),
            [
                (range, 2, 2, 3, true),
                (range, 1, 1, 5, true),
                (range, 4, 8, 50, false),
            ]
        );
    }

    #[test]
    fn a_text_is_the_same_after_it_was_split() {
        let mut thread = ThreadRanges::default();
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, MAX_TEXT] {
            let text: String = (b'a'..=b'z').cycle().take(length).map(char::from).collect();
            let mut test = Test::new();
            test.take(&mut thread, Action::Mark, 0, &text);
            assert_eq!(test.ranges.last, 1, "{length}");
            assert_eq!(test.recorder.file.message(&text), Some(1), "{length}");
            assert!(thread.partial.is_none());
        }
    }

    #[test]
    fn a_cut_text_ends_with_a_complete_character() {
        let mut test = Test::new();
        let mut text = "x".repeat(MAX_TEXT - 1).into_bytes();
        text.push(0xc3);
        assert_eq!(file_text(&mut test.recorder, &text), Some(1));
        assert_eq!(
            test.recorder.file.message(&"x".repeat(MAX_TEXT - 1)),
            Some(1)
        );
        // Not cut, but invalid.
        assert_eq!(file_text(&mut test.recorder, b"x\xc3"), Some(2));
        assert_eq!(test.recorder.file.message("x\u{fffd}"), Some(2));
    }
}
