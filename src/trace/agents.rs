//! The agents of the trace: their records, and what other records need to know about them.

use super::file::TraceFile;
use crate::amd::gpus;
use crate::nvidia::devices;
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

/// The handle of a CUDA device contains this bit and its number. HSA's handles are addresses of user space.
const CUDA: u64 = 1 << 63;

#[derive(Default)]
pub struct Agents {
    all: Vec<Agent>,
    recorded: HashSet<[u8; format::RECORD_SIZE]>,
    /// Agents that cannot be recorded, as was reported.
    unknown: Vec<AgentHandle>,
    /// The index of CUDA's first device, after the first use of one.
    cuda_base: Option<u32>,
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
        if self.all.iter().any(|agent| agent.index == described.index) {
            diagnostics::lost(format_args!(
                "the trace does not include agent {:#x}: HSA was initialized after CUDA, whose device {} has its number",
                handle.0, described.index
            ));
            self.unknown.push(handle);
            return None;
        }
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

    /// The number of a CUDA device. Records it at its first use. Its index follows those of HSA's agents, if HSA is
    /// initialized.
    pub fn find_cuda(&mut self, device: u32, file: &mut TraceFile) -> usize {
        let handle = AgentHandle(CUDA | u64::from(device));
        if let Some(number) = self.known(handle) {
            return number;
        }
        let described = match devices::describe(device) {
            Some(Ok(described)) => Some(described),
            Some(Err(error)) => {
                diagnostics::lost(format_args!(
                    "the trace does not have the name of CUDA device {device}: {error}"
                ));
                None
            }
            None => None,
        };
        let index = *self.cuda_base.get_or_insert_with(gpus::count) + device;
        let target = described.as_ref().map_or("", |found| &found.target);
        let mut record = format::Agent::new(index.into(), 0);
        record.frequency = 1_000_000_000.into();
        record.name = file.text(target).into();
        if let Some(described) = &described {
            record.product = file.text(&described.product).into();
            record.compute_units = described.compute_units.into();
        }
        record.node = device.into();
        record.what = format::agent::GPU.into();
        if self.recorded.insert(record.seal()) {
            file.append(record, Count::DroppedOthers);
        }
        self.all.push(Agent {
            handle,
            index,
            frequency: 1_000_000_000,
            target: target.to_owned(),
            is_gpu: true,
        });
        self.all.len() - 1
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
        self.all.retain(|agent| agent.handle.0 & CUDA != 0);
        self.unknown.clear();
    }
}
