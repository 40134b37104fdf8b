//! Write-back of a GPU's caches. Copies read memory, and what kernels have written may still be in the GPU's L2: HIP's
//! dispatches end with a release of agent scope unless somebody waits for them, and the copy engine of gfx9 flushes
//! nothing (CLR, rocvirtual.cpp; ROCr, amd_blit_sdma.cpp). A barrier packet with fences of system scope, on a queue of
//! devprof's own, has the command processor write back all that is dirty, whichever queue it came from, and drop what is
//! clean, so that kernels see what was copied to the device.

use super::api::{Api, check};
use super::queues;
use crate::gpu::runtime::Error;
use hsa_abi::{AgentHandle, HSA_SIGNAL_CONDITION_LT, HSA_WAIT_STATE_BLOCKED, Queue, SignalHandle};
use std::time::{Duration, Instant};

/// How long a wait goes on before it looks at the clock.
const WAIT_SLICE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// What one agent's caches are written back with. The queue and its signal are made on first use and kept.
pub struct WriteBack {
    api: &'static Api,
    agent: AgentHandle,
    made: Option<Made>,
}

struct Made {
    queue: *mut Queue,
    signal: SignalHandle,
    /// The last packet was not done in time.
    is_pending: bool,
}

// SAFETY: the queue belongs to its `WriteBack` alone, and HSA's functions may be called from any thread.
unsafe impl Send for Made {}

impl WriteBack {
    pub fn new(api: &'static Api, agent: AgentHandle) -> WriteBack {
        WriteBack {
            api,
            agent,
            made: None,
        }
    }

    /// Has the caches written back. Whether that was done within `limit`.
    pub fn run(&mut self, limit: Duration) -> Result<bool, Error> {
        let api = self.api;
        if self.made.is_none() {
            self.made = Some(Made::new(api, self.agent)?);
        }
        let Some(made) = &mut self.made else {
            return Ok(false);
        };
        let start = Instant::now();
        // An earlier packet that was late has the signal still.
        if made.is_pending && !made.wait(api, start, limit) {
            return Ok(false);
        }
        made.submit(api);
        made.is_pending = !made.wait(api, start, limit);
        Ok(!made.is_pending)
    }

    /// Gives the queue back. To be called while HSA is alive.
    pub fn release(self) {
        if let Some(made) = self.made {
            queues::destroy_own(self.api, made.queue);
            // SAFETY: created by `Made::new`; the queue that may have written to it is gone.
            unsafe { (self.api.hsa_signal_destroy)(made.signal) };
        }
    }
}

impl Made {
    fn new(api: &Api, agent: AgentHandle) -> Result<Made, Error> {
        let mut signal = SignalHandle(0);
        // SAFETY: no consumers named: any agent may use it.
        check("hsa_signal_create", unsafe {
            (api.hsa_signal_create)(0, 0, std::ptr::null(), &raw mut signal)
        })?;
        let queue = queues::create_own(api, agent).inspect_err(|_| {
            // SAFETY: created above, and nobody knows it.
            unsafe { (api.hsa_signal_destroy)(signal) };
        })?;
        Ok(Made {
            queue,
            signal,
            is_pending: false,
        })
    }

    /// Puts the barrier packet into the queue, which is empty.
    fn submit(&self, api: &Api) {
        // SAFETY: a queue and a signal of devprof's own, alive. Nobody else writes to the queue, and it is empty, so that
        // the slot is free.
        unsafe {
            (api.hsa_signal_store_relaxed)(self.signal, 1);
            let index = (api.hsa_queue_load_write_index_scacquire)(self.queue);
            (api.hsa_queue_cas_write_index_scacq_screl)(self.queue, index, index + 1);
            queues::put_barrier(api, self.queue, index, self.signal);
        }
    }

    /// Waits until the packet is done, up to `limit` after `start`. Whether it is.
    fn wait(&self, api: &Api, start: Instant, limit: Duration) -> bool {
        loop {
            // SAFETY: a signal of devprof's own. The timeout is a hint in ticks of HSA's clock.
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
