//! A copy of ROCr's API tables from before a trace puts its own functions in. It has ROCr's functions, or those of a tool
//! that ROCr loaded before devprof.

use super::queue_functions::Saved;
use super::tables::tables;
use super::tool_hooks;
use hsa_abi::{AmdExtPrefix, ApiPrefix, CoreApiPrefix};
use std::sync::atomic::{AtomicPtr, Ordering};

pub struct SavedTables {
    pub core: CoreApiPrefix,
    pub amd: AmdExtPrefix,
    pub queue_functions: Saved,
}

/// Never freed: threads may be in a hook while HSA is shut down and initialized again.
static SAVED: AtomicPtr<SavedTables> = AtomicPtr::new(std::ptr::null_mut());

/// `None` before [`save`].
pub fn saved() -> Option<&'static SavedTables> {
    // SAFETY: null, or a box that was leaked.
    unsafe { SAVED.load(Ordering::Acquire).as_ref() }
}

/// Saves the tables. Returns false if they have versions that devprof does not know.
///
/// # Safety
/// `table` is null or ROCr's, as `OnLoad` gets it.
pub unsafe fn save(table: *mut ApiPrefix) -> bool {
    // SAFETY: the caller's promise; the sizes are checked.
    let Some((core, amd)) = (unsafe { tables(table) }) else {
        return false;
    };
    // SAFETY: ROCr's table, with the slots that were found in it.
    let queue_functions = unsafe { tool_hooks::slots().saved(amd) };
    let saved = Box::new(SavedTables {
        core: *core,
        amd: *amd,
        queue_functions,
    });
    SAVED.store(Box::into_raw(saved), Ordering::Release);
    true
}
