//! Finds the agents of the GPU runtimes, and records each of them at its first use.

use super::recorder::{AgentKey, Recorder};
use crate::amd::gpus;
use crate::gpu::traced::Agent;
use crate::nvidia::devices;
use crate::support::diagnostics;
use hsa_abi::AgentHandle;
use std::sync::OnceLock;

/// The index of CUDA's first device, after the first use of one: it follows HSA's agents, if HSA is initialized.
static CUDA_BASE: OnceLock<u32> = OnceLock::new();

/// The number of HSA's agent. `None`: it is neither a GPU nor a CPU.
pub fn hsa(handle: AgentHandle, to: &mut Recorder) -> Option<usize> {
    let key = AgentKey::Hsa(handle.0);
    if let Some(known) = to.agents.find(key) {
        return known;
    }
    let found = match gpus::describe(handle) {
        Ok(Some(found)) if to.agents.has_index(found.index) => {
            diagnostics::lost(format_args!(
                "the trace does not include agent {:#x}: HSA was initialized after CUDA, whose device {} has its number",
                handle.0, found.index
            ));
            None
        }
        Ok(found) => found,
        Err(error) => {
            diagnostics::lost(format_args!(
                "the trace does not include agent {:#x}: {error}",
                handle.0
            ));
            None
        }
    };
    to.add_agent(key, found)
}

/// The number of HSA's agent if it is a GPU.
pub fn hsa_gpu(handle: AgentHandle, to: &mut Recorder) -> Option<usize> {
    hsa(handle, to).filter(|&number| to.agents.get(number).is_gpu)
}

/// The index of a CUDA device.
pub fn cuda_index(device: u32, to: &mut Recorder) -> u32 {
    let key = AgentKey::Cuda(device);
    let index = CUDA_BASE.get_or_init(gpus::count) + device;
    if to.agents.find(key).is_some() {
        return index;
    }
    let mut description = Agent {
        index,
        frequency: 1_000_000_000,
        node: device,
        is_gpu: true,
        ..Agent::default()
    };
    if let Err(error) = devices::describe(device, &mut description) {
        diagnostics::lost(format_args!(
            "the trace does not have the name of CUDA device {device}: {error}"
        ));
    }
    to.add_agent(key, Some(description));
    index
}
