//! Cooperative queues. Each GPU agent has one: every creation of a cooperative queue returns it, and it is deleted when the
//! last user has destroyed it.
//!
//! As in ROCr, an intercept queue owns the queue underneath. If that is the agent's cooperative queue, destroying the
//! intercept queue deletes it, although the agent still counts its users and keeps the pointer. A use of the queue after
//! that reads freed memory in ROCr. Here it ends the process.

use super::block::Block;
use super::create::{Request, create, start};
use crate::state::with;
use crate::sync::{die, locked};
use hsa_abi::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The size of the ring, in packets. The requested size is ignored.
const PACKETS: u32 = 0x4000;

/// An agent's cooperative queue.
struct Shared {
    queue: usize,
    users: u32,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Plain,
    /// It is underneath an intercept queue.
    Wrapped,
    /// Deleted together with the intercept queue. Its memory is kept, so that no other queue gets the address.
    Deleted,
}

/// The queues by agent number.
static ALL: Mutex<BTreeMap<usize, Shared>> = Mutex::new(BTreeMap::new());

fn use_after_free(what: &str) -> ! {
    eprintln!(
        "hsa-sim: use after free: {what} an agent's cooperative queue that was deleted together with the intercept \
         queue around it; AMD's runtime would corrupt memory"
    );
    std::process::abort();
}

/// Returns the agent's cooperative queue and adds a user. Creates the queue if necessary.
pub fn acquire(request: &Request) -> Result<*mut Block, Status> {
    let number = with(|state| state.agents.gpu(request.agent).map(|(number, _)| number))?;
    let mut all = locked(&ALL);
    if let Some(shared) = all.get_mut(&number) {
        if shared.state == State::Deleted {
            use_after_free("hsa_queue_create returns");
        }
        shared.users += 1;
        return Ok(shared.queue as *mut Block);
    }
    let own = Request {
        size: PACKETS,
        callback: None,
        data: std::ptr::null_mut(),
        ..*request
    };
    let queue = create(&own, |state, block| {
        // SAFETY: `create` passes its new block.
        unsafe { start(state, block, &own) }
    })?;
    let shared = Shared {
        queue: queue as usize,
        users: 1,
        state: State::Plain,
    };
    all.insert(number, shared);
    Ok(queue)
}

/// Ends the process if this is a deleted cooperative queue.
pub fn check(queue: *const Queue) {
    let all = locked(&ALL);
    let mut shared = all.values();
    if shared.any(|shared| shared.queue == queue as usize && shared.state == State::Deleted) {
        use_after_free("hsa_queue_destroy is called for");
    }
}

/// Removes a user. `None`: not a cooperative queue. `Some(true)`: it was the last user, and the caller has to destroy the
/// queue.
pub fn release(queue: *const Queue) -> Option<bool> {
    let mut all = locked(&ALL);
    let (&number, shared) = all
        .iter_mut()
        .find(|(_, shared)| shared.queue == queue as usize)?;
    shared.users -= 1;
    if shared.users > 0 {
        return Some(false);
    }
    if shared.state == State::Wrapped {
        die(
            "use after free: the last hsa_queue_destroy deletes an agent's cooperative queue while \
             there is still an intercept queue around it",
        );
    }
    all.remove(&number);
    Some(true)
}

/// Records that an intercept queue uses this queue.
pub fn wrap(queue: *const Queue) {
    for shared in locked(&ALL).values_mut() {
        if shared.queue == queue as usize {
            if shared.state == State::Wrapped {
                die(
                    "a second intercept queue around an agent's cooperative queue: in AMD's runtime both \
                     would write to it at once, and both would delete it",
                );
            }
            shared.state = State::Wrapped;
        }
    }
}

/// Records that the intercept queue around this queue is destroyed. Returns whether this is a cooperative queue. Such a
/// queue is deleted now, but its memory has to be kept.
pub fn unwrap(queue: *const Queue) -> bool {
    let mut all = locked(&ALL);
    let mut shared = all.values_mut();
    match shared.find(|shared| shared.queue == queue as usize) {
        Some(shared) => {
            shared.state = State::Deleted;
            true
        }
        None => false,
    }
}

/// At shutdown: agents delete their queues.
pub fn delete_all() {
    let all = std::mem::take(&mut *locked(&ALL));
    if all.values().any(|shared| shared.state == State::Deleted) {
        use_after_free("hsa_shut_down deletes");
    }
}
