//! HSA as a trace sees it: its system clock, and the descriptions of its agents.

use super::api::{failed, loaded_api};
use super::query;
use super::tables::saved;
use crate::gpu::runtime::Error;
use crate::gpu::traced::{Agent, AgentKey, SystemClock, TracedRuntime};
use crate::support::diagnostics;
use crate::support::settings::settings;
use hsa_abi::*;

pub struct TracedHsa;

impl SystemClock for TracedHsa {
    /// `HSA_SYSTEM_INFO_TIMESTAMP`.
    fn time(&self) -> u64 {
        let mut ticks = 0u64;
        if let Some(saved) = saved() {
            // SAFETY: the attribute is a u64; a runtime that is not initialized does not write it.
            unsafe {
                (saved.core.hsa_system_get_info)(
                    HSA_SYSTEM_INFO_TIMESTAMP,
                    (&raw mut ticks).cast(),
                );
            }
        }
        ticks
    }

    fn frequency(&self) -> Result<u64, Error> {
        const CALL: &str = "hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)";
        let saved = saved().ok_or_else(|| failed(CALL, Status::NOT_INITIALIZED))?;
        // SAFETY: the attribute is a u64.
        let frequency = query::info(CALL, |to| unsafe {
            (saved.core.hsa_system_get_info)(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, to)
        })?;
        match frequency {
            0 => Err(failed(CALL, Status::ERROR)),
            frequency => Ok(frequency),
        }
    }
}

impl TracedRuntime for TracedHsa {
    fn agents(&self) -> Vec<AgentKey> {
        let all = loaded_api().and_then(query::all_agents).unwrap_or_default();
        all.iter().map(|agent| AgentKey::Hsa(agent.0)).collect()
    }

    /// HIP's devices are HSA's GPUs, in the same order, unless HIP_VISIBLE_DEVICES or else CUDA_VISIBLE_DEVICES selects
    /// some of them (HIP, rocdevice.cpp).
    fn numbered(&self, number: u64) -> Option<AgentKey> {
        let number = usize::try_from(number).ok()?;
        let number = match &settings().hip_devices {
            None => number,
            Some(list) => list.to_str()?.split(',').nth(number)?.trim().parse().ok()?,
        };
        Some(AgentKey::Hsa(gpus().get(number)?.0))
    }

    fn describe(&self, agent: AgentKey) -> Option<Agent> {
        let AgentKey::Hsa(handle) = agent else {
            return None;
        };
        describe(AgentHandle(handle)).unwrap_or_else(|error| {
            diagnostics::lost(format_args!(
                "the trace does not include agent {handle:#x}: {error}"
            ));
            None
        })
    }
}

/// The process's GPUs.
pub fn gpus() -> Vec<AgentHandle> {
    let agents = loaded_api().and_then(query::agents);
    agents.map_or(Vec::new(), |(agents, _)| {
        agents
            .gpus
            .iter()
            .map(|gpu| AgentHandle(gpu.id.hsa_handle()))
            .collect()
    })
}

fn describe(handle: AgentHandle) -> Result<Option<Agent>, Error> {
    let api = loaded_api()?;
    let all = query::all_agents(api)?;
    // It may be an argument of the program's copy, and invalid.
    let Some(index) = all.iter().position(|&other| other == handle) else {
        return Ok(None);
    };
    let device = query::device(api, handle)?;
    if !matches!(device, HSA_DEVICE_TYPE_GPU | HSA_DEVICE_TYPE_CPU) {
        return Ok(None);
    }
    let is_same_type =
        |&&other: &&AgentHandle| query::device(api, other).is_ok_and(|other| other == device);
    let number = all[..index].iter().filter(is_same_type).count();
    let read = |attribute, to| {
        // SAFETY: the attributes below are u32, a u64 that older runtimes do not support, and char[64].
        unsafe { (api.hsa_agent_get_info)(handle, attribute, to) }
    };
    let property = |attribute| query::info::<u32>("hsa_agent_get_info", |to| read(attribute, to));
    let frequency: Result<u64, _> = query::info("hsa_agent_get_info", |to| {
        read(HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, to)
    });
    let product: Result<[u8; 64], _> = query::info("hsa_agent_get_info", |to| {
        read(HSA_AMD_AGENT_INFO_PRODUCT_NAME, to)
    });
    let product = product.map(|product| query::string(&product).trim().to_owned());
    Ok(Some(Agent {
        is_gpu: device == HSA_DEVICE_TYPE_GPU,
        index: index as u32,
        number: number as u32,
        target: query::agent(api, handle)?.name,
        product: product.ok().filter(|product| !product.is_empty()),
        node: property(HSA_AGENT_INFO_NODE)?,
        compute_units: property(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)?,
        frequency: frequency.unwrap_or(0),
    }))
}
