//! The atomics of the launch path's data structures: the standard library's, or in model tests loom's, which explores
//! every interleaving.

#[cfg(all(test, feature = "loom"))]
pub use loom::{
    alloc::Track,
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread::yield_now,
};

#[cfg(not(all(test, feature = "loom")))]
pub use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread::yield_now,
};

/// `std::cell::UnsafeCell` with the interface of loom's, which detects concurrent accesses.
#[cfg(not(all(test, feature = "loom")))]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(all(test, feature = "loom")))]
impl<T> UnsafeCell<T> {
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A member of an allocation. With loom's version, loom detects that the allocation leaks.
#[cfg(not(all(test, feature = "loom")))]
pub struct Track<T>(T);

#[cfg(not(all(test, feature = "loom")))]
impl<T> Track<T> {
    pub fn new(value: T) -> Track<T> {
        Track(value)
    }
}
