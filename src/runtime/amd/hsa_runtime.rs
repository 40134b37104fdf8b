//! Implements [`Runtime`] for HSA.

use super::api::{self, Api, failed};
use super::staging::Staging;
use super::{device_memory, pools, query, wait};
use crate::gpu::runtime::*;
use crate::support::sync::{Busy, lock};
use crate::support::unlimited;
use hsa_abi::{AgentHandle, ExecutableHandle, Status};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ops::Range;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// HSA, and devprof's buffers and signals in it.
pub struct Hsa {
    pub api: &'static Api,
    agents: Mutex<PerAgent>,
}

#[derive(Default)]
struct PerAgent {
    /// The first CPU agent, after the agents were read. Pinned memory belongs to it.
    cpu: Option<AgentHandle>,
    staging: IdMap<AgentId, Staging>,
}

static HSA: OnceLock<Hsa> = OnceLock::new();

thread_local! {
    static IS_COPYING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread copies memory for devprof.
pub fn is_copying() -> bool {
    IS_COPYING.get()
}

/// HSA, if it was found before.
pub fn known() -> Option<&'static Hsa> {
    HSA.get()
}

/// HSA, if it is in this process. Searched for at each call until it is found.
pub fn find() -> Option<Result<&'static Hsa, Error>> {
    let api = match api::find()? {
        Ok(api) => api,
        Err(error) => return Some(Err(error)),
    };
    Some(Ok(HSA.get_or_init(|| Hsa {
        api,
        agents: Mutex::default(),
    })))
}

impl Hsa {
    /// As [`Api::hold`]. If another thread is initializing HSA, waits for it, for `limit` at most. `None` at the limit.
    pub fn hold_within(&'static self, limit: Duration) -> Option<Result<(), Error>> {
        match unlimited::call(|| self.api.hold()).recv_timeout(limit) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(failed("hsa_init", Status::ERROR))),
        }
    }

    /// In the child of a fork: forgets the parent's buffers and signals. If a thread that the child does not have holds the
    /// lock, the lock is held forever.
    pub fn forget_parent(&self) {
        if let Ok(mut agents) = self.agents.try_lock() {
            std::mem::forget(std::mem::take(&mut *agents));
        }
    }

    fn with_staging<T>(&self, agent: AgentId, work: impl FnOnce(&mut Staging) -> T) -> T {
        // `None`: a signal handler interrupted this thread while it copied.
        let _copying = Busy::begin(&IS_COPYING);
        let mut agents = lock(&self.agents);
        let PerAgent { cpu, staging } = &mut *agents;
        let staging = staging
            .entry(agent)
            .or_insert_with(|| Staging::new(self.api, AgentHandle(agent.hsa_handle()), *cpu));
        work(staging)
    }
}

fn handles(executable: ExecutableId, agent: AgentId) -> (ExecutableHandle, AgentHandle) {
    (
        ExecutableHandle(executable.hsa_handle()),
        AgentHandle(agent.hsa_handle()),
    )
}

impl Runtime for Hsa {
    fn name(&self) -> &'static str {
        "HSA"
    }

    fn agents(&self) -> Result<Agents, Error> {
        let (agents, cpu) = query::agents(self.api)?;
        lock(&self.agents).cpu = cpu;
        Ok(agents)
    }

    fn segments(&self) -> Result<Segments, Error> {
        query::segments(self.api)
    }

    fn with_segments(&self, work: &mut dyn FnMut(Segments)) -> Result<(), Error> {
        query::with_segments(self.api, work)
    }

    fn segments_of(&self, executable: ExecutableId) -> Result<Vec<Segment>, Error> {
        query::segments_of(self.api, ExecutableHandle(executable.hsa_handle()))
    }

    fn variables(
        &self,
        executable: ExecutableId,
        agent: AgentId,
        is_wanted: fn(&[u8]) -> bool,
    ) -> Result<Vec<Variable>, Error> {
        let (executable, agent) = handles(executable, agent);
        query::variables(self.api, executable, agent, is_wanted)
    }

    fn variable(
        &self,
        executable: ExecutableId,
        agent: AgentId,
        name: &CStr,
    ) -> Result<Option<Variable>, Error> {
        let (executable, agent) = handles(executable, agent);
        query::named_variable(self.api, executable, agent, name)
    }

    /// Device code uses the same addresses as copies.
    fn device_addresses(
        &self,
        _executable: ExecutableId,
        range: &Range<u64>,
    ) -> Result<Vec<(Range<u64>, u64)>, Error> {
        Ok(vec![(range.clone(), range.start)])
    }

    fn origin(&self, executable: ExecutableId, agent: AgentId) -> Option<String> {
        let (executable, agent) = handles(executable, agent);
        query::uri(self.api, executable, agent)
    }

    fn build_id(&self, _executable: ExecutableId) -> Option<[u8; 16]> {
        None
    }

    fn largest_piece(&self, agent: AgentId, total: usize) -> usize {
        self.with_staging(agent, |staging| staging.largest_piece(total))
    }

    fn read(
        &self,
        agent: AgentId,
        pieces: &[Range<u64>],
        limit: Duration,
        take: Take,
    ) -> Result<(), Error> {
        self.with_staging(agent, |staging| staging.copy(pieces, limit, take))
    }

    fn fill(
        &self,
        agent: AgentId,
        ranges: &[(Range<u64>, u8)],
        limit: Duration,
    ) -> Result<Vec<(usize, Error)>, Error> {
        self.with_staging(agent, |staging| staging.fill(ranges, limit))
    }

    fn write(
        &self,
        agent: AgentId,
        address: u64,
        bytes: &[u8],
        limit: Duration,
    ) -> Result<(), Error> {
        self.with_staging(agent, |staging| staging.write(address, bytes, limit))
    }

    fn units(&self, agent: &Agent) -> Result<Option<Units>, Error> {
        device_memory::units(self.api, AgentHandle(agent.id.hsa_handle()), &agent.name)
    }

    fn memory(&self, agent: &Agent) -> Memory {
        device_memory::memory(self.api, AgentHandle(agent.id.hsa_handle()))
    }

    fn allocate(
        &self,
        _executable: ExecutableId,
        agent: AgentId,
        size: usize,
    ) -> Result<u64, Error> {
        device_memory::allocate(self.api, AgentHandle(agent.hsa_handle()), size)
    }

    fn free(&self, address: u64) {
        pools::free(self.api, address as *mut c_void);
    }

    fn write_back(&self, agent: AgentId, limit: Duration) -> Result<bool, Error> {
        self.with_staging(agent, |staging| staging.write_back(limit))
    }

    fn wait(&self, all: bool, limit: Duration) -> Box<dyn Wait> {
        wait::begin(self.api, all, limit)
    }

    fn release(&self) {
        let staging = std::mem::take(&mut lock(&self.agents).staging);
        staging.into_values().for_each(Staging::release);
    }
}
