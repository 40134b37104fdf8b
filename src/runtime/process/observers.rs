//! Observes the GPU runtimes: for profiles, sends requests to the copy of devprof that leads; for the trace, calls this copy's
//! trace.

use super::cuda;
use super::leader::request;
use super::lifecycle;
use super::request::Request;
use super::tool;
use crate::gpu::observers::{
    ApiCall, CopyCall, DrainObserver, PacketHandler, Source, StartedCopy, TraceObserver,
};
use crate::gpu::runtime::{AgentId, ExecutableId};
use crate::support::features::HAS_CUDA;
use crate::support::panic_guard::{Cost, guarded, guarded_hot};
use crate::sys::loader;
use crate::trace;
use std::sync::atomic::{AtomicU64, Ordering};

/// Observes for profiles.
pub struct Drain;

impl DrainObserver for Drain {
    /// Reported before the call, because ROCr may load a tool during it.
    fn initializing(&self) -> bool {
        let is_reported = is_reported_by(Source::Interposed);
        if is_reported {
            request(Request::Initializing {});
        }
        is_reported
    }

    fn initialized(&self, was_reported: bool, is_success: bool) {
        if was_reported {
            request(Request::Initialized {});
        }
        if is_success {
            tool::report_if_skipped();
        }
    }

    fn shutting_down(&self, source: Source) -> bool {
        let is_reported = is_reported_by(source);
        if is_reported {
            request(Request::ShuttingDown {});
        }
        is_reported
    }

    fn shut_down(&self) {
        request(Request::ShutDown {});
    }

    fn cuda_used(&self) {
        request(Request::CudaStarting {});
        cuda::used();
    }

    fn context_created(&self) {
        request(Request::CudaStarting {});
        if HAS_CUDA {
            register_exit();
        }
    }

    fn code_loaded(&self) {
        request(Request::CudaStarting {});
        request(Request::CodeLoaded {});
    }

    fn freezing(&self, source: Source, executable: ExecutableId) -> u64 {
        if is_reported_by(source) {
            request(Request::Freezing { executable })
        } else {
            0
        }
    }

    fn frozen(&self, source: Source, executable: ExecutableId, generation: u64) {
        if is_reported_by(source) {
            request(Request::Frozen {
                executable,
                generation,
            });
        }
    }

    fn destroying(&self, source: Source, executable: ExecutableId) -> Option<u64> {
        is_reported_by(source).then(|| request(Request::Destroying { executable }))
    }

    fn destroyed(&self, executable: ExecutableId, generation: u64, is_success: bool) {
        request(Request::Destroyed {
            executable,
            generation,
            is_success,
        });
    }

    fn queue_created(
        &self,
        source: Source,
        queue: usize,
        is_single_producer: bool,
        callback: usize,
    ) {
        if is_reported_by(source) {
            request(Request::QueueCreated {
                queue: queue as u64,
                callback: callback as u64,
                is_single_producer,
            });
        }
    }

    fn queue_destroying(&self, source: Source, queue: usize) {
        if is_reported_by(source) {
            request(Request::QueueDestroying {
                queue: queue as u64,
            });
        }
    }
}

/// Observes for the trace.
pub struct Trace;

impl TraceObserver for Trace {
    fn shutting_down(&self) {
        if_owner(trace::pause);
    }

    fn shut_down(&self) {
        if_owner(trace::resume);
    }

    fn frozen(&self, executable: ExecutableId) {
        guarded(Cost::Dispatches, (), || trace::frozen(executable));
    }

    fn api_call_began(&self, call: &ApiCall) {
        guarded_hot(Cost::Dispatches, (), || trace::cuda_calls::began(call));
    }

    fn api_call_ended(&self, is_own: bool, status: i32) {
        guarded_hot(Cost::Dispatches, (), || {
            trace::cuda_calls::ended(is_own, status);
        });
    }

    fn profiler_switched(&self, on: bool) {
        guarded(Cost::Dispatches, (), || trace::profiler_switched(on));
    }

    fn stream_created(&self, handle: u64) {
        guarded(Cost::Dispatches, (), || trace::streams::created(handle));
    }

    fn context_destroying(&self, context: u64) {
        guarded(Cost::Dispatches, (), || trace::context_destroying(context));
    }

    fn activities_expected(&self) {
        guarded(Cost::Dispatches, (), trace::activities_expected);
    }

    fn queue_created(
        &self,
        agent: AgentId,
        queue: usize,
        size: u32,
    ) -> Option<Box<dyn PacketHandler>> {
        guarded(Cost::Dispatches, None, || {
            trace::queue_created(agent, queue, size)
        })
    }

    fn slots_reserved(&self, queue: usize, first: u64, count: u64) {
        guarded_hot(Cost::Dispatches, (), || {
            trace::slots_reserved(queue, first, count);
        });
    }

    fn signal_changing(&self, signal: u64) {
        guarded_hot(Cost::Dispatches, (), || trace::signal_changing(signal));
    }

    fn signal_comparing(&self, signal: u64) {
        guarded_hot(Cost::Dispatches, (), || trace::signal_comparing(signal));
    }

    fn signal_changed(&self, signal: u64, old: i64) {
        guarded_hot(Cost::Dispatches, (), || trace::signal_changed(signal, old));
    }

    fn signal_destroying(&self, signal: u64) {
        guarded(Cost::Dispatches, (), || trace::signal_destroying(signal));
    }

    fn dispatch_time_read(&self, signal: u64) -> Option<(u64, u64)> {
        guarded(Cost::Dispatches, None, || trace::dispatch_time(signal))
    }

    fn copying(&self, call: &CopyCall) -> Option<StartedCopy> {
        // A drain calls the functions that the trace hooks, perhaps in another copy of devprof.
        if request(Request::IsOwnCopy {}) != 0 {
            return None;
        }
        guarded_hot(Cost::Copies, None, || trace::copies::begin(call))
    }

    fn copy_requested(&self, call: &CopyCall, started: StartedCopy, is_success: bool) {
        guarded_hot(Cost::Copies, (), || {
            trace::copies::end(call, started, is_success);
        });
    }
}

/// Registers the exit handler when CUDA's first context exists: it then runs before the handlers in which the driver and the
/// CUDA runtime end. If a library was loaded since, it may be another copy of the CUDA runtime.
fn register_exit() {
    static LOADED: AtomicU64 = AtomicU64::new(0);
    let loaded = loader::number_loaded();
    if LOADED.swap(loaded, Ordering::Relaxed) != loaded {
        request(Request::RegisterExit {});
    }
}

/// Whether calls that were observed in this way are to be reported: interposed functions duplicate what a tool observes.
fn is_reported_by(source: Source) -> bool {
    match source {
        Source::Tool => true,
        Source::Interposed => request(Request::IsObserved {}) == 0,
    }
}

fn if_owner(work: fn()) {
    guarded(Cost::Dispatches, (), || {
        if lifecycle::is_owner() {
            work();
        }
    });
}
