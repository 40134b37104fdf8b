//! HIP, where it is in the process: waiting for its streams, and its copy as the last resort. Mirrors
//! `hip/hip_runtime_api.h` of HIP 6 and 7.

use super::api::loaded;
use libloading::os::unix::Library;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// Names under which HIP may be loaded.
const LIBRARIES: &[&str] = &[
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
];

/// `hipMemcpyDeviceToHost`.
const DEVICE_TO_HOST: c_int = 2;
/// `hipStreamCaptureModeRelaxed`.
const CAPTURE_MODE_RELAXED: c_int = 2;

struct Hip {
    memcpy: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int,
    get_device_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    set_device: unsafe extern "C" fn(c_int) -> c_int,
    device_synchronize: unsafe extern "C" fn() -> c_int,
    primary_context_state: unsafe extern "C" fn(c_int, *mut c_uint, *mut c_int) -> c_int,
    exchange_capture_mode: unsafe extern "C" fn(*mut c_int) -> c_int,
}

fn hip() -> Option<&'static Hip> {
    static HIP: OnceLock<Hip> = OnceLock::new();
    if let Some(hip) = HIP.get() {
        return Some(hip);
    }
    let library = loaded(LIBRARIES)?;
    let hip = resolve(&library)?;
    // The functions are used until the process ends.
    std::mem::forget(library);
    Some(HIP.get_or_init(|| hip))
}

fn resolve(library: &Library) -> Option<Hip> {
    // SAFETY: the signatures are those of hip_runtime_api.h, and the library is never closed.
    unsafe {
        Some(Hip {
            memcpy: *library.get(b"hipMemcpy\0").ok()?,
            get_device_count: *library.get(b"hipGetDeviceCount\0").ok()?,
            set_device: *library.get(b"hipSetDevice\0").ok()?,
            device_synchronize: *library.get(b"hipDeviceSynchronize\0").ok()?,
            primary_context_state: *library.get(b"hipDevicePrimaryCtxGetState\0").ok()?,
            exchange_capture_mode: *library.get(b"hipThreadExchangeStreamCaptureMode\0").ok()?,
        })
    }
}

/// HIP's function that a call of `symbol` would reach without devprof.
pub fn function(symbol: &CStr) -> Option<*mut c_void> {
    next_function(symbol, LIBRARIES)
}

/// The function that a call of `symbol` would reach without devprof: that of the next file in the order of symbol
/// search, or the first library's that is there, where it was loaded for some library only.
pub(super) fn next_function(symbol: &CStr, libraries: &[&str]) -> Option<*mut c_void> {
    // SAFETY: only looks; the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    if !next.is_null() {
        return Some(next);
    }
    let library = loaded(libraries)?;
    // SAFETY: not called here.
    let found = unsafe { library.get::<*mut c_void>(symbol.to_bytes_with_nul()) };
    let function = found.ok().map(|found| *found);
    // The function is used until the process ends.
    std::mem::forget(library);
    function
}

/// Copies with `hipMemcpy`; false when there is no HIP or it fails.
///
/// # Safety
/// `to` has room for `size` bytes and `from` lies in memory that is allocated on an agent.
pub(super) unsafe fn copy_to_host(to: *mut c_void, from: *const c_void, size: usize) -> bool {
    // SAFETY: the caller's promise.
    hip().is_some_and(|hip| unsafe { (hip.memcpy)(to, from, size, DEVICE_TO_HOST) } == 0)
}

/// Waits until all that HIP's streams hold on the devices in use is done. No limit of time.
///
/// The thread's stream capture mode is relaxed, so a capture that another thread has under way is not spoilt; its
/// current device changes.
pub(super) fn wait_for_devices() {
    let Some(hip) = hip() else { return };
    let mut mode = CAPTURE_MODE_RELAXED;
    let mut count = 0;
    // SAFETY: HIP's functions with arguments of their types.
    unsafe {
        (hip.exchange_capture_mode)(&raw mut mode);
        if (hip.get_device_count)(&raw mut count) != 0 {
            return;
        }
        for device in 0..count {
            let (mut flags, mut active) = (0, 0);
            if (hip.primary_context_state)(device, &raw mut flags, &raw mut active) == 0
                && active != 0
                && (hip.set_device)(device) == 0
            {
                (hip.device_synchronize)();
            }
        }
    }
}

/// Whether HIP is in the process.
pub(super) fn is_loaded() -> bool {
    hip().is_some()
}
