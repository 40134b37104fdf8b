//! Calls of ROCr's functions that are reported as events. The tool hooks and the interposed functions both make them.

use crate::gpu::events::{Event, Source, report};
use crate::gpu::runtime::ExecutableId;
use hsa_abi::{
    AgentHandle, ExecutableHandle, HSA_QUEUE_TYPE_SINGLE, Queue, QueueErrorCallback, Status,
    function,
};
use std::ffi::{c_char, c_void};

/// Shuts HSA down with `function`.
///
/// # Safety
/// As for `hsa_shut_down`; `function` is that function.
pub unsafe fn shut_down(source: Source, function: function::hsa_shut_down) -> Status {
    let mut is_accepted = false;
    report(Event::ShuttingDown {
        source,
        is_accepted: &mut is_accepted,
    });
    // SAFETY: the caller's promise.
    let status = unsafe { function() };
    if is_accepted {
        report(Event::ShutDown { source });
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
    let id = ExecutableId(executable.0);
    let mut generation = 0;
    report(Event::Freezing {
        source,
        executable: id,
        generation: &mut generation,
    });
    // SAFETY: the caller's promise.
    let status = unsafe { function(executable, options) };
    if status == Status::SUCCESS {
        report(Event::Frozen {
            source,
            executable: id,
            generation,
        });
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
    let id = ExecutableId(executable.0);
    let mut generation = None;
    report(Event::Destroying {
        source,
        executable: id,
        generation: &mut generation,
    });
    // SAFETY: the caller's promise.
    let status = unsafe { function(executable) };
    if let Some(generation) = generation {
        report(Event::Destroyed {
            executable: id,
            generation,
            is_success: status == Status::SUCCESS,
        });
    }
    status
}

/// Creates a queue with `function`. The other arguments are those of `hsa_queue_create`.
///
/// # Safety
/// As for `hsa_queue_create`; `function` is that function.
#[expect(clippy::too_many_arguments)]
pub unsafe fn create_queue(
    source: Source,
    function: function::hsa_queue_create,
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    private: u32,
    group: u32,
    queue: *mut *mut Queue,
) -> Status {
    // SAFETY: the caller's promise.
    let status = unsafe { function(agent, size, kind, callback, data, private, group, queue) };
    if status == Status::SUCCESS {
        // SAFETY: on success, the function has written the queue's address.
        let queue = unsafe { *queue };
        queue_created(source, queue, kind == HSA_QUEUE_TYPE_SINGLE, callback);
    }
    status
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
    report(Event::QueueDestroying {
        source,
        queue: queue as usize,
    });
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
    report(Event::QueueCreated {
        source,
        queue: queue as usize,
        is_single_producer,
        callback: callback.map_or(0, |callback| callback as usize),
    });
}
