//! The callback of `hsa_amd_runtime_queue_create_register`.

use crate::sync::locked;
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::Mutex;

/// The callback and its data.
static NOTIFIER: Mutex<Option<(QueueNotifier, usize)>> = Mutex::new(None);

/// Sets or removes the callback.
pub fn set(notifier: Option<(QueueNotifier, usize)>) {
    *locked(&NOTIFIER) = notifier;
}

/// Calls the callback for a new queue.
///
/// # Safety
/// `queue` is a queue of the runtime.
pub unsafe fn notify(queue: *const Queue, agent: AgentHandle) {
    let notifier = *locked(&NOTIFIER);
    if let Some((callback, data)) = notifier {
        // SAFETY: the program has registered the function for this.
        unsafe { callback(queue, agent, data as *mut c_void) };
    }
}

/// Ends a call that creates a queue: stores the queue for the program and calls the callback.
///
/// # Safety
/// `created` is a new queue of `agent`, and `queue` may be written.
pub unsafe fn finish_creation(
    created: Result<*mut Queue, Status>,
    agent: AgentHandle,
    queue: *mut *mut Queue,
) -> Status {
    match created {
        Ok(new) => {
            // SAFETY: the caller's promise.
            unsafe {
                queue.write(new);
                notify(new, agent);
            }
            Status::SUCCESS
        }
        Err(status) => status,
    }
}
