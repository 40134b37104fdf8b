//! HSA's functions that devprof defines itself, in front of ROCr's: the archive in the program that is linked with it, the
//! shared library if it is preloaded. HIP's calls of them come here, so that executables and queues are observed even if
//! ROCr does not load devprof as a tool.
//!
//! They have HSA's names in what tools/build-runtime makes (the feature `interpose`). In other builds, such as tests with
//! an HSA runtime of their own, they have other names.

use super::api;
use super::hip::next_function;
use super::tool_hooks::destroy_executable;
use crate::gpu::events::{Event, Source, report};
use crate::gpu::runtime::ExecutableId;
use hsa_abi::{
    AgentHandle, ExecutableHandle, HSA_QUEUE_TYPE_SINGLE, Queue, QueueErrorCallback, Status,
    function,
};
use std::ffi::{CStr, c_char, c_void};

const SOURCE: Source = Source::Interposed;

/// ROCr's function, of the type `F` of function pointers.
///
/// # Safety
/// `F` is the type of the function in `hsa/hsa.h`.
unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let function = next_function(name, api::LIBRARIES)?;
    // SAFETY: a function's address, of the type that the caller names.
    Some(unsafe { std::mem::transmute_copy::<_, F>(&function) })
}

/// `hsa_init`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_init"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_init() -> Status {
    type Init = unsafe extern "C" fn() -> Status;
    // SAFETY: its type.
    let Some(init) = (unsafe { next::<Init>(c"hsa_init") }) else {
        return Status::ERROR;
    };
    let mut was_accepted = false;
    report(Event::Initializing {
        is_accepted: &mut was_accepted,
    });
    // SAFETY: it has no arguments.
    let status = unsafe { init() };
    report(Event::Initialized {
        was_accepted,
        is_success: status == Status::SUCCESS,
    });
    status
}

/// `hsa_shut_down`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_shut_down"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_shut_down() -> Status {
    // SAFETY: its type.
    let Some(shut_down) = (unsafe { next::<function::hsa_shut_down>(c"hsa_shut_down") }) else {
        return Status::NOT_INITIALIZED;
    };
    let mut is_accepted = false;
    report(Event::ShuttingDown {
        source: SOURCE,
        is_accepted: &mut is_accepted,
    });
    // SAFETY: it has no arguments.
    let status = unsafe { shut_down() };
    if is_accepted {
        report(Event::ShutDown { source: SOURCE });
    }
    status
}

/// `hsa_executable_freeze`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_executable_freeze"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_executable_freeze(
    executable: ExecutableHandle,
    options: *const c_char,
) -> Status {
    // SAFETY: its type.
    let Some(freeze) =
        (unsafe { next::<function::hsa_executable_freeze>(c"hsa_executable_freeze") })
    else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's arguments.
    let status = unsafe { freeze(executable, options) };
    if status == Status::SUCCESS {
        report(Event::Frozen {
            source: SOURCE,
            executable: ExecutableId(executable.0),
        });
    }
    status
}

/// `hsa_executable_destroy`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_executable_destroy"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_executable_destroy(executable: ExecutableHandle) -> Status {
    // SAFETY: its type.
    let Some(destroy) =
        (unsafe { next::<function::hsa_executable_destroy>(c"hsa_executable_destroy") })
    else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's argument.
    unsafe { destroy_executable(SOURCE, executable, destroy) }
}

/// `hsa_queue_create`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_queue_create"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_queue_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    private: u32,
    group: u32,
    queue: *mut *mut Queue,
) -> Status {
    // SAFETY: its type.
    let Some(create) = (unsafe { next::<function::hsa_queue_create>(c"hsa_queue_create") }) else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's arguments.
    let status = unsafe { create(agent, size, kind, callback, data, private, group, queue) };
    if status == Status::SUCCESS {
        // SAFETY: the call succeeded, so it has written the queue's address.
        let queue = unsafe { *queue };
        report(Event::QueueCreated {
            source: SOURCE,
            queue: queue as usize,
            is_single_producer: kind == HSA_QUEUE_TYPE_SINGLE,
        });
    }
    status
}

/// `hsa_queue_destroy`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_queue_destroy"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_queue_destroy(queue: *mut Queue) -> Status {
    // SAFETY: the program's argument.
    unsafe { end_queue(c"hsa_queue_destroy", queue) }
}

/// `hsa_queue_inactivate`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_queue_inactivate"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_queue_inactivate(queue: *mut Queue) -> Status {
    // SAFETY: the program's argument.
    unsafe { end_queue(c"hsa_queue_inactivate", queue) }
}

/// # Safety
/// As the function of that name in `hsa/hsa.h`.
unsafe fn end_queue(name: &CStr, queue: *mut Queue) -> Status {
    // SAFETY: the type of both.
    let Some(end) = (unsafe { next::<function::hsa_queue_destroy>(name) }) else {
        return Status::NOT_INITIALIZED;
    };
    report(Event::QueueDestroying {
        source: SOURCE,
        queue: queue as usize,
    });
    // SAFETY: the program's argument.
    unsafe { end(queue) }
}
