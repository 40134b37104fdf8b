//! Creation and destruction of queues of all kinds.

use super::block::{ALL, Block, Work, forget};
use super::cooperative;
use super::create::{Request, create, start};
use crate::memory::allocations::Kind;
use crate::signals::handlers;
use crate::state::with;
use crate::sync::locked;
use hsa_abi::*;

/// Returns a queue for a program: a new one, or the agent's cooperative queue.
pub fn obtain(request: &Request) -> Result<*mut Block, Status> {
    match request.kind {
        HSA_QUEUE_TYPE_MULTI | HSA_QUEUE_TYPE_SINGLE => create(request, |state, block| {
            // SAFETY: `create` passes its new block.
            unsafe { start(state, block, request) }
        }),
        HSA_QUEUE_TYPE_COOPERATIVE if !request.size.is_power_of_two() => {
            Err(Status::INVALID_ARGUMENT)
        }
        HSA_QUEUE_TYPE_COOPERATIVE => cooperative::acquire(request),
        _ => Err(Status::INVALID_QUEUE_CREATION),
    }
}

/// Releases an intercept queue, or a queue that [`obtain`] has returned.
///
/// # Safety
/// `queue` is a queue that the caller does not use any more.
pub unsafe fn release(queue: *mut Queue) -> Result<(), Status> {
    match cooperative::release(queue) {
        Some(false) => Ok(()),
        // SAFETY: the caller's promise.
        Some(true) | None => unsafe { destroy(queue) },
    }
}

/// Stops a queue, but does not free its memory.
///
/// # Safety
/// `queue` is a queue.
unsafe fn stop(queue: *mut Queue) -> Result<(), Status> {
    forget(queue)?;
    // SAFETY: it was in the list, so it is a block.
    drop(unsafe { &*queue.cast::<Block>() }.take_work());
    Ok(())
}

/// Stops a queue and frees it.
///
/// # Safety
/// `queue` is a queue, and it is not in use any more.
pub unsafe fn destroy(queue: *mut Queue) -> Result<(), Status> {
    forget(queue)?;
    let block = queue.cast::<Block>();
    // SAFETY: it was in the list, so it is a block.
    let async_doorbell = unsafe { (*block).async_doorbell() };
    if async_doorbell != SignalHandle(0) {
        handlers::remove(async_doorbell);
    }
    // SAFETY: as above.
    let work = unsafe { &*block }.take_work();
    let under = match &work {
        Work::Intercept(interception) => Some(interception.under()),
        _ => None,
    };
    // The state is not locked here: the model's thread may be calling the program, which may call the runtime.
    drop(work);
    if let Some(under) = under {
        // SAFETY: only the interception used it, unless it is an agent's cooperative queue.
        unsafe {
            if cooperative::unwrap(under) {
                stop(under)?;
            } else {
                destroy(under)?;
            }
        }
    }
    with(|state| {
        // SAFETY: the block lives until it is freed below.
        let (ring, doorbell) = unsafe {
            let queue = &(*block).amd.hsa_queue;
            (queue.base_address as usize, queue.doorbell_signal)
        };
        for signal in [doorbell, async_doorbell] {
            if signal != SignalHandle(0) {
                state.signals.destroy(signal);
            }
        }
        for base in [ring, block as usize] {
            state.memory.free(base, Kind::Runtime);
        }
        Ok(())
    })
}

/// At shutdown: stops the queues that the program has not destroyed.
pub fn stop_all() {
    for queue in std::mem::take(&mut *locked(&ALL)) {
        // SAFETY: a block that is not destroyed, so its memory exists.
        drop(unsafe { &*(queue as *const Block) }.take_work());
    }
}
