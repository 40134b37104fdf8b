//! Calls of HSA's functions and of callbacks.

use super::planned_objects;
use crate::faults::functions::Returned;
use crate::faults::injection;
use crate::results::{Outcome, succeeded};
use hsa_abi::*;
use std::ffi::c_void;

/// Calls a function with the faults that the plan has for this call.
#[inline]
pub fn call<R: Returned>(function: &'static str, work: impl FnOnce() -> R) -> R {
    injection::call(function, &planned_objects::load_file, work)
}

/// Calls `callback` for each handle, until a call does not return success.
///
/// # Safety
/// The callback may be called with these handles and `data`.
pub unsafe fn visit<H>(
    handles: Vec<H>,
    callback: unsafe extern "C" fn(H, *mut c_void) -> Status,
    data: *mut c_void,
) -> Outcome {
    for handle in handles {
        // SAFETY: the caller's promise.
        succeeded(unsafe { callback(handle, data) })?;
    }
    Ok(())
}
