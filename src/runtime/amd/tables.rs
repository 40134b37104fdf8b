//! ROCr's API tables, and copies of them. Mirrors `hsa/hsa_api_trace.h`.

use super::queue_functions::{QueueFunctionSlots, QueueFunctions};
use hsa_abi::{
    API_TABLE_MAJOR_VERSION, AmdExtPrefix, AmdExtTable, ApiPrefix, CoreApiPrefix, CoreApiTable,
};
use std::sync::atomic::{AtomicPtr, Ordering};

/// ROCr's tables, if devprof supports their versions. Pointers, because ROCr reads its tables in each call, and tables are
/// larger than these structs.
///
/// # Safety
/// `table` is null or ROCr's, as passed to `OnLoad`.
pub unsafe fn tables(table: *mut ApiPrefix) -> Option<(*mut CoreApiPrefix, *mut AmdExtPrefix)> {
    // SAFETY: the caller's promise; the versions are checked before the fields that depend on them are read.
    unsafe {
        let table = table.as_ref()?;
        if table.version.major != API_TABLE_MAJOR_VERSION
            || (table.version.minor as usize) < size_of::<ApiPrefix>()
        {
            return None;
        }
        let (core, amd) = (table.core.as_ref()?, table.amd_ext.as_ref()?);
        let known = core.version.major == CoreApiTable::MAJOR
            && core.version.minor as usize >= size_of::<CoreApiPrefix>()
            && amd.version.major == AmdExtTable::MAJOR
            && amd.version.minor as usize >= size_of::<AmdExtPrefix>();
        known.then_some((table.core, table.amd_ext))
    }
}

/// The functions in the tables: ROCr's own, or the functions of a tool that ROCr loaded before devprof.
pub struct SavedTables {
    pub core: CoreApiPrefix,
    pub amd: AmdExtPrefix,
    pub slots: QueueFunctionSlots,
    pub queue_functions: QueueFunctions,
}

/// A copy of the tables. Never freed: threads may be in a hook while HSA is shut down and initialized again.
pub struct Saved(AtomicPtr<SavedTables>);

impl Saved {
    pub const fn new() -> Saved {
        Saved(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// `None` before [`Saved::save`].
    pub fn get(&self) -> Option<&'static SavedTables> {
        // SAFETY: null, or a box that was leaked.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// # Safety
    /// The tables are ROCr's, and the slots were found in them.
    pub unsafe fn save(
        &self,
        core: *const CoreApiPrefix,
        amd: *mut AmdExtPrefix,
        slots: QueueFunctionSlots,
    ) {
        // SAFETY: the caller's promise.
        let saved = unsafe {
            Box::new(SavedTables {
                core: *core,
                amd: *amd,
                slots,
                queue_functions: slots.read(amd),
            })
        };
        self.0.store(Box::into_raw(saved), Ordering::Release);
    }
}

/// The tables before a trace installs its hooks.
static BEFORE_TRACE: Saved = Saved::new();

/// The tables before a trace installs its hooks. `None` before [`save`].
pub fn saved() -> Option<&'static SavedTables> {
    BEFORE_TRACE.get()
}

/// Saves the tables for the trace's hooks, after the tool's hooks were installed.
///
/// # Safety
/// As for [`Saved::save`].
pub unsafe fn save(core: *const CoreApiPrefix, amd: *mut AmdExtPrefix, slots: QueueFunctionSlots) {
    // SAFETY: the caller's promise.
    unsafe { BEFORE_TRACE.save(core, amd, slots) };
}
