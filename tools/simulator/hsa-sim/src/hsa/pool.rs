//! Attributes of memory pools and regions, and agents' access to them.

use super::calls::visit;
use crate::device::mapping::PAGE;
use crate::memory::pools::{GROUP_BYTES, handles, pool};
use crate::results::{Out, Outcome, put};
use crate::state::with;
use hsa_abi::*;
use std::ffi::c_void;

/// The links between CPU and GPUs, and between GPUs: PCIe. HIP needs atomics for calls from kernels to the host.
const fn link(has_atomics: bool) -> LinkInfo {
    LinkInfo {
        min_latency: 0,
        max_latency: 0,
        min_bandwidth: 0,
        max_bandwidth: 0,
        atomic_support_32bit: has_atomics,
        atomic_support_64bit: has_atomics,
        coherent_support: true,
        link_type: HSA_AMD_LINK_INFO_TYPE_PCIE,
        numa_distance: 20,
    }
}

pub unsafe fn hsa_amd_agent_iterate_memory_pools(
    agent: AgentHandle,
    callback: PoolCallback,
    data: *mut c_void,
) -> Outcome {
    let pools = with(|state| state.agents.number(agent).map(handles))?;
    // SAFETY: the caller's promise.
    unsafe { visit(pools, callback, data) }
}

pub unsafe fn hsa_agent_iterate_regions(
    agent: AgentHandle,
    callback: RegionCallback,
    data: *mut c_void,
) -> Outcome {
    let regions = with(|state| {
        let pools = state.agents.number(agent).map(handles)?;
        Ok(pools.into_iter().map(|pool| RegionHandle(pool.0)).collect())
    })?;
    // SAFETY: the caller's promise.
    unsafe { visit(regions, callback, data) }
}

pub unsafe fn hsa_amd_memory_pool_get_info(
    handle: PoolHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let (agent, kind, pool_size) = with(|state| {
        let (agent, kind) = pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL)?;
        Ok((agent, kind, state.memory.pool_size(agent)))
    })?;
    let global = kind.segment == HSA_AMD_SEGMENT_GLOBAL;
    let size = if global { pool_size } else { GROUP_BYTES };
    let granule = if global { PAGE } else { 0 };
    // SAFETY: the caller's promise: memory for the attribute, whose type the headers specify.
    let out = unsafe { Out::new(value) };
    match attribute {
        HSA_AMD_MEMORY_POOL_INFO_SEGMENT => out.put(kind.segment),
        HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS => out.put(kind.flags),
        HSA_AMD_MEMORY_POOL_INFO_SIZE => out.put(size),
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED => out.put(global),
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE
        | HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT
        | HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE => out.put(granule),
        HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL => out.put(agent == 0),
        HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE => out.put(size),
        HSA_AMD_MEMORY_POOL_INFO_LOCATION => out.put(if agent == 0 {
            HSA_AMD_MEMORY_POOL_LOCATION_CPU
        } else {
            HSA_AMD_MEMORY_POOL_LOCATION_GPU
        }),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

pub unsafe fn hsa_region_get_info(
    region: RegionHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let region = PoolHandle(region.0);
    let owner = with(|state| pool(&state.agents, region).ok_or(Status::INVALID_REGION))?.0;
    let same = match attribute {
        HSA_REGION_INFO_SEGMENT => HSA_AMD_MEMORY_POOL_INFO_SEGMENT,
        HSA_REGION_INFO_GLOBAL_FLAGS => HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS,
        HSA_REGION_INFO_SIZE => HSA_AMD_MEMORY_POOL_INFO_SIZE,
        HSA_REGION_INFO_ALLOC_MAX_SIZE => HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE,
        HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED => HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
        HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE => HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE,
        HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT => HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT,
        HSA_AMD_REGION_INFO_HOST_ACCESSIBLE => {
            let accessible = with(|state| Ok(owner == 0 || !state.settings.small_bar))?;
            // SAFETY: the caller's promise.
            return unsafe { put(value.cast(), accessible) };
        }
        _ => return Err(Status::INVALID_ARGUMENT),
    };
    // SAFETY: the caller's promise.
    unsafe { hsa_amd_memory_pool_get_info(region, same, value) }
}

pub unsafe fn hsa_amd_agent_memory_pool_get_info(
    agent: AgentHandle,
    handle: PoolHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let (number, owner, reachable, has_atomics) = with(|state| {
        let number = state.agents.number(agent)?;
        let (owner, kind) = pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL)?;
        // Without a large BAR, the topology has no link from the CPU to the GPU's memory.
        let linked = number > 0 || !state.settings.small_bar;
        Ok((
            number,
            owner,
            linked && kind.segment == HSA_AMD_SEGMENT_GLOBAL,
            state.settings.pcie_atomics,
        ))
    })?;
    let access = if number == owner {
        HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT
    } else if reachable {
        HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT
    } else {
        HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED
    };
    let hops = u32::from(number != owner && reachable);
    // SAFETY: the caller's promise: 32-bit values, or memory for a link per hop.
    let out = unsafe { Out::new(value) };
    match attribute {
        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS => out.put(access),
        HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS => out.put(hops),
        HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO if hops == 0 => Ok(()),
        HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO => out.put_struct(link(has_atomics)),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}
