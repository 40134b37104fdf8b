//! Cooperative queues in a traced process. An agent has one, which ROCr shares between all users
//! (`GpuAgent::QueueCreate`, `AqlQueue::Destroy`). An intercept queue around it would delete it when it is destroyed,
//! and leave the agent with a dangling pointer. Therefore its dispatches are not recorded; their packets are counted
//! and reported as lost.

use super::api::loaded_api;
use crate::gpu::runtime::{IdMap, id_map};
use crate::support::diagnostics;
use crate::support::sync::lock;
use hsa_abi::Queue;
use std::sync::Mutex;

struct Unrecorded {
    /// By the queue's address.
    acquired: IdMap<usize, Acquired>,
    /// Packets in queues that were released.
    packets: u64,
}

/// A cooperative queue that the program has acquired.
struct Acquired {
    /// The write index up to which packets are not counted: they are devprof's, or from before the queue was acquired,
    /// or already counted.
    start: u64,
    /// How often the program has acquired the queue.
    users: usize,
}

static UNRECORDED: Mutex<Unrecorded> = Mutex::new(Unrecorded {
    acquired: id_map(),
    packets: 0,
});

/// The write index of a queue that the program has acquired.
fn write_index(queue: usize) -> u64 {
    loaded_api().map_or(0, |api| {
        // SAFETY: the program has not released the queue, so it exists.
        unsafe { (api.hsa_queue_load_write_index_scacquire)(queue as *const Queue) }
    })
}

/// The program has acquired a cooperative queue.
pub fn acquired(queue: *mut Queue) {
    let mut unrecorded = lock(&UNRECORDED);
    let queue = queue as usize;
    let new = || Acquired {
        start: write_index(queue),
        users: 0,
    };
    let acquired = unrecorded.acquired.entry(queue).or_insert_with(new);
    acquired.users += 1;
}

/// devprof has submitted a packet to a queue, which may be a cooperative one.
pub fn exclude_packet(queue: usize) {
    if let Some(acquired) = lock(&UNRECORDED).acquired.get_mut(&queue) {
        acquired.start += 1;
    }
}

/// The program is about to release a queue, which may be a cooperative one.
pub fn released(queue: *mut Queue) {
    let mut unrecorded = lock(&UNRECORDED);
    let queue = queue as usize;
    let Some(acquired) = unrecorded.acquired.get_mut(&queue) else {
        return;
    };
    acquired.users -= 1;
    if acquired.users == 0 {
        let start = acquired.start;
        unrecorded.packets += write_index(queue).saturating_sub(start);
        unrecorded.acquired.remove(&queue);
    }
}

/// Reports the packets that were not recorded. HSA must be initialized.
pub fn report() {
    let mut unrecorded = lock(&UNRECORDED);
    let Unrecorded { acquired, packets } = &mut *unrecorded;
    for (&queue, acquired) in acquired {
        let end = write_index(queue);
        *packets += end.saturating_sub(acquired.start);
        acquired.start = end;
    }
    let packets = std::mem::take(packets);
    if packets > 0 {
        diagnostics::lost(format_args!(
            "the trace misses the dispatches of cooperative launches: {packets} packets (kernels and barriers) went through an agent's cooperative queue, which tools cannot intercept"
        ));
    }
}

/// HSA was shut down, which destroyed all queues.
pub fn forget() {
    lock(&UNRECORDED).acquired.clear();
}
