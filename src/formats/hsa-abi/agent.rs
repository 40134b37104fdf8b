//! Agents and instruction set architectures.

use crate::handle::{AgentHandle, CacheHandle, IsaHandle, WavefrontHandle};
use crate::status::Status;
use std::ffi::c_void;

constants! {
    "`hsa_agent_info_t` (hsa.h)": u32 {
        /// 64 bytes, zero-padded. The name of a GPU's target, such as `gfx1100`.
        HSA_AGENT_INFO_NAME = 0;
        /// 64 bytes, zero-padded.
        HSA_AGENT_INFO_VENDOR_NAME = 1;
        /// u32.
        HSA_AGENT_INFO_FEATURE = 2;
        /// u32.
        HSA_AGENT_INFO_MACHINE_MODEL = 3;
        /// u32.
        HSA_AGENT_INFO_PROFILE = 4;
        /// u32.
        HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5;
        /// u32, work-items.
        HSA_AGENT_INFO_WAVEFRONT_SIZE = 6;
        /// `[u16; 3]`, work-items.
        HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 7;
        /// u32, work-items.
        HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8;
        /// [`Dim3`], work-items.
        HSA_AGENT_INFO_GRID_MAX_DIM = 9;
        /// u32, work-items.
        HSA_AGENT_INFO_GRID_MAX_SIZE = 10;
        /// u32.
        HSA_AGENT_INFO_FBARRIER_MAX_SIZE = 11;
        /// u32.
        HSA_AGENT_INFO_QUEUES_MAX = 12;
        /// u32, packets.
        HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13;
        /// u32, packets.
        HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14;
        /// u32.
        HSA_AGENT_INFO_QUEUE_TYPE = 15;
        /// u32, the NUMA node.
        HSA_AGENT_INFO_NODE = 16;
        /// An `hsa_device_type_t`, u32.
        HSA_AGENT_INFO_DEVICE = 17;
        /// `[u32; 4]`, bytes of each cache level.
        HSA_AGENT_INFO_CACHE_SIZE = 18;
        /// [`IsaHandle`].
        HSA_AGENT_INFO_ISA = 19;
        /// 128 bytes: one bit for each extension.
        HSA_AGENT_INFO_EXTENSIONS = 20;
        /// u16.
        HSA_AGENT_INFO_VERSION_MAJOR = 21;
        /// u16.
        HSA_AGENT_INFO_VERSION_MINOR = 22;
        /// u32.
        HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 23;
        /// bool.
        HSA_AGENT_INFO_FAST_F16_OPERATION = 24;
    }
    "`hsa_amd_agent_info_t` (hsa_ext_amd.h)": u32 {
        /// u32.
        HSA_AMD_AGENT_INFO_CHIP_ID = 0xa000;
        /// u32, bytes.
        HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xa001;
        /// u32.
        HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xa002;
        /// u32, MHz.
        HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xa003;
        /// u32.
        HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xa004;
        /// u32.
        HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS = 0xa005;
        /// u32: PCI bus, device and function.
        HSA_AMD_AGENT_INFO_BDFID = 0xa006;
        /// u32, bits of the memory interface.
        HSA_AMD_AGENT_INFO_MEMORY_WIDTH = 0xa007;
        /// u32, MHz.
        HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY = 0xa008;
        /// 64 bytes, zero-padded.
        HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xa009;
        /// u32.
        HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xa00a;
        /// u32.
        HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xa00b;
        /// u32.
        HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES = 0xa00c;
        /// u32.
        HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE = 0xa00d;
        /// `hsa_amd_hdp_flush_t`: two addresses of registers.
        HSA_AMD_AGENT_INFO_HDP_FLUSH = 0xa00e;
        /// u32, the PCI domain.
        HSA_AMD_AGENT_INFO_DOMAIN = 0xa00f;
        /// bool.
        HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xa010;
        /// A C string of at most 21 bytes.
        HSA_AMD_AGENT_INFO_UUID = 0xa011;
        /// u32.
        HSA_AMD_AGENT_INFO_ASIC_REVISION = 0xa012;
        /// bool: the host can access SVM memory on the device.
        HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS = 0xa013;
        /// u32: compute units that a cooperative launch can use.
        HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT = 0xa014;
        /// u64, bytes.
        HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xa015;
        /// u64, ticks of the agent's clock per second.
        HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xa016;
        /// u32.
        HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID = 0xa107;
        /// u32.
        HSA_AMD_AGENT_INFO_UCODE_VERSION = 0xa108;
        /// u32.
        HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION = 0xa109;
        /// u32: copy engines for copies from and to the host.
        HSA_AMD_AGENT_INFO_NUM_SDMA_ENG = 0xa10a;
        /// u32: copy engines for copies between GPUs.
        HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG = 0xa10b;
        /// bool.
        HSA_AMD_AGENT_INFO_IOMMU_SUPPORT = 0xa110;
        /// u32: dies with compute units.
        HSA_AMD_AGENT_INFO_NUM_XCC = 0xa111;
        /// u32.
        HSA_AMD_AGENT_INFO_DRIVER_UID = 0xa112;
        /// [`AgentHandle`].
        HSA_AMD_AGENT_INFO_NEAREST_CPU = 0xa113;
        /// 8 bytes: bits of `hsa_amd_memory_property_flags_t`.
        HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES = 0xa114;
        /// u64, bytes.
        HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX = 0xa116;
        /// u64, bytes.
        HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT = 0xa117;
        /// [`ClockCounters`](crate::ClockCounters).
        HSA_AMD_AGENT_INFO_CLOCK_COUNTERS = 0xa118;
    }
    "`hsa_profile_t` (hsa.h)": u32 {
        HSA_PROFILE_BASE = 0;
        HSA_PROFILE_FULL = 1;
    }
    "`hsa_device_type_t` (hsa.h)": u32 {
        HSA_DEVICE_TYPE_CPU = 0;
        HSA_DEVICE_TYPE_GPU = 1;
    }
    "`hsa_agent_feature_t` (hsa.h)": u32 {
        HSA_AGENT_FEATURE_KERNEL_DISPATCH = 1;
    }
    "`hsa_default_float_rounding_mode_t` (hsa.h)": u32 {
        HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0;
        HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR = 2;
    }
    "`hsa_isa_info_t` (hsa.h)": u32 {
        /// u32, bytes with the terminator.
        HSA_ISA_INFO_NAME_LENGTH = 0;
        /// A C string.
        HSA_ISA_INFO_NAME = 1;
        /// u32.
        HSA_ISA_INFO_CALL_CONVENTION_COUNT = 2;
        /// u32, work-items.
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE = 3;
        /// `[bool; 2]`.
        HSA_ISA_INFO_MACHINE_MODELS = 5;
        /// `[bool; 2]`.
        HSA_ISA_INFO_PROFILES = 6;
        /// `[bool; 3]`.
        HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES = 7;
        /// `[bool; 3]`.
        HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 8;
        /// bool.
        HSA_ISA_INFO_FAST_F16_OPERATION = 9;
        /// `[u16; 3]`, work-items.
        HSA_ISA_INFO_WORKGROUP_MAX_DIM = 12;
        /// u32, work-items.
        HSA_ISA_INFO_WORKGROUP_MAX_SIZE = 13;
        /// [`Dim3`], work-items.
        HSA_ISA_INFO_GRID_MAX_DIM = 14;
        /// u64, work-items.
        HSA_ISA_INFO_GRID_MAX_SIZE = 16;
        /// u32.
        HSA_ISA_INFO_FBARRIER_MAX_SIZE = 17;
    }
    "`hsa_wavefront_info_t` (hsa.h)": u32 {
        /// u32, work-items.
        HSA_WAVEFRONT_INFO_SIZE = 0;
    }
}

/// `hsa_dim3_t` (hsa.h)
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dim3 {
    /// In the X dimension.
    pub x: u32,
    /// In the Y dimension.
    pub y: u32,
    /// In the Z dimension.
    pub z: u32,
}

/// The callback of `hsa_iterate_agents` (hsa.h).
pub type AgentCallback = unsafe extern "C" fn(AgentHandle, *mut c_void) -> Status;
/// The callback of `hsa_agent_iterate_caches` (hsa.h).
pub type CacheCallback = unsafe extern "C" fn(CacheHandle, *mut c_void) -> Status;
/// The callback of `hsa_agent_iterate_isas` (hsa.h).
pub type IsaCallback = unsafe extern "C" fn(IsaHandle, *mut c_void) -> Status;
/// The callback of `hsa_isa_iterate_wavefronts` (hsa.h).
pub type WavefrontCallback = unsafe extern "C" fn(WavefrontHandle, *mut c_void) -> Status;
