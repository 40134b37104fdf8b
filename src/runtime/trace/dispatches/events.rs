//! What HSA's hooks report to the trace.

use super::capture::{self, Capture};
use super::signal_times;
use super::{packet_origins, source::Dispatches};
use crate::amd::intercept;
use crate::gpu::observers::{Packet, PacketHandler};
use crate::gpu::runtime::{AgentId, ExecutableId};
use crate::trace::calls;
use crate::trace::hsa::{self, watched_signals};
use crate::trace::queues::wakeup;
use crate::trace::recorder::{Recorder, clock};
use crate::trace::session::{self, with_source};
use hsa_abi::{AgentHandle, ExecutableHandle, SignalHandle};

/// Handles the packets of one queue.
struct QueuePackets {
    queue: usize,
    capture: Capture,
}

impl PacketHandler for QueuePackets {
    fn is_idle(&self) -> bool {
        Capture::is_idle()
    }

    fn take(&mut self, batch: &mut dyn Iterator<Item = (u64, Packet)>) -> &[Packet] {
        self.capture.process(batch)
    }

    fn close(self: Box<Self>) {
        let QueuePackets { queue, capture } = *self;
        with_source(|dispatches: &mut Dispatches, to| {
            dispatches.remove_queue(queue, capture, to);
        });
    }
}

/// The handler for the packets of a new queue of `size` packets; `None` for a queue that is not traced.
pub fn queue_created(agent: AgentId, queue: usize, size: u32) -> Option<Box<dyn PacketHandler>> {
    let agent = AgentHandle(agent.hsa_handle());
    let add = |dispatches: &mut Dispatches, to: &mut Recorder| {
        dispatches.add_queue(agent, queue, size, to)
    };
    let capture = with_source(add)??;
    Some(Box::new(QueuePackets { queue, capture }))
}

/// The calling thread has reserved slots of a queue for `count` packets, beginning at index `first`.
pub fn slots_reserved(queue: usize, first: u64, count: u64) {
    packet_origins::record_reservation(queue, first, count);
}

/// An executable was frozen: its kernels may be dispatched next.
pub fn frozen(executable: ExecutableId) {
    with_source(|dispatches: &mut Dispatches, to| {
        dispatches.add_kernels(ExecutableHandle(executable.hsa_handle()), to);
    });
}

/// The start and end, in ticks of the system clock, of the kernel in whose packet devprof replaced the program's
/// completion signal `signal`.
pub fn dispatch_time(signal: u64) -> Option<(u64, u64)> {
    if !capture::has_replaced_signals() {
        return None;
    }
    // The signal is complete, so the kernel is, too, but it may not have been polled yet.
    session::poll();
    let time = with_source(|dispatches: &mut Dispatches, _| {
        dispatches.signal_time(SignalHandle(signal))
    })??;
    Some((time.start, time.end))
}

/// The program is about to change a signal's value.
pub fn signal_changing(signal: u64) {
    watched_signals::changing(SignalHandle(signal));
}

/// The program may change a signal's value.
pub fn signal_comparing(signal: u64) {
    watched_signals::comparing(SignalHandle(signal));
}

/// The program has changed a signal's value, which was `old`, after [`signal_comparing`].
pub fn signal_changed(signal: u64, old: i64) {
    watched_signals::changed(SignalHandle(signal), old);
}

/// The program is about to destroy a signal.
pub fn signal_destroying(signal: u64) {
    // In a forked process no thread reads signals, but the parent's thread may have been reading this one.
    if !session::is_traced() {
        return;
    }
    let signal = SignalHandle(signal);
    let Some(_busy) = session::begin_locking() else {
        // A signal handler that has interrupted this thread. It may have been reading this very signal, so it cannot
        // wait for the end of that.
        watched_signals::changing(signal);
        return;
    };
    watched_signals::destroying(signal);
    if capture::has_replaced_signals() {
        signal_times::add_destroyed(signal, clock::now());
    }
}

/// A thread is about to call `hsa_shut_down`. HSA counts its users and does not report the count, so this may or may
/// not uninitialize it.
pub fn pause() {
    session::poll();
    let is_counted = with_source(|dispatches: &mut Dispatches, _| dispatches.pause());
    // The trace of CUDA may begin before the call returns.
    if is_counted.is_none() {
        hsa::begin_shutdown();
    }
}

/// The call of `hsa_shut_down` has returned. Unless [`release`] was called meanwhile, HSA is still initialized and the
/// trace continues.
pub fn resume() {
    hsa::end_shutdown();
    wakeup::wake();
}

/// HSA was uninitialized. It may be initialized again.
pub fn release() {
    if session::is_traced() {
        hsa::stop();
        if session::is_stopped() {
            calls::pause();
        }
        session::stop();
        with_source(|dispatches: &mut Dispatches, to| dispatches.release(to));
    }
    intercept::forget_queues();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::session::Runtime;

    /// CUDA's trace may begin between the two calls, so their number must be known without a trace.
    #[test]
    fn hsa_is_paused_during_a_shutdown_that_begins_before_the_trace() {
        pause();
        assert_eq!(hsa::runtime(), Runtime::Paused);
        resume();
        assert_eq!(hsa::runtime(), Runtime::Usable);
    }
}
