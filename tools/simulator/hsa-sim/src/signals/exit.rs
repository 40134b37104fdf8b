//! Works around a crash of HIP while the process exits (tools/simulator/gpu-model/start.c explains it): no handler of a signal that
//! HIP has waited for is left to run when HIP is torn down. While the process exits, a thread that reads a signal gets its
//! value after the handlers for that value have returned, and a queue is destroyed after all handlers that can run.

use super::handlers;
use hsa_abi::SignalHandle;
use std::ffi::{CStr, c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

static HIP_EXITS: AtomicBool = AtomicBool::new(false);

/// The process that has initialized HSA. In a forked child, nothing calls handlers.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Begins to observe the exit. HIP initializes HSA after it has registered its teardown, which therefore runs later than
/// this function's exit handler.
pub fn observe() {
    PROCESS.store(std::process::id(), Relaxed);
    static ONCE: Once = Once::new();
    // SAFETY: the function lives as long as this library.
    ONCE.call_once(|| unsafe {
        libc::atexit(begin);
    });
}

extern "C" fn begin() {
    if PROCESS.load(Relaxed) == std::process::id() && is_hip_loaded() {
        HIP_EXITS.store(true, Relaxed);
        handlers::pass();
    }
}

/// A value of a signal was read.
pub fn after_read(signal: SignalHandle) {
    if HIP_EXITS.load(Relaxed) && handlers::can_run(signal) {
        handlers::pass();
    }
}

/// A queue will be destroyed.
pub fn before_queue_is_destroyed() {
    if HIP_EXITS.load(Relaxed) {
        handlers::pass();
    }
}

fn is_hip_loaded() -> bool {
    unsafe extern "C" fn check(
        library: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a library, whose name is a C string or null.
        let name = unsafe { (*library).dlpi_name };
        if name.is_null() {
            return 0;
        }
        // SAFETY: see above.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        let is_hip = file.starts_with(b"libamdhip64.so");
        if is_hip {
            // SAFETY: the variable of `is_hip_loaded`.
            unsafe { *found.cast::<bool>() = true };
        }
        c_int::from(is_hip)
    }
    let mut found = false;
    // SAFETY: `check` only writes to `found`.
    unsafe { libc::dl_iterate_phdr(Some(check), (&raw mut found).cast()) };
    found
}
