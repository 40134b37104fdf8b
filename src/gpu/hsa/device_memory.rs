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

/// The compute units of a GPU, by its target's name.
pub fn units(api: &Api, gpu: AgentHandle, target: &str) -> Result<Option<Units>, Error> {
    let Some(number) = unit_number(target) else {
        return Ok(None);
    };
    Ok(Some(Units {
        count: query::compute_units(api, gpu)?,
        number,
        are_consecutive: false,
    }))
}

/// Which hardware registers have the number of a compute unit: 1 is HW_ID, 2 is HW_ID and XCC_ID, 3 is HW_ID1.
fn unit_number(target: &str) -> Option<u32> {
    // The last two digits are the minor version and the stepping.
    let version = target.strip_prefix("gfx")?;
    let (major, minor) = version.split_at_checked(version.len().checked_sub(2)?)?;
    match major.parse::<u32>().ok()? {
        9 if minor.starts_with(['4', '5']) => Some(2),
        9 => Some(1),
        10.. => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_register_with_the_units_number_depends_on_the_target() {
        for (target, number) in [
            ("gfx803", None),
            ("gfx900", Some(1)),
            ("gfx90a", Some(1)),
            ("gfx90c", Some(1)),
            ("gfx942", Some(2)),
            ("gfx950", Some(2)),
            ("gfx1030", Some(3)),
            ("gfx1100", Some(3)),
            ("gfx1201", Some(3)),
            ("gfx1250", Some(3)),
            ("gfx", None),
            ("gfx1", None),
            ("sm_90", None),
            ("gfx\u{e9}\u{e9}", None),
        ] {
            assert_eq!(unit_number(target), number, "{target}");
        }
    }
}
