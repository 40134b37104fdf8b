//! Memory regions, memory pools and pointers.

use crate::handle::{AgentHandle, PoolHandle, RegionHandle};
use crate::status::Status;
use std::ffi::c_void;

constants! {
    "`hsa_region_info_t` (hsa.h)": u32 {
        /// An `hsa_region_segment_t`, u32.
        HSA_REGION_INFO_SEGMENT = 0;
        /// Bits of `hsa_region_global_flag_t`, u32.
        HSA_REGION_INFO_GLOBAL_FLAGS = 1;
        /// usize, bytes.
        HSA_REGION_INFO_SIZE = 2;
        /// usize, bytes.
        HSA_REGION_INFO_ALLOC_MAX_SIZE = 4;
        /// bool.
        HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED = 5;
        /// usize, bytes.
        HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE = 6;
        /// usize, bytes.
        HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT = 7;
    }
    "`hsa_amd_region_info_t` (hsa_ext_amd.h)": u32 {
        /// bool.
        HSA_AMD_REGION_INFO_HOST_ACCESSIBLE = 0xa000;
    }
    "`hsa_amd_segment_t` (hsa_ext_amd.h)": u32 {
        HSA_AMD_SEGMENT_GLOBAL = 0;
        HSA_AMD_SEGMENT_GROUP = 3;
    }
    "`hsa_amd_memory_pool_global_flag_t` (hsa_ext_amd.h)": u32 {
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1;
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2;
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4;
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8;
    }
    "`hsa_amd_memory_pool_flag_t` (hsa_ext_amd.h)": u32 {
        HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG = 4;
        HSA_AMD_MEMORY_POOL_UNCACHED_FLAG = 8;
    }
    "`hsa_amd_memory_pool_info_t` (hsa_ext_amd.h)": u32 {
        /// An `hsa_amd_segment_t`, u32.
        HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0;
        /// Bits of `hsa_amd_memory_pool_global_flag_t`, u32.
        HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1;
        /// usize, bytes.
        HSA_AMD_MEMORY_POOL_INFO_SIZE = 2;
        /// bool.
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5;
        /// usize, bytes.
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6;
        /// usize, bytes.
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7;
        /// bool.
        HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15;
        /// usize, bytes.
        HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16;
        /// An `hsa_amd_memory_pool_location_t`, u32.
        HSA_AMD_MEMORY_POOL_INFO_LOCATION = 17;
        /// usize, bytes.
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE = 18;
    }
    "`hsa_amd_memory_pool_location_t` (hsa_ext_amd.h)": u32 {
        HSA_AMD_MEMORY_POOL_LOCATION_CPU = 0;
        HSA_AMD_MEMORY_POOL_LOCATION_GPU = 1;
    }
    "`hsa_amd_memory_pool_access_t` (hsa_ext_amd.h)": u32 {
        HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0;
        HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT = 1;
        HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT = 2;
    }
    "`hsa_amd_agent_memory_pool_info_t` (hsa_ext_amd.h)": u32 {
        /// An `hsa_amd_memory_pool_access_t`, u32.
        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0;
        /// u32.
        HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS = 1;
        /// A [`LinkInfo`] for each hop.
        HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO = 2;
    }
    "`hsa_amd_link_info_type_t` (hsa_ext_amd.h)": u32 {
        HSA_AMD_LINK_INFO_TYPE_PCIE = 2;
    }
    "`hsa_amd_pointer_type_t` (hsa_ext_amd.h)": u32 {
        HSA_EXT_POINTER_TYPE_UNKNOWN = 0;
        HSA_EXT_POINTER_TYPE_HSA = 1;
        HSA_EXT_POINTER_TYPE_LOCKED = 2;
        HSA_EXT_POINTER_TYPE_IPC = 4;
    }
    "`hsa_amd_sdma_engine_id_t` (hsa_ext_amd.h)": u32 {
        HSA_AMD_SDMA_ENGINE_0 = 0x1;
        HSA_AMD_SDMA_ENGINE_1 = 0x2;
    }
}

/// `hsa_pitched_ptr_t` (hsa_ext_amd.h)
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PitchedPointer {
    /// The address of the first element.
    pub base: *mut c_void,
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// Bytes from one layer to the next.
    pub slice: usize,
}

/// `hsa_amd_pointer_info_t` (hsa_ext_amd.h)
#[repr(C)]
pub struct PointerInfo {
    /// Bytes of this struct in the caller's version of the header.
    pub size: u32,
    /// `type`: an `hsa_amd_pointer_type_t`.
    pub kind: u32,
    /// `agentBaseAddress`
    pub agent_base: *mut c_void,
    /// `hostBaseAddress`
    pub host_base: *mut c_void,
    /// `sizeInBytes`
    pub bytes: usize,
    /// `userData`
    pub user_data: *mut c_void,
    /// `agentOwner`
    pub owner: AgentHandle,
    /// Bits of `hsa_amd_memory_pool_global_flag_t`.
    pub global_flags: u32,
    /// Whether the memory is registered with other software, such as a graphics API.
    pub registered: bool,
}

/// `hsa_amd_memory_pool_link_info_t` (hsa_ext_amd.h): a link between an agent and a memory pool.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LinkInfo {
    /// Nanoseconds.
    pub min_latency: u32,
    /// Nanoseconds.
    pub max_latency: u32,
    /// MB per second.
    pub min_bandwidth: u32,
    /// MB per second.
    pub max_bandwidth: u32,
    /// Whether there are 32-bit atomics over the link.
    pub atomic_support_32bit: bool,
    /// Whether there are 64-bit atomics over the link.
    pub atomic_support_64bit: bool,
    /// Whether the link is cache-coherent.
    pub coherent_support: bool,
    /// An `hsa_amd_link_info_type_t`.
    pub link_type: u32,
    /// The distance of the NUMA nodes, as in ACPI.
    pub numa_distance: u32,
}

/// `hsa_amd_ipc_memory_t` (hsa_ext_amd.h)
#[derive(Clone, Copy)]
#[repr(C)]
pub struct IpcHandle {
    /// Opaque.
    pub handle: [u32; 8],
}

/// `hsa_amd_svm_attribute_pair_t` (hsa_ext_amd.h)
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SvmAttribute {
    /// An `hsa_amd_svm_attribute_t`.
    pub attribute: u64,
    /// Its type depends on the attribute.
    pub value: u64,
}

/// The callback of `hsa_agent_iterate_regions` (hsa.h).
pub type RegionCallback = unsafe extern "C" fn(RegionHandle, *mut c_void) -> Status;
/// The callback of `hsa_amd_agent_iterate_memory_pools` (hsa_ext_amd.h).
pub type PoolCallback = unsafe extern "C" fn(PoolHandle, *mut c_void) -> Status;
/// The allocator that `hsa_amd_pointer_info` (hsa_ext_amd.h) calls with a size in bytes.
pub type PointerInfoAllocator = unsafe extern "C" fn(usize) -> *mut c_void;
/// `hsa_amd_deallocation_callback_t` (hsa_ext_amd.h): the address, and the registered data.
pub type DeallocationCallback = unsafe extern "C" fn(*mut c_void, *mut c_void);
