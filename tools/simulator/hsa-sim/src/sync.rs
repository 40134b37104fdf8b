//! Locks, and the end of the process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ends the process with a message.
pub fn die(what: &str) -> ! {
    eprintln!("hsa-sim: {what}");
    std::process::abort();
}

/// Locks a mutex. Ignores poisoning, since a panic of another thread ends the process anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
