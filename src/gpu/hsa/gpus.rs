//! What a trace says of GPUs and of the kernels that are loaded on them.

use super::api::{Error, ok, there};
use super::query;
use super::types::*;
use crate::trace::kernels::{self, Kernel};
use std::ffi::c_void;

/// A GPU agent, for its record.
pub struct Gpu {
    /// Its place in HSA's order of all agents.
    pub index: u32,
    pub target: String,
    pub product: Option<String>,
    pub node: u32,
    pub compute_units: u32,
    /// Ticks a second of its clock, 0 if unknown.
    pub frequency: u64,
}

/// The process's GPUs.
pub fn all() -> Vec<AgentHandle> {
    let agents = there().and_then(query::agents);
    agents.map_or(Vec::new(), |agents| {
        agents.gpus.into_iter().map(|gpu| gpu.handle).collect()
    })
}

/// What a GPU is; `None` for an agent of another kind.
pub fn describe(handle: AgentHandle) -> Result<Option<Gpu>, Error> {
    let api = there()?;
    let all = query::all_agents(api)?;
    let agents = query::agents(api)?;
    let Some(gpu) = agents.gpus.into_iter().find(|gpu| gpu.handle == handle) else {
        return Ok(None);
    };
    let number = |attribute| {
        let mut value = 0u32;
        // SAFETY: the attributes asked for here are u32.
        let status =
            unsafe { (api.hsa_agent_get_info)(handle, attribute, (&raw mut value).cast()) };
        ok("hsa_agent_get_info", status).map(|()| value)
    };
    let mut frequency = 0u64;
    // SAFETY: the attribute is a u64. Older runtimes do not know it and leave it 0.
    let known = unsafe {
        (api.hsa_agent_get_info)(
            handle,
            AMD_AGENT_INFO_TIMESTAMP_FREQUENCY,
            (&raw mut frequency).cast(),
        )
    };
    if known != Status::SUCCESS {
        frequency = 0;
    }
    let mut product = [0u8; 64];
    // SAFETY: the attribute is char[64].
    let named = unsafe {
        (api.hsa_agent_get_info)(
            handle,
            AMD_AGENT_INFO_PRODUCT_NAME,
            product.as_mut_ptr().cast(),
        )
    };
    let product = query::text(&product).trim().to_owned();
    Ok(Some(Gpu {
        index: all.iter().position(|&other| other == handle).unwrap_or(0) as u32,
        target: gpu.name,
        product: (named == Status::SUCCESS && !product.is_empty()).then_some(product),
        node: number(AGENT_INFO_NODE)?,
        compute_units: number(AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)?,
        frequency,
    }))
}

/// The kernels of an executable on a GPU, with the addresses that packets name them by.
pub fn kernels(
    executable: ExecutableHandle,
    agent: AgentHandle,
    index: u32,
    target: &str,
) -> Result<Vec<(u64, Kernel)>, Error> {
    let api = there()?;
    let symbols = query::kernels(api, executable, agent)?;
    if symbols.is_empty() {
        return Ok(Vec::new());
    }
    let segments = query::segments_of(api, executable)?;
    let loader = api.loader()?;
    Ok(symbols
        .into_iter()
        .map(|symbol| {
            let inside = segments.iter().any(|segment| {
                symbol
                    .object
                    .checked_sub(segment.base)
                    .is_some_and(|at| at.checked_add(64).is_some_and(|end| end <= segment.size))
            });
            let mut host = std::ptr::null();
            // SAFETY: the loader only looks the address up.
            let found = unsafe {
                (loader.query_host_address)(symbol.object as *const c_void, &raw mut host)
            };
            let readable = inside && found == Status::SUCCESS && !host.is_null();
            let registers = readable
                .then(|| {
                    // SAFETY: the descriptor's 64 bytes are inside of a loaded segment, whose copy on the host the
                    // loader keeps until the executable is destroyed, which nobody does during its freezing.
                    let descriptor = unsafe { host.cast::<[u8; 64]>().read_unaligned() };
                    kernels::registers(&descriptor, target)
                })
                .flatten();
            let kernel = Kernel {
                name: symbol.name,
                agent: index,
                kernarg: symbol.kernarg,
                lds: symbol.group,
                scratch: symbol.private,
                registers,
            };
            (symbol.object, kernel)
        })
        .collect())
}
