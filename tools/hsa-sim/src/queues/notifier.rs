//! The function of a tool that is called for each new queue.

use crate::sync::locked;
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::Mutex;

/// Who is told of new queues.
static NOTIFIER: Mutex<Option<(QueueNotifier, usize)>> = Mutex::new(None);

/// Sets the function, or removes it.
pub fn set(notifier: Option<(QueueNotifier, usize)>) {
    *locked(&NOTIFIER) = notifier;
}

/// Tells of a new queue.
///
/// # Safety
/// `queue` is a queue of the runtime's.
pub unsafe fn notify(queue: *const Queue, agent: AgentHandle) {
    let notifier = *locked(&NOTIFIER);
    if let Some((callback, data)) = notifier {
        // SAFETY: the program registered the function for this.
        unsafe { callback(queue, agent, data as *mut c_void) };
    }
}
