//! Allocations, and which agents may use them.
//!
//! GPUs use the addresses of this process. Each GPU has a registry of the allocations that its kernels can access: memory of
//! its own pools, and memory that `hsa_amd_agents_allow_access`, a lock or an allocation from a region has made accessible.
//! An access to other memory is a fault.

use super::pools::{COARSE, FINE, POOL_BYTES};
use crate::device::agents::Agents;
use crate::device::mapping::{Mapping, PAGE};
use crate::device::shared_file::{Location, SharedFile};
use crate::settings::Settings;
use hsa_abi::{DeallocationCallback, Status};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// The purpose of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program has allocated it from a pool or region.
    Pool,
    /// Another process has allocated it, and this one has attached it.
    Attached,
    /// The program's own memory, which it has locked.
    Locked,
    /// A loaded code object.
    Code,
    /// The runtime's own memory, such as rings and signals.
    Runtime,
}

pub type Callback = (DeallocationCallback, usize);

/// An allocation.
pub struct Allocation {
    pub size: usize,
    /// `None`: it is the program's own memory.
    mapping: Option<Mapping>,
    /// If the owner's cache is not coherent: the address of the bytes that its kernels access.
    cached: Option<usize>,
    pub kind: Kind,
    /// The number of the agent whose memory it is.
    pub owner: usize,
    pub flags: u32,
    /// The agent numbers of the GPUs that may use it.
    pub users: Vec<usize>,
    /// How often the program has locked its own memory.
    locks: u32,
    pub user_data: usize,
    pub callbacks: Vec<Callback>,
}

/// All allocations of the process.
pub struct Memory {
    all: BTreeMap<usize, Allocation>,
    /// The bytes that are allocated of each GPU, by its agent number.
    used: HashMap<usize, usize>,
    /// The size of each GPU's memory, bytes.
    gpu_size: usize,
    watch: bool,
    /// The host can access the memory of GPUs.
    large_bar: bool,
    /// The file with the memory of GPUs. `None`: it is not made yet, or cannot be made.
    file: Option<SharedFile>,
    pub agents: Arc<Agents>,
}

/// The data with which another process attaches memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    pub location: Location,
    /// Bytes, a multiple of a page.
    pub size: usize,
    /// The number of the agent whose memory it is.
    pub owner: usize,
    pub flags: u32,
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
            locks: 1,
            user_data: 0,
            callbacks: Vec::new(),
        }
    }

    /// The bytes of its owner's memory that were allocated for it.
    fn allocated(&self) -> usize {
        match &self.mapping {
            Some(mapping) if self.kind != Kind::Attached => mapping.size(),
            _ => 0,
        }
    }

    /// The address at which the simulator accesses the bytes of an address in the allocation.
    fn host(&self, base: usize, address: usize) -> usize {
        let bytes = self.mapping.as_ref().map_or(base, Mapping::bytes);
        bytes + (address - base)
    }
}

impl Memory {
    /// Returns a `Memory` without allocations.
    pub fn new(settings: &Settings, agents: Arc<Agents>) -> Memory {
        Memory {
            agents,
            all: BTreeMap::new(),
            used: HashMap::new(),
            gpu_size: settings.memory,
            watch: settings.watch,
            large_bar: !settings.small_bar,
            file: None,
        }
    }

    /// Allocates memory of the agent `owner` that the GPUs `users` (agent numbers) may use. Returns its address.
    pub fn allocate(
        &mut self,
        size: usize,
        kind: Kind,
        owner: usize,
        flags: u32,
        users: Vec<usize>,
    ) -> Option<usize> {
        let pages = pages(size)?;
        if owner > 0 && pages > self.available(owner) {
            return None;
        }
        let mapping = if owner == 0 {
            Mapping::host(pages)?
        } else if kind == Kind::Pool {
            self.shared(pages)?
        } else {
            Mapping::device(pages, self.large_bar)?
        };
        self.add_mapping(size, mapping, kind, owner, flags, users)
    }

    /// The size of a pool of an agent, bytes.
    pub fn pool_size(&self, agent: usize) -> usize {
        if agent == 0 {
            POOL_BYTES
        } else {
            self.gpu_size
        }
    }

    /// The bytes of a GPU's memory that are not allocated.
    pub fn available(&self, agent: usize) -> usize {
        let used = self.used.get(&agent).copied().unwrap_or(0);
        self.gpu_size.saturating_sub(used)
    }

    /// The owner's cache does not contain the allocation at `base`.
    pub fn bypass_cache(&mut self, base: usize) {
        if let Some(allocation) = self.all.get_mut(&base)
            && allocation.cached.is_some()
        {
            for &user in &allocation.users {
                revoke(&self.agents, user, base, allocation);
            }
            allocation.cached = None;
            for &user in &allocation.users {
                grant(&self.agents, user, base, allocation);
            }
            if let Some(l2) = &self.agents.gpus[allocation.owner - 1].l2 {
                l2.remove(base);
            }
        }
    }

    /// Memory of a GPU that other processes can attach, if possible.
    fn shared(&mut self, pages: usize) -> Option<Mapping> {
        // As in a forked child, or after the program has closed all files.
        if !self.file.as_ref().is_some_and(SharedFile::is_usable) {
            self.file = SharedFile::new();
        }
        match &mut self.file {
            Some(file) => Mapping::shared(file, pages, self.large_bar),
            None => Mapping::device(pages, self.large_bar),
        }
    }

    /// The data with which another process attaches the allocation at `base`, of `size` bytes. An error if this is not the memory of
    /// a GPU, or not its complete size.
    pub fn export(&self, base: usize, size: usize) -> Result<Exported, String> {
        let allocation = self.all.get(&base);
        let mapping = allocation.and_then(|allocation| allocation.mapping.as_ref());
        let (Some(allocation), Some(mapping)) = (allocation, mapping) else {
            return Err(format!("no allocation starts at {base:#x}"));
        };
        if allocation.kind != Kind::Pool || allocation.owner == 0 {
            return Err(format!("{base:#x} is not memory of a GPU"));
        }
        if pages(size) != Some(mapping.size()) {
            let actual = allocation.size;
            return Err(format!("{base:#x} has {actual} bytes, not {size}"));
        }
        let location = mapping.location().ok_or(
            "the memory is not in a file, because of RLIMIT_FSIZE or the number of open files",
        )?;
        Ok(Exported {
            location,
            size: mapping.size(),
            owner: allocation.owner,
            flags: allocation.flags,
        })
    }

    /// Attaches memory of another process, for the GPUs `users` (agent numbers). Returns its address.
    pub fn attach(&mut self, from: &Exported, users: Vec<usize>) -> Option<usize> {
        let mapping = Mapping::attached(from.location, from.size, self.large_bar)?;
        let (kind, owner, flags) = (Kind::Attached, from.owner, from.flags);
        self.add_mapping(from.size, mapping, kind, owner, flags, users)
    }

    fn add_mapping(
        &mut self,
        size: usize,
        mapping: Mapping,
        kind: Kind,
        owner: usize,
        flags: u32,
        users: Vec<usize>,
    ) -> Option<usize> {
        let (base, pages) = (mapping.address(), mapping.size());
        let l2 = self.agents.cache(&[owner]);
        let cached = match l2.filter(|_| kind == Kind::Code || flags & COARSE != 0) {
            // SAFETY: `free` removes it before it unmaps the memory. The program is responsible for races of copies and of
            // the host.
            Some(l2) => Some(unsafe { l2.insert(base, mapping.bytes(), pages) }?),
            None => None,
        };
        let mut allocation = Allocation::new(size, Some(mapping), kind, owner, flags, users);
        allocation.cached = cached;
        self.add(base, allocation);
        Some(base)
    }

    fn add(&mut self, base: usize, allocation: Allocation) {
        for &user in &allocation.users {
            grant(&self.agents, user, base, &allocation);
        }
        *self.used.entry(allocation.owner).or_default() += allocation.allocated();
        self.all.insert(base, allocation);
    }

    /// Frees the allocation at `base` if it is of this kind. Returns the program's deallocation callbacks.
    pub fn free(&mut self, base: usize, kind: Kind) -> Option<Vec<Callback>> {
        if self.all.get(&base)?.kind != kind {
            return None;
        }
        let allocation = self.all.remove(&base)?;
        if let Some(used) = self.used.get_mut(&allocation.owner) {
            *used -= allocation.allocated();
        }
        for &user in &allocation.users {
            revoke(&self.agents, user, base, &allocation);
        }
        if allocation.cached.is_some()
            && let Some(l2) = &self.agents.gpus[allocation.owner - 1].l2
        {
            l2.remove(base);
        }
        Some(allocation.callbacks)
    }

    /// After a code object was written to memory: removes stale bytes from the cache of its agent.
    pub fn invalidate(&self, base: usize) {
        let owner = self.all.get(&base).map_or(0, |allocation| allocation.owner);
        if let Some(l2) = self.agents.cache(&[owner]) {
            l2.invalidate_allocation(base);
        }
    }

    /// The address at which the simulator accesses the bytes of `address`. It differs for a GPU's memory that the host
    /// cannot access.
    pub fn host_address(&self, address: usize) -> usize {
        match self.containing(address) {
            Some((base, allocation)) => allocation.host(base, address),
            None => address,
        }
    }

    pub fn containing(&self, address: usize) -> Option<(usize, &Allocation)> {
        let (&base, allocation) = self.all.range(..=address).next_back()?;
        (address - base < allocation.size).then_some((base, allocation))
    }

    /// The allocation that contains an address.
    pub fn containing_mut(&mut self, address: usize) -> Option<&mut Allocation> {
        let (base, _) = self.containing(address)?;
        self.all.get_mut(&base)
    }

    /// The purpose of the allocation at `base`.
    pub fn kind(&self, base: usize) -> Option<Kind> {
        self.all.get(&base).map(|allocation| allocation.kind)
    }

    /// Gives exactly the GPUs `users` (agent numbers) and the owner access to an allocation from a pool.
    pub fn allow_access(&mut self, base: usize, mut users: Vec<usize>) -> Option<()> {
        let allocation = self
            .all
            .get_mut(&base)
            .filter(|allocation| matches!(allocation.kind, Kind::Pool | Kind::Attached))?;
        users.extend(Some(allocation.owner).filter(|&owner| owner > 0));
        users.sort_unstable();
        users.dedup();
        for &user in &allocation.users {
            if !users.contains(&user) {
                revoke(&self.agents, user, base, allocation);
            }
        }
        for &user in &users {
            if !allocation.users.contains(&user) {
                grant(&self.agents, user, base, allocation);
            }
        }
        allocation.users = users;
        Some(())
    }

    /// Locks the program's own memory for the GPUs `users` (agent numbers). Memory of a pool is always locked. The same range
    /// can be locked several times, and GPUs keep their access until it is unlocked as often. A part of locked memory, or
    /// more than it, is an error.
    pub fn lock(&mut self, range: Range<usize>, users: Vec<usize>) -> Result<(), Status> {
        match self.of_range(&range) {
            Ok(None) => {}
            Ok(Some(known)) if matches!(known.kind, Kind::Pool | Kind::Attached) => return Ok(()),
            Ok(Some(known)) if known.kind == Kind::Locked && known.size == range.len() => {
                let base = range.start;
                let allocation = self.all.get_mut(&base).ok_or(Status::INVALID_ARGUMENT)?;
                allocation.locks += 1;
                for user in users {
                    if !allocation.users.contains(&user) {
                        grant(&self.agents, user, base, allocation);
                        allocation.users.push(user);
                    }
                }
                return Ok(());
            }
            Ok(Some(_)) | Err(_) => return Err(Status::INVALID_ARGUMENT),
        }
        let allocation = Allocation::new(range.len(), None, Kind::Locked, 0, FINE, users);
        self.add(range.start, allocation);
        Ok(())
    }

    /// Unlocks the program's own memory. `None`: no lock starts at `base`.
    pub fn unlock(&mut self, base: usize) -> Option<()> {
        let allocation = self.all.get_mut(&base)?;
        if allocation.kind == Kind::Locked && allocation.locks > 1 {
            allocation.locks -= 1;
            return Some(());
        }
        self.free(base, Kind::Locked).map(|_| ())
    }

    /// The allocation that contains `range`. `None`: the range overlaps no allocation. An error if only a part of the range is
    /// allocated, or if it spans several allocations.
    fn of_range(&self, range: &Range<usize>) -> Result<Option<&Allocation>, String> {
        let text = |range: &Range<usize>| format!("{:#x} to {:#x}", range.start, range.end);
        if let Some((base, allocation)) = self.containing(range.start) {
            if range.end <= base + allocation.size {
                return Ok(Some(allocation));
            }
            let end = base + allocation.size;
            return Err(format!(
                "{} extends beyond the allocation at {}",
                text(range),
                text(&(base..end))
            ));
        }
        match self.all.range(range.clone()).next() {
            Some((&base, _)) => Err(format!(
                "{} overlaps the allocation at {base:#x}",
                text(range)
            )),
            None => Ok(None),
        }
    }

    /// Checks a copy. On hardware, an out-of-bounds copy is a memory fault or corrupts memory, so the caller has to print the
    /// error and end the process.
    pub fn check_copy(&self, to: Range<usize>, from: Range<usize>) -> Result<(), String> {
        let source = self
            .of_range(&from)
            .map_err(|what| format!("a copy's source {what}"))?;
        let target = self
            .of_range(&to)
            .map_err(|what| format!("a copy's target {what}"))?;
        let out = target.is_none_or(|target| target.owner == 0);
        let from_device = source.is_some_and(|source| match source.kind {
            Kind::Code => true,
            Kind::Pool | Kind::Attached => source.owner > 0,
            Kind::Locked | Kind::Runtime => false,
        });
        let within_one = source
            .zip(target)
            .is_some_and(|(source, target)| std::ptr::eq(source, target));
        if self.watch && out && !from_device && !within_one {
            return Err(format!(
                "a copy to the host reads {:#x} to {:#x}, outside the loaded segments and what was allocated on a GPU",
                from.start, from.end
            ));
        }
        Ok(())
    }

    /// Whether one allocation contains a range.
    pub fn is_allocated(&self, range: &Range<usize>) -> bool {
        matches!(self.of_range(range), Ok(Some(_)))
    }

    /// The number of allocations from pools.
    pub fn live(&self) -> u64 {
        let own = self.all.values().filter(|a| a.kind == Kind::Pool);
        own.count() as u64
    }
}

/// The bytes that GPUs can access. A multiple of a page, except for memory that the program has locked.
fn accessible_bytes(allocation: &Allocation) -> u64 {
    match &allocation.mapping {
        Some(mapping) => mapping.size() as u64,
        None => allocation.size as u64,
    }
}

/// Gives a GPU access to an allocation.
fn grant(agents: &Agents, user: usize, base: usize, allocation: &Allocation) {
    let memory = agents.gpus[user - 1].gpu.memory();
    let size = accessible_bytes(allocation);
    // SAFETY: the mapping and its cached bytes live until `free` has removed the allocation from the registry. HSA requires
    // that no kernel uses it then. Accesses are atomic, or copies of the program. The size of a mapping with two addresses is
    // a multiple of a page.
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

/// Revokes a GPU's access to an allocation.
fn revoke(agents: &Agents, user: usize, base: usize, allocation: &Allocation) {
    let memory = agents.gpus[user - 1].gpu.memory();
    memory.freed(base as u64, accessible_bytes(allocation));
}
