//! Functions that only the simulator has, for tests.

use super::lifecycle;
use crate::faults::injection;
use crate::queues::{block, gaps};
use crate::settings::target::Target;
use crate::state::with;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

/// Replaces the fault plan and resets the counts of calls; null: removes the plan. Returns 0, or -1 if the text is not a
/// valid plan, which is reported on stderr.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_sim_plan(text: *const c_char) -> c_int {
    if text.is_null() {
        injection::clear();
        return 0;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    match injection::set(&text) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("hsa-sim: {error}");
            -1
        }
    }
}

/// Sets a function that the first `hsa_init` calls while the runtime is being initialised; null: none.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_sim_during_init(function: Option<extern "C" fn()>) {
    lifecycle::call_during_init(function);
}

/// The names of the simulated targets, separated by commas.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_sim_targets() -> *const c_char {
    static NAMES: OnceLock<CString> = OnceLock::new();
    let join = || {
        let names: Vec<_> = Target::ALL.iter().map(|target| target.name).collect();
        CString::new(names.join(",")).expect("names have no NUL")
    };
    NAMES.get_or_init(join).as_ptr()
}

/// The work of the GPUs between kernels since the process began ([`gaps`]): the number of gaps, then packets, waits,
/// acquire fences, release fences and signals in them.
///
/// # Safety
/// `steps` has 6 elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_sim_gaps(steps: *mut u64) {
    let (gaps, all) = gaps::all();
    let values = [
        gaps,
        all.packets,
        all.waits,
        all.acquires,
        all.releases,
        all.signals,
    ];
    // SAFETY: the caller's promise.
    unsafe { steps.cast::<[u64; 6]>().write_unaligned(values) }
}

/// The number of calls of a function since the plan was set. Calls are also counted with an empty plan.
///
/// # Safety
/// `function` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_sim_calls(function: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let function = unsafe { CStr::from_ptr(function) }.to_string_lossy();
    injection::calls(&function)
}

/// The number of objects that the program has not destroyed: 0 signals, 1 allocations from pools, 2 executables, 3 queues,
/// 4 code object readers. For tests that check for leaks.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_sim_live(what: u32) -> u64 {
    with(|state| {
        Ok(match what {
            0 => state.signals.live(),
            1 => state.memory.live(),
            2 => state.executables.live(),
            3 => block::live(),
            4 => state.executables.live_readers(),
            _ => u64::MAX,
        })
    })
    .unwrap_or(0)
}
