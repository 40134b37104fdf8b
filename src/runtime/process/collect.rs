//! Runs a drain: waits for running kernels, locks the state, runs the pipeline.

use super::lifecycle::{self, Entered, GpuRuntime};
use crate::amd::api;
use crate::amd::hip;
use crate::drain::Drain;
use crate::drain::kind::DrainKind;
use crate::gpu::runtime::{Error, ExecutableId, Runtime, Wait, Waited};
use crate::support::diagnostics::{self, Outcome};
use crate::support::features::HAS_CUDA;
use crate::support::settings::settings;
use crate::support::wait_limit::{self, Waiting};
use crate::sys::loader;
use std::fmt::Display;
use std::path::PathBuf;

/// Runs a drain of this kind. `hold`: keep HSA initialized from now on.
pub fn collect(kind: DrainKind, hold: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let (first, second) = match kind.executable() {
        Some(executable) => (GpuRuntime::find(executable), None),
        None => (GpuRuntime::find_cuda(), GpuRuntime::find_hsa()),
    };
    if first.is_none() && second.is_none() {
        note_nothing(kind, why_not_found());
    }
    for runtime in first.into_iter().chain(second) {
        let result = runtime.and_then(|runtime| {
            let result = collect_from(runtime, kind, hold, &mut outcome);
            // After the drain, which may have read more images.
            if let GpuRuntime::Cuda(cuda) = runtime {
                for damaged in cuda.take_damaged() {
                    outcome.lose(damaged);
                }
            }
            result
        });
        if let Err(error) = result {
            outcome.lose(format_args!("cannot collect device counters: {error}"));
        }
    }
    outcome
}

fn collect_from(
    runtime: GpuRuntime,
    kind: DrainKind,
    hold: bool,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let mut wait = None;
    // CUDA reports the destruction of modules after a wait, which several modules can share.
    if kind.is_complete() {
        note_hip(runtime);
        // Without counters there is no need to wait. The tables can be read while kernels run: only the counters change.
        let Some(mut entered) = lifecycle::enter(runtime, kind)? else {
            note_nothing(kind, why_not_entered(runtime));
            return Ok(());
        };
        let has_counters = drain(&runtime, &mut entered, outcome).has_counters()?;
        drop(entered);
        // At exit, an earlier wait may have used the time up, and reported that.
        if has_counters && !wait_limit::is_used_up() {
            wait = Some(wait_for_kernels(runtime.requests(), kind, outcome));
        }
    }
    if let Some(mut entered) = lifecycle::enter(runtime, kind)? {
        if hold {
            entered.hold();
        }
        let mut drain = drain(&runtime, &mut entered, outcome);
        if wait.is_none() {
            drain.discard_unobserved();
        }
        match kind {
            DrainKind::Reset => drain.reset()?,
            DrainKind::TestEnd => drain.end_test()?,
            _ => drain.collect(kind)?,
        }
    }
    if let Some(wait) = wait {
        let _waiting = Waiting::begin();
        wait.handlers();
    }
    Ok(())
}

/// Sets up copies of the counters of an executable that was just frozen: no kernel of it has run. Without them, kernels
/// count slower.
pub fn set_up_copies(executable: ExecutableId) {
    if settings().copies_budget == 0 {
        return;
    }
    let kind = DrainKind::Frozen(executable);
    let Some(Ok(runtime)) = GpuRuntime::find(executable) else {
        return;
    };
    let result = lifecycle::enter(runtime, kind).and_then(|entered| match entered {
        Some(mut entered) => {
            drain(&runtime, &mut entered, &mut Outcome::default()).set_up_copies(executable)
        }
        None => Ok(()),
    });
    if let Err(error) = result {
        diagnostics::note(
            settings().verbose,
            format_args!("cannot set up copies of counters: {error}"),
        );
    }
}

/// With LLVM_PROFILE_VERBOSE, says why there is nothing to collect.
fn note_nothing(kind: DrainKind, why: impl Display) {
    diagnostics::note(
        settings().verbose && kind.is_complete(),
        format_args!("nothing to collect: {why}"),
    );
}

/// With LLVM_PROFILE_VERBOSE, says how HIP was found, whose streams the drain waits for.
fn note_hip(runtime: GpuRuntime) {
    if settings().verbose && matches!(runtime, GpuRuntime::Hsa(_)) {
        diagnostics::note(true, hip::describe());
    }
}

fn why_not_found() -> String {
    let is_similar = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let part = b"hsa-runtime";
        name.windows(part.len()).any(|window| window == part)
    };
    match loader::libraries().into_iter().find(is_similar) {
        Some(library) => format!(
            "{} is loaded, but not as {}, and its functions are not visible to other libraries (dlopen without RTLD_GLOBAL)",
            library.display(),
            api::LIBRARIES.names.join(" or ")
        ),
        None => format!("HSA is not loaded ({})", api::LIBRARIES.names.join(" or ")),
    }
}

fn why_not_entered(runtime: GpuRuntime) -> &'static str {
    match runtime {
        GpuRuntime::Cuda(_) => "the CUDA driver is not initialized",
        GpuRuntime::Hsa(_) if lifecycle::was_up() => "HSA is shut down",
        GpuRuntime::Hsa(_) => "HSA is not initialized",
    }
}

fn drain<'a>(
    runtime: &'a GpuRuntime,
    entered: &'a mut Entered,
    outcome: &'a mut Outcome,
) -> Drain<'a> {
    let (executables, drain_state) = entered.parts();
    Drain {
        runtime: runtime.requests(),
        executables,
        settings: settings(),
        drain_state,
        outcome,
    }
}

fn wait_for_kernels(
    runtime: &dyn Runtime,
    kind: DrainKind,
    outcome: &mut Outcome,
) -> Box<dyn Wait> {
    let waiting = Waiting::begin();
    let mut wait = runtime.wait(kind != DrainKind::Closing, waiting.limit);
    let waited = wait.kernels();
    let result = if kind == DrainKind::Reset {
        "not reset"
    } else {
        "lost"
    };
    match waited {
        Waited::Done => {}
        // A later drain has the complete counts.
        Waited::Capturing if !HAS_CUDA || !lifecycle::is_ending() => {}
        // Perhaps no kernel runs.
        Waited::Unobserved => diagnostics::lost(format_args!(
            "{waited}: what they count from now on is {result}; preload libdevprof.so (devprof run), or link with the flags of `devprof flags`",
        )),
        Waited::NotSubmitted => outcome.lose(format_args!(
            "{waited}: what kernels count that it has not submitted yet is {result}"
        )),
        Waited::TooLate | Waited::NoThread | Waited::Capturing => outcome.lose(format_args!(
            "{waited}: what they count from now on is {result}"
        )),
    }
    wait
}
