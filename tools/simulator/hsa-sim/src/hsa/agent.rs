//! Agents.

use super::calls::visit;
use super::{isa, system};
use crate::copies::COPY_ENGINES;
use crate::device::agents::handle;
use crate::device::clock;
use crate::faults::injection;
use crate::queues::create::{MAX_PACKETS, MIN_PACKETS};
use crate::results::{put, put_bytes, status};
use crate::settings::isa::Isa;
use crate::state::with;
use gpu_model::topology::Units;
use hsa_abi::*;
use std::ffi::c_void;

pub unsafe fn hsa_iterate_agents(callback: AgentCallback, data: *mut c_void) -> Status {
    let all = with(|state| Ok((0..state.agents.count()).map(handle).collect()));
    // SAFETY: the caller's promise.
    unsafe { visit(all, callback, data) }
}

/// A name in 64 bytes, zero-padded.
fn name64(text: &str) -> [u8; 64] {
    let mut name = [0; 64];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

pub unsafe fn hsa_agent_get_info(agent: AgentHandle, attribute: u32, value: *mut c_void) -> Status {
    let found = with(|state| {
        let number = state.agents.number(agent)?;
        let device = (number > 0).then(|| state.agents.gpus[number - 1].device);
        let memory = &state.memory;
        Ok((device, memory.pool_size(number), memory.available(number)))
    });
    let (device, pool_size, available) = match found {
        Ok(found) => found,
        Err(status) => return status,
    };
    let target = device.map(|device| device.target);
    let node = device.map_or(0, |device| device.node as u32);
    let units = device.map(|device| device.units);
    let units = |number: fn(&Units) -> u64| units.as_ref().map_or(0, |units| number(units) as u32);
    let is_gpu = device.is_some();
    let gpu_only = |n: u32| if is_gpu { n } else { 0 };
    // SAFETY: the caller's promise: memory for the attribute. Its type is that of the headers.
    status(unsafe {
        match attribute {
            HSA_AGENT_INFO_NAME => match (target, injection::take_lie()) {
                (_, Some(lie)) => put_bytes(value.cast(), &name64(&format!("gfx{lie}"))),
                (Some(target), None) => put_bytes(value.cast(), &name64(target.name)),
                (None, None) => put_bytes(value.cast(), &name64("CPU")),
            },
            HSA_AGENT_INFO_VENDOR_NAME => {
                put_bytes(value.cast(), &name64(if is_gpu { "AMD" } else { "CPU" }))
            }
            HSA_AGENT_INFO_FEATURE => {
                put(value.cast(), gpu_only(HSA_AGENT_FEATURE_KERNEL_DISPATCH))
            }
            HSA_AGENT_INFO_MACHINE_MODEL => put(value.cast(), HSA_MACHINE_MODEL_LARGE),
            HSA_AGENT_INFO_PROFILE => put(
                value.cast(),
                if is_gpu {
                    HSA_PROFILE_BASE
                } else {
                    HSA_PROFILE_FULL
                },
            ),
            HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE => {
                put(value.cast(), HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR)
            }
            HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => {
                put(value.cast(), gpu_only(HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR))
            }
            HSA_AGENT_INFO_FAST_F16_OPERATION => put(value.cast(), is_gpu),
            HSA_AGENT_INFO_WAVEFRONT_SIZE => {
                put(value.cast(), target.map_or(0, |target| target.wave_size()))
            }
            HSA_AGENT_INFO_WORKGROUP_MAX_DIM => put(value.cast(), [gpu_only(1024) as u16; 3]),
            HSA_AGENT_INFO_WORKGROUP_MAX_SIZE => put(value.cast(), gpu_only(1024)),
            HSA_AGENT_INFO_GRID_MAX_DIM => {
                let max = gpu_only(i32::MAX as u32);
                put(
                    value.cast(),
                    Dim3 {
                        x: max,
                        y: max.min(0xffff),
                        z: max.min(0xffff),
                    },
                )
            }
            HSA_AGENT_INFO_GRID_MAX_SIZE => put(value.cast(), gpu_only(u32::MAX)),
            HSA_AGENT_INFO_FBARRIER_MAX_SIZE => put(value.cast(), gpu_only(32)),
            HSA_AGENT_INFO_QUEUES_MAX => put(value.cast(), gpu_only(128)),
            HSA_AGENT_INFO_QUEUE_MIN_SIZE => put(value.cast(), gpu_only(MIN_PACKETS)),
            HSA_AGENT_INFO_QUEUE_MAX_SIZE => put(value.cast(), gpu_only(MAX_PACKETS)),
            HSA_AGENT_INFO_QUEUE_TYPE => put(value.cast(), HSA_QUEUE_TYPE_MULTI),
            HSA_AGENT_INFO_NODE | HSA_AMD_AGENT_INFO_DRIVER_NODE_ID => put(value.cast(), node),
            HSA_AGENT_INFO_DEVICE => put(
                value.cast(),
                if is_gpu {
                    HSA_DEVICE_TYPE_GPU
                } else {
                    HSA_DEVICE_TYPE_CPU
                },
            ),
            HSA_AGENT_INFO_CACHE_SIZE => put(value.cast(), [0u32; 4]),
            HSA_AGENT_INFO_ISA => put(
                value.cast(),
                match target {
                    Some(target) => isa::handle(&Isa::of_target(target)[0]),
                    None => IsaHandle::default(),
                },
            ),
            HSA_AGENT_INFO_EXTENSIONS => put_bytes(value.cast(), &system::extensions()),
            HSA_AGENT_INFO_VERSION_MAJOR => put(value.cast(), 1u16),
            HSA_AGENT_INFO_VERSION_MINOR => put(value.cast(), 1u16),
            HSA_AMD_AGENT_INFO_CHIP_ID => put(value.cast(), target.map_or(0, |target| target.chip)),
            HSA_AMD_AGENT_INFO_CACHELINE_SIZE => put(value.cast(), 64u32),
            HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT => put(value.cast(), units(Units::count).max(1)),
            HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY => {
                put(value.cast(), target.map_or(100, |target| target.clock))
            }
            HSA_AMD_AGENT_INFO_BDFID => put(value.cast(), node << 8),
            HSA_AMD_AGENT_INFO_PRODUCT_NAME => put_bytes(value.cast(), &name64("hsa-sim")),
            HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU => {
                put(value.cast(), units(|all| all.waves_per_unit))
            }
            HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU => {
                put(value.cast(), units(|all| all.simds_per_unit))
            }
            HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS
            | HSA_AMD_AGENT_INFO_ASIC_REVISION
            | HSA_AMD_AGENT_INFO_UCODE_VERSION
            | HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION
            | HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG => put(value.cast(), 0u32),
            HSA_AMD_AGENT_INFO_MEMORY_WIDTH => {
                put(value.cast(), target.map_or(0, |target| target.memory_width))
            }
            HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY => {
                put(value.cast(), target.map_or(0, |target| target.memory_clock))
            }
            HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES => put(value.cast(), units(Units::engines)),
            HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE => {
                put(value.cast(), units(|all| all.arrays_per_engine))
            }
            HSA_AMD_AGENT_INFO_NUM_XCC => put(value.cast(), units(|all| all.xccs)),
            // As in ROCr, if the driver has not mapped the registers.
            HSA_AMD_AGENT_INFO_HDP_FLUSH => put(value.cast(), [0usize; 2]),
            HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS | HSA_AMD_AGENT_INFO_IOMMU_SUPPORT => {
                put(value.cast(), false)
            }
            HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT => {
                put(value.cast(), units(Units::count))
            }
            HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID => {
                put(value.cast(), target.map_or(0, |target| target.family))
            }
            HSA_AMD_AGENT_INFO_NUM_SDMA_ENG => put(value.cast(), gpu_only(COPY_ENGINES)),
            HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES => put(value.cast(), 0u64),
            HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX | HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT => {
                put(value.cast(), pool_size as u64)
            }
            HSA_AMD_AGENT_INFO_DOMAIN => put(value.cast(), 0u32),
            HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES => put(value.cast(), is_gpu),
            HSA_AMD_AGENT_INFO_UUID => {
                let uuid = device.map_or("CPU-0000000000000000".into(), |device| device.uuid());
                put_bytes(value.cast(), format!("{uuid}\0").as_bytes())
            }
            HSA_AMD_AGENT_INFO_MEMORY_AVAIL => put(value.cast(), available as u64),
            HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY => put(value.cast(), clock::GPU_FREQUENCY),
            HSA_AMD_AGENT_INFO_DRIVER_UID => put(value.cast(), node),
            HSA_AMD_AGENT_INFO_NEAREST_CPU => put(value.cast(), handle(0)),
            HSA_AMD_AGENT_INFO_CLOCK_COUNTERS => {
                if value.is_null() {
                    Err(Status::INVALID_ARGUMENT)
                } else {
                    value
                        .cast::<ClockCounters>()
                        .write_unaligned(clock::counters());
                    Ok(())
                }
            }
            _ => Err(Status::INVALID_ARGUMENT),
        }
    })
}

/// The simulator reports no caches.
pub unsafe fn hsa_agent_iterate_caches(
    agent: AgentHandle,
    _: CacheCallback,
    _: *mut c_void,
) -> Status {
    status(with(|state| state.agents.number(agent).map(|_| ())))
}

pub unsafe fn hsa_agent_iterate_isas(
    agent: AgentHandle,
    callback: IsaCallback,
    data: *mut c_void,
) -> Status {
    let isas = with(|state| {
        let number = state.agents.number(agent)?;
        Ok(match number.checked_sub(1) {
            Some(n) => {
                let isas = Isa::of_target(state.agents.gpus[n].device.target);
                isas.iter().map(isa::handle).collect()
            }
            None => Vec::new(),
        })
    });
    // SAFETY: the caller's promise.
    unsafe { visit(isas, callback, data) }
}

/// Memory for private segments is not limited here.
pub unsafe fn hsa_amd_agent_set_async_scratch_limit(agent: AgentHandle, _bytes: usize) -> Status {
    status(with(|state| state.agents.gpu(agent).map(|_| ())))
}
