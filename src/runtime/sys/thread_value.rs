//! A value per thread that is dropped when the thread ends.
//!
//! Unlike the first use of a thread-local variable with a destructor, the first use of this takes no lock. The former
//! calls `__cxa_thread_atexit_impl`, which takes the dynamic loader's lock. devprof's hooks may be called under HIP's
//! locks, while a thread in `dlclose` holds the loader's lock and waits for HIP's.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// The file that contains it must stay loaded once a thread has a value.
pub struct ThreadValue<T: Send + 'static> {
    /// The `pthread_key_t` plus 1, 0 before the first use.
    key: AtomicU32,
    _values: PhantomData<fn(T)>,
}

impl<T: Send + 'static> ThreadValue<T> {
    pub const fn new() -> ThreadValue<T> {
        ThreadValue {
            key: AtomicU32::new(0),
            _values: PhantomData,
        }
    }

    /// Removes the calling thread's value.
    #[inline]
    pub fn take(&self) -> Option<Box<T>> {
        let key = self.key.load(Ordering::Acquire).checked_sub(1)?;
        // SAFETY: the key exists. Its values are null or boxes of `set`, and the thread has this one no longer.
        unsafe {
            let value = libc::pthread_getspecific(key).cast::<T>();
            if value.is_null() {
                return None;
            }
            libc::pthread_setspecific(key, std::ptr::null());
            Some(Box::from_raw(value))
        }
    }

    /// Gives the calling thread a value; a value that it has is dropped. If the system has no more keys or memory, the
    /// new value is dropped instead.
    #[inline]
    pub fn set(&self, value: Box<T>) {
        let Some(key) = self.key() else { return };
        let old = self.take();
        let new = Box::into_raw(value);
        // SAFETY: the key exists. If the call fails, the thread does not have the value.
        unsafe {
            if libc::pthread_setspecific(key, new.cast()) != 0 {
                drop(Box::from_raw(new));
            }
        }
        drop(old);
    }

    /// Creates the key unless it exists. A signal handler may interrupt this and call it, too, so there is no lock.
    #[inline]
    fn key(&self) -> Option<libc::pthread_key_t> {
        match self.key.load(Ordering::Acquire) {
            0 => self.create_key(),
            known => Some(known - 1),
        }
    }

    #[cold]
    fn create_key(&self) -> Option<libc::pthread_key_t> {
        let mut new = 0;
        // SAFETY: all values of the key are null or boxes of `T`.
        if unsafe { libc::pthread_key_create(&mut new, Some(drop_value::<T>)) } != 0 {
            return None;
        }
        let exchanged = self
            .key
            .compare_exchange(0, new + 1, Ordering::AcqRel, Ordering::Acquire);
        match exchanged {
            Ok(_) => Some(new),
            Err(other) => {
                // SAFETY: nothing uses it yet.
                unsafe { libc::pthread_key_delete(new) };
                Some(other - 1)
            }
        }
    }
}

/// Called when a thread with a value ends, after its thread-local variables were destroyed. `T`'s destructor must not
/// panic.
unsafe extern "C" fn drop_value<T>(value: *mut c_void) {
    // SAFETY: a box of `ThreadValue::set`.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn each_thread_has_one_value_until_it_ends() {
        static VALUES: ThreadValue<Counted> = ThreadValue::new();
        static DROPPED: AtomicU64 = AtomicU64::new(0);
        struct Counted(u64);
        impl Drop for Counted {
            fn drop(&mut self) {
                DROPPED.fetch_add(self.0, Ordering::Relaxed);
            }
        }
        assert!(VALUES.take().is_none());
        VALUES.set(Box::new(Counted(1)));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(|| {
                    assert!(VALUES.take().is_none());
                    VALUES.set(Box::new(Counted(100)));
                    let mut value = VALUES.take().expect("set above");
                    assert!(VALUES.take().is_none());
                    value.0 += 10;
                    VALUES.set(value);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(DROPPED.load(Ordering::Relaxed), 8 * 110);
        VALUES.set(Box::new(Counted(2)));
        assert_eq!(DROPPED.load(Ordering::Relaxed), 8 * 110 + 1);
        assert_eq!(VALUES.take().expect("set above").0, 2);
    }
}
