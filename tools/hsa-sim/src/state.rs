//! The state of the runtime between the first `hsa_init` and the last `hsa_shut_down`.

use crate::device::agents::Agents;
use crate::executables::load;
use crate::executables::table::Executables;
use crate::memory::allocations::Memory;
use crate::settings::Settings;
use crate::signals::pool::Signals;
use crate::sync::locked;
use hsa_abi::*;
use std::sync::Mutex;

/// The objects of the initialised runtime.
pub struct State {
    /// Calls of `hsa_init` without a matching call of `hsa_shut_down`.
    pub references: u32,
    pub settings: Settings,
    pub agents: Agents,
    pub memory: Memory,
    pub signals: Signals,
    pub executables: Executables,
}

/// `None`: the runtime is not initialised.
pub static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Calls `work` with the state if the runtime is initialised. `work` must not call functions of the program.
pub fn with<T>(work: impl FnOnce(&mut State) -> Result<T, Status>) -> Result<T, Status> {
    match locked(&STATE).as_mut() {
        Some(state) => work(state),
        None => Err(Status::NOT_INITIALIZED),
    }
}

impl State {
    /// A new signal.
    pub fn create_signal(&mut self, kind: i64, value: SignalValue) -> Result<SignalHandle, Status> {
        self.signals
            .create(&mut self.memory, &self.agents, kind, value)
    }

    /// Loads the code object of a reader on an agent.
    pub fn load(
        &mut self,
        executable: ExecutableHandle,
        agent: AgentHandle,
        reader: ReaderHandle,
    ) -> Result<LoadedCodeObjectHandle, Status> {
        let (memory, agents) = (&mut self.memory, &self.agents);
        load::load(
            &mut self.executables,
            memory,
            agents,
            executable,
            agent,
            reader,
        )
    }

    /// Destroys an executable and frees its code objects.
    pub fn destroy_executable(&mut self, executable: ExecutableHandle) -> Result<(), Status> {
        let (memory, agents) = (&mut self.memory, &self.agents);
        load::destroy(&mut self.executables, memory, agents, executable)
    }
}
