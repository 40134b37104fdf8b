//! A copy of ROCr's API tables, made before a trace installs its hooks. It contains ROCr's functions, or those of a tool
//! that ROCr loaded before devprof.

use super::queue_functions::QueueFunctions;
use super::tables::tables;
use super::tool_hooks;
use hsa_abi::{AmdExtPrefix, ApiPrefix, CoreApiPrefix};
use std::sync::atomic::{AtomicPtr, Ordering};

pub struct SavedTables {
    pub core: CoreApiPrefix,
    pub amd: AmdExtPrefix,
    pub queue_functions: QueueFunctions,
}

/// Never freed: threads may be in a hook while HSA is shut down and initialized again.
static SAVED: AtomicPtr<SavedTables> = AtomicPtr::new(std::ptr::null_mut());

/// `None` before [`save`].
pub fn saved() -> Option<&'static SavedTables> {
    // SAFETY: null, or a box that was leaked.
    unsafe { SAVED.load(Ordering::Acquire).as_ref() }
}

/// Saves the tables. Returns false if devprof does not support their versions.
///
/// # Safety
/// `table` is null or ROCr's, as passed to `OnLoad`.
pub unsafe fn save(table: *mut ApiPrefix) -> bool {
    // SAFETY: the caller's promise; `tables` checks the sizes.
    let Some((core, amd)) = (unsafe { tables(table) }) else {
        return false;
    };
    // SAFETY: the slots were found in this table.
    let queue_functions = unsafe { tool_hooks::queue_function_slots().read(amd) };
    let saved = Box::new(SavedTables {
        core: *core,
        amd: *amd,
        queue_functions,
    });
    SAVED.store(Box::into_raw(saved), Ordering::Release);
    true
}
