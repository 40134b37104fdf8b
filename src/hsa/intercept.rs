//! ROCr's API tables while devprof traces: the functions that it puts in, and the handler of the packets in an intercept
//! queue. Mirrors `hsa/hsa_api_trace.h`.

use super::api::there;
use super::cooperative;
use super::originals::{Originals, originals};
use super::queue_functions::{ENGINE_COMPUTE, Hooks, QueueCreateDesc};
use super::times::DispatchTime;
use super::tool::{ApiTable, PacketWriter, QueueCreate};
use super::types::*;
use super::{doorbell, query};
use crate::guard::{Cost, guarded, lock};
use crate::instance::{self, Request};
use crate::report;
use crate::trace;
use crate::trace::capture::{Capture, Packet};
use crate::trace::writers;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The capture of each traced queue, by the queue's address.
static CAPTURES: Mutex<Option<HashMap<usize, CapturePointer>>> = Mutex::new(None);

/// The program has created a queue on a GPU, traced or not.
static SAW_QUEUE: AtomicBool = AtomicBool::new(false);

/// Whether the program has created a queue on a GPU.
pub fn saw_queue() -> bool {
    SAW_QUEUE.load(Ordering::Relaxed)
}

thread_local! {
    /// The last queue that was taken up on this thread, by its address.
    static TAKEN_UP: Cell<usize> = const { Cell::new(0) };
}

struct CapturePointer(*mut Captured);

/// What the handler of a queue's packets gets.
struct Captured {
    /// `None`: packets pass.
    capture: Option<Capture>,
    queue: *const QueueHead,
}

// SAFETY: a box that ROCr's handler uses, on one thread at a time, until its queue is destroyed; only then is it taken
// back.
unsafe impl Send for CapturePointer {}

fn captures() -> MutexGuard<'static, Option<HashMap<usize, CapturePointer>>> {
    lock(&CAPTURES)
}

/// Has the hooks called in ROCr's place.
///
/// # Safety
/// As [`super::originals::remember`], which was called before.
pub unsafe fn install(table: *mut ApiTable) {
    // SAFETY: the caller's promise.
    let Some((core, amd)) = (unsafe { super::tool::tables(table) }) else {
        return;
    };
    core.hsa_queue_create = queue_create;
    core.hsa_queue_destroy = queue_destroy;
    core.hsa_signal_destroy = signal_destroy;
    core.hsa_queue_add_write_index_scacq_screl = add_write_index_scacq_screl;
    core.hsa_queue_add_write_index_scacquire = add_write_index_scacquire;
    core.hsa_queue_add_write_index_relaxed = add_write_index_relaxed;
    core.hsa_queue_add_write_index_screlease = add_write_index_screlease;
    core.hsa_signal_store_relaxed = signal_store_relaxed;
    core.hsa_signal_store_screlease = signal_store_screlease;
    amd.hsa_amd_queue_intercept_create = intercept_create;
    amd.hsa_amd_profiling_set_profiler_enabled = set_profiler_enabled;
    amd.hsa_amd_profiling_get_dispatch_time = get_dispatch_time;
    let hooks = Hooks {
        create: amd_queue_create,
        acquire: counted_queue_acquire,
        release: counted_queue_release,
    };
    // SAFETY: ROCr's table, with the slots that were found in it.
    unsafe { super::tool::slots().replace(amd, hooks) };
}

unsafe extern "C" fn queue_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    private: u32,
    group: u32,
    queue: *mut *mut QueueHead,
) -> Status {
    let Some(originals) = originals() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to functions of the same signature (hsa_api_trace.h).
    let by = |create: QueueCreate| unsafe {
        create(agent, size, kind, callback, data, private, group, queue)
    };
    // SAFETY: a call that succeeded has written the queue's address.
    let made = |status| unsafe { created(status, queue) };
    create_traced(originals, agent, kind, |how| match how {
        How::Plain => made(by(originals.core.hsa_queue_create)),
        How::Intercept => made(by(intercept_create)),
    })
    .err()
    .unwrap_or(Status::SUCCESS)
}

/// What a call that creates a queue gives.
///
/// # Safety
/// `queue` was written if the status is success.
unsafe fn created(status: Status, queue: *mut *mut QueueHead) -> Result<*mut QueueHead, Status> {
    match status {
        // SAFETY: the caller's promise.
        Status::SUCCESS => Ok(unsafe { *queue }),
        error => Err(error),
    }
}

/// In which way a queue is created.
#[derive(Clone, Copy)]
enum How {
    /// As the program wants it.
    Plain,
    /// As an intercept queue.
    Intercept,
}

/// Has `create` create a queue for the program, as an intercept queue where that is possible.
fn create_traced(
    originals: &Originals,
    agent: AgentHandle,
    kind: u32,
    mut create: impl FnMut(How) -> Result<*mut QueueHead, Status>,
) -> Result<*mut QueueHead, Status> {
    let is_gpu = || {
        there()
            .and_then(|api| query::is_gpu(api, agent))
            .unwrap_or(false)
    };
    let is_own = instance::request(Request::IsOwnQueue {}) != 0;
    if is_own || !guarded(Cost::Dispatches, false, is_gpu) {
        return create(How::Plain);
    }
    SAW_QUEUE.store(true, Ordering::Relaxed);
    if kind == QUEUE_TYPE_COOPERATIVE {
        let queue = create(How::Plain)?;
        guarded(Cost::Dispatches, (), || cooperative::acquired(queue));
        return Ok(queue);
    }
    if guarded(Cost::Dispatches, false, another_makes_queues) {
        TAKEN_UP.set(0);
        let queue = create(How::Plain)?;
        // That tool may have called `intercept_create` through ROCr's table.
        // SAFETY: a new queue.
        if TAKEN_UP.get() == queue as usize || unsafe { take_up(originals, agent, queue) }.is_ok() {
            return Ok(queue);
        }
        // That tool only looks on, and the queue is no intercept queue.
        // SAFETY: nobody else knows the queue yet.
        unsafe { (originals.core.hsa_queue_destroy)(queue) };
    }
    if let Ok(queue) = create(How::Intercept) {
        return Ok(queue);
    }
    let queue = create(How::Plain)?;
    // The program would get its queue without devprof.
    report::lost(
        "the trace misses the dispatches of a queue: hsa_amd_queue_intercept_create failed",
    );
    Ok(queue)
}

/// `hsa_amd_queue_create`.
unsafe extern "C" fn amd_queue_create(
    agent: AgentHandle,
    descs: *mut QueueCreateDesc,
    count: u32,
) -> Status {
    let Some((originals, plain)) = originals().and_then(|o| Some((o, o.queue_functions.create?)))
    else {
        return Status::ERROR;
    };
    if descs.is_null() {
        // SAFETY: the program's arguments.
        return unsafe { plain(agent, descs, count) };
    }
    let mut first_error = Status::SUCCESS;
    for n in 0..count as usize {
        // SAFETY: the program gives as many descriptors.
        let (desc, engine, version, kind) = unsafe {
            let desc = descs.add(n);
            (desc, (*desc).engine, (*desc).version, (*desc).kind)
        };
        let plain = || {
            // SAFETY: one of the program's descriptors, to the function that it called; it has set the queue then.
            unsafe {
                match plain(agent, desc, 1) {
                    Status::SUCCESS => Ok((*desc).queue),
                    error => Err(error),
                }
            }
        };
        let created = match engine == ENGINE_COMPUTE && version == 1 {
            true => create_traced(originals, agent, kind, |how| match how {
                How::Plain => plain(),
                // SAFETY: one of the program's descriptors.
                How::Intercept => unsafe { intercept_as(originals, agent, desc) },
            }),
            false => plain(),
        };
        if let (Err(error), Status::SUCCESS) = (created, first_error) {
            first_error = error;
        }
    }
    first_error
}

/// Creates an intercept queue as a descriptor wants it, but for where its ring lies.
///
/// # Safety
/// As `hsa_amd_queue_create`, of one descriptor.
unsafe fn intercept_as(
    originals: &Originals,
    agent: AgentHandle,
    desc: *mut QueueCreateDesc,
) -> Result<*mut QueueHead, Status> {
    let mut queue = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        let wanted = &*desc;
        let status = intercept_create(
            agent,
            wanted.size / PACKET,
            wanted.kind,
            wanted.callback,
            wanted.data,
            wanted.private_segment_size,
            u32::MAX,
            &raw mut queue,
        );
        let queue = created(status, &raw mut queue)?;
        let mut set = (originals.amd.hsa_amd_queue_set_priority)(queue, wanted.priority);
        let is_error = |status: Status| status.0 >= Status::ERROR.0;
        if !is_error(set) && !wanted.cu_mask.is_null() && wanted.cu_mask_count > 0 {
            // It may be reduced (HSA_STATUS_CU_MASK_REDUCED), which is no error.
            let set_mask = originals.amd.hsa_amd_queue_cu_set_mask;
            set = set_mask(queue, wanted.cu_mask_count, wanted.cu_mask);
        }
        if is_error(set) {
            queue_destroy(queue);
            return Err(set);
        }
        (*desc).queue = queue;
        Ok(queue)
    }
}

/// Bytes of a packet.
const PACKET: u32 = 64;
/// Packets of a queue that stands for one that the program shares with others.
const COUNTED_SIZE: u32 = 16384;

/// `hsa_amd_counted_queue_acquire`. Such a queue is a new name for a ring that others have, too; a traced program gets a
/// queue of its own.
unsafe extern "C" fn counted_queue_acquire(
    agent: AgentHandle,
    kind: u32,
    priority: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    flags: u64,
    queue: *mut *mut QueueHead,
) -> Status {
    let Some((originals, plain)) = originals().and_then(|o| Some((o, o.queue_functions.acquire?)))
    else {
        return Status::ERROR;
    };
    if queue.is_null() || kind > QUEUE_TYPE_SINGLE {
        // SAFETY: the program's arguments, which are refused.
        return unsafe { plain(agent, kind, priority, callback, data, flags, queue) };
    }
    // SAFETY: the program's arguments, to functions of these signatures; a call that succeeded has written the queue's
    // address.
    create_traced(originals, agent, kind, |how| unsafe {
        let status = match how {
            How::Plain => plain(agent, kind, priority, callback, data, flags, queue),
            How::Intercept => {
                let unknown = u32::MAX;
                intercept_create(
                    agent,
                    COUNTED_SIZE,
                    kind,
                    callback,
                    data,
                    unknown,
                    unknown,
                    queue,
                )
            }
        };
        let made = created(status, queue)?;
        if let How::Intercept = how {
            // Without its priority the queue works all the same.
            (originals.amd.hsa_amd_queue_set_priority)(made, priority);
        }
        Ok(made)
    })
    .err()
    .unwrap_or(Status::SUCCESS)
}

/// `hsa_amd_counted_queue_release`.
unsafe extern "C" fn counted_queue_release(queue: *mut QueueHead) -> Status {
    let Some((_, plain)) = originals().and_then(|o| Some((o, o.queue_functions.release?))) else {
        return Status::ERROR;
    };
    let is_traced = guarded(Cost::Dispatches, false, || {
        captures()
            .as_ref()
            .is_some_and(|captures| captures.contains_key(&(queue as usize)))
    });
    // SAFETY: the program's argument.
    unsafe {
        match is_traced {
            true => queue_destroy(queue),
            false => plain(queue),
        }
    }
}

/// Makes an intercept queue, ours, or one of another tool's, whose handler then gets the packets first.
unsafe extern "C" fn intercept_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    private: u32,
    group: u32,
    queue: *mut *mut QueueHead,
) -> Status {
    let Some(originals) = originals() else {
        return Status::ERROR;
    };
    // SAFETY: the arguments of the call.
    let status = unsafe {
        (originals.amd.hsa_amd_queue_intercept_create)(
            agent, size, kind, callback, data, private, group, queue,
        )
    };
    // Another tool may have led a call for a queue of devprof's own here.
    if status == Status::SUCCESS && instance::request(Request::IsOwnQueue {}) == 0 {
        SAW_QUEUE.store(true, Ordering::Relaxed);
        // SAFETY: the call succeeded, so it has written the queue's address.
        let queue = unsafe { *queue };
        instance::request(Request::QueueCreated {
            queue: queue as u64,
            single: kind == QUEUE_TYPE_SINGLE,
        });
        // SAFETY: a new intercept queue.
        if let Err(refused) = unsafe { take_up(originals, agent, queue) } {
            report::lost(format_args!(
                "the trace misses the dispatches of a queue: hsa_amd_queue_intercept_register failed: {refused:?}"
            ));
        }
    }
    status
}

/// Whether a tool that ROCr loaded before devprof makes the queues.
fn another_makes_queues() -> bool {
    there().is_ok_and(|api| {
        !super::tool::makes_queues_in_the_library_of(api.hsa_agent_get_info as *const c_void)
    })
}

/// Has a queue traced; as an error what HSA says where it is no intercept queue.
///
/// # Safety
/// `queue` is a new queue of `agent`, on which nothing was written yet.
unsafe fn take_up(
    originals: &Originals,
    agent: AgentHandle,
    queue: *mut QueueHead,
) -> Result<(), Status> {
    guarded(Cost::Dispatches, Err(Status::ERROR), || {
        let capture = None;
        let captured = Box::into_raw(Box::new(Captured { capture, queue }));
        // SAFETY: the box lives as long as the queue.
        let status = unsafe {
            (originals.amd.hsa_amd_queue_intercept_register)(queue, packets, captured.cast())
        };
        if status != Status::SUCCESS {
            // SAFETY: the handler was not taken.
            drop(unsafe { Box::from_raw(captured) });
            return Err(status);
        }
        captures()
            .get_or_insert_default()
            .insert(queue as usize, CapturePointer(captured));
        TAKEN_UP.set(queue as usize);
        // SAFETY: a queue of HSA's.
        let profiling = unsafe { (originals.amd.hsa_amd_profiling_set_profiler_enabled)(queue, 1) };
        if profiling != Status::SUCCESS {
            report::lost(format_args!(
                "the trace may have no times for a queue: hsa_amd_profiling_set_profiler_enabled failed: {profiling:?}"
            ));
        }
        // SAFETY: the queue is alive, and its handler is not called before something is written to it; an intercept
        // queue's doorbell is watched until `queue_destroy`.
        unsafe {
            (*captured).capture = trace::queue_made(agent, queue as usize, (*queue).size);
            if (*captured).capture.is_some() {
                doorbell::add(queue);
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn queue_destroy(queue: *mut QueueHead) -> Status {
    let Some(originals) = originals() else {
        return Status::ERROR;
    };
    if instance::request(Request::IsOwnQueue {}) == 0 {
        guarded(Cost::Dispatches, (), || cooperative::released(queue));
    }
    // Taken out first: the address may be another queue's as soon as this one is gone.
    let capture = guarded(Cost::Dispatches, None, || {
        captures()
            .as_mut()
            .and_then(|captures| captures.remove(&(queue as usize)))
    });
    if capture.is_some() {
        // SAFETY: the queue has a capture, so it is an intercept queue and alive.
        guarded(Cost::Dispatches, (), || unsafe { doorbell::remove(queue) });
    }
    // SAFETY: the program's argument.
    let status = unsafe { (originals.core.hsa_queue_destroy)(queue) };
    guarded(Cost::Dispatches, (), || {
        let Some(CapturePointer(capture)) = capture else {
            return;
        };
        if status == Status::SUCCESS {
            // SAFETY: made by `take_up`; the queue that used it is gone.
            let captured = *unsafe { Box::from_raw(capture) };
            if let Some(capture) = captured.capture {
                trace::queue_gone(queue as usize, capture);
            }
        } else {
            captures()
                .get_or_insert_default()
                .insert(queue as usize, CapturePointer(capture));
        }
    });
    status
}

/// A signal is about to be destroyed: its address may be another one's next.
unsafe extern "C" fn signal_destroy(signal: SignalHandle) -> Status {
    let Some(originals) = originals() else {
        return Status::ERROR;
    };
    guarded(Cost::Dispatches, (), || trace::signal_destroyed(signal));
    // SAFETY: the program's argument.
    unsafe { (originals.core.hsa_signal_destroy)(signal) }
}

/// HSA is down, and all queues with it. What they used is left, for its threads may be on their way out of a handler.
pub fn forget_queues() {
    *captures() = None;
    cooperative::forget();
    doorbell::remove_all();
}

/// Functions that reserve places for packets: the thread that calls is the one that writes them.
macro_rules! add_write_index {
    ($($name:ident = $function:ident,)*) => {$(
        unsafe extern "C" fn $name(queue: *const QueueHead, count: u64) -> u64 {
            let Some(originals) = originals() else {
                return 0;
            };
            // SAFETY: the program's arguments, to the function that it called.
            let first = unsafe { (originals.core.$function)(queue, count) };
            guarded(Cost::Dispatches, (), || writers::reserved(queue as usize, first, count));
            first
        }
    )*};
}

add_write_index! {
    add_write_index_scacq_screl = hsa_queue_add_write_index_scacq_screl,
    add_write_index_scacquire = hsa_queue_add_write_index_scacquire,
    add_write_index_relaxed = hsa_queue_add_write_index_relaxed,
    add_write_index_screlease = hsa_queue_add_write_index_screlease,
}

unsafe extern "C" fn signal_store_relaxed(signal: SignalHandle, value: SignalValue) {
    if let Some(originals) = originals() {
        // SAFETY: the program's arguments, to the function that it called.
        unsafe { doorbell::store(signal, value, originals.core.hsa_signal_store_relaxed) };
    }
}

unsafe extern "C" fn signal_store_screlease(signal: SignalHandle, value: SignalValue) {
    if let Some(originals) = originals() {
        // SAFETY: the program's arguments, to the function that it called.
        unsafe { doorbell::store(signal, value, originals.core.hsa_signal_store_screlease) };
    }
}

/// Some doorbell keeps packets back.
pub fn doorbells_are_held() -> bool {
    doorbell::are_held()
}

/// Hands on the packets that ROCr could not take at once. Whether there are more.
pub fn pump_doorbells() -> bool {
    originals().is_some_and(|originals| doorbell::pump(originals.core.hsa_signal_store_screlease))
}

/// A traced queue's times stay on.
unsafe extern "C" fn set_profiler_enabled(queue: *mut QueueHead, enable: i32) -> Status {
    let Some(originals) = originals() else {
        return Status::ERROR;
    };
    let traced = guarded(Cost::Dispatches, false, || {
        captures()
            .as_ref()
            .is_some_and(|captures| captures.contains_key(&(queue as usize)))
    });
    let enable = if traced { 1 } else { enable };
    // SAFETY: the program's arguments, but for the times that stay on.
    unsafe { (originals.amd.hsa_amd_profiling_set_profiler_enabled)(queue, enable) }
}

/// The program's own completion signal was completed by a barrier packet: its kernel's times are elsewhere.
unsafe extern "C" fn get_dispatch_time(
    agent: AgentHandle,
    signal: SignalHandle,
    time: *mut DispatchTime,
) -> Status {
    let Some(originals) = originals() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments.
    let status =
        unsafe { (originals.amd.hsa_amd_profiling_get_dispatch_time)(agent, signal, time) };
    if status == Status::SUCCESS
        && let Some(kernel) = guarded(Cost::Dispatches, None, || trace::dispatch_time(signal))
    {
        // SAFETY: the call succeeded, so `time` may be written.
        unsafe { time.write(kernel) };
    }
    status
}

/// Gets what a program has written to an intercept queue (`hsa_amd_queue_intercept_handler`).
unsafe extern "C" fn packets(
    packets: *const c_void,
    count: u64,
    index: u64,
    data: *mut c_void,
    writer: PacketWriter,
) {
    let out = guarded(Cost::Dispatches, None, || {
        // SAFETY: the box that `take_up` registered; ROCr calls a queue's handlers on one thread at a time and
        // not after the queue was destroyed.
        let Captured { capture, queue } = unsafe { &mut *data.cast::<Captured>() };
        let capture = capture.as_mut()?;
        let batch = (0..count).map(|n| {
            // SAFETY: `count` packets of 64 bytes (hsa_api_trace.h); another tool's need not be aligned.
            let mut packet = unsafe { packets.cast::<Packet>().add(n as usize).read_unaligned() };
            if packet[0] as u8 == doorbell::INVALID as u8 {
                // SAFETY: as above, the queue is alive.
                let kept = unsafe { doorbell::header_kept_back(*queue, index + n) };
                packet[0] = packet[0] & !0xffff | u64::from(kept.unwrap_or(packet[0] as u16));
            }
            packet
        });
        let out = capture.take(index, batch);
        Some((out.as_ptr().cast(), out.len() as u64))
    });
    // Untraced, or after a fault of ours: what came in.
    let (packets, count) = out.unwrap_or((packets, count));
    // SAFETY: packets that stay until the next call of this handler.
    unsafe { writer(packets, count) };
}
