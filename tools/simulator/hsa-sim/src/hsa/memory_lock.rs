//! Locks the program's own memory for access by GPUs.

use crate::memory::allocations::Kind;
use crate::memory::pools::pool;
use crate::results::{Outcome, put};
use crate::state::with;
use hsa_abi::*;
use std::ffi::{c_int, c_void};

pub unsafe fn hsa_amd_memory_lock(
    base: *mut c_void,
    size: usize,
    agents: *const AgentHandle,
    count: c_int,
    agent_base: *mut *mut c_void,
) -> Outcome {
    if size == 0 || base.is_null() || agent_base.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    if (agents.is_null()) != (count == 0) || count < 0 {
        return Err(Status::INVALID_ARGUMENT);
    }
    let wanted = if agents.is_null() {
        &[]
    } else {
        // SAFETY: the caller's promise: `count` handles.
        unsafe { std::slice::from_raw_parts(agents, count as usize) }
    };
    with(|state| {
        let users = match wanted {
            [] => state.agents.all_gpus(),
            wanted => state.agents.gpus_in(wanted)?,
        };
        let start = base as usize;
        let end = start.checked_add(size).ok_or(Status::INVALID_ARGUMENT)?;
        state.memory.lock(start..end, users)
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(agent_base.cast(), base as usize) }
}

pub unsafe fn hsa_amd_memory_lock_to_pool(
    base: *mut c_void,
    size: usize,
    agents: *const AgentHandle,
    count: c_int,
    handle: PoolHandle,
    _flags: u32,
    agent_base: *mut *mut c_void,
) -> Outcome {
    match with(|state| pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL))? {
        // SAFETY: the caller's promise.
        (0, _) => unsafe { hsa_amd_memory_lock(base, size, agents, count, agent_base) },
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

pub unsafe fn hsa_amd_memory_unlock(base: *mut c_void) -> Outcome {
    with(|state| match state.memory.kind(base as usize) {
        Some(Kind::Pool | Kind::Attached) => Ok(()),
        _ => state
            .memory
            .unlock(base as usize)
            .ok_or(Status::INVALID_ARGUMENT),
    })
}
