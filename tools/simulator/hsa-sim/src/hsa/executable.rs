//! Executables.

use crate::copies;
use crate::executables::table::{ExecutableState, LOADER, new_handle};
use crate::results::{Outcome, put};
use crate::state::with;
use crate::sync::locked;
use hsa_abi::*;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};

/// A C string's text.
///
/// # Safety
/// `text` is null or a C string.
pub unsafe fn text(text: *const c_char) -> Result<String, Status> {
    if text.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Into::into)
        .map_err(|_| Status::INVALID_SYMBOL_NAME)
}

pub unsafe fn hsa_executable_create(
    profile: u32,
    executable_state: u32,
    options: *const c_char,
    executable: *mut ExecutableHandle,
) -> Outcome {
    if executable_state > HSA_EXECUTABLE_STATE_FROZEN {
        return Err(Status::INVALID_ARGUMENT);
    }
    let rounding = HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT;
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_create_alt(profile, rounding, options, executable) }?;
    if executable_state == HSA_EXECUTABLE_STATE_FROZEN {
        // SAFETY: just written.
        unsafe { hsa_executable_freeze(*executable, options) }?;
    }
    Ok(())
}

pub unsafe fn hsa_executable_create_alt(
    profile: u32,
    rounding: u32,
    _options: *const c_char,
    executable: *mut ExecutableHandle,
) -> Outcome {
    if profile > HSA_PROFILE_FULL || rounding > 2 || executable.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let _loader = locked(&LOADER);
    let handle = with(|state| {
        let handle = ExecutableHandle(new_handle());
        let new = ExecutableState {
            frozen: false,
            profile,
            rounding,
            defined: HashMap::new(),
            loaded: Vec::new(),
            symbols: Vec::new(),
        };
        state.executables.all.insert(handle, new);
        Ok(handle)
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(executable, handle) }
}

pub unsafe fn hsa_executable_destroy(executable: ExecutableHandle) -> Outcome {
    let _loader = locked(&LOADER);
    with(|state| {
        for loaded in &state.executables.get(executable)?.loaded {
            let bytes = state.memory.host_address(loaded.range.start as usize);
            copies::check_unused(bytes..bytes + loaded.shadow.len());
        }
        state.destroy_executable(executable)
    })
}

pub unsafe fn hsa_executable_load_agent_code_object(
    executable: ExecutableHandle,
    agent: AgentHandle,
    reader: ReaderHandle,
    _options: *const c_char,
    loaded: *mut LoadedCodeObjectHandle,
) -> Outcome {
    let handle = with(|state| state.load(executable, agent, reader))?;
    if !loaded.is_null() {
        // SAFETY: the caller's promise.
        unsafe { loaded.write(handle) };
    }
    Ok(())
}

pub unsafe fn hsa_executable_freeze(
    executable: ExecutableHandle,
    _options: *const c_char,
) -> Outcome {
    with(|state| {
        state.executables.unfrozen(executable)?.frozen = true;
        Ok(())
    })?;
    // As in ROCr (`AmdHsaCodeLoader::FreezeExecutable`): already frozen, but this waits for an iteration.
    drop(locked(&LOADER));
    Ok(())
}

pub unsafe fn hsa_executable_get_info(
    executable: ExecutableHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let found = with(|state| {
        let executable = state.executables.get(executable)?;
        Ok(match attribute {
            HSA_EXECUTABLE_INFO_PROFILE => executable.profile,
            HSA_EXECUTABLE_INFO_STATE => u32::from(executable.frozen),
            HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE => executable.rounding,
            _ => return Err(Status::INVALID_ARGUMENT),
        })
    })?;
    // SAFETY: the caller's promise: all three are 32-bit enumerations.
    unsafe { put(value.cast(), found) }
}

/// Defines a variable.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn define(
    executable: ExecutableHandle,
    agent: Option<AgentHandle>,
    name: *const c_char,
    address: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) }?;
    with(|state| {
        let agent = agent.map(|agent| state.agents.number(agent)).transpose()?;
        let executables = &mut state.executables;
        executables.get(executable)?;
        let Some(executable) = executables.all.get_mut(&executable) else {
            return Err(Status::INVALID_EXECUTABLE);
        };
        if executable.frozen {
            return Err(Status::FROZEN_EXECUTABLE);
        }
        let loaded = executable.symbols.iter().any(|symbol| {
            let symbol = executables.symbols.get(symbol);
            symbol.is_some_and(|symbol| {
                symbol.defined.name == name && agent.is_none_or(|agent| agent == symbol.agent)
            })
        });
        if loaded || executable.defined.contains_key(&(agent, name.clone())) {
            return Err(Status::VARIABLE_ALREADY_DEFINED);
        }
        executable.defined.insert((agent, name), address as u64);
        Ok(())
    })
}

pub unsafe fn hsa_executable_global_variable_define(
    executable: ExecutableHandle,
    name: *const c_char,
    address: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { define(executable, None, name, address) }
}

pub unsafe fn hsa_executable_agent_global_variable_define(
    executable: ExecutableHandle,
    agent: AgentHandle,
    name: *const c_char,
    address: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { define(executable, Some(agent), name, address) }
}

pub unsafe fn hsa_executable_readonly_variable_define(
    executable: ExecutableHandle,
    agent: AgentHandle,
    name: *const c_char,
    address: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_agent_global_variable_define(executable, agent, name, address) }
}

/// Errors were reported when the code objects were loaded.
pub unsafe fn hsa_executable_validate(executable: ExecutableHandle, result: *mut u32) -> Outcome {
    with(|state| state.executables.get(executable).map(|_| ()))?;
    // SAFETY: the caller's promise.
    unsafe { put(result, 0) }
}

pub unsafe fn hsa_executable_validate_alt(
    executable: ExecutableHandle,
    _options: *const c_char,
    result: *mut u32,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_validate(executable, result) }
}
