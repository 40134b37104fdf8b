//! Runs a drain: waits for running kernels, locks the state, runs the pipeline.

use super::lifecycle::{self, Entered, GpuRuntime, Purpose};
use super::trace_guard::HAS_CUDA;
use crate::drain::Drain;
use crate::drain::scope::Scope;
use crate::gpu::cuda::cuda_runtime;
use crate::gpu::hsa::api;
use crate::gpu::hsa::hip;
use crate::gpu::hsa::hsa_runtime;
use crate::gpu::runtime::{Error, ExecutableId, Runtime, Wait, Waited};
use crate::support::diagnostics::{self, Outcome};
use crate::support::settings::settings;
use crate::support::wait_limit::{self, Waiting};
use crate::sys::loader;
use std::fmt::Display;
use std::path::PathBuf;

/// What to drain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DrainKind {
    /// All executables, after the kernels that still run. `wait`: also after HIP's kernels.
    All { wait: bool },
    /// An executable that is about to be destroyed.
    Destroying(ExecutableId),
    /// The executables whose destruction is observed. Others may be destroyed at any moment.
    Snapshot,
    /// Reset all counters, after the kernels that still run.
    Reset,
}

/// Runs a drain of this kind. `hold`: keep HSA initialized from now on.
pub fn collect(kind: DrainKind, hold: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let only = match kind {
        DrainKind::Destroying(executable) => Some(cuda_runtime::is_module(executable)),
        DrainKind::All { .. } | DrainKind::Snapshot | DrainKind::Reset => None,
    };
    let cuda = if HAS_CUDA && only != Some(false) {
        cuda_runtime::find()
    } else {
        None
    };
    let hsa = if only != Some(true) {
        hsa_runtime::find()
    } else {
        None
    };
    if cuda.is_none() && hsa.is_none() {
        note_nothing(kind, why_not_found());
    }
    let cuda = cuda.map(|found| found.map(GpuRuntime::Cuda));
    let hsa = hsa.map(|found| found.map(GpuRuntime::Hsa));
    for runtime in cuda.into_iter().chain(hsa) {
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
    let purpose = match kind {
        DrainKind::All { .. } | DrainKind::Reset => Purpose::Any,
        DrainKind::Destroying(_) | DrainKind::Snapshot => Purpose::UntilTheEnd,
    };
    let all = match kind {
        DrainKind::All { wait } => Some(wait),
        DrainKind::Reset => Some(true),
        // CUDA reports that after a wait, which several modules can share.
        DrainKind::Destroying(_) | DrainKind::Snapshot => None,
    };
    let mut wait = None;
    if let Some(all) = all {
        note_hip(runtime);
        // Without counters there is no need to wait. The tables can be read while kernels run: only the counters change.
        let Some(mut entered) = lifecycle::enter(runtime, purpose)? else {
            note_nothing(kind, why_not_entered(runtime));
            return Ok(());
        };
        let has_counters = drain(&runtime, &mut entered, outcome).has_counters()?;
        drop(entered);
        // At exit, an earlier wait may have used the time up, and reported that.
        if has_counters && !wait_limit::is_used_up() {
            wait = Some(wait_for_kernels(runtime.requests(), kind, all, outcome));
        }
    }
    if let Some(mut entered) = lifecycle::enter(runtime, purpose)? {
        if hold {
            entered.hold();
        }
        let mut drain = drain(&runtime, &mut entered, outcome);
        if wait.is_none() {
            drain.remove_uncertain();
        }
        match kind {
            DrainKind::All { .. } => drain.collect(Scope::All)?,
            DrainKind::Destroying(executable) => drain.collect(Scope::Executable(executable))?,
            DrainKind::Snapshot => drain.collect(Scope::Observed)?,
            DrainKind::Reset => drain.reset()?,
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
    let found = match HAS_CUDA && cuda_runtime::is_module(executable) {
        true => cuda_runtime::find().map(|found| found.map(GpuRuntime::Cuda)),
        false => hsa_runtime::find().map(|found| found.map(GpuRuntime::Hsa)),
    };
    let Some(Ok(runtime)) = found else {
        return;
    };
    let result = lifecycle::enter(runtime, Purpose::UntilTheEnd).and_then(|entered| {
        let Some(mut entered) = entered else {
            return Ok(());
        };
        let mut outcome = Outcome::default();
        drain(&runtime, &mut entered, &mut outcome).set_up_copies(executable)
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
    let is_noted = matches!(kind, DrainKind::All { .. } | DrainKind::Reset);
    diagnostics::note(
        settings().verbose && is_noted,
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
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().contains("hsa-runtime")
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
    all: bool,
    outcome: &mut Outcome,
) -> Box<dyn Wait> {
    let waiting = Waiting::begin();
    let mut wait = runtime.wait(all, waiting.limit);
    let waited = wait.kernels();
    let result = match kind {
        DrainKind::Reset => "not reset",
        _ => "lost",
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
