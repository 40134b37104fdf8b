//! Calls of ROCr's functions that are reported to the observers. The tool hooks and the interposed functions both make them.

use super::queue_request::QueueRequest;
use crate::gpu::observers::{self, Source};
use crate::gpu::runtime::ExecutableId;
use hsa_abi::{ExecutableHandle, Queue, QueueErrorCallback, Status, function};
use std::ffi::c_char;

/// Calls the macro `$callback` with functions of ROCr, and the functions of this module that call and report them.
/// `hsa_queue_create` is not among them: see [`super::queue_request`].
macro_rules! observed_functions {
    ($callback:ident) => {
        $callback! {
            hsa_shut_down() = shut_down;
            hsa_executable_freeze(executable: ExecutableHandle, options: *const c_char) = freeze_executable;
            hsa_executable_destroy(executable: ExecutableHandle) = destroy_executable;
            hsa_queue_destroy(queue: *mut Queue) = end_queue;
            hsa_queue_inactivate(queue: *mut Queue) = end_queue;
        }
    };
}
pub(crate) use observed_functions;

/// Shuts HSA down with `function`.
///
/// # Safety
/// As for `hsa_shut_down`; `function` is that function.
pub unsafe fn shut_down(source: Source, function: function::hsa_shut_down) -> Status {
    let drain = observers::drain().filter(|drain| drain.shutting_down(source));
    let trace = observers::trace().filter(|_| source == Source::Tool);
    if let Some(trace) = trace {
        trace.shutting_down();
    }
    // SAFETY: the caller's promise.
    let status = unsafe { function() };
    if let Some(drain) = drain {
        drain.shut_down();
        if let Some(trace) = trace {
            trace.shut_down();
        }
    }
    status
}

/// Freezes an executable with `function`.
///
/// # Safety
/// As for `hsa_executable_freeze`; `function` is that function.
pub unsafe fn freeze_executable(
    source: Source,
    function: function::hsa_executable_freeze,
    executable: ExecutableHandle,
    options: *const c_char,
) -> Status {
    let id = ExecutableId::Hsa(executable.0);
    let drain = observers::drain();
    let generation = drain.map_or(0, |drain| drain.freezing(source, id));
    // SAFETY: the caller's promise.
    let status = unsafe { function(executable, options) };
    if status == Status::SUCCESS {
        if let Some(drain) = drain {
            drain.frozen(source, id, generation);
        }
        if let Some(trace) = observers::trace().filter(|_| source == Source::Tool) {
            trace.frozen(id);
        }
    }
    status
}

/// Destroys an executable with `function`.
///
/// # Safety
/// As for `hsa_executable_destroy`; `function` is that function.
pub unsafe fn destroy_executable(
    source: Source,
    function: function::hsa_executable_destroy,
    executable: ExecutableHandle,
) -> Status {
    let id = ExecutableId::Hsa(executable.0);
    let drain = observers::drain();
    let generation = drain.and_then(|drain| drain.destroying(source, id));
    // SAFETY: the caller's promise.
    let status = unsafe { function(executable) };
    if let (Some(drain), Some(generation)) = (drain, generation) {
        drain.destroyed(id, generation, status == Status::SUCCESS);
    }
    status
}

/// Creates a queue with `function`. Returns it, or HSA's error.
///
/// # Safety
/// As for `function`.
pub unsafe fn create_queue(
    source: Source,
    function: function::hsa_queue_create,
    request: &QueueRequest,
) -> Result<*mut Queue, Status> {
    // SAFETY: the caller's promise.
    let queue = unsafe { request.send(function)? };
    queue_created(
        source,
        queue,
        request.is_single_producer(),
        request.callback,
    );
    Ok(queue)
}

/// Destroys, inactivates or releases a queue with `function`.
///
/// # Safety
/// As for `function`.
pub unsafe fn end_queue(
    source: Source,
    function: function::hsa_queue_destroy,
    queue: *mut Queue,
) -> Status {
    if let Some(drain) = observers::drain() {
        drain.queue_destroying(source, queue as usize);
    }
    // SAFETY: the caller's promise.
    unsafe { function(queue) }
}

/// Reports a new queue.
pub fn queue_created(
    source: Source,
    queue: *mut Queue,
    is_single_producer: bool,
    callback: Option<QueueErrorCallback>,
) {
    if let Some(drain) = observers::drain() {
        let callback = callback.map_or(0, |callback| callback as usize);
        drain.queue_created(source, queue as usize, is_single_producer, callback);
    }
}
