//! ROCr's API tables, as far as devprof uses them. Mirrors `hsa/hsa_api_trace.h`.

use super::types::*;
use std::ffi::{c_char, c_int, c_void};

/// `ApiTableVersion`. In a table of functions `minor` is the table's size in bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub step: u32,
    pub reserved: u32,
}

/// The beginning of `HsaApiTable`.
#[repr(C)]
pub struct ApiTable {
    pub version: Version,
    pub core: *mut CoreTable,
    pub amd_ext: *mut AmdExtTable,
}

pub type ShutDown = unsafe extern "C" fn() -> Status;
pub type ExecutableFreeze = unsafe extern "C" fn(ExecutableHandle, *const c_char) -> Status;
pub type ExecutableDestroy = unsafe extern "C" fn(ExecutableHandle) -> Status;
/// `hsa_queue_create` and `hsa_amd_queue_intercept_create`.
pub type QueueCreate = unsafe extern "C" fn(
    AgentHandle,
    u32,
    u32,
    usize,
    *mut c_void,
    u32,
    u32,
    *mut *mut QueueHead,
) -> Status;
/// `hsa_queue_destroy` and `hsa_queue_inactivate`.
pub type QueueEnd = unsafe extern "C" fn(*mut QueueHead) -> Status;
/// `hsa_queue_add_write_index_*`.
pub type AddWriteIndex = unsafe extern "C" fn(*const QueueHead, u64) -> u64;
/// `hsa_amd_queue_intercept_packet_writer`.
pub type PacketWriter = unsafe extern "C" fn(*const c_void, u64);
/// `hsa_amd_queue_intercept_handler`.
pub type PacketHandler = unsafe extern "C" fn(*const c_void, u64, u64, *mut c_void, PacketWriter);

/// Functions that are not used here.
type Unused<const N: usize> = [usize; N];

/// The beginning of `CoreApiTable`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CoreTable {
    pub version: Version,
    unused0: Unused<1>,
    pub hsa_shut_down: ShutDown,
    pub hsa_system_get_info: unsafe extern "C" fn(u32, *mut c_void) -> Status,
    unused3: Unused<4>,
    pub hsa_queue_create: QueueCreate,
    unused8: Unused<1>,
    pub hsa_queue_destroy: QueueEnd,
    pub hsa_queue_inactivate: QueueEnd,
    unused11: Unused<10>,
    pub hsa_queue_add_write_index_scacq_screl: AddWriteIndex,
    pub hsa_queue_add_write_index_scacquire: AddWriteIndex,
    pub hsa_queue_add_write_index_relaxed: AddWriteIndex,
    pub hsa_queue_add_write_index_screlease: AddWriteIndex,
    unused25: Unused<13>,
    pub hsa_signal_destroy: unsafe extern "C" fn(SignalHandle) -> Status,
    unused39: Unused<1>,
    pub hsa_signal_load_scacquire: unsafe extern "C" fn(SignalHandle) -> SignalValue,
    pub hsa_signal_store_relaxed: unsafe extern "C" fn(SignalHandle, SignalValue),
    pub hsa_signal_store_screlease: unsafe extern "C" fn(SignalHandle, SignalValue),
    unused43: Unused<41>,
    pub hsa_executable_destroy: ExecutableDestroy,
    unused85: Unused<1>,
    pub hsa_executable_freeze: ExecutableFreeze,
}

/// The beginning of `AmdExtTable`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AmdExtTable {
    pub version: Version,
    unused0: Unused<2>,
    pub hsa_amd_profiling_set_profiler_enabled:
        unsafe extern "C" fn(*mut QueueHead, c_int) -> Status,
    unused3: Unused<1>,
    pub hsa_amd_profiling_get_dispatch_time:
        unsafe extern "C" fn(AgentHandle, SignalHandle, *mut DispatchTime) -> Status,
    unused5: Unused<5>,
    pub hsa_amd_queue_cu_set_mask: unsafe extern "C" fn(*mut QueueHead, u32, *const u32) -> Status,
    unused11: Unused<22>,
    pub hsa_amd_signal_create: unsafe extern "C" fn(
        SignalValue,
        u32,
        *const AgentHandle,
        u64,
        *mut SignalHandle,
    ) -> Status,
    unused34: Unused<3>,
    pub hsa_amd_queue_intercept_create: QueueCreate,
    pub hsa_amd_queue_intercept_register:
        unsafe extern "C" fn(*mut QueueHead, PacketHandler, *mut c_void) -> Status,
    pub hsa_amd_queue_set_priority: unsafe extern "C" fn(*mut QueueHead, u32) -> Status,
}

/// `HSA_API_TABLE_MAJOR_VERSION`: the version of `HsaApiTable` whose beginning is known here.
pub const API_TABLE_MAJOR_VERSION: u32 = 3;
/// `HSA_CORE_API_TABLE_MAJOR_VERSION`: likewise of `CoreApiTable`.
pub const CORE_API_TABLE_MAJOR_VERSION: u32 = 2;
/// `HSA_AMD_EXT_API_TABLE_MAJOR_VERSION`: likewise of `AmdExtTable`.
pub const AMD_EXT_API_TABLE_MAJOR_VERSION: u32 = 2;

/// ROCr's tables, if they are of the versions that are known here.
///
/// # Safety
/// `table` is null or ROCr's, as `OnLoad` gets it, and nobody else uses it while the tables are borrowed.
pub unsafe fn tables<'a>(table: *mut ApiTable) -> Option<(&'a mut CoreTable, &'a mut AmdExtTable)> {
    // SAFETY: the caller's promise; the versions say that the fields are there.
    unsafe {
        let table = table.as_ref()?;
        if table.version.major != API_TABLE_MAJOR_VERSION
            || (table.version.minor as usize) < size_of::<ApiTable>()
        {
            return None;
        }
        let (core, amd) = (table.core.as_mut()?, table.amd_ext.as_mut()?);
        let known = core.version.major == CORE_API_TABLE_MAJOR_VERSION
            && core.version.minor as usize >= size_of::<CoreTable>()
            && amd.version.major == AMD_EXT_API_TABLE_MAJOR_VERSION
            && amd.version.minor as usize >= size_of::<AmdExtTable>();
        known.then_some((core, amd))
    }
}
