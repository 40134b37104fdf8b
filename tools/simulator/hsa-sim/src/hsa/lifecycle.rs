//! Initialisation and shutdown of the runtime.

use crate::copies;
use crate::device::agents::Agents;
use crate::executables::table::Executables;
use crate::faults::injection;
use crate::memory::allocations::Memory;
use crate::queues::{cooperative, counted, lifetime, notifier};
use crate::settings::Settings;
use crate::settings::tools::ToolSettings;
use crate::signals::pool::Signals;
use crate::signals::{completion, copy_times, exit, handlers};
use crate::state::{STATE, State, set_loading};
use crate::sync::{die, locked};
use hsa_abi::*;
use std::cell::Cell;
use std::sync::{Arc, Mutex};

/// Serializes initialisation and shutdown. As in ROCr, it is held while tools are loaded and unloaded.
static LIFECYCLE: Mutex<()> = Mutex::new(());

thread_local! {
    /// This thread holds [`LIFECYCLE`].
    static HOLDS_LIFECYCLE: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work` with [`LIFECYCLE`] locked. In a tool's `OnLoad` or `OnUnload`, ROCr would wait for itself forever.
fn locked_lifecycle(function: &str, work: impl FnOnce() -> Status) -> Status {
    if HOLDS_LIFECYCLE.get() {
        die(&format!(
            "{function} is called in a tool's OnLoad or OnUnload"
        ));
    }
    let _lifecycle = locked(&LIFECYCLE);
    HOLDS_LIFECYCLE.set(true);
    let status = work();
    HOLDS_LIFECYCLE.set(false);
    status
}

/// Called during the first `hsa_init`.
static DURING_INIT: Mutex<Option<extern "C" fn()>> = Mutex::new(None);

/// Sets a function that the first `hsa_init` calls while the runtime is being initialised, for tests.
pub fn call_during_init(function: Option<extern "C" fn()>) {
    *locked(&DURING_INIT) = function;
}

/// `hsa_init` (hsa.h). The first call calls `load_tools` at its end. Tools may call HSA's functions in their `OnLoad`,
/// except `hsa_init` and `hsa_shut_down`.
pub fn init(load_tools: impl FnOnce(&ToolSettings)) -> Status {
    locked_lifecycle("hsa_init", || init_locked(load_tools))
}

fn init_locked(load_tools: impl FnOnce(&ToolSettings)) -> Status {
    if let Some(state) = locked(&STATE).as_mut() {
        if state.references == i32::MAX as u32 {
            return Status::REFCOUNT_OVERFLOW;
        }
        state.references += 1;
        return Status::SUCCESS;
    }
    let settings = match injection::from_env().and_then(|()| Settings::from_env()) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("hsa-sim: {error}");
            return Status::ERROR;
        }
    };
    set_loading(true);
    injection::discovery();
    let tools = settings.tools;
    let during_init = locked(&DURING_INIT).take();
    if let Some(function) = during_init {
        function();
    }
    let agents = Arc::new(Agents::new(&settings));
    *locked(&STATE) = Some(State {
        references: 1,
        memory: Memory::new(&settings, agents.clone()),
        agents,
        signals: Signals::default(),
        executables: Executables::default(),
        settings,
    });
    set_loading(false);
    exit::observe();
    load_tools(&tools);
    Status::SUCCESS
}

/// `hsa_shut_down` (hsa.h). The last call calls `unload_tools` at its beginning. Tools may call HSA's functions until
/// `unload_tools` returns, except `hsa_init` and `hsa_shut_down`.
pub fn shut_down(unload_tools: impl FnOnce()) -> Status {
    locked_lifecycle("hsa_shut_down", || shut_down_locked(unload_tools))
}

fn shut_down_locked(unload_tools: impl FnOnce()) -> Status {
    {
        let mut state = locked(&STATE);
        let Some(state) = state.as_mut() else {
            return Status::NOT_INITIALIZED;
        };
        if state.references > 1 {
            state.references -= 1;
            return Status::SUCCESS;
        }
    }
    unload_tools();
    let state = locked(&STATE).take();
    cooperative::delete_all();
    counted::clear();
    notifier::set(None);
    lifetime::stop_all();
    completion::stop();
    handlers::stop();
    copies::stop();
    copy_times::clear();
    // Frees all allocations.
    drop(state);
    Status::SUCCESS
}
