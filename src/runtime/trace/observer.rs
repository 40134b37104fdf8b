//! Observes the GPU runtimes for the trace.

use super::dispatches::capture::{self, Capture};
use super::dispatches::{Dispatches, packet_origins, signal_times};
use super::hsa::{self, watched_signals};
use super::queues::wakeup;
use super::recorder::{Recorder, clock, streams};
use super::session::{self, with_source};
use super::{calls, copies, cuda, start};
use crate::gpu::observers::{ApiCall, CopyCall, Packet, PacketHandler, StartedCopy, TraceObserver};
use crate::gpu::owner::is_owner;
use crate::gpu::runtime::{AgentId, ExecutableId};
use crate::support::panic_guard::{Cost, guarded, guarded_hot};
use hsa_abi::{AgentHandle, ExecutableHandle, SignalHandle};

pub struct Observer {
    /// Whether the calling thread copies for a drain, perhaps one of another instance of devprof. A drain calls the functions that
    /// the trace hooks.
    pub is_own_copy: fn() -> bool,
}

impl TraceObserver for Observer {
    fn shutting_down(&self) {
        guarded(Cost::Dispatches, (), || {
            if is_owner() {
                pause();
            }
        });
    }

    fn shut_down(&self) {
        guarded(Cost::Dispatches, (), || {
            if is_owner() {
                resume();
            }
        });
    }

    fn frozen(&self, executable: ExecutableId) {
        guarded(Cost::Dispatches, (), || {
            with_source(|dispatches: &mut Dispatches, to| {
                dispatches.add_kernels(ExecutableHandle(executable.hsa_handle()), to);
            });
        });
    }

    fn api_call_began(&self, call: &ApiCall) {
        guarded_hot(Cost::Dispatches, (), || cuda::calls::began(call));
    }

    fn api_call_ended(&self, is_own: bool, status: i32) {
        guarded_hot(Cost::Dispatches, (), || cuda::calls::ended(is_own, status));
    }

    fn profiler_switched(&self, on: bool) {
        guarded(Cost::Dispatches, (), || start::profiler_switched(on));
    }

    fn stream_created(&self, handle: u64) {
        guarded(Cost::Dispatches, (), || streams::created(handle));
    }

    fn context_destroying(&self, context: u64) {
        guarded(Cost::Dispatches, (), || cuda::context_destroying(context));
    }

    fn module_loaded(&self, context: u64, number: u32, cubin: &[u8]) {
        guarded(Cost::Dispatches, (), || {
            cuda::module_loaded(context, number, cubin);
        });
    }

    fn modules_unloading(&self, context: u64, number: Option<u32>) {
        guarded(Cost::Dispatches, (), || {
            cuda::modules_unloading(context, number);
        });
    }

    fn activities_expected(&self) {
        guarded(Cost::Dispatches, (), wakeup::wake_if_asleep);
    }

    fn queue_created(
        &self,
        agent: AgentId,
        queue: usize,
        size: u32,
    ) -> Option<Box<dyn PacketHandler>> {
        guarded(Cost::Dispatches, None, || {
            let agent = AgentHandle(agent.hsa_handle());
            let add = |dispatches: &mut Dispatches, to: &mut Recorder| {
                dispatches.add_queue(agent, queue, size, to)
            };
            let capture = with_source(add)??;
            Some(Box::new(QueuePackets { queue, capture }) as Box<dyn PacketHandler>)
        })
    }

    fn slots_reserved(&self, queue: usize, first: u64, count: u64) {
        guarded_hot(Cost::Dispatches, (), || {
            packet_origins::record_reservation(queue, first, count);
        });
    }

    fn signal_changing(&self, signal: u64) {
        guarded_hot(Cost::Dispatches, (), || {
            watched_signals::changing(SignalHandle(signal));
        });
    }

    fn signal_comparing(&self, signal: u64) {
        guarded_hot(Cost::Dispatches, (), || {
            watched_signals::comparing(SignalHandle(signal));
        });
    }

    fn signal_changed(&self, signal: u64, old: i64) {
        guarded_hot(Cost::Dispatches, (), || {
            watched_signals::changed(SignalHandle(signal), old);
        });
    }

    fn signal_destroying(&self, signal: u64) {
        guarded(Cost::Dispatches, (), || {
            signal_destroying(SignalHandle(signal));
        });
    }

    fn dispatch_time_read(&self, signal: u64) -> Option<(u64, u64)> {
        guarded(Cost::Dispatches, None, || {
            if !capture::has_replaced_signals() {
                return None;
            }
            // The signal is complete, so the kernel is, too, but it may not have been polled yet.
            session::poll();
            let time = with_source(|dispatches: &mut Dispatches, _| {
                dispatches.signal_time(SignalHandle(signal))
            })??;
            Some((time.start, time.end))
        })
    }

    fn copying(&self, call: &CopyCall) -> Option<StartedCopy> {
        if (self.is_own_copy)() {
            return None;
        }
        guarded_hot(Cost::Copies, None, || copies::begin(call))
    }

    fn copy_requested(&self, call: &CopyCall, started: StartedCopy, is_success: bool) {
        guarded_hot(Cost::Copies, (), || copies::end(call, started, is_success));
    }
}

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

/// The program is about to destroy a signal.
fn signal_destroying(signal: SignalHandle) {
    // In a forked process no thread reads signals, but the parent's thread may have been reading this one.
    if !session::is_traced() {
        return;
    }
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
fn pause() {
    session::poll();
    let is_counted = with_source(|dispatches: &mut Dispatches, _| dispatches.pause());
    // The trace of CUDA may begin before the call returns.
    if is_counted.is_none() {
        hsa::begin_shutdown();
    }
}

/// The call of `hsa_shut_down` has returned. Unless [`release`] was called meanwhile, HSA is still initialized and the
/// trace continues.
fn resume() {
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
