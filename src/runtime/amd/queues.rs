//! Waits for the packets in the program's queues, whoever has created them: HIP, OpenMP, the program itself. This adds no
//! work to the launch path: queues are registered when they are created, and drains read them.
//!
//! A packet that was taken from a queue may still run. To wait for it, a drain submits a barrier packet with its own
//! signal after it. Only the producer may write to a single-producer queue. There the drain waits until all packets are
//! taken, and the last ones may still run.

use super::api::Api;
use super::cooperative;
use crate::gpu::runtime::{IdMap, id_map};
use crate::support::sync::lock;
use hsa_abi::{Queue, SignalHandle, SignalValue};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The header of an `hsa_barrier_and_packet_t` that waits for all earlier packets (`HSA_PACKET_TYPE_BARRIER_AND`,
/// `HSA_PACKET_HEADER_BARRIER`), with fences of system scope (`HSA_FENCE_SCOPE_SYSTEM`).
const BARRIER_PACKET_HEADER: u16 = 3 | 1 << 8 | 2 << 9 | 2 << 11;

/// How long a wait takes before it checks the time, and whether the queue still exists.
const WAIT_SLICE: Duration = Duration::from_millis(20);
/// The pause between two polls of something without a signal.
const POLL_PAUSE: Duration = Duration::from_micros(200);

struct TrackedQueue {
    pointer: *mut Queue,
    /// Distinguishes it from other queues at the same address.
    number: u64,
    /// Only one thread of the program may write to it. (ROCr itself treats all queues as multi-producer queues.)
    is_single_producer: bool,
    /// Its error callback, which tells who has created it. 0: none.
    callback: usize,
    /// The write index up to which all packets are known to be complete.
    done: u64,
}

// SAFETY: HSA's functions for queues may be called from any thread; a registered queue is not destroyed.
unsafe impl Send for TrackedQueue {}

struct Queues {
    created: u64,
    /// The error callbacks of all queues, also of those that were destroyed. There are few.
    callbacks: Vec<usize>,
    /// By address.
    all: IdMap<usize, TrackedQueue>,
    /// Threads in [`wait`].
    waiting: usize,
    /// All waits end: HSA is being shut down.
    waits_end: bool,
}

impl Queues {
    const fn new() -> Queues {
        Queues {
            created: 0,
            callbacks: Vec::new(),
            all: id_map(),
            waiting: 0,
            waits_end: false,
        }
    }
}

/// Held while a queue is used, so that it is not destroyed meanwhile; never during a wait.
static QUEUES: Mutex<Queues> = Mutex::new(Queues::new());
/// A wait is over.
static IS_OVER: Condvar = Condvar::new();

/// The creation of all queues is reported.
static SEES_ALL: AtomicBool = AtomicBool::new(false);

/// Whether the creation of all queues is reported from now on.
pub fn set_sees_all(sees_all: bool) {
    SEES_ALL.store(sees_all, Ordering::Relaxed);
}

/// The error callbacks of the queues that were created. `None`: perhaps their creation is not reported.
pub fn callbacks() -> Option<Vec<usize>> {
    let queues = lock(&QUEUES);
    let sees_all = queues.created > 0 || SEES_ALL.load(Ordering::Relaxed);
    sees_all.then(|| queues.callbacks.clone())
}

/// A queue was created. Its destruction will be reported by [`destroying`]. `callback`: the function that HSA calls if there
/// is an error, or 0.
pub fn created(queue: usize, is_single_producer: bool, callback: usize) {
    let mut queues = lock(&QUEUES);
    queues.created += 1;
    let number = queues.created;
    if callback != 0 && !queues.callbacks.contains(&callback) {
        queues.callbacks.push(callback);
    }
    queues.all.insert(
        queue,
        TrackedQueue {
            pointer: queue as *mut Queue,
            number,
            is_single_producer,
            callback,
            done: 0,
        },
    );
}

/// A queue is about to be destroyed or inactivated.
pub fn destroying(queue: usize) {
    lock(&QUEUES).all.remove(&queue);
}

/// Forgets all queues: HSA was initialized again, or this is a forked child, and the queues are the parent's.
pub fn clear() {
    // If a thread that the child does not have holds the lock, the child never uses queues.
    if let Ok(mut queues) = QUEUES.try_lock() {
        *queues = Queues::new();
    }
}

/// Ends the waits of other threads: HSA is about to be shut down.
pub fn end_waits() {
    let mut queues = lock(&QUEUES);
    queues.waits_end = true;
    // A wait checks this after each time slice.
    while queues.waiting > 0 {
        queues = IS_OVER.wait(queues).unwrap_or_else(PoisonError::into_inner);
    }
}

/// The shutdown is over. `is_up`: HSA is still initialized, and so the queues still exist.
pub fn allow_waits(is_up: bool) {
    let mut queues = lock(&QUEUES);
    queues.waits_end = false;
    if !is_up {
        queues.all.clear();
    }
}

/// The next step of a wait for a queue.
enum Step {
    /// Free space for the barrier packet.
    Submit,
    /// The barrier packet's signal; the write index after the packet.
    Signal(SignalHandle, u64),
    /// The read index to reach this index.
    Taken(u64),
}

/// Waits until all packets that are in the program's queues now are complete, for `limit` at most. False at the limit.
/// `left_out`: the error callbacks of queues not to wait for.
pub fn wait(api: &Api, limit: Duration, left_out: &[usize]) -> bool {
    let start = Instant::now();
    let mut busy: Vec<(usize, u64, Step)> = Vec::new();
    let mut queues = lock(&QUEUES);
    if !queues.waits_end {
        for (&address, queue) in &queues.all {
            let written = queue.written(api);
            if written != queue.done && !left_out.contains(&queue.callback) {
                let step = if queue.is_single_producer {
                    Step::Taken(written)
                } else {
                    Step::Submit
                };
                busy.push((address, queue.number, step));
            }
        }
        queues.waiting += usize::from(!busy.is_empty());
    }
    drop(queues);
    if busy.is_empty() {
        return true;
    }
    let is_done = wait_for(api, busy, start, limit);
    let mut queues = lock(&QUEUES);
    queues.waiting = queues.waiting.saturating_sub(1);
    drop(queues);
    IS_OVER.notify_all();
    is_done
}

fn wait_for(api: &Api, mut busy: Vec<(usize, u64, Step)>, start: Instant, limit: Duration) -> bool {
    // All barrier packets are submitted before the first wait.
    loop {
        busy.retain_mut(|(address, number, step)| !advance(api, *address, *number, step));
        let Some((.., step)) = busy.first() else {
            return true;
        };
        if start.elapsed() >= limit {
            // The GPU may still write to the signals: they are not destroyed.
            return false;
        }
        match step {
            Step::Signal(signal, _) => {
                api.wait_for_signal(*signal, WAIT_SLICE);
            }
            Step::Submit | Step::Taken(_) => std::thread::sleep(POLL_PAUSE),
        }
    }
}

/// Takes the next step for a queue if possible. Returns whether the queue need not be waited for any more.
fn advance(api: &Api, address: usize, number: u64, step: &mut Step) -> bool {
    let mut queues = lock(&QUEUES);
    // The GPU may still write to the signals.
    if queues.waits_end {
        return true;
    }
    let queue = queues.all.get_mut(&address);
    let queue = queue.filter(|queue| queue.number == number);
    let Some(queue) = queue else {
        // The queue was destroyed, with the packets in it.
        if let Step::Signal(signal, _) = *step {
            api.destroy_signal(signal);
        }
        return true;
    };
    match *step {
        Step::Submit => {
            // Without a signal, wait as for a single producer.
            let Ok(signal) = api.create_signal(1) else {
                *step = Step::Taken(queue.written(api));
                return false;
            };
            match queue.submit(api, signal) {
                Some(index) => {
                    cooperative::exclude_packet(address);
                    *step = Step::Signal(signal, index + 1);
                }
                None => api.destroy_signal(signal),
            }
            false
        }
        Step::Signal(signal, end) => {
            if api.wait_for_signal(signal, Duration::ZERO) >= 1 {
                return false;
            }
            queue.done = end;
            api.destroy_signal(signal);
            true
        }
        // SAFETY: the queue is registered, so it was not destroyed.
        Step::Taken(end) => unsafe {
            (api.hsa_queue_load_read_index_scacquire)(queue.pointer) >= end
        },
    }
}

impl TrackedQueue {
    fn written(&self, api: &Api) -> u64 {
        // SAFETY: the queue is registered, so it was not destroyed.
        unsafe { (api.hsa_queue_load_write_index_scacquire)(self.pointer) }
    }

    /// Submits a barrier packet after all others. Returns its index; `None` if the queue is full, or another thread is
    /// writing to it.
    fn submit(&self, api: &Api, signal: SignalHandle) -> Option<u64> {
        let index = self.written(api);
        // SAFETY: the queue is registered, so it was not destroyed.
        let (queue, taken) = unsafe {
            let taken = (api.hsa_queue_load_read_index_scacquire)(self.pointer);
            (&*self.pointer, taken)
        };
        if index.wrapping_sub(taken) >= u64::from(queue.size) {
            return None;
        }
        // SAFETY: as above. The slot is free, and reserved once the write index is advanced.
        let found =
            unsafe { (api.hsa_queue_cas_write_index_scacq_screl)(self.pointer, index, index + 1) };
        if found != index {
            return None;
        }
        // SAFETY: the queue is registered, so it was not destroyed; the slot is free and reserved for this packet.
        unsafe { write_barrier(api, self.pointer, index, signal) };
        Some(index)
    }
}

/// Writes a barrier packet that completes `signal` after all earlier packets, and rings the doorbell. Its fences have
/// system scope.
///
/// # Safety
/// The queue is not destroyed, and the slot of `index` is free and reserved by the caller.
unsafe fn write_barrier(api: &Api, queue: *const Queue, index: u64, signal: SignalHandle) {
    // SAFETY: the caller's promise. A slot of the ring has 64 bytes and is aligned to 64 bytes. Its header is invalid
    // until the new header is written, which comes last.
    unsafe {
        let queue = &*queue;
        let slot = (index % u64::from(queue.size.max(1))) as usize;
        let packet = queue.base_address.cast::<[u64; 8]>().add(slot);
        let words = packet.cast::<u64>();
        packet.cast::<u16>().add(1).write_volatile(0);
        packet.cast::<u32>().add(1).write_volatile(0);
        (1..7).for_each(|n| words.add(n).write_volatile(0));
        words.add(7).write_volatile(signal.0);
        let header = &*packet.cast::<AtomicU16>();
        header.store(BARRIER_PACKET_HEADER, Ordering::Release);
        (api.hsa_signal_store_screlease)(queue.doorbell_signal, index as SignalValue);
    }
}
