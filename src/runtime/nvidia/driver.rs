//! The functions of the CUDA driver in the process. This module never loads or initializes the driver: if it is not
//! loaded, no CUDA code can have run.

use crate::gpu::runtime::{Code, Error};
use cuda_abi::driver::*;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// The driver's file name.
pub const LIBRARY: &str = "libcuda.so.1";

/// Defines a struct of functions of a library, whose types are in a module of `cuda_abi`.
macro_rules! functions {
    ($(#[$doc:meta])* $struct:ident in $module:ident: $($name:ident),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[expect(non_snake_case, reason = "the library's names")]
        pub struct $struct {
            $(pub $name: cuda_abi::$module::$name,)*
        }

        impl $struct {
            fn resolve(library: &Library) -> Result<$struct, Error> {
                Ok($struct {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the type of the function in NVIDIA's headers; the library is never unloaded.
                        let found = unsafe { library.get::<cuda_abi::$module::$name>(name.as_bytes()) };
                        *found.map_err(|_| Error::Missing { runtime: "CUDA", function: stringify!($name) })?
                    },)*
                })
            }
        }
    };
}
pub(super) use functions;

functions! {
    /// The functions of the driver that devprof calls.
    Driver in driver:
    cuDeviceGetCount,
    cuCtxPushCurrent_v2,
    cuCtxPopCurrent_v2,
    cuCtxGetDevice,
    cuCtxSynchronize,
    cuModuleGetGlobal_v2,
    cuLibraryGetModule,
    cuLibraryGetKernel,
    cuStreamCreate,
    cuStreamQuery,
    cuStreamSynchronize,
    cuThreadExchangeStreamCaptureMode,
    cuDeviceGetAttribute,
    cuMemGetInfo_v2,
    cuMemAlloc_v2,
    cuMemFree_v2,
    cuMemFreeAsync,
    cuMemcpyHtoDAsync_v2,
    cuMemcpyDtoHAsync_v2,
    cuMemsetD8Async,
}

functions! {
    /// The functions that describe devices.
    Devices in driver:
    cuDeviceGet,
    cuDeviceGetName,
    cuDeviceGetAttribute,
}

functions! {
    /// The functions that describe contexts.
    Contexts in driver:
    cuCtxGetCurrent,
    cuDevicePrimaryCtxGetState,
    cuDevicePrimaryCtxRetain,
    cuDevicePrimaryCtxRelease_v2,
}

/// The functions that describe contexts, if the driver is loaded and has them.
pub fn contexts() -> Option<&'static Contexts> {
    static CONTEXTS: OnceLock<Option<Contexts>> = OnceLock::new();
    let library = loaded()?;
    CONTEXTS
        .get_or_init(|| Contexts::resolve(&library).ok())
        .as_ref()
}

/// The calling thread's current context.
pub fn current_context() -> CUcontext {
    let _own = OwnCalls::begin();
    let mut context = CUcontext::NULL;
    if let Some(contexts) = contexts() {
        // SAFETY: writes the handle. If it fails, the handle stays null.
        unsafe { (contexts.cuCtxGetCurrent)(&raw mut context) };
    }
    context
}

/// The address of one of the driver's functions; null if it has no such function, or is not loaded.
pub fn address(function: &CStr) -> *mut c_void {
    let found = loaded().and_then(|library| {
        // SAFETY: the function is not called with this type.
        let found = unsafe { library.get::<*mut c_void>(function.to_bytes_with_nul()) };
        Some(found.ok()?.into_raw())
    });
    found.unwrap_or(std::ptr::null_mut())
}

/// The functions that describe devices, if the driver is loaded.
pub fn devices() -> Option<Result<Devices, Error>> {
    let library = loaded()?;
    Some(Devices::resolve(&library))
}

/// The driver, if it is loaded. It is never unloaded.
fn loaded() -> Option<std::mem::ManuallyDrop<Library>> {
    // SAFETY: RTLD_NOLOAD only finds a loaded library.
    let library =
        unsafe { Library::open(Some(LIBRARY), RTLD_LAZY | RTLD_LOCAL | libc::RTLD_NOLOAD) };
    // Its functions are used until the process ends.
    library.ok().map(std::mem::ManuallyDrop::new)
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// The driver, if it was found before.
pub fn known() -> Option<&'static Driver> {
    DRIVER.get()
}

/// The driver, if it is loaded. Searched for at each call until it is found.
pub fn find() -> Option<Result<&'static Driver, Error>> {
    if let Some(driver) = known() {
        return Some(Ok(driver));
    }
    let library = loaded()?;
    let resolved = Driver::resolve(&library);
    Some(resolved.map(|driver| DRIVER.get_or_init(|| driver)))
}

/// An attribute of a device. `get`: the driver's function.
pub fn attribute(get: cuDeviceGetAttribute, device: CUdevice, number: c_int) -> Result<u32, Error> {
    let mut value = 0;
    // SAFETY: writes the value.
    let result = unsafe { get(&raw mut value, number, device) };
    check("cuDeviceGetAttribute", result).map(|()| value.max(0) as u32)
}

/// The error of a call, unless it has succeeded.
pub fn check(call: &'static str, result: CUresult) -> Result<(), Error> {
    let CUresult(number) = result;
    let code = Code {
        runtime: "CUDA",
        number,
    };
    if result == CUresult::SUCCESS {
        Ok(())
    } else if let Some(what) = kernel_error(number) {
        Err(Error::KernelFailed { code, what })
    } else {
        Err(Error::Call { call, code })
    }
}

/// The description of an error of a kernel, after which all calls for its context return this error (cuda.h, `cudaError_enum`:
/// "This leaves the process in an inconsistent state"), as `cuGetErrorString` returns it.
fn kernel_error(number: u32) -> Option<&'static str> {
    Some(match number {
        700 => "an illegal memory access was encountered",
        702 => "the launch timed out and was terminated",
        710 => "device-side assert triggered",
        714 => "hardware stack error",
        715 => "an illegal instruction was encountered",
        716 => "misaligned address",
        717 => "operation not supported on global/shared address space",
        718 => "invalid program counter",
        719 => "unspecified launch failure",
        _ => return None,
    })
}

thread_local! {
    static OWN_CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Until it is dropped, the calling thread's calls of the driver are devprof's own. A trace does not record them.
pub struct OwnCalls(());

impl OwnCalls {
    pub fn begin() -> OwnCalls {
        OWN_CALLS.set(OWN_CALLS.get() + 1);
        OwnCalls(())
    }
}

impl Drop for OwnCalls {
    fn drop(&mut self) {
        OWN_CALLS.set(OWN_CALLS.get() - 1);
    }
}

/// Whether the calling thread calls the driver for devprof.
pub fn is_own_call() -> bool {
    OWN_CALLS.get() > 0
}

/// A context that is the calling thread's current one. The thread's capture mode is relaxed meanwhile, so that calls do
/// not invalidate a capture of another thread.
pub struct Current<'a> {
    driver: &'a Driver,
    mode: c_int,
    _own: OwnCalls,
}

impl Current<'_> {
    pub fn enter(driver: &Driver, context: CUcontext) -> Result<Current<'_>, Error> {
        let own = OwnCalls::begin();
        // SAFETY: a handle from the driver. If the context was destroyed, the call fails.
        let result = unsafe { (driver.cuCtxPushCurrent_v2)(context) };
        check("cuCtxPushCurrent", result)?;
        let mut mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: writes the old mode. If it fails, copies may fail during a capture, which is reported.
        unsafe { (driver.cuThreadExchangeStreamCaptureMode)(&raw mut mode) };
        Ok(Current {
            driver,
            mode,
            _own: own,
        })
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut context = CUcontext::NULL;
        // SAFETY: reverts both calls of `enter`.
        unsafe {
            (self.driver.cuThreadExchangeStreamCaptureMode)(&raw mut self.mode);
            (self.driver.cuCtxPopCurrent_v2)(&raw mut context);
        }
    }
}
