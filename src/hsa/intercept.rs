//! ROCr's API tables while devprof traces: the functions that it puts in, ROCr's own, and the handler of the packets
//! in an intercept queue. Mirrors `hsa/hsa_api_trace.h`, `hsa/amd_hsa_signal.h`.

use super::api::{self, Api, Error, ok};
use super::tool::{AmdExtTable, ApiTable, CoreTable, PacketWriter};
use super::types::*;
use super::{doorbell, query, queues};
use crate::guard::{Cost, guarded, lock};
use crate::report;
use crate::trace::capture::{Capture, Packet};
use crate::trace::kernels::{self, Kernel};
use crate::trace::writers;
use crate::trace::{self, Signals};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};

/// `hsa_amd_profiling_dispatch_time_t`: ticks of the system clock, or of the agent's where that is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DispatchTime {
    pub start: u64,
    pub end: u64,
}

/// What the tables had before.
struct Originals {
    core: CoreTable,
    amd: AmdExtTable,
}

/// Never freed: threads may be in a hook while HSA is shut down and initialised again.
static ORIGINALS: AtomicPtr<Originals> = AtomicPtr::new(std::ptr::null_mut());

fn originals() -> Option<&'static Originals> {
    // SAFETY: null, or a box that was leaked.
    unsafe { ORIGINALS.load(Ordering::Acquire).as_ref() }
}

/// The capture of each traced queue, by the queue's address.
static CAPTURES: Mutex<Option<HashMap<usize, CapturePointer>>> = Mutex::new(None);

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

/// Remembers ROCr's functions, for the clock and for the hooks. False when the tables are not known here.
///
/// # Safety
/// `table` is null or ROCr's, as `OnLoad` gets it.
pub unsafe fn remember(table: *mut ApiTable) -> bool {
    // SAFETY: the caller's promise; the sizes are checked.
    let Some((core, amd)) = (unsafe { super::tool::tables(table) }) else {
        return false;
    };
    let originals = Box::new(Originals {
        core: *core,
        amd: *amd,
    });
    ORIGINALS.store(Box::into_raw(originals), Ordering::Release);
    true
}

/// Has the hooks called in ROCr's place.
///
/// # Safety
/// As [`remember`], which was called before.
pub unsafe fn install(table: *mut ApiTable) {
    // SAFETY: the caller's promise.
    let Some((core, amd)) = (unsafe { super::tool::tables(table) }) else {
        return;
    };
    core.hsa_queue_create = queue_create;
    core.hsa_queue_destroy = queue_destroy;
    core.hsa_queue_add_write_index_scacq_screl = add_write_index_scacq_screl;
    core.hsa_queue_add_write_index_scacquire = add_write_index_scacquire;
    core.hsa_queue_add_write_index_relaxed = add_write_index_relaxed;
    core.hsa_queue_add_write_index_screlease = add_write_index_screlease;
    core.hsa_signal_store_relaxed = signal_store_relaxed;
    core.hsa_signal_store_screlease = signal_store_screlease;
    amd.hsa_amd_queue_intercept_create = intercept_create;
    amd.hsa_amd_profiling_set_profiler_enabled = set_profiler_enabled;
    amd.hsa_amd_profiling_get_dispatch_time = get_dispatch_time;
}

/// `HSA_SYSTEM_INFO_TIMESTAMP`; 0 where HSA is not, or not alive.
pub fn system_time() -> u64 {
    let mut ticks = 0u64;
    if let Some(originals) = originals() {
        // SAFETY: the attribute is a u64; a runtime that is not initialised leaves it.
        unsafe {
            (originals.core.hsa_system_get_info)(SYSTEM_INFO_TIMESTAMP, (&raw mut ticks).cast());
        }
    }
    ticks
}

/// Ticks a second of the system clock.
pub fn clock_frequency() -> Result<u64, Error> {
    const WHAT: &str = "hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)";
    let originals = originals().ok_or(Error::Call(WHAT, Status::NOT_INITIALIZED))?;
    let mut frequency = 0u64;
    // SAFETY: the attribute is a u64.
    let status = unsafe {
        (originals.core.hsa_system_get_info)(
            SYSTEM_INFO_TIMESTAMP_FREQUENCY,
            (&raw mut frequency).cast(),
        )
    };
    ok(WHAT, status)?;
    match frequency {
        0 => Err(Error::Call(WHAT, Status::ERROR)),
        frequency => Ok(frequency),
    }
}

/// HSA's signals, as the pool needs them: without interrupts, for the GPU to write and the host to poll.
pub struct HsaSignals;

impl Signals for HsaSignals {
    fn create(&self) -> Option<SignalHandle> {
        let mut signal = SignalHandle(0);
        // SAFETY: no consumers named: any agent may use it.
        let status = unsafe {
            (originals()?.amd.hsa_amd_signal_create)(
                1,
                0,
                std::ptr::null(),
                AMD_SIGNAL_AMD_GPU_ONLY,
                &raw mut signal,
            )
        };
        (status == Status::SUCCESS && signal.0 != 0).then_some(signal)
    }

    fn value(&self, signal: SignalHandle) -> i64 {
        // SAFETY: a signal of the pool, which is destroyed only when HSA ends.
        originals().map_or(1, |originals| unsafe {
            (originals.core.hsa_signal_load_scacquire)(signal)
        })
    }

    fn reset(&self, signal: SignalHandle) {
        if let Some(originals) = originals() {
            // SAFETY: as above; nobody waits for it.
            unsafe { (originals.core.hsa_signal_store_relaxed)(signal, 1) };
        }
    }

    fn destroy(&self, signal: SignalHandle) {
        if let Some(originals) = originals() {
            // SAFETY: a signal of the pool that no packet names any more.
            unsafe { (originals.core.hsa_signal_destroy)(signal) };
        }
    }
}

/// The times that HSA tells for a signal of ours that a kernel has completed.
pub fn dispatch_time(agent: AgentHandle, signal: SignalHandle) -> Option<DispatchTime> {
    let mut time = DispatchTime::default();
    // SAFETY: the agent and the signal are HSA's, `time` is to be written.
    let status = unsafe {
        (originals()?.amd.hsa_amd_profiling_get_dispatch_time)(agent, signal, &raw mut time)
    };
    (status == Status::SUCCESS).then_some(time)
}

/// The agent's ticks that the packet processor wrote into the signal (`amd_signal_t`, `start_ts` and `end_ts`).
pub fn raw_time(signal: SignalHandle) -> DispatchTime {
    // SAFETY: a signal's handle is the address of its `amd_signal_t` (amd_hsa_signal.h), and this one is of the pool:
    // it lives, and the GPU has written to it before it counted it down.
    unsafe {
        let words = signal.0 as *const u64;
        DispatchTime {
            start: words.add(AMD_SIGNAL_START_TS / 8).read_volatile(),
            end: words.add(AMD_SIGNAL_END_TS / 8).read_volatile(),
        }
    }
}

fn hsa() -> Result<&'static Api, Error> {
    api::find().unwrap_or(Err(Error::Call("hsa_init", Status::NOT_INITIALIZED)))
}

/// A GPU agent, for its record.
pub struct Gpu {
    /// Its place in HSA's order of all agents.
    pub index: u32,
    pub target: String,
    pub product: Option<String>,
    pub node: u32,
    pub compute_units: u32,
    /// Ticks a second of its clock, 0 if unknown.
    pub frequency: u64,
}

/// The process's GPUs.
pub fn gpus() -> Vec<AgentHandle> {
    let agents = hsa().and_then(query::agents);
    agents.map_or(Vec::new(), |agents| {
        agents.gpus.into_iter().map(|gpu| gpu.handle).collect()
    })
}

/// What a GPU is; `None` for an agent of another kind.
pub fn describe_gpu(handle: AgentHandle) -> Result<Option<Gpu>, Error> {
    let api = hsa()?;
    let all = query::all_agents(api)?;
    let agents = query::agents(api)?;
    let Some(gpu) = agents.gpus.into_iter().find(|gpu| gpu.handle == handle) else {
        return Ok(None);
    };
    let number = |attribute| {
        let mut value = 0u32;
        // SAFETY: the attributes asked for here are u32.
        let status =
            unsafe { (api.hsa_agent_get_info)(handle, attribute, (&raw mut value).cast()) };
        ok("hsa_agent_get_info", status).map(|()| value)
    };
    let mut frequency = 0u64;
    // SAFETY: the attribute is a u64. Older runtimes do not know it and leave it 0.
    let known = unsafe {
        (api.hsa_agent_get_info)(
            handle,
            AMD_AGENT_INFO_TIMESTAMP_FREQUENCY,
            (&raw mut frequency).cast(),
        )
    };
    if known != Status::SUCCESS {
        frequency = 0;
    }
    let mut product = [0u8; 64];
    // SAFETY: the attribute is char[64].
    let named = unsafe {
        (api.hsa_agent_get_info)(
            handle,
            AMD_AGENT_INFO_PRODUCT_NAME,
            product.as_mut_ptr().cast(),
        )
    };
    let end = product.iter().position(|&byte| byte == 0).unwrap_or(64);
    let product = String::from_utf8_lossy(&product[..end]).trim().to_owned();
    Ok(Some(Gpu {
        index: all.iter().position(|&other| other == handle).unwrap_or(0) as u32,
        target: gpu.name,
        product: (named == Status::SUCCESS && !product.is_empty()).then_some(product),
        node: number(AGENT_INFO_NODE)?,
        compute_units: number(AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)?,
        frequency,
    }))
}

/// The kernels of an executable on a GPU, with the addresses that packets name them by.
pub fn kernels(
    executable: ExecutableHandle,
    agent: AgentHandle,
    index: u32,
    target: &str,
) -> Result<Vec<(u64, Kernel)>, Error> {
    let api = hsa()?;
    let symbols = query::kernels(api, executable, agent)?;
    if symbols.is_empty() {
        return Ok(Vec::new());
    }
    let segments = query::segments_of(api, executable)?;
    let loader = api.loader()?;
    Ok(symbols
        .into_iter()
        .map(|symbol| {
            let inside = segments.iter().any(|segment| {
                symbol
                    .object
                    .checked_sub(segment.base)
                    .is_some_and(|at| at.checked_add(64).is_some_and(|end| end <= segment.size))
            });
            let mut host = std::ptr::null();
            // SAFETY: the loader only looks the address up.
            let found = unsafe {
                (loader.query_host_address)(symbol.object as *const c_void, &raw mut host)
            };
            let readable = inside && found == Status::SUCCESS && !host.is_null();
            let registers = readable
                .then(|| {
                    // SAFETY: the descriptor's 64 bytes are inside of a loaded segment, whose copy on the host the
                    // loader keeps until the executable is destroyed, which nobody does during its freezing.
                    let descriptor = unsafe { host.cast::<[u8; 64]>().read_unaligned() };
                    kernels::registers(&descriptor, target)
                })
                .flatten();
            let kernel = Kernel {
                name: symbol.name,
                agent: index,
                kernarg: symbol.kernarg,
                lds: symbol.group,
                scratch: symbol.private,
                registers,
            };
            (symbol.object, kernel)
        })
        .collect())
}

unsafe extern "C" fn queue_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: usize,
    data: *mut c_void,
    private: u32,
    group: u32,
    queue: *mut *mut QueueHead,
) -> Status {
    let Some(originals) = originals() else {
        return Status::ERROR;
    };
    let gpu = guarded(Cost::Dispatches, false, || {
        hsa()
            .and_then(|api| query::is_gpu(api, agent))
            .unwrap_or(false)
    });
    if gpu && guarded(Cost::Dispatches, false, another_makes_queues) {
        // SAFETY: the program's arguments, to the function that it would have called without us.
        let status = unsafe {
            (originals.core.hsa_queue_create)(
                agent, size, kind, callback, data, private, group, queue,
            )
        };
        // SAFETY: a call that succeeded has written the queue's address.
        if status != Status::SUCCESS || unsafe { take_up(originals, agent, *queue) }.is_ok() {
            return status;
        }
        // That tool only looks on, and the queue is no intercept queue.
        // SAFETY: nobody else knows the queue yet.
        unsafe { (originals.core.hsa_queue_destroy)(*queue) };
    }
    if gpu {
        // SAFETY: the program's arguments, to a function of the same signature (hsa_api_trace.h).
        let status =
            unsafe { intercept_create(agent, size, kind, callback, data, private, group, queue) };
        if status == Status::SUCCESS {
            return status;
        }
    }
    // SAFETY: as above.
    let status = unsafe {
        (originals.core.hsa_queue_create)(agent, size, kind, callback, data, private, group, queue)
    };
    if gpu && status == Status::SUCCESS {
        // The program would get its queue without us.
        report::lost(
            "the trace misses the dispatches of a queue: hsa_amd_queue_intercept_create failed",
        );
    }
    status
}

/// Makes an intercept queue, ours, or one of another tool's, whose handler then gets the packets first.
unsafe extern "C" fn intercept_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: usize,
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
    if status == Status::SUCCESS {
        // SAFETY: the call succeeded, so it has written the queue's address.
        let queue = unsafe { *queue };
        guarded(Cost::Dispatches, (), || {
            queues::made(queue as usize, kind == QUEUE_TYPE_SINGLE);
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
    hsa().is_ok_and(|api| {
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

/// HSA is down, and all queues with it. What they used is left, for its threads may be on their way out of a handler.
pub fn forget_queues() {
    *captures() = None;
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
