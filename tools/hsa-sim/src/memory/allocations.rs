//! Allocations, and which agents may use them.
//!
//! The addresses of GPUs' memory are addresses of this process. An agent may use what its GPU's registry has: its own pools'
//! memory, and memory to which `hsa_amd_agents_allow_access`, a lock, or an allocation from a region gave it access. A
//! kernel that accesses anything else faults.

use super::pools::{COARSE, FINE};
use crate::device::agents::Agents;
use crate::device::mapping::{Mapping, PAGE};
use crate::settings::Settings;
use hsa_abi::{DeallocationCallback, Status};
use std::collections::BTreeMap;
use std::ops::Range;

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

pub type Callback = (DeallocationCallback, usize);

/// An allocation.
pub struct Allocation {
    pub size: usize,
    /// `None`: the program's own memory.
    mapping: Option<Mapping>,
    /// What the owner's kernels see, if its cache is not coherent.
    cached: Option<usize>,
    pub kind: Kind,
    /// The agent that the memory belongs to.
    pub owner: usize,
    pub flags: u32,
    /// The GPUs (by agent number) that may use it.
    pub users: Vec<usize>,
    pub user_data: usize,
    pub callbacks: Vec<Callback>,
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

    pub fn around(&self, address: usize) -> Option<(usize, &Allocation)> {
        let (&base, allocation) = self.all.range(..=address).next_back()?;
        (address - base < allocation.size).then_some((base, allocation))
    }

    /// The allocation that an address is in.
    pub fn around_mut(&mut self, address: usize) -> Option<&mut Allocation> {
        let (base, _) = self.around(address)?;
        self.all.get_mut(&base)
    }

    /// What the allocation at `base` is for.
    pub fn kind(&self, base: usize) -> Option<Kind> {
        self.all.get(&base).map(|allocation| allocation.kind)
    }

    /// Lets exactly `users` (GPUs by agent number) and the owner use an allocation from a pool.
    pub fn allow_access(
        &mut self,
        agents: &Agents,
        base: usize,
        mut users: Vec<usize>,
    ) -> Option<()> {
        let allocation = self
            .all
            .get_mut(&base)
            .filter(|allocation| allocation.kind == Kind::Pool)?;
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
        Some(())
    }

    /// Locks the program's own memory for `users` (GPUs by agent number). Memory of a pool is locked by nature; memory that
    /// is locked already is not locked again.
    pub fn lock(
        &mut self,
        agents: &Agents,
        range: Range<usize>,
        users: Vec<usize>,
    ) -> Result<(), Status> {
        match self.known(&range) {
            Ok(None) => {}
            Ok(Some(known)) if known.kind == Kind::Pool => return Ok(()),
            Ok(Some(_)) | Err(_) => return Err(Status::INVALID_ARGUMENT),
        }
        let allocation = Allocation::new(range.len(), None, Kind::Locked, 0, FINE, users);
        self.add(agents, range.start, allocation);
        Ok(())
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
