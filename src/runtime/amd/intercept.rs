//! Creates the program's queues as intercept queues and passes their packets to handlers. Mirrors
//! `hsa/hsa_api_trace.h`.

use super::api::loaded_api;
use super::cooperative;
use super::queue_request::{QueueRequest, created, queue_create_function, status};
use super::tables::{SavedTables, saved};
use super::{doorbell, observed_calls, query, tool_hooks};
use crate::gpu::observers::{self, Packet, PacketHandler, Source, observation_switches};
use crate::gpu::runtime::{AgentId, IdMap, id_map};
use crate::support::diagnostics;
use crate::support::panic_guard::{Cost, guarded, guarded_hot};
use crate::support::sync::lock;
use hsa_abi::newer::{HSA_AMD_QUEUE_ENGINE_COMPUTE, QueueCreateDesc};
use hsa_abi::*;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The intercept queues, by address.
static QUEUES: Mutex<IdMap<usize, QueuePointer>> = Mutex::new(id_map());

/// The program has created a queue on a GPU, traced or not.
static SAW_QUEUE: AtomicBool = AtomicBool::new(false);
/// The program uses a GPU's queue although no queue was created.
static MISSED_QUEUES: AtomicBool = AtomicBool::new(false);

/// Whether the program has used queues without having created one by a function that devprof hooks.
pub fn missed_queues() -> bool {
    MISSED_QUEUES.load(Ordering::Relaxed)
}

/// The program reserves slots of a queue.
///
/// # Safety
/// The queue is not destroyed.
#[inline]
pub unsafe fn slots_reserved(queue: *const Queue) {
    // SAFETY: the caller's promise.
    let is_gpus = || unsafe { (*queue).features } & HSA_QUEUE_FEATURE_KERNEL_DISPATCH != 0;
    if !SAW_QUEUE.load(Ordering::Relaxed) && is_gpus() {
        MISSED_QUEUES.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    /// The address of the last queue for which this thread has registered a packet handler.
    static REGISTERED: Cell<usize> = const { Cell::new(0) };
}

struct QueuePointer(*mut InterceptQueue);

/// The data that ROCr passes to [`handle_packets`].
struct InterceptQueue {
    /// `None`: packets are passed on unchanged.
    handler: Option<Box<dyn PacketHandler>>,
    queue: *const Queue,
    pass: Option<Pass>,
}

/// Packets that need no handler.
#[derive(Clone, Copy)]
struct Pass {
    /// [`observation_switches`] when the handler was found idle. After another switch, there may be packets whose slots
    /// were reserved while launches were observed, even if the handler is idle again.
    switches: u64,
    /// The index of the first one.
    first: u64,
}

// SAFETY: `handle_packets` uses the box on one thread at a time until its queue is destroyed; only then is it dropped.
unsafe impl Send for QueuePointer {}

/// Whether devprof has registered a handler for the queue's packets.
pub fn is_intercepted(queue: *mut Queue) -> bool {
    guarded(Cost::Dispatches, false, || {
        lock(&QUEUES).contains_key(&(queue as usize))
    })
}

queue_create_function!(
    /// `hsa_queue_create`.
    pub fn queue_create = create_queue
);

/// # Safety
/// As for `hsa_queue_create`.
unsafe fn create_queue(request: &QueueRequest) -> Result<*mut Queue, Status> {
    let saved = saved().ok_or(Status::ERROR)?;
    create_traced(saved, request.agent, request.kind, |mode| {
        // SAFETY: the program's arguments, passed to functions of the same type (hsa_api_trace.h).
        unsafe {
            match mode {
                QueueMode::Plain => request.send(saved.core.hsa_queue_create),
                QueueMode::Intercept => intercept(request),
            }
        }
    })
}

#[derive(Clone, Copy)]
enum QueueMode {
    /// The queue that the program has requested.
    Plain,
    Intercept,
}

/// Creates a queue for the program with `create`, as an intercept queue if possible.
fn create_traced(
    saved: &SavedTables,
    agent: AgentHandle,
    kind: u32,
    mut create: impl FnMut(QueueMode) -> Result<*mut Queue, Status>,
) -> Result<*mut Queue, Status> {
    let is_gpu = || {
        loaded_api()
            .and_then(|api| query::is_gpu(api, agent))
            .unwrap_or(false)
    };
    if !guarded(Cost::Dispatches, false, is_gpu) {
        return create(QueueMode::Plain);
    }
    SAW_QUEUE.store(true, Ordering::Relaxed);
    if kind == HSA_QUEUE_TYPE_COOPERATIVE {
        let queue = create(QueueMode::Plain)?;
        guarded(Cost::Dispatches, (), || cooperative::acquired(queue));
        return Ok(queue);
    }
    if guarded(Cost::Dispatches, false, another_tool_creates_queues) {
        REGISTERED.set(0);
        let queue = create(QueueMode::Plain)?;
        // The tool may have called `intercept_create` through ROCr's table, which has registered the queue.
        // SAFETY: a new queue.
        if REGISTERED.get() == queue as usize || unsafe { register(saved, agent, queue) }.is_ok() {
            return Ok(queue);
        }
        // The tool does not create intercept queues.
        // SAFETY: nothing else refers to the queue yet.
        unsafe { (saved.core.hsa_queue_destroy)(queue) };
    }
    if let Ok(queue) = create(QueueMode::Intercept) {
        return Ok(queue);
    }
    // Without devprof, the program would get this queue.
    let queue = create(QueueMode::Plain)?;
    diagnostics::lost(
        "the trace misses the dispatches of a queue: hsa_amd_queue_intercept_create failed",
    );
    Ok(queue)
}

/// `hsa_amd_queue_create`.
pub unsafe extern "C" fn amd_queue_create(
    agent: AgentHandle,
    descs: *mut QueueCreateDesc,
    count: u32,
) -> Status {
    let Some((saved, plain)) =
        saved().and_then(|saved| Some((saved, saved.queue_functions.create?)))
    else {
        return Status::ERROR;
    };
    if descs.is_null() {
        // SAFETY: the program's arguments.
        return unsafe { plain(agent, descs, count) };
    }
    let mut first_error = Status::SUCCESS;
    for n in 0..count as usize {
        // SAFETY: the program passes `count` descriptors.
        let (desc, engine, version, kind) = unsafe {
            let desc = descs.add(n);
            (desc, (*desc).engine, (*desc).version, (*desc).kind)
        };
        let plain = || {
            // SAFETY: one of the program's descriptors, passed to the function that the program called. On success, the
            // function has set `queue`.
            unsafe { created(plain(agent, desc, 1), &raw const (*desc).queue) }
        };
        let queue = if engine == HSA_AMD_QUEUE_ENGINE_COMPUTE && version == 1 {
            create_traced(saved, agent, kind, |mode| match mode {
                QueueMode::Plain => plain(),
                // SAFETY: one of the program's descriptors.
                QueueMode::Intercept => unsafe { intercept_create_from(saved, agent, desc) },
            })
        } else {
            plain()
        };
        if let (Err(error), Status::SUCCESS) = (queue, first_error) {
            first_error = error;
        }
    }
    first_error
}

/// Creates an intercept queue with the properties of a descriptor, except for the memory of its ring.
///
/// # Safety
/// As for `hsa_amd_queue_create` with one descriptor.
unsafe fn intercept_create_from(
    saved: &SavedTables,
    agent: AgentHandle,
    desc: *mut QueueCreateDesc,
) -> Result<*mut Queue, Status> {
    let mut queue = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        let requested = &*desc;
        let queue = intercept(&QueueRequest {
            agent,
            size: requested.size / PACKET_SIZE,
            kind: requested.kind,
            callback: requested.callback,
            data: requested.data,
            private: requested.private_segment_size,
            group: u32::MAX,
            queue: &raw mut queue,
        })?;
        let mut status = (saved.amd.hsa_amd_queue_set_priority)(queue, requested.priority);
        let is_error = |status: Status| status.0 >= Status::ERROR.0;
        if !is_error(status) && !requested.cu_mask.is_null() && requested.cu_mask_count > 0 {
            // HSA_STATUS_CU_MASK_REDUCED is not an error.
            let set_mask = saved.amd.hsa_amd_queue_cu_set_mask;
            status = set_mask(queue, requested.cu_mask_count, requested.cu_mask);
        }
        if is_error(status) {
            queue_destroy(queue);
            return Err(status);
        }
        (*desc).queue = queue;
        Ok(queue)
    }
}

/// Bytes.
const PACKET_SIZE: u32 = 64;
/// The size of an intercept queue that replaces a counted queue, packets.
const COUNTED_QUEUE_SIZE: u32 = 16384;

/// `hsa_amd_counted_queue_acquire`. Counted queues share a ring; a traced program gets a separate queue instead.
pub unsafe extern "C" fn counted_queue_acquire(
    agent: AgentHandle,
    kind: u32,
    priority: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    flags: u64,
    queue: *mut *mut Queue,
) -> Status {
    let Some((saved, plain)) =
        saved().and_then(|saved| Some((saved, saved.queue_functions.acquire?)))
    else {
        return Status::ERROR;
    };
    if queue.is_null() || kind > HSA_QUEUE_TYPE_SINGLE {
        // SAFETY: the program's arguments; the function returns an error.
        return unsafe { plain(agent, kind, priority, callback, data, flags, queue) };
    }
    // SAFETY: the program's arguments, passed to functions of these types. On success, the function has written the
    // queue's address.
    status(create_traced(saved, agent, kind, |mode| unsafe {
        match mode {
            QueueMode::Plain => {
                let status = plain(agent, kind, priority, callback, data, flags, queue);
                created(status, queue)
            }
            QueueMode::Intercept => {
                let queue = intercept(&QueueRequest {
                    agent,
                    size: COUNTED_QUEUE_SIZE,
                    kind,
                    callback,
                    data,
                    private: u32::MAX,
                    group: u32::MAX,
                    queue,
                })?;
                // If this fails, the queue has the default priority.
                (saved.amd.hsa_amd_queue_set_priority)(queue, priority);
                Ok(queue)
            }
        }
    }))
}

/// `hsa_amd_counted_queue_release`.
pub unsafe extern "C" fn counted_queue_release(queue: *mut Queue) -> Status {
    let Some(plain) = saved().and_then(|saved| saved.queue_functions.release) else {
        return Status::ERROR;
    };
    let is_intercepted = is_intercepted(queue);
    // SAFETY: the program's argument.
    unsafe {
        if is_intercepted {
            queue_destroy(queue)
        } else {
            plain(queue)
        }
    }
}

queue_create_function!(
    /// `hsa_amd_queue_intercept_create`.
    pub fn intercept_create = intercept
);

/// Creates an intercept queue, for devprof or another tool. The handler of the other tool gets the packets first.
///
/// # Safety
/// As for `hsa_amd_queue_intercept_create`.
unsafe fn intercept(request: &QueueRequest) -> Result<*mut Queue, Status> {
    let saved = saved().ok_or(Status::ERROR)?;
    // SAFETY: the caller's promise.
    let queue = unsafe { request.send(saved.amd.hsa_amd_queue_intercept_create)? };
    SAW_QUEUE.store(true, Ordering::Relaxed);
    let is_single_producer = request.is_single_producer();
    observed_calls::queue_created(Source::Tool, queue, is_single_producer, request.callback);
    // SAFETY: a new intercept queue.
    if let Err(refused) = unsafe { register(saved, request.agent, queue) } {
        diagnostics::lost(format_args!(
            "the trace misses the dispatches of a queue: hsa_amd_queue_intercept_register failed: {refused:?}"
        ));
    }
    Ok(queue)
}

/// Whether a tool that ROCr loaded before devprof creates the queues.
fn another_tool_creates_queues() -> bool {
    loaded_api()
        .is_ok_and(|api| !tool_hooks::rocr_creates_queues(api.hsa_agent_get_info as *const c_void))
}

/// Registers the packet handler of a queue. Returns HSA's error if it is not an intercept queue.
///
/// # Safety
/// `queue` is a new queue of `agent` without packets.
unsafe fn register(
    saved: &SavedTables,
    agent: AgentHandle,
    queue: *mut Queue,
) -> Result<(), Status> {
    guarded(Cost::Dispatches, Err(Status::ERROR), || {
        let data = Box::into_raw(Box::new(InterceptQueue {
            handler: None,
            queue,
            pass: None,
        }));
        // SAFETY: the box is dropped after the queue was destroyed.
        let status = unsafe {
            (saved.amd.hsa_amd_queue_intercept_register)(queue, handle_packets, data.cast())
        };
        if status != Status::SUCCESS {
            // SAFETY: the handler was not registered.
            drop(unsafe { Box::from_raw(data) });
            return Err(status);
        }
        lock(&QUEUES).insert(queue as usize, QueuePointer(data));
        REGISTERED.set(queue as usize);
        // SAFETY: the new queue.
        let profiling = unsafe { (saved.amd.hsa_amd_profiling_set_profiler_enabled)(queue, 1) };
        if profiling != Status::SUCCESS {
            diagnostics::lost(format_args!(
                "the trace may have no times for a queue: hsa_amd_profiling_set_profiler_enabled failed: {profiling:?}"
            ));
        }
        // SAFETY: the queue exists, and its handler is not called before a packet is written to it. `queue_destroy`
        // removes the doorbell.
        unsafe {
            (*data).handler = observers::trace().and_then(|trace| {
                trace.queue_created(AgentId::Hsa(agent.0), queue as usize, (*queue).size)
            });
            if (*data).handler.is_some() {
                doorbell::add(queue);
            }
        }
        Ok(())
    })
}

/// `hsa_queue_destroy`.
pub unsafe extern "C" fn queue_destroy(queue: *mut Queue) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    guarded(Cost::Dispatches, (), || cooperative::released(queue));
    // Removed first: as soon as the queue is destroyed, another queue may get its address.
    let data = guarded(Cost::Dispatches, None, || {
        lock(&QUEUES).remove(&(queue as usize))
    });
    if data.is_some() {
        // SAFETY: an intercept queue that is not yet destroyed.
        guarded(Cost::Dispatches, (), || unsafe { doorbell::remove(queue) });
    }
    // SAFETY: the program's argument.
    let status = unsafe { (saved.core.hsa_queue_destroy)(queue) };
    guarded(Cost::Dispatches, (), || {
        let Some(QueuePointer(data)) = data else {
            return;
        };
        if status == Status::SUCCESS {
            // SAFETY: created by `register`; its queue was destroyed.
            let data = *unsafe { Box::from_raw(data) };
            if let Some(handler) = data.handler {
                handler.close();
            }
        } else {
            lock(&QUEUES).insert(queue as usize, QueuePointer(data));
        }
    });
    status
}

/// HSA was shut down, which destroyed all queues. The handlers' data is leaked: a thread of ROCr may still be returning
/// from a handler.
pub fn forget_queues() {
    lock(&QUEUES).clear();
    cooperative::forget();
    doorbell::remove_all();
}

/// Whether a packet of a batch has no header, because it was withheld while ROCr read the ring.
///
/// # Safety
/// There are `count` packets. They may be unaligned.
unsafe fn has_withheld_packet(packets: *const Packet, count: u64) -> bool {
    (0..count as usize).any(|n| {
        // SAFETY: the caller's promise.
        let header = unsafe { packets.add(n).cast::<u16>().read_unaligned() };
        header & 0xff == doorbell::INVALID
    })
}

/// Handles the packets that a program has written to an intercept queue (`hsa_amd_queue_intercept_handler`).
unsafe extern "C" fn handle_packets(
    packets: *const c_void,
    count: u64,
    index: u64,
    data: *mut c_void,
    writer: PacketWriter,
) {
    let out = guarded_hot(Cost::Dispatches, None, || {
        // SAFETY: the box of `register`. ROCr calls the handlers of a queue on one thread at a time, and never after
        // the queue was destroyed.
        let data = unsafe { &mut *data.cast::<InterceptQueue>() };
        let InterceptQueue {
            handler,
            queue,
            pass,
        } = data;
        let handler = handler.as_mut()?;
        if handler.is_idle() {
            let switches = observation_switches();
            let known = pass.filter(|pass| pass.switches == switches);
            let Pass { first, .. } = *pass.insert(known.unwrap_or_else(|| Pass {
                switches,
                // SAFETY: as above, the queue is not destroyed.
                first: unsafe { doorbell::indices(*queue).1 },
            }));
            // SAFETY: `count` packets of 64 bytes, as below.
            if index >= first && !unsafe { has_withheld_packet(packets.cast(), count) } {
                return None;
            }
        } else {
            *pass = None;
        }
        let mut batch = (0..count).map(|n| {
            // SAFETY: `count` packets of 64 bytes (hsa_api_trace.h); packets of another tool may be unaligned.
            let mut packet = unsafe { packets.cast::<Packet>().add(n as usize).read_unaligned() };
            if packet[0] as u8 == doorbell::INVALID as u8 {
                // SAFETY: as above, the queue is not destroyed.
                let header = unsafe { doorbell::withheld_header(*queue, index + n) };
                packet[0] = packet[0] & !0xffff | u64::from(header.unwrap_or(packet[0] as u16));
            }
            (index + n, packet)
        });
        let out = handler.take(&mut batch);
        Some((out.as_ptr().cast(), out.len() as u64))
    });
    // Without a handler, and after an internal error, the packets are passed on unchanged.
    let (packets, count) = out.unwrap_or((packets, count));
    // SAFETY: the packets stay valid until the next call of this handler.
    unsafe { writer(packets, count) };
}
