//! Handlers that libc runs when the process exits or forks.

use std::ffi::c_int;

/// Runs `handler` when the process exits, before the handlers that are already registered. False if libc cannot
/// register it.
pub fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: a function of this library. glibc runs a library's handlers before it unloads the library.
    unsafe { libc::atexit(handler) == 0 }
}

/// Like [`at_exit`], for a process that calls `quick_exit`.
pub fn at_quick_exit(handler: extern "C" fn()) -> bool {
    unsafe extern "C" {
        safe fn at_quick_exit(handler: extern "C" fn()) -> c_int;
    }
    at_quick_exit(handler) == 0
}

/// The functions that run at each fork: before it and after it in the parent, and in the child.
pub struct ForkHandlers {
    pub before: extern "C" fn(),
    pub in_parent: extern "C" fn(),
    pub in_child: extern "C" fn(),
}

/// Registers handlers of forks.
pub fn at_fork(handlers: &ForkHandlers) {
    let ForkHandlers {
        before,
        in_parent,
        in_child,
    } = *handlers;
    // SAFETY: as in `at_exit`. If this fails, the child is still recognized by its process id.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}
