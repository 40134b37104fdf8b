//! Cooperative queues under a trace. An agent has one, which ROCr hands out to all who ask for it, and takes back
//! (`GpuAgent::QueueCreate`, `AqlQueue::Destroy`). An intercept queue around it would delete it when it is destroyed, and
//! leave the agent with a dangling pointer: so its dispatches are not recorded, but counted and reported.

use super::api::loaded_api;
use crate::support::diagnostics;
use crate::support::sync::lock;
use hsa_abi::Queue;
use std::collections::HashMap;
use std::sync::Mutex;

#[derive(Default)]
struct Missed {
    /// Queues that the program has: their write index when they were acquired first, and how often they were.
    acquired: HashMap<usize, (u64, usize)>,
    /// Packets in those that were released.
    packets: u64,
}

static MISSED: Mutex<Option<Missed>> = Mutex::new(None);

/// The write index of a queue that the program has.
fn written(queue: usize) -> u64 {
    loaded_api().map_or(0, |api| {
        // SAFETY: the queue is alive: the program has not released it.
        unsafe { (api.hsa_queue_load_write_index_scacquire)(queue as *const Queue) }
    })
}

/// The program has got a cooperative queue.
pub fn acquired(queue: *mut Queue) {
    let mut missed = lock(&MISSED);
    let queue = queue as usize;
    let begin = || (written(queue), 0);
    let entry = missed.get_or_insert_default().acquired.entry(queue);
    entry.or_insert_with(begin).1 += 1;
}

/// devprof has put a packet of its own into a queue.
pub fn own_packet(queue: usize) {
    if let Some(missed) = lock(&MISSED).as_mut()
        && let Some((first, _)) = missed.acquired.get_mut(&queue)
    {
        *first += 1;
    }
}

/// The program is about to release a queue, which may be a cooperative one.
pub fn released(queue: *mut Queue) {
    let mut missed = lock(&MISSED);
    let queue = queue as usize;
    let Some(missed) = missed.as_mut() else {
        return;
    };
    let Some((first, users)) = missed.acquired.get_mut(&queue) else {
        return;
    };
    *users -= 1;
    if *users == 0 {
        missed.packets += written(queue).saturating_sub(*first);
        missed.acquired.remove(&queue);
    }
}

/// Reports what was missed. HSA is alive.
pub fn report() {
    let mut missed = lock(&MISSED);
    let Some(missed) = missed.as_mut() else {
        return;
    };
    for (&queue, (first, _)) in &mut missed.acquired {
        let end = written(queue);
        missed.packets += end.saturating_sub(*first);
        *first = end;
    }
    let packets = std::mem::take(&mut missed.packets);
    if packets > 0 {
        diagnostics::lost(format_args!(
            "the trace misses the dispatches of cooperative launches: {packets} packets (kernels and barriers) went through an agent's cooperative queue, which ROCr does not let a tool intercept"
        ));
    }
}

/// HSA is down, and all queues with it.
pub fn forget() {
    if let Some(missed) = lock(&MISSED).as_mut() {
        missed.acquired.clear();
    }
}
