//! Counted queues (`hsa_ext_amd.h` of newer ROCr).

use crate::queues::counted;
use crate::queues::create::Request;
use crate::results::Outcome;
use crate::state::with;
use hsa_abi::newer::HSA_AMD_QUEUE_PRIORITY_HIGH;
use hsa_abi::*;
use std::ffi::c_void;

pub unsafe fn hsa_amd_counted_queue_acquire(
    agent: AgentHandle,
    kind: u32,
    priority: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    _flags: u64,
    queue: *mut *mut Queue,
) -> Outcome {
    if queue.is_null() || kind > HSA_QUEUE_TYPE_SINGLE || priority > HSA_AMD_QUEUE_PRIORITY_HIGH {
        return Err(Status::INVALID_ARGUMENT);
    }
    with(|state| state.agents.gpu(agent).map(|_| ()))?;
    let request = Request::new(agent, counted::packets(), kind, callback, data);
    let own = counted::acquire(&request, priority)?;
    // SAFETY: the caller's promise.
    unsafe { queue.write(own) };
    Ok(())
}

pub unsafe fn hsa_amd_counted_queue_release(queue: *mut Queue) -> Outcome {
    with(|_| Ok(()))?;
    // SAFETY: the caller's promise.
    unsafe { counted::release(queue) }
}
