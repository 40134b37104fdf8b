//! The number of dispatches of a queue that are in flight: from the submission to the end of each.
//!
//! A trace has the dispatches of a queue in the order in which their completions were observed. This is not the order of
//! their submissions if kernels overtake each other. Therefore the last [`WINDOW`] dispatches are kept and sorted. A
//! dispatch that more later ones have overtaken is counted from the last value that was written: values are never
//! written for an earlier time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many dispatches are sorted at a time.
const WINDOW: usize = 1 << 14;
/// The maximum number of dispatches in flight: twice the size of the largest queue.
const MAX_IN_FLIGHT: usize = 1 << 18;

/// A time and the number of dispatches in flight from then on.
pub type Value = (u64, usize);

/// The dispatches of a queue.
#[derive(Default)]
pub struct InFlight {
    /// Submission and end of the dispatches that are being sorted.
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    /// The ends of the dispatches in flight, earliest first.
    ends: BinaryHeap<Reverse<u64>>,
    /// The time of the last value.
    last: u64,
}

impl InFlight {
    /// Adds a dispatch. Returns the values that are known now.
    pub fn push(&mut self, submit: u64, end: u64) -> Vec<Value> {
        let mut values = Vec::new();
        self.waiting.push(Reverse((submit, end)));
        if self.waiting.len() > WINDOW {
            self.submit_next(&mut values);
        }
        values
    }

    /// The rest, after the last dispatch.
    pub fn take_rest(&mut self) -> Vec<Value> {
        let mut values = Vec::new();
        while self.submit_next(&mut values) {}
        self.end_until(u64::MAX, &mut values);
        values
    }

    /// Counts the dispatch that was submitted first. Returns whether there was one.
    fn submit_next(&mut self, values: &mut Vec<Value>) -> bool {
        let Some(Reverse((submit, end))) = self.waiting.pop() else {
            return false;
        };
        let submit = submit.max(self.last);
        self.end_until(submit, values);
        self.ends.push(Reverse(end.max(submit)));
        self.add(submit, values);
        true
    }

    /// Removes the dispatches that end by `now`, and the first ones if there are too many.
    fn end_until(&mut self, now: u64, values: &mut Vec<Value>) {
        while let Some(end) = self.ends.peek()
            && (end.0 <= now || self.ends.len() >= MAX_IN_FLIGHT)
        {
            let end = end.0;
            self.ends.pop();
            self.add(end, values);
        }
    }

    fn add(&mut self, time: u64, values: &mut Vec<Value>) {
        self.last = time;
        values.push((time, self.ends.len()));
    }
}
