//! `hsa_amd_queue_create` of newer ROCr. HIP creates its queues with it since ROCm 10. As in ROCr, it does not call the
//! `hsa_queue_create` of the API table. So a tool that replaces only that function does not observe these queues.

use crate::queues::create::Request;
use crate::queues::{block, lifetime};
use crate::results::Outcome;
use crate::state::with;
use hsa_abi::newer::*;
use hsa_abi::*;

const PACKET_BYTES: u32 = 64;

fn check(desc: &QueueCreateDesc) -> Result<(), Status> {
    let valid = desc.version == HSA_AMD_QUEUE_CREATE_DESC_VERSION
        && desc.engine <= HSA_AMD_QUEUE_ENGINE_AIE
        && desc.priority <= HSA_AMD_QUEUE_PRIORITY_HIGH
        && desc.reserved_header == [0; 3]
        && desc.reserved == [0; 20];
    if !valid {
        return Err(Status::INVALID_ARGUMENT);
    }
    // The simulator has neither queues for copies nor rings in the GPU's memory.
    if desc.engine != HSA_AMD_QUEUE_ENGINE_COMPUTE || desc.flags != HSA_AMD_QUEUE_CREATE_SYSTEM_MEM
    {
        return Err(Status::INVALID_QUEUE_CREATION);
    }
    let valid = desc.kind <= HSA_QUEUE_TYPE_COOPERATIVE
        && desc.reserved_compute == [0; 3]
        && desc.size > 0
        && desc.size.is_multiple_of(PACKET_BYTES)
        && desc.cu_mask.is_null() == (desc.cu_mask_count == 0)
        && desc.cu_mask_count.is_multiple_of(32);
    valid.then_some(()).ok_or(Status::INVALID_ARGUMENT)
}

fn create(desc: &QueueCreateDesc, agent: AgentHandle) -> Result<*mut Queue, Status> {
    check(desc)?;
    let packets = desc.size / PACKET_BYTES;
    let request = Request::new(agent, packets, desc.kind, desc.callback, desc.data);
    let queue = lifetime::obtain(&request)?.cast();
    if !desc.cu_mask.is_null() {
        // SAFETY: the mask has `cu_mask_count` bits, and the queue is new.
        unsafe { block::set_cu_mask(queue, desc.cu_mask_count, desc.cu_mask) };
    }
    Ok(queue)
}

/// See `hsa_ext_amd.h` of ROCm 10. An error of one queue does not prevent the creation of the others. Returns the first
/// error.
pub unsafe fn hsa_amd_queue_create(
    agent: AgentHandle,
    descs: *mut QueueCreateDesc,
    count: u32,
) -> Outcome {
    if descs.is_null() || count == 0 {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let descs = unsafe { std::slice::from_raw_parts_mut(descs, count as usize) };
    let of_gpu = with(|state| state.agents.gpu(agent).map(|_| ()));
    let mut result = of_gpu;
    for desc in descs {
        let created = of_gpu.and_then(|()| create(desc, agent));
        desc.queue = created.unwrap_or(std::ptr::null_mut());
        result = result.and(created.map(|_| ()));
    }
    result
}
