//! Functions of HSA that devprof interposes: the archive in a program that is linked with it, and the shared library if it is
//! preloaded. HIP's calls reach them instead of ROCr's functions, so devprof observes
//! executables and queues even if ROCr does not load it as a tool.
//!
//! They have HSA's names in the builds of tools/build-runtime (the feature `interpose`). In other builds, such as tests
//! that provide their own HSA runtime, they have other names.

use crate::amd::api;
use crate::amd::hip::next_function;
use crate::amd::observed_calls;
use crate::amd::queue_request::{QueueRequest, queue_create_function};
use crate::gpu::observers::{self, Source};
use hsa_abi::{ExecutableHandle, Queue, Status, function};
use std::ffi::{CStr, c_char};

const SOURCE: Source = Source::Interposed;

/// ROCr's function of this name. `F`: its type, a function pointer.
///
/// # Safety
/// `F` is the type of the function in `hsa/hsa.h`.
unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let function = next_function(name, &api::LIBRARIES)?;
    // SAFETY: the address of a function; the caller's promise about its type.
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
    // SAFETY: the type of this function in `hsa/hsa.h`.
    let Some(init) = (unsafe { next::<Init>(c"hsa_init") }) else {
        return Status::ERROR;
    };
    let drain = observers::drain();
    let was_reported = drain.is_some_and(|drain| drain.initializing());
    // SAFETY: a function without arguments.
    let status = unsafe { init() };
    if let Some(drain) = drain {
        drain.initialized(was_reported, status == Status::SUCCESS);
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
    // SAFETY: the type of this function in `hsa/hsa.h`.
    let Some(shut_down) = (unsafe { next::<function::hsa_shut_down>(c"hsa_shut_down") }) else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: ROCr's function.
    unsafe { observed_calls::shut_down(SOURCE, shut_down) }
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
    // SAFETY: the type of this function in `hsa/hsa.h`.
    let Some(freeze) =
        (unsafe { next::<function::hsa_executable_freeze>(c"hsa_executable_freeze") })
    else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's arguments.
    unsafe { observed_calls::freeze_executable(SOURCE, freeze, executable, options) }
}

/// `hsa_executable_destroy`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_executable_destroy"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
pub unsafe extern "C" fn devprof_hsa_executable_destroy(executable: ExecutableHandle) -> Status {
    // SAFETY: the type of this function in `hsa/hsa.h`.
    let Some(destroy) =
        (unsafe { next::<function::hsa_executable_destroy>(c"hsa_executable_destroy") })
    else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's argument.
    unsafe { observed_calls::destroy_executable(SOURCE, destroy, executable) }
}

queue_create_function!(
    /// `hsa_queue_create`.
    ///
    /// # Safety
    /// As in `hsa/hsa.h`.
    #[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_queue_create"))]
    #[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
    pub fn devprof_hsa_queue_create = create_queue
);

/// # Safety
/// As for `hsa_queue_create`.
unsafe fn create_queue(request: &QueueRequest) -> Result<*mut Queue, Status> {
    // SAFETY: the type of this function in `hsa/hsa.h`.
    let create = unsafe { next::<function::hsa_queue_create>(c"hsa_queue_create") };
    let create = create.ok_or(Status::NOT_INITIALIZED)?;
    // SAFETY: the caller's promise.
    unsafe { observed_calls::create_queue(SOURCE, create, request) }
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

/// Destroys or inactivates a queue with ROCr's function of this name, and reports it.
///
/// # Safety
/// As for that function in `hsa/hsa.h`, which has the type of `hsa_queue_destroy`.
unsafe fn end_queue(name: &CStr, queue: *mut Queue) -> Status {
    // SAFETY: the caller's promise.
    let Some(end) = (unsafe { next::<function::hsa_queue_destroy>(name) }) else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's argument.
    unsafe { observed_calls::end_queue(SOURCE, end, queue) }
}
