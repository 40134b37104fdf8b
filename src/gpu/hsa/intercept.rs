//! The hooks that a trace puts into ROCr's API tables: they create the program's queues as intercept queues, and report
//! packets, signals and times. Mirrors `hsa/hsa_api_trace.h`.

use super::api::loaded_api;
use super::cooperative;
use super::queue_functions::Hooks;
use super::saved_api_table::{SavedTables, saved};
use super::tables::tables;
use super::{doorbell, query, tool_hooks};
use crate::gpu::events::{Event, Packet, PacketHandler, Source, report};
use crate::gpu::runtime::AgentId;
use crate::support::diagnostics;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::sync::lock;
use hsa_abi::newer::{HSA_AMD_QUEUE_ENGINE_COMPUTE, QueueCreateDesc};
use hsa_abi::{
    AgentHandle, ApiPrefix, DispatchTime, HSA_QUEUE_TYPE_COOPERATIVE, HSA_QUEUE_TYPE_SINGLE,
    PacketWriter, Queue, QueueErrorCallback, SignalHandle, SignalValue, Status, function,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The intercept queues, by their addresses.
static QUEUES: Mutex<Option<HashMap<usize, QueuePointer>>> = Mutex::new(None);

/// The program has created a queue on a GPU, traced or not.
static SAW_QUEUE: AtomicBool = AtomicBool::new(false);

/// Whether the program has created a queue on a GPU.
pub fn saw_queue() -> bool {
    SAW_QUEUE.load(Ordering::Relaxed)
}

thread_local! {
    /// The address of the last queue whose packets this thread has registered a handler for.
    static REGISTERED: Cell<usize> = const { Cell::new(0) };
}

struct QueuePointer(*mut InterceptQueue);

/// What ROCr passes to the handler of a queue's packets.
struct InterceptQueue {
    /// `None`: packets pass unchanged.
    handler: Option<Box<dyn PacketHandler>>,
    queue: *const Queue,
    /// The packets of a batch.
    batch: Vec<Packet>,
}

/// Packets that a batch may have without an allocation.
const BATCH: usize = 512;

// SAFETY: a box that ROCr's handler uses, on one thread at a time, until its queue is destroyed. Only then is the box
// dropped.
unsafe impl Send for QueuePointer {}

fn queues() -> MutexGuard<'static, Option<HashMap<usize, QueuePointer>>> {
    lock(&QUEUES)
}

/// Whether devprof has made a queue an intercept queue.
fn is_intercepted(queue: *mut Queue) -> bool {
    guarded(Cost::Dispatches, false, || {
        let queues = queues();
        let queues = queues.as_ref();
        queues.is_some_and(|queues| queues.contains_key(&(queue as usize)))
    })
}

/// Whether this thread is about to create or destroy a queue of devprof's own.
fn is_own_queue() -> bool {
    let mut is_own = false;
    report(Event::QueueCreating {
        is_own: &mut is_own,
    });
    is_own
}

/// Installs the hooks.
///
/// # Safety
/// As [`super::saved_api_table::save`], which was called before.
pub unsafe fn install(table: *mut ApiPrefix) {
    // SAFETY: the caller's promise.
    let Some((core, amd)) = (unsafe { tables(table) }) else {
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
    unsafe { tool_hooks::slots().replace(amd, hooks) };
}

unsafe extern "C" fn queue_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    private: u32,
    group: u32,
    queue: *mut *mut Queue,
) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to functions of the same signature (hsa_api_trace.h).
    let by = |create: function::hsa_queue_create| unsafe {
        create(agent, size, kind, callback, data, private, group, queue)
    };
    // SAFETY: a call that succeeded has written the queue's address.
    let made = |status| unsafe { created(status, queue) };
    create_traced(saved, agent, kind, |how| match how {
        How::Plain => made(by(saved.core.hsa_queue_create)),
        How::Intercept => made(by(intercept_create)),
    })
    .err()
    .unwrap_or(Status::SUCCESS)
}

/// What a call that creates a queue gives.
///
/// # Safety
/// `queue` was written if the status is success.
unsafe fn created(status: Status, queue: *mut *mut Queue) -> Result<*mut Queue, Status> {
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
    saved: &SavedTables,
    agent: AgentHandle,
    kind: u32,
    mut create: impl FnMut(How) -> Result<*mut Queue, Status>,
) -> Result<*mut Queue, Status> {
    let is_gpu = || {
        loaded_api()
            .and_then(|api| query::is_gpu(api, agent))
            .unwrap_or(false)
    };
    if is_own_queue() || !guarded(Cost::Dispatches, false, is_gpu) {
        return create(How::Plain);
    }
    SAW_QUEUE.store(true, Ordering::Relaxed);
    if kind == HSA_QUEUE_TYPE_COOPERATIVE {
        let queue = create(How::Plain)?;
        guarded(Cost::Dispatches, (), || cooperative::acquired(queue));
        return Ok(queue);
    }
    if guarded(Cost::Dispatches, false, another_tool_creates_queues) {
        REGISTERED.set(0);
        let queue = create(How::Plain)?;
        // That tool may have called `intercept_create` through ROCr's table.
        // SAFETY: a new queue.
        if REGISTERED.get() == queue as usize || unsafe { register(saved, agent, queue) }.is_ok() {
            return Ok(queue);
        }
        // That tool only looks on, and the queue is no intercept queue.
        // SAFETY: nobody else knows the queue yet.
        unsafe { (saved.core.hsa_queue_destroy)(queue) };
    }
    if let Ok(queue) = create(How::Intercept) {
        return Ok(queue);
    }
    let queue = create(How::Plain)?;
    // The program would get its queue without devprof.
    diagnostics::lost(
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
    let Some((saved, plain)) = saved().and_then(|o| Some((o, o.queue_functions.create?))) else {
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
        let created = match engine == HSA_AMD_QUEUE_ENGINE_COMPUTE && version == 1 {
            true => create_traced(saved, agent, kind, |how| match how {
                How::Plain => plain(),
                // SAFETY: one of the program's descriptors.
                How::Intercept => unsafe { intercept_as(saved, agent, desc) },
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
    saved: &SavedTables,
    agent: AgentHandle,
    desc: *mut QueueCreateDesc,
) -> Result<*mut Queue, Status> {
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
        let mut set = (saved.amd.hsa_amd_queue_set_priority)(queue, wanted.priority);
        let is_error = |status: Status| status.0 >= Status::ERROR.0;
        if !is_error(set) && !wanted.cu_mask.is_null() && wanted.cu_mask_count > 0 {
            // It may be reduced (HSA_STATUS_CU_MASK_REDUCED), which is no error.
            let set_mask = saved.amd.hsa_amd_queue_cu_set_mask;
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
    queue: *mut *mut Queue,
) -> Status {
    let Some((saved, plain)) = saved().and_then(|o| Some((o, o.queue_functions.acquire?))) else {
        return Status::ERROR;
    };
    if queue.is_null() || kind > HSA_QUEUE_TYPE_SINGLE {
        // SAFETY: the program's arguments, which are refused.
        return unsafe { plain(agent, kind, priority, callback, data, flags, queue) };
    }
    // SAFETY: the program's arguments, to functions of these signatures; a call that succeeded has written the queue's
    // address.
    create_traced(saved, agent, kind, |how| unsafe {
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
            (saved.amd.hsa_amd_queue_set_priority)(made, priority);
        }
        Ok(made)
    })
    .err()
    .unwrap_or(Status::SUCCESS)
}

/// `hsa_amd_counted_queue_release`.
unsafe extern "C" fn counted_queue_release(queue: *mut Queue) -> Status {
    let Some((_, plain)) = saved().and_then(|o| Some((o, o.queue_functions.release?))) else {
        return Status::ERROR;
    };
    let is_intercepted = is_intercepted(queue);
    // SAFETY: the program's argument.
    unsafe {
        match is_intercepted {
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
    queue: *mut *mut Queue,
) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    // SAFETY: the arguments of the call.
    let status = unsafe {
        (saved.amd.hsa_amd_queue_intercept_create)(
            agent, size, kind, callback, data, private, group, queue,
        )
    };
    // Another tool may have led a call for a queue of devprof's own here.
    if status == Status::SUCCESS && !is_own_queue() {
        SAW_QUEUE.store(true, Ordering::Relaxed);
        // SAFETY: the call succeeded, so it has written the queue's address.
        let queue = unsafe { *queue };
        report(Event::QueueCreated {
            source: Source::Tool,
            queue: queue as usize,
            is_single_producer: kind == HSA_QUEUE_TYPE_SINGLE,
        });
        // SAFETY: a new intercept queue.
        if let Err(refused) = unsafe { register(saved, agent, queue) } {
            diagnostics::lost(format_args!(
                "the trace misses the dispatches of a queue: hsa_amd_queue_intercept_register failed: {refused:?}"
            ));
        }
    }
    status
}

/// Whether a tool that ROCr loaded before devprof makes the queues.
fn another_tool_creates_queues() -> bool {
    loaded_api()
        .is_ok_and(|api| !tool_hooks::rocr_creates_queues(api.hsa_agent_get_info as *const c_void))
}

/// Has a queue traced; as an error what HSA says where it is no intercept queue.
///
/// # Safety
/// `queue` is a new queue of `agent`, on which nothing was written yet.
unsafe fn register(
    saved: &SavedTables,
    agent: AgentHandle,
    queue: *mut Queue,
) -> Result<(), Status> {
    guarded(Cost::Dispatches, Err(Status::ERROR), || {
        let data = Box::into_raw(Box::new(InterceptQueue {
            handler: None,
            queue,
            batch: Vec::with_capacity(BATCH),
        }));
        // SAFETY: the box lives as long as the queue.
        let status =
            unsafe { (saved.amd.hsa_amd_queue_intercept_register)(queue, packets, data.cast()) };
        if status != Status::SUCCESS {
            // SAFETY: the handler was not taken.
            drop(unsafe { Box::from_raw(data) });
            return Err(status);
        }
        queues()
            .get_or_insert_default()
            .insert(queue as usize, QueuePointer(data));
        REGISTERED.set(queue as usize);
        // SAFETY: a queue of HSA's.
        let profiling = unsafe { (saved.amd.hsa_amd_profiling_set_profiler_enabled)(queue, 1) };
        if profiling != Status::SUCCESS {
            diagnostics::lost(format_args!(
                "the trace may have no times for a queue: hsa_amd_profiling_set_profiler_enabled failed: {profiling:?}"
            ));
        }
        // SAFETY: the queue is alive, and its handler is not called before something is written to it; an intercept
        // queue's doorbell is watched until `queue_destroy`.
        unsafe {
            report(Event::InterceptQueueCreated {
                agent: AgentId(agent.0),
                queue: queue as usize,
                size: (*queue).size,
                handler: &mut (*data).handler,
            });
            if (*data).handler.is_some() {
                doorbell::add(queue);
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn queue_destroy(queue: *mut Queue) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    if !is_own_queue() {
        guarded(Cost::Dispatches, (), || cooperative::released(queue));
    }
    // Removed first: another queue may have the address as soon as this one is destroyed.
    let data = guarded(Cost::Dispatches, None, || {
        let mut queues = queues();
        queues.as_mut()?.remove(&(queue as usize))
    });
    if data.is_some() {
        // SAFETY: an intercept queue, not yet destroyed.
        guarded(Cost::Dispatches, (), || unsafe { doorbell::remove(queue) });
    }
    // SAFETY: the program's argument.
    let status = unsafe { (saved.core.hsa_queue_destroy)(queue) };
    guarded(Cost::Dispatches, (), || {
        let Some(QueuePointer(data)) = data else {
            return;
        };
        if status == Status::SUCCESS {
            // SAFETY: made by `register`; the queue that used it was destroyed.
            let data = *unsafe { Box::from_raw(data) };
            if let Some(handler) = data.handler {
                handler.close();
            }
        } else {
            queues()
                .get_or_insert_default()
                .insert(queue as usize, QueuePointer(data));
        }
    });
    status
}

/// A signal is about to be destroyed: its address may be another one's next.
unsafe extern "C" fn signal_destroy(signal: SignalHandle) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    report(Event::SignalDestroying { signal: signal.0 });
    // SAFETY: the program's argument.
    unsafe { (saved.core.hsa_signal_destroy)(signal) }
}

/// HSA is down, and all queues with it. What they used is left, for its threads may be on their way out of a handler.
pub fn forget_queues() {
    *queues() = None;
    cooperative::forget();
    doorbell::remove_all();
}

/// Functions that reserve places for packets: the thread that calls is the one that writes them.
macro_rules! add_write_index {
    ($($name:ident = $function:ident,)*) => {$(
        unsafe extern "C" fn $name(queue: *const Queue, count: u64) -> u64 {
            let Some(saved) = saved() else {
                return 0;
            };
            // SAFETY: the program's arguments, to the function that it called.
            let first = unsafe { (saved.core.$function)(queue, count) };
            report(Event::SlotsReserved { queue: queue as usize, first, count });
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
    if let Some(saved) = saved() {
        // SAFETY: the program's arguments, to the function that it called.
        unsafe { doorbell::store(signal, value, saved.core.hsa_signal_store_relaxed) };
    }
}

unsafe extern "C" fn signal_store_screlease(signal: SignalHandle, value: SignalValue) {
    if let Some(saved) = saved() {
        // SAFETY: the program's arguments, to the function that it called.
        unsafe { doorbell::store(signal, value, saved.core.hsa_signal_store_screlease) };
    }
}

/// Some doorbell keeps packets back.
pub fn doorbells_are_held() -> bool {
    doorbell::are_held()
}

/// Hands on the packets that ROCr could not take at once. Whether there are more.
pub fn pump_doorbells() -> bool {
    saved().is_some_and(|saved| doorbell::pump(saved.core.hsa_signal_store_screlease))
}

/// A traced queue's times stay on.
unsafe extern "C" fn set_profiler_enabled(queue: *mut Queue, enable: i32) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    let enable = if is_intercepted(queue) { 1 } else { enable };
    // SAFETY: the program's arguments, but for the times that stay on.
    unsafe { (saved.amd.hsa_amd_profiling_set_profiler_enabled)(queue, enable) }
}

/// The program's own completion signal was completed by a barrier packet: its kernel's times are elsewhere.
unsafe extern "C" fn get_dispatch_time(
    agent: AgentHandle,
    signal: SignalHandle,
    time: *mut DispatchTime,
) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments.
    let status = unsafe { (saved.amd.hsa_amd_profiling_get_dispatch_time)(agent, signal, time) };
    let mut kernel = None;
    if status == Status::SUCCESS {
        report(Event::DispatchTimeRead {
            signal: signal.0,
            time: &mut kernel,
        });
    }
    if let Some((start, end)) = kernel {
        // SAFETY: the call succeeded, so `time` may be written.
        unsafe { time.write(DispatchTime { start, end }) };
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
        // SAFETY: the box that `register` has passed; ROCr calls a queue's handlers on one thread at a time, and not
        // after the queue was destroyed.
        let InterceptQueue {
            handler,
            queue,
            batch,
        } = unsafe { &mut *data.cast::<InterceptQueue>() };
        let handler = handler.as_mut()?;
        batch.clear();
        batch.extend((0..count).map(|n| {
            // SAFETY: `count` packets of 64 bytes (hsa_api_trace.h); another tool's need not be aligned.
            let mut packet = unsafe { packets.cast::<Packet>().add(n as usize).read_unaligned() };
            if packet[0] as u8 == doorbell::INVALID as u8 {
                // SAFETY: as above, the queue is alive.
                let kept = unsafe { doorbell::header_kept_back(*queue, index + n) };
                packet[0] = packet[0] & !0xffff | u64::from(kept.unwrap_or(packet[0] as u16));
            }
            packet
        }));
        let out = handler.take(index, batch);
        Some((out.as_ptr().cast(), out.len() as u64))
    });
    // Without a handler, and after an internal error: the packets as they are.
    let (packets, count) = out.unwrap_or((packets, count));
    // SAFETY: packets that stay until the next call of this handler.
    unsafe { writer(packets, count) };
}
