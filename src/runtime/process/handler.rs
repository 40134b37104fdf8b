//! Handles requests, in the instance that leads.

use super::collect::{collect, set_up_copies};
use super::cuda_trace;
use super::lifecycle;
use super::request::{REFUSED, Request};
use super::signals;
use super::snapshot;
use crate::amd::{hsa_runtime, queues};
use crate::drain::kind::DrainKind;
use crate::nvidia::subscriber::{self, Unobserved};
use crate::nvidia::{without_cupti, wrapped};
use crate::output::{profile_files, test_files};
use crate::support::diagnostics::{self, Outcome};
use crate::support::features::{HAS_CUDA, HAS_TRACE};
use crate::support::panic_guard::{Cost, guarded};
use crate::support::run_log;
use crate::support::settings::settings;
use crate::support::sync::Busy;
use crate::support::wait_limit;
use crate::sys::{exit, loader};
use crate::trace;
use std::cell::Cell;
use std::ffi::c_void;
use std::slice;
use std::sync::OnceLock;

/// The next step if the destruction of executables cannot be observed.
const HOW_TO_OBSERVE: &str = "preload libdevprof.so (devprof run), or link with the flags of `devprof flags` and without hiding hsa_executable_freeze and hsa_executable_destroy (--exclude-libs, version scripts)";

thread_local! {
    /// This thread handles a request.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Records in the run log that device code was loaded, and which files it may be from.
fn log_code() {
    if run_log::is_enabled() {
        run_log::append(run_log::Event::Code, b"");
        run_log::append_paths(run_log::Event::Mapped, &loader::libraries());
    }
}

/// The exit handler of the process. Set at startup, because `exit` depends on this module.
static EXIT_HANDLER: OnceLock<extern "C" fn()> = OnceLock::new();

/// Sets the function that [`register_exit_handler`] registers.
pub fn set_exit_handler(handler: extern "C" fn()) {
    EXIT_HANDLER.get_or_init(|| handler);
}

/// Registers the exit handler, before the handlers that are already registered.
pub fn register_exit_handler() {
    if let Some(&handler) = EXIT_HANDLER.get() {
        register_at_exit(handler);
    }
}

/// Registers a handler that runs at exit, before the handlers that are already registered.
pub fn register_at_exit(handler: extern "C" fn()) {
    if !exit::at_exit(handler) {
        diagnostics::lost(
            "cannot register an exit handler: device counters are only written by the collect call",
        );
    }
}

/// If a signal handler has interrupted this thread during a drain, reports that and returns true. The handler cannot
/// wait: the drain continues, and releases its locks, only after the handler returns.
pub fn report_if_interrupted() -> bool {
    let is_busy = IS_BUSY.get();
    if is_busy {
        diagnostics::lost(
            "a signal handler interrupted a drain and exits or starts another drain; the counts since the last drain are lost",
        );
    }
    is_busy
}

/// Handles a request. See [`Request`] for the answers.
pub fn handle(request: Request) -> u64 {
    // Hooks send the first ones also on threads that handle a request. The others concern only the trace.
    match request {
        Request::IsObserved {} => {
            return u64::from(lifecycle::is_owner() && lifecycle::tool_observes());
        }
        Request::MayBeUp {} => return u64::from(lifecycle::may_be_up()),
        Request::BeforeExec {} => {
            signals::save_before_exec();
            return 0;
        }
        Request::CudaStarting {} => {
            lifecycle::cuda_initializing();
            return 0;
        }
        Request::IsOwnCopy {} => return u64::from(hsa_runtime::is_copying()),
        // The driver holds its locks, perhaps during a drain of this thread.
        Request::CodeLoaded {} if HAS_CUDA => {
            return guarded(Cost::Counters, REFUSED, || {
                log_code();
                snapshot::start();
                0
            });
        }
        Request::RegisterExit {} => {
            register_exit_handler();
            return 0;
        }
        Request::TimeLeft {} => return wait_limit::left().as_nanos() as u64,
        Request::CudaInitializing {} | Request::CudaUsed { .. } | Request::CodeLoaded {}
            if !HAS_CUDA =>
        {
            return REFUSED;
        }
        // The archive has no trace.
        Request::SetRecording { .. } | Request::FlushTrace {} if !HAS_TRACE => return 0,
        Request::SetRecording { on } => {
            return guarded(Cost::Dispatches, REFUSED, || {
                trace::set_recording(on);
                0
            });
        }
        Request::FlushTrace {} => {
            return guarded(Cost::Dispatches, REFUSED, || {
                u64::from(!trace::flush(settings().sync_limit))
            });
        }
        _ => {}
    }
    guarded(Cost::Counters, REFUSED, || {
        if !lifecycle::is_owner() {
            return 0;
        }
        if report_if_interrupted() {
            return REFUSED;
        }
        let _busy = Busy::begin(&IS_BUSY);
        handle_as_owner(request)
    })
}

fn handle_as_owner(request: Request) -> u64 {
    let observes = lifecycle::tool_observes();
    let run = |kind| {
        // Without a tool, HSA must not be shut down before the last drain.
        collect(kind, !observes && kind != DrainKind::Closing)
    };
    let answer = |outcome: Outcome| u64::from(outcome.lost > 0);
    match request {
        Request::Exiting {} if is_idle() => {}
        Request::Collect {} | Request::Exiting {} => {
            let outcome = run(DrainKind::All);
            if !lifecycle::destruction_is_observed() && lifecycle::hsa_is_up() {
                report_unobserved();
            }
            if HAS_CUDA
                && !subscriber::was_started()
                && !wrapped::is_handed_out()
                && lifecycle::cuda_is_up()
            {
                report_unobserved_cuda();
            }
            return answer(outcome);
        }
        Request::Reset {} => return answer(run(DrainKind::Reset)),
        Request::Test { name, size } => {
            if settings().test.is_none() {
                return 0;
            }
            let mut outcome = run(DrainKind::TestEnd);
            // SAFETY: `devprof_test` sends the address and size of a string that stays valid until it has the answer.
            let name = unsafe { slice::from_raw_parts(name as *const u8, size as usize) };
            let profiles = profile_files::directory(settings());
            test_files::begin(name, profiles.as_deref(), settings(), &mut outcome);
            return answer(outcome);
        }
        Request::Freezing { executable } => {
            return lifecycle::generation_of(executable);
        }
        Request::Frozen {
            executable,
            generation,
        } => {
            lifecycle::interposed_function_called();
            if !lifecycle::executable_frozen(executable, generation) {
                return 0;
            }
            log_code();
            if !observes {
                lifecycle::hold_hsa();
            }
            set_up_copies(executable);
            snapshot::start();
        }
        Request::Destroying { executable } => {
            run(DrainKind::Destroying(executable));
            // Even if the drain has failed.
            lifecycle::executable_destroying(executable);
            return lifecycle::generation_of(executable);
        }
        Request::Destroyed {
            executable,
            generation,
            is_success,
        } => lifecycle::executable_destroyed(executable, generation, is_success),
        Request::ShuttingDown {} => {
            let outcome = run(DrainKind::Closing);
            lifecycle::begin_shutdown();
            return answer(outcome);
        }
        Request::ShutDown {} => lifecycle::end_shutdown(),
        Request::Initializing {} => {
            lifecycle::interposed_function_called();
            // Its other functions are reached, too.
            queues::set_sees_all(true);
            lifecycle::begin_transition();
        }
        Request::Initialized {} => {
            lifecycle::end_transition();
            if !lifecycle::tool_observes() {
                lifecycle::do_not_expect_tool();
            }
        }
        Request::ToolLoaded {} => lifecycle::tool_loaded(),
        Request::ToolUnloaded {} => lifecycle::tool_unloaded(),
        Request::Closing {} => {
            let outcome = run(DrainKind::Closing);
            if !lifecycle::is_ending() && lifecycle::has_unobserved_counters() {
                diagnostics::lost(format_args!(
                    "a library is closed, and devprof cannot observe what is unloaded with it: if it is opened again, its later counts may be lost; {HOW_TO_OBSERVE}"
                ));
            }
            return answer(outcome);
        }
        Request::CudaInitializing {} if HAS_CUDA => observe_cuda(use_cupti(false)),
        Request::CudaUsed { is_other } if HAS_CUDA && !subscriber::was_started() => {
            observe_cuda(use_cupti(is_other));
        }
        // Refused above if this instance has no CUDA.
        Request::CudaInitializing {} | Request::CudaUsed { .. } => {}
        Request::QueueCreated {
            queue,
            callback,
            is_single_producer,
        } => queues::created(queue as usize, is_single_producer, callback as usize),
        Request::QueueDestroying { queue } => queues::destroying(queue as usize),
        // Handled above.
        Request::IsObserved {}
        | Request::MayBeUp {}
        | Request::BeforeExec {}
        | Request::CudaStarting {}
        | Request::IsOwnCopy {}
        | Request::RegisterExit {}
        | Request::CodeLoaded {}
        | Request::TimeLeft {}
        | Request::SetRecording { .. }
        | Request::FlushTrace {} => return REFUSED,
    }
    0
}

/// At exit: whether nothing can have counted since the last call.
fn is_idle() -> bool {
    HAS_CUDA && hsa_runtime::find().is_none() && !subscriber::may_have_launched()
}

/// Begins to use CUPTI if it is needed. `is_other`: another tool may use it.
///
/// CUPTI serves one tool, and makes each launch of a kernel slower. So it is left to the program if the wrapped functions
/// suffice, unless the user has chosen a CUPTI.
fn use_cupti(is_other: bool) -> Result<(), Unobserved> {
    let is_chosen = settings().is_traced() || settings().cupti.is_some();
    if is_other {
        subscriber::leave(Unobserved::OtherTool)
    } else if HAS_TRACE && has_wrapped_functions() && !is_chosen {
        subscriber::leave(Unobserved::NotNeeded)
    } else {
        subscriber::start()
    }
}

/// Whether the program calls the driver through the wrapped functions.
fn has_wrapped_functions() -> bool {
    wrapped::is_handed_out() || is_preloaded()
}

/// The CUDA driver is being initialized. `result`: whether CUPTI is used.
fn observe_cuda(result: Result<(), Unobserved>) {
    if let Err(error) = &result {
        if !HAS_TRACE || !has_wrapped_functions() {
            diagnostics::lost(format_args!(
                "cannot observe CUDA modules, so their counters are lost: {error}; or preload libdevprof.so (devprof run), which needs no CUPTI"
            ));
        } else {
            diagnostics::note(
                settings().verbose,
                format_args!("observing CUDA modules without CUPTI: {error}"),
            );
            without_cupti::start(error.to_string());
        }
    }
    cuda_trace::start(result.err());
}

/// Whether the dynamic linker finds this library's functions before the driver's.
fn is_preloaded() -> bool {
    loader::path_of(is_preloaded as *const c_void).is_some_and(|path| loader::is_preloaded(&path))
}

/// The driver is initialized, and neither its injection nor a wrapped function was called.
fn report_unobserved_cuda() {
    diagnostics::lost(
        "CUDA modules were not observed, so their counters are lost: the program does not call the driver through the dynamic linker or dlsym, or the driver was initialized before devprof was loaded; use `devprof run`, or set CUDA_INJECTION64_PATH to the path of libdevprof.so",
    );
}

fn report_unobserved() {
    let has_no_snapshots = settings().snapshot.is_some() && !snapshot::is_started();
    let snapshots = if has_no_snapshots {
        ", and DEVPROF_SNAPSHOT_MS has no effect"
    } else {
        ""
    };
    diagnostics::lost(format_args!(
        "cannot observe when code objects are unloaded in this process: what they count between the last collection and their unloading is lost{snapshots}; {HOW_TO_OBSERVE}"
    ));
}
