//! Copies and fills.

use crate::copies::{self, Job};
use crate::faults::injection;
use crate::results::status;
use crate::state::with;
use hsa_abi::*;
use std::ffi::c_void;

/// See `hsa.h`.
///
/// # Safety
/// As specified in `hsa.h`.
pub unsafe fn hsa_memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Status {
    if to.is_null() || from.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    if size == 0 {
        return status(with(|_| Ok(())));
    }
    status(
        copies::check(to as usize, from as usize, size).map(|(to, from)| {
            // SAFETY: the caller's promise, and the runtime has checked the range where it knows the memory.
            unsafe { copies::transfer(to, from, size, injection::copy_fault()) };
        }),
    )
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As specified in `hsa_ext_amd.h`.
pub unsafe fn hsa_amd_memory_fill(base: *mut c_void, value: u32, count: usize) -> Status {
    if base.is_null() || !(base as usize).is_multiple_of(4) {
        return Status::INVALID_ARGUMENT;
    }
    let Some(size) = count.checked_mul(4) else {
        return Status::INVALID_ARGUMENT;
    };
    let end = (base as usize).checked_add(size);
    let checked = with(|state| {
        let range = base as usize..end.ok_or(Status::INVALID_ARGUMENT)?;
        if state.memory.is_allocated(&range) {
            Ok(state.memory.host_address(base as usize))
        } else {
            Err(Status::INVALID_ALLOCATION)
        }
    });
    status(checked.map(|bytes| {
        // SAFETY: inside one allocation.
        unsafe { std::slice::from_raw_parts_mut(bytes as *mut u32, count) }.fill(value);
    }))
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As specified in `hsa_ext_amd.h`.
#[expect(clippy::too_many_arguments, reason = "HSA's signature")]
pub unsafe fn hsa_amd_memory_async_copy(
    to: *mut c_void,
    to_agent: AgentHandle,
    from: *const c_void,
    from_agent: AgentHandle,
    size: usize,
    count: u32,
    dependencies: *const SignalHandle,
    completion: SignalHandle,
) -> Status {
    if to.is_null() || from.is_null() || (count > 0) == dependencies.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    if completion == SignalHandle(0) {
        return Status::INVALID_SIGNAL;
    }
    let agents = with(|state| {
        state.agents.number(to_agent)?;
        state.agents.number(from_agent).map(|_| ())
    });
    let (to, from) = match agents.and_then(|()| copies::check(to as usize, from as usize, size)) {
        Ok(addresses) => addresses,
        Err(status) => return status,
    };
    let dependencies = if count == 0 {
        Vec::new()
    } else {
        // SAFETY: the caller's promise: `count` signals.
        unsafe { std::slice::from_raw_parts(dependencies, count as usize) }.to_vec()
    };
    copies::start(Job {
        to,
        from,
        size,
        fault: injection::copy_fault(),
        dependencies,
        completion,
    })
}

/// See `hsa_ext_amd.h`. There is one engine.
///
/// # Safety
/// As specified in `hsa_ext_amd.h`.
#[expect(clippy::too_many_arguments, reason = "HSA's signature")]
pub unsafe fn hsa_amd_memory_async_copy_on_engine(
    to: *mut c_void,
    to_agent: AgentHandle,
    from: *const c_void,
    from_agent: AgentHandle,
    size: usize,
    count: u32,
    dependencies: *const SignalHandle,
    completion: SignalHandle,
    _engine: u32,
    _force: bool,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        hsa_amd_memory_async_copy(
            to,
            to_agent,
            from,
            from_agent,
            size,
            count,
            dependencies,
            completion,
        )
    }
}
