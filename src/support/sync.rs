//! Locks that survive a panic, and a mark against a signal handler that interrupts its own thread.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};
use std::thread::LocalKey;

/// Marks the calling thread as busy until it is dropped. A signal handler that interrupts the thread finds the mark: it
/// cannot wait for the work that it interrupted.
pub struct Busy(&'static LocalKey<Cell<bool>>);

impl Busy {
    /// `None` if the thread is already marked.
    pub fn begin(mark: &'static LocalKey<Cell<bool>>) -> Option<Busy> {
        // Lazily: dropping a `Busy` removes the mark.
        (!mark.replace(true)).then(|| Busy(mark))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Takes a lock, even if a thread panicked while it held it: what devprof guards with locks is valid between any two
/// steps.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
