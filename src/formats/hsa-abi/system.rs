//! The system: clocks, versions, extensions and events.

use crate::handle::AgentHandle;
use crate::status::Status;
use std::ffi::c_void;

constants! {
    "`hsa_system_info_t` (hsa.h)": u32 {
        /// u16.
        HSA_SYSTEM_INFO_VERSION_MAJOR = 0;
        /// u16.
        HSA_SYSTEM_INFO_VERSION_MINOR = 1;
        /// u64, ticks of the system's clock.
        HSA_SYSTEM_INFO_TIMESTAMP = 2;
        /// u64, ticks per second.
        HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3;
        /// u64, ticks.
        HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4;
        /// An `hsa_endianness_t`, u32.
        HSA_SYSTEM_INFO_ENDIANNESS = 5;
        /// An `hsa_machine_model_t`, u32.
        HSA_SYSTEM_INFO_MACHINE_MODEL = 6;
        /// 128 bytes: one bit for each extension.
        HSA_SYSTEM_INFO_EXTENSIONS = 7;
    }
    "`hsa_amd_system_info_t` (hsa_ext_amd.h, hsa.h)": u32 {
        /// A pointer to a C string.
        HSA_AMD_SYSTEM_INFO_BUILD_VERSION = 0x200;
        /// bool.
        HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED = 0x201;
        /// bool.
        HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT = 0x202;
        /// bool.
        HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED = 0x203;
        /// bool.
        HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED = 0x204;
        /// bool.
        HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED = 0x205;
        /// bool.
        HSA_AMD_SYSTEM_INFO_XNACK_ENABLED = 0x206;
        /// u16.
        HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR = 0x207;
        /// u16.
        HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR = 0x208;
    }
    "`hsa_machine_model_t` (hsa.h)": u32 {
        HSA_MACHINE_MODEL_LARGE = 1;
    }
    "`hsa_extension_t` (hsa.h)": u16 {
        HSA_EXTENSION_FINALIZER = 0;
        HSA_EXTENSION_IMAGES = 1;
        HSA_EXTENSION_AMD_PROFILER = 0x200;
        HSA_EXTENSION_AMD_LOADER = 0x201;
        HSA_EXTENSION_AMD_AQLPROFILE = 0x202;
        HSA_EXTENSION_AMD_PC_SAMPLING = 0x203;
    }
}

/// `hsa_amd_event_t` (hsa_ext_amd.h) of the type `HSA_AMD_GPU_MEMORY_FAULT_EVENT`.
#[repr(C)]
pub struct MemoryFault {
    /// An `hsa_amd_event_type_t`.
    pub event_type: u32,
    /// `memory_fault.agent`
    pub agent: AgentHandle,
    /// `memory_fault.virtual_address`
    pub virtual_address: u64,
    /// `memory_fault.fault_reason_mask`: bits of `hsa_amd_memory_fault_reason_t`.
    pub fault_reason_mask: u32,
}

/// `hsa_amd_system_event_callback_t` (hsa_ext_amd.h): the event, and the registered data.
pub type SystemEventCallback = unsafe extern "C" fn(*const c_void, *mut c_void) -> Status;

/// `hsa_amd_clock_counters_t` (hsa_ext_amd.h): ticks of several clocks at about the same time.
#[repr(C)]
pub struct ClockCounters {
    /// Ticks of the GPU's clock.
    pub gpu_clock_counter: u64,
    /// Ticks of the CPU's clock.
    pub cpu_clock_counter: u64,
    /// Ticks of the system's clock.
    pub system_clock_counter: u64,
    /// Ticks of the system's clock per second.
    pub system_clock_frequency: u64,
}
