//! Queues and their indexes.

use crate::device::agents;
use crate::queues::block::{Block, Work, check, indexes, model_queue, set_cu_mask};
use crate::queues::counted::real_queue;
use crate::queues::create::Request;
use crate::queues::lifetime::{obtain, release};
use crate::queues::{cooperative, notifier};
use crate::results::{Out, Outcome};
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
) -> Outcome {
    let request = Request::new(agent, size, kind, callback, data);
    // SAFETY: the caller's promise, and a new queue.
    unsafe { notifier::create(agent, queue, || obtain(&request)) }
}

/// The callback is called for each new queue.
pub unsafe fn hsa_amd_runtime_queue_create_register(
    callback: Option<QueueNotifier>,
    data: *mut c_void,
) -> Outcome {
    with(|_| Ok(()))?;
    notifier::set(callback.map(|callback| (callback, data as usize)));
    Ok(())
}

pub unsafe fn hsa_queue_destroy(queue: *mut Queue) -> Outcome {
    cooperative::check(queue);
    exit::before_queue_is_destroyed();
    // SAFETY: always sound.
    with(|_| unsafe { check(queue) })?;
    // SAFETY: the caller's promise.
    unsafe { release(queue) }
}

pub unsafe fn hsa_queue_inactivate(queue: *mut Queue) -> Outcome {
    // SAFETY: the queue is checked, and the caller keeps it.
    let mut block = unsafe { &*real_queue(queue)?.cast::<Block>() };
    if let Work::Intercept(interception) = &mut *locked(&block.work) {
        interception.inactivate();
        // SAFETY: it lives as long as the intercept queue.
        block = unsafe { &*interception.under().cast::<Block>() };
    }
    drop(block.take_work());
    Ok(())
}

/// Not for counted queues.
pub unsafe fn hsa_amd_queue_cu_set_mask(queue: *mut Queue, bits: u32, mask: *const u32) -> Outcome {
    if !bits.is_multiple_of(32) || (bits > 0 && mask.is_null()) {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: always sound.
    with(|_| unsafe { check(queue) })?;
    // SAFETY: the queue is checked, and the caller's mask has `bits` bits.
    unsafe { set_cu_mask(queue, bits, mask) };
    Ok(())
}

pub unsafe fn hsa_amd_queue_cu_get_mask(queue: *mut Queue, bits: u32, mask: *mut u32) -> Outcome {
    if bits == 0 || !bits.is_multiple_of(32) || mask.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the queue is checked, and the caller has memory for `bits` bits.
    unsafe {
        let all = locked(&model_queue(real_queue(queue)?).cu_mask);
        for n in 0..bits as usize / 32 {
            // There is one compute unit.
            let default = u32::from(all.is_empty() && n == 0);
            mask.add(n).write(all.get(n).copied().unwrap_or(default));
        }
    }
    Ok(())
}

/// The model ignores priorities. Not for counted queues.
pub unsafe fn hsa_amd_queue_set_priority(queue: *mut Queue, priority: u32) -> Outcome {
    if priority > 2 {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: always sound.
    with(|_| unsafe { check(queue) })
}

pub unsafe fn hsa_amd_queue_get_info(
    queue: *mut Queue,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    // SAFETY: the queue is checked; the caller's promise: both attributes are u64.
    let (block, out) = unsafe { (&*real_queue(queue)?.cast::<Block>(), Out::new(value)) };
    match attribute {
        HSA_AMD_QUEUE_INFO_AGENT => out.put(agents::handle(block.agent)),
        HSA_AMD_QUEUE_INFO_DOORBELL_ID => out.put(block.amd.hsa_queue.doorbell_signal),
        _ => Err(Status::INVALID_ARGUMENT),
    }
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
