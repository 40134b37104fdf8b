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

/// Ends a call that creates a queue: stores the queue for the program and calls the callback.
///
/// # Safety
/// `created` is a new queue of `agent`, and `queue` may be written.
pub unsafe fn finish_creation(created: *mut Queue, agent: AgentHandle, queue: *mut *mut Queue) {
    // SAFETY: the caller's promise.
    unsafe { queue.write(created) };
    let notifier = *locked(&NOTIFIER);
    if let Some((callback, data)) = notifier {
        // SAFETY: the program has registered the function for this.
        unsafe { callback(created, agent, data as *mut c_void) };
    }
}
