//! The fault plan's actions `load` and `unload`.

use super::executable::{
    hsa_executable_create_alt, hsa_executable_freeze, hsa_executable_load_agent_code_object,
};
use super::reader::{add_reader, hsa_code_object_reader_destroy};
use crate::device::agents;
use crate::executables::storage::Storage;
use crate::faults::plan::ObjectFault;
use crate::state::with;
use hsa_abi::*;

/// Executes an action.
pub fn apply(fault: ObjectFault) {
    match fault {
        ObjectFault::Load(path) => load_file(&path),
        ObjectFault::Unload(n) => unload_nth(n),
    }
}

/// Loads a code object on the first GPU agent. Reports errors on stderr.
fn load_file(path: &str) {
    let loaded = (|| {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        let mut executable = ExecutableHandle::default();
        let mut reader = ReaderHandle::default();
        let agent = agents::handle(1);
        let storage = Storage::File {
            path: path.into(),
            offset: 0,
            bytes,
        };
        let (options, loaded) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the functions write to local variables.
        let result = unsafe {
            let load = || {
                add_reader(storage, &mut reader)?;
                hsa_executable_create_alt(0, 0, options, &mut executable)?;
                hsa_executable_load_agent_code_object(executable, agent, reader, options, loaded)?;
                hsa_executable_freeze(executable, options)
            };
            let result = load();
            // An error: there is no reader.
            let _ = hsa_code_object_reader_destroy(reader);
            result
        };
        result.map_err(|status| format!("status {:#x}", status.0))
    })();
    if let Err(error) = loaded {
        eprintln!("hsa-sim: the fault plan cannot load {path}: {error}");
    }
}

/// Destroys the n-th executable, counted from 1 in the order of creation. Reports an error on stderr.
fn unload_nth(n: usize) {
    let unloaded = with(|state| {
        let handle = n
            .checked_sub(1)
            .and_then(|n| state.executables.handles().get(n).copied())
            .ok_or(Status::INVALID_EXECUTABLE)?;
        state.destroy_executable(handle)
    });
    if unloaded.is_err() {
        eprintln!("hsa-sim: the fault plan cannot unload executable {n}: it does not exist");
    }
}
