//! The beginning of the trace, by the GPU runtime that is initialized first.

use super::calls::{self, Calls};
use super::copies::{self, Copies};
use super::cuda::{self, Activities};
use super::dispatches::Dispatches;
use super::hsa;
use super::markers::{self, Markers};
use super::queues::wakeup;
use super::recorder::{Recorder, clock, streams};
use super::session::{self, Source};
use crate::gpu::runtime::Error;
use crate::gpu::traced::TracedRuntimes;
use crate::output::pattern::expand_process;
use crate::support::diagnostics;
use crate::support::environment::Values;
use crate::support::settings::settings;
use crate::sys::process;
use std::ffi::OsStr;
use tracefile::format::Header;

/// Called in the child of a fork. `is_owner`: HSA was not initialized at the fork, and the child may use it.
pub fn in_child(is_owner: bool) {
    session::in_child();
    calls::in_child(is_owner);
    copies::turn_off();
    markers::in_child();
    streams::in_child();
    cuda::calls::in_child();
}

/// See [`session::belongs_to_parent`]. Reports that this process is not traced.
fn belongs_to_parent() -> bool {
    let belongs = session::belongs_to_parent();
    if belongs {
        diagnostics::lost(
            "the parent process is already traced; this forked process is not traced",
        );
    }
    belongs
}

/// Begins the trace whose path `pattern` expands to. Called while HSA is being initialized, before any launch, and
/// called again if HSA is initialized again after a shutdown. Returns whether the process is traced.
pub fn start(pattern: &OsStr, runtimes: TracedRuntimes) -> bool {
    if belongs_to_parent() {
        return false;
    }
    let hsa = runtimes.clock;
    let frequency = hsa.frequency();
    if session::is_traced() {
        let has_same_clock = frequency.is_ok_and(|frequency| clock::find(hsa, frequency));
        if !has_same_clock {
            diagnostics::lost(
                "DEVPROF_TRACE: HSA is not traced, because it has another clock than the trace",
            );
            return false;
        }
        hsa::restart();
        wakeup::wake_if_asleep();
        // If the thread could not be started before, nothing would create signals.
        return wakeup::has_thread();
    }
    if let Ok(frequency) = frequency {
        clock::find(hsa, frequency);
    }
    begin(pattern, runtimes, frequency)
}

/// Begins the trace of CUDA, unless HSA's has begun. Called while CUDA is being initialized. Returns whether the process is
/// traced.
pub fn start_cuda(pattern: &OsStr, runtimes: TracedRuntimes) -> bool {
    if belongs_to_parent() {
        return false;
    }
    if !clock::use_default(runtimes.clock) {
        diagnostics::lost(
            "DEVPROF_TRACE: CUDA is not traced, because this HSA runtime has another clock",
        );
        return false;
    }
    let is_traced = if session::is_traced() {
        wakeup::has_thread()
    } else {
        begin(pattern, runtimes, Ok(1_000_000_000))
    };
    if is_traced {
        cuda::set_traced();
    }
    is_traced
}

/// Creates the trace and its threads. `frequency`: ticks per second of its clock.
fn begin(pattern: &OsStr, runtimes: TracedRuntimes, frequency: Result<u64, Error>) -> bool {
    let path = expand_process(pattern, &Values::now());
    let frequency = frequency.map_err(|error| error.to_string());
    let created = frequency.and_then(|frequency| {
        let started = clock::now();
        let unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let process_started = process::started().map_or(0, |start| start.as_nanos() as u64);
        let header = Header::new(std::process::id(), frequency, started, unix)
            .of_process(process_started, process::pid_namespace().unwrap_or(0));
        Recorder::create(&path, &header, runtimes).map_err(|error| error.to_string())
    });
    let mut recorder = match created {
        Ok(recorder) => recorder,
        Err(error) => {
            diagnostics::lost(format_args!(
                "cannot create the trace {}: {error}; the program is not traced",
                path.display()
            ));
            return false;
        }
    };
    let dispatches = match Dispatches::start() {
        Ok(dispatches) => dispatches,
        Err(error) => {
            diagnostics::lost(format_args!(
                "cannot start the thread that submits withheld packets: {error}; the program is not traced"
            ));
            return false;
        }
    };
    recorder.add_process();
    let sources: Vec<Box<dyn Source>> = vec![
        Box::new(dispatches),
        Box::<Activities>::default(),
        Box::new(Calls),
        Box::<Markers>::default(),
        Box::<Copies>::default(),
    ];
    session::begin(recorder, sources)
}

/// The program has called `cudaProfilerStart` or `cudaProfilerStop`. They control a trace that begins stopped. Other
/// traces are complete, whether or not the program was prepared for another tool.
pub fn profiler_switched(on: bool) {
    if settings().tracing.stopped {
        session::set_recording(on);
    }
}
