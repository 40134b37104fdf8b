//! Symbols of executables.

use super::executable::text;
use crate::device::agents;
use crate::executables::code_object::SymbolKind;
use crate::results::{put, put_bytes, status};
use crate::state::with;
use hsa_abi::*;
use std::ffi::{c_char, c_void};

const ARGUMENT_ALIGNMENT: u32 = 16;

pub unsafe fn hsa_executable_get_symbol_by_name(
    executable: ExecutableHandle,
    name: *const c_char,
    agent: *const AgentHandle,
    symbol: *mut SymbolHandle,
) -> Status {
    // SAFETY: the caller's promise.
    let (name, agent) = match unsafe { (text(name), agent.as_ref()) } {
        (Ok(name), agent) => (name, agent.copied()),
        (Err(status), _) => return status,
    };
    let found = with(|state| {
        let agent = agent.map(|agent| state.agents.number(agent)).transpose()?;
        let executables = &mut state.executables;
        let handles = &executables.get(executable)?.symbols.clone();
        let found = handles.iter().copied().find(|handle| {
            executables
                .symbols
                .get(handle)
                .is_some_and(|symbol| symbol.defined.name == name && Some(symbol.agent) == agent)
        });
        found.ok_or(Status::INVALID_SYMBOL_NAME)
    });
    // SAFETY: the caller's promise.
    status(found.and_then(|found| unsafe { put(symbol, found) }))
}

pub unsafe fn hsa_executable_get_symbol(
    executable: ExecutableHandle,
    module: *const c_char,
    name: *const c_char,
    agent: AgentHandle,
    _convention: i32,
    symbol: *mut SymbolHandle,
) -> Status {
    // SAFETY: the caller's promise: null or a C string.
    if !module.is_null() && unsafe { *module } != 0 {
        return Status::INVALID_SYMBOL_NAME;
    }
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_get_symbol_by_name(executable, name, &agent, symbol) }
}

pub unsafe fn hsa_executable_symbol_get_info(
    symbol: SymbolHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    status(with(|state| {
        let symbol = state.executables.symbol(symbol)?;
        let name = symbol.defined.name.as_bytes();
        let kernel = symbol.kernel;
        let is_kernel = symbol.defined.kind == SymbolKind::Kernel;
        let require = |has_attribute: bool| {
            if has_attribute {
                Ok(())
            } else {
                Err(Status::INVALID_ARGUMENT)
            }
        };
        // SAFETY: the caller's promise: memory for the attribute. Its type is that of the headers.
        unsafe {
            match attribute {
                HSA_EXECUTABLE_SYMBOL_INFO_TYPE => put(
                    value.cast(),
                    if is_kernel {
                        HSA_SYMBOL_KIND_KERNEL
                    } else {
                        HSA_SYMBOL_KIND_VARIABLE
                    },
                ),
                HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH => put(value.cast(), name.len() as u32),
                HSA_EXECUTABLE_SYMBOL_INFO_NAME => put_bytes(value.cast(), name),
                HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH => put(value.cast(), 0u32),
                HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME => put_bytes(value.cast(), b""),
                HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE => put(
                    value.cast(),
                    if symbol.defined.weak {
                        HSA_SYMBOL_LINKAGE_MODULE
                    } else {
                        HSA_SYMBOL_LINKAGE_PROGRAM
                    },
                ),
                HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION => put(value.cast(), true),
                HSA_EXECUTABLE_SYMBOL_INFO_AGENT => put(value.cast(), agents::handle(symbol.agent)),
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS => {
                    require(!is_kernel)?;
                    put(value.cast(), symbol.address)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION => {
                    require(!is_kernel)?;
                    // As in ROCr, although the variable belongs to one agent.
                    put(value.cast(), HSA_VARIABLE_ALLOCATION_PROGRAM)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT => {
                    require(!is_kernel)?;
                    put(value.cast(), HSA_VARIABLE_SEGMENT_GLOBAL)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT => {
                    require(!is_kernel)?;
                    put(value.cast(), 0u32)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE => {
                    require(!is_kernel)?;
                    put(value.cast(), symbol.defined.size as u32)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST => match symbol.defined.kind {
                    // ROCr 7.2.4 returns the inverse, and programs depend on it.
                    SymbolKind::Variable { writable } => put(value.cast(), writable),
                    SymbolKind::Kernel => Err(Status::INVALID_ARGUMENT),
                },
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT => {
                    require(is_kernel)?;
                    put(value.cast(), symbol.address)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE => {
                    require(is_kernel)?;
                    put(value.cast(), kernel.arguments)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT => {
                    require(is_kernel)?;
                    put(value.cast(), ARGUMENT_ALIGNMENT)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE => {
                    require(is_kernel)?;
                    put(value.cast(), kernel.group)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE => {
                    require(is_kernel)?;
                    put(value.cast(), kernel.private)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK => {
                    require(is_kernel)?;
                    put(value.cast(), kernel.dynamic_stack)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION => {
                    require(is_kernel)?;
                    put(value.cast(), 0u32)
                }
                _ => Err(Status::INVALID_ARGUMENT),
            }
        }
    }))
}

pub unsafe fn hsa_executable_iterate_symbols(
    executable: ExecutableHandle,
    callback: SymbolCallback,
    data: *mut c_void,
) -> Status {
    let symbols = match with(|state| Ok(state.executables.get(executable)?.symbols.clone())) {
        Ok(symbols) => symbols,
        Err(status) => return status,
    };
    for symbol in symbols {
        // SAFETY: the caller's promise.
        let status = unsafe { callback(executable, symbol, data) };
        if status != Status::SUCCESS {
            return status;
        }
    }
    Status::SUCCESS
}

pub unsafe fn hsa_executable_iterate_agent_symbols(
    executable: ExecutableHandle,
    agent: AgentHandle,
    callback: AgentSymbolCallback,
    data: *mut c_void,
) -> Status {
    let symbols = with(|state| {
        let number = state.agents.number(agent)?;
        let executables = &mut state.executables;
        let handles = executables.get(executable)?.symbols.clone();
        let of_agent = |handle: &SymbolHandle| {
            let symbol = executables.symbols.get(handle);
            symbol.is_some_and(|symbol| symbol.agent == number && symbol.executable == executable)
        };
        Ok(handles.into_iter().filter(of_agent).collect::<Vec<_>>())
    });
    let symbols = match symbols {
        Ok(symbols) => symbols,
        Err(status) => return status,
    };
    for symbol in symbols {
        // SAFETY: the caller's promise.
        let status = unsafe { callback(executable, agent, symbol, data) };
        if status != Status::SUCCESS {
            return status;
        }
    }
    Status::SUCCESS
}

/// Agent code objects define no program symbols.
pub unsafe fn hsa_executable_iterate_program_symbols(
    executable: ExecutableHandle,
    _: SymbolCallback,
    _: *mut c_void,
) -> Status {
    status(with(|state| state.executables.get(executable).map(|_| ())))
}
