//! Locks that survive a panic, and a mark that detects a signal handler on a busy thread.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};
use std::thread::LocalKey;

/// Marks the calling thread as busy until it is dropped. A signal handler that interrupts the thread checks the mark,
/// because it cannot wait for the interrupted work.
pub struct Busy(&'static LocalKey<Cell<bool>>);

impl Busy {
    /// `None` if the thread is already marked.
    pub fn begin(mark: &'static LocalKey<Cell<bool>>) -> Option<Busy> {
        // `then`, not `then_some`: dropping a `Busy` removes the mark.
        (!mark.replace(true)).then(|| Busy(mark))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock: the data that devprof guards with locks is valid
/// after each step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
