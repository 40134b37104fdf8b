//! Copies of the counters. All waves of a GPU would add to the same few addresses, one after the other. So devprof's device
//! runtime adds to a copy that belongs to the wave's compute unit. The host allocates the copies when a code object is
//! loaded ([`set_up`]), and a drain adds them up ([`reading`]). Without copies, waves add to the counters themselves.

pub mod reading;
pub mod set_up;
pub mod span;

use super::discover::LoadedOn;
use crate::gpu::runtime::{AgentId, ExecutableId, IdMap, IdSet, Runtime};
use span::CounterCopies;

/// The copies of all loaded code objects.
#[derive(Default)]
pub struct Registry {
    of: IdMap<ExecutableId, IdMap<AgentId, CounterCopies>>,
    /// Bytes of all copies on each agent.
    used: IdMap<AgentId, u64>,
    /// Agents with which copying has failed. Their code objects get no copies any more.
    failing: IdSet<AgentId>,
}

impl Registry {
    pub fn get(&self, at: LoadedOn) -> Option<&CounterCopies> {
        self.of.get(&at.executable)?.get(&at.agent)
    }

    fn insert(&mut self, at: LoadedOn, copies: CounterCopies) {
        *self.used.entry(at.agent).or_default() += copies.layout.size();
        let of_executable = self.of.entry(at.executable).or_default();
        of_executable.insert(at.agent, copies);
    }

    /// Frees the copies of an executable that was destroyed. `runtime`: the runtime that had loaded it.
    pub fn free(&mut self, executable: ExecutableId, runtime: &dyn Runtime) {
        for (agent, copies) in self.of.remove(&executable).into_iter().flatten() {
            runtime.free(copies.memory);
            if let Some(used) = self.used.get_mut(&agent) {
                *used -= copies.layout.size();
            }
        }
    }
}
