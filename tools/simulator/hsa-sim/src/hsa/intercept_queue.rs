//! Intercept queues.

use crate::queues::block::{Block, Work, check};
use crate::queues::create::Request;
use crate::queues::{intercept, notifier};
use crate::results::status;
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
) -> Status {
    if queue.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    let mut request = Request {
        agent,
        size,
        kind,
        callback,
        data,
        id: None,
    };
    let created = intercept::obtain(&mut request).map(|block| block.cast());
    // SAFETY: the caller's promise, and a new queue.
    unsafe { notifier::finish_creation(created, agent, queue) }
}

pub unsafe fn hsa_amd_queue_intercept_register(
    queue: *mut Queue,
    callback: PacketHandler,
    data: *mut c_void,
) -> Status {
    // SAFETY: the queue is checked, and the caller keeps it.
    status(with(|_| unsafe { check(queue) }).and_then(|()| {
        // SAFETY: checked above.
        let block = unsafe { &*queue.cast::<Block>() };
        match &mut *locked(&block.work) {
            Work::Intercept(interception) => {
                interception.register(callback, data as usize);
                Ok(())
            }
            _ => Err(Status::INVALID_QUEUE),
        }
    }))
}
