//! The extension `hsa_ven_amd_loader`, versions 1.00 to 1.03: code objects in agents' memory.

use super::calls::{self, visit};
use super::reader;
use crate::device::agents;
use crate::executables::table::{LOADER, Loaded};
use crate::faults::injection;
use crate::results::{IntoReturned, Out, Outcome, put, succeeded};
use crate::state::{State, with};
use crate::sync::locked;
use hsa_abi::*;
use std::ffi::{c_int, c_void};

/// The minor version that is reported. As in ROCr, it is 0, but requests get as much of the newest table as they ask for.
pub const MINOR: u16 = 0;

/// The table that `hsa_system_get_major_extension_table` copies.
pub static TABLE: LoaderTable = LoaderTable {
    query_host_address,
    query_segment_descriptors,
    query_executable,
    executable_iterate_loaded_code_objects,
    loaded_code_object_get_info,
    code_object_reader_create_from_file_with_offset_size,
    iterate_executables,
};

/// Calls the function with this number in the table.
fn call(number: usize, work: impl FnOnce() -> Outcome) -> Status {
    calls::call(LOADER_FUNCTIONS[number], || work().into_returned())
}

/// The size of a minor version's table, in bytes.
pub fn size(minor: u16) -> Option<usize> {
    let functions = LOADER_VERSIONS.get(usize::from(minor))?;
    Some(functions * size_of::<usize>())
}

/// The code object that contains a device address.
fn containing(state: &State, address: u64) -> Option<&Loaded> {
    let mut all = state.executables.loaded();
    all.find(|loaded| loaded.range.contains(&address))
}

unsafe extern "C" fn query_host_address(device: *const c_void, host: *mut *const c_void) -> Status {
    call(0, || {
        if device.is_null() || host.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let _loader = locked(&LOADER);
        let address = with(|state| {
            let loaded = containing(state, device as u64).ok_or(Status::INVALID_ARGUMENT)?;
            let offset = (device as u64 - loaded.range.start) as usize;
            Ok(loaded.shadow.as_ptr() as usize + offset)
        })?;
        // SAFETY: the caller's promise.
        unsafe { put(host.cast(), address) }
    })
}

fn descriptor(loaded: &Loaded) -> SegmentDescriptor {
    let memory = loaded.storage.memory();
    SegmentDescriptor {
        agent: agents::handle(loaded.agent),
        executable: loaded.executable,
        storage_type: HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY,
        storage_base: memory.start as *const c_void,
        storage_size: memory.len(),
        storage_offset: 0,
        segment_base: loaded.range.start as *const c_void,
        segment_size: (loaded.range.end - loaded.range.start) as usize,
    }
}

unsafe extern "C" fn query_segment_descriptors(
    descriptors: *mut SegmentDescriptor,
    count: *mut usize,
) -> Status {
    call(1, || {
        if count.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let _loader = locked(&LOADER);
        let all: Vec<_> = with(|state| Ok(state.executables.loaded().map(descriptor).collect()))?;
        // SAFETY: the caller's promise: null requests the number; otherwise there is memory for `count`
        // descriptors. This must be the exact number.
        unsafe {
            match (descriptors.is_null(), *count) {
                (true, 0) => return put(count, all.len()),
                (true, _) => return Err(Status::INVALID_ARGUMENT),
                (false, number) if number != all.len() => {
                    return Err(Status::INCOMPATIBLE_ARGUMENTS);
                }
                (false, _) => {}
            }
            std::ptr::copy_nonoverlapping(all.as_ptr(), descriptors, all.len());
        }
        Ok(())
    })
}

unsafe extern "C" fn query_executable(device: *const c_void, out: *mut ExecutableHandle) -> Status {
    call(2, || {
        if device.is_null() || out.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let _loader = locked(&LOADER);
        let executable = with(|state| {
            let loaded = containing(state, device as u64).ok_or(Status::INVALID_ARGUMENT)?;
            Ok(loaded.executable)
        })?;
        // SAFETY: the caller's promise.
        unsafe { put(out, executable) }
    })
}

unsafe extern "C" fn executable_iterate_loaded_code_objects(
    executable: ExecutableHandle,
    callback: LoadedCodeObjectCallback,
    data: *mut c_void,
) -> Status {
    call(3, || {
        let all: Vec<_> = with(|state| {
            let loaded = &state.executables.get(executable)?.loaded;
            Ok(loaded.iter().map(|loaded| loaded.handle).collect())
        })?;
        for loaded in all {
            // SAFETY: the caller's promise.
            succeeded(unsafe { callback(executable, loaded, data) })?;
        }
        Ok(())
    })
}

unsafe extern "C" fn loaded_code_object_get_info(
    object: LoadedCodeObjectHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    call(4, || {
        with(|state| {
            let loaded = state.executables.code_object(object)?;
            // SAFETY: the caller's promise: memory for the attribute, whose type the headers specify.
            info(loaded, attribute, unsafe { Out::new(value) })
        })
    })
}

fn info(loaded: &Loaded, attribute: u32, out: Out) -> Outcome {
    let memory = loaded.storage.memory();
    match attribute {
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_EXECUTABLE => out.put(loaded.executable),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND => {
            out.put(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT)
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT => out.put(agents::handle(loaded.agent)),
        // ROCr maps files and the simulator reads them, so the storage is always memory.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE => {
            out.put(HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY)
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE => {
            out.put(memory.start as u64)
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE => {
            out.put(memory.len() as u64)
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA => out.put(loaded.delta),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE => out.put(loaded.range.start),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE => {
            let size = loaded.range.end - loaded.range.start;
            out.put(injection::take_lie().unwrap_or(size))
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH => out.put(loaded.uri.len() as u32),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI => out.put_bytes(loaded.uri.as_bytes()),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

unsafe extern "C" fn code_object_reader_create_from_file_with_offset_size(
    file: c_int,
    offset: usize,
    size: usize,
    reader: *mut ReaderHandle,
) -> Status {
    call(5, || {
        if size == 0 {
            return Err(Status::INVALID_ARGUMENT);
        }
        // SAFETY: the caller's promise.
        unsafe { reader::reader_of_file(file, offset, Some(size), reader) }
    })
}

unsafe extern "C" fn iterate_executables(
    callback: ExecutableCallback,
    data: *mut c_void,
) -> Status {
    call(6, || {
        let _loader = locked(&LOADER);
        let handles = with(|state| Ok(state.executables.handles()))?;
        // SAFETY: the caller's promise.
        unsafe { visit(handles, callback, data) }
    })
}
