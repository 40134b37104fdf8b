//! The state of the runtime between the first `hsa_init` and the last `hsa_shut_down`.

mod load;

use crate::device::agents::Agents;
use crate::executables::table::Executables;
use crate::memory::allocations::Memory;
use crate::settings::Settings;
use crate::signals::pool::Signals;
use crate::sync::{die, locked};
use hsa_abi::*;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex};

/// The objects of the initialised runtime.
pub struct State {
    /// Calls of `hsa_init` without a matching call of `hsa_shut_down`.
    pub references: u32,
    pub settings: Settings,
    pub agents: Arc<Agents>,
    pub memory: Memory,
    pub signals: Signals,
    pub executables: Executables,
}

/// `None`: the runtime is not initialised.
pub static STATE: Mutex<Option<State>> = Mutex::new(None);

/// A thread is in the first call of `hsa_init`.
static IS_LOADING: AtomicBool = AtomicBool::new(false);

/// Whether a thread is in the first call of `hsa_init`.
pub fn is_loading() -> bool {
    IS_LOADING.load(Acquire)
}

/// The first call of `hsa_init` begins or ends.
pub fn set_loading(is_loading: bool) {
    IS_LOADING.store(is_loading, Release);
}

/// Calls `work` with the state if the runtime is initialised. `work` must not call functions of the program.
pub fn with<T>(work: impl FnOnce(&mut State) -> Result<T, Status>) -> Result<T, Status> {
    match locked(&STATE).as_mut() {
        Some(state) => work(state),
        // ROCr counts its users before it initializes itself (`Runtime::Acquire`), so its functions do not return an error.
        None if is_loading() => {
            die("HSA is used while another thread initializes it");
        }
        None => Err(Status::NOT_INITIALIZED),
    }
}

impl State {
    /// A new signal.
    pub fn create_signal(&mut self, kind: i64, value: SignalValue) -> Result<SignalHandle, Status> {
        self.signals.create(&mut self.memory, kind, value)
    }
}
