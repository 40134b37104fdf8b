//! Symbols of executables.

use super::executable::text;
use crate::device::agents;
use crate::executables::code_object::SymbolKind;
use crate::executables::table::SymbolState;
use crate::results::{Out, Outcome, put, succeeded};
use crate::state::with;
use hsa_abi::*;
use std::ffi::{c_char, c_void};

const ARGUMENT_ALIGNMENT: u32 = 16;

pub unsafe fn hsa_executable_get_symbol_by_name(
    executable: ExecutableHandle,
    name: *const c_char,
    agent: *const AgentHandle,
    symbol: *mut SymbolHandle,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (name, agent) = unsafe { (text(name)?, agent.as_ref().copied()) };
    let found = with(|state| {
        let agent = agent.map(|agent| state.agents.number(agent)).transpose()?;
        let executables = &mut state.executables;
        let handles = executables.get(executable)?.symbols.clone();
        let found = handles.into_iter().find(|handle| {
            let symbol = executables.symbols.get(handle);
            symbol.is_some_and(|symbol| symbol.defined.name == name && Some(symbol.agent) == agent)
        });
        found.ok_or(Status::INVALID_SYMBOL_NAME)
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(symbol, found) }
}

pub unsafe fn hsa_executable_get_symbol(
    executable: ExecutableHandle,
    module: *const c_char,
    name: *const c_char,
    agent: AgentHandle,
    _convention: i32,
    symbol: *mut SymbolHandle,
) -> Outcome {
    // SAFETY: the caller's promise: null or a C string.
    if !module.is_null() && unsafe { *module } != 0 {
        return Err(Status::INVALID_SYMBOL_NAME);
    }
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_get_symbol_by_name(executable, name, &agent, symbol) }
}

pub unsafe fn hsa_executable_symbol_get_info(
    symbol: SymbolHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise: memory for the attribute, whose type the headers specify.
    let out = unsafe { Out::new(value) };
    with(|state| {
        let symbol = state.executables.symbol(symbol)?;
        let name = symbol.defined.name.as_bytes();
        match attribute {
            HSA_EXECUTABLE_SYMBOL_INFO_TYPE => out.put(match symbol.defined.kind {
                SymbolKind::Kernel => HSA_SYMBOL_KIND_KERNEL,
                SymbolKind::Variable { .. } => HSA_SYMBOL_KIND_VARIABLE,
            }),
            HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH => out.put(name.len() as u32),
            HSA_EXECUTABLE_SYMBOL_INFO_NAME => out.put_bytes(name),
            HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH => out.put(0u32),
            HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME => out.put_bytes(b""),
            HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE => out.put(if symbol.defined.weak {
                HSA_SYMBOL_LINKAGE_MODULE
            } else {
                HSA_SYMBOL_LINKAGE_PROGRAM
            }),
            HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION => out.put(true),
            HSA_EXECUTABLE_SYMBOL_INFO_AGENT => out.put(agents::handle(symbol.agent)),
            _ => match symbol.defined.kind {
                SymbolKind::Kernel => kernel_info(symbol, attribute, out),
                SymbolKind::Variable { writable } => {
                    variable_info(symbol, writable, attribute, out)
                }
            },
        }
    })
}

/// The attributes that only kernels have.
fn kernel_info(symbol: &SymbolState, attribute: u32, out: Out) -> Outcome {
    let kernel = symbol.kernel;
    match attribute {
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT => out.put(symbol.address),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE => out.put(kernel.arguments),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT => out.put(ARGUMENT_ALIGNMENT),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE => out.put(kernel.group),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE => out.put(kernel.private),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK => out.put(kernel.dynamic_stack),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION => out.put(0u32),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

/// The attributes that only variables have.
fn variable_info(symbol: &SymbolState, writable: bool, attribute: u32, out: Out) -> Outcome {
    match attribute {
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS => out.put(symbol.address),
        // As in ROCr, although the variable belongs to one agent.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION => out.put(HSA_VARIABLE_ALLOCATION_PROGRAM),
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT => out.put(HSA_VARIABLE_SEGMENT_GLOBAL),
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT => out.put(0u32),
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE => out.put(symbol.defined.size as u32),
        // ROCr 7.2.4 returns the inverse, and programs depend on it.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST => out.put(writable),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

pub unsafe fn hsa_executable_iterate_symbols(
    executable: ExecutableHandle,
    callback: SymbolCallback,
    data: *mut c_void,
) -> Outcome {
    let symbols = with(|state| Ok(state.executables.get(executable)?.symbols.clone()))?;
    for symbol in symbols {
        // SAFETY: the caller's promise.
        succeeded(unsafe { callback(executable, symbol, data) })?;
    }
    Ok(())
}

pub unsafe fn hsa_executable_iterate_agent_symbols(
    executable: ExecutableHandle,
    agent: AgentHandle,
    callback: AgentSymbolCallback,
    data: *mut c_void,
) -> Outcome {
    let symbols: Vec<_> = with(|state| {
        let number = state.agents.number(agent)?;
        let executables = &mut state.executables;
        let handles = executables.get(executable)?.symbols.clone();
        let of_agent = |handle: &SymbolHandle| {
            let symbol = executables.symbols.get(handle);
            symbol.is_some_and(|symbol| symbol.agent == number && symbol.executable == executable)
        };
        Ok(handles.into_iter().filter(of_agent).collect())
    })?;
    for symbol in symbols {
        // SAFETY: the caller's promise.
        succeeded(unsafe { callback(executable, agent, symbol, data) })?;
    }
    Ok(())
}

/// Agent code objects define no program symbols.
pub unsafe fn hsa_executable_iterate_program_symbols(
    executable: ExecutableHandle,
    _: SymbolCallback,
    _: *mut c_void,
) -> Outcome {
    with(|state| state.executables.get(executable).map(|_| ()))
}
