//! The agents: one CPU, and any number of GPUs. Each GPU is a [`Gpu`] of the model, with its own memory.

use super::l2::L2;
use crate::settings::{Device, Settings};
use gpu_model::dispatch::Gpu;
use gpu_model::memory::Memory;
use hsa_abi::{AgentHandle, Status};
use std::sync::Arc;

/// The handle of agent 0.
const FIRST_AGENT: u64 = 0xa6e0_0000;

/// A GPU agent.
pub struct GpuAgent {
    pub device: Device,
    pub gpu: Arc<Gpu>,
    /// `None`: its memory is coherent.
    pub l2: Option<Arc<L2>>,
}

/// All agents. Number 0 is the CPU, the GPUs follow.
pub struct Agents {
    pub gpus: Vec<GpuAgent>,
}

impl Agents {
    /// The agents of the settings.
    pub fn new(settings: &Settings) -> Agents {
        let gpus = settings.gpus.iter().map(|&device| GpuAgent {
            device,
            // The GPU uses the addresses of the process.
            gpu: Arc::new(
                Gpu::new(Memory::new(0))
                    .with_architecture(device.target.architecture())
                    .with_units(device.units),
            ),
            l2: settings.write_back.then(Arc::default),
        });
        Agents {
            gpus: gpus.collect(),
        }
    }

    /// The number of agents.
    pub fn count(&self) -> usize {
        self.gpus.len() + 1
    }

    /// An agent's number.
    pub fn number(&self, handle: AgentHandle) -> Result<usize, Status> {
        let number = handle.0.wrapping_sub(FIRST_AGENT);
        if number < self.count() as u64 {
            Ok(number as usize)
        } else {
            Err(Status::INVALID_AGENT)
        }
    }

    /// The cache of the GPU that copies between agents, by their numbers: the first one that is not the CPU.
    pub fn cache(&self, agents: &[usize]) -> Option<Arc<L2>> {
        let gpu = agents.iter().find(|&&agent| agent > 0)?;
        self.gpus.get(gpu - 1)?.l2.clone()
    }

    /// The agent numbers of all GPUs.
    pub fn all_gpus(&self) -> Vec<usize> {
        (1..self.count()).collect()
    }

    /// The numbers of the GPUs in a list of agents. CPUs are ignored.
    pub fn gpus_in(&self, agents: &[AgentHandle]) -> Result<Vec<usize>, Status> {
        let numbers = agents.iter().map(|&agent| self.number(agent));
        let mut numbers: Vec<usize> = numbers.collect::<Result<_, _>>()?;
        numbers.retain(|&number| number > 0);
        Ok(numbers)
    }

    /// The GPU that a handle names.
    pub fn gpu(&self, handle: AgentHandle) -> Result<(usize, &GpuAgent), Status> {
        match self.number(handle)? {
            0 => Err(Status::INVALID_AGENT),
            number => Ok((number, &self.gpus[number - 1])),
        }
    }
}

/// The handle of the agent with this number.
pub fn handle(number: usize) -> AgentHandle {
    AgentHandle(FIRST_AGENT + number as u64)
}
