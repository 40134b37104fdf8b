//! What one queue's launching thread and the completion thread share: the dispatches in flight, and the pool of
//! signals that they complete. Both are queues with one writer and one reader, so neither side ever waits for the
//! other or takes a lock; ROCr serializes the launching side.
//!
//! A signal goes round: made and given by the completion thread, taken for a dispatch by the launching thread, counted
//! down by the GPU, read by the completion thread, given again. It has one more reader where the program wants a
//! completion signal of its own: the barrier packet behind the kernel waits for ours and then completes the program's.
//! A packet processor starts no packet before the barrier packets in front of it are done, so such a signal is given
//! again when a dispatch behind the barrier was seen to complete, or the queue is gone.

use super::fifo::{Consumer, Producer, fifo};
use hsa_abi::SignalHandle;

/// What signals can do. HSA's, or a model of them in a test.
pub trait Signals {
    /// A new signal of value 1, or `None` when there can be none.
    fn create(&self) -> Option<SignalHandle>;
    /// Its value, with acquire order: what the GPU wrote before it counted down is seen.
    fn value(&self, signal: SignalHandle) -> i64;
    /// Sets it to 1 again.
    fn reset(&self, signal: SignalHandle);
    fn destroy(&self, signal: SignalHandle);
}

/// One packet that the completion thread has to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Ours, which the packet completes. 0: it has none, and there will be no times.
    pub signal: SignalHandle,
    /// The program's own completion signal, 0 for none.
    pub program_signal: SignalHandle,
    /// Whether this is a kernel dispatch; otherwise it is a packet that takes over `program_signal`, and no more.
    pub dispatch: bool,
    /// A vendor-specific dispatch packet.
    pub vendor: bool,
    /// System clock.
    pub submit: u64,
    /// See [`super::calls::current`].
    pub correlation: u64,
    /// Address of the kernel descriptor, as the packet has it.
    pub kernel_object: u64,
    /// See [`super::kernels`].
    pub epoch: u64,
    pub thread: u32,
    /// Work-items.
    pub grid: [u32; 3],
    /// Work-items.
    pub workgroup: [u16; 3],
    /// Bytes a workgroup.
    pub lds: u32,
    /// Bytes a work-item.
    pub scratch: u32,
}

/// The launching thread's side.
pub struct Launching {
    pub in_flight: Producer<Entry>,
    pub free: Consumer<SignalHandle>,
}

/// The completion thread's side.
pub struct Completing {
    in_flight: Consumer<Entry>,
    free: Producer<SignalHandle>,
    /// What was seen of `in_flight` and is not complete: number in the queue, entry. In order.
    window: Vec<(u64, Entry)>,
    /// Signals that a barrier packet may still read, with their dispatch's number.
    held: Vec<(u64, SignalHandle)>,
    /// Numbers entries.
    next: u64,
    /// The highest number of a dispatch that was seen to complete.
    completed: Option<u64>,
    /// Signals given and not seen in an entry yet.
    spare: usize,
    /// Of a pass, empty between two.
    complete: Vec<(u64, Entry)>,
    entries: Vec<Entry>,
}

/// How many dispatches of a queue are watched at a time: kernels without barrier bits may complete in another order
/// than they were written in, and those behind the window are looked at when some in it are complete.
const WINDOW: usize = 128;

pub fn lane() -> (Launching, Completing) {
    let (in_flight, entries) = fifo(2);
    let (give, free) = fifo(2);
    let launching = Launching { in_flight, free };
    let completing = Completing {
        in_flight: entries,
        free: give,
        window: Vec::with_capacity(WINDOW),
        held: Vec::new(),
        next: 0,
        completed: None,
        spare: 0,
        complete: Vec::with_capacity(WINDOW),
        entries: Vec::with_capacity(WINDOW),
    };
    (launching, completing)
}

impl Completing {
    /// Signals that the launching thread can take without waiting.
    pub fn spare(&self) -> usize {
        self.spare
    }

    /// Makes a signal available to the launching thread.
    pub fn give(&mut self, signal: SignalHandle) {
        self.spare += 1;
        self.free.push(signal);
    }

    /// Nothing is in flight, as far as can be seen.
    pub fn is_empty(&mut self) -> bool {
        self.window.is_empty() && self.in_flight.is_empty()
    }

    /// Takes what is complete: `done` gets each entry once, in the queue's order among those that are taken together.
    /// Its signal may be read during the call, not after it. Returns how many there were.
    pub fn pass(&mut self, signals: &impl Signals, mut done: impl FnMut(&[Entry])) -> usize {
        let mut all = 0;
        // Kept from pass to pass: nothing is allocated for a dispatch.
        let mut complete = std::mem::take(&mut self.complete);
        let mut entries = std::mem::take(&mut self.entries);
        loop {
            while self.window.len() < WINDOW
                && let Some(entry) = self.next_entry()
            {
                self.window.push((self.next, entry));
                self.next += 1;
            }
            self.take_complete(signals, u64::MAX, &mut complete);
            // What completed during the look may be there without what completed before it.
            if let Some(last) = complete.last().map(|&(number, _)| number) {
                self.take_complete(signals, last, &mut complete);
                complete.sort_unstable_by_key(|&(number, _)| number);
            }
            if complete.is_empty() {
                break;
            }
            all += complete.len();
            entries.clear();
            entries.extend(complete.iter().map(|&(_, entry)| entry));
            done(&entries);
            for (number, entry) in complete.drain(..) {
                if entry.signal.0 == 0 {
                    continue;
                }
                self.completed = self.completed.max(Some(number));
                if entry.program_signal.0 == 0 {
                    self.recycle(signals, entry.signal);
                } else {
                    self.held.push((number, entry.signal));
                }
            }
            self.let_go(signals);
        }
        (self.complete, self.entries) = (complete, entries);
        all
    }

    /// Takes the entries before number `before` that are complete.
    fn take_complete(
        &mut self,
        signals: &impl Signals,
        before: u64,
        complete: &mut Vec<(u64, Entry)>,
    ) {
        self.window.retain(|&(number, entry)| {
            let open = number >= before || entry.signal.0 != 0 && signals.value(entry.signal) > 0;
            if !open {
                complete.push((number, entry));
            }
            open
        });
    }

    fn next_entry(&mut self) -> Option<Entry> {
        let entry = self.in_flight.pop()?;
        if entry.signal.0 != 0 {
            self.spare = self.spare.saturating_sub(1);
        }
        Some(entry)
    }

    fn recycle(&mut self, signals: &impl Signals, signal: SignalHandle) {
        signals.reset(signal);
        self.give(signal);
    }

    /// Recycles the signals whose barrier packets are done.
    fn let_go(&mut self, signals: &impl Signals) {
        let mut held = std::mem::take(&mut self.held);
        held.retain(|&(number, signal)| {
            let read = self.completed.is_some_and(|completed| completed > number);
            if read {
                self.recycle(signals, signal);
            }
            !read
        });
        self.held = held;
    }

    /// Takes what is in flight and was not seen to complete. Their signals are the GPU's for ever, unless its queue is
    /// gone.
    pub fn abandon(&mut self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.window.drain(..).map(|(_, entry)| entry).collect();
        entries.extend(std::iter::from_fn(|| self.next_entry()));
        entries
    }

    /// All signals that no entry holds, of a queue that is gone.
    pub fn dissolve(mut self, launching: Launching) -> Vec<SignalHandle> {
        let mut signals: Vec<_> = self.held.drain(..).map(|(_, signal)| signal).collect();
        let Launching { mut free, .. } = launching;
        signals.extend(std::iter::from_fn(|| free.pop()));
        signals
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Signals that are numbers, and what was done to them.
    #[derive(Default)]
    struct Model {
        values: RefCell<Vec<i64>>,
        resets: Cell<usize>,
    }

    impl Model {
        fn complete(&self, signal: SignalHandle) {
            self.values.borrow_mut()[signal.0 as usize - 1] -= 1;
        }
    }

    impl Signals for Model {
        fn create(&self) -> Option<SignalHandle> {
            self.values.borrow_mut().push(1);
            Some(SignalHandle(self.values.borrow().len() as u64))
        }
        fn value(&self, signal: SignalHandle) -> i64 {
            self.values.borrow()[signal.0 as usize - 1]
        }
        fn reset(&self, signal: SignalHandle) {
            self.resets.set(self.resets.get() + 1);
            self.values.borrow_mut()[signal.0 as usize - 1] = 1;
        }
        fn destroy(&self, _: SignalHandle) {}
    }

    fn launch(launching: &mut Launching, forwarded: bool) -> SignalHandle {
        let signal = launching.free.pop().expect("a signal");
        launching.in_flight.push(Entry {
            signal,
            program_signal: SignalHandle(if forwarded { 99 } else { 0 }),
            dispatch: true,
            ..Entry::default()
        });
        signal
    }

    fn taken(completing: &mut Completing, signals: &Model) -> Vec<u64> {
        let mut taken = Vec::new();
        completing.pass(signals, |entries| {
            taken.extend(entries.iter().map(|entry| entry.signal.0));
        });
        taken
    }

    #[test]
    fn kernels_that_overtake_each_other_are_taken_when_they_are_complete() {
        let signals = Model::default();
        let (mut launching, mut completing) = lane();
        for _ in 0..3 {
            completing.give(signals.create().unwrap());
        }
        let [a, b, c] = [false; 3].map(|forwarded| launch(&mut launching, forwarded));
        assert_eq!(taken(&mut completing, &signals), []);
        signals.complete(c);
        assert_eq!(taken(&mut completing, &signals), [c.0]);
        signals.complete(a);
        signals.complete(b);
        assert_eq!(taken(&mut completing, &signals), [a.0, b.0]);
        assert!(completing.is_empty());
        assert_eq!(completing.spare(), 3);
    }

    #[test]
    fn a_signal_that_a_barrier_packet_reads_waits_for_a_later_dispatch() {
        let signals = Model::default();
        let (mut launching, mut completing) = lane();
        for _ in 0..2 {
            completing.give(signals.create().unwrap());
        }
        let first = launch(&mut launching, true);
        signals.complete(first);
        assert_eq!(taken(&mut completing, &signals), [first.0]);
        assert_eq!(signals.resets.get(), 0);
        let second = launch(&mut launching, true);
        signals.complete(second);
        assert_eq!(taken(&mut completing, &signals), [second.0]);
        assert_eq!(signals.resets.get(), 1);
        assert_eq!(launching.free.pop(), Some(first));
        let left = completing.dissolve(launching);
        assert_eq!(left, [second]);
    }

    #[test]
    fn more_dispatches_than_are_watched_are_all_taken() {
        let signals = Model::default();
        let (mut launching, mut completing) = lane();
        let all: Vec<_> = (0..3 * WINDOW)
            .map(|_| {
                completing.give(signals.create().unwrap());
                launch(&mut launching, false)
            })
            .collect();
        all.iter().for_each(|&signal| signals.complete(signal));
        assert_eq!(taken(&mut completing, &signals).len(), all.len());
    }
}

/// Every interleaving of the completion thread with a thread that launches and is the GPU, too. Dispatches have
/// completion signals of their own, and a signal that came back too early is seen by the barrier packet that still
/// waits for it: it would wait for ever.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    /// 1 and 0 are the values of a signal; unsigned, as loom has them.
    struct Model([AtomicUsize; 2]);

    impl Model {
        fn cell(&self, signal: SignalHandle) -> &AtomicUsize {
            &self.0[signal.0 as usize - 1]
        }

        /// The GPU is at the dispatch.
        fn run(&self, entry: &Entry) {
            let old = self.cell(entry.signal).fetch_sub(1, Ordering::AcqRel);
            // The packet processor takes its time: without this loom does not look between the two packets.
            loom::thread::yield_now();
            assert_eq!(old, 1, "a kernel completes a signal that is not ready");
            if entry.program_signal.0 != 0 {
                let value = self.value(entry.signal);
                assert_eq!(value, 0, "a barrier waits for a signal that was taken back");
            }
        }
    }

    impl Signals for Model {
        fn create(&self) -> Option<SignalHandle> {
            None
        }
        fn value(&self, signal: SignalHandle) -> i64 {
            self.cell(signal).load(Ordering::Acquire) as i64
        }
        fn reset(&self, signal: SignalHandle) {
            self.cell(signal).store(1, Ordering::Relaxed);
        }
        fn destroy(&self, _: SignalHandle) {}
    }

    fn launch(launching: &mut Launching, number: u64, forwarded: bool) -> Option<Entry> {
        let entry = Entry {
            signal: launching.free.pop()?,
            program_signal: SignalHandle(if forwarded { 9 } else { 0 }),
            dispatch: true,
            submit: number,
            ..Entry::default()
        };
        launching.in_flight.push(entry);
        Some(entry)
    }

    /// Two dispatches, and as many more as find a signal that came back, while `passes` passes look.
    fn model(forwarded: [bool; 4], passes: usize) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let signals = Arc::new(Model([AtomicUsize::new(1), AtomicUsize::new(1)]));
            let (mut launching, mut completing) = lane();
            completing.give(SignalHandle(1));
            completing.give(SignalHandle(2));
            let memory = signals.clone();
            let gpu = loom::thread::spawn(move || {
                let mut number = 0;
                let mut waiting = std::collections::VecDeque::new();
                for forwarded in forwarded {
                    // The third and the fourth may have to do without.
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
            let mut pass = |completing: &mut Completing| {
                completing.pass(&*signals, |entries| {
                    seen.extend(entries.iter().map(|entry| entry.submit));
                });
            };
            (0..passes).for_each(|_| pass(&mut completing));
            let launched = gpu.join().unwrap();
            pass(&mut completing);
            assert_eq!(seen, (0..launched).collect::<Vec<_>>());
        });
    }

    #[test]
    fn a_signal_comes_back_after_its_last_reader() {
        model([true; 4], 2);
    }

    #[test]
    fn signals_without_another_reader_come_back_at_once() {
        model([false, true, false, true], 2);
    }
}
