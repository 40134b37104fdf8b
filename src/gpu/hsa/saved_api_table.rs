//! What ROCr's API tables had before devprof put its own functions in, for a trace: ROCr's, or those of a tool that was
//! loaded before.

use super::queue_functions::Saved;
use super::tool::{self, AmdExtTable, ApiTable, CoreTable};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Functions of `hsa/hsa_api_trace.h`.
pub struct Originals {
    pub core: CoreTable,
    pub amd: AmdExtTable,
    pub queue_functions: Saved,
}

/// Never freed: threads may be in a hook while HSA is shut down and initialised again.
static ORIGINALS: AtomicPtr<Originals> = AtomicPtr::new(std::ptr::null_mut());

/// `None`: nothing was remembered.
pub fn originals() -> Option<&'static Originals> {
    // SAFETY: null, or a box that was leaked.
    unsafe { ORIGINALS.load(Ordering::Acquire).as_ref() }
}

/// Remembers ROCr's functions, for the clock and for the hooks. False when the tables are not known here.
///
/// # Safety
/// `table` is null or ROCr's, as `OnLoad` gets it.
pub unsafe fn remember(table: *mut ApiTable) -> bool {
    // SAFETY: the caller's promise; the sizes are checked.
    let Some((core, amd)) = (unsafe { tool::tables(table) }) else {
        return false;
    };
    // SAFETY: ROCr's table, with the slots that were found in it.
    let queue_functions = unsafe { tool::slots().saved(amd) };
    let originals = Box::new(Originals {
        core: *core,
        amd: *amd,
        queue_functions,
    });
    ORIGINALS.store(Box::into_raw(originals), Ordering::Release);
    true
}
