//! What ROCr's API tables had before devprof put its own functions in, for a trace: ROCr's, or those of a tool that was
//! loaded before.

use super::queue_functions::{self, AmdQueueCreate, CountedQueueAcquire, Function};
use super::tool::{self, AmdExtTable, ApiTable, CoreTable, QueueEnd};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Functions of `hsa/hsa_api_trace.h`.
pub struct Originals {
    pub core: CoreTable,
    pub amd: AmdExtTable,
    pub amd_queue_create: Option<AmdQueueCreate>,
    pub counted_queue_acquire: Option<CountedQueueAcquire>,
    pub counted_queue_release: Option<QueueEnd>,
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
    let slots = tool::slots();
    // SAFETY: ROCr's table, which has these slots.
    let functions = unsafe { queue_functions::functions(amd) };
    let saved = |slot: Option<usize>| functions.get(slot?).copied();
    // SAFETY: functions of these types are in these slots.
    let originals = Box::new(unsafe {
        use std::mem::transmute;
        Originals {
            core: *core,
            amd: *amd,
            amd_queue_create: saved(slots.create).map(|f| transmute::<Function, AmdQueueCreate>(f)),
            counted_queue_acquire: saved(slots.acquire)
                .map(|f| transmute::<Function, CountedQueueAcquire>(f)),
            counted_queue_release: saved(slots.release).map(|f| transmute::<Function, QueueEnd>(f)),
        }
    });
    ORIGINALS.store(Box::into_raw(originals), Ordering::Release);
    true
}
