//! The agents of the trace: GPUs, and CPUs that copies refer to.

use crate::gpu::description::AgentDescription;
use std::collections::HashSet;
use tracefile::format::RECORD_SIZE;

/// Identifies an agent in its GPU runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKey {
    /// The handle of HSA's agent.
    Hsa(u64),
    /// CUDA's number of the device.
    Cuda(u32),
}

/// An agent that was recorded. See [`AgentDescription`].
#[derive(Clone, Debug)]
pub struct Agent {
    pub key: AgentKey,
    pub index: u32,
    pub frequency: u64,
    pub target: String,
    pub is_gpu: bool,
}

#[derive(Default)]
pub struct Agents {
    all: Vec<Agent>,
    recorded: HashSet<[u8; RECORD_SIZE]>,
    /// Agents that are not recorded.
    unrecorded: Vec<AgentKey>,
}

impl Agents {
    /// An agent's number for [`Agents::get`]. `Some(None)`: it is not recorded. `None`: it was not added yet.
    pub fn find(&self, key: AgentKey) -> Option<Option<usize>> {
        let number = self.all.iter().position(|agent| agent.key == key);
        let is_known = number.is_some() || self.unrecorded.contains(&key);
        is_known.then_some(number)
    }

    pub fn add(&mut self, key: AgentKey, found: Option<AgentDescription>) -> Option<usize> {
        let Some(found) = found else {
            self.unrecorded.push(key);
            return None;
        };
        self.all.push(Agent {
            key,
            index: found.index,
            frequency: found.frequency,
            target: found.target,
            is_gpu: found.is_gpu,
        });
        Some(self.all.len() - 1)
    }

    /// Whether no agent with this record was added before.
    pub fn is_new(&mut self, record: [u8; RECORD_SIZE]) -> bool {
        self.recorded.insert(record)
    }

    pub fn has_index(&self, index: u32) -> bool {
        self.all.iter().any(|agent| agent.index == index)
    }

    /// An agent by its number.
    pub fn get(&self, number: usize) -> &Agent {
        &self.all[number]
    }

    pub fn forget_hsa(&mut self) {
        let is_hsa = |key| matches!(key, AgentKey::Hsa(_));
        self.all.retain(|agent| !is_hsa(agent.key));
        self.unrecorded.retain(|&key| !is_hsa(key));
    }
}
