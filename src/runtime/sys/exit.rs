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

/// Runs `handler` in the child of each fork.
pub fn in_forked_child(handler: unsafe extern "C" fn()) {
    // SAFETY: as in `at_exit`. If this fails, the child is still recognized by its process id.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}
