//! Gaps between kernels: times in which a queue, or a GPU, had no kernel to run.
//!
//! A gap is the time from the latest end of all earlier kernels to the start of the next. It is counted for the kernel
//! with that latest end. There is no gap between kernels that overlap, or if one starts when the other ends.
//!
//! A gap is not counted if something unknown may have run in it:
//!
//! - A dispatch without times ran at some time between its submission and the observation of its completion. A time of
//!   the agent's clock cannot be compared with other times, so such a dispatch counts as one without times.
//! - A kernel that was submitted in a pause of the recording is not in the trace. It can run until a kernel of its queue
//!   starts that was submitted after the pause. If that one overlaps an earlier kernel of the queue, the queue does not
//!   wait for each kernel to end, and the next kernel of the queue decides. So no gap of a GPU is counted from a pause
//!   until each of the GPU's queues has continued. Queues without a recorded kernel before the gap are not considered:
//!   programs have queues that they do not use.
//!
//! A trace has the dispatches of a queue in the order in which their completions were observed. Kernels that overlap
//! can be out of order, so dispatches are sorted by their start in a window of [`WINDOW`] dispatches. A dispatch that
//! more than [`WINDOW`] later ones have overtaken is late. Late dispatches are counted, because gaps before them may be
//! too long.

use super::series::Series;
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// How many dispatches are sorted at a time.
pub const WINDOW: usize = 1 << 16;

/// When a dispatch ran. All times are in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    pub submit: u64,
    pub queue: u32,
    pub kernel: u32,
    /// `start` and `end` are when it ran. Otherwise it ran in a part of this time.
    pub is_exact: bool,
}

/// When the recording was paused: start and end, in order.
#[derive(Debug, Default)]
pub struct Pauses(Vec<(u64, u64)>);

impl Pauses {
    /// The recording started or stopped.
    pub fn switch(&mut self, time: u64, is_on: bool) {
        match (is_on, self.0.last_mut()) {
            (true, Some((_, end))) => *end = (*end).min(time),
            (true, None) => {}
            (false, Some((_, u64::MAX))) => {}
            (false, _) => self.0.push((time, u64::MAX)),
        }
    }

    /// Whether a pause overlaps this time.
    fn overlap(&self, from: u64, to: u64) -> bool {
        let first = self.0.partition_point(|&(_, end)| end <= from);
        self.0.get(first).is_some_and(|&(start, _)| start < to)
    }
}

/// The kernels of a queue or of a GPU.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Dispatches in the order of the file, and sorted by start.
    ordered: VecDeque<Span>,
    /// Dispatches that start before one that precedes them in the file.
    overtaken: BinaryHeap<Reverse<Span>>,
    /// The dispatches that have left the window.
    done: Done,
}

/// The dispatches before a time.
#[derive(Debug, Default)]
struct Done {
    /// The start of the last dispatch.
    start: u64,
    /// The latest end of a kernel, and that kernel.
    end: Option<(u64, u32)>,
    queues: HashMap<u32, Queue, RandomState>,
    /// Until when a dispatch without times may have run.
    unknown: u64,
    found: Gaps,
}

/// The kernels of one queue before a time.
#[derive(Debug, Default)]
struct Queue {
    /// When the last kernel was submitted that overlapped no earlier one: all that were submitted before have ended.
    submit: u64,
    /// The latest end of a kernel.
    end: u64,
}

/// The gaps of a queue or of a GPU.
#[derive(Debug, Default)]
pub struct Gaps {
    /// By the kernel that ran before.
    pub after: HashMap<u32, Series>,
    /// How long at least one kernel ran, in nanoseconds.
    pub busy: u64,
    /// Gaps that were not counted, because something unknown may have run in them.
    pub uncounted: u64,
    /// Dispatches that more than [`WINDOW`] later ones have overtaken.
    pub late: u64,
    /// There was a kernel with times.
    pub has_kernels: bool,
}

impl Timeline {
    pub fn add(&mut self, span: Span, pauses: &Pauses) {
        match self.ordered.back() {
            Some(last) if span.start < last.start => self.overtaken.push(Reverse(span)),
            _ => self.ordered.push_back(span),
        }
        if self.ordered.len() + self.overtaken.len() > WINDOW
            && let Some(first) = self.first()
        {
            self.done.add(first, pauses);
        }
    }

    /// Removes the dispatch that starts first.
    fn first(&mut self) -> Option<Span> {
        match (self.ordered.front(), self.overtaken.peek()) {
            (Some(ordered), Some(Reverse(overtaken))) if overtaken < ordered => {
                self.overtaken.pop().map(|Reverse(span)| span)
            }
            (None, _) => self.overtaken.pop().map(|Reverse(span)| span),
            _ => self.ordered.pop_front(),
        }
    }

    pub fn finish(mut self, pauses: &Pauses) -> Gaps {
        while let Some(span) = self.first() {
            self.done.add(span, pauses);
        }
        Gaps {
            has_kernels: self.done.end.is_some(),
            ..self.done.found
        }
    }
}

impl Done {
    fn add(&mut self, span: Span, pauses: &Pauses) {
        self.found.late += u64::from(span.start < self.start);
        self.start = self.start.max(span.start);
        if !span.is_exact {
            self.unknown = self.unknown.max(span.end);
            return;
        }
        let (end, kernel) = self.end.unwrap_or((span.start, span.kernel));
        if span.start > end {
            let mut queues = self.queues.values();
            let is_paused = queues.any(|queue| pauses.overlap(queue.submit.min(end), span.start));
            if self.unknown > end || is_paused {
                self.found.uncounted += 1;
            } else {
                let after = self.found.after.entry(kernel);
                after.or_default().add(span.start - end);
            }
        }
        self.found.busy += span.end.saturating_sub(span.start.max(end));
        if span.end >= end {
            self.end = Some((span.end, span.kernel));
        }
        let queue = self.queues.entry(span.queue).or_default();
        if span.start >= queue.end {
            queue.submit = span.submit;
        }
        queue.end = queue.end.max(span.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(kernel: u32, start: u64, end: u64) -> Span {
        Span {
            submit: start - 5,
            start,
            end,
            queue: 1,
            kernel,
            is_exact: true,
        }
    }

    fn three_kernels() -> [Span; 3] {
        [100, 300, 500].map(|start| kernel(1, start, start + 100))
    }

    fn unknown(submit: u64, observed: u64) -> Span {
        Span {
            submit,
            is_exact: false,
            ..kernel(9, submit, observed)
        }
    }

    /// The gaps after each kernel: number and total.
    fn gaps(spans: &[Span], pauses: &Pauses) -> (Vec<(u32, u64, u64)>, Gaps) {
        let mut timeline = Timeline::default();
        for &span in spans {
            timeline.add(span, pauses);
        }
        let gaps = timeline.finish(pauses);
        let after = gaps.after.iter().map(|(&kernel, series)| {
            let times = series.clone().statistics();
            (kernel, times.calls, times.total)
        });
        let mut after: Vec<_> = after.collect();
        after.sort_unstable();
        (after, gaps)
    }

    #[test]
    fn gaps_are_after_the_kernel_that_ended_last() {
        // 2 overlaps 1, 3 is inside 2, 4 follows at once, 5 after a gap.
        let mut spans = [
            kernel(1, 100, 200),
            kernel(2, 150, 400),
            kernel(3, 200, 300),
            kernel(4, 400, 500),
            kernel(5, 520, 530),
            kernel(1, 600, 610),
        ];
        let expected = vec![(4, 1, 20), (5, 1, 70)];
        let (after, found) = gaps(&spans, &Pauses::default());
        assert_eq!(after, expected);
        assert_eq!(found.busy, 400 + 10 + 10);
        // In any order.
        for n in 0..spans.len() {
            spans.rotate_left(1);
            spans.swap(0, n);
            let (after, found) = gaps(&spans, &Pauses::default());
            assert_eq!((after, found.busy, found.late), (expected.clone(), 420, 0));
        }
    }

    #[test]
    fn gaps_in_which_something_unknown_may_have_run_are_not_counted() {
        let spans = three_kernels();
        for (dispatch, uncounted) in [
            (unknown(210, 290), 1),
            (unknown(50, 201), 1),
            (unknown(50, 200), 0),
            (unknown(299, 900), 2),
            (unknown(300, 400), 0),
            (unknown(500, u64::MAX), 0),
            (unknown(50, u64::MAX), 2),
        ] {
            let spans = [&spans[..], &[dispatch]].concat();
            let (after, found) = gaps(&spans, &Pauses::default());
            assert_eq!(found.uncounted, uncounted, "{dispatch:?}");
            let counted: u64 = after.iter().map(|&(_, count, _)| count).sum();
            assert_eq!(counted, 2 - uncounted);
            assert_eq!(found.busy, 300);
        }
    }

    #[test]
    fn gaps_across_pauses_are_not_counted() {
        let spans = three_kernels();
        for (switches, uncounted) in [
            (&[(220, false), (240, true)][..], 1),
            (&[(220, false), (520, true)], 2),
            (&[(220, false)], 2),
            (&[(600, false), (700, true)], 0),
            (&[(0, false), (90, true)], 0),
            (&[(0, false), (250, true)], 1),
            (&[(310, true)], 0),
            (&[(310, true), (410, false), (420, true)], 1),
        ] {
            let mut pauses = Pauses::default();
            for &(time, is_on) in switches {
                pauses.switch(time, is_on);
            }
            let (_, found) = gaps(&spans, &pauses);
            assert_eq!(found.uncounted, uncounted, "{switches:?}");
        }
    }

    #[test]
    fn a_kernel_that_was_submitted_before_a_pause_and_ends_after_it_hides_what_ran_next() {
        let mut pauses = Pauses::default();
        pauses.switch(110, false);
        pauses.switch(120, true);
        let (after, found) = gaps(&[kernel(1, 100, 200), kernel(1, 300, 400)], &pauses);
        assert_eq!((after.len(), found.uncounted), (0, 1));
    }

    #[test]
    fn kernels_that_too_many_have_overtaken_are_late() {
        let count = WINDOW as u64 + 10;
        let mut spans: Vec<Span> = (1..=count)
            .map(|n| kernel(1, 100 * n, 100 * n + 60))
            .collect();
        spans.push(kernel(2, 150, 1000));
        let (after, found) = gaps(&spans, &Pauses::default());
        assert_eq!(found.late, 1);
        assert_eq!(after, [(1, count - 1, 40 * (count - 1))]);
        // One position earlier, it is sorted.
        spans.pop();
        spans.insert(WINDOW - 1, kernel(2, 150, 1000));
        let (_, found) = gaps(&spans, &Pauses::default());
        assert_eq!(found.late, 0);
        assert_eq!(found.busy, 60 + (1060 - 150 - 10) + 60 * (count - 10));
    }
}
