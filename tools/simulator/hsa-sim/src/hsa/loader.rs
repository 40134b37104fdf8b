//! The extension `hsa_ven_amd_loader`, versions 1.00 to 1.03: code objects in agents' memory.

use super::calls::{call, visit};
use super::reader;
use crate::device::agents;
use crate::executables::table::{self, Loaded};
use crate::faults::injection;
use crate::results::{put, put_bytes, status};
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
    call(LOADER_FUNCTIONS[0], || {
        if device.is_null() || host.is_null() {
            return Status::INVALID_ARGUMENT;
        }
        let found = with(|state| {
            let loaded = containing(state, device as u64).ok_or(Status::INVALID_ARGUMENT)?;
            let offset = (device as u64 - loaded.range.start) as usize;
            Ok(loaded.shadow.as_ptr() as usize + offset)
        });
        // SAFETY: the caller's promise.
        status(found.and_then(|address| unsafe { put(host.cast(), address) }))
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
    call(LOADER_FUNCTIONS[1], || {
        if count.is_null() {
            return Status::INVALID_ARGUMENT;
        }
        let all = with(|state| {
            Ok(state
                .executables
                .loaded()
                .map(descriptor)
                .collect::<Vec<_>>())
        });
        let all = match all {
            Ok(all) => all,
            Err(status) => return status,
        };
        // SAFETY: the caller's promise: null requests the number; otherwise there is memory for `count`
        // descriptors. This must be the exact number.
        unsafe {
            if descriptors.is_null() {
                return status(if *count == 0 {
                    put(count, all.len())
                } else {
                    Err(Status::INVALID_ARGUMENT)
                });
            }
            if *count != all.len() {
                return Status::INCOMPATIBLE_ARGUMENTS;
            }
            std::ptr::copy_nonoverlapping(all.as_ptr(), descriptors, all.len());
        }
        Status::SUCCESS
    })
}

unsafe extern "C" fn query_executable(device: *const c_void, out: *mut ExecutableHandle) -> Status {
    call(LOADER_FUNCTIONS[2], || {
        if device.is_null() || out.is_null() {
            return Status::INVALID_ARGUMENT;
        }
        let found = with(|state| {
            containing(state, device as u64)
                .map(|loaded| loaded.executable)
                .ok_or(Status::INVALID_ARGUMENT)
        });
        // SAFETY: the caller's promise.
        status(found.and_then(|found| unsafe { put(out, found) }))
    })
}

unsafe extern "C" fn executable_iterate_loaded_code_objects(
    executable: ExecutableHandle,
    callback: LoadedCodeObjectCallback,
    data: *mut c_void,
) -> Status {
    call(LOADER_FUNCTIONS[3], || {
        let all = with(|state| {
            let loaded = state.executables.loaded_of(executable)?;
            Ok(loaded
                .iter()
                .map(|loaded| loaded.handle)
                .collect::<Vec<_>>())
        });
        let all = match all {
            Ok(all) => all,
            Err(status) => return status,
        };
        for loaded in all {
            // SAFETY: the caller's promise.
            let status = unsafe { callback(executable, loaded, data) };
            if status != Status::SUCCESS {
                return status;
            }
        }
        Status::SUCCESS
    })
}

unsafe extern "C" fn loaded_code_object_get_info(
    object: LoadedCodeObjectHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    call(LOADER_FUNCTIONS[4], || {
        status(with(|state| {
            let loaded = state.executables.code_object(object)?;
            // SAFETY: the caller's promise: memory for the attribute. Its type is that of the headers.
            unsafe { info(loaded, attribute, value) }
        }))
    })
}

/// # Safety
/// `value` has memory for the attribute.
unsafe fn info(loaded: &Loaded, attribute: u32, value: *mut c_void) -> Result<(), Status> {
    let memory = loaded.storage.memory();
    // SAFETY: the caller's promise.
    unsafe {
        match attribute {
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_EXECUTABLE => {
                put(value.cast(), loaded.executable)
            }
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND => put(
                value.cast(),
                HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT,
            ),
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT => {
                put(value.cast(), agents::handle(loaded.agent))
            }
            // ROCr maps files and the simulator reads them, so the storage is always memory.
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE => put(
                value.cast(),
                HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY,
            ),
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE => {
                put(value.cast(), memory.start as u64)
            }
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE => {
                put(value.cast(), memory.len() as u64)
            }
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA => {
                put(value.cast(), loaded.delta)
            }
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE => {
                put(value.cast(), loaded.range.start)
            }
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE => {
                let size = loaded.range.end - loaded.range.start;
                put(value.cast(), injection::take_lie().unwrap_or(size))
            }
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH => {
                put(value.cast(), loaded.uri.len() as u32)
            }
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI => {
                put_bytes(value.cast(), loaded.uri.as_bytes())
            }
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }
}

unsafe extern "C" fn code_object_reader_create_from_file_with_offset_size(
    file: c_int,
    offset: usize,
    size: usize,
    reader: *mut ReaderHandle,
) -> Status {
    call(LOADER_FUNCTIONS[5], || {
        if size == 0 {
            return Status::INVALID_ARGUMENT;
        }
        // SAFETY: the caller's promise.
        unsafe { reader::reader_of_file(file, offset, Some(size), reader) }
    })
}

unsafe extern "C" fn iterate_executables(
    callback: ExecutableCallback,
    data: *mut c_void,
) -> Status {
    call(LOADER_FUNCTIONS[6], || {
        let _iteration = locked(&table::ITERATION);
        let handles = with(|state| Ok(state.executables.handles()));
        // SAFETY: the caller's promise.
        unsafe { visit(handles, callback, data) }
    })
}
