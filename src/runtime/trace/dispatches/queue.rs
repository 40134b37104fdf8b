//! A queue of HSA that is traced: its pool of signals, and whether it is polled.

use super::capture::Shared;
use super::in_flight::{CompletionSide, Signals};
use crate::amd::signals;
use crate::support::diagnostics;
use crate::trace::hsa::watched_signals::{self, Completed, Watch};
use hsa_abi::SignalHandle;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The initial number of signals in a queue's pool, and the number by which an empty pool grows.
const BATCH: usize = 512;
/// Polls without entries after which a queue is unscheduled.
const IDLE_POLLS: u32 = 40;

pub struct HsaSignals;

impl Signals for HsaSignals {
    fn value(&self, signal: SignalHandle) -> i64 {
        signals::value(signal)
    }

    fn reset(&self, signal: SignalHandle) {
        signals::reset(signal);
    }

    fn poll_watch(&self, watch: Watch) -> Option<Completed> {
        watched_signals::poll(watch)
    }
}

pub struct Queue {
    pub completion_side: CompletionSide,
    pub shared: Arc<Shared>,
    /// The agent's number in the recorder.
    pub agent: usize,
    /// The number of signals to keep in the pool.
    pool_target: usize,
    /// [`Shared::signal_waits`] at the last poll.
    signal_waits: u64,
    /// In packets. `pool_target` grows up to this number.
    size: usize,
    idle_polls: u32,
}

impl Queue {
    pub fn new(
        completion_side: CompletionSide,
        shared: Arc<Shared>,
        agent: usize,
        size: usize,
    ) -> Queue {
        Queue {
            completion_side,
            shared,
            agent,
            pool_target: BATCH,
            signal_waits: 0,
            size,
            idle_polls: 0,
        }
    }

    /// Creates the first signals. `unused`: signals that are in no queue's pool and in no packet.
    pub fn fill_pool(&mut self, unused: &mut Vec<SignalHandle>) {
        let is_stopped = self.shared.stopped.load(Ordering::Relaxed);
        if !is_stopped && self.completion_side.free_count() == 0 {
            self.add_signals(unused, BATCH);
        }
    }

    /// Refills the pool.
    pub fn replenish_pool(&mut self, unused: &mut Vec<SignalHandle>) {
        let signal_waits = self.shared.signal_waits.load(Ordering::Relaxed);
        if signal_waits != self.signal_waits {
            self.signal_waits = signal_waits;
            self.pool_target = (2 * self.pool_target).min(self.size.max(BATCH));
        }
        let is_waiting = self.shared.waiting_for_signal.load(Ordering::SeqCst);
        let free = self.completion_side.free_count();
        if is_waiting || free < self.pool_target / 2 {
            let missing = self.pool_target.saturating_sub(free);
            // The GPU may hold the signals of an empty pool for a long time, so the pool grows beyond its target.
            let more = if is_waiting {
                missing.max(BATCH)
            } else {
                missing
            };
            self.add_signals(unused, more);
        }
    }

    /// Adds `count` signals to the pool.
    fn add_signals(&mut self, unused: &mut Vec<SignalHandle>, count: usize) {
        for _ in 0..count {
            match unused.pop().or_else(signals::create) {
                Some(signal) => self.completion_side.add_signal(signal),
                None => {
                    if self.completion_side.free_count() == 0 {
                        diagnostics::lost(
                            "HSA cannot create more signals: dispatches are recorded without times until earlier dispatches complete",
                        );
                        self.shared.signals_exhausted.store(true, Ordering::Release);
                    }
                    return;
                }
            }
        }
        self.shared
            .signals_exhausted
            .store(false, Ordering::Release);
    }

    /// Whether the queue is to be polled again, after a poll that has processed `recorded` entries.
    pub fn stays_scheduled(&mut self, recorded: usize) -> bool {
        let is_idle = self.completion_side.is_empty() && recorded == 0;
        self.idle_polls = if is_idle { self.idle_polls + 1 } else { 0 };
        if self.idle_polls < IDLE_POLLS {
            return true;
        }
        self.idle_polls = 0;
        self.shared.poll_flag.unschedule();
        !self.completion_side.is_empty() && self.shared.poll_flag.try_schedule()
    }
}
