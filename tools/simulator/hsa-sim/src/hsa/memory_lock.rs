//! Locks the program's own memory for access by GPUs.

use crate::device::agents::all_gpus;
use crate::memory::allocations::Kind;
use crate::memory::pools::pool;
use crate::results::{put, status};
use crate::state::{State, with};
use hsa_abi::*;
use std::ffi::{c_int, c_void};

pub unsafe fn hsa_amd_memory_lock(
    base: *mut c_void,
    size: usize,
    agents: *const AgentHandle,
    count: c_int,
    agent_base: *mut *mut c_void,
) -> Status {
    if size == 0 || base.is_null() || agent_base.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    if (agents.is_null()) != (count == 0) || count < 0 {
        return Status::INVALID_ARGUMENT;
    }
    let wanted = if agents.is_null() {
        &[]
    } else {
        // SAFETY: the caller's promise: `count` handles.
        unsafe { std::slice::from_raw_parts(agents, count as usize) }
    };
    let locked = with(|state| {
        let mut users = Vec::new();
        for &agent in wanted {
            users.extend(Some(state.agents.number(agent)?).filter(|&number| number > 0));
        }
        if wanted.is_empty() {
            users = all_gpus(&state.agents);
        }
        let State { agents, memory, .. } = state;
        let start = base as usize;
        let end = start.checked_add(size).ok_or(Status::INVALID_ARGUMENT)?;
        memory.lock(agents, start..end, users)
    });
    // SAFETY: the caller's promise.
    status(locked.and_then(|()| unsafe { put(agent_base.cast(), base as usize) }))
}

pub unsafe fn hsa_amd_memory_lock_to_pool(
    base: *mut c_void,
    size: usize,
    agents: *const AgentHandle,
    count: c_int,
    handle: PoolHandle,
    _flags: u32,
    agent_base: *mut *mut c_void,
) -> Status {
    match with(|state| pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL)) {
        // SAFETY: the caller's promise.
        Ok((0, _)) => unsafe { hsa_amd_memory_lock(base, size, agents, count, agent_base) },
        Ok(_) => Status::INVALID_ARGUMENT,
        Err(status) => status,
    }
}

pub unsafe fn hsa_amd_memory_unlock(base: *mut c_void) -> Status {
    status(with(|state| {
        let State { agents, memory, .. } = state;
        match memory.kind(base as usize) {
            Some(Kind::Pool | Kind::Attached) => Ok(()),
            _ => memory
                .unlock(agents, base as usize)
                .ok_or(Status::INVALID_ARGUMENT),
        }
    }))
}
