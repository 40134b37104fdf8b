//! Memory pools of agents.

use super::api::{Api, check};
use super::query;
use crate::gpu::runtime::Error;
use hsa_abi::*;
use std::ffi::c_void;
use zerocopy::FromZeros;

/// An agent's first pool of global memory that has this flag (`HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_…`) and allows
/// allocation.
pub fn find(api: &Api, agent: AgentHandle, flag: u32) -> Option<PoolHandle> {
    let mut pools = Vec::<PoolHandle>::new();
    let iterate = api.hsa_amd_agent_iterate_memory_pools;
    // SAFETY: `push` gets the list. The status is ignored: if it is an error, there is no other pool.
    unsafe { iterate(agent, query::push::<PoolHandle>, (&raw mut pools).cast()) };
    pools.into_iter().find(|&pool| {
        // SAFETY: the attributes are a 32-bit enumeration, a u32 and a bool.
        unsafe {
            let segment: Option<u32> = info(api, pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT);
            let flags: Option<u32> = info(api, pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS);
            let allowed: Option<bool> =
                info(api, pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED);
            segment == Some(HSA_AMD_SEGMENT_GLOBAL)
                && flags.is_some_and(|flags| flags & flag != 0)
                && allowed == Some(true)
        }
    })
}

/// The size of a pool, bytes.
pub fn size(api: &Api, pool: PoolHandle) -> Option<u64> {
    // SAFETY: the attribute is a size_t.
    unsafe { info(api, pool, HSA_AMD_MEMORY_POOL_INFO_SIZE) }
}

/// Allocates memory of a pool that allows it.
pub fn allocate(api: &Api, pool: PoolHandle, size: usize) -> Result<*mut c_void, Error> {
    let mut base = std::ptr::null_mut();
    // SAFETY: the pool allows allocation.
    check("hsa_amd_memory_pool_allocate", unsafe {
        (api.hsa_amd_memory_pool_allocate)(pool, size, 0, &raw mut base)
    })?;
    Ok(base)
}

/// Frees memory from [`allocate`]. No copy and no kernel may use it.
pub fn free(api: &Api, base: *mut c_void) {
    // SAFETY: allocated from a pool. If this fails, HSA is shut down, and the memory with it, or the memory is leaked.
    unsafe { (api.hsa_amd_memory_pool_free)(base) };
}

/// An attribute of a pool.
///
/// # Safety
/// `T` is the attribute's type.
unsafe fn info<T: FromZeros>(api: &Api, pool: PoolHandle, attribute: u32) -> Option<T> {
    let read = api.hsa_amd_memory_pool_get_info;
    // SAFETY: the caller's promise.
    query::info("hsa_amd_memory_pool_get_info", |to| unsafe {
        read(pool, attribute, to)
    })
    .ok()
}
