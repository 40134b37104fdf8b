//! A queue per thread from the program's threads to the completion thread. In the steady state an entry takes no lock,
//! allocates nothing and makes no system call.

use super::fifo::{Consumer, Producer, fifo};
use crate::support::sync::lock;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::LocalKey;

/// A thread's own queue, a thread-local variable.
pub type OwnQueue<T> = Cell<Option<Producer<T>>>;

/// The queues of all threads. `S`: what the collector keeps for each queue.
pub struct ThreadQueues<T: Copy + Send, S = ()> {
    /// The queues of threads that the collector does not know yet: a stack. The collector takes all of it at once.
    new: AtomicPtr<NewQueue<T>>,
    known: Mutex<Vec<(Consumer<T>, S)>>,
}

struct NewQueue<T: Copy + Send> {
    entries: Consumer<T>,
    next: *mut NewQueue<T>,
}

impl<T: Copy + Send + 'static, S: Default> ThreadQueues<T, S> {
    pub const fn new() -> ThreadQueues<T, S> {
        ThreadQueues {
            new: AtomicPtr::new(ptr::null_mut()),
            known: Mutex::new(Vec::new()),
        }
    }

    /// Calls `push` with the calling thread's queue.
    #[inline]
    pub fn with(
        &self,
        own: &'static LocalKey<OwnQueue<T>>,
        mut push: impl FnMut(&mut Producer<T>),
    ) {
        let pushed = own.try_with(|cell| {
            // The producer is taken out while it is used: a signal handler that interrupts this finds none and creates
            // another, which `set` drops below. Its entries are collected nevertheless.
            let mut producer = cell.take().unwrap_or_else(|| self.producer());
            push(&mut producer);
            cell.set(Some(producer));
        });
        if pushed.is_err() {
            // The thread is about to end, and its queue was destroyed.
            push(&mut self.producer());
        }
    }

    /// Creates a queue that the collector will find.
    #[cold]
    fn producer(&self) -> Producer<T> {
        let (producer, entries) = fifo(1);
        let next = self.new.load(Ordering::Relaxed);
        let new = Box::into_raw(Box::new(NewQueue { entries, next }));
        let mut top = next;
        loop {
            match self
                .new
                .compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return producer,
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

    /// Passes the entries since the last call to `take`, in the order of each thread, and `None` when a thread has ended.
    pub fn collect(&self, mut take: impl FnMut(&mut S, Option<T>)) {
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
    fn each_thread_has_one_queue_until_it_ends() {
        static QUEUES: ThreadQueues<u64, u64> = ThreadQueues::new();
        thread_local! {
            static OWN: OwnQueue<u64> = const { Cell::new(None) };
        }
        let push = |value| QUEUES.with(&OWN, |producer| producer.push(value));
        push(1);
        push(2);
        assert!(QUEUES.has_entries());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    (0..1000).for_each(|_| QUEUES.with(&OWN, |producer| producer.push(10)));
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
