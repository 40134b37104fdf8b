//! The results of functions: statuses, and values that are written to the program's memory.

use crate::faults::functions::Returned;
use crate::faults::injection;
use hsa_abi::*;
use std::ffi::c_void;

/// The result of a function that returns a status.
pub type Outcome = Result<(), Status>;

/// Converts the result of a simulated function to the type that HSA's function returns.
pub trait IntoReturned<R: Returned> {
    fn into_returned(self) -> R;
}

impl IntoReturned<Status> for Outcome {
    fn into_returned(self) -> Status {
        self.err().unwrap_or(Status::SUCCESS)
    }
}

impl<R: Returned> IntoReturned<R> for R {
    fn into_returned(self) -> R {
        self
    }
}

/// An error if this is not success.
pub fn succeeded(status: Status) -> Outcome {
    match status {
        Status::SUCCESS => Ok(()),
        error => Err(error),
    }
}

/// The program's memory for a result, or null.
#[derive(Clone, Copy)]
pub struct Out(*mut c_void);

impl Out {
    /// # Safety
    /// `to` is null, or has memory for the value that is put.
    pub unsafe fn new<T>(to: *mut T) -> Out {
        Out(to.cast())
    }

    /// Writes a result, or the wrong value from the fault plan.
    pub fn put<T: Plain>(self, value: T) -> Outcome {
        self.put_struct(injection::take_lie().map_or(value, T::from_u64))
    }

    /// Writes a result that the fault plan does not replace.
    pub fn put_struct<T>(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        // SAFETY: the promise of `new`. Attributes need not be aligned in the program's memory.
        unsafe { self.0.cast::<T>().write_unaligned(value) };
        Ok(())
    }

    /// Writes a string attribute: bytes without a terminator.
    pub fn put_bytes(self, bytes: &[u8]) -> Outcome {
        if self.0.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let mut bytes = bytes.to_vec();
        if let Some(lie) = injection::take_lie() {
            let size = bytes.len().min(8);
            bytes[..size].copy_from_slice(&lie.to_le_bytes()[..size]);
        }
        // SAFETY: the promise of `new`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast(), bytes.len()) };
        Ok(())
    }
}

/// Writes a result, or the wrong value from the fault plan.
///
/// # Safety
/// `to` is null or may be written.
pub unsafe fn put<T: Plain>(to: *mut T, value: T) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { Out::new(to) }.put(value)
}

/// Types of attributes. A wrong value from the fault plan is converted to the type.
pub trait Plain: Copy {
    fn from_u64(value: u64) -> Self;
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Plain for $ty {
            fn from_u64(value: u64) -> $ty {
                value as $ty
            }
        }
    )*};
}

plain!(u8, u16, u32, i32, u64, i64, usize);

macro_rules! handles {
    ($($ty:ident),*) => {$(
        impl Plain for $ty {
            fn from_u64(value: u64) -> $ty {
                $ty(value)
            }
        }
    )*};
}

handles!(
    AgentHandle,
    ExecutableHandle,
    IsaHandle,
    ReaderHandle,
    SignalHandle,
    SymbolHandle
);

impl Plain for bool {
    fn from_u64(value: u64) -> bool {
        value != 0
    }
}

impl Plain for Dim3 {
    fn from_u64(value: u64) -> Dim3 {
        let x = value as u32;
        Dim3 { x, y: x, z: x }
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    fn from_u64(value: u64) -> [T; N] {
        [T::from_u64(value); N]
    }
}
