//! The hooks that devprof puts into ROCr's API tables as a tool (`HSA_TOOLS_LIB`), at the end of `hsa_init`. They report
//! executables, queues and shutdowns.

use super::api::loaded_api;
use super::observed_calls::{self, observed_functions};
use super::queue_functions::{self, Function, QueueFunctionSlots, QueueFunctions};
use super::queue_request::{QueueRequest, queue_create_function};
use super::tables::{Saved, SavedTables};
use crate::gpu::observers::Source;
use crate::sys::loader;
use hsa_abi::newer::{HSA_AMD_QUEUE_ENGINE_COMPUTE, QueueCreateDesc};
use hsa_abi::*;
use std::ffi::{c_char, c_void};

/// The tables before devprof installs these hooks.
static SAVED: Saved = Saved::new();

fn saved() -> Option<&'static SavedTables> {
    SAVED.get()
}

/// Installs the hooks.
///
/// # Safety
/// The tables are ROCr's, in `OnLoad`.
pub unsafe fn install(core: *mut CoreApiPrefix, amd: *mut AmdExtPrefix) {
    // An earlier `OnLoad` has already installed the hooks in this table.
    // SAFETY: ROCr's table.
    if unsafe { (*core).hsa_shut_down } as usize == hsa_shut_down as *const () as usize {
        return;
    }
    // SAFETY: ROCr's table, and a function of the library that owns it.
    let slots = unsafe {
        let rocr = loaded_api().map_or(std::ptr::null(), |api| api.hsa_agent_get_info as Function);
        queue_functions::find(amd, rocr)
    };
    let hooks = QueueFunctions {
        create: Some(amd_queue_create_hook),
        acquire: Some(counted_queue_acquire_hook),
        release: Some(counted_queue_release_hook),
    };
    // SAFETY: ROCr's tables; the slots were found in them.
    unsafe {
        SAVED.save(core, amd, slots);
        install_observed(&mut *core);
        (*core).hsa_queue_create = queue_create;
        slots.install(amd, hooks);
    }
}

/// The slots of [`queue_functions`] in the table of this ROCr.
pub fn queue_function_slots() -> QueueFunctionSlots {
    saved().map_or(QueueFunctionSlots::default(), |saved| saved.slots)
}

/// Whether ROCr creates the queues, not a tool that was loaded before devprof. `function`: any function of ROCr.
pub fn rocr_creates_queues(function: *const c_void) -> bool {
    saved().is_none_or(|saved| {
        loader::are_in_same_file(saved.core.hsa_queue_create as *const c_void, function)
    })
}

macro_rules! hooks {
    ($($name:ident($($argument:ident: $type:ty),*) = $observed:ident;)*) => {
        $(unsafe extern "C" fn $name($($argument: $type),*) -> Status {
            match saved() {
                // SAFETY: the program's arguments, to the function that was in the table.
                Some(saved) => unsafe {
                    observed_calls::$observed(Source::Tool, saved.core.$name, $($argument),*)
                },
                None => Status::ERROR,
            }
        })*

        fn install_observed(core: &mut CoreApiPrefix) {
            $(core.$name = $name;)*
        }
    };
}

observed_functions!(hooks);

queue_create_function!(fn queue_create = create_queue);

/// # Safety
/// As for `hsa_queue_create`.
unsafe fn create_queue(request: &QueueRequest) -> Result<*mut Queue, Status> {
    let saved = saved().ok_or(Status::ERROR)?;
    // SAFETY: the caller's promise. The function was in the table.
    unsafe { observed_calls::create_queue(Source::Tool, saved.core.hsa_queue_create, request) }
}

/// `hsa_amd_queue_create`.
unsafe extern "C" fn amd_queue_create_hook(
    agent: AgentHandle,
    descs: *mut QueueCreateDesc,
    count: u32,
) -> Status {
    let Some(create) = saved().and_then(|saved| saved.queue_functions.create) else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to the function that was in the table.
    let status = unsafe { create(agent, descs, count) };
    if descs.is_null() {
        return status;
    }
    for n in 0..count as usize {
        // SAFETY: there are `count` descriptors, and the call has set the queue of each, even if it failed.
        let desc = unsafe { &*descs.add(n) };
        if !desc.queue.is_null() && desc.engine == HSA_AMD_QUEUE_ENGINE_COMPUTE {
            observed_calls::queue_created(
                Source::Tool,
                desc.queue,
                desc.kind == HSA_QUEUE_TYPE_SINGLE,
                desc.callback,
            );
        }
    }
    status
}

/// `hsa_amd_counted_queue_acquire`.
unsafe extern "C" fn counted_queue_acquire_hook(
    agent: AgentHandle,
    kind: u32,
    priority: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    flags: u64,
    queue: *mut *mut Queue,
) -> Status {
    let Some(acquire) = saved().and_then(|saved| saved.queue_functions.acquire) else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to the function that was in the table.
    let status = unsafe { acquire(agent, kind, priority, callback, data, flags, queue) };
    if status == Status::SUCCESS {
        // SAFETY: on success, the function has written the queue's address.
        let queue = unsafe { *queue };
        // Other producers share its ring.
        observed_calls::queue_created(Source::Tool, queue, false, callback);
    }
    status
}

/// `hsa_amd_counted_queue_release`.
unsafe extern "C" fn counted_queue_release_hook(queue: *mut Queue) -> Status {
    let Some(release) = saved().and_then(|saved| saved.queue_functions.release) else {
        return Status::ERROR;
    };
    // SAFETY: the program's argument, to the function that was in the table.
    unsafe { observed_calls::end_queue(Source::Tool, release, queue) }
}
