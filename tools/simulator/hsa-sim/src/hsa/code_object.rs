//! Code objects without readers: HSA's deprecated way to load them, which LLVM's libomptarget uses.

use super::executable::hsa_executable_load_agent_code_object;
use super::reader::{add_reader, hsa_code_object_reader_destroy};
use crate::executables::storage::Storage;
use crate::results::Outcome;
use hsa_abi::*;
use std::ffi::{c_char, c_void};

/// The handle is a reader's.
pub unsafe fn hsa_code_object_deserialize(
    base: *mut c_void,
    size: usize,
    _options: *const c_char,
    object: *mut CodeObjectHandle,
) -> Outcome {
    if base.is_null() || size == 0 || object.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise. The code object does not need this memory after the call.
    let bytes = unsafe { std::slice::from_raw_parts(base.cast::<u8>(), size) }.into();
    // SAFETY: the caller's promise. Both handles have the same layout.
    unsafe { add_reader(Storage::Copy { bytes }, object.cast()) }
}

/// The error for an invalid handle.
fn of_code_object(error: Status) -> Status {
    match error {
        Status::INVALID_CODE_OBJECT_READER => Status::INVALID_CODE_OBJECT,
        error => error,
    }
}

pub unsafe fn hsa_code_object_destroy(object: CodeObjectHandle) -> Outcome {
    // SAFETY: always sound.
    unsafe { hsa_code_object_reader_destroy(ReaderHandle(object.0)) }.map_err(of_code_object)
}

pub unsafe fn hsa_executable_load_code_object(
    executable: ExecutableHandle,
    agent: AgentHandle,
    object: CodeObjectHandle,
    options: *const c_char,
) -> Outcome {
    let (reader, loaded) = (ReaderHandle(object.0), std::ptr::null_mut());
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_load_agent_code_object(executable, agent, reader, options, loaded) }
        .map_err(of_code_object)
}
