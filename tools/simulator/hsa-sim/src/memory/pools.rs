//! Memory pools. Regions are the same pools under their older name.

use crate::device::agents::Agents;
use hsa_abi::*;

/// The size of each pool of the CPU's global memory, in bytes.
pub const POOL_BYTES: usize = 16 << 30;

/// The size of the pool of group memory, in bytes.
pub const GROUP_BYTES: usize = 64 << 10;

/// The handle of the first pool of agent 0.
const FIRST_POOL: u64 = 0x9001_0000;

/// A kind of pool.
pub struct PoolKind {
    pub segment: u32,
    pub flags: u32,
}

pub const FINE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;

pub const COARSE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;

const CPU_POOLS: &[PoolKind] = &[
    PoolKind {
        segment: HSA_AMD_SEGMENT_GLOBAL,
        flags: FINE,
    },
    PoolKind {
        segment: HSA_AMD_SEGMENT_GLOBAL,
        flags: FINE | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT,
    },
    PoolKind {
        segment: HSA_AMD_SEGMENT_GLOBAL,
        flags: COARSE,
    },
];

const GPU_POOLS: &[PoolKind] = &[
    PoolKind {
        segment: HSA_AMD_SEGMENT_GLOBAL,
        flags: COARSE,
    },
    PoolKind {
        segment: HSA_AMD_SEGMENT_GLOBAL,
        flags: HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED,
    },
    PoolKind {
        segment: HSA_AMD_SEGMENT_GROUP,
        flags: 0,
    },
];

fn pools_of(agent: usize) -> &'static [PoolKind] {
    if agent == 0 { CPU_POOLS } else { GPU_POOLS }
}

pub fn handles(agent: usize) -> Vec<PoolHandle> {
    (0..pools_of(agent).len())
        .map(|n| PoolHandle(FIRST_POOL + 16 * agent as u64 + n as u64))
        .collect()
}

/// The number of a pool's agent, and the kind of the pool.
pub fn pool(agents: &Agents, handle: PoolHandle) -> Option<(usize, &'static PoolKind)> {
    let number = handle.0.checked_sub(FIRST_POOL)?;
    let agent = usize::try_from(number / 16).ok()?;
    if agent >= agents.count() {
        return None;
    }
    Some((agent, pools_of(agent).get(number as usize % 16)?))
}
