//! Counted queues of newer ROCr (`hsa_amd_counted_queue_acquire`). Each agent has a few hardware queues of each priority.
//! Each acquisition returns a new `hsa_queue_t`, which shares ring, doorbell and indexes with a hardware queue. Hardware
//! queues live until shutdown. As in ROCr, an acquisition does not call the `hsa_queue_create` of the API table.

use super::block::{self, Block};
use super::create::Request;
use super::lifetime;
use crate::state::with;
use crate::sync::locked;
use hsa_abi::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The maximum number of hardware queues of an agent and a priority, unless `GPU_MAX_HW_QUEUES` is set.
const MAX_HARDWARE_QUEUES: usize = 4;

/// The size of a hardware queue in packets, unless `HSA_COUNTED_QUEUE_SIZE` is set.
const PACKETS: u32 = 16_384;

struct Hardware {
    queue: usize,
    users: u32,
}

/// Agent and priority.
type Pool = (AgentHandle, u32);

struct Counted {
    pools: BTreeMap<Pool, Vec<Hardware>>,
    /// The pool and the hardware queue of each acquired queue.
    handles: BTreeMap<usize, (Pool, usize)>,
}

static COUNTED: Mutex<Counted> = Mutex::new(Counted {
    pools: BTreeMap::new(),
    handles: BTreeMap::new(),
});

/// The number in an environment variable.
fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Whether `hsa_amd_counted_queue_acquire` has returned this queue.
pub fn is_counted(queue: *const Queue) -> bool {
    locked(&COUNTED).handles.contains_key(&(queue as usize))
}

impl Counted {
    /// A new hardware queue, or the one with the fewest users if the maximum is reached.
    fn hardware(&mut self, request: &Request, priority: u32) -> Result<&mut Hardware, Status> {
        let pool = self.pools.entry((request.agent, priority)).or_default();
        if pool.len()
            >= number("GPU_MAX_HW_QUEUES")
                .unwrap_or(MAX_HARDWARE_QUEUES)
                .max(1)
        {
            let least = pool.iter_mut().min_by_key(|hardware| hardware.users);
            return least.ok_or(Status::OUT_OF_RESOURCES);
        }
        let queue = lifetime::obtain(request).map_err(|_| Status::OUT_OF_RESOURCES)?;
        // SAFETY: a new queue.
        unsafe { block::set_profiling(queue.cast(), true) };
        pool.push(Hardware {
            queue: queue as usize,
            users: 0,
        });
        pool.last_mut().ok_or(Status::OUT_OF_RESOURCES)
    }
}

/// At shutdown: frees acquired queues. Hardware queues are destroyed with all other queues.
pub fn clear() {
    let mut counted = locked(&COUNTED);
    counted.pools.clear();
    for (queue, _) in std::mem::take(&mut counted.handles) {
        // SAFETY: allocated by `acquire`, and not in the list any more.
        drop(unsafe { Box::from_raw(queue as *mut AmdQueue) });
    }
}

/// The queue with the runtime's data: `queue` itself, or the hardware queue of a counted queue.
///
/// # Safety
/// Always sound: only a pointer to a counted queue is dereferenced.
pub unsafe fn real_queue(queue: *mut Queue) -> Result<*mut Queue, Status> {
    // `is_counted` locks COUNTED, so the state must not be locked then: elsewhere, it is locked after COUNTED.
    with(|_| Ok(()))?;
    // SAFETY: counted queues live until the program has released them.
    unsafe {
        if is_counted(queue) {
            return Ok(block::shared(&*queue.cast()).cast());
        }
        block::check(queue).map(|()| queue)
    }
}

/// The number of packets of a hardware queue.
pub fn packets() -> u32 {
    number("HSA_COUNTED_QUEUE_SIZE").unwrap_or(PACKETS)
}

/// Creates a queue that shares a hardware queue.
pub fn acquire(request: &Request, priority: u32) -> Result<*mut Queue, Status> {
    let mut counted = locked(&COUNTED);
    let acquired = counted.hardware(request, priority).map(|hardware| {
        hardware.users += 1;
        let shared = hardware.queue;
        // SAFETY: hardware queues live until shutdown.
        let block = unsafe { &*(shared as *const Block) };
        let mut own = Box::new(block::amd_queue(block.amd.hsa_queue));
        block::share(&mut own, shared as *mut AmdQueue);
        (Box::into_raw(own), shared)
    });
    acquired.map(|(own, shared)| {
        let pool = (request.agent, priority);
        counted.handles.insert(own as usize, (pool, shared));
        own.cast()
    })
}

/// Releases a queue that [`acquire`] has returned.
///
/// # Safety
/// The caller does not use the queue any more.
pub unsafe fn release(queue: *mut Queue) -> Result<(), Status> {
    let mut counted = locked(&COUNTED);
    let Some((pool, shared)) = counted.handles.remove(&(queue as usize)) else {
        return Err(Status::ERROR);
    };
    for hardware in counted.pools.entry(pool).or_default() {
        if hardware.queue == shared {
            hardware.users -= 1;
        }
    }
    // SAFETY: allocated by `acquire`, and removed from the list above.
    drop(unsafe { Box::from_raw(queue.cast::<AmdQueue>()) });
    Ok(())
}
