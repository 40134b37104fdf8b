//! Handles the events of the GPU runtime: sends them to the copy of devprof that leads, and to this copy's trace.

use super::cuda;
use super::leader::request;
use super::lifecycle;
use super::request::Request;
use super::tool;
use super::trace_guard::{HAS_CUDA, for_trace, for_trace_hot};
use crate::gpu::events::{Event, Source};
use crate::support::panic_guard::Cost;
use crate::sys::loader;
use crate::trace;
use std::sync::atomic::{AtomicU64, Ordering};

/// The callback for all events.
pub fn handle(event: Event<'_>) {
    match event {
        Event::Initializing { is_accepted } => {
            // Before the call, because ROCr may load a tool during it.
            *is_accepted = is_reported_by(Source::Interposed);
            if *is_accepted {
                request(Request::Initializing {});
            }
        }
        Event::Initialized {
            was_accepted,
            is_success,
        } => {
            if was_accepted {
                request(Request::Initialized {});
            }
            if is_success {
                tool::report_if_skipped();
            }
        }
        Event::ShuttingDown {
            source,
            is_accepted,
        } => {
            *is_accepted = is_reported_by(source);
            if *is_accepted {
                request(Request::ShuttingDown {});
            }
            if source == Source::Tool {
                notify_trace(trace::pause);
            }
        }
        Event::ShutDown { source } => {
            request(Request::ShutDown {});
            if source == Source::Tool {
                notify_trace(trace::resume);
            }
        }
        Event::IsOwner { is_owner } => *is_owner = lifecycle::is_owner(),
        Event::CudaUsed => {
            request(Request::CudaStarting {});
            cuda::used();
        }
        Event::ContextCreated => {
            request(Request::CudaStarting {});
            if HAS_CUDA {
                register_exit();
            }
        }
        Event::CodeLoaded => {
            request(Request::CudaStarting {});
            request(Request::CodeLoaded {});
        }
        Event::ApiCallBegan { call } => {
            for_trace_hot(Cost::Dispatches, (), || trace::cuda_calls::began(call));
        }
        Event::ApiCallEnded { is_own, status } => {
            for_trace_hot(Cost::Dispatches, (), || {
                trace::cuda_calls::ended(is_own, status);
            });
        }
        Event::ProfilerSwitched { on } => {
            for_trace(Cost::Dispatches, (), || {
                trace::profiler_switched(on);
            });
        }
        Event::StreamCreated { handle } => {
            for_trace(Cost::Dispatches, (), || trace::streams::created(handle));
        }
        Event::ContextDestroying { context } => {
            for_trace(Cost::Dispatches, (), || trace::context_destroying(context));
        }
        Event::ActivitiesExpected => {
            for_trace(Cost::Dispatches, (), trace::activities_expected);
        }
        Event::Freezing {
            source,
            executable,
            generation,
        } => {
            if is_reported_by(source) {
                *generation = request(Request::Freezing {
                    executable: executable.0,
                });
            }
        }
        Event::Frozen {
            source,
            executable,
            generation,
        } => {
            if is_reported_by(source) {
                request(Request::Frozen {
                    executable: executable.0,
                    generation,
                });
            }
            if source == Source::Tool {
                for_trace(Cost::Dispatches, (), || trace::frozen(executable));
            }
        }
        Event::Destroying {
            source,
            executable,
            generation,
        } => {
            if is_reported_by(source) {
                *generation = Some(request(Request::Destroying {
                    executable: executable.0,
                }));
            }
        }
        Event::Destroyed {
            executable,
            generation,
            is_success,
        } => {
            request(Request::Destroyed {
                executable: executable.0,
                generation,
                is_success,
            });
        }
        Event::QueueCreated {
            source,
            queue,
            is_single_producer,
            callback,
        } => {
            if is_reported_by(source) {
                request(Request::QueueCreated {
                    queue: queue as u64,
                    callback: callback as u64,
                    is_single_producer,
                });
            }
        }
        Event::QueueDestroying { source, queue } => {
            if is_reported_by(source) {
                request(Request::QueueDestroying {
                    queue: queue as u64,
                });
            }
        }
        Event::InterceptQueueCreated {
            agent,
            queue,
            size,
            handler,
        } => {
            *handler = for_trace(Cost::Dispatches, None, || {
                trace::queue_created(agent, queue, size)
            });
        }
        Event::SlotsReserved {
            queue,
            first,
            count,
        } => for_trace_hot(Cost::Dispatches, (), || {
            trace::slots_reserved(queue, first, count);
        }),
        Event::SignalChanging { signal } => {
            for_trace_hot(Cost::Dispatches, (), || trace::signal_changing(signal));
        }
        Event::SignalComparing { signal } => {
            for_trace_hot(Cost::Dispatches, (), || trace::signal_comparing(signal));
        }
        Event::SignalChanged { signal, old } => {
            for_trace_hot(Cost::Dispatches, (), || trace::signal_changed(signal, old));
        }
        Event::SignalDestroying { signal } => {
            for_trace(Cost::Dispatches, (), || trace::signal_destroying(signal));
        }
        Event::DispatchTimeRead { signal, time } => {
            *time = for_trace(Cost::Dispatches, None, || trace::dispatch_time(signal));
        }
        Event::Copying { call, started } => {
            // A drain calls the functions that the trace hooks, too.
            if request(Request::IsOwnCopy {}) == 0 {
                *started = for_trace_hot(Cost::Copies, None, || trace::copies::begin(call));
            }
        }
        Event::CopyRequested {
            call,
            started,
            is_success,
        } => for_trace_hot(Cost::Copies, (), || {
            trace::copies::end(call, started, is_success);
        }),
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

/// Whether events of this source are to be reported: interposed functions duplicate what a tool observes.
fn is_reported_by(source: Source) -> bool {
    match source {
        Source::Tool => true,
        Source::Interposed => request(Request::IsObserved {}) == 0,
    }
}

fn notify_trace(event: fn()) {
    for_trace(Cost::Dispatches, (), || {
        if lifecycle::is_owner() {
            event();
        }
    });
}
