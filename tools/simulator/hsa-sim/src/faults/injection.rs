//! Injects the faults of the plan into calls.

use super::functions::{DISCOVERY, DISPATCH, ENGINE, Returned};
use super::plan::{Action, CopyFault, DispatchFault, Error, Plan};
use crate::sync::{die, locked};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, MutexGuard};

static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

/// Whether there is a plan. Without one, a call takes no lock.
static HAS_PLAN: AtomicBool = AtomicBool::new(false);

fn plan() -> MutexGuard<'static, Option<Plan>> {
    locked(&PLAN)
}

/// Sets the plan and resets the counts of calls.
pub fn set(text: &str) -> Result<(), Error> {
    let parsed = Plan::parse(text)?;
    *plan() = Some(parsed);
    HAS_PLAN.store(true, Release);
    Ok(())
}

/// Sets the plan from the environment at the first initialisation of the runtime.
pub fn from_env() -> Result<(), String> {
    static IS_READ: AtomicBool = AtomicBool::new(false);
    if IS_READ.swap(true, Relaxed) {
        return Ok(());
    }
    let result = match (
        std::env::var("HSA_SIM_PLAN").ok(),
        std::env::var_os("HSA_SIM_PLAN_FILE"),
    ) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => Err("HSA_SIM_PLAN and HSA_SIM_PLAN_FILE are both set".to_string()),
        (Some(text), None) => set(&text).map_err(|error| error.to_string()),
        (None, Some(path)) => std::fs::read_to_string(&path)
            .map_err(|error| format!("HSA_SIM_PLAN_FILE={}: {error}", path.display()))
            .and_then(|text| set(&text).map_err(|error| error.to_string())),
    };
    // The next hsa_init has to report the error again.
    if result.is_err() {
        IS_READ.store(false, Relaxed);
    }
    result
}

/// The faults of the call that this thread executes.
#[derive(Clone, Copy, Default)]
struct Current {
    lie: Option<u64>,
    copy: Option<CopyFault>,
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current { lie: None, copy: None }) };
}

/// Calls `work` with the faults that the plan has for this call of `function`. `load` loads the code object in a file.
#[inline]
pub fn call<R: Returned>(
    function: &'static str,
    load: &dyn Fn(&str),
    work: impl FnOnce() -> R,
) -> R {
    if !HAS_PLAN.load(Acquire) {
        return work();
    }
    faulty(function, load, work)
}

#[cold]
fn faulty<R: Returned>(function: &'static str, load: &dyn Fn(&str), work: impl FnOnce() -> R) -> R {
    let actions = plan()
        .as_mut()
        .map(|plan| plan.count(function))
        .unwrap_or_default();
    let mut current = Current::default();
    for action in actions {
        match action {
            Action::Fail(status) => {
                if let Some(result) = R::failed(status) {
                    return result;
                }
            }
            Action::Block(time) => std::thread::sleep(time),
            Action::Lie(value) => current.lie = Some(value),
            Action::Copy(fault) => current.copy = Some(fault),
            Action::Dispatch(_) => {
                die(&format!("{function} is not a dispatch"));
            }
            Action::Load(path) => load(&path),
        }
    }
    let before = CURRENT.replace(current);
    let result = work();
    CURRENT.set(before);
    current.lie.and_then(R::replaced).unwrap_or(result)
}

/// The fault of the copy that this thread's current call requests.
pub fn copy_fault() -> Option<CopyFault> {
    CURRENT.get().copy
}

/// Counts a kernel packet, and returns its faults.
pub fn dispatch_faults() -> Vec<DispatchFault> {
    let faults = occurred(DISPATCH)
        .into_iter()
        .filter_map(|action| match action {
            Action::Dispatch(fault) => Some(fault),
            _ => None,
        });
    faults.collect()
}

/// Counts a copy of a copy engine, and returns its fault.
pub fn engine_fault() -> Option<CopyFault> {
    let mut fault = None;
    for action in occurred(ENGINE) {
        match action {
            Action::Block(time) => std::thread::sleep(time),
            Action::Copy(found) => fault = Some(found),
            _ => {}
        }
    }
    fault
}

/// Counts an initialization of the runtime, which takes longer if the plan says so.
pub fn discovery() {
    for action in occurred(DISCOVERY) {
        if let Action::Block(time) = action {
            std::thread::sleep(time);
        }
    }
}

/// Counts something that is not a call, and returns its actions.
fn occurred(what: &'static str) -> Vec<Action> {
    if !HAS_PLAN.load(Acquire) {
        return Vec::new();
    }
    plan()
        .as_mut()
        .map(|plan| plan.count(what))
        .unwrap_or_default()
}

/// The value that the current call has to return instead of a correct one. A second call returns `None`.
pub fn take_lie() -> Option<u64> {
    let mut current = CURRENT.get();
    let lie = current.lie.take();
    CURRENT.set(current);
    lie
}

/// Removes the plan. Calls are no longer counted.
pub fn clear() {
    HAS_PLAN.store(false, Release);
    *plan() = None;
}

/// The number of calls of a function since the plan was set.
pub fn calls(function: &str) -> u64 {
    let calls = plan()
        .as_ref()
        .map(|plan| plan.calls.get(function).copied());
    calls.flatten().unwrap_or(0)
}
