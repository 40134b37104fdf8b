//! Creates intercept queues.

use super::block::{self, Block, Work};
use super::create::{Request, create};
use super::interception::Interception;
use super::{cooperative, lifetime};
use crate::signals::handlers::{self, Call, Handler};
use crate::signals::pool;
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Release;

/// The value of the asynchronous doorbell until it rings.
const SILENT: SignalValue = -1;

/// The handler of the asynchronous doorbell.
unsafe extern "C" fn rung(_: SignalValue, owner: *mut c_void) -> bool {
    // SAFETY: the handler is removed before the queue is destroyed.
    unsafe {
        let block = &*owner.cast::<Block>();
        if let Some(doorbell) = pool::get(block.async_doorbell()) {
            doorbell.value.store(SILENT, Release);
        }
        block::ring(owner.cast());
    }
    true
}

/// Creates the program's side of an intercept queue. If that fails, the caller keeps `under`.
fn intercept(request: &Request, under: *mut Block) -> Result<*mut Block, Status> {
    create(request, |state, owner| {
        let async_doorbell = state.create_signal(AMD_SIGNAL_KIND_USER, SILENT)?;
        // SAFETY: both queues are new, and no other thread has them.
        unsafe {
            (*owner).async_doorbell.store(async_doorbell.0, Release);
            (*owner).under.store(under, Release);
            (*under).owner.store(owner, Release);
        }
        // SAFETY: the queue underneath is destroyed after the interception.
        let interception = unsafe {
            Interception::new(
                under.cast(),
                block::ring_model,
                request.size,
                async_doorbell,
                state.settings.faulty_intercept,
            )
        };
        Ok(Work::Intercept(Box::new(interception)))
    })
}

/// Creates an intercept queue and the queue underneath. Sets the size and the id of the request to the values of the latter.
pub fn obtain(request: &mut Request) -> Result<*mut Block, Status> {
    let under = lifetime::obtain(request)?;
    // SAFETY: a new queue, or the agent's cooperative queue. The latter ignores the requested size.
    let queue = unsafe { &(*under).amd.hsa_queue };
    request.id = Some(queue.id);
    request.size = queue.size;
    let owner = intercept(request, under).inspect_err(|_| {
        // SAFETY: obtained above. This cannot fail, because `under` is a queue.
        let _ = unsafe { lifetime::release(under.cast()) };
    })?;
    cooperative::wrap(under.cast());
    // SAFETY: created above.
    let doorbell = unsafe { (*owner).async_doorbell() };
    // `lifetime::destroy` removes the handler before it frees the queue.
    let added = handlers::add(Handler {
        on: Some((doorbell, HSA_SIGNAL_CONDITION_NE, SILENT)),
        call: Call::Handler(rung, owner as usize),
    });
    if let Err(error) = added {
        // SAFETY: created above, and no other thread has it.
        unsafe { lifetime::destroy(owner.cast()) }?;
        return Err(error);
    }
    Ok(owner)
}
