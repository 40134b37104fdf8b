//! Injects the faults of the plan into calls.

use super::functions::{DISPATCH, Returned};
use super::plan::{Action, CopyFault, DispatchFault, Error, ObjectFault, Plan};
use crate::sync::locked;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, MutexGuard};

static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

/// Whether calls are counted at all: without a plan a call costs no lock.
static COUNTING: AtomicBool = AtomicBool::new(false);

fn plan() -> MutexGuard<'static, Option<Plan>> {
    locked(&PLAN)
}

pub fn set(text: &str) -> Result<(), Error> {
    let parsed = Plan::parse(text)?;
    *plan() = Some(parsed);
    COUNTING.store(true, Release);
    Ok(())
}

/// Takes the plan of the environment, once, when the runtime is first initialised.
pub fn from_env() -> Result<(), String> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Relaxed) {
        return Ok(());
    }
    let taken = match (
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
    // A plan that is wrong stays wrong: the next hsa_init must not go on without it.
    if taken.is_err() {
        TAKEN.store(false, Relaxed);
    }
    taken
}

/// What the call in progress on this thread does wrong.
#[derive(Clone, Copy, Default)]
struct Current {
    lie: Option<u64>,
    copy: Option<CopyFault>,
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current { lie: None, copy: None }) };
}

/// Does a call as the plan wants it.
#[inline]
pub fn call<R: Returned>(
    function: &'static str,
    objects: &dyn Fn(ObjectFault),
    work: impl FnOnce() -> R,
) -> R {
    if !COUNTING.load(Acquire) {
        return work();
    }
    faulty(function, objects, work)
}

#[cold]
fn faulty<R: Returned>(
    function: &'static str,
    objects: &dyn Fn(ObjectFault),
    work: impl FnOnce() -> R,
) -> R {
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
                eprintln!("hsa-sim: {function} is no dispatch");
                std::process::abort();
            }
            Action::Object(fault) => objects(fault),
        }
    }
    let before = CURRENT.replace(current);
    let result = work();
    CURRENT.set(before);
    current.lie.and_then(R::lie).unwrap_or(result)
}

/// What goes wrong with the copy that this thread is asked for.
pub fn copy_fault() -> Option<CopyFault> {
    CURRENT.get().copy
}

/// What goes wrong with the next kernel packet.
pub fn dispatch_faults() -> Vec<DispatchFault> {
    if !COUNTING.load(Acquire) {
        return Vec::new();
    }
    let actions = plan()
        .as_mut()
        .map(|plan| plan.count(DISPATCH))
        .unwrap_or_default();
    let faults = actions.into_iter().filter_map(|action| match action {
        Action::Dispatch(fault) => Some(fault),
        _ => None,
    });
    faults.collect()
}

/// The lie that is to be told once by the call in progress.
pub fn take_lie() -> Option<u64> {
    let mut current = CURRENT.get();
    let lie = current.lie.take();
    CURRENT.set(current);
    lie
}

/// Removes the plan. Calls are not counted any more.
pub fn clear() {
    COUNTING.store(false, Release);
    *plan() = None;
}

/// How often a function was called since the plan was set.
pub fn calls(function: &str) -> u64 {
    let calls = plan()
        .as_ref()
        .map(|plan| plan.calls.get(function).copied());
    calls.flatten().unwrap_or(0)
}
