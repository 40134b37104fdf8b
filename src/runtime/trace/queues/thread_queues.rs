//! A queue per thread from the program's threads to the completion thread. In the steady state an entry takes no lock,
//! allocates nothing and makes no system call.

use super::fifo::{Consumer, Producer, fifo};
use crate::support::sync::lock;
use crate::sys::thread_value::ThreadValue;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// How many segments of entries a thread's queue can contain (1,048,576 entries). If the completion thread is so far
/// behind, further entries are dropped and counted.
const MAX_SEGMENTS: u64 = 4096;

/// The queues of all threads. `S`: the collector's state for each queue.
pub struct ThreadQueues<T: Copy + Send + 'static, S = ()> {
    own: ThreadValue<Producer<T>>,
    /// The queues of threads that the collector does not know yet: a stack. The collector takes all of it at once.
    new: AtomicPtr<NewQueue<T>>,
    known: Mutex<Vec<(Consumer<T>, S)>>,
    dropped: AtomicU64,
}

struct NewQueue<T: Copy + Send> {
    entries: Consumer<T>,
    next: *mut NewQueue<T>,
}

impl<T: Copy + Send + 'static, S: Default> ThreadQueues<T, S> {
    pub const fn new() -> ThreadQueues<T, S> {
        ThreadQueues {
            own: ThreadValue::new(),
            new: AtomicPtr::new(ptr::null_mut()),
            known: Mutex::new(Vec::new()),
            dropped: AtomicU64::new(0),
        }
    }

    /// Adds an entry. False: it was dropped, because the queue is full.
    #[inline]
    pub fn push(&self, entry: T) -> bool {
        self.with(|producer| producer.push(entry))
    }

    /// Calls `push`, which adds entries that belong together, with the calling thread's queue. False: they were
    /// dropped, because the queue is full.
    #[inline]
    pub fn with(&self, push: impl FnOnce(&mut Producer<T>)) -> bool {
        // The producer is taken out while it is used: a signal handler that interrupts this finds none and creates
        // another, which `set` drops below. Its entries are collected nevertheless.
        let mut producer = self.own.take().unwrap_or_else(|| self.producer());
        let is_full = producer.is_full(MAX_SEGMENTS);
        if is_full {
            self.count_dropped();
        } else {
            push(&mut producer);
        }
        self.own.set(producer);
        !is_full
    }

    #[cold]
    fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Creates a queue that the collector will find.
    #[cold]
    fn producer(&self) -> Box<Producer<T>> {
        let (producer, entries) = fifo(1);
        let next = self.new.load(Ordering::Relaxed);
        let new = Box::into_raw(Box::new(NewQueue { entries, next }));
        let mut top = next;
        loop {
            match self
                .new
                .compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return Box::new(producer),
                Err(now) => top = now,
            }
            // SAFETY: created above and not shared yet.
            unsafe { (*new).next = top };
        }
    }

    fn known(&self) -> MutexGuard<'_, Vec<(Consumer<T>, S)>> {
        let mut known = lock(&self.known);
        let mut new = self.new.swap(ptr::null_mut(), Ordering::Acquire);
        while !new.is_null() {
            // SAFETY: created from a box by `producer`, and removed from the stack by the swap.
            let taken = unsafe { Box::from_raw(new) };
            new = taken.next;
            known.push((taken.entries, S::default()));
        }
        known
    }

    /// Whether there are entries to collect.
    pub fn has_entries(&self) -> bool {
        self.known()
            .iter_mut()
            .any(|(entries, _)| !entries.is_empty())
    }

    /// Passes the entries since the last call to `take`, in the order of each thread, and `None` when a thread has
    /// ended. Returns how often a queue was full since the last call.
    pub fn collect(&self, mut take: impl FnMut(&mut S, Option<T>)) -> u64 {
        self.known().retain_mut(|(entries, state)| {
            // Loaded first: once the queue is closed, everything that the thread pushed is visible.
            let closed = entries.is_closed();
            while let Some(entry) = entries.pop() {
                take(state, Some(entry));
            }
            if closed {
                take(state, None);
            }
            !closed
        });
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// Calls `work` with the state of each queue.
    pub fn each(&self, mut work: impl FnMut(&mut S)) {
        self.known().iter_mut().for_each(|(_, state)| work(state));
    }

    /// In the child of a fork, before it has other threads: discards all entries.
    pub fn discard(&self) {
        // Another thread of the parent may have held the lock; then no thread of the child ever takes it: HSA was
        // initialized in the parent.
        if self.known.try_lock().is_ok() {
            self.collect(|_, _| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_entries_and_counts_them() {
        static QUEUES: ThreadQueues<u8> = ThreadQueues::new();
        let space = MAX_SEGMENTS as usize * super::super::fifo::SEGMENT;
        assert!((0..space).all(|_| QUEUES.push(1)));
        assert!(!QUEUES.push(1) && !QUEUES.push(1));
        let mut taken = 0;
        let dropped = QUEUES.collect(|(), entry| taken += usize::from(entry.is_some()));
        assert_eq!((taken, dropped), (space, 2));
        assert!(QUEUES.push(1));
        assert_eq!(QUEUES.collect(|(), _| ()), 0);
    }

    #[test]
    fn each_thread_has_one_queue_until_it_ends() {
        static QUEUES: ThreadQueues<u64, u64> = ThreadQueues::new();
        let push = |value| QUEUES.push(value);
        push(1);
        push(2);
        assert!(QUEUES.has_entries());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    (0..1000).for_each(|_| assert!(QUEUES.push(10)));
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        let mut ended = Vec::new();
        QUEUES.collect(|sum, value| match value {
            Some(value) => *sum += value,
            None => ended.push(*sum),
        });
        assert_eq!(ended, [10_000; 4]);
        assert!(!QUEUES.has_entries());
        push(4);
        QUEUES.collect(|sum, value| *sum += value.expect("no thread has ended"));
        let mut open = Vec::new();
        QUEUES.each(|sum| open.push(*sum));
        assert_eq!(open, [7]);
        push(8);
        QUEUES.discard();
        assert!(!QUEUES.has_entries());
    }
}
