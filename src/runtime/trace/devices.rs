//! Finds the agents of the GPU runtimes, and records each of them at its first use.

use super::recorder::Recorder;
use crate::gpu::traced::{Agent, AgentKey};
use crate::support::diagnostics;
use std::sync::OnceLock;
use tracefile::format::NO_AGENT;

/// The index of CUDA's first device, after the first use of one: it follows HSA's agents, if HSA is initialized.
static CUDA_BASE: OnceLock<u32> = OnceLock::new();

/// The agent's number in the recorder. `None`: it is neither a GPU nor a CPU.
pub fn number(key: AgentKey, to: &mut Recorder) -> Option<usize> {
    if let Some(known) = to.agents.find(key) {
        return known;
    }
    let runtimes = to.runtimes;
    let base = match key {
        AgentKey::Hsa(_) => 0,
        AgentKey::Cuda(_) => *CUDA_BASE.get_or_init(|| runtimes.hsa.agents().len() as u32),
    };
    let found = runtimes.of(key).describe(key).map(|found| Agent {
        index: base + found.index,
        ..found
    });
    let found = found.filter(|found| match key {
        AgentKey::Hsa(handle) if to.agents.has_index(found.index) => {
            diagnostics::lost(format_args!(
                "the trace does not include agent {handle:#x}: HSA was initialized after CUDA, whose device {} has its number",
                found.index
            ));
            false
        }
        _ => true,
    });
    to.add_agent(key, found)
}

/// The agent's number if it is a GPU.
pub fn gpu(key: AgentKey, to: &mut Recorder) -> Option<usize> {
    number(key, to).filter(|&number| to.agents.get(number).is_gpu)
}

/// The index of an agent of HSA, which is not recorded.
pub fn hsa_index(agent: AgentKey, to: &Recorder) -> Option<u32> {
    let all = to.runtimes.hsa.agents();
    let index = all.iter().position(|&known| known == agent)?;
    Some(index as u32)
}

/// The agent's index in the trace, [`NO_AGENT`] without one.
pub fn index(key: AgentKey, to: &mut Recorder) -> u32 {
    number(key, to).map_or(NO_AGENT, |number| to.agents.get(number).index)
}
