//! Counted queues.

use crate::queues::counted;
use crate::queues::create::Request;
use crate::results::status;
use crate::state::with;
use hsa_abi::newer::HSA_AMD_QUEUE_PRIORITY_HIGH;
use hsa_abi::*;
use std::ffi::c_void;

/// See `hsa_ext_amd.h` of newer ROCr.
pub unsafe fn hsa_amd_counted_queue_acquire(
    agent: AgentHandle,
    kind: u32,
    priority: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    _flags: u64,
    queue: *mut *mut Queue,
) -> Status {
    if queue.is_null() || kind > HSA_QUEUE_TYPE_SINGLE || priority > HSA_AMD_QUEUE_PRIORITY_HIGH {
        return Status::INVALID_ARGUMENT;
    }
    if let Err(status) = with(|state| state.agents.gpu(agent).map(|_| ())) {
        return status;
    }
    let request = Request {
        agent,
        size: counted::packets(),
        kind,
        callback,
        data,
        id: None,
    };
    status(counted::acquire(&request, priority).map(|own| {
        // SAFETY: the caller's promise.
        unsafe { queue.write(own) };
    }))
}

/// See `hsa_ext_amd.h` of newer ROCr.
pub unsafe fn hsa_amd_counted_queue_release(queue: *mut Queue) -> Status {
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    // SAFETY: the caller's promise.
    unsafe { counted::release(queue) }
}
