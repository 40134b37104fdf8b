//! The results of functions: statuses, and values that are written to the program's memory.

use crate::faults::injection;
use hsa_abi::*;

/// The status of a call.
pub fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::SUCCESS)
}

/// Writes a result, or the wrong value from the fault plan.
///
/// # Safety
/// `to` is null or may be written.
pub unsafe fn put<T: Plain>(to: *mut T, value: T) -> Result<(), Status> {
    if to.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let value = injection::take_lie().map_or(value, T::from_u64);
    // SAFETY: the caller's promise. Attributes need not be aligned in the program's memory.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes a string attribute: bytes without a terminator.
///
/// # Safety
/// `to` is null or has memory for the bytes.
pub unsafe fn put_bytes(to: *mut u8, bytes: &[u8]) -> Result<(), Status> {
    if to.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let lie = injection::take_lie();
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    if let Some(lie) = lie {
        let size = bytes.len().min(8);
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(lie.to_le_bytes().as_ptr(), to, size) };
    }
    Ok(())
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
