//! Queues: an `amd_queue_t`, a ring and a doorbell; the packets are the model's to do ([`gpu_model::queue`]).

use crate::abi::*;
use crate::agent;
use crate::cooperative;
use crate::counted;
use crate::intercept::{self, Interception};
use crate::l2::L2;
use crate::memory::Kind;
use crate::plan::{self, DispatchFault};
use crate::profiling;
use crate::runtime::{State, locked, put, status, with};
use crate::signal;
use crate::system;
use gpu_model::dispatch;
use gpu_model::exec::{Fault, clock_ticks};
use gpu_model::queue::{Completion, Error, Host, Info};
use std::ffi::c_void;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};
use std::sync::{Arc, Mutex};

/// Packets of the smallest and of the largest ring.
pub const LEAST_PACKETS: u32 = 64;
pub const MOST_PACKETS: u32 = 131_072;

const PACKET: usize = 64;
const LDS_APERTURE_HIGH: u32 = 0x4000_0000;
const SCRATCH_APERTURE_HIGH: u32 = 0x5000_0000;
const READ_INDEX_OFFSET: usize = std::mem::offset_of!(AmdQueue, read_dispatch_id);

impl AmdQueue {
    /// A queue without packets.
    pub fn new(hsa_queue: Queue) -> AmdQueue {
        AmdQueue {
            hsa_queue,
            caps: 0,
            reserved1: 0,
            shared: std::ptr::null_mut(),
            write_dispatch_id: AtomicU64::new(0),
            group_segment_aperture_base_hi: LDS_APERTURE_HIGH,
            private_segment_aperture_base_hi: SCRATCH_APERTURE_HIGH,
            reserved2: [0; 14],
            read_dispatch_id: AtomicU64::new(0),
            read_dispatch_id_field_base_byte_offset: READ_INDEX_OFFSET as u32,
            rest: [0; 539],
        }
    }
}

/// A queue as the runtime has it. The program's `hsa_queue_t` is its first field.
#[repr(C)]
pub struct Block {
    pub amd: AmdQueue,
    agent: usize,
    /// What does the packets.
    pub work: Mutex<Work>,
    /// Kernels' times are written to their completion signals.
    profiling: AtomicBool,
    /// The compute units that it may use, a bit for each; empty for all.
    cu_mask: Mutex<Vec<u32>>,
    /// Of an intercept queue: the one underneath, and the signal that is rung for it by others than the program.
    pub under: AtomicPtr<Block>,
    pub async_doorbell: AtomicU64,
    /// Of the one underneath: the one that the program has.
    pub owner: AtomicPtr<Block>,
}

/// What happens to a queue's packets.
pub enum Work {
    Model(gpu_model::queue::Queue),
    Intercept(Box<Interception>),
    Inactive,
}

/// The queues that there are, by address.
static ALL: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Who is told of new queues.
static NOTIFIER: Mutex<Option<(QueueNotifier, usize)>> = Mutex::new(None);

/// How many queues the program has.
pub fn live() -> u64 {
    locked(&ALL).len() as u64
}

/// Whether this is a queue.
///
/// # Safety
/// Always sound: the pointer is only compared.
pub unsafe fn check(queue: *const Queue) -> Result<(), Status> {
    if queue.is_null() {
        Err(HSA_STATUS_ERROR_INVALID_ARGUMENT)
    } else if locked(&ALL).contains(&(queue as usize)) {
        Ok(())
    } else {
        Err(HSA_STATUS_ERROR_INVALID_QUEUE)
    }
}

/// The queue behind a pointer of the program's: that queue, or the hardware queue of a counted one.
///
/// # Safety
/// Always sound: the pointer is only compared, unless it is that of a counted queue.
unsafe fn behind(queue: *mut Queue) -> Result<*mut Queue, Status> {
    // Not under the runtime's lock: `counted` takes that under its own.
    with(|_| Ok(()))?;
    // SAFETY: counted queues live until the program has released them.
    unsafe {
        if counted::is_counted(queue) {
            return Ok((*queue.cast::<AmdQueue>()).shared.cast());
        }
        check(queue).map(|()| queue)
    }
}

/// What the model tells of a queue.
struct QueueHost {
    queue: usize,
    executes: bool,
    agent: Agent,
    l2: Option<Arc<L2>>,
    callback: Option<(QueueError, usize)>,
}

impl Host for QueueHost {
    fn set_event(&self, _: u32) {
        signal::changed();
    }

    fn executes(&self) -> bool {
        self.executes
    }

    fn acquire(&self) {
        if let Some(l2) = &self.l2 {
            l2.invalidate();
        }
    }

    fn release(&self) {
        if let Some(l2) = &self.l2 {
            l2.write_back();
        }
    }

    fn completes(&self, mut ended: Completion, kernel: bool) -> Option<Completion> {
        if !kernel {
            return Some(ended);
        }
        let (mut lost, mut error, mut late) = (false, false, None);
        for fault in plan::dispatch_faults() {
            match fault {
                DispatchFault::Block(time) => {
                    std::thread::sleep(time);
                    ended.times = ended.times.map(|(start, _)| (start, clock_ticks()));
                }
                DispatchFault::Times(wrong) => {
                    ended.times = ended.times.map(|times| profiling::wrong(wrong, times));
                }
                DispatchFault::Drop => lost = true,
                DispatchFault::Error => error = true,
                DispatchFault::Late(time) => late = Some(time),
            }
        }
        if !self.block().profiling.load(Acquire) {
            ended.times = None;
        }
        if ended.signal == 0 || lost {
            return None;
        }
        if error {
            signal::fail(ended.signal, ended.times);
            return None;
        }
        match late {
            Some(time) => {
                signal::complete_later(ended.signal, ended.times, time);
                None
            }
            None => Some(ended),
        }
    }

    fn failed(&self, error: &Error) {
        eprintln!("hsa-sim: {error}");
        let (status, address) = match error {
            Error::Dispatch(dispatch::Error::Fault(place)) => match place.fault {
                Fault::Memory { address, .. } => (HSA_STATUS_ERROR_MEMORY_FAULT, Some(address)),
                Fault::Scratch { .. } | Fault::Lds { .. } | Fault::Alignment { .. } => {
                    (HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION, None)
                }
                Fault::Trap(_) => (HSA_STATUS_ERROR_EXCEPTION, None),
                _ => (HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION, None),
            },
            _ => (HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, None),
        };
        if address.is_some_and(|address| system::memory_fault(self.agent, address)) {
            return;
        }
        match self.callback {
            // SAFETY: the program gave the function for this queue.
            Some((callback, data)) => unsafe {
                let owner = self.block().owner.load(Acquire);
                let queue = if owner.is_null() {
                    self.queue as *mut Queue
                } else {
                    owner.cast()
                };
                callback(status, queue, data as *mut c_void);
            },
            // Nobody can be told, and nobody shall wait for ever.
            None => std::process::abort(),
        }
    }
}

impl QueueHost {
    fn block(&self) -> &Block {
        // SAFETY: the queue's block lives as long as the thread that does its packets.
        unsafe { &*(self.queue as *const Block) }
    }
}

/// What a queue is made of.
pub struct Request {
    pub agent: Agent,
    pub size: u32,
    pub kind: u32,
    pub callback: Option<QueueError>,
    pub data: *mut c_void,
    /// Its number; `None`: a new one.
    pub id: Option<u64>,
}

/// Makes a queue whose packets `work` does.
pub fn create(
    request: &Request,
    work: impl FnOnce(&mut State, *mut Block) -> Result<Work, Status>,
) -> Result<*mut Block, Status> {
    if !request.size.is_power_of_two()
        || request.size > MOST_PACKETS
        || request.size < LEAST_PACKETS
    {
        return Err(HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    with(|state| {
        let (number, _) = state.agents.gpu(request.agent)?;
        let bytes = request.size as usize * PACKET;
        let mut map = |size| {
            state
                .memory
                .allocate(&state.agents, size, Kind::Runtime, 0, 0, vec![number])
                .ok_or(HSA_STATUS_ERROR_OUT_OF_RESOURCES)
        };
        let ring = map(bytes)?;
        let block = map(size_of::<Block>())? as *mut Block;
        let doorbell = signal::create(state, AMD_SIGNAL_KIND_DOORBELL, -1)?;
        for packet in 0..request.size as usize {
            // SAFETY: inside the ring, which is new.
            unsafe {
                *((ring + packet * PACKET) as *mut u16) = u16::from(HSA_PACKET_TYPE_INVALID);
            }
        }
        static ID: AtomicU64 = AtomicU64::new(0);
        let amd = AmdQueue::new(Queue {
            kind: request.kind,
            features: HSA_QUEUE_FEATURE_KERNEL_DISPATCH,
            base_address: ring as *mut c_void,
            doorbell_signal: doorbell,
            size: request.size,
            reserved1: 0,
            id: request.id.unwrap_or_else(|| ID.fetch_add(1, Relaxed)),
        });
        // SAFETY: new memory of the block's size; the doorbell is a new signal.
        unsafe {
            block.write(Block {
                amd,
                agent: number,
                work: Mutex::new(Work::Inactive),
                profiling: AtomicBool::new(false),
                cu_mask: Mutex::default(),
                under: AtomicPtr::default(),
                async_doorbell: AtomicU64::new(0),
                owner: AtomicPtr::default(),
            });
            (*(doorbell as *mut AmdSignal)).queue_ptr = block.cast();
        }
        let work = work(state, block).inspect_err(|_| {
            signal::destroy(state, doorbell);
            for base in [ring, block as usize] {
                state.memory.free(&state.agents, base, Kind::Runtime);
            }
        })?;
        // SAFETY: just written; nobody else knows it yet.
        *locked(unsafe { &(*block).work }) = work;
        locked(&ALL).push(block as usize);
        Ok(block)
    })
}

/// The queue that a program gets: a new one, or the agent's own if it is to be cooperative.
pub fn obtain(request: &Request) -> Result<*mut Block, Status> {
    match request.kind {
        HSA_QUEUE_TYPE_MULTI | HSA_QUEUE_TYPE_SINGLE => create(request, |state, block| {
            // SAFETY: `create` gives its new block.
            unsafe { start(state, block, request) }
        }),
        HSA_QUEUE_TYPE_COOPERATIVE if !request.size.is_power_of_two() => {
            Err(HSA_STATUS_ERROR_INVALID_ARGUMENT)
        }
        HSA_QUEUE_TYPE_COOPERATIVE => cooperative::acquire(request),
        _ => Err(HSA_STATUS_ERROR_INVALID_QUEUE_CREATION),
    }
}

/// Gives back what [`obtain`] or an intercept queue's creation gave.
///
/// # Safety
/// `queue` is a queue, and its user uses it no more.
pub unsafe fn give_back(queue: *mut Queue) -> Result<(), Status> {
    match cooperative::release(queue) {
        Some(false) => Ok(()),
        // SAFETY: the caller's promise.
        Some(true) | None => unsafe { destroy(queue) },
    }
}

/// Starts the model on a queue's ring.
///
/// # Safety
/// `block` is a block that `create` has written.
pub unsafe fn start(state: &State, block: *mut Block, request: &Request) -> Result<Work, Status> {
    // SAFETY: the caller's promise.
    let block = unsafe { &*block };
    let amd = &block.amd;
    let host = QueueHost {
        queue: &raw const *block as usize,
        executes: state.settings.kernels,
        agent: request.agent,
        l2: state.agents.gpus[block.agent - 1].l2.clone(),
        callback: request
            .callback
            .map(|callback| (callback, request.data as usize)),
    };
    let info = Info {
        ring: amd.hsa_queue.base_address as u64,
        packets: u64::from(amd.hsa_queue.size),
        write_index: &raw const amd.write_dispatch_id as u64,
        read_index: &raw const amd.read_dispatch_id as u64,
        queue: &raw const *amd as u64,
    };
    let gpu = state.agents.gpus[block.agent - 1].gpu.clone();
    gpu_model::queue::Queue::start(gpu, Arc::new(host), info)
        .map(Work::Model)
        .map_err(|_| HSA_STATUS_ERROR_OUT_OF_RESOURCES)
}

/// A doorbell was stored to.
///
/// # Safety
/// `queue` is a doorbell's queue, and neither is destroyed during the call.
pub unsafe fn ring(queue: *mut AmdQueue) {
    // SAFETY: the caller's promise.
    let block = unsafe { &*queue.cast::<Block>() };
    // SAFETY: the signal lives as long as the queue.
    let async_doorbell = unsafe { signal::at(block.async_doorbell.load(Acquire)) };
    if let Some(async_doorbell) = async_doorbell
        && intercept::in_handler()
    {
        async_doorbell.value.store(0, Release);
        signal::changed();
        return;
    }
    let mut work = locked(&block.work);
    match &mut *work {
        Work::Model(model) => model.ring(),
        // SAFETY: the lock is held, and the reference ends here.
        Work::Intercept(interception) => unsafe {
            Interception::take(&raw mut **interception, &block.amd);
        },
        Work::Inactive => {}
    }
}

/// Makes a queue unknown.
fn forget(queue: *mut Queue) -> Result<(), Status> {
    let mut all = locked(&ALL);
    let n = all
        .iter()
        .position(|&known| known == queue as usize)
        .ok_or(HSA_STATUS_ERROR_INVALID_QUEUE)?;
    all.swap_remove(n);
    Ok(())
}

/// Stops a queue. Its memory stays.
///
/// # Safety
/// `queue` is a queue.
unsafe fn stop(queue: *mut Queue) -> Result<(), Status> {
    forget(queue)?;
    // SAFETY: it was known, so it is a block of ours.
    let block = unsafe { &*queue.cast::<Block>() };
    let work = std::mem::replace(&mut *locked(&block.work), Work::Inactive);
    drop(work);
    Ok(())
}

/// Stops a queue and gives its parts back.
///
/// # Safety
/// `queue` is a queue, and nobody uses it any more.
pub unsafe fn destroy(queue: *mut Queue) -> Result<(), Status> {
    forget(queue)?;
    let block = queue.cast::<Block>();
    // SAFETY: it was in the list, so it is a block of ours.
    let async_doorbell = unsafe { (*block).async_doorbell.load(Acquire) };
    if async_doorbell != 0 {
        signal::forget(async_doorbell);
    }
    // SAFETY: as above.
    let work = std::mem::replace(&mut *locked(unsafe { &(*block).work }), Work::Inactive);
    let under = match &work {
        Work::Intercept(interception) => Some(interception.under()),
        _ => None,
    };
    // Outside the runtime's lock: the model's thread may be calling the program, which may call us.
    drop(work);
    if let Some(under) = under {
        // SAFETY: only the interception used it, if it is not an agent's cooperative queue.
        unsafe {
            if cooperative::unwrap(under) {
                stop(under)?;
            } else {
                destroy(under)?;
            }
        }
    }
    with(|state| {
        // SAFETY: the block lives until it is freed below.
        let (ring, doorbell) = unsafe {
            let queue = &(*block).amd.hsa_queue;
            (queue.base_address as usize, queue.doorbell_signal)
        };
        for signal in [doorbell, async_doorbell] {
            if signal != 0 {
                signal::destroy(state, signal);
            }
        }
        for base in [ring, block as usize] {
            state.memory.free(&state.agents, base, Kind::Runtime);
        }
        Ok(())
    })
}

/// At shutdown: stops what the program has left running.
pub fn destroy_all() {
    cooperative::delete_all();
    counted::clear();
    *locked(&NOTIFIER) = None;
    for queue in std::mem::take(&mut *locked(&ALL)) {
        // SAFETY: a block that was not destroyed; its memory is still there.
        let block = unsafe { &*(queue as *const Block) };
        let work = std::mem::replace(&mut *locked(&block.work), Work::Inactive);
        drop(work);
    }
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
#[expect(clippy::too_many_arguments, reason = "HSA's signature")]
pub unsafe fn hsa_queue_create(
    agent: Agent,
    size: u32,
    kind: u32,
    callback: Option<QueueError>,
    data: *mut c_void,
    _private: u32,
    _group: u32,
    queue: *mut *mut Queue,
) -> Status {
    if queue.is_null() {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    let request = Request {
        agent,
        size,
        kind,
        callback,
        data,
        id: None,
    };
    match obtain(&request) {
        Ok(block) => {
            // SAFETY: the caller's promise, and a new queue.
            unsafe {
                queue.write(block.cast());
                notify(block.cast(), agent);
            }
            HSA_STATUS_SUCCESS
        }
        Err(status) => status,
    }
}

/// Tells of a new queue.
///
/// # Safety
/// `queue` is a queue of the runtime's.
pub unsafe fn notify(queue: *const Queue, agent: Agent) {
    let notifier = *locked(&NOTIFIER);
    if let Some((callback, data)) = notifier {
        // SAFETY: the program registered the function for this.
        unsafe { callback(queue, agent, data as *mut c_void) };
    }
}

/// See `hsa_api_trace.h`: called for each queue that is made.
///
/// # Safety
/// As `hsa_api_trace.h` says.
pub unsafe fn hsa_amd_runtime_queue_create_register(
    callback: Option<QueueNotifier>,
    data: *mut c_void,
) -> Status {
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    *locked(&NOTIFIER) = callback.map(|callback| (callback, data as usize));
    HSA_STATUS_SUCCESS
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_queue_destroy(queue: *mut Queue) -> Status {
    cooperative::check(queue);
    // SAFETY: the caller's promise.
    status(with(|_| unsafe { check(queue) }).and_then(|()| unsafe { give_back(queue) }))
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_queue_inactivate(queue: *mut Queue) -> Status {
    // SAFETY: the queue is checked, and the caller keeps it.
    status(unsafe { behind(queue) }.map(|queue| {
        // SAFETY: checked above.
        let mut block = unsafe { &*queue.cast::<Block>() };
        if let Work::Intercept(interception) = &mut *locked(&block.work) {
            interception.inactivate();
            // SAFETY: it lives as long as the one that the program has.
            block = unsafe { &*interception.under().cast::<Block>() };
        }
        let work = std::mem::replace(&mut *locked(&block.work), Work::Inactive);
        drop(work);
    }))
}

/// The queue whose packets the model does: the one underneath an intercept queue.
///
/// # Safety
/// `queue` is a queue of the runtime's.
unsafe fn of_model<'a>(queue: *mut Queue) -> &'a Block {
    // SAFETY: the caller's promise; the one underneath lives as long.
    unsafe {
        let block = &*queue.cast::<Block>();
        block.under.load(Acquire).as_ref().unwrap_or(block)
    }
}

/// Turns the writing of kernels' times on or off.
///
/// # Safety
/// `queue` is a queue of the program's, and lives.
pub unsafe fn set_profiling(queue: *mut Queue, on: bool) -> Result<(), Status> {
    // SAFETY: the queue is checked.
    unsafe { profile(behind(queue)?, on) };
    Ok(())
}

/// As [`set_profiling`].
///
/// # Safety
/// `queue` is a queue of the runtime's.
pub unsafe fn profile(queue: *mut Queue, on: bool) {
    // SAFETY: the caller's promise.
    unsafe { of_model(queue) }.profiling.store(on, Release);
}

/// Sets the compute units that a queue may use. The model has one, and ignores it.
///
/// # Safety
/// `queue` is a queue of the runtime's, and `mask` has `bits` bits.
pub unsafe fn set_cu_mask(queue: *mut Queue, bits: u32, mask: *const u32) {
    let mask = match bits {
        0 => Vec::new(),
        // SAFETY: the caller's promise.
        bits => unsafe { std::slice::from_raw_parts(mask, bits as usize / 32) }.to_vec(),
    };
    // SAFETY: the caller's promise.
    *locked(unsafe { &of_model(queue).cu_mask }) = mask;
}

/// See `hsa_ext_amd.h`. Not for counted queues.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_queue_cu_set_mask(queue: *mut Queue, bits: u32, mask: *const u32) -> Status {
    if !bits.is_multiple_of(32) || (bits > 0 && mask.is_null()) {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: the queue is checked, and the caller gives so many bits.
    status(with(|_| unsafe { check(queue) }).map(|()| unsafe { set_cu_mask(queue, bits, mask) }))
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_queue_cu_get_mask(queue: *mut Queue, bits: u32, mask: *mut u32) -> Status {
    if bits == 0 || !bits.is_multiple_of(32) || mask.is_null() {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: the queue is checked, and the caller has memory for so many bits.
    status(unsafe { behind(queue) }.map(|queue| unsafe {
        let all = locked(&of_model(queue).cu_mask);
        for n in 0..bits as usize / 32 {
            // There is one compute unit.
            let default = u32::from(all.is_empty() && n == 0);
            mask.add(n).write(all.get(n).copied().unwrap_or(default));
        }
    }))
}

/// See `hsa_ext_amd.h`. The model does all queues alike. Not for counted queues.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_queue_set_priority(queue: *mut Queue, priority: u32) -> Status {
    if priority > 2 {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: only checked.
    status(with(|_| unsafe { check(queue) }))
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_amd_queue_get_info(
    queue: *mut Queue,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    // SAFETY: the queue is checked first; the caller's promise: both attributes are u64.
    status(unsafe { behind(queue) }.and_then(|queue| unsafe {
        let block = &*queue.cast::<Block>();
        match attribute {
            HSA_AMD_QUEUE_INFO_AGENT => put(value.cast(), agent::handle(block.agent)),
            HSA_AMD_QUEUE_INFO_DOORBELL_ID => {
                put(value.cast(), block.amd.hsa_queue.doorbell_signal)
            }
            _ => Err(HSA_STATUS_ERROR_INVALID_ARGUMENT),
        }
    }))
}

/// The indices of a queue.
///
/// # Safety
/// `queue` is a queue of the runtime's.
unsafe fn amd<'a>(queue: *const Queue) -> &'a AmdQueue {
    // SAFETY: the caller's promise. A counted queue shares one that lives until shutdown.
    unsafe {
        let own: &AmdQueue = &*queue.cast();
        own.shared.as_ref().unwrap_or(own)
    }
}

macro_rules! indices {
    ($(fn $name:ident($($arg:ident),*) = $field:ident.$method:ident($($order:ident),*) $($map:ident)?;)*) => {$(
        /// See `hsa.h`.
        ///
        /// # Safety
        /// As `hsa.h` says.
        pub unsafe fn $name(queue: *const Queue, $($arg: u64),*) -> indices!(@type $method) {
            // SAFETY: the caller's promise.
            let index = &unsafe { amd(queue) }.$field;
            indices!(@result $method index.$method($($arg,)* $($order),*))
        }
    )*};
    (@type store) => { () };
    (@type $method:ident) => { u64 };
    (@result compare_exchange $result:expr) => { $result.unwrap_or_else(|old| old) };
    (@result $method:ident $result:expr) => { $result };
}

indices! {
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
