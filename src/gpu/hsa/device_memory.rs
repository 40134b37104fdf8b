//! Memory of GPUs for copies of counters, and the units that use it.

use super::api::{Api, check, failed};
use super::{pools, query};
use crate::gpu::runtime::{Error, Units};
use hsa_abi::{AgentHandle, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, Status};
use std::ffi::c_void;

/// Allocates memory of a GPU, which only this GPU can access. ROCr aligns it to a page.
pub fn allocate(api: &Api, gpu: AgentHandle, size: usize) -> Result<u64, Error> {
    const WHAT: &str = "hsa_amd_memory_pool_allocate";
    let pool = pools::find(api, gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
        .ok_or_else(|| failed(WHAT, Status::INVALID_MEMORY_POOL))?;
    let mut base = std::ptr::null_mut::<c_void>();
    // SAFETY: the pool allows allocation.
    let status = unsafe { (api.hsa_amd_memory_pool_allocate)(pool, size, 0, &raw mut base) };
    check(WHAT, status).map(|()| base as u64)
}

/// Frees memory from [`allocate`].
pub fn free(api: &Api, address: u64) {
    // SAFETY: allocated from a pool, and no kernel uses it. If this fails, HSA is shut down, and the memory with it.
    unsafe { (api.hsa_amd_memory_pool_free)(address as *mut c_void) };
}

/// The compute units of a GPU, by its target's name. `None`: its waves cannot read their unit.
pub fn units(api: &Api, gpu: AgentHandle, target: &str) -> Result<Option<Units>, Error> {
    if !knows_unit(target) {
        return Ok(None);
    }
    Ok(Some(Units {
        count: query::compute_units(api, gpu)?,
        is_limited: false,
    }))
}

/// Whether the device runtime reads the number of a wave's unit (tools/device-rt/profile.c): from gfx9 on.
fn knows_unit(target: &str) -> bool {
    // The last two digits are the minor version and the stepping.
    let version = target.strip_prefix("gfx").unwrap_or_default();
    let major = version.get(..version.len().saturating_sub(2));
    major
        .and_then(|major| major.parse::<u32>().ok())
        .is_some_and(|major| major >= 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_know_their_unit_from_gfx9_on() {
        for target in [
            "gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1250",
        ] {
            assert!(knows_unit(target), "{target}");
        }
        for target in ["gfx803", "gfx", "gfx1", "sm_90", "gfx\u{e9}\u{e9}"] {
            assert!(!knows_unit(target), "{target}");
        }
    }
}
