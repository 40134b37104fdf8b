//! Memory pools of agents.

use super::api::Api;
use hsa_abi::{
    AgentHandle, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS,
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, HSA_AMD_MEMORY_POOL_INFO_SEGMENT,
    HSA_AMD_MEMORY_POOL_INFO_SIZE, HSA_AMD_SEGMENT_GLOBAL, PoolHandle, Status,
};
use std::ffi::c_void;

/// An agent's first pool of global memory that has this flag (`HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_…`) and allows
/// allocation.
pub fn find(api: &Api, agent: AgentHandle, flag: u32) -> Option<PoolHandle> {
    struct Search<'a> {
        api: &'a Api,
        flag: u32,
        found: Option<PoolHandle>,
    }
    unsafe extern "C" fn visit(pool: PoolHandle, data: *mut c_void) -> Status {
        // SAFETY: `data` is the search that `find` passed; it is valid, and nothing else uses it, during the
        // call.
        let search = unsafe { &mut *data.cast::<Search>() };
        let (mut segment, mut flags, mut allowed) = (u32::MAX, 0u32, false);
        let info = search.api.hsa_amd_memory_pool_get_info;
        // SAFETY: the attributes are a 32-bit enumeration, a u32 and a bool.
        let known = unsafe {
            info(
                pool,
                HSA_AMD_MEMORY_POOL_INFO_SEGMENT,
                (&raw mut segment).cast(),
            ) == Status::SUCCESS
                && info(
                    pool,
                    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS,
                    (&raw mut flags).cast(),
                ) == Status::SUCCESS
                && info(
                    pool,
                    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                    (&raw mut allowed).cast(),
                ) == Status::SUCCESS
        };
        if known && segment == HSA_AMD_SEGMENT_GLOBAL && flags & search.flag != 0 && allowed {
            search.found = Some(pool);
            return Status::INFO_BREAK;
        }
        Status::SUCCESS
    }
    let mut search = Search {
        api,
        flag,
        found: None,
    };
    // SAFETY: `visit` gets the pointer passed here. The status is ignored: if it is an error, no pool was found.
    unsafe { (api.hsa_amd_agent_iterate_memory_pools)(agent, visit, (&raw mut search).cast()) };
    search.found
}

/// The size of a pool, bytes.
pub fn size(api: &Api, pool: PoolHandle) -> Option<u64> {
    let mut size = 0usize;
    // SAFETY: the attribute is a size_t.
    let status = unsafe {
        (api.hsa_amd_memory_pool_get_info)(
            pool,
            HSA_AMD_MEMORY_POOL_INFO_SIZE,
            (&raw mut size).cast(),
        )
    };
    (status == Status::SUCCESS).then_some(size as u64)
}
