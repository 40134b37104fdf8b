//! Code objects without readers: HSA's deprecated way to load them, which LLVM's libomptarget uses.

use super::executable::hsa_executable_load_agent_code_object;
use super::reader::{add_reader, hsa_code_object_reader_destroy};
use crate::executables::storage::Storage;
use hsa_abi::*;
use std::ffi::{c_char, c_void};

/// The handle is a reader's.
pub unsafe fn hsa_code_object_deserialize(
    base: *mut c_void,
    size: usize,
    _options: *const c_char,
    object: *mut CodeObjectHandle,
) -> Status {
    if base.is_null() || size == 0 || object.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise. The code object does not need this memory after the call.
    let bytes = unsafe { std::slice::from_raw_parts(base.cast::<u8>(), size) }.into();
    // SAFETY: the caller's promise. Both handles have the same layout.
    unsafe { add_reader(Storage::Copy { bytes }, object.cast()) }
}

pub unsafe fn hsa_code_object_destroy(object: CodeObjectHandle) -> Status {
    // SAFETY: always sound.
    match unsafe { hsa_code_object_reader_destroy(ReaderHandle(object.0)) } {
        Status::INVALID_CODE_OBJECT_READER => Status::INVALID_CODE_OBJECT,
        status => status,
    }
}

pub unsafe fn hsa_executable_load_code_object(
    executable: ExecutableHandle,
    agent: AgentHandle,
    object: CodeObjectHandle,
    options: *const c_char,
) -> Status {
    let (reader, loaded) = (ReaderHandle(object.0), std::ptr::null_mut());
    // SAFETY: the caller's promise.
    match unsafe {
        hsa_executable_load_agent_code_object(executable, agent, reader, options, loaded)
    } {
        Status::INVALID_CODE_OBJECT_READER => Status::INVALID_CODE_OBJECT,
        status => status,
    }
}
