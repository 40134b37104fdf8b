//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Ignores poisoning, since a panic of another thread ends the process anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
