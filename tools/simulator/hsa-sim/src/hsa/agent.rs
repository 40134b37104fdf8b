//! Agents.

use super::calls::visit;
use super::{isa, system};
use crate::copies::COPY_ENGINES;
use crate::device::agents::handle;
use crate::device::clock;
use crate::faults::injection;
use crate::queues::create::{MAX_PACKETS, MIN_PACKETS};
use crate::results::{Out, Outcome};
use crate::settings::isa::Isa;
use crate::settings::target::Target;
use crate::state::with;
use gpu_model::topology::Units;
use hsa_abi::*;
use std::ffi::c_void;

pub unsafe fn hsa_iterate_agents(callback: AgentCallback, data: *mut c_void) -> Outcome {
    let all = with(|state| Ok((0..state.agents.count()).map(handle).collect()))?;
    // SAFETY: the caller's promise.
    unsafe { visit(all, callback, data) }
}

/// A name in 64 bytes, zero-padded.
fn name64(text: &str) -> [u8; 64] {
    let mut name = [0; 64];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

pub unsafe fn hsa_agent_get_info(
    agent: AgentHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let (device, pool_size, available) = with(|state| {
        let number = state.agents.number(agent)?;
        let device = (number > 0).then(|| state.agents.gpus[number - 1].device);
        let memory = &state.memory;
        Ok((device, memory.pool_size(number), memory.available(number)))
    })?;
    let target = device.map(|device| device.target);
    let node = device.map_or(0, |device| device.node as u32);
    let units = device.map(|device| device.units);
    let units = |number: fn(&Units) -> u64| units.as_ref().map_or(0, |units| number(units) as u32);
    let is_gpu = device.is_some();
    let by_kind = |gpu: u32, cpu: u32| if is_gpu { gpu } else { cpu };
    let gpu_only = |n: u32| by_kind(n, 0);
    let of_target = |of: fn(&Target) -> u32| target.map_or(0, of);
    // SAFETY: the caller's promise: memory for the attribute, whose type the headers specify.
    let out = unsafe { Out::new(value) };
    match attribute {
        HSA_AGENT_INFO_NAME => {
            let name = target.map_or("CPU".into(), |target| target.name.to_string());
            let lie = injection::take_lie().map(|lie| format!("gfx{lie}"));
            out.put_bytes(&name64(&lie.unwrap_or(name)))
        }
        HSA_AGENT_INFO_VENDOR_NAME => out.put_bytes(&name64(if is_gpu { "AMD" } else { "CPU" })),
        HSA_AGENT_INFO_FEATURE => out.put(gpu_only(HSA_AGENT_FEATURE_KERNEL_DISPATCH)),
        HSA_AGENT_INFO_MACHINE_MODEL => out.put(HSA_MACHINE_MODEL_LARGE),
        HSA_AGENT_INFO_PROFILE => out.put(by_kind(HSA_PROFILE_BASE, HSA_PROFILE_FULL)),
        HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE => out.put(HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR),
        HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => {
            out.put(gpu_only(HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR))
        }
        HSA_AGENT_INFO_FAST_F16_OPERATION => out.put(is_gpu),
        HSA_AGENT_INFO_WAVEFRONT_SIZE => out.put(of_target(Target::wave_size)),
        HSA_AGENT_INFO_WORKGROUP_MAX_DIM => out.put([gpu_only(1024) as u16; 3]),
        HSA_AGENT_INFO_WORKGROUP_MAX_SIZE => out.put(gpu_only(1024)),
        HSA_AGENT_INFO_GRID_MAX_DIM => {
            let max = gpu_only(i32::MAX as u32);
            out.put(Dim3 {
                x: max,
                y: max.min(0xffff),
                z: max.min(0xffff),
            })
        }
        HSA_AGENT_INFO_GRID_MAX_SIZE => out.put(gpu_only(u32::MAX)),
        HSA_AGENT_INFO_FBARRIER_MAX_SIZE => out.put(gpu_only(32)),
        HSA_AGENT_INFO_QUEUES_MAX => out.put(gpu_only(128)),
        HSA_AGENT_INFO_QUEUE_MIN_SIZE => out.put(gpu_only(MIN_PACKETS)),
        HSA_AGENT_INFO_QUEUE_MAX_SIZE => out.put(gpu_only(MAX_PACKETS)),
        HSA_AGENT_INFO_QUEUE_TYPE => out.put(HSA_QUEUE_TYPE_MULTI),
        HSA_AGENT_INFO_NODE | HSA_AMD_AGENT_INFO_DRIVER_NODE_ID => out.put(node),
        HSA_AGENT_INFO_DEVICE => out.put(by_kind(HSA_DEVICE_TYPE_GPU, HSA_DEVICE_TYPE_CPU)),
        HSA_AGENT_INFO_CACHE_SIZE => out.put([0u32; 4]),
        HSA_AGENT_INFO_ISA => {
            let isa = target.map(|target| isa::handle(&Isa::of_target(target)[0]));
            out.put(isa.unwrap_or_default())
        }
        HSA_AGENT_INFO_EXTENSIONS => out.put_bytes(&system::extensions()),
        HSA_AGENT_INFO_VERSION_MAJOR => out.put(1u16),
        HSA_AGENT_INFO_VERSION_MINOR => out.put(1u16),
        HSA_AMD_AGENT_INFO_CHIP_ID => out.put(of_target(|of| of.chip)),
        HSA_AMD_AGENT_INFO_CACHELINE_SIZE => out.put(64u32),
        HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT => out.put(units(Units::count).max(1)),
        HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY => {
            out.put(target.map_or(100, |target| target.clock))
        }
        HSA_AMD_AGENT_INFO_BDFID => out.put(node << 8),
        HSA_AMD_AGENT_INFO_PRODUCT_NAME => out.put_bytes(&name64("hsa-sim")),
        HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU => out.put(units(|all| all.waves_per_unit)),
        HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU => out.put(units(|all| all.simds_per_unit)),
        HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS
        | HSA_AMD_AGENT_INFO_ASIC_REVISION
        | HSA_AMD_AGENT_INFO_UCODE_VERSION
        | HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION
        | HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG => out.put(0u32),
        HSA_AMD_AGENT_INFO_MEMORY_WIDTH => out.put(of_target(|of| of.memory_width)),
        HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY => out.put(of_target(|of| of.memory_clock)),
        HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES => out.put(units(Units::engines)),
        HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE => out.put(units(|all| all.arrays_per_engine)),
        HSA_AMD_AGENT_INFO_NUM_XCC => out.put(units(|all| all.xccs)),
        // As in ROCr, if the driver has not mapped the registers.
        HSA_AMD_AGENT_INFO_HDP_FLUSH => out.put([0usize; 2]),
        HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS | HSA_AMD_AGENT_INFO_IOMMU_SUPPORT => {
            out.put(false)
        }
        HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT => out.put(units(Units::count)),
        HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID => out.put(of_target(|of| of.family)),
        HSA_AMD_AGENT_INFO_NUM_SDMA_ENG => out.put(gpu_only(COPY_ENGINES)),
        HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES => out.put(0u64),
        HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX | HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT => {
            out.put(pool_size as u64)
        }
        HSA_AMD_AGENT_INFO_DOMAIN => out.put(0u32),
        HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES => out.put(is_gpu),
        HSA_AMD_AGENT_INFO_UUID => {
            let uuid = device.map_or("CPU-0000000000000000".into(), |device| device.uuid());
            out.put_bytes(format!("{uuid}\0").as_bytes())
        }
        HSA_AMD_AGENT_INFO_MEMORY_AVAIL => out.put(available as u64),
        HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY => out.put(clock::GPU_FREQUENCY),
        HSA_AMD_AGENT_INFO_DRIVER_UID => out.put(node),
        HSA_AMD_AGENT_INFO_NEAREST_CPU => out.put(handle(0)),
        HSA_AMD_AGENT_INFO_CLOCK_COUNTERS => out.put_struct(clock::counters()),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

/// The simulator reports no caches.
pub unsafe fn hsa_agent_iterate_caches(
    agent: AgentHandle,
    _: CacheCallback,
    _: *mut c_void,
) -> Outcome {
    with(|state| state.agents.number(agent).map(|_| ()))
}

pub unsafe fn hsa_agent_iterate_isas(
    agent: AgentHandle,
    callback: IsaCallback,
    data: *mut c_void,
) -> Outcome {
    let isas = with(|state| {
        let number = state.agents.number(agent)?;
        Ok(match number.checked_sub(1) {
            Some(n) => {
                let isas = Isa::of_target(state.agents.gpus[n].device.target);
                isas.iter().map(isa::handle).collect()
            }
            None => Vec::new(),
        })
    })?;
    // SAFETY: the caller's promise.
    unsafe { visit(isas, callback, data) }
}

/// Memory for private segments is not limited here.
pub unsafe fn hsa_amd_agent_set_async_scratch_limit(agent: AgentHandle, _bytes: usize) -> Outcome {
    with(|state| state.agents.gpu(agent).map(|_| ()))
}
