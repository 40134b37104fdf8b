//! HSA's C interface: numbers, handles and layouts as `hsa/hsa.h`, `hsa/hsa_ext_amd.h`, `hsa/hsa_ven_amd_loader.h` and
//! `hsa/hsa_api_trace.h` of ROCr 7.2 have them. [`crate::headers`] writes the program that checks them against those
//! files.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// `hsa_status_t`.
pub type Status = u32;

macro_rules! constants {
    ($($type:ty { $($name:ident = $value:expr;)* })*) => {
        $($(
            #[doc = concat!("`", stringify!($name), "`.")]
            pub const $name: $type = $value;
        )*)*

        /// Every constant of this module, by the header's name.
        pub const CONSTANTS: &[(&str, u64)] = &[$($((stringify!($name), $name as u64),)*)*];
    };
}

constants! {
    Status {
        HSA_STATUS_SUCCESS = 0;
        HSA_STATUS_INFO_BREAK = 1;
        HSA_STATUS_ERROR = 0x1000;
        HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001;
        HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002;
        HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003;
        HSA_STATUS_ERROR_INVALID_AGENT = 0x1004;
        HSA_STATUS_ERROR_INVALID_REGION = 0x1005;
        HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006;
        HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007;
        HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008;
        HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009;
        HSA_STATUS_ERROR_RESOURCE_FREE = 0x100a;
        HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100b;
        HSA_STATUS_ERROR_REFCOUNT_OVERFLOW = 0x100c;
        HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100d;
        HSA_STATUS_ERROR_INVALID_INDEX = 0x100e;
        HSA_STATUS_ERROR_INVALID_ISA = 0x100f;
        HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010;
        HSA_STATUS_ERROR_INVALID_EXECUTABLE = 0x1011;
        HSA_STATUS_ERROR_FROZEN_EXECUTABLE = 0x1012;
        HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013;
        HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED = 0x1014;
        HSA_STATUS_ERROR_VARIABLE_UNDEFINED = 0x1015;
        HSA_STATUS_ERROR_EXCEPTION = 0x1016;
        HSA_STATUS_ERROR_INVALID_ISA_NAME = 0x1017;
        HSA_STATUS_ERROR_INVALID_CODE_SYMBOL = 0x1018;
        HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019;
        HSA_STATUS_ERROR_INVALID_FILE = 0x1020;
        HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021;
        HSA_STATUS_ERROR_INVALID_CACHE = 0x1022;
        HSA_STATUS_ERROR_INVALID_WAVEFRONT = 0x1023;
        HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP = 0x1024;
        HSA_STATUS_ERROR_INVALID_RUNTIME_STATE = 0x1025;
        HSA_STATUS_ERROR_FATAL = 0x1026;
        HSA_STATUS_ERROR_INVALID_MEMORY_POOL = 40;
        HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 41;
        HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 42;
        HSA_STATUS_ERROR_MEMORY_FAULT = 43;
        HSA_STATUS_ERROR_NOT_SUPPORTED = 47;
    }
    u32 {
        HSA_SYSTEM_INFO_VERSION_MAJOR = 0;
        HSA_SYSTEM_INFO_VERSION_MINOR = 1;
        HSA_SYSTEM_INFO_TIMESTAMP = 2;
        HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3;
        HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4;
        HSA_SYSTEM_INFO_ENDIANNESS = 5;
        HSA_SYSTEM_INFO_MACHINE_MODEL = 6;
        HSA_SYSTEM_INFO_EXTENSIONS = 7;
        HSA_AMD_SYSTEM_INFO_BUILD_VERSION = 0x200;
        HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED = 0x201;
        HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT = 0x202;
        HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED = 0x203;
        HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED = 0x204;
        HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED = 0x205;
        HSA_AMD_SYSTEM_INFO_XNACK_ENABLED = 0x206;
        HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR = 0x207;
        HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR = 0x208;
        HSA_MACHINE_MODEL_LARGE = 1;
        HSA_PROFILE_BASE = 0;
        HSA_PROFILE_FULL = 1;
        HSA_DEVICE_TYPE_CPU = 0;
        HSA_DEVICE_TYPE_GPU = 1;
        HSA_AGENT_FEATURE_KERNEL_DISPATCH = 1;
        HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0;
        HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR = 2;
        HSA_AGENT_INFO_NAME = 0;
        HSA_AGENT_INFO_VENDOR_NAME = 1;
        HSA_AGENT_INFO_FEATURE = 2;
        HSA_AGENT_INFO_MACHINE_MODEL = 3;
        HSA_AGENT_INFO_PROFILE = 4;
        HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5;
        HSA_AGENT_INFO_WAVEFRONT_SIZE = 6;
        HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 7;
        HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8;
        HSA_AGENT_INFO_GRID_MAX_DIM = 9;
        HSA_AGENT_INFO_GRID_MAX_SIZE = 10;
        HSA_AGENT_INFO_FBARRIER_MAX_SIZE = 11;
        HSA_AGENT_INFO_QUEUES_MAX = 12;
        HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13;
        HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14;
        HSA_AGENT_INFO_QUEUE_TYPE = 15;
        HSA_AGENT_INFO_NODE = 16;
        HSA_AGENT_INFO_DEVICE = 17;
        HSA_AGENT_INFO_CACHE_SIZE = 18;
        HSA_AGENT_INFO_ISA = 19;
        HSA_AGENT_INFO_EXTENSIONS = 20;
        HSA_AGENT_INFO_VERSION_MAJOR = 21;
        HSA_AGENT_INFO_VERSION_MINOR = 22;
        HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 23;
        HSA_AGENT_INFO_FAST_F16_OPERATION = 24;
        HSA_AMD_AGENT_INFO_CHIP_ID = 0xa000;
        HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xa001;
        HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xa002;
        HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xa003;
        HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xa004;
        HSA_AMD_AGENT_INFO_BDFID = 0xa006;
        HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xa009;
        HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xa00a;
        HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xa00b;
        HSA_AMD_AGENT_INFO_DOMAIN = 0xa00f;
        HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xa010;
        HSA_AMD_AGENT_INFO_UUID = 0xa011;
        HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xa015;
        HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xa016;
        HSA_AMD_AGENT_INFO_DRIVER_UID = 0xa112;
        HSA_AMD_AGENT_INFO_NEAREST_CPU = 0xa113;
        HSA_AMD_AGENT_INFO_CLOCK_COUNTERS = 0xa118;
        HSA_AMD_REGION_INFO_HOST_ACCESSIBLE = 0xa000;
        HSA_SIGNAL_CONDITION_EQ = 0;
        HSA_SIGNAL_CONDITION_NE = 1;
        HSA_SIGNAL_CONDITION_LT = 2;
        HSA_SIGNAL_CONDITION_GTE = 3;
        HSA_WAIT_STATE_BLOCKED = 0;
        HSA_WAIT_STATE_ACTIVE = 1;
        HSA_QUEUE_TYPE_MULTI = 0;
        HSA_QUEUE_TYPE_SINGLE = 1;
        HSA_QUEUE_TYPE_COOPERATIVE = 2;
        HSA_QUEUE_FEATURE_KERNEL_DISPATCH = 1;
        HSA_REGION_SEGMENT_GLOBAL = 0;
        HSA_REGION_SEGMENT_GROUP = 3;
        HSA_REGION_GLOBAL_FLAG_KERNARG = 1;
        HSA_REGION_GLOBAL_FLAG_FINE_GRAINED = 2;
        HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED = 4;
        HSA_REGION_INFO_SEGMENT = 0;
        HSA_REGION_INFO_GLOBAL_FLAGS = 1;
        HSA_REGION_INFO_SIZE = 2;
        HSA_REGION_INFO_ALLOC_MAX_SIZE = 4;
        HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED = 5;
        HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE = 6;
        HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT = 7;
        HSA_AMD_SEGMENT_GLOBAL = 0;
        HSA_AMD_SEGMENT_GROUP = 3;
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1;
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2;
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4;
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8;
        HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0;
        HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1;
        HSA_AMD_MEMORY_POOL_INFO_SIZE = 2;
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5;
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6;
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7;
        HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15;
        HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16;
        HSA_AMD_MEMORY_POOL_INFO_LOCATION = 17;
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE = 18;
        HSA_AMD_MEMORY_POOL_LOCATION_CPU = 0;
        HSA_AMD_MEMORY_POOL_LOCATION_GPU = 1;
        HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0;
        HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT = 1;
        HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT = 2;
        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0;
        HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS = 1;
        HSA_EXT_POINTER_TYPE_UNKNOWN = 0;
        HSA_EXT_POINTER_TYPE_HSA = 1;
        HSA_EXT_POINTER_TYPE_LOCKED = 2;
        HSA_AMD_QUEUE_INFO_AGENT = 0;
        HSA_AMD_QUEUE_INFO_DOORBELL_ID = 1;
        HSA_ISA_INFO_NAME_LENGTH = 0;
        HSA_ISA_INFO_NAME = 1;
        HSA_ISA_INFO_CALL_CONVENTION_COUNT = 2;
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE = 3;
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONTS_PER_COMPUTE_UNIT = 4;
        HSA_ISA_INFO_MACHINE_MODELS = 5;
        HSA_ISA_INFO_PROFILES = 6;
        HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES = 7;
        HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 8;
        HSA_ISA_INFO_FAST_F16_OPERATION = 9;
        HSA_ISA_INFO_WORKGROUP_MAX_DIM = 12;
        HSA_ISA_INFO_WORKGROUP_MAX_SIZE = 13;
        HSA_ISA_INFO_GRID_MAX_DIM = 14;
        HSA_ISA_INFO_GRID_MAX_SIZE = 16;
        HSA_ISA_INFO_FBARRIER_MAX_SIZE = 17;
        HSA_WAVEFRONT_INFO_SIZE = 0;
        HSA_EXECUTABLE_STATE_UNFROZEN = 0;
        HSA_EXECUTABLE_STATE_FROZEN = 1;
        HSA_EXECUTABLE_INFO_PROFILE = 1;
        HSA_EXECUTABLE_INFO_STATE = 2;
        HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 3;
        HSA_SYMBOL_KIND_VARIABLE = 0;
        HSA_SYMBOL_KIND_KERNEL = 1;
        HSA_SYMBOL_LINKAGE_MODULE = 0;
        HSA_SYMBOL_LINKAGE_PROGRAM = 1;
        HSA_VARIABLE_ALLOCATION_AGENT = 0;
        HSA_VARIABLE_ALLOCATION_PROGRAM = 1;
        HSA_VARIABLE_SEGMENT_GLOBAL = 0;
        HSA_VARIABLE_SEGMENT_READONLY = 1;
        HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0;
        HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH = 1;
        HSA_EXECUTABLE_SYMBOL_INFO_NAME = 2;
        HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH = 3;
        HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME = 4;
        HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE = 5;
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION = 6;
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT = 7;
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT = 8;
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE = 9;
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST = 10;
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11;
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12;
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13;
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14;
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK = 15;
        HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION = 17;
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION = 18;
        HSA_EXECUTABLE_SYMBOL_INFO_AGENT = 20;
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS = 21;
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22;
        HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_NONE = 0;
        HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_FILE = 1;
        HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY = 2;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_PROGRAM = 1;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT = 2;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_EXECUTABLE = 1;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND = 2;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT = 3;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE = 4;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE = 5;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE = 6;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_FILE = 7;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA = 8;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE = 9;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE = 10;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH = 11;
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI = 12;
    }
    u16 {
        HSA_EXTENSION_FINALIZER = 0;
        HSA_EXTENSION_IMAGES = 1;
        HSA_EXTENSION_AMD_PROFILER = 0x200;
        HSA_EXTENSION_AMD_LOADER = 0x201;
        HSA_EXTENSION_AMD_AQLPROFILE = 0x202;
        HSA_EXTENSION_AMD_PC_SAMPLING = 0x203;
    }
    i64 {
        AMD_SIGNAL_KIND_USER = 1;
        AMD_SIGNAL_KIND_DOORBELL = -1;
    }
    u8 {
        HSA_PACKET_TYPE_VENDOR_SPECIFIC = 0;
        HSA_PACKET_TYPE_INVALID = 1;
        HSA_PACKET_TYPE_KERNEL_DISPATCH = 2;
        HSA_PACKET_TYPE_BARRIER_AND = 3;
        HSA_PACKET_TYPE_BARRIER_OR = 5;
        AMD_AQL_FORMAT_INTERCEPT_MARKER = 0xfe;
    }
}

/// `hsa_agent_t`. By value it is passed as the `u64` it holds, and so are all other handles.
pub type Agent = u64;
/// `hsa_signal_t`: the address of an [`AmdSignal`].
pub type Signal = u64;
/// `hsa_signal_value_t`.
pub type SignalValue = i64;
/// `hsa_isa_t`.
pub type Isa = u64;
/// `hsa_region_t` and `hsa_amd_memory_pool_t`.
pub type Pool = u64;
/// `hsa_wavefront_t`.
pub type Wavefront = u64;
/// `hsa_code_object_reader_t`.
pub type Reader = u64;
/// `hsa_executable_t`.
pub type Executable = u64;
/// `hsa_loaded_code_object_t`.
pub type LoadedCodeObject = u64;
/// `hsa_executable_symbol_t`.
pub type Symbol = u64;

/// A callback of an iteration over things that one handle names.
pub type Visit = unsafe extern "C" fn(u64, *mut c_void) -> Status;
/// A callback of `hsa_executable_iterate_symbols` and `hsa_executable_iterate_program_symbols`, and of
/// `hsa_ven_amd_loader_executable_iterate_loaded_code_objects`.
pub type VisitOf = unsafe extern "C" fn(Executable, u64, *mut c_void) -> Status;
/// A callback of `hsa_executable_iterate_agent_symbols`.
pub type VisitAgentSymbol = unsafe extern "C" fn(Executable, Agent, Symbol, *mut c_void) -> Status;
/// `hsa_amd_signal_handler`.
pub type SignalHandler = unsafe extern "C" fn(SignalValue, *mut c_void) -> bool;
/// What is told that a queue has failed.
pub type QueueError = unsafe extern "C" fn(Status, *mut Queue, *mut c_void);
/// `hsa_amd_queue_intercept_packet_writer`.
pub type PacketWriter = unsafe extern "C" fn(*const c_void, u64);
/// `hsa_amd_queue_intercept_handler`.
pub type PacketHandler = unsafe extern "C" fn(*const c_void, u64, u64, *mut c_void, PacketWriter);
/// `hsa_amd_runtime_queue_notifier`.
pub type QueueNotifier = unsafe extern "C" fn(*const Queue, Agent, *mut c_void);
/// `hsa_amd_deallocation_callback_t`.
pub type Deallocated = unsafe extern "C" fn(*mut c_void, *mut c_void);
/// `hsa_amd_system_event_callback_t`.
pub type SystemEvent = unsafe extern "C" fn(*const c_void, *mut c_void) -> Status;
/// `amd_intercept_marker_handler`.
pub type MarkerHandler = unsafe extern "C" fn(*const c_void, *mut Queue, u64);

/// `hsa_queue_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Queue {
    pub kind: u32,
    pub features: u32,
    pub base_address: *mut c_void,
    pub doorbell_signal: Signal,
    pub size: u32,
    pub reserved1: u32,
    pub id: u64,
}

/// The part of `amd_queue_v2_t` that programs, kernels and the model look at; the rest is zero.
#[repr(C, align(64))]
pub struct AmdQueue {
    pub hsa_queue: Queue,
    pub caps: u32,
    pub reserved1: u32,
    /// In a field that is reserved: the queue whose indexes count, if this is a counted queue's (see
    /// [`crate::counted`]).
    pub shared: *mut AmdQueue,
    pub write_dispatch_id: AtomicU64,
    pub group_segment_aperture_base_hi: u32,
    pub private_segment_aperture_base_hi: u32,
    pub reserved2: [u32; 14],
    pub read_dispatch_id: AtomicU64,
    pub read_dispatch_id_field_base_byte_offset: u32,
    pub rest: [u32; 539],
}

/// `amd_signal_t`.
#[repr(C, align(64))]
pub struct AmdSignal {
    pub kind: i64,
    pub value: AtomicI64,
    pub event_mailbox_ptr: u64,
    pub event_id: u32,
    pub reserved1: u32,
    pub start_ts: AtomicU64,
    pub end_ts: AtomicU64,
    pub queue_ptr: *mut AmdQueue,
    pub reserved3: [u32; 2],
}

/// `hsa_amd_profiling_dispatch_time_t` and `hsa_amd_profiling_async_copy_time_t`.
#[repr(C)]
pub struct Times {
    pub start: u64,
    pub end: u64,
}

/// `hsa_amd_clock_counters_t`.
#[repr(C)]
pub struct ClockCounters {
    pub gpu_clock_counter: u64,
    pub cpu_clock_counter: u64,
    pub system_clock_counter: u64,
    pub system_clock_frequency: u64,
}

/// `hsa_amd_pointer_info_t`.
#[repr(C)]
pub struct PointerInfo {
    pub size: u32,
    pub kind: u32,
    pub agent_base: *mut c_void,
    pub host_base: *mut c_void,
    pub bytes: usize,
    pub user_data: *mut c_void,
    pub owner: Agent,
    pub global_flags: u32,
    pub registered: bool,
}

/// `hsa_dim3_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// `hsa_ven_amd_loader_segment_descriptor_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SegmentDescriptor {
    pub agent: Agent,
    pub executable: Executable,
    pub storage_type: u32,
    pub storage_base: *const c_void,
    pub storage_size: usize,
    pub storage_offset: usize,
    pub segment_base: *const c_void,
    pub segment_size: usize,
}

/// `ApiTableVersion`: `minor` is the table's size in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableVersion {
    pub major: u32,
    pub minor: u32,
    pub step: u32,
    pub reserved: u32,
}

/// `hsa_amd_event_t` when it tells of a memory fault.
#[repr(C)]
pub struct MemoryFault {
    pub event_type: u32,
    pub agent: Agent,
    pub virtual_address: u64,
    pub fault_reason_mask: u32,
}

/// A C struct's name and size, and where its fields lie.
pub type Layout = (&'static str, usize, &'static [(&'static str, usize)]);

macro_rules! layouts {
    ($($rust:ident = $c:literal { $($field:ident = $c_field:literal),* })*) => {
        /// The layouts that must be those of the headers.
        pub const LAYOUTS: &[Layout] = &[$((
            $c,
            size_of::<$rust>(),
            &[$(($c_field, std::mem::offset_of!($rust, $field))),*],
        )),*];
    };
}

layouts! {
    Queue = "hsa_queue_t" {
        kind = "type", features = "features", base_address = "base_address", doorbell_signal = "doorbell_signal",
        size = "size", id = "id"
    }
    AmdQueue = "amd_queue_v2_t" {
        write_dispatch_id = "write_dispatch_id",
        group_segment_aperture_base_hi = "group_segment_aperture_base_hi",
        private_segment_aperture_base_hi = "private_segment_aperture_base_hi",
        read_dispatch_id = "read_dispatch_id",
        read_dispatch_id_field_base_byte_offset = "read_dispatch_id_field_base_byte_offset"
    }
    AmdSignal = "amd_signal_t" {
        kind = "kind", value = "value", event_mailbox_ptr = "event_mailbox_ptr", event_id = "event_id",
        start_ts = "start_ts", end_ts = "end_ts", queue_ptr = "queue_ptr"
    }
    Times = "hsa_amd_profiling_dispatch_time_t" { start = "start", end = "end" }
    ClockCounters = "hsa_amd_clock_counters_t" {
        gpu_clock_counter = "gpu_clock_counter", cpu_clock_counter = "cpu_clock_counter",
        system_clock_counter = "system_clock_counter", system_clock_frequency = "system_clock_frequency"
    }
    PointerInfo = "hsa_amd_pointer_info_t" {
        size = "size", kind = "type", agent_base = "agentBaseAddress", host_base = "hostBaseAddress",
        bytes = "sizeInBytes", user_data = "userData", owner = "agentOwner", global_flags = "global_flags",
        registered = "registered"
    }
    Dim3 = "hsa_dim3_t" { x = "x", y = "y", z = "z" }
    SegmentDescriptor = "hsa_ven_amd_loader_segment_descriptor_t" {
        agent = "agent", executable = "executable", storage_type = "code_object_storage_type",
        storage_base = "code_object_storage_base", storage_size = "code_object_storage_size",
        storage_offset = "code_object_storage_offset", segment_base = "segment_base", segment_size = "segment_size"
    }
    MemoryFault = "hsa_amd_event_t" {
        event_type = "event_type", agent = "memory_fault.agent", virtual_address = "memory_fault.virtual_address",
        fault_reason_mask = "memory_fault.fault_reason_mask"
    }
    TableVersion = "ApiTableVersion" {
        major = "major_id", minor = "minor_id", step = "step_id", reserved = "reserved"
    }
}
