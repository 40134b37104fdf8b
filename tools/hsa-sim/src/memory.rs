//! Memory pools (regions are the same thing by their older name), allocations, and which agent may use them.
//!
//! GPU addresses are the process's. What an agent may use is what its GPU's registry knows: its own pools, and what
//! `hsa_amd_agents_allow_access`, a lock, or an allocation from a region gave it. A kernel that touches anything else
//! faults.

use crate::agent::{self, Agents};
use crate::device_memory::Mapping;
use crate::runtime::{State, put, status, with};
use crate::settings::Settings;
use hsa_abi::*;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ops::Range;

/// The size of every pool of global memory.
pub const POOL_BYTES: usize = 16 << 30;
const GROUP_BYTES: usize = 64 << 10;
/// The granule and alignment of allocations.
pub const PAGE: usize = 4096;

const POOLS: u64 = 0x9001_0000;

/// A kind of pool.
struct PoolKind {
    segment: u32,
    flags: u32,
}

const FINE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
const COARSE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;

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

fn handles(agent: usize) -> Vec<PoolHandle> {
    (0..pools_of(agent).len())
        .map(|n| PoolHandle(POOLS + 16 * agent as u64 + n as u64))
        .collect()
}

/// The agent's number and the pool's kind.
fn pool(agents: &Agents, handle: PoolHandle) -> Option<(usize, &'static PoolKind)> {
    let number = handle.0.checked_sub(POOLS)?;
    let agent = usize::try_from(number / 16).ok()?;
    if agent >= agents.count() {
        return None;
    }
    Some((agent, pools_of(agent).get(number as usize % 16)?))
}

/// What an allocation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From a pool or region.
    Pool,
    /// The program's own memory, locked.
    Locked,
    /// A loaded code object.
    Code,
    /// The runtime's own: rings, signals.
    Runtime,
}

type Callback = (DeallocationCallback, usize);

/// An allocation.
struct Allocation {
    size: usize,
    /// `None`: the program's own memory.
    mapping: Option<Mapping>,
    /// What the owner's kernels see, if its cache is not coherent.
    cached: Option<usize>,
    kind: Kind,
    /// The agent that the memory belongs to.
    owner: usize,
    flags: u32,
    /// The GPUs (by agent number) that may use it.
    users: Vec<usize>,
    user_data: usize,
    callbacks: Vec<Callback>,
}

/// All allocations of the process.
pub struct Memory {
    all: BTreeMap<usize, Allocation>,
    watch: bool,
    /// The host can use the addresses of GPUs' memory.
    large_bar: bool,
}

fn pages(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(PAGE)
}

impl Allocation {
    fn new(
        size: usize,
        mapping: Option<Mapping>,
        kind: Kind,
        owner: usize,
        flags: u32,
        users: Vec<usize>,
    ) -> Allocation {
        Allocation {
            size,
            mapping,
            cached: None,
            kind,
            owner,
            flags,
            users,
            user_data: 0,
            callbacks: Vec::new(),
        }
    }

    /// Where the bytes of an address inside are.
    fn host(&self, base: usize, address: usize) -> usize {
        let bytes = self.mapping.as_ref().map_or(base, Mapping::bytes);
        bytes + (address - base)
    }
}

impl Memory {
    /// Nothing is allocated.
    pub fn new(settings: &Settings) -> Memory {
        Memory {
            all: BTreeMap::new(),
            watch: settings.watch,
            large_bar: !settings.small_bar,
        }
    }

    /// Maps memory that `users` (GPUs by agent number) may use.
    pub fn allocate(
        &mut self,
        agents: &Agents,
        size: usize,
        kind: Kind,
        owner: usize,
        flags: u32,
        users: Vec<usize>,
    ) -> Option<usize> {
        let pages = pages(size)?;
        let mapping = if owner == 0 {
            Mapping::host(pages)?
        } else {
            Mapping::device(pages, self.large_bar)?
        };
        let base = mapping.address();
        let l2 = owner
            .checked_sub(1)
            .and_then(|n| agents.gpus[n].l2.as_ref());
        let cached = match l2.filter(|_| kind == Kind::Code || flags & COARSE != 0) {
            // SAFETY: `free` removes it before the mapping goes; copies and the host use it as the program sees fit.
            Some(l2) => Some(unsafe { l2.insert(base, mapping.bytes(), pages) }?),
            None => None,
        };
        let mut allocation = Allocation::new(size, Some(mapping), kind, owner, flags, users);
        allocation.cached = cached;
        self.add(agents, base, allocation);
        Some(base)
    }

    fn add(&mut self, agents: &Agents, base: usize, allocation: Allocation) {
        for &user in &allocation.users {
            show(agents, user, base, &allocation);
        }
        self.all.insert(base, allocation);
    }

    /// Takes an allocation of that kind away; the callbacks that want to know.
    pub fn free(&mut self, agents: &Agents, base: usize, kind: Kind) -> Option<Vec<Callback>> {
        if self.all.get(&base)?.kind != kind {
            return None;
        }
        let allocation = self.all.remove(&base)?;
        for &user in &allocation.users {
            hide(agents, user, base, &allocation);
        }
        if allocation.cached.is_some()
            && let Some(l2) = &agents.gpus[allocation.owner - 1].l2
        {
            l2.remove(base);
        }
        Some(allocation.callbacks)
    }

    /// After a code object is loaded: its kernels see it.
    pub fn invalidate(&self, agents: &Agents, base: usize) {
        let owner = self.all.get(&base).map_or(0, |allocation| allocation.owner);
        if let Some(l2) = owner
            .checked_sub(1)
            .and_then(|n| agents.gpus[n].l2.as_ref())
        {
            l2.invalidate_allocation(base);
        }
    }

    /// At shutdown, when no queue runs any more.
    pub fn free_all(&mut self) {
        self.all.clear();
    }

    /// Where the bytes of an address are in this process: there, unless it is an address of a GPU's memory that the host
    /// cannot use.
    pub fn host_address(&self, address: usize) -> usize {
        match self.around(address) {
            Some((base, allocation)) => allocation.host(base, address),
            None => address,
        }
    }

    fn around(&self, address: usize) -> Option<(usize, &Allocation)> {
        let (&base, allocation) = self.all.range(..=address).next_back()?;
        (address - base < allocation.size).then_some((base, allocation))
    }

    /// What is known of all of `range`: `None` if nothing is, an error if it is inside an allocation in part only.
    fn known(&self, range: &Range<usize>) -> Result<Option<&Allocation>, String> {
        let text = |range: &Range<usize>| format!("{:#x} to {:#x}", range.start, range.end);
        if let Some((base, allocation)) = self.around(range.start) {
            if range.end <= base + allocation.size {
                return Ok(Some(allocation));
            }
            let end = base + allocation.size;
            return Err(format!(
                "{} leaves the allocation at {}",
                text(range),
                text(&(base..end))
            ));
        }
        match self.all.range(range.clone()).next() {
            Some((&base, _)) => Err(format!(
                "{} runs into the allocation at {base:#x}",
                text(range)
            )),
            None => Ok(None),
        }
    }

    /// Checks a copy. What goes out of bounds here would be a memory fault of a GPU, or worse, so the caller ends the
    /// process with the text.
    pub fn check_copy(&self, to: Range<usize>, from: Range<usize>) -> Result<(), String> {
        let source = self
            .known(&from)
            .map_err(|what| format!("a copy's source {what}"))?;
        let target = self
            .known(&to)
            .map_err(|what| format!("a copy's target {what}"))?;
        let out = target.is_none_or(|target| target.owner == 0);
        let from_code = source.is_some_and(|source| source.kind == Kind::Code);
        if self.watch && out && !from_code {
            return Err(format!(
                "a copy to the host reads {:#x} to {:#x}, outside the loaded segments",
                from.start, from.end
            ));
        }
        Ok(())
    }

    /// Whether all of a range is inside one allocation.
    pub fn is_allocated(&self, range: &Range<usize>) -> bool {
        matches!(self.known(range), Ok(Some(_)))
    }

    /// The number of allocations that the program made.
    pub fn live(&self) -> u64 {
        let own = self.all.values().filter(|a| a.kind == Kind::Pool);
        own.count() as u64
    }
}

/// Bytes that GPUs can use of an allocation: whole pages, except of memory that the program has locked.
fn reach(allocation: &Allocation) -> u64 {
    match &allocation.mapping {
        Some(mapping) => mapping.size() as u64,
        None => allocation.size as u64,
    }
}

/// Makes an allocation known to a GPU.
fn show(agents: &Agents, user: usize, base: usize, allocation: &Allocation) {
    let memory = agents.gpus[user - 1].gpu.memory();
    let size = reach(allocation);
    // SAFETY: the mapping, and what is cached of it, stay until `free` has taken it from the registry; that no kernel uses it then is what HSA
    // asks of the program. It is only used through atomic accesses and copies of the program's own. A mapping with an
    // address of its own for the bytes has only whole pages.
    unsafe {
        match &allocation.mapping {
            Some(mapping) => {
                let cached = allocation.cached.filter(|_| user == allocation.owner);
                let bytes = cached.unwrap_or(mapping.bytes());
                memory.allocated_at(base as u64, size, bytes, true);
            }
            None => memory.allocated(base as u64, size, true),
        }
    }
}

/// Takes an allocation from a GPU.
fn hide(agents: &Agents, user: usize, base: usize, allocation: &Allocation) {
    let memory = agents.gpus[user - 1].gpu.memory();
    memory.freed(base as u64, reach(allocation));
}

/// Every GPU's number.
pub fn all_gpus(agents: &Agents) -> Vec<usize> {
    (1..agents.count()).collect()
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_agent_iterate_memory_pools(
    agent: AgentHandle,
    callback: PoolCallback,
    data: *mut c_void,
) -> Status {
    let pools = with(|state| state.agents.number(agent).map(handles));
    // SAFETY: the caller's promise.
    unsafe { agent::visit(pools, callback, data) }
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_agent_iterate_regions(
    agent: AgentHandle,
    callback: RegionCallback,
    data: *mut c_void,
) -> Status {
    let regions = with(|state| {
        let pools = state.agents.number(agent).map(handles)?;
        Ok(pools.into_iter().map(|pool| RegionHandle(pool.0)).collect())
    });
    // SAFETY: the caller's promise.
    unsafe { agent::visit(regions, callback, data) }
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_amd_memory_pool_get_info(
    handle: PoolHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let found = with(|state| pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL));
    let (agent, kind) = match found {
        Ok(found) => found,
        Err(status) => return status,
    };
    let global = kind.segment == HSA_AMD_SEGMENT_GLOBAL;
    let size = if global { POOL_BYTES } else { GROUP_BYTES };
    let granule = if global { PAGE } else { 0 };
    // SAFETY: the caller's promise: room for the attribute's type, which each line below has from the header.
    status(unsafe {
        match attribute {
            HSA_AMD_MEMORY_POOL_INFO_SEGMENT => put(value.cast(), kind.segment),
            HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS => put(value.cast(), kind.flags),
            HSA_AMD_MEMORY_POOL_INFO_SIZE => put(value.cast(), size),
            HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED => put(value.cast(), global),
            HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE
            | HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT
            | HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE => put(value.cast(), granule),
            HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL => put(value.cast(), agent == 0),
            HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE => put(value.cast(), size),
            HSA_AMD_MEMORY_POOL_INFO_LOCATION => put(
                value.cast(),
                if agent == 0 {
                    HSA_AMD_MEMORY_POOL_LOCATION_CPU
                } else {
                    HSA_AMD_MEMORY_POOL_LOCATION_GPU
                },
            ),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    })
}

/// See `hsa.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_region_get_info(
    region: RegionHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let region = PoolHandle(region.0);
    if let Err(status) = with(|state| pool(&state.agents, region).ok_or(Status::INVALID_REGION)) {
        return status;
    }
    let same = match attribute {
        HSA_REGION_INFO_SEGMENT => HSA_AMD_MEMORY_POOL_INFO_SEGMENT,
        HSA_REGION_INFO_GLOBAL_FLAGS => HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS,
        HSA_REGION_INFO_SIZE => HSA_AMD_MEMORY_POOL_INFO_SIZE,
        HSA_REGION_INFO_ALLOC_MAX_SIZE => HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE,
        HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED => HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
        HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE => HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE,
        HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT => HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT,
        HSA_AMD_REGION_INFO_HOST_ACCESSIBLE => {
            return status(
                with(|state| {
                    let owner = pool(&state.agents, region).map_or(0, |(owner, _)| owner);
                    Ok(owner == 0 || !state.settings.small_bar)
                })
                // SAFETY: the caller's promise.
                .and_then(|reached| unsafe { put(value.cast(), reached) }),
            );
        }
        _ => return Status::INVALID_ARGUMENT,
    };
    // SAFETY: the caller's promise.
    unsafe { hsa_amd_memory_pool_get_info(region, same, value) }
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_amd_agent_memory_pool_get_info(
    agent: AgentHandle,
    handle: PoolHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let found = with(|state| {
        let number = state.agents.number(agent)?;
        let (owner, kind) = pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL)?;
        // Without a large BAR the topology has no link from the CPU to the GPU's memory.
        let linked = number > 0 || !state.settings.small_bar;
        Ok((
            number,
            owner,
            linked && kind.segment == HSA_AMD_SEGMENT_GLOBAL,
        ))
    });
    let (number, owner, reachable) = match found {
        Ok(found) => found,
        Err(status) => return status,
    };
    let access = if number == owner {
        HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT
    } else if reachable {
        HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT
    } else {
        HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED
    };
    // SAFETY: the caller's promise: both attributes are 32-bit values.
    status(unsafe {
        match attribute {
            HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS => put(value.cast(), access),
            HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS => {
                put(value.cast(), u32::from(number != owner && reachable))
            }
            _ => Err(Status::INVALID_ARGUMENT),
        }
    })
}

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
    if kind.segment != HSA_AMD_SEGMENT_GLOBAL || size > POOL_BYTES {
        return Err(Status::INVALID_ALLOCATION);
    }
    let agents = &state.agents;
    state
        .memory
        .allocate(agents, size, Kind::Pool, owner, kind.flags, users)
        .ok_or(Status::OUT_OF_RESOURCES)
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// `base` may be written.
pub unsafe fn hsa_amd_memory_pool_allocate(
    handle: PoolHandle,
    size: usize,
    _flags: u32,
    base: *mut *mut c_void,
) -> Status {
    let allocated = with(|state| {
        let (owner, kind) = pool(&state.agents, handle).ok_or(Status::INVALID_MEMORY_POOL)?;
        if base.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let users = if owner == 0 { Vec::new() } else { vec![owner] };
        allocate_from(state, owner, kind, size, users)
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
    let told = callbacks.map(|callbacks| {
        for (callback, data) in callbacks {
            // SAFETY: registered by the program for this address.
            unsafe { callback(base, data as *mut c_void) };
        }
    });
    status(told)
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// Nothing uses the memory any more.
pub unsafe fn hsa_amd_memory_pool_free(base: *mut c_void) -> Status {
    free(base, Status::INVALID_ALLOCATION)
}

/// See `hsa.h`. Every agent may use the memory.
///
/// # Safety
/// `base` may be written.
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

/// See `hsa.h`.
///
/// # Safety
/// Nothing uses the memory any more.
pub unsafe fn hsa_memory_free(base: *mut c_void) -> Status {
    free(base, Status::INVALID_ALLOCATION)
}

/// See `hsa_ext_amd.h`. As in ROCr, the CPU may be in the list for memory that it cannot reach: that is no error, and it
/// changes nothing.
///
/// # Safety
/// `agents` has `count` handles.
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
        let base = base as usize;
        let allocation = memory
            .all
            .get_mut(&base)
            .filter(|allocation| allocation.kind == Kind::Pool)
            .ok_or(Status::INVALID_ALLOCATION)?;
        // The list is the whole list: whoever is not in it loses access, except the owner.
        users.extend(Some(allocation.owner).filter(|&owner| owner > 0));
        users.sort_unstable();
        users.dedup();
        for &user in &allocation.users {
            if !users.contains(&user) {
                hide(agents, user, base, allocation);
            }
        }
        for &user in &users {
            if !allocation.users.contains(&user) {
                show(agents, user, base, allocation);
            }
        }
        allocation.users = users;
        Ok(())
    }))
}

/// See `hsa.h`: registering is a hint, and pageable memory needs a lock to be used by a GPU here.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_memory_register(base: *mut c_void, size: usize) -> Status {
    if size == 0 && !base.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    status(with(|_| Ok(())))
}

/// See `hsa.h`.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_memory_deregister(_: *mut c_void, _: usize) -> Status {
    status(with(|_| Ok(())))
}

/// See `hsa.h`: all of a process's memory is one here, so ownership moves nothing.
///
/// # Safety
/// Always sound.
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

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
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
        match memory.known(&(start..end)) {
            Ok(None) => {}
            // Memory of a pool is locked by nature; memory that is locked already is not locked again here.
            Ok(Some(known)) if known.kind == Kind::Pool => return Ok(()),
            Ok(Some(_)) | Err(_) => return Err(Status::INVALID_ARGUMENT),
        }
        let allocation = Allocation::new(size, None, Kind::Locked, 0, FINE, users);
        memory.add(agents, start, allocation);
        Ok(())
    });
    // SAFETY: the caller's promise.
    status(locked.and_then(|()| unsafe { put(agent_base.cast(), base as usize) }))
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
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

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// No agent uses the memory any more.
pub unsafe fn hsa_amd_memory_unlock(base: *mut c_void) -> Status {
    status(with(|state| {
        let State { agents, memory, .. } = state;
        match memory.all.get(&(base as usize)).map(|a| a.kind) {
            Some(Kind::Pool) => Ok(()),
            _ => memory
                .free(agents, base as usize, Kind::Locked)
                .map(|_| ())
                .ok_or(Status::INVALID_ARGUMENT),
        }
    }))
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_pointer_info(
    address: *const c_void,
    info: *mut PointerInfo,
    alloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    count: *mut u32,
    agents: *mut *mut AgentHandle,
) -> Status {
    if info.is_null() || address.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    let found = with(|state| {
        Ok(state
            .memory
            .around(address as usize)
            .map(|(base, allocation)| {
                let kind = match allocation.kind {
                    Kind::Locked => HSA_EXT_POINTER_TYPE_LOCKED,
                    Kind::Pool | Kind::Code | Kind::Runtime => HSA_EXT_POINTER_TYPE_HSA,
                };
                let mut users: Vec<AgentHandle> =
                    allocation.users.iter().map(|&n| agent::handle(n)).collect();
                if allocation.owner == 0 && allocation.kind != Kind::Locked {
                    users.insert(0, agent::handle(0));
                }
                let info = PointerInfo {
                    size: size_of::<PointerInfo>() as u32,
                    kind,
                    agent_base: base as *mut c_void,
                    // ROCr gives the agent's address also where the host cannot use it.
                    host_base: base as *mut c_void,
                    bytes: allocation.size,
                    user_data: allocation.user_data as *mut c_void,
                    owner: agent::handle(allocation.owner),
                    global_flags: allocation.flags,
                    registered: true,
                };
                (info, users)
            }))
    });
    let (mut told, users) = match found {
        Err(status) => return status,
        Ok(Some(found)) => found,
        Ok(None) => (
            PointerInfo {
                size: size_of::<PointerInfo>() as u32,
                kind: HSA_EXT_POINTER_TYPE_UNKNOWN,
                agent_base: std::ptr::null_mut(),
                host_base: std::ptr::null_mut(),
                bytes: 0,
                user_data: std::ptr::null_mut(),
                owner: AgentHandle(0),
                global_flags: 0,
                registered: false,
            },
            Vec::new(),
        ),
    };
    // SAFETY: the caller's promise: `info` has the size that it says, and no more is written; `count` and `agents`
    // may be written if they are given, and `alloc` gives memory of the size asked for, or null.
    unsafe {
        let size = (*info).size.min(told.size);
        told.size = size;
        std::ptr::copy_nonoverlapping(
            (&raw const told).cast::<u8>(),
            info.cast::<u8>(),
            size as usize,
        );
        if let (Some(alloc), false, false) = (alloc, count.is_null(), agents.is_null()) {
            let list = alloc(users.len() * size_of::<AgentHandle>()).cast::<AgentHandle>();
            if list.is_null() {
                return Status::OUT_OF_RESOURCES;
            }
            std::ptr::copy_nonoverlapping(users.as_ptr(), list, users.len());
            *count = users.len() as u32;
            *agents = list;
        }
    }
    Status::SUCCESS
}

fn allocation(
    address: *const c_void,
    work: impl FnOnce(&mut Allocation) -> Result<(), Status>,
) -> Status {
    status(with(|state| {
        let (base, _) = state
            .memory
            .around(address as usize)
            .ok_or(Status::INVALID_ARGUMENT)?;
        match state.memory.all.get_mut(&base) {
            Some(allocation) => work(allocation),
            None => Err(Status::INVALID_ARGUMENT),
        }
    }))
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_amd_pointer_info_set_userdata(
    address: *const c_void,
    data: *mut c_void,
) -> Status {
    allocation(address, |allocation| {
        allocation.user_data = data as usize;
        Ok(())
    })
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_register_deallocation_callback(
    base: *mut c_void,
    callback: DeallocationCallback,
    data: *mut c_void,
) -> Status {
    allocation(base, |allocation| {
        allocation.callbacks.push((callback, data as usize));
        Ok(())
    })
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_amd_deregister_deallocation_callback(
    base: *mut c_void,
    callback: DeallocationCallback,
) -> Status {
    allocation(base, |allocation| {
        let before = allocation.callbacks.len();
        allocation
            .callbacks
            .retain(|(known, _)| *known as usize != callback as usize);
        if allocation.callbacks.len() < before {
            Ok(())
        } else {
            Err(Status::INVALID_ARGUMENT)
        }
    })
}
