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

/// Defines methods that call a function with their arguments, if devprof has no internal error: in place of the result they
/// return `$default`.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $guarded:ident $cost:ident $default:tt $function:path;)*) => {$(
        fn $name(&self, $($argument: $type),*) $(-> $result)? {
            $guarded(Cost::$cost, $default, || $function($($argument),*))
        }
    )*};
}

impl TraceObserver for Trace {
    forward! {
        shutting_down() = guarded Dispatches () pause;
        shut_down() = guarded Dispatches () resume;
        frozen(executable: ExecutableId) = guarded Dispatches () trace::frozen;
        api_call_began(call: &ApiCall) = guarded_hot Dispatches () trace::cuda_calls::began;
        api_call_ended(is_own: bool, status: i32) = guarded_hot Dispatches () trace::cuda_calls::ended;
        profiler_switched(on: bool) = guarded Dispatches () trace::profiler_switched;
        stream_created(handle: u64) = guarded Dispatches () trace::streams::created;
        context_destroying(context: u64) = guarded Dispatches () trace::context_destroying;
        activities_expected() = guarded Dispatches () trace::activities_expected;
        queue_created(agent: AgentId, queue: usize, size: u32) -> Option<Box<dyn PacketHandler>> = guarded Dispatches None trace::queue_created;
        slots_reserved(queue: usize, first: u64, count: u64) = guarded_hot Dispatches () trace::slots_reserved;
        signal_changing(signal: u64) = guarded_hot Dispatches () trace::signal_changing;
        signal_comparing(signal: u64) = guarded_hot Dispatches () trace::signal_comparing;
        signal_changed(signal: u64, old: i64) = guarded_hot Dispatches () trace::signal_changed;
        signal_destroying(signal: u64) = guarded Dispatches () trace::signal_destroying;
        dispatch_time_read(signal: u64) -> Option<(u64, u64)> = guarded Dispatches None trace::dispatch_time;
        copy_requested(call: &CopyCall, started: StartedCopy, is_success: bool) = guarded_hot Copies () trace::copies::end;
    }

    fn copying(&self, call: &CopyCall) -> Option<StartedCopy> {
        // A drain calls the functions that the trace hooks, perhaps in another copy of devprof.
        if request(Request::IsOwnCopy {}) != 0 {
            return None;
        }
        guarded_hot(Cost::Copies, None, || trace::copies::begin(call))
    }
}

fn pause() {
    if lifecycle::is_owner() {
        trace::pause();
    }
}

fn resume() {
    if lifecycle::is_owner() {
        trace::resume();
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
