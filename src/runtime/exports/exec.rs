//! The functions that replace the program (`execve` and its family). Device memory is lost with it, so the counters are saved
//! before, as before a signal ends the process: by the thread of [`crate::process`], within a limit.
//!
//! Most calls are in the child of a fork, which has nothing to save: they read one word, or two and the process id after
//! `vfork`, and jump to the next library's function. The functions may be called in such a child of a process with threads,
//! and in signal handlers. Therefore nothing is allocated, no lock is taken and the dynamic loader is not called, unless a
//! library calls them before devprof's constructor.
//!
//! If the call fails, the program continues, and so do devprof's drains.

use super::replaced::{Calls, Replaced, replaced};
use crate::process::leader;
use crate::process::request::Request;
use crate::sys::loader;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

const CALLS: Calls = Calls {
    recorded: std::ptr::null(),
    without: missing as *const (),
    are_recorded: |_| false,
};

replaced! { FUNCTIONS by before:
    execve = "execve", CALLS;
    execv = "execv", CALLS;
    execvp = "execvp", CALLS;
    execvpe = "execvpe", CALLS;
    execl = "execl", CALLS;
    execlp = "execlp", CALLS;
    execle = "execle", CALLS;
    fexecve = "fexecve", CALLS;
    execveat = "execveat", CALLS;
}

/// Saves the counters. Returns the next library's function. Sets no target, so it is called each time.
extern "C" fn before(function: &'static Replaced) -> *const () {
    leader::request(Request::BeforeExec {});
    next(function)
}

fn next(function: &Replaced) -> *const () {
    let mut found = function.real.load(Ordering::Relaxed);
    if found.is_null() {
        found = loader::next_function(function.symbol).cast();
        function.real.store(found, Ordering::Relaxed);
    }
    if found.is_null() {
        function.calls.without
    } else {
        found
    }
}

/// Finds the next library's functions. To be called by the constructor.
pub fn find_next() {
    for function in &FUNCTIONS {
        next(function);
    }
}

/// The C library has no such function (`execveat` before glibc 2.34).
extern "C" fn missing() -> c_int {
    // SAFETY: the calling thread's variable.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}
