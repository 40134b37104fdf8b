//! The agents of the trace: GPUs, and CPUs that copies refer to.

use crate::gpu::traced::{Agent, AgentKey};
use std::collections::HashSet;
use tracefile::format::RECORD_SIZE;

#[derive(Default)]
pub struct Agents {
    all: Vec<(AgentKey, Agent)>,
    recorded: HashSet<[u8; RECORD_SIZE]>,
    /// Agents that are not recorded.
    unrecorded: Vec<AgentKey>,
}

impl Agents {
    /// An agent's number for [`Agents::get`]. `Some(None)`: it is not recorded. `None`: it was not added yet.
    pub fn find(&self, key: AgentKey) -> Option<Option<usize>> {
        let number = self.all.iter().position(|(known, _)| *known == key);
        let is_known = number.is_some() || self.unrecorded.contains(&key);
        is_known.then_some(number)
    }

    pub fn add(&mut self, key: AgentKey, found: Option<Agent>) -> Option<usize> {
        let Some(found) = found else {
            self.unrecorded.push(key);
            return None;
        };
        self.all.push((key, found));
        Some(self.all.len() - 1)
    }

    /// Whether no agent with this record was added before.
    pub fn is_new(&mut self, record: [u8; RECORD_SIZE]) -> bool {
        self.recorded.insert(record)
    }

    pub fn has_index(&self, index: u32) -> bool {
        self.all.iter().any(|(_, agent)| agent.index == index)
    }

    /// An agent by its number.
    pub fn get(&self, number: usize) -> &Agent {
        &self.all[number].1
    }

    pub fn key(&self, number: usize) -> AgentKey {
        self.all[number].0
    }

    pub fn forget_hsa(&mut self) {
        let is_hsa = |key| matches!(key, AgentKey::Hsa(_));
        self.all.retain(|&(key, _)| !is_hsa(key));
        self.unrecorded.retain(|&key| !is_hsa(key));
    }
}
