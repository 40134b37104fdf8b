//! CUPTI's callback interface (`cupti_callbacks.h`, `cupti_result.h`, `cupti_driver_cbid.h`).

use crate::driver::{CUcontext, CUgreenCtx, CUlibrary, CUmodule, CUstream};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt;

/// The result of each function.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUptiResult(pub u32);

impl fmt::Debug for CUptiResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUPTI error {}", self.0)
    }
}

impl CUptiResult {
    /// `CUPTI_SUCCESS`
    pub const SUCCESS: CUptiResult = CUptiResult(0);
    /// `CUPTI_ERROR_INVALID_PARAMETER`
    pub const INVALID_PARAMETER: CUptiResult = CUptiResult(1);
    /// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`: another tool uses CUPTI.
    pub const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: CUptiResult = CUptiResult(39);
}

/// A subscriber to CUPTI's callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUpti_SubscriberHandle(pub usize);

/// Calls of the runtime's functions.
pub const CUPTI_CB_DOMAIN_RUNTIME_API: c_uint = 2;
/// Calls of the driver's functions.
pub const CUPTI_CB_DOMAIN_DRIVER_API: c_uint = 1;
/// Changes of the driver's objects.
pub const CUPTI_CB_DOMAIN_RESOURCE: c_uint = 3;

/// A context was created.
pub const CUPTI_CBID_RESOURCE_CONTEXT_CREATED: c_uint = 1;
/// A context is about to be destroyed.
pub const CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING: c_uint = 2;
/// A stream was created.
pub const CUPTI_CBID_RESOURCE_STREAM_CREATED: c_uint = 3;
/// A module was loaded in a context.
pub const CUPTI_CBID_RESOURCE_MODULE_LOADED: c_uint = 6;
/// A module is about to be unloaded.
pub const CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING: c_uint = 7;

/// The call is beginning.
pub const CUPTI_API_ENTER: c_uint = 0;
/// The call is over.
pub const CUPTI_API_EXIT: c_uint = 1;

/// The numbers of the driver's functions in callbacks (`CUPTI_DRIVER_TRACE_CBID_…`).
pub mod cbid {
    use std::ffi::c_uint;

    macro_rules! numbers {
        ($($name:ident = $number:literal;)*) => {
            $(
                #[doc = concat!("`CUPTI_DRIVER_TRACE_CBID_", stringify!($name), "`")]
                #[expect(non_upper_case_globals, reason = "the function's name")]
                pub const $name: c_uint = $number;
            )*
        };
    }

    numbers! {
        cuInit = 1;
        cuCtxCreate = 10;
        cuCtxDestroy = 11;
        cuModuleLoad = 18;
        cuModuleLoadData = 19;
        cuModuleLoadDataEx = 20;
        cuModuleLoadFatBinary = 21;
        cuModuleUnload = 22;
        cuCtxCreate_v2 = 235;
        cuCtxCreate_v3 = 645;
        cuCtxCreate_v4 = 757;
        cuCtxDestroy_v2 = 322;
        cuDevicePrimaryCtxRetain = 386;
        cuDevicePrimaryCtxRelease = 387;
        cuDevicePrimaryCtxReset = 389;
        cuDevicePrimaryCtxRelease_v2 = 544;
        cuDevicePrimaryCtxReset_v2 = 545;
        cuStreamBeginCapture = 495;
        cuStreamBeginCapture_ptsz = 496;
        cuStreamEndCapture = 497;
        cuStreamEndCapture_ptsz = 498;
        cuStreamDestroy = 127;
        cuStreamDestroy_v2 = 326;
        cuStreamBeginCapture_v2 = 539;
        cuStreamBeginCapture_v2_ptsz = 540;
        cuStreamBeginCaptureToGraph = 720;
        cuStreamBeginCaptureToGraph_ptsz = 721;
        cuStreamBeginRecaptureToGraph = 846;
        cuStreamBeginRecaptureToGraph_ptsz = 847;
        cuGreenCtxCreate = 743;
        cuGreenCtxDestroy = 744;
        cuCtxFromGreenCtx = 753;
        cuLibraryLoadData = 678;
        cuLibraryLoadFromFile = 679;
        cuLibraryUnload = 680;
        cuLaunchKernel = 307;
        cuProfilerStart = 308;
        cuProfilerStop = 309;
    }
}

/// The numbers of the runtime's functions in callbacks (`CUPTI_RUNTIME_TRACE_CBID_…`).
pub mod runtime_cbid {
    use std::ffi::c_uint;

    /// `CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000`
    #[expect(non_upper_case_globals, reason = "the function's name")]
    pub const cudaProfilerStart: c_uint = 171;
    /// `CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000`
    #[expect(non_upper_case_globals, reason = "the function's name")]
    pub const cudaProfilerStop: c_uint = 172;
}

/// `CUpti_CallbackData`: a call of a function.
#[derive(Debug)]
#[repr(C)]
pub struct CUpti_CallbackData {
    /// [`CUPTI_API_ENTER`] or [`CUPTI_API_EXIT`].
    pub callbackSite: c_uint,
    /// The function's name.
    pub functionName: *const c_char,
    /// The function's arguments: a struct, such as [`cuModuleLoadData_params`].
    pub functionParams: *const c_void,
    /// When the call is over, the function's result.
    pub functionReturnValue: *const c_void,
    /// The kernel's symbol, of a launch.
    pub symbolName: *const c_char,
    /// The current context.
    pub context: CUcontext,
    /// The context's number.
    pub contextUid: u32,
    /// A word that a callback may use.
    pub correlationData: *mut u64,
    /// The call's number.
    pub correlationId: u32,
}

/// `CUpti_ResourceData`: a change of an object.
#[derive(Debug)]
#[repr(C)]
pub struct CUpti_ResourceData {
    /// The object's context.
    pub context: CUcontext,
    /// The object, depending on its kind.
    pub resourceHandle: usize,
    /// More about it, depending on its kind: for modules, [`CUpti_ModuleResourceData`].
    pub resourceDescriptor: *const c_void,
}

/// `CUpti_ModuleResourceData`: a module.
#[derive(Debug)]
#[repr(C)]
pub struct CUpti_ModuleResourceData {
    /// The module's number in this process.
    pub moduleId: u32,
    /// Bytes.
    pub cubinSize: usize,
    /// The module's code, in the cubin format.
    pub pCubin: *const u8,
}

/// `CUpti_SubscriberParams`
#[derive(Debug)]
#[repr(C)]
pub struct CUpti_SubscriberParams {
    /// The size of this struct, in bytes.
    pub structSize: usize,
    /// The new subscriber's name.
    pub subscriberName: *const c_char,
    /// If there is a subscriber, gets its name.
    pub oldSubscriberName: *mut c_char,
    /// The size of that memory, at least [`CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN`] bytes.
    pub oldSubscriberSize: usize,
    /// 1: other subscribers are allowed. Since CUDA 13.2.
    pub allowMultipleSubscribers: u8,
    /// Since CUDA 13.2.
    pub padding: [u8; 7],
}

/// The size of [`CUpti_SubscriberParams`] before CUDA 13.2.
pub const CUPTI_SUBSCRIBER_PARAMS_SIZE_13_0: usize = 32;

/// The size of a subscriber's name, bytes.
pub const CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN: usize = 64;

/// The first arguments of `cuModuleLoadData_params` and `cuModuleLoadDataEx_params`. The arguments of the other functions
/// that load modules have the same types.
#[derive(Debug)]
#[repr(C)]
pub struct cuModuleLoadData_params {
    /// Gets the module.
    pub module: *const CUmodule,
    /// The code, or for `cuModuleLoad` the file's name.
    pub image: *const c_void,
}

/// `cuModuleUnload_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuModuleUnload_params {
    /// The module.
    pub hmod: CUmodule,
}

/// The first arguments of `cuLibraryLoadData_params` and `cuLibraryLoadFromFile_params`.
#[derive(Debug)]
#[repr(C)]
pub struct cuLibraryLoadData_params {
    /// Gets the library.
    pub library: *const CUlibrary,
    /// The code, or the file's name.
    pub code: *const c_void,
}

/// `cuLibraryUnload_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuLibraryUnload_params {
    /// The library.
    pub library: CUlibrary,
}

/// The first argument of the functions that create contexts (`cuCtxCreate_params`, `cuDevicePrimaryCtxRetain_params` and
/// others).
#[derive(Debug)]
#[repr(C)]
pub struct cuCtxCreate_params {
    /// Gets the context.
    pub pctx: *const CUcontext,
}

/// `cuDevicePrimaryCtxRetain_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuDevicePrimaryCtxRetain_params {
    /// Gets the context.
    pub pctx: *const CUcontext,
    /// The device.
    pub dev: c_int,
}

/// `cuGreenCtxCreate_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuGreenCtxCreate_params {
    /// Gets the green context.
    pub phCtx: *const CUgreenCtx,
    /// Its multiprocessors.
    pub desc: *const c_void,
    /// The device.
    pub dev: c_int,
}

/// `cuGreenCtxDestroy_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuGreenCtxDestroy_params {
    /// The green context.
    pub hCtx: CUgreenCtx,
}

/// `cuCtxFromGreenCtx_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuCtxFromGreenCtx_params {
    /// Gets the context.
    pub pContext: *const CUcontext,
    /// The green context.
    pub hCtx: CUgreenCtx,
}

/// The first argument of the functions that begin and end captures (`cuStreamEndCapture_params` and others), and of
/// `cuStreamDestroy_v2_params`.
#[derive(Debug)]
#[repr(C)]
pub struct cuStreamEndCapture_params {
    /// The stream.
    pub hStream: CUstream,
}

/// `cuCtxDestroy_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuCtxDestroy_params {
    /// The context.
    pub ctx: CUcontext,
}

/// `cuDevicePrimaryCtxReset_params` and `cuDevicePrimaryCtxRelease_params`
#[derive(Debug)]
#[repr(C)]
pub struct cuDevicePrimaryCtxReset_params {
    /// The device.
    pub dev: c_int,
}

/// A callback: the domain, the number in the domain, and the data.
pub type CUpti_CallbackFunc =
    unsafe extern "C" fn(user: *mut c_void, domain: c_uint, id: c_uint, data: *const c_void);

functions! {
    /// Adds a subscriber.
    cuptiSubscribe(subscriber: *mut CUpti_SubscriberHandle, callback: CUpti_CallbackFunc, user: *mut c_void) -> CUptiResult;
    /// Adds a subscriber with a name. If there is one already, returns its name. Not in CUDA 12.
    cuptiSubscribe_v2(subscriber: *mut CUpti_SubscriberHandle, callback: CUpti_CallbackFunc, user: *mut c_void, parameters: *mut CUpti_SubscriberParams) -> CUptiResult;
    /// Removes a subscriber.
    cuptiUnsubscribe(subscriber: CUpti_SubscriberHandle) -> CUptiResult;
    /// Enables or disables one callback.
    cuptiEnableCallback(enable: u32, subscriber: CUpti_SubscriberHandle, domain: c_uint, id: c_uint) -> CUptiResult;
}

/// The kind of work that a function of CUDA's APIs submits to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    Nothing,
    /// One kernel, unless the stream is being captured.
    Kernel,
    /// Copies, fills, or any number of kernels.
    Any,
}

/// Where the arguments of a function have the stream. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamArgument {
    /// They have none, and the function uses the default stream.
    Default,
    /// At an offset in the struct of arguments.
    At(usize),
    /// At an offset in the struct to which the first argument points.
    InConfig(usize),
    /// They have none, or it is not known where it is.
    Unknown,
}

/// A function of one of CUDA's APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its number in callbacks.
    pub number: c_uint,
    /// The number of the same function that uses the default stream of the calling thread, 0 if there is none.
    pub per_thread: c_uint,
    /// The kind of work that it submits.
    pub work: Work,
    /// Where its stream is.
    pub stream: StreamArgument,
}
