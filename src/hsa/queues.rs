//! The program's queues, so that a drain can wait for what is in them where there is no HIP that would do it: programs
//! of pure HSA, OpenMP's. Nothing is on the launch path: a queue is noted when it is made, and looked at by drains.
//!
//! A packet that was taken from a queue may still run, and only the queue itself can tell when it is done: a barrier
//! packet with a signal of ours goes behind all others. Into a queue with a single producer nobody else may write;
//! there the drain waits until all packets were taken, which leaves the last ones unwatched.

use super::api::{Api, Error, ok};
use super::cooperative;
use super::types::*;
use crate::guard::lock;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The header of an `hsa_barrier_and_packet_t` that waits for all packets before it
/// (`HSA_PACKET_TYPE_BARRIER_AND`, `HSA_PACKET_HEADER_BARRIER`), its fences of system scope (`HSA_FENCE_SCOPE_SYSTEM`).
const BARRIER_PACKET_HEADER: u16 = 3 | 1 << 8 | 2 << 9 | 2 << 11;

/// How long a wait goes on before it looks at the clock, and whether the queue is still there.
const WAIT_SLICE: Duration = Duration::from_millis(20);
/// Between two looks at what sends no signal.
const LOOK_PAUSE: Duration = Duration::from_micros(200);

struct Queue {
    pointer: *mut QueueHead,
    /// No other queue's at the same address.
    number: u64,
    /// Only one thread, the program's, may write to it. ROCr itself takes every queue for one of many producers.
    single: bool,
    /// Its write index when all that it holds was last seen to be done.
    done: u64,
}

// SAFETY: HSA's functions for queues may be called from any thread; the queue is alive while it is noted.
unsafe impl Send for Queue {}

#[derive(Default)]
struct Queues {
    made: u64,
    /// By their addresses.
    all: HashMap<usize, Queue>,
    /// Threads in [`wait`].
    waiting: usize,
    /// HSA is being shut down.
    closed: bool,
}

/// Held while a queue is looked at, so that it is not destroyed meanwhile; never through a wait.
static QUEUES: Mutex<Option<Queues>> = Mutex::new(None);
/// A wait has ended.
static IS_OVER: Condvar = Condvar::new();

/// A queue was made, for one producer or for many, and its end will be told by [`gone`].
pub fn made(queue: usize, single: bool) {
    let mut queues = lock(&QUEUES);
    let queues = queues.get_or_insert_default();
    queues.made += 1;
    queues.all.insert(
        queue,
        Queue {
            pointer: queue as *mut QueueHead,
            number: queues.made,
            single,
            done: 0,
        },
    );
}

/// A queue takes no packets any more, or is about to be destroyed.
pub fn gone(queue: usize) {
    if let Some(queues) = lock(&QUEUES).as_mut() {
        queues.all.remove(&queue);
    }
}

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is creating or destroying a queue of devprof's own.
pub fn is_own() -> bool {
    IS_OWN.get()
}

/// Packets of a queue of devprof's own, at least. It never holds more than one.
const OWN_SIZE: u32 = 64;

/// Creates a queue that no hook takes for the program's.
pub fn create_own(api: &Api, agent: AgentHandle) -> Result<*mut QueueHead, Error> {
    let mut size = 0u32;
    // SAFETY: the attribute is a u32.
    let status = unsafe {
        (api.hsa_agent_get_info)(agent, AGENT_INFO_QUEUE_MIN_SIZE, (&raw mut size).cast())
    };
    ok("hsa_agent_get_info(HSA_AGENT_INFO_QUEUE_MIN_SIZE)", status)?;
    let mut queue = std::ptr::null_mut();
    IS_OWN.set(true);
    // SAFETY: no callback and its data; no scratch memory and LDS, for no kernel will run.
    let status = unsafe {
        (api.hsa_queue_create)(
            agent,
            size.max(OWN_SIZE),
            QUEUE_TYPE_MULTI,
            None,
            std::ptr::null_mut(),
            0,
            0,
            &raw mut queue,
        )
    };
    IS_OWN.set(false);
    ok("hsa_queue_create", status).map(|()| queue)
}

/// Destroys a queue of [`create_own`]. What is in it is given up.
pub fn destroy_own(api: &Api, queue: *mut QueueHead) {
    IS_OWN.set(true);
    // SAFETY: created by `create_own`, and used by nobody any more.
    unsafe { (api.hsa_queue_destroy)(queue) };
    IS_OWN.set(false);
}

/// All queues are gone: HSA comes alive anew, or this is a forked child, in which the parent's are not ours to touch.
pub fn forget() {
    // The lock may be held by a thread that the child does not have; then no queue is noted or looked at there, ever.
    if let Ok(mut queues) = QUEUES.try_lock() {
        *queues = None;
    }
}

/// HSA is about to be shut down, perhaps for good: ends the waits of other threads.
pub fn close() {
    let mut queues = lock(&QUEUES);
    queues.get_or_insert_default().closed = true;
    // A wait looks up after each slice of its time.
    while queues.as_ref().is_some_and(|queues| queues.waiting > 0) {
        queues = IS_OVER.wait(queues).unwrap_or_else(PoisonError::into_inner);
    }
}

/// The shutdown is over. Unless HSA `is_alive` still, no queue is.
pub fn open(is_alive: bool) {
    let mut queues = lock(&QUEUES);
    let queues = queues.get_or_insert_default();
    queues.closed = false;
    if !is_alive {
        queues.all.clear();
    }
}

/// What has to happen until a queue is done.
enum Step {
    /// A barrier packet goes behind what is in the queue, as soon as there is room for it.
    Submit,
    /// Its signal falls to 0; the write index behind it.
    Signal(SignalHandle, u64),
    /// All packets up to this write index are taken.
    Taken(u64),
}

/// Waits until all packets that are in the program's queues now are done, for `limit` at most. Whether they are.
pub fn wait(api: &Api, limit: Duration) -> bool {
    let start = Instant::now();
    let mut busy: Vec<(usize, u64, Step)> = Vec::new();
    if let Some(queues) = lock(&QUEUES).as_mut().filter(|queues| !queues.closed) {
        for (&address, queue) in &queues.all {
            let written = queue.written(api);
            if written != queue.done {
                let step = if queue.single {
                    Step::Taken(written)
                } else {
                    Step::Submit
                };
                busy.push((address, queue.number, step));
            }
        }
        queues.waiting += usize::from(!busy.is_empty());
    }
    if busy.is_empty() {
        return true;
    }
    let is_done = wait_for(api, busy, start, limit);
    if let Some(queues) = lock(&QUEUES).as_mut() {
        queues.waiting = queues.waiting.saturating_sub(1);
    }
    IS_OVER.notify_all();
    is_done
}

fn wait_for(api: &Api, mut busy: Vec<(usize, u64, Step)>, start: Instant, limit: Duration) -> bool {
    // All barriers are on their way before the first wait.
    loop {
        busy.retain_mut(|(address, number, step)| !advance(api, *address, *number, step));
        let Some((.., step)) = busy.first() else {
            return true;
        };
        if start.elapsed() >= limit {
            // Signals that the GPU may still write to are left to it.
            return false;
        }
        match step {
            Step::Signal(signal, _) => {
                // SAFETY: the signal is ours. The timeout is a hint in ticks of HSA's clock.
                unsafe {
                    (api.hsa_signal_wait_scacquire)(
                        *signal,
                        SIGNAL_CONDITION_LT,
                        1,
                        WAIT_SLICE.as_nanos() as u64,
                        WAIT_STATE_BLOCKED,
                    )
                };
            }
            Step::Submit | Step::Taken(_) => std::thread::sleep(LOOK_PAUSE),
        }
    }
}

/// Takes the next step for a queue if that is possible now. Whether nothing is to be waited for any more.
fn advance(api: &Api, address: usize, number: u64, step: &mut Step) -> bool {
    let mut queues = lock(&QUEUES);
    // The GPU may still write to the signals.
    if queues.as_ref().is_some_and(|queues| queues.closed) {
        return true;
    }
    let queue = queues
        .as_mut()
        .and_then(|queues| queues.all.get_mut(&address))
        .filter(|queue| queue.number == number);
    let Some(queue) = queue else {
        // What was in it has ended with it.
        if let Step::Signal(signal, _) = *step {
            destroy(api, signal);
        }
        return true;
    };
    match *step {
        Step::Submit => {
            // Without a signal there will be none later either: then as with a single producer.
            let Some(signal) = create(api) else {
                *step = Step::Taken(queue.written(api));
                return false;
            };
            match queue.submit(api, signal) {
                Some(index) => {
                    cooperative::own_packet(address);
                    *step = Step::Signal(signal, index + 1);
                }
                None => destroy(api, signal),
            }
            false
        }
        Step::Signal(signal, end) => {
            // SAFETY: the signal is ours.
            let value = unsafe {
                (api.hsa_signal_wait_scacquire)(
                    signal,
                    SIGNAL_CONDITION_LT,
                    1,
                    0,
                    WAIT_STATE_BLOCKED,
                )
            };
            if value >= 1 {
                return false;
            }
            queue.done = end;
            destroy(api, signal);
            true
        }
        // SAFETY: the queue is noted, so it is alive.
        Step::Taken(end) => unsafe {
            (api.hsa_queue_load_read_index_scacquire)(queue.pointer) >= end
        },
    }
}

impl Queue {
    fn written(&self, api: &Api) -> u64 {
        // SAFETY: the queue is noted, so it is alive.
        unsafe { (api.hsa_queue_load_write_index_scacquire)(self.pointer) }
    }

    /// Puts a barrier packet behind all others, if there is room and nobody else writes just now. Its index.
    fn submit(&self, api: &Api, signal: SignalHandle) -> Option<u64> {
        let index = self.written(api);
        // SAFETY: the queue is noted, so it is alive.
        let (head, taken) = unsafe {
            let taken = (api.hsa_queue_load_read_index_scacquire)(self.pointer);
            (&*self.pointer, taken)
        };
        if index.wrapping_sub(taken) >= u64::from(head.size) {
            return None;
        }
        // SAFETY: as above. The place is free, and ours once the write index is behind it.
        let was =
            unsafe { (api.hsa_queue_cas_write_index_scacq_screl)(self.pointer, index, index + 1) };
        if was != index {
            return None;
        }
        // SAFETY: the queue is alive, and the slot is free and reserved for this packet.
        unsafe { put_barrier(api, self.pointer, index, signal) };
        Some(index)
    }
}

/// Writes a barrier packet that completes `signal` when all packets before it are done, and rings for it. Its fences are of
/// system scope.
///
/// # Safety
/// The queue is alive, and the slot of `index` is free and reserved by the caller.
pub(super) unsafe fn put_barrier(
    api: &Api,
    queue: *const QueueHead,
    index: u64,
    signal: SignalHandle,
) {
    // SAFETY: the caller's promise. A packet's slot in the ring has 64 bytes, aligned to them. What is in it was taken, and
    // its header says so until the new one is written, last.
    unsafe {
        let head = &*queue;
        let slot = (index % u64::from(head.size.max(1))) as usize;
        let packet = head.base_address.cast::<[u64; 8]>().add(slot);
        let words = packet.cast::<u64>();
        packet.cast::<u16>().add(1).write_volatile(0);
        packet.cast::<u32>().add(1).write_volatile(0);
        (1..7).for_each(|n| words.add(n).write_volatile(0));
        words.add(7).write_volatile(signal.0);
        let header = &*packet.cast::<AtomicU16>();
        header.store(BARRIER_PACKET_HEADER, Ordering::Release);
        (api.hsa_signal_store_screlease)(head.doorbell_signal, index as SignalValue);
    }
}

fn create(api: &Api) -> Option<SignalHandle> {
    let mut signal = SignalHandle(0);
    // SAFETY: no consumers named: any agent may use it.
    let status = unsafe { (api.hsa_signal_create)(1, 0, std::ptr::null(), &raw mut signal) };
    (status == Status::SUCCESS).then_some(signal)
}

fn destroy(api: &Api, signal: SignalHandle) {
    // SAFETY: created by `create`; no packet that the GPU may still take names it.
    unsafe { (api.hsa_signal_destroy)(signal) };
}
