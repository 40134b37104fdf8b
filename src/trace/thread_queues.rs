//! A queue per thread for entries that the completion thread collects. In the steady state, adding an entry takes no lock,
//! allocates nothing and makes no system call.

use super::fifo::{Consumer, Producer, fifo};
use crate::support::sync::lock;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::LocalKey;

/// The queue of a thread that the collector does not know yet.
struct NewQueue<T: Copy + Send> {
    entries: Consumer<T>,
    next: *mut NewQueue<T>,
}

/// The queues of all threads.
pub struct ThreadQueues<T: Copy + Send> {
    /// The queues of threads that the collector does not know yet: a stack. The collector takes all of it at once.
    new: AtomicPtr<NewQueue<T>>,
    /// The queues that the collector knows.
    known: Mutex<Vec<Consumer<T>>>,
}

/// A thread's own queue, a thread-local variable.
pub type OwnQueue<T> = Cell<Option<Producer<T>>>;

impl<T: Copy + Send + 'static> ThreadQueues<T> {
    pub const fn new() -> ThreadQueues<T> {
        ThreadQueues {
            new: AtomicPtr::new(ptr::null_mut()),
            known: Mutex::new(Vec::new()),
        }
    }

    /// Adds an entry. `own`: the calling thread's queue.
    #[inline]
    pub fn push(&self, own: &'static LocalKey<OwnQueue<T>>, entry: T) {
        let pushed = own.try_with(|cell| {
            // The producer is taken out while it is used: a signal handler that interrupts this finds none and creates
            // another, which `set` drops below. Its entries are collected nevertheless.
            let mut producer = cell.take().unwrap_or_else(|| self.producer());
            producer.push(entry);
            cell.set(Some(producer));
        });
        if pushed.is_err() {
            // The thread is about to end, and its queue was destroyed.
            self.producer().push(entry);
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

    fn known(&self) -> MutexGuard<'_, Vec<Consumer<T>>> {
        let mut known = lock(&self.known);
        let mut new = self.new.swap(ptr::null_mut(), Ordering::Acquire);
        while !new.is_null() {
            // SAFETY: created from a box by `producer`, and removed from the stack by the swap.
            let taken = unsafe { Box::from_raw(new) };
            new = taken.next;
            known.push(taken.entries);
        }
        known
    }

    /// Whether there are entries to collect.
    pub fn has_entries(&self) -> bool {
        self.known().iter_mut().any(|entries| !entries.is_empty())
    }

    /// Passes the entries since the last call to `take`, those of each thread in their order.
    pub fn collect(&self, take: &mut impl FnMut(T)) {
        self.known().retain_mut(|entries| {
            // Loaded first: once the queue is closed, everything that the thread pushed is visible.
            let closed = entries.is_closed();
            while let Some(entry) = entries.pop() {
                take(entry);
            }
            !closed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static QUEUES: ThreadQueues<u64> = ThreadQueues::new();

    thread_local! {
        static OWN: OwnQueue<u64> = const { Cell::new(None) };
    }

    fn collected() -> Vec<u64> {
        let mut all = Vec::new();
        QUEUES.collect(&mut |entry| all.push(entry));
        all
    }

    /// One test, because the queues are global.
    #[test]
    fn entries_of_all_threads_are_collected_once() {
        QUEUES.push(&OWN, 7);
        assert!(QUEUES.has_entries());
        assert_eq!(collected(), [7]);
        assert!(!QUEUES.has_entries());

        // Threads that may have ended when their entries are collected.
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                std::thread::spawn(move || {
                    (0..1000).for_each(|n| QUEUES.push(&OWN, 1000 * thread + n));
                })
            })
            .collect();
        let mut all = collected();
        for thread in threads {
            thread.join().expect("no panic");
        }
        all.extend(collected());
        for thread in 0..4u64 {
            let own = all.iter().copied().filter(|entry| entry / 1000 == thread);
            assert!(own.eq(1000 * thread..1000 * (thread + 1)));
        }
        // Only this thread's queue is kept.
        assert_eq!(QUEUES.known().len(), 1);

        // An entry from the destructor of a thread-local variable that is destroyed after the queue.
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                assert!(OWN.try_with(|_| ()).is_err(), "the queue was destroyed");
                QUEUES.push(&OWN, 2);
            }
        }
        thread_local! {
            static LATE: Cell<Option<Late>> = const { Cell::new(None) };
        }
        std::thread::spawn(|| {
            // Thread-local variables are destroyed in the reverse order of their first use.
            LATE.set(Some(Late));
            QUEUES.push(&OWN, 1);
        })
        .join()
        .expect("no panic");
        let mut all = collected();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    }
}
