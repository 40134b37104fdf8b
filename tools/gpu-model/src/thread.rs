//! Host threads of the model: none of the program's signal handlers runs on them, and none ends unseen.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// Starts a thread. A panic in it ends the process: the model cannot go on, and a program that waits for it must
/// not wait for ever.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    // SAFETY: the sets are plain data that the calls fill in; both calls are made with valid pointers.
    let before = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let thread = Builder::new().name(name.into()).spawn(move || {
        // Sleeps of some microseconds shall last that long.
        // SAFETY: PR_SET_TIMERSLACK takes a number of nanoseconds and touches no memory.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            eprintln!("gpu-model: internal error");
            std::process::abort();
        }
    });
    // SAFETY: `before` is the set that the call above filled in.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    thread.unwrap_or_else(|error| {
        eprintln!("gpu-model: cannot start a thread: {error}");
        std::process::abort();
    })
}
