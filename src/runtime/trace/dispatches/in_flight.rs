//! The channel between a queue's launching thread and the completion thread: the dispatches in flight, and the pool of
//! signals that these dispatches complete. Each direction is a queue with one producer and one consumer, so neither
//! side locks or waits for the other. ROCr serializes the launching side.
//!
//! A packet with a completion signal of the program keeps it if possible ([`crate::trace::hsa::watched_signals`]). Otherwise it
//! completes devprof's signal. The life of such a signal: the completion thread creates it and adds it to the pool, the
//! launching thread takes it for a dispatch, the GPU decrements it, the completion thread reads it and returns it to
//! the pool. If devprof's signal has replaced one of the program, devprof's signal has one more reader: the barrier
//! packet after the kernel, which waits for devprof's signal and then completes the program's. A packet processor
//! starts no packet before the preceding barrier packets are complete. Therefore such a signal returns to the pool when
//! a dispatch after the barrier packet is observed to be complete, or when the queue is destroyed.

use crate::trace::hsa::watched_signals::{Completed, Watch};
use crate::trace::queues::fifo::{Consumer, Producer, fifo};
use hsa_abi::SignalHandle;

/// Operations on signals: HSA's, or a test model's.
pub trait Signals {
    /// The value, loaded with acquire order: the GPU's writes before it decremented the signal are visible.
    fn value(&self, signal: SignalHandle) -> i64;
    /// Sets the value to 1.
    fn reset(&self, signal: SignalHandle);
    /// See [`crate::trace::hsa::watched_signals::poll`].
    fn poll_watch(&self, watch: Watch) -> Option<Completed>;
}

/// A packet that the completion thread must process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// devprof's signal, which the packet completes; 0 for none.
    pub signal: SignalHandle,
    /// The program's completion signal, which the packet completes and devprof watches.
    pub watch: Option<Watch>,
    /// The program's completion signal, if it may have been replaced in this or another packet; 0 for none.
    pub program_signal: SignalHandle,
    /// Whether this is a kernel dispatch. Otherwise it is a packet that only reuses `program_signal`.
    pub dispatch: bool,
    /// A vendor-specific dispatch packet.
    pub vendor: bool,
    /// When the packet was written, system clock.
    pub submit: u64,
    /// Correlation id of the API call that submitted it, 0 for none.
    pub correlation: u64,
    /// Address of the kernel descriptor, from the packet.
    pub kernel_object: u64,
    /// See [`super::kernel_addresses`].
    pub epoch: u64,
    pub thread: u32,
    /// Id of the API call's stream, 0 for none.
    pub stream: u32,
    /// Work-items.
    pub grid: [u32; 3],
    /// Work-items.
    pub workgroup: [u16; 3],
    /// Bytes per workgroup.
    pub lds: u32,
    /// Bytes per work-item.
    pub scratch: u32,
}

/// A packet that is complete.
pub struct Complete {
    /// The number of the entry, in the queue's order.
    number: u64,
    pub entry: Entry,
    /// The result of the entry's watch.
    pub watched: Option<Completed>,
}

/// The launching thread's side.
pub struct LaunchSide {
    pub in_flight: Producer<Entry>,
    pub free_signals: Consumer<SignalHandle>,
}

/// The completion thread's side.
pub struct CompletionSide {
    in_flight: Consumer<Entry>,
    free_signals: Producer<SignalHandle>,
    /// Entries of `in_flight` that are not complete, with their numbers, in the queue's order.
    window: Vec<(u64, Entry)>,
    /// Signals that a barrier packet may still read, with the numbers of their dispatches.
    held: Vec<(u64, SignalHandle)>,
    /// The number of the next entry.
    next: u64,
    /// The highest number of a dispatch that was observed to be complete.
    last_completed: Option<u64>,
    /// Signals in the pool, as far as known: those added whose entry was not popped yet.
    free_count: usize,
    /// The buffer of `poll`, empty between two calls. It is kept so that a dispatch does not allocate.
    complete: Vec<Complete>,
}

/// How many dispatches of a queue are polled at a time. Kernels without barrier bits may complete in any order; those
/// after the window are polled once some in it are complete.
const WINDOW: usize = 128;

pub fn channel() -> (LaunchSide, CompletionSide) {
    let (in_flight, entries) = fifo(2);
    let (free_producer, free_signals) = fifo(2);
    let launching = LaunchSide {
        in_flight,
        free_signals,
    };
    let completing = CompletionSide {
        in_flight: entries,
        free_signals: free_producer,
        window: Vec::with_capacity(WINDOW),
        held: Vec::new(),
        next: 0,
        last_completed: None,
        free_count: 0,
        complete: Vec::with_capacity(WINDOW),
    };
    (launching, completing)
}

impl CompletionSide {
    /// The number of signals that the launching thread can take without waiting.
    pub fn free_count(&self) -> usize {
        self.free_count
    }

    /// Adds a signal to the pool.
    pub fn add_signal(&mut self, signal: SignalHandle) {
        self.free_count += 1;
        self.free_signals.push(signal);
    }

    /// Whether nothing is in flight, as far as the completion thread can see.
    pub fn is_empty(&mut self) -> bool {
        self.window.is_empty() && self.in_flight.is_empty()
    }

    /// The number of entries that were ever pushed.
    pub fn pushed(&self) -> u64 {
        self.next + self.in_flight.count() as u64
    }

    /// Whether the first `count` entries that were ever pushed were processed.
    pub fn has_processed(&self, count: u64) -> bool {
        let first = self.window.first().map_or(self.next, |&(number, _)| number);
        first >= count
    }

    /// Processes complete entries: `on_complete` gets each of them once, per call in the queue's order. It may
    /// read their signals only during the call. Returns the number of entries.
    pub fn poll(
        &mut self,
        signals: &impl Signals,
        mut on_complete: impl FnMut(&[Complete]),
    ) -> usize {
        let mut all = 0;
        let mut complete = std::mem::take(&mut self.complete);
        loop {
            while self.window.len() < WINDOW
                && let Some(entry) = self.next_entry()
            {
                self.window.push((self.next, entry));
                self.next += 1;
            }
            self.take_complete(signals, u64::MAX, &mut complete);
            // An earlier entry may have completed after the scan passed it, but before a later one that the scan found.
            if let Some(last) = complete.last().map(|packet| packet.number) {
                self.take_complete(signals, last, &mut complete);
                complete.sort_unstable_by_key(|packet| packet.number);
            }
            if complete.is_empty() {
                break;
            }
            all += complete.len();
            on_complete(&complete);
            for Complete { number, entry, .. } in complete.drain(..) {
                // A watched signal does not prove that its dispatch is complete: the program may have changed it.
                if entry.signal.0 == 0 {
                    continue;
                }
                self.last_completed = self.last_completed.max(Some(number));
                if entry.program_signal.0 == 0 {
                    self.recycle(signals, entry.signal);
                } else {
                    self.held.push((number, entry.signal));
                }
            }
            self.recycle_held(signals);
        }
        self.complete = complete;
        all
    }

    /// Moves the complete entries with numbers below `before` to `complete`.
    fn take_complete(&mut self, signals: &impl Signals, before: u64, complete: &mut Vec<Complete>) {
        self.window.retain(|&(number, entry)| {
            let mut pending = number >= before;
            let mut watched = None;
            if !pending && entry.signal.0 != 0 {
                pending = signals.value(entry.signal) > 0;
            } else if !pending && let Some(watch) = entry.watch {
                watched = signals.poll_watch(watch);
                pending = watched.is_none();
            }
            if !pending {
                complete.push(Complete {
                    number,
                    entry,
                    watched,
                });
            }
            pending
        });
    }

    fn next_entry(&mut self) -> Option<Entry> {
        let entry = self.in_flight.pop()?;
        if entry.signal.0 != 0 {
            self.free_count = self.free_count.saturating_sub(1);
        }
        Some(entry)
    }

    fn recycle(&mut self, signals: &impl Signals, signal: SignalHandle) {
        signals.reset(signal);
        self.add_signal(signal);
    }

    /// Recycles the signals whose barrier packets are complete.
    fn recycle_held(&mut self, signals: &impl Signals) {
        let mut held = std::mem::take(&mut self.held);
        held.retain(|&(number, signal)| {
            let is_read = self
                .last_completed
                .is_some_and(|completed| completed > number);
            if is_read {
                self.recycle(signals, signal);
            }
            !is_read
        });
        self.held = held;
    }

    /// Removes the entries that are in flight and were not observed to be complete. The GPU may still use their signals
    /// until its queue is destroyed. The caller releases their watches.
    pub fn take_unfinished(&mut self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.window.drain(..).map(|(_, entry)| entry).collect();
        entries.extend(std::iter::from_fn(|| self.next_entry()));
        entries
    }

    /// All signals of a destroyed queue that are not in an entry.
    pub fn into_signals(mut self, launching: LaunchSide) -> Vec<SignalHandle> {
        let mut signals: Vec<_> = self.held.drain(..).map(|(_, signal)| signal).collect();
        let LaunchSide {
            mut free_signals, ..
        } = launching;
        signals.extend(std::iter::from_fn(|| free_signals.pop()));
        signals
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Numbers as signals, their values, and how often they were reset.
    #[derive(Default)]
    struct Model {
        values: RefCell<Vec<i64>>,
        resets: Cell<usize>,
    }

    impl Model {
        fn create(&self) -> SignalHandle {
            self.values.borrow_mut().push(1);
            SignalHandle(self.values.borrow().len() as u64)
        }

        fn complete(&self, signal: SignalHandle) {
            self.values.borrow_mut()[signal.0 as usize - 1] -= 1;
        }
    }

    impl Signals for Model {
        fn value(&self, signal: SignalHandle) -> i64 {
            self.values.borrow()[signal.0 as usize - 1]
        }
        fn reset(&self, signal: SignalHandle) {
            self.resets.set(self.resets.get() + 1);
            self.values.borrow_mut()[signal.0 as usize - 1] = 1;
        }
        fn poll_watch(&self, _: Watch) -> Option<Completed> {
            None
        }
    }

    fn launch(launching: &mut LaunchSide, forwarded: bool) -> SignalHandle {
        let signal = launching.free_signals.pop().expect("a signal");
        launching.in_flight.push(Entry {
            signal,
            program_signal: SignalHandle(if forwarded { 99 } else { 0 }),
            dispatch: true,
            ..Entry::default()
        });
        signal
    }

    fn taken(completing: &mut CompletionSide, signals: &Model) -> Vec<u64> {
        let mut taken = Vec::new();
        completing.poll(signals, |complete| {
            taken.extend(complete.iter().map(|packet| packet.entry.signal.0));
        });
        taken
    }

    #[test]
    fn kernels_that_complete_out_of_order_are_processed_when_complete() {
        let signals = Model::default();
        let (mut launching, mut completing) = channel();
        for _ in 0..3 {
            completing.add_signal(signals.create());
        }
        let [a, b, c] = [false; 3].map(|forwarded| launch(&mut launching, forwarded));
        assert_eq!(taken(&mut completing, &signals), []);
        signals.complete(c);
        assert_eq!(taken(&mut completing, &signals), [c.0]);
        signals.complete(a);
        signals.complete(b);
        assert_eq!(taken(&mut completing, &signals), [a.0, b.0]);
        assert!(completing.is_empty());
        assert_eq!(completing.free_count(), 3);
    }

    #[test]
    fn a_signal_that_a_barrier_packet_reads_is_recycled_after_a_later_dispatch() {
        let signals = Model::default();
        let (mut launching, mut completing) = channel();
        for _ in 0..2 {
            completing.add_signal(signals.create());
        }
        let first = launch(&mut launching, true);
        signals.complete(first);
        assert_eq!(taken(&mut completing, &signals), [first.0]);
        assert_eq!(signals.resets.get(), 0);
        let second = launch(&mut launching, true);
        signals.complete(second);
        assert_eq!(taken(&mut completing, &signals), [second.0]);
        assert_eq!(signals.resets.get(), 1);
        assert_eq!(launching.free_signals.pop(), Some(first));
        let left = completing.into_signals(launching);
        assert_eq!(left, [second]);
    }

    #[test]
    fn dispatches_beyond_the_window_are_all_processed() {
        let signals = Model::default();
        let (mut launching, mut completing) = channel();
        let all: Vec<_> = (0..3 * WINDOW)
            .map(|_| {
                completing.add_signal(signals.create());
                launch(&mut launching, false)
            })
            .collect();
        all.iter().for_each(|&signal| signals.complete(signal));
        assert_eq!(taken(&mut completing, &signals).len(), all.len());
    }
}

/// Every interleaving of the completion thread with a thread that both launches and executes the packets. Some
/// dispatches have a completion signal of the program, so a barrier packet follows them. If devprof's signal is
/// recycled too early, the barrier packet detects it: on a GPU it would wait forever.
#[cfg(all(test, feature = "loom"))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    /// The values of two signals, 1 or 0. Unsigned, because loom's tests use `AtomicUsize`.
    struct Model([AtomicUsize; 2]);

    impl Model {
        fn cell(&self, signal: SignalHandle) -> &AtomicUsize {
            &self.0[signal.0 as usize - 1]
        }

        /// The GPU executes the dispatch, and the barrier packet after it.
        fn run(&self, entry: &Entry) {
            let old = self.cell(entry.signal).fetch_sub(1, Ordering::AcqRel);
            // Without a yield loom does not switch threads between the two packets.
            loom::thread::yield_now();
            assert_eq!(old, 1, "a kernel completes a signal that was not reset");
            if entry.program_signal.0 != 0 {
                let value = self.value(entry.signal);
                assert_eq!(value, 0, "a barrier packet waits for a recycled signal");
            }
        }
    }

    impl Signals for Model {
        fn value(&self, signal: SignalHandle) -> i64 {
            self.cell(signal).load(Ordering::Acquire) as i64
        }
        fn reset(&self, signal: SignalHandle) {
            self.cell(signal).store(1, Ordering::Relaxed);
        }
        fn poll_watch(&self, _: Watch) -> Option<Completed> {
            None
        }
    }

    fn launch(launching: &mut LaunchSide, number: u64, forwarded: bool) -> Option<Entry> {
        let entry = Entry {
            signal: launching.free_signals.pop()?,
            program_signal: SignalHandle(if forwarded { 9 } else { 0 }),
            dispatch: true,
            submit: number,
            ..Entry::default()
        };
        launching.in_flight.push(entry);
        Some(entry)
    }

    /// Two dispatches, and one more for each recycled signal, concurrently with `polls` polls.
    fn model(forwarded: [bool; 4], polls: usize) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let signals = Arc::new(Model([AtomicUsize::new(1), AtomicUsize::new(1)]));
            let (mut launching, mut completing) = channel();
            completing.add_signal(SignalHandle(1));
            completing.add_signal(SignalHandle(2));
            let memory = signals.clone();
            let gpu = loom::thread::spawn(move || {
                let mut number = 0;
                let mut waiting = std::collections::VecDeque::new();
                for forwarded in forwarded {
                    // For the third and the fourth the pool may be empty.
                    let entry = launch(&mut launching, number, forwarded);
                    number += u64::from(entry.is_some());
                    waiting.extend(entry);
                    if waiting.len() > 1 {
                        memory.run(&waiting.pop_front().unwrap());
                    }
                }
                waiting.iter().for_each(|entry| memory.run(entry));
                number
            });
            let mut seen = Vec::new();
            let mut poll = |completing: &mut CompletionSide| {
                completing.poll(&*signals, |complete| {
                    seen.extend(complete.iter().map(|packet| packet.entry.submit));
                });
            };
            (0..polls).for_each(|_| poll(&mut completing));
            let launched = gpu.join().unwrap();
            poll(&mut completing);
            assert_eq!(seen, (0..launched).collect::<Vec<_>>());
        });
    }

    #[test]
    fn a_signal_is_recycled_after_its_last_reader() {
        model([true; 4], 2);
    }

    #[test]
    fn signals_without_a_barrier_packet_are_recycled_at_once() {
        model([false, true, false, true], 2);
    }
}
