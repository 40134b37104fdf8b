//! The agents of the trace: their records, and what other records need to know about them.

use super::file::TraceFile;
use crate::gpu::hsa::gpus;
use crate::support::diagnostics;
use hsa_abi::AgentHandle;
use std::collections::HashSet;
use tracefile::format::{self, Count, Record};

/// An agent that was recorded.
#[derive(Clone, Debug)]
pub struct Agent {
    pub handle: AgentHandle,
    /// Position in HSA's order of agents.
    pub index: u32,
    /// Ticks per second of its clock, 0 if unknown.
    pub frequency: u64,
    /// For example `gfx1100`.
    pub target: String,
    pub is_gpu: bool,
}

#[derive(Default)]
pub struct Agents {
    all: Vec<Agent>,
    recorded: HashSet<[u8; format::RECORD_SIZE]>,
    /// Agents that cannot be recorded, as was reported.
    unknown: Vec<AgentHandle>,
}

impl Agents {
    /// An agent's number for [`Agents::get`]. Records the agent at its first use. `None`: it is neither a GPU nor a
    /// CPU.
    pub fn find(&mut self, handle: AgentHandle, file: &mut TraceFile) -> Option<usize> {
        if let Some(number) = self.known(handle) {
            return Some(number);
        }
        if self.unknown.contains(&handle) {
            return None;
        }
        let described = match gpus::describe(handle) {
            Ok(Some(described)) => described,
            Ok(None) => {
                self.unknown.push(handle);
                return None;
            }
            Err(error) => {
                diagnostics::lost(format_args!(
                    "the trace does not include agent {:#x}: {error}",
                    handle.0
                ));
                self.unknown.push(handle);
                return None;
            }
        };
        self.all.push(Agent {
            handle,
            index: described.index,
            frequency: described.frequency,
            target: described.target.clone(),
            is_gpu: described.is_gpu,
        });
        let mut record = format::Agent::new(described.index.into(), 0);
        record.frequency = described.frequency.into();
        record.name = file.text(&described.target).into();
        if let Some(product) = &described.product {
            record.product = file.text(product).into();
        }
        record.node = described.node.into();
        record.compute_units = described.compute_units.into();
        record.what = match described.is_gpu {
            true => format::agent::GPU,
            false => format::agent::CPU,
        }
        .into();
        // After a shutdown and a new initialization, HSA has the same agents.
        if self.recorded.insert(record.seal()) {
            file.append(record, Count::DroppedOthers);
        }
        Some(self.all.len() - 1)
    }

    /// The number of an agent that was found before.
    pub fn known(&self, handle: AgentHandle) -> Option<usize> {
        self.all.iter().position(|agent| agent.handle == handle)
    }

    /// An agent by its number from [`Agents::find`].
    pub fn get(&self, number: usize) -> &Agent {
        &self.all[number]
    }

    /// HSA was shut down.
    pub fn release(&mut self) {
        self.all.clear();
        self.unknown.clear();
    }
}
