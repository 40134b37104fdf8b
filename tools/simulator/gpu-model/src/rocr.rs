//! ROCr's model interface, version 0.4: the C functions that ROCr calls when `HSA_MODEL_LIB` names this library.
//!
//! This is the only C interface of the crate. The interface has no way to return errors, so an unsupported request or a
//! panic ends the process.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use crate::dispatch::Gpu;
use crate::memory::Memory;
use crate::queue::{Error, Host, Info, Queue};

type SetEvent = unsafe extern "C" fn(data: *mut c_void, event_id: c_uint);

/// ROCr's `hsakmt_model_t`.
pub struct Model {
    gpu: Arc<Gpu>,
    host: Arc<RocrHost>,
}

#[derive(Default)]
struct RocrHost {
    set_event: OnceLock<EventSetter>,
}

struct EventSetter {
    function: SetEvent,
    data: *mut c_void,
}

// SAFETY: ROCr's function can be called from any thread; `data` is only passed to it.
unsafe impl Send for EventSetter {}
// SAFETY: see above.
unsafe impl Sync for EventSetter {}

impl Host for RocrHost {
    fn set_event(&self, event: u32) {
        if let Some(EventSetter { function, data }) = self.set_event.get() {
            // SAFETY: ROCr set the function and its data together, for the lifetime of the process.
            unsafe { function(*data, event) };
        }
    }
    fn failed(&self, error: &Error) {
        die(error);
    }
}

fn die(what: impl std::fmt::Display) -> ! {
    eprintln!("gpu-model: {what}");
    std::process::abort();
}

/// `struct hsakmt_model_queue_info`
#[repr(C)]
struct QueueInfo {
    ring_base_address: u64,
    write_pointer_address: u64,
    read_pointer_address: u64,
    doorbell: *mut u64,
    ring_size: u32,
    queue_type: u32,
}

const QUEUE_TYPE_COMPUTE_AQL: u32 = 2;

/// `struct hsakmt_model_functions`
#[repr(C)]
pub struct Functions {
    version_major: u32,
    version_minor: u32,
    create: extern "C" fn() -> *mut Model,
    destroy: unsafe extern "C" fn(*mut Model),
    set_global_aperture: unsafe extern "C" fn(*mut Model, *mut c_void, u64),
    alloced_memory: unsafe extern "C" fn(*mut Model, *mut c_void, u64, u32),
    freed_memory: unsafe extern "C" fn(*mut Model, *mut c_void, u64),
    set_notify_event: extern "C" fn(*mut Model, *const c_void, *mut c_void),
    set_wait_event: extern "C" fn(*mut Model, *const c_void, *mut c_void),
    register_queue: unsafe extern "C" fn(*mut Model, *const QueueInfo) -> *mut Queue,
    set_set_event: unsafe extern "C" fn(*mut Model, SetEvent, *mut c_void),
    destroy_queue: unsafe extern "C" fn(*mut Model, *mut Queue),
}

static FUNCTIONS: Functions = Functions {
    version_major: 0,
    version_minor: 4,
    create,
    destroy,
    set_global_aperture,
    alloced_memory,
    freed_memory,
    set_notify_event,
    set_wait_event,
    register_queue,
    set_set_event,
    destroy_queue,
};

/// The symbol that ROCr looks up.
#[unsafe(no_mangle)]
pub extern "C" fn get_hsakmt_model_functions() -> *const Functions {
    &FUNCTIONS
}

/// The GPU whose statistics are printed at exit.
static REPORTED: OnceLock<Arc<Gpu>> = OnceLock::new();

extern "C" fn print_stats() {
    if let Some(gpu) = REPORTED.get() {
        let stats = gpu.stats();
        let lane_instructions = stats.lane_instructions.load(Relaxed);
        let seconds = stats.busy_nanoseconds.load(Relaxed) as f64 / 1e9;
        eprintln!(
            "gpu-model: {} dispatches, {} wave instructions, {lane_instructions} lane instructions in {seconds:.6} \
             processor seconds ({:.1} million per second)",
            stats.dispatches.load(Relaxed),
            stats.instructions.load(Relaxed),
            lane_instructions as f64 / seconds.max(1e-9) / 1e6,
        );
    }
}

extern "C" fn create() -> *mut Model {
    let gpu = Arc::new(Gpu::new(Memory::new(0)));
    if std::env::var_os("GPU_MODEL_STATS").is_some_and(|value| value == "1")
        && REPORTED.set(gpu.clone()).is_ok()
    {
        // SAFETY: `print_stats` is a plain function, and ROCr never unloads this library.
        unsafe { libc::atexit(print_stats) };
    }
    Box::into_raw(Box::new(Model {
        gpu,
        host: Arc::default(),
    }))
}

unsafe extern "C" fn destroy(model: *mut Model) {
    // SAFETY: ROCr passes the result of `create`, once.
    drop(unsafe { Box::from_raw(model) });
}

unsafe extern "C" fn set_global_aperture(model: *mut Model, base: *mut c_void, _size: u64) {
    // SAFETY: `model` is from `create`.
    unsafe { &*model }.gpu.memory().set_base(base as usize);
}

/// KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE
const WRITABLE: u32 = 1 << 31;

unsafe extern "C" fn alloced_memory(model: *mut Model, base: *mut c_void, size: u64, flags: u32) {
    // SAFETY: `model` is from `create`. ROCr maps the range at the aperture before a queue uses it, writable if the flag
    // is set, and calls `freed_memory` before it unmaps the range.
    unsafe {
        (*model)
            .gpu
            .memory()
            .allocated(base as u64, size, flags & WRITABLE != 0);
    }
}

unsafe extern "C" fn freed_memory(model: *mut Model, base: *mut c_void, size: u64) {
    // SAFETY: `model` is from `create`.
    unsafe { &*model }.gpu.memory().freed(base as u64, size);
}

/// Deprecated in the interface; ROCr 7.2.4 does not call it.
extern "C" fn set_notify_event(_: *mut Model, _: *const c_void, _: *mut c_void) {}

/// Not needed: the model does not wait for events.
extern "C" fn set_wait_event(_: *mut Model, _: *const c_void, _: *mut c_void) {}

unsafe extern "C" fn set_set_event(model: *mut Model, function: SetEvent, data: *mut c_void) {
    // SAFETY: `model` is from `create`.
    let host = unsafe { &(*model).host };
    if host.set_event.set(EventSetter { function, data }).is_err() {
        die("ROCr has set the event function twice");
    }
}

/// Offset of `write_dispatch_id` in an `amd_queue_t`, and from there to `read_dispatch_id`.
const WRITE_INDEX_OFFSET: u64 = 56;
const WRITE_TO_READ_INDEX: u64 = 72;

unsafe extern "C" fn register_queue(model: *mut Model, info: *const QueueInfo) -> *mut Queue {
    // SAFETY: both pointers are from ROCr and valid during the call.
    let (model, info) = unsafe { (&*model, &*info) };
    if info.queue_type != QUEUE_TYPE_COMPUTE_AQL {
        die(format_args!(
            "queue type {} is not modelled (set HSA_ENABLE_SDMA=0)",
            info.queue_type
        ));
    }
    // Both indices are fields of the queue's `amd_queue_t`.
    let queue = if info
        .read_pointer_address
        .wrapping_sub(info.write_pointer_address)
        == WRITE_TO_READ_INDEX
    {
        info.write_pointer_address - WRITE_INDEX_OFFSET
    } else {
        0
    };
    let queue = Queue::start(
        model.gpu.clone(),
        model.host.clone(),
        Info {
            ring: info.ring_base_address,
            packets: u64::from(info.ring_size) / 64,
            write_index: info.write_pointer_address,
            read_index: info.read_pointer_address,
            queue,
        },
    )
    .unwrap_or_else(|error| die(format_args!("cannot start a queue's thread: {error}")));
    Box::into_raw(Box::new(queue))
}

unsafe extern "C" fn destroy_queue(_: *mut Model, queue: *mut Queue) {
    // SAFETY: ROCr passes the result of `register_queue`, once.
    drop(unsafe { Box::from_raw(queue) });
}
