//! Allocations from memory pools and regions, and access to them.

use crate::memory::allocations::Kind;
use crate::memory::pools::{PoolKind, pool};
use crate::results::{Outcome, put};
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
    state
        .memory
        .allocate(size, Kind::Pool, owner, kind.flags, users)
        .ok_or(Status::OUT_OF_RESOURCES)
}

pub unsafe fn hsa_amd_memory_pool_allocate(
    handle: PoolHandle,
    size: usize,
    flags: u32,
    base: *mut *mut c_void,
) -> Outcome {
    let address = with(|state| {
        let (owner, kind) = pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL)?;
        if base.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let users = if owner == 0 { Vec::new() } else { vec![owner] };
        let address = allocate_from(state, owner, kind, size, users)?;
        // HIP allocates the arguments of kernels as executable memory. The host writes them through the BAR, without a fence
        // on the GPU, which on hardware has not read them before.
        if flags & (HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG | HSA_AMD_MEMORY_POOL_UNCACHED_FLAG) != 0 {
            state.memory.bypass_cache(address);
        }
        Ok(address)
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(base.cast(), address) }
}

pub unsafe fn hsa_amd_memory_pool_free(base: *mut c_void) -> Outcome {
    if base.is_null() {
        return Ok(());
    }
    let callbacks = with(|state| {
        let freed = state.memory.free(base as usize, Kind::Pool);
        freed.ok_or(Status::INVALID_ALLOCATION)
    })?;
    for (callback, data) in callbacks {
        // SAFETY: the program has registered the function for this address.
        unsafe { callback(base, data as *mut c_void) };
    }
    Ok(())
}

/// Every agent may use the memory.
pub unsafe fn hsa_memory_allocate(
    region: RegionHandle,
    size: usize,
    base: *mut *mut c_void,
) -> Outcome {
    let address = with(|state| {
        let region = PoolHandle(region.0);
        let (owner, kind) = pool(&state.agents, region).ok_or(Status::INVALID_REGION)?;
        if base.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let users = if owner == 0 {
            state.agents.all_gpus()
        } else {
            vec![owner]
        };
        allocate_from(state, owner, kind, size, users)
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(base.cast(), address) }
}

pub unsafe fn hsa_memory_free(base: *mut c_void) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { hsa_amd_memory_pool_free(base) }
}

/// As in ROCr, a CPU in the list is ignored, even if it cannot access the memory.
pub unsafe fn hsa_amd_agents_allow_access(
    count: u32,
    agents: *const AgentHandle,
    flags: *const u32,
    base: *const c_void,
) -> Outcome {
    if count == 0 || agents.is_null() || !flags.is_null() || base.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let wanted = unsafe { std::slice::from_raw_parts(agents, count as usize) };
    with(|state| {
        let users = state.agents.gpus_in(wanted)?;
        state
            .memory
            .allow_access(base as usize, users)
            .ok_or(Status::INVALID_ALLOCATION)
    })
}

/// This is a hint without an effect: GPUs can only use pageable memory that is locked.
pub unsafe fn hsa_memory_register(base: *mut c_void, size: usize) -> Outcome {
    if size == 0 && !base.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    with(|_| Ok(()))
}

pub unsafe fn hsa_memory_deregister(_: *mut c_void, _: usize) -> Outcome {
    with(|_| Ok(()))
}

/// Ownership has no effect here.
pub unsafe fn hsa_memory_assign_agent(
    base: *mut c_void,
    agent: AgentHandle,
    access: u32,
) -> Outcome {
    if base.is_null() || !(1..=3).contains(&access) {
        return Err(Status::INVALID_ARGUMENT);
    }
    with(|state| state.agents.number(agent).map(|_| ()))
}
