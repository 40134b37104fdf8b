//! HSA's functions that devprof puts in front of ROCr's: the archive in the program that it is linked into, the shared
//! library when it is preloaded. HIP's calls of them come here, so that executables and queues are observed without being
//! a tool of ROCr. Where a copy is a tool, its hooks in ROCr's tables report the same, and these functions only pass on.
//!
//! They have HSA's names in what tools/build-runtime makes (the feature `interpose`). Elsewhere, as in tests that bring
//! an HSA runtime of their own, they have other names.

use super::api;
use super::hip::next_function;
use super::types::*;
use crate::entry;
use crate::instance::{self, Request};
use std::ffi::{CStr, c_char, c_void};

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

/// Nobody else reports what happens, and it is the program's doing.
fn is_to_report() -> bool {
    instance::request(Request::IsObserved {}) == 0 && instance::request(Request::IsOwnQueue {}) == 0
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
    // Is also to be reported where ROCr will load a tool in this call.
    let reports = is_to_report();
    if reports {
        instance::request(Request::Starts {});
    }
    // SAFETY: it takes nothing.
    let status = unsafe { init() };
    if reports {
        instance::request(Request::Started {});
    }
    if status == Status::SUCCESS {
        entry::report_skipped();
    }
    status
}

/// `hsa_shut_down`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_shut_down"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_shut_down() -> Status {
    type ShutDown = unsafe extern "C" fn() -> Status;
    // SAFETY: its type.
    let Some(shut_down) = (unsafe { next::<ShutDown>(c"hsa_shut_down") }) else {
        return Status::NOT_INITIALIZED;
    };
    let reports = is_to_report();
    if reports {
        instance::request(Request::ShutDown {});
    }
    // SAFETY: it takes nothing.
    let status = unsafe { shut_down() };
    if reports {
        instance::request(Request::IsDown {});
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
    type Freeze = unsafe extern "C" fn(ExecutableHandle, *const c_char) -> Status;
    // SAFETY: its type.
    let Some(freeze) = (unsafe { next::<Freeze>(c"hsa_executable_freeze") }) else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's arguments.
    let status = unsafe { freeze(executable, options) };
    if status == Status::SUCCESS && is_to_report() {
        instance::request(Request::Frozen {
            executable: executable.0,
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
    type Destroy = unsafe extern "C" fn(ExecutableHandle) -> Status;
    // SAFETY: its type.
    let Some(destroy) = (unsafe { next::<Destroy>(c"hsa_executable_destroy") }) else {
        return Status::NOT_INITIALIZED;
    };
    if !is_to_report() {
        // SAFETY: the program's argument.
        return unsafe { destroy(executable) };
    }
    let generation = instance::request(Request::Destroying {
        executable: executable.0,
    });
    // SAFETY: as above.
    let status = unsafe { destroy(executable) };
    instance::request(Request::Destroyed {
        executable: executable.0,
        generation,
        destroyed: status == Status::SUCCESS,
    });
    status
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
    queue: *mut *mut QueueHead,
) -> Status {
    // SAFETY: its type.
    let Some(create) = (unsafe { next::<super::tool::QueueCreate>(c"hsa_queue_create") }) else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's arguments.
    let status = unsafe { create(agent, size, kind, callback, data, private, group, queue) };
    if status == Status::SUCCESS && is_to_report() {
        // SAFETY: the call succeeded, so it has written the queue's address.
        let queue = unsafe { *queue };
        instance::request(Request::QueueCreated {
            queue: queue as u64,
            single: kind == QUEUE_TYPE_SINGLE,
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
pub unsafe extern "C" fn devprof_hsa_queue_destroy(queue: *mut QueueHead) -> Status {
    // SAFETY: the program's argument.
    unsafe { end_queue(c"hsa_queue_destroy", queue) }
}

/// `hsa_queue_inactivate`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_queue_inactivate"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_queue_inactivate(queue: *mut QueueHead) -> Status {
    // SAFETY: the program's argument.
    unsafe { end_queue(c"hsa_queue_inactivate", queue) }
}

/// # Safety
/// As the function of that name in `hsa/hsa.h`.
unsafe fn end_queue(name: &CStr, queue: *mut QueueHead) -> Status {
    // SAFETY: the type of both.
    let Some(end) = (unsafe { next::<super::tool::QueueEnd>(name) }) else {
        return Status::NOT_INITIALIZED;
    };
    if is_to_report() {
        instance::request(Request::QueueDestroying {
            queue: queue as u64,
        });
    }
    // SAFETY: the program's argument.
    unsafe { end(queue) }
}
