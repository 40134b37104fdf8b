//! The fault plan's action `load`.

use super::executable::{
    hsa_executable_create_alt, hsa_executable_freeze, hsa_executable_load_agent_code_object,
};
use super::reader::{add_reader, hsa_code_object_reader_destroy};
use crate::device::agents;
use crate::executables::storage::Storage;
use hsa_abi::*;

/// Loads a code object on the first GPU agent. Reports errors on stderr.
pub fn load_file(path: &str) {
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
