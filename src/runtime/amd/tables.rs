//! Access to ROCr's API tables. Mirrors `hsa/hsa_api_trace.h`.

use hsa_abi::{API_TABLE_MAJOR_VERSION, AmdExtPrefix, ApiPrefix, CoreApiPrefix};

/// The supported version of `CoreApiTable`.
const CORE_API_TABLE_MAJOR_VERSION: u32 = hsa_abi::CoreApiTable::MAJOR;
/// The supported version of `AmdExtTable`.
const AMD_EXT_API_TABLE_MAJOR_VERSION: u32 = hsa_abi::AmdExtTable::MAJOR;

/// ROCr's tables, if devprof supports their versions.
///
/// # Safety
/// `table` is null or ROCr's, as passed to `OnLoad`, and not accessed otherwise while the tables are borrowed.
pub unsafe fn tables<'a>(
    table: *mut ApiPrefix,
) -> Option<(&'a mut CoreApiPrefix, &'a mut AmdExtPrefix)> {
    // SAFETY: the caller's promise; the versions are checked before the fields that depend on them are read.
    unsafe {
        let table = table.as_ref()?;
        if table.version.major != API_TABLE_MAJOR_VERSION
            || (table.version.minor as usize) < size_of::<ApiPrefix>()
        {
            return None;
        }
        let (core, amd) = (table.core.as_mut()?, table.amd_ext.as_mut()?);
        let known = core.version.major == CORE_API_TABLE_MAJOR_VERSION
            && core.version.minor as usize >= size_of::<CoreApiPrefix>()
            && amd.version.major == AMD_EXT_API_TABLE_MAJOR_VERSION
            && amd.version.minor as usize >= size_of::<AmdExtPrefix>();
        known.then_some((core, amd))
    }
}
