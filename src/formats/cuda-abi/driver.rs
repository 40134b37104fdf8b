//! The driver (`cuda.h`).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt;

/// Defines a handle: a pointer that only the driver dereferences.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub usize);

        impl $name {
            /// No object.
            pub const NULL: $name = $name(0);
        }
    )*};
}

handles! {
    /// A context.
    CUcontext;
    /// A module: code that is loaded in one context.
    CUmodule;
    /// A library: code that the driver loads in each context that uses it.
    CUlibrary;
    /// A kernel of a library.
    CUkernel;
    /// A stream.
    CUstream;
    /// A green context: a part of a device's multiprocessors.
    CUgreenCtx;
}

/// An address in device memory.
pub type CUdeviceptr = u64;
/// The number of a device.
pub type CUdevice = c_int;

/// The result of each function.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUresult(pub u32);

impl fmt::Debug for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUDA error {}", self.0)
    }
}

impl CUresult {
    /// `CUDA_SUCCESS`
    pub const SUCCESS: CUresult = CUresult(0);
    /// `CUDA_ERROR_NOT_INITIALIZED`
    pub const NOT_INITIALIZED: CUresult = CUresult(3);
    /// `CUDA_ERROR_NOT_FOUND`: there is no such symbol.
    pub const NOT_FOUND: CUresult = CUresult(500);
    /// `CUDA_ERROR_NOT_READY`: a stream is still busy.
    pub const NOT_READY: CUresult = CUresult(600);
}

/// A stream does not synchronize with the legacy stream.
pub const CU_STREAM_NON_BLOCKING: c_uint = 1;
/// The calling thread may call functions that other modes forbid while a thread captures.
pub const CU_STREAM_CAPTURE_MODE_RELAXED: c_int = 2;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`
pub const CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: c_int = 16;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: c_int = 76;

functions! {
    /// The device with this number.
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> CUresult;
    /// A device's name, at most `size` bytes with the terminating 0.
    cuDeviceGetName(name: *mut c_char, size: c_int, device: CUdevice) -> CUresult;
    /// An attribute of a device.
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice) -> CUresult;
    /// Fails if the driver is not initialized.
    cuDeviceGetCount(count: *mut c_int) -> CUresult;
    /// Makes a context the current one of the calling thread.
    cuCtxPushCurrent_v2(context: CUcontext) -> CUresult;
    /// Reverts `cuCtxPushCurrent`.
    cuCtxPopCurrent_v2(context: *mut CUcontext) -> CUresult;
    /// The current context of the calling thread, null if there is none.
    cuCtxGetCurrent(context: *mut CUcontext) -> CUresult;
    /// Whether a device's primary context exists, and its flags.
    cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int) -> CUresult;
    /// Gives the primary context, which is created if necessary. It stays until it is released as often.
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) -> CUresult;
    /// Reverts `cuDevicePrimaryCtxRetain`.
    cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> CUresult;
    /// The device of the current context.
    cuCtxGetDevice(device: *mut CUdevice) -> CUresult;
    /// Waits for all work in the current context.
    cuCtxSynchronize() -> CUresult;
    /// The address and the size of a variable of a module, in bytes.
    cuModuleGetGlobal_v2(address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char) -> CUresult;
    /// The module of a library in the current context. Loads it if necessary.
    cuLibraryGetModule(module: *mut CUmodule, library: CUlibrary) -> CUresult;
    /// The kernel of a library with this name. Does not load the library's module.
    cuLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const c_char) -> CUresult;
    /// Creates a stream in the current context.
    cuStreamCreate(stream: *mut CUstream, flags: c_uint) -> CUresult;
    /// Whether a stream is idle.
    cuStreamQuery(stream: CUstream) -> CUresult;
    /// Waits until a stream is idle.
    cuStreamSynchronize(stream: CUstream) -> CUresult;
    /// Sets the capture mode of the calling thread, and returns the old one.
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int) -> CUresult;
    /// The free memory and the size of the memory of the current context's device, bytes.
    cuMemGetInfo_v2(free: *mut usize, size: *mut usize) -> CUresult;
    /// Allocates device memory in the current context.
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) -> CUresult;
    /// Frees memory of `cuMemAlloc`.
    cuMemFree_v2(address: CUdeviceptr) -> CUresult;
    /// Frees memory after the work of a stream, without waiting for it.
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream) -> CUresult;
    /// Copies to the device.
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) -> CUresult;
    /// Copies from the device.
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult;
    /// Sets each byte of a range on the device.
    cuMemsetD8Async(to: CUdeviceptr, value: u8, bytes: usize, stream: CUstream) -> CUresult;
}
