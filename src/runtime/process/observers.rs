//! Observes the GPU runtimes: for profiles, sends requests to the instance of devprof that leads; for the trace, calls
//! this instance's trace.

use super::cuda;
use super::leader::request;
use super::request::Request;
use super::tool;
use crate::gpu::observers::{DrainObserver, Source};
use crate::gpu::runtime::ExecutableId;
use crate::support::features::HAS_CUDA;
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
pub static TRACE: trace::Observer = trace::Observer {
    is_own_copy: || request(Request::IsOwnCopy {}) != 0,
};

/// Registers the exit handler when CUDA's first context exists: it then runs before the handlers in which the driver and the
/// CUDA runtime end. If a library was loaded since, it may be another copy of the CUDA runtime.
fn register_exit() {
    static LOADED: AtomicU64 = AtomicU64::new(0);
    let loaded = loader::number_loaded();
    if LOADED.swap(loaded, Ordering::Relaxed) != loaded {
        request(Request::RegisterExit {});
    }
}

/// Whether calls that were observed in this way are to be reported: a tool also observes the calls of interposed functions.
fn is_reported_by(source: Source) -> bool {
    match source {
        Source::Tool => true,
        Source::Interposed => request(Request::IsObserved {}) == 0,
    }
}
