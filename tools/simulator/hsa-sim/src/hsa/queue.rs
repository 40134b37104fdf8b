//! Queues and their indexes.

use crate::device::agents;
use crate::queues::block::{Block, Work, check, indexes, model_queue, set_cu_mask};
use crate::queues::counted::real_queue;
use crate::queues::create::Request;
use crate::queues::lifetime::{obtain, release};
use crate::queues::{block, cooperative, notifier};
use crate::results::{put, status};
use crate::signals::exit;
use crate::state::with;
use crate::sync::locked;
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::atomic::{
    Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

pub unsafe fn hsa_queue_create(
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
    let request = Request {
        agent,
        size,
        kind,
        callback,
        data,
        id: None,
    };
    let created = obtain(&request).map(|block| block.cast());
    // SAFETY: the caller's promise, and a new queue.
    unsafe { notifier::finish_creation(created, agent, queue) }
}

/// The callback is called for each new queue.
pub unsafe fn hsa_amd_runtime_queue_create_register(
    callback: Option<QueueNotifier>,
    data: *mut c_void,
) -> Status {
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    notifier::set(callback.map(|callback| (callback, data as usize)));
    Status::SUCCESS
}

pub unsafe fn hsa_queue_destroy(queue: *mut Queue) -> Status {
    cooperative::check(queue);
    exit::before_queue_is_destroyed();
    // SAFETY: the caller's promise.
    status(with(|_| unsafe { check(queue) }).and_then(|()| unsafe { release(queue) }))
}

pub unsafe fn hsa_queue_inactivate(queue: *mut Queue) -> Status {
    // SAFETY: the queue is checked, and the caller keeps it.
    status(unsafe { real_queue(queue) }.map(|queue| {
        // SAFETY: checked above.
        let mut block = unsafe { &*queue.cast::<Block>() };
        if let Work::Intercept(interception) = &mut *locked(&block.work) {
            interception.inactivate();
            // SAFETY: it lives as long as the intercept queue.
            block = unsafe { &*interception.under().cast::<Block>() };
        }
        let work = std::mem::replace(&mut *locked(&block.work), Work::Inactive);
        drop(work);
    }))
}

/// Not for counted queues.
pub unsafe fn hsa_amd_queue_cu_set_mask(queue: *mut Queue, bits: u32, mask: *const u32) -> Status {
    if !bits.is_multiple_of(32) || (bits > 0 && mask.is_null()) {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the queue is checked, and the caller's mask has `bits` bits.
    status(with(|_| unsafe { check(queue) }).map(|()| unsafe { set_cu_mask(queue, bits, mask) }))
}

pub unsafe fn hsa_amd_queue_cu_get_mask(queue: *mut Queue, bits: u32, mask: *mut u32) -> Status {
    if bits == 0 || !bits.is_multiple_of(32) || mask.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the queue is checked, and the caller has memory for `bits` bits.
    status(unsafe { real_queue(queue) }.map(|queue| unsafe {
        let all = locked(&model_queue(queue).cu_mask);
        for n in 0..bits as usize / 32 {
            // There is one compute unit.
            let default = u32::from(all.is_empty() && n == 0);
            mask.add(n).write(all.get(n).copied().unwrap_or(default));
        }
    }))
}

/// The model ignores priorities. Not for counted queues.
pub unsafe fn hsa_amd_queue_set_priority(queue: *mut Queue, priority: u32) -> Status {
    if priority > 2 {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: always sound.
    status(with(|_| unsafe { check(queue) }))
}

pub unsafe fn hsa_amd_queue_get_info(
    queue: *mut Queue,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    // SAFETY: the queue is checked first; the caller's promise: both attributes are u64.
    status(unsafe { real_queue(queue) }.and_then(|queue| unsafe {
        let block = &*queue.cast::<Block>();
        match attribute {
            HSA_AMD_QUEUE_INFO_AGENT => put(value.cast(), agents::handle(block.agent)),
            HSA_AMD_QUEUE_INFO_DOORBELL_ID => {
                put(value.cast(), block.amd.hsa_queue.doorbell_signal)
            }
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }))
}

macro_rules! index_functions {
    ($(fn $name:ident($($arg:ident),*) = $field:ident.$method:ident($($order:ident),*) $($map:ident)?;)*) => {$(
        pub unsafe fn $name(queue: *const Queue, $($arg: u64),*) -> index_functions!(@type $method) {
            // SAFETY: the caller's promise.
            let index = &unsafe { indexes(queue) }.$field;
            index_functions!(@result $method index.$method($($arg,)* $($order),*))
        }
    )*};
    (@type store) => { () };
    (@type $method:ident) => { u64 };
    (@result compare_exchange $result:expr) => { $result.unwrap_or_else(|old| old) };
    (@result $method:ident $result:expr) => { $result };
}

index_functions! {
    fn hsa_queue_load_read_index_scacquire() = read_dispatch_id.load(Acquire);
    fn hsa_queue_load_read_index_relaxed() = read_dispatch_id.load(Relaxed);
    fn hsa_queue_load_write_index_scacquire() = write_dispatch_id.load(Acquire);
    fn hsa_queue_load_write_index_relaxed() = write_dispatch_id.load(Relaxed);
    fn hsa_queue_store_write_index_relaxed(value) = write_dispatch_id.store(Relaxed);
    fn hsa_queue_store_write_index_screlease(value) = write_dispatch_id.store(Release);
    fn hsa_queue_cas_write_index_scacq_screl(expected, value) = write_dispatch_id.compare_exchange(AcqRel, Acquire);
    fn hsa_queue_cas_write_index_scacquire(expected, value) = write_dispatch_id.compare_exchange(Acquire, Acquire);
    fn hsa_queue_cas_write_index_relaxed(expected, value) = write_dispatch_id.compare_exchange(Relaxed, Relaxed);
    fn hsa_queue_cas_write_index_screlease(expected, value) = write_dispatch_id.compare_exchange(Release, Relaxed);
    fn hsa_queue_add_write_index_scacq_screl(value) = write_dispatch_id.fetch_add(AcqRel);
    fn hsa_queue_add_write_index_scacquire(value) = write_dispatch_id.fetch_add(Acquire);
    fn hsa_queue_add_write_index_relaxed(value) = write_dispatch_id.fetch_add(Relaxed);
    fn hsa_queue_add_write_index_screlease(value) = write_dispatch_id.fetch_add(Release);
    fn hsa_queue_store_read_index_relaxed(value) = read_dispatch_id.store(Relaxed);
    fn hsa_queue_store_read_index_screlease(value) = read_dispatch_id.store(Release);
}

/// Enables or disables the times of kernels.
///
/// # Safety
/// `queue` is a queue that is not destroyed.
pub unsafe fn set_profiling(queue: *mut Queue, on: bool) -> Result<(), Status> {
    // SAFETY: the queue is checked.
    unsafe { block::set_profiling(real_queue(queue)?, on) };
    Ok(())
}
