//! CUPTI's activity interface (`cupti_activity.h`). Records are longer than these structs: each new version of CUPTI adds
//! fields at their end. The fields here have been in the same location since CUDA 11.

use crate::cupti::CUptiResult;
use crate::driver::{CUcontext, CUstream};
use std::ffi::c_char;

/// The oldest version of CUPTI (`cuptiGetVersion`) that has all functions of this module. CUDA 11.8 has it.
pub const OLDEST_VERSION: u32 = 18;

/// `CUPTI_ACTIVITY_KIND_MEMCPY`
pub const CUPTI_ACTIVITY_KIND_MEMCPY: u32 = 1;
/// `CUPTI_ACTIVITY_KIND_MEMSET`
pub const CUPTI_ACTIVITY_KIND_MEMSET: u32 = 2;
/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`: kernels, which stay concurrent.
pub const CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: u32 = 10;
/// `CUPTI_ACTIVITY_KIND_MEMCPY2`: copies between two devices.
pub const CUPTI_ACTIVITY_KIND_MEMCPY2: u32 = 22;

/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: deliver incomplete records, too.
pub const CUPTI_ACTIVITY_FLAG_FLUSH_FORCED: u32 = 1;

/// `CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER`: a `u8`; not 0: the tool clears its buffers.
pub const CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER: u32 = 5;

/// `CUpti_ActivityMemcpyKind`
pub mod memcpy_kind {
    /// Host to device.
    pub const HTOD: u8 = 1;
    /// Device to host.
    pub const DTOH: u8 = 2;
    /// Host to array.
    pub const HTOA: u8 = 3;
    /// Array to host.
    pub const ATOH: u8 = 4;
    /// Array to array.
    pub const ATOA: u8 = 5;
    /// Array to device.
    pub const ATOD: u8 = 6;
    /// Device to array.
    pub const DTOA: u8 = 7;
    /// Within a device.
    pub const DTOD: u8 = 8;
    /// Host to host.
    pub const HTOH: u8 = 9;
}

/// The beginning of `CUpti_ActivityKernel10` and of its earlier versions. Times are of the timestamp callback's clock, 0 if
/// they are unknown.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUpti_ActivityKernel {
    /// [`CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`]
    pub kind: u32,
    /// Not used.
    pub cacheConfig: u8,
    /// Not used.
    pub sharedMemoryConfig: u8,
    /// Registers per thread.
    pub registersPerThread: u16,
    /// Not used.
    pub partitionedGlobalCache: [u32; 2],
    /// The first block began.
    pub start: u64,
    /// The last block ended.
    pub end: u64,
    /// Not used.
    pub completed: u64,
    /// The device's number in this process.
    pub deviceId: u32,
    /// The context's number.
    pub contextId: u32,
    /// The stream's number in the context.
    pub streamId: u32,
    /// Blocks.
    pub grid: [i32; 3],
    /// Threads.
    pub block: [i32; 3],
    /// Bytes per block.
    pub staticSharedMemory: i32,
    /// Bytes per block.
    pub dynamicSharedMemory: i32,
    /// Bytes per thread.
    pub localMemoryPerThread: u32,
    /// Not used.
    pub localMemoryTotal: u32,
    /// The number of the call that launched it.
    pub correlationId: u32,
    /// Not used.
    pub gridId: i64,
    /// The mangled name, which stays valid.
    pub name: *const c_char,
}

/// The beginning of `CUpti_ActivityMemcpy6` and of its earlier versions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUpti_ActivityMemcpy {
    /// [`CUPTI_ACTIVITY_KIND_MEMCPY`]
    pub kind: u32,
    /// See [`memcpy_kind`].
    pub copyKind: u8,
    /// Not used.
    pub srcKind: u8,
    /// Not used.
    pub dstKind: u8,
    /// Not used.
    pub flags: u8,
    /// Bytes.
    pub bytes: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The device's number in this process.
    pub deviceId: u32,
    /// The context's number.
    pub contextId: u32,
    /// The stream's number in the context.
    pub streamId: u32,
    /// The number of the driver's function that submitted it.
    pub correlationId: u32,
    /// The number of the runtime's function that submitted it.
    pub runtimeCorrelationId: u32,
}

/// The beginning of `CUpti_ActivityMemcpyPtoP4` and of its earlier versions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUpti_ActivityMemcpyPtoP {
    /// [`CUPTI_ACTIVITY_KIND_MEMCPY2`]
    pub kind: u32,
    /// See [`memcpy_kind`].
    pub copyKind: u8,
    /// Not used.
    pub srcKind: u8,
    /// Not used.
    pub dstKind: u8,
    /// Not used.
    pub flags: u8,
    /// Bytes.
    pub bytes: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The number of the device that copies.
    pub deviceId: u32,
    /// The context's number.
    pub contextId: u32,
    /// The stream's number in the context.
    pub streamId: u32,
    /// The device of the source.
    pub srcDeviceId: u32,
    /// Not used.
    pub srcContextId: u32,
    /// The device of the destination.
    pub dstDeviceId: u32,
    /// Not used.
    pub dstContextId: u32,
    /// The number of the function that submitted it.
    pub correlationId: u32,
}

/// The beginning of `CUpti_ActivityMemset4` and of its earlier versions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUpti_ActivityMemset {
    /// [`CUPTI_ACTIVITY_KIND_MEMSET`]
    pub kind: u32,
    /// The value that is written.
    pub value: u32,
    /// Bytes.
    pub bytes: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The device's number in this process.
    pub deviceId: u32,
    /// The context's number.
    pub contextId: u32,
    /// The stream's number in the context.
    pub streamId: u32,
    /// The number of the function that submitted it.
    pub correlationId: u32,
}

/// Supplies a buffer for records: its address, its size in bytes, and the maximum number of records, 0 for any.
pub type CUpti_BuffersCallbackRequestFunc =
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, maxNumRecords: *mut usize);

/// Takes a buffer back, with `validSize` bytes of records.
pub type CUpti_BuffersCallbackCompleteFunc = unsafe extern "C" fn(
    context: CUcontext,
    streamId: u32,
    buffer: *mut u8,
    size: usize,
    validSize: usize,
);

/// The time now, in nanoseconds.
pub type CUpti_TimestampCallbackFunc = unsafe extern "C" fn() -> u64;

functions! {
    /// CUPTI's version.
    cuptiGetVersion(version: *mut u32) -> CUptiResult;
    /// Sets the functions that supply buffers and take them back.
    cuptiActivityRegisterCallbacks(requested: CUpti_BuffersCallbackRequestFunc, completed: CUpti_BuffersCallbackCompleteFunc) -> CUptiResult;
    /// Sets the clock of all records. To be called before a kind is enabled.
    cuptiActivityRegisterTimestampCallback(now: CUpti_TimestampCallbackFunc) -> CUptiResult;
    /// Sets an attribute, whose value has `size` bytes.
    cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut std::ffi::c_void) -> CUptiResult;
    /// Records this kind from now on.
    cuptiActivityEnable(kind: u32) -> CUptiResult;
    /// Does not record this kind from now on.
    cuptiActivityDisable(kind: u32) -> CUptiResult;
    /// Delivers the buffers whose records are complete, or all of them.
    cuptiActivityFlushAll(flag: u32) -> CUptiResult;
    /// The next record of a buffer. `record` is the previous one, null for the first. Fails after the last one.
    cuptiActivityGetNextRecord(buffer: *mut u8, validSize: usize, record: *mut *mut u32) -> CUptiResult;
    /// How many records were dropped since the last call.
    cuptiActivityGetNumDroppedRecords(context: CUcontext, streamId: u32, dropped: *mut usize) -> CUptiResult;
    /// The number of a context in records.
    cuptiGetContextId(context: CUcontext, contextId: *mut u32) -> CUptiResult;
    /// The number of a stream in records. `perThreadStream`: whether the null stream is each thread's own.
    cuptiGetStreamIdEx(context: CUcontext, stream: CUstream, perThreadStream: u8, streamId: *mut u32) -> CUptiResult;
    /// Enables or disables all callbacks of a domain.
    cuptiEnableDomain(enable: u32, subscriber: crate::cupti::CUpti_SubscriberHandle, domain: std::ffi::c_uint) -> CUptiResult;
}
