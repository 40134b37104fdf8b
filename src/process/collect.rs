//! Runs a drain: waits for running kernels, locks the state, runs the pipeline.

use super::lifecycle::{self, Entered, Purpose};
use crate::drain::Drain;
use crate::drain::scope::Scope;
use crate::gpu::hsa::api;
use crate::gpu::hsa::hsa_runtime::{self, Hsa};
use crate::gpu::runtime::{Error, ExecutableId, Runtime, Wait, Waited};
use crate::support::diagnostics::{self, Outcome};
use crate::support::settings::settings;
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
    let result = match hsa_runtime::find() {
        None => {
            note_nothing(kind, why_not_found());
            Ok(())
        }
        Some(Err(error)) => Err(error),
        Some(Ok(hsa)) => collect_from(hsa, kind, hold, &mut outcome),
    };
    if let Err(error) = result {
        outcome.lose(format_args!("cannot collect device counters: {error}"));
    }
    outcome
}

fn collect_from(
    hsa: &'static Hsa,
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
        DrainKind::Destroying(_) | DrainKind::Snapshot => None,
    };
    let mut wait = None;
    if let Some(all) = all {
        // Without counters there is no need to wait. The tables can be read while kernels run: only the counters change.
        let Some(mut entered) = lifecycle::enter(hsa, purpose)? else {
            note_nothing(kind, why_not_entered());
            return Ok(());
        };
        let has_counters = drain(hsa, &mut entered, outcome).has_counters()?;
        drop(entered);
        if has_counters {
            wait = Some(wait_for_kernels(hsa, kind, all, outcome));
        }
    }
    if let Some(mut entered) = lifecycle::enter(hsa, purpose)? {
        if hold {
            entered.hold(hsa);
        }
        let mut drain = drain(hsa, &mut entered, outcome);
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
        wait.handlers();
    }
    Ok(())
}

/// With LLVM_PROFILE_VERBOSE, says why there is nothing to collect.
fn note_nothing(kind: DrainKind, why: impl Display) {
    let is_noted = matches!(kind, DrainKind::All { .. } | DrainKind::Reset);
    diagnostics::note(
        settings().verbose && is_noted,
        format_args!("nothing to collect: {why}"),
    );
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
            api::LIBRARIES.join(" or ")
        ),
        None => format!("HSA is not loaded ({})", api::LIBRARIES.join(" or ")),
    }
}

fn why_not_entered() -> &'static str {
    match lifecycle::was_up() {
        true => "HSA is shut down",
        false => "HSA is not initialized",
    }
}

fn drain<'a>(hsa: &'a Hsa, entered: &'a mut Entered, outcome: &'a mut Outcome) -> Drain<'a> {
    let (executables, drain_state) = entered.parts();
    Drain {
        runtime: hsa,
        executables,
        settings: settings(),
        drain_state,
        outcome,
    }
}

fn wait_for_kernels(hsa: &Hsa, kind: DrainKind, all: bool, outcome: &mut Outcome) -> Box<dyn Wait> {
    let limit = settings().sync_limit;
    let mut wait = hsa.wait(all, limit);
    let result = match kind {
        DrainKind::Reset => "not reset",
        _ => "lost",
    };
    match wait.kernels() {
        Waited::Done => {}
        Waited::TooLate => outcome.lose(format_args!(
            "kernels still run after {} ms (DEVPROF_SYNC_MS): what they count from now on is {result}",
            limit.as_millis(),
        )),
        Waited::NoThread => outcome.lose(format_args!(
            "cannot start the thread that waits for HIP's streams: what running kernels count from now on is {result}"
        )),
    }
    wait
}
