//! The order in which slices on the tracks of threads are written: API calls and markers, which nest in time.
//!
//! Perfetto's importer sorts events by time. Events with the same time stay in the order of the file, and an end
//! belongs to the innermost slice. So of slices that begin at the same time, the outer one must be written first, and a
//! slice that ends when another one begins must be ended first. But a trace has inner slices before outer ones, and
//! calls and markers in no particular order.
//!
//! Therefore the last [`WINDOW`] slices are kept and sorted. If the record of a slice follows so late that slices after
//! its start have been written, the slice is written at once. The result is still correct, unless another slice on its
//! thread has exactly the same time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The maximum number of slices that are kept.
const WINDOW: usize = 1 << 14;

/// The position of a slice among those that begin at the same time, outermost first, if they also end at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A range, and the number of ranges that contain it.
    Range(u32),
    Call,
    Mark,
}

/// The next event to write.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// A slice of a thread begins. If it is late, it also ends: at the given time.
    Begin {
        thread: u32,
        slice: T,
        ends: Option<u64>,
    },
    /// The innermost slice of the thread ends.
    End { thread: u32, time: u64 },
}

/// The start, the end (later first), the rank, and the number of the record (later first, because outer slices are
/// recorded after inner ones).
type Key = (u64, Reverse<u64>, Rank, Reverse<u64>);

/// The slices of a thread that have been written.
#[derive(Default)]
struct Written {
    /// The start of the last one.
    last: u64,
    /// The ends of those that have not been ended, innermost last.
    open: Vec<u64>,
}

pub struct Threads<T> {
    waiting: BTreeMap<Key, (u32, T)>,
    count: u64,
    written: HashMap<u32, Written>,
}

impl<T> Default for Threads<T> {
    fn default() -> Self {
        Threads {
            waiting: BTreeMap::new(),
            count: 0,
            written: HashMap::new(),
        }
    }
}

impl<T> Threads<T> {
    /// Adds a slice. An end before the start is the same as the start.
    pub fn push(&mut self, thread: u32, start: u64, end: u64, rank: Rank, slice: T) {
        let key = (start, Reverse(end.max(start)), rank, Reverse(self.count));
        self.count += 1;
        self.waiting.insert(key, (thread, slice));
    }

    /// The events that can be written now.
    pub fn take_ready(&mut self) -> Vec<Step<T>> {
        let mut steps = Vec::new();
        while self.waiting.len() > WINDOW {
            self.take_first(&mut steps);
        }
        steps
    }

    /// The rest, after the last slice.
    pub fn take_rest(&mut self) -> Vec<Step<T>> {
        let mut steps = Vec::new();
        while !self.waiting.is_empty() {
            self.take_first(&mut steps);
        }
        for (&thread, written) in &mut self.written {
            end_until(u64::MAX, thread, written, &mut steps);
        }
        steps
    }

    fn take_first(&mut self, steps: &mut Vec<Step<T>>) {
        let Some(((start, Reverse(end), rank, _), (thread, slice))) = self.waiting.pop_first()
        else {
            return;
        };
        let written = self.written.entry(thread).or_default();
        let mut ends = None;
        if start < written.last {
            ends = (rank != Rank::Mark).then_some(end);
        } else {
            written.last = start;
            end_until(start, thread, written, steps);
            if rank != Rank::Mark {
                written.open.push(end);
            }
        }
        steps.push(Step::Begin {
            thread,
            slice,
            ends,
        });
    }
}

/// Ends the slices of a thread that end by `now`.
fn end_until<T>(now: u64, thread: u32, written: &mut Written, steps: &mut Vec<Step<T>>) {
    while let Some(time) = written.open.pop_if(|end| *end <= now) {
        steps.push(Step::End { thread, time });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, start, end, rank.
    type Slice = (&'static str, u64, u64, Rank);

    /// The slices of one thread as the importer sees them: name, depth and duration.
    fn imported(slices: &[Slice], mut threads: Threads<Slice>) -> Vec<(&'static str, usize, u64)> {
        let mut events = Vec::new();
        let mut add = |steps: Vec<Step<Slice>>| {
            for step in steps {
                match step {
                    Step::Begin { slice, ends, .. } => {
                        events.push((slice.1, Some(slice)));
                        events.extend(ends.map(|end| (end, None)));
                    }
                    Step::End { time, .. } => events.push((time, None)),
                }
            }
        };
        for slice in slices {
            threads.push(1, slice.1, slice.2, slice.3, *slice);
            add(threads.take_ready());
        }
        add(threads.take_rest());
        events.sort_by_key(|(time, _)| *time);
        let (mut found, mut open) = (Vec::new(), Vec::new());
        for (time, event) in events {
            match event {
                Some(slice) => {
                    if slice.3 != Rank::Mark {
                        open.push((found.len(), time));
                    }
                    found.push((slice.0, open.len() - usize::from(slice.3 != Rank::Mark), 0));
                }
                None => {
                    let (at, start): (usize, u64) = open.pop().expect("an open slice");
                    found[at].2 = time - start;
                }
            }
        }
        assert!(open.is_empty());
        found.sort();
        found
    }

    #[test]
    fn slices_with_equal_times_nest() {
        // In the order of their ends, as the records of each type are. Calls and ranges come in either order.
        let ranges = [
            ("inner", 10, 40, Rank::Range(1)),
            ("same times as its call", 50, 60, Rank::Range(1)),
            ("outer", 10, 100, Rank::Range(0)),
            ("next", 100, 200, Rank::Range(0)),
            ("empty", 150, 150, Rank::Range(1)),
        ];
        let calls = [
            ("first in inner", 10, 20, Rank::Call),
            ("right after it", 20, 40, Rank::Call),
            ("in range", 50, 60, Rank::Call),
            ("last in outer", 90, 100, Rank::Call),
            ("first in next", 100, 150, Rank::Call),
        ];
        let marks = [
            ("mark at the start", 10, 10, Rank::Mark),
            ("mark", 95, 95, Rank::Mark),
        ];
        let mut expected = vec![
            ("outer", 0, 90),
            ("inner", 1, 30),
            ("first in inner", 2, 10),
            ("mark at the start", 3, 0),
            ("right after it", 2, 20),
            ("same times as its call", 1, 10),
            ("in range", 2, 10),
            ("last in outer", 1, 10),
            ("mark", 2, 0),
            ("next", 0, 100),
            ("first in next", 1, 50),
            ("empty", 1, 0),
        ];
        expected.sort();
        for order in [[&ranges[..], &calls, &marks], [&marks, &calls, &ranges]] {
            assert_eq!(imported(&order.concat(), Threads::default()), expected);
        }
    }

    #[test]
    fn a_slice_that_contains_more_than_the_window_nests() {
        // Each call begins when the previous one ends, also when the outer slice comes.
        let inner = |n: u64| ("call", 10 + 2 * n, 12 + 2 * n, Rank::Call);
        let count = 2 * WINDOW as u64;
        let mut slices: Vec<Slice> = (0..count).map(inner).collect();
        slices.push(("outer", 5, 10 + 2 * count, Rank::Range(0)));
        let found = imported(&slices, Threads::default());
        assert_eq!(found.len() as u64, count + 1);
        assert_eq!(found.last(), Some(&("outer", 0, 5 + 2 * count)));
        let calls = &found[..found.len() - 1];
        assert!(calls.iter().all(|call| *call == ("call", 1, 2)));
    }
}
