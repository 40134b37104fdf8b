//! Allocations from memory pools and regions, and access to them.

use crate::device::agents::all_gpus;
use crate::memory::allocations::Kind;
use crate::memory::pools::{PoolKind, pool};
use crate::results::{put, status};
use crate::state::{State, with};
use hsa_abi::*;
use std::ffi::c_void;

fn allocate_from(
    state: &mut State,
    owner: usize,
    kind: &PoolKind,
    size: usize,
    users: Vec<usize>,
) -> Result<usize, Status> {
    if size == 0 {
        return Err(Status::INVALID_ARGUMENT);
    }
    if kind.segment != HSA_AMD_SEGMENT_GLOBAL || size > state.memory.pool_size(owner) {
        return Err(Status::INVALID_ALLOCATION);
    }
    let agents = &state.agents;
    state
        .memory
        .allocate(agents, size, Kind::Pool, owner, kind.flags, users)
        .ok_or(Status::OUT_OF_RESOURCES)
}

pub unsafe fn hsa_amd_memory_pool_allocate(
    handle: PoolHandle,
    size: usize,
    flags: u32,
    base: *mut *mut c_void,
) -> Status {
    let allocated = with(|state| {
        let (owner, kind) = pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL)?;
        if base.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let users = if owner == 0 { Vec::new() } else { vec![owner] };
        let address = allocate_from(state, owner, kind, size, users)?;
        // HIP allocates the arguments of kernels as executable memory. The host writes them through the BAR, without a fence
        // on the GPU, which on hardware has not read them before.
        if flags & (HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG | HSA_AMD_MEMORY_POOL_UNCACHED_FLAG) != 0 {
            state.memory.bypass_cache(&state.agents, address);
        }
        Ok(address)
    });
    // SAFETY: the caller's promise.
    status(allocated.and_then(|address| unsafe { put(base.cast(), address) }))
}

fn free(base: *mut c_void, refused: Status) -> Status {
    if base.is_null() {
        return Status::SUCCESS;
    }
    let callbacks = with(|state| {
        state
            .memory
            .free(&state.agents, base as usize, Kind::Pool)
            .ok_or(refused)
    });
    let result = callbacks.map(|callbacks| {
        for (callback, data) in callbacks {
            // SAFETY: the program has registered the function for this address.
            unsafe { callback(base, data as *mut c_void) };
        }
    });
    status(result)
}

pub unsafe fn hsa_amd_memory_pool_free(base: *mut c_void) -> Status {
    free(base, Status::INVALID_ALLOCATION)
}

/// Every agent may use the memory.
pub unsafe fn hsa_memory_allocate(
    region: RegionHandle,
    size: usize,
    base: *mut *mut c_void,
) -> Status {
    let allocated = with(|state| {
        let region = PoolHandle(region.0);
        let (owner, kind) = pool(&state.agents, region).ok_or(Status::INVALID_REGION)?;
        if base.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let users = if owner == 0 {
            all_gpus(&state.agents)
        } else {
            vec![owner]
        };
        allocate_from(state, owner, kind, size, users)
    });
    // SAFETY: the caller's promise.
    status(allocated.and_then(|address| unsafe { put(base.cast(), address) }))
}

pub unsafe fn hsa_memory_free(base: *mut c_void) -> Status {
    free(base, Status::INVALID_ALLOCATION)
}

/// As in ROCr, a CPU in the list is ignored, even if it cannot access the memory.
pub unsafe fn hsa_amd_agents_allow_access(
    count: u32,
    agents: *const AgentHandle,
    flags: *const u32,
    base: *const c_void,
) -> Status {
    if count == 0 || agents.is_null() || !flags.is_null() || base.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    let wanted = unsafe { std::slice::from_raw_parts(agents, count as usize) };
    status(with(|state| {
        let mut users = Vec::new();
        for &agent in wanted {
            users.extend(Some(state.agents.number(agent)?).filter(|&number| number > 0));
        }
        let State { agents, memory, .. } = state;
        memory
            .allow_access(agents, base as usize, users)
            .ok_or(Status::INVALID_ALLOCATION)
    }))
}

/// This is a hint without an effect: GPUs can only use pageable memory that is locked.
pub unsafe fn hsa_memory_register(base: *mut c_void, size: usize) -> Status {
    if size == 0 && !base.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    status(with(|_| Ok(())))
}

pub unsafe fn hsa_memory_deregister(_: *mut c_void, _: usize) -> Status {
    status(with(|_| Ok(())))
}

/// Ownership has no effect here.
pub unsafe fn hsa_memory_assign_agent(
    base: *mut c_void,
    agent: AgentHandle,
    access: u32,
) -> Status {
    if base.is_null() || !(1..=3).contains(&access) {
        return Status::INVALID_ARGUMENT;
    }
    status(with(|state| state.agents.number(agent).map(|_| ())))
}
