//! The part of HSA's C interface that devprof uses. Names and numbers mirror `hsa/hsa.h`, `hsa/hsa_ext_amd.h` and
//! `hsa/hsa_ven_amd_loader.h` of ROCr 7.2; handles are opaque 64-bit values there and here.

use std::ffi::c_void;
use std::fmt;

/// `hsa_status_t`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

impl Status {
    /// `HSA_STATUS_SUCCESS`.
    pub const SUCCESS: Status = Status(0);
    /// `HSA_STATUS_INFO_BREAK`: an iteration was ended by its callback.
    pub const INFO_BREAK: Status = Status(1);
    /// `HSA_STATUS_ERROR`.
    pub const ERROR: Status = Status(0x1000);
    /// `HSA_STATUS_ERROR_NOT_INITIALIZED`.
    pub const NOT_INITIALIZED: Status = Status(0x100b);
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HSA status {:#x}", self.0)
    }
}

macro_rules! handle {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u64);
    )*};
}

handle! {
    /// `hsa_agent_t`.
    AgentHandle,
    /// `hsa_executable_t`.
    ExecutableHandle,
    /// `hsa_executable_symbol_t`.
    SymbolHandle,
    /// `hsa_loaded_code_object_t`.
    LoadedCodeObjectHandle,
    /// `hsa_signal_t`.
    SignalHandle,
    /// `hsa_amd_memory_pool_t`.
    PoolHandle
}

/// `hsa_signal_value_t` of the large machine model.
pub type SignalValue = i64;

/// `HSA_SYSTEM_INFO_TIMESTAMP`: u64, ticks.
pub const SYSTEM_INFO_TIMESTAMP: u32 = 2;
/// `HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY`: u64, ticks a second.
pub const SYSTEM_INFO_TIMESTAMP_FREQUENCY: u32 = 3;
/// `HSA_EXTENSION_AMD_LOADER`.
pub const EXTENSION_AMD_LOADER: u16 = 0x201;
/// `HSA_AGENT_INFO_NAME`: 64 bytes, zero-padded. For a GPU the target's name, such as `gfx1100`.
pub const AGENT_INFO_NAME: u32 = 0;
/// `HSA_AGENT_INFO_QUEUE_MIN_SIZE`: u32, packets.
pub const AGENT_INFO_QUEUE_MIN_SIZE: u32 = 13;
/// `HSA_AGENT_INFO_NODE`: u32.
pub const AGENT_INFO_NODE: u32 = 16;
/// `HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT`: u32.
pub const AMD_AGENT_INFO_COMPUTE_UNIT_COUNT: u32 = 0xa002;
/// `HSA_AMD_AGENT_INFO_PRODUCT_NAME`: 64 bytes, zero-padded.
pub const AMD_AGENT_INFO_PRODUCT_NAME: u32 = 0xa009;
/// `HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY`: u64, ticks a second.
pub const AMD_AGENT_INFO_TIMESTAMP_FREQUENCY: u32 = 0xa016;
/// `HSA_AGENT_INFO_DEVICE`: a `hsa_device_type_t`.
pub const AGENT_INFO_DEVICE: u32 = 17;
/// `HSA_DEVICE_TYPE_CPU`.
pub const DEVICE_TYPE_CPU: u32 = 0;
/// `HSA_DEVICE_TYPE_GPU`.
pub const DEVICE_TYPE_GPU: u32 = 1;
/// `HSA_EXECUTABLE_SYMBOL_INFO_TYPE`: a `hsa_symbol_kind_t`.
pub const SYMBOL_INFO_TYPE: u32 = 0;
/// `HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH`: u32.
pub const SYMBOL_INFO_NAME_LENGTH: u32 = 1;
/// `HSA_EXECUTABLE_SYMBOL_INFO_NAME`: that many bytes, not terminated.
pub const SYMBOL_INFO_NAME: u32 = 2;
/// `HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE`: u32, bytes.
pub const SYMBOL_INFO_VARIABLE_SIZE: u32 = 9;
/// `HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS`: u64.
pub const SYMBOL_INFO_VARIABLE_ADDRESS: u32 = 21;
/// `HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE`: u32, bytes.
pub const SYMBOL_INFO_KERNARG_SIZE: u32 = 11;
/// `HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE`: u32, bytes.
pub const SYMBOL_INFO_GROUP_SIZE: u32 = 13;
/// `HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE`: u32, bytes.
pub const SYMBOL_INFO_PRIVATE_SIZE: u32 = 14;
/// `HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT`: u64.
pub const SYMBOL_INFO_KERNEL_OBJECT: u32 = 22;
/// `HSA_SYMBOL_KIND_VARIABLE`.
pub const SYMBOL_KIND_VARIABLE: u32 = 0;
/// `HSA_SYMBOL_KIND_KERNEL`.
pub const SYMBOL_KIND_KERNEL: u32 = 1;
/// `HSA_AMD_SIGNAL_AMD_GPU_ONLY`: no interrupt, the host polls.
pub const AMD_SIGNAL_AMD_GPU_ONLY: u64 = 1;
/// `offsetof(amd_queue_t, write_dispatch_id)`.
pub const AMD_QUEUE_WRITE_DISPATCH_ID: usize = 56;
/// `offsetof(amd_queue_t, read_dispatch_id)`.
pub const AMD_QUEUE_READ_DISPATCH_ID: usize = 128;
/// `offsetof(amd_signal_t, start_ts)`.
pub const AMD_SIGNAL_START_TS: usize = 32;
/// `offsetof(amd_signal_t, end_ts)`.
pub const AMD_SIGNAL_END_TS: usize = 40;
/// `HSA_AMD_MEMORY_POOL_INFO_SEGMENT`: a `hsa_amd_segment_t`.
pub const POOL_INFO_SEGMENT: u32 = 0;
/// `HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS`: u32.
pub const POOL_INFO_GLOBAL_FLAGS: u32 = 1;
/// `HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED`: bool.
pub const POOL_INFO_ALLOC_ALLOWED: u32 = 5;
/// `HSA_AMD_SEGMENT_GLOBAL`.
pub const SEGMENT_GLOBAL: u32 = 0;
/// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED`.
pub const POOL_FLAG_FINE_GRAINED: u32 = 2;
/// `HSA_SIGNAL_CONDITION_LT`.
pub const SIGNAL_CONDITION_LT: u32 = 2;
/// `HSA_WAIT_STATE_BLOCKED`.
pub const WAIT_STATE_BLOCKED: u32 = 0;
/// `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH`: u32, bytes without a terminator.
pub const LOADED_CODE_OBJECT_INFO_URI_LENGTH: u32 = 11;
/// `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI`: that many bytes, not terminated.
pub const LOADED_CODE_OBJECT_INFO_URI: u32 = 12;
/// `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE`: u64, a device address.
pub const LOADED_CODE_OBJECT_INFO_LOAD_BASE: u32 = 9;
/// `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE`: u64, bytes of one allocation.
pub const LOADED_CODE_OBJECT_INFO_LOAD_SIZE: u32 = 10;
/// `HSA_EXECUTABLE_INFO_STATE`: u32.
pub const EXECUTABLE_INFO_STATE: u32 = 2;
/// `HSA_EXECUTABLE_STATE_FROZEN`.
pub const EXECUTABLE_STATE_FROZEN: u32 = 1;
/// `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT`.
pub const LOADED_CODE_OBJECT_INFO_AGENT: u32 = 3;

/// `HSA_QUEUE_TYPE_MULTI`: many producers.
pub const QUEUE_TYPE_MULTI: u32 = 0;
/// `HSA_QUEUE_TYPE_SINGLE`: one producer.
pub const QUEUE_TYPE_SINGLE: u32 = 1;
/// `HSA_QUEUE_TYPE_COOPERATIVE`: the agent's own queue for kernels whose workgroups wait for each other.
pub const QUEUE_TYPE_COOPERATIVE: u32 = 2;

/// The beginning of `hsa_queue_t`.
#[repr(C)]
pub struct QueueHead {
    pub kind: u32,
    pub features: u32,
    pub base_address: *mut c_void,
    pub doorbell_signal: SignalHandle,
    /// Packets.
    pub size: u32,
}

/// `hsa_ven_amd_loader_1_03_pfn_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LoaderTable {
    pub query_host_address: unsafe extern "C" fn(*const c_void, *mut *const c_void) -> Status,
    pub query_segment_descriptors: usize,
    pub query_executable: usize,
    pub executable_iterate_loaded_code_objects: unsafe extern "C" fn(
        ExecutableHandle,
        unsafe extern "C" fn(ExecutableHandle, LoadedCodeObjectHandle, *mut c_void) -> Status,
        *mut c_void,
    ) -> Status,
    pub loaded_code_object_get_info:
        unsafe extern "C" fn(LoadedCodeObjectHandle, u32, *mut c_void) -> Status,
    pub code_object_reader_create_from_file_with_offset_size: usize,
    pub iterate_executables: unsafe extern "C" fn(
        unsafe extern "C" fn(ExecutableHandle, *mut c_void) -> Status,
        *mut c_void,
    ) -> Status,
}

/// `hsa_amd_profiling_dispatch_time_t`: ticks of the system clock, or of the agent's where that is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DispatchTime {
    pub start: u64,
    pub end: u64,
}
