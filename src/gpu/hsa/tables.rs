//! ROCr's API tables, as far as devprof uses them ([`hsa_abi`]).

pub use hsa_abi::function::{
    hsa_executable_destroy as ExecutableDestroy, hsa_executable_freeze as ExecutableFreeze,
    hsa_queue_create as QueueCreate, hsa_queue_destroy as QueueEnd, hsa_shut_down as ShutDown,
};
pub use hsa_abi::{
    API_TABLE_MAJOR_VERSION, AmdExtPrefix as AmdExtTable, ApiPrefix as ApiTable,
    CoreApiPrefix as CoreTable, PacketWriter, TableVersion as Version,
};

/// The supported version of `CoreApiTable`.
const CORE_API_TABLE_MAJOR_VERSION: u32 = hsa_abi::CoreApiTable::MAJOR;
/// The supported version of `AmdExtTable`.
const AMD_EXT_API_TABLE_MAJOR_VERSION: u32 = hsa_abi::AmdExtTable::MAJOR;

/// ROCr's tables, if they have versions that devprof supports.
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
