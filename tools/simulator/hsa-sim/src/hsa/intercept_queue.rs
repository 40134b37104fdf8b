//! Intercept queues.

use crate::queues::block::{Block, Work, check};
use crate::queues::create::Request;
use crate::queues::{intercept, notifier};
use crate::results::Outcome;
use crate::state::with;
use crate::sync::locked;
use hsa_abi::*;
use std::ffi::c_void;

pub unsafe fn hsa_amd_queue_intercept_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    _private: u32,
    _group: u32,
    queue: *mut *mut Queue,
) -> Outcome {
    let mut request = Request::new(agent, size, kind, callback, data);
    // SAFETY: the caller's promise, and a new queue.
    unsafe { notifier::create(agent, queue, || intercept::obtain(&mut request)) }
}

pub unsafe fn hsa_amd_queue_intercept_register(
    queue: *mut Queue,
    callback: PacketHandler,
    data: *mut c_void,
) -> Outcome {
    // SAFETY: always sound.
    with(|_| unsafe { check(queue) })?;
    // SAFETY: checked above, and the caller keeps the queue.
    let block = unsafe { &*queue.cast::<Block>() };
    let Work::Intercept(interception) = &mut *locked(&block.work) else {
        return Err(Status::INVALID_QUEUE);
    };
    interception.register(callback, data as usize);
    Ok(())
}
