//! Writes back and invalidates a GPU's caches. Copies read memory, but what kernels have written may still be in the
//! GPU's L2 cache: HIP's dispatches end with a release of agent scope unless the host waits for them, and the copy
//! engine of gfx9 does not flush caches (CLR, rocvirtual.cpp; ROCr, amd_blit_sdma.cpp).
//!
//! A barrier packet with fences of system scope, on devprof's own queue, makes the command processor write back all
//! dirty lines, whichever queue's kernels wrote them, and invalidate clean ones, so that kernels see what was copied to
//! the device.

use super::api::{Api, check};
use super::queues;
use crate::gpu::runtime::Error;
use hsa_abi::{AgentHandle, HSA_SIGNAL_CONDITION_LT, HSA_WAIT_STATE_BLOCKED, Queue, SignalHandle};
use std::time::{Duration, Instant};

/// How long a wait takes before it checks the time.
const WAIT_SLICE: Duration = Duration::from_micros(100);
/// The longest pause between two slices.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Writes back the caches of one agent. Its queue is created on first use and kept.
pub struct WriteBack {
    api: &'static Api,
    agent: AgentHandle,
    queue: Option<BarrierQueue>,
}

/// A queue for barrier packets.
struct BarrierQueue {
    queue: *mut Queue,
    /// Completed by the last packet.
    signal: SignalHandle,
    /// The last packet was not complete at its time limit.
    is_pending: bool,
}

// SAFETY: the queue belongs to its `WriteBack` alone, and HSA's functions may be called from any thread.
unsafe impl Send for BarrierQueue {}

impl WriteBack {
    pub fn new(api: &'static Api, agent: AgentHandle) -> WriteBack {
        WriteBack {
            api,
            agent,
            queue: None,
        }
    }

    /// Writes the caches back. Returns false if that takes longer than `limit`.
    pub fn run(&mut self, limit: Duration) -> Result<bool, Error> {
        let api = self.api;
        if self.queue.is_none() {
            self.queue = Some(BarrierQueue::new(api, self.agent)?);
        }
        let Some(queue) = &mut self.queue else {
            return Ok(false);
        };
        let start = Instant::now();
        // An earlier packet still uses the signal.
        if queue.is_pending && !queue.wait(api, start, limit) {
            return Ok(false);
        }
        queue.submit(api);
        queue.is_pending = !queue.wait(api, start, limit);
        Ok(!queue.is_pending)
    }

    /// Destroys the queue. HSA must be initialized.
    pub fn release(self) {
        if let Some(queue) = self.queue {
            queues::destroy_own(self.api, queue.queue);
            // SAFETY: created by `BarrierQueue::new`; the queue whose packets may write to it was destroyed.
            unsafe { (self.api.hsa_signal_destroy)(queue.signal) };
        }
    }
}

impl BarrierQueue {
    fn new(api: &Api, agent: AgentHandle) -> Result<BarrierQueue, Error> {
        let mut signal = SignalHandle(0);
        // SAFETY: no consumers are specified, so any agent may use the signal.
        check("hsa_signal_create", unsafe {
            (api.hsa_signal_create)(0, 0, std::ptr::null(), &raw mut signal)
        })?;
        let queue = queues::create_own(api, agent).inspect_err(|_| {
            // SAFETY: created above, and not used yet.
            unsafe { (api.hsa_signal_destroy)(signal) };
        })?;
        Ok(BarrierQueue {
            queue,
            signal,
            is_pending: false,
        })
    }

    /// Submits a barrier packet. The queue must be empty.
    fn submit(&self, api: &Api) {
        // SAFETY: devprof's own queue and signal, not destroyed. Nothing else writes to the queue, and it is empty, so
        // the slot is free.
        unsafe {
            (api.hsa_signal_store_relaxed)(self.signal, 1);
            let index = (api.hsa_queue_load_write_index_scacquire)(self.queue);
            (api.hsa_queue_cas_write_index_scacq_screl)(self.queue, index, index + 1);
            queues::write_barrier(api, self.queue, index, self.signal);
        }
    }

    /// Waits until the packet is complete. Returns false if it is not complete `limit` after `start`.
    fn wait(&self, api: &Api, start: Instant, limit: Duration) -> bool {
        loop {
            // SAFETY: devprof's own signal. The timeout is a hint in ticks of HSA's clock.
            let value = unsafe {
                (api.hsa_signal_wait_scacquire)(
                    self.signal,
                    HSA_SIGNAL_CONDITION_LT,
                    1,
                    WAIT_SLICE.as_nanos() as u64,
                    HSA_WAIT_STATE_BLOCKED,
                )
            };
            if value < 1 {
                return true;
            }
            let elapsed = start.elapsed();
            if elapsed >= limit {
                return false;
            }
            std::thread::sleep((elapsed / 8).min(LONGEST_PAUSE));
        }
    }
}
