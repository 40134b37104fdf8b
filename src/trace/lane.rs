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
use crate::hsa::types::SignalHandle;

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
}

/// How many dispatches of a queue are watched at a time: kernels without barrier bits may complete in another order
/// than they were written in, and those behind the window are looked at when some in it are complete.
const WINDOW: usize = if cfg!(loom) { 2 } else { 128 };

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
        let mut complete = Vec::new();
        loop {
            while self.window.len() < WINDOW
                && let Some(entry) = self.in_flight.pop()
            {
                if entry.signal.0 != 0 {
                    self.spare = self.spare.saturating_sub(1);
                }
                self.window.push((self.next, entry));
                self.next += 1;
            }
            self.window.retain(|&(number, entry)| {
                let open = entry.signal.0 != 0 && signals.value(entry.signal) > 0;
                if !open {
                    complete.push((number, entry));
                }
                open
            });
            if complete.is_empty() {
                return all;
            }
            all += complete.len();
            let entries: Vec<Entry> = complete.iter().map(|&(_, entry)| entry).collect();
            done(&entries);
            for (number, entry) in complete.drain(..) {
                if entry.signal.0 == 0 {
                    continue;
                }
                self.completed = self.completed.max(Some(number));
                self.held.push((number, entry.signal));
                if entry.program_signal.0 == 0 {
                    self.held.pop();
                    self.recycle(signals, entry.signal);
                }
            }
            self.let_go(signals);
        }
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
        while let Some(entry) = self.in_flight.pop() {
            if entry.signal.0 != 0 {
                self.spare = self.spare.saturating_sub(1);
            }
            entries.push(entry);
        }
        entries
    }
}

impl Completing {
    /// All signals that no entry holds, of a queue that is gone.
    pub fn dissolve(mut self, launching: Launching) -> Vec<SignalHandle> {
        let mut signals: Vec<_> = self.held.drain(..).map(|(_, signal)| signal).collect();
        let Launching { mut free, .. } = launching;
        signals.extend(std::iter::from_fn(|| free.pop()));
        signals
    }
}
