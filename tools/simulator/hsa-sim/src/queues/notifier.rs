//! The callback of `hsa_amd_runtime_queue_create_register`.

use super::block::Block;
use crate::results::Outcome;
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

/// Creates a queue with `obtain`, stores it for the program and calls the callback.
///
/// # Safety
/// `queue` is null or may be written, and `obtain` returns a new queue of `agent`.
pub unsafe fn create(
    agent: AgentHandle,
    queue: *mut *mut Queue,
    obtain: impl FnOnce() -> Result<*mut Block, Status>,
) -> Outcome {
    if queue.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let created = obtain()?.cast();
    // SAFETY: the caller's promise.
    unsafe { queue.write(created) };
    let notifier = *locked(&NOTIFIER);
    if let Some((callback, data)) = notifier {
        // SAFETY: the program has registered the function for this.
        unsafe { callback(created, agent, data as *mut c_void) };
    }
    Ok(())
}
