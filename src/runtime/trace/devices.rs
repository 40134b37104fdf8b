//! Finds the agents of the GPU runtimes, and records each of them at its first use.

use super::recorder::{AgentDescription, AgentKey, Recorder};
use crate::amd::gpus;
use crate::nvidia::devices;
use crate::support::diagnostics;
use hsa_abi::AgentHandle;
use std::sync::OnceLock;

/// The index of CUDA's first device, after the first use of one: it follows HSA's agents, if HSA is initialized.
static CUDA_BASE: OnceLock<u32> = OnceLock::new();

/// The number of HSA's agent. `None`: it is neither a GPU nor a CPU.
pub fn hsa(handle: AgentHandle, to: &mut Recorder) -> Option<usize> {
    let key = AgentKey::Hsa(handle.0);
    if let Some(known) = to.find_agent(key) {
        return known;
    }
    let found = match gpus::describe(handle) {
        Ok(Some(found)) if to.has_agent_index(found.index) => {
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
    hsa(handle, to).filter(|&number| to.agent(number).is_gpu)
}

/// The index of a CUDA device.
pub fn cuda_index(device: u32, to: &mut Recorder) -> u32 {
    let key = AgentKey::Cuda(device);
    let index = CUDA_BASE.get_or_init(gpus::count) + device;
    if to.find_agent(key).is_some() {
        return index;
    }
    let found = match devices::describe(device) {
        Some(Ok(found)) => Some(found),
        Some(Err(error)) => {
            diagnostics::lost(format_args!(
                "the trace does not have the name of CUDA device {device}: {error}"
            ));
            None
        }
        None => None,
    };
    let (target, product, compute_units) = match found {
        Some(found) => (found.target, Some(found.product), found.compute_units),
        None => (String::new(), None, 0),
    };
    let description = AgentDescription {
        index,
        frequency: 1_000_000_000,
        target,
        product,
        node: device,
        compute_units,
        is_gpu: true,
    };
    to.add_agent(key, Some(description));
    index
}
