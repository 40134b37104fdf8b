//! The descriptions of agents that a trace records.

use super::api::loaded_api;
use super::query;
use crate::gpu::runtime::Error;
use crate::gpu::traced::Agent;
use crate::support::settings::settings;
use hsa_abi::*;

/// The process's GPUs.
pub fn all() -> Vec<AgentHandle> {
    let agents = loaded_api().and_then(query::agents);
    agents.map_or(Vec::new(), |(agents, _)| {
        agents
            .gpus
            .iter()
            .map(|gpu| AgentHandle(gpu.id.hsa_handle()))
            .collect()
    })
}

/// The number of HSA's agents, 0 if HSA is not initialized.
pub fn count() -> u32 {
    let all = loaded_api().and_then(query::all_agents);
    all.map_or(0, |all| all.len() as u32)
}

/// An agent's index in HSA's list of all agents.
pub fn index(handle: AgentHandle) -> Option<u32> {
    let all = loaded_api().and_then(query::all_agents).ok()?;
    let index = all.iter().position(|&other| other == handle)?;
    Some(index as u32)
}

/// The index in HSA's list of all agents of HIP's device `number`. HIP's devices are HSA's GPUs, in the same order,
/// unless HIP_VISIBLE_DEVICES or else CUDA_VISIBLE_DEVICES selects some of them (HIP, rocdevice.cpp).
pub fn index_of_hip_device(number: u64) -> Option<u32> {
    let number = usize::try_from(number).ok()?;
    let number = match &settings().hip_devices {
        None => number,
        Some(list) => list.to_str()?.split(',').nth(number)?.trim().parse().ok()?,
    };
    index(*all().get(number)?)
}

/// The description of a GPU or a CPU; `None` for another agent.
pub fn describe(handle: AgentHandle) -> Result<Option<Agent>, Error> {
    let api = loaded_api()?;
    let all = query::all_agents(api)?;
    // It may be an argument of the program's copy, and invalid.
    let Some(index) = all.iter().position(|&other| other == handle) else {
        return Ok(None);
    };
    let is_gpu = match query::device(api, handle)? {
        HSA_DEVICE_TYPE_GPU => true,
        HSA_DEVICE_TYPE_CPU => false,
        _ => return Ok(None),
    };
    let read = |attribute, to| {
        // SAFETY: the attributes below are u32, a u64 that older runtimes do not support, and char[64].
        unsafe { (api.hsa_agent_get_info)(handle, attribute, to) }
    };
    let number = |attribute| query::info::<u32>("hsa_agent_get_info", |to| read(attribute, to));
    let frequency: Result<u64, _> = query::info("hsa_agent_get_info", |to| {
        read(HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, to)
    });
    let product: Result<[u8; 64], _> = query::info("hsa_agent_get_info", |to| {
        read(HSA_AMD_AGENT_INFO_PRODUCT_NAME, to)
    });
    let product = product.map(|product| query::string(&product).trim().to_owned());
    Ok(Some(Agent {
        is_gpu,
        index: index as u32,
        target: query::agent(api, handle)?.name,
        product: product.ok().filter(|product| !product.is_empty()),
        node: number(HSA_AGENT_INFO_NODE)?,
        compute_units: number(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)?,
        frequency: frequency.unwrap_or(0),
    }))
}
