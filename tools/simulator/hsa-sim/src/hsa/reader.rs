//! Code object readers.

use crate::executables::storage::Storage;
use crate::executables::table::new_handle;
use crate::results::{Outcome, put};
use crate::state::with;
use hsa_abi::*;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

pub unsafe fn hsa_code_object_reader_create_from_file(
    file: c_int,
    reader: *mut ReaderHandle,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { reader_of_file(file, 0, None, reader) }
}

/// Creates a reader for a part of a file.
///
/// # Safety
/// `reader` may be written.
pub unsafe fn reader_of_file(
    file: c_int,
    offset: usize,
    size: Option<usize>,
    reader: *mut ReaderHandle,
) -> Outcome {
    if reader.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let link = format!("/proc/self/fd/{file}");
    let read = std::fs::read_link(&link).and_then(|path| Ok((path, std::fs::read(&link)?)));
    let Ok((path, mut bytes)) = read else {
        return Err(Status::INVALID_FILE);
    };
    let end = match size {
        Some(size) => offset.checked_add(size).filter(|&end| end <= bytes.len()),
        None => Some(bytes.len()),
    };
    let Some(end) = end.filter(|&end| end > offset) else {
        return Err(Status::INVALID_FILE);
    };
    bytes.truncate(end);
    bytes.drain(..offset);
    let storage = Storage::File {
        path,
        offset,
        bytes,
    };
    // SAFETY: the caller's promise.
    unsafe { add_reader(storage, reader) }
}

pub unsafe fn hsa_code_object_reader_create_from_memory(
    base: *const c_void,
    size: usize,
    reader: *mut ReaderHandle,
) -> Outcome {
    if base.is_null() || size == 0 || reader.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let base = base as usize;
    // SAFETY: the caller's promise.
    unsafe { add_reader(Storage::Memory { base, size }, reader) }
}

/// Creates a reader.
///
/// # Safety
/// `reader` may be written.
pub unsafe fn add_reader(storage: Storage, reader: *mut ReaderHandle) -> Outcome {
    let handle = with(|state| {
        let handle = ReaderHandle(new_handle());
        state.executables.readers.insert(handle, Arc::new(storage));
        Ok(handle)
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(reader, handle) }
}

pub unsafe fn hsa_code_object_reader_destroy(reader: ReaderHandle) -> Outcome {
    with(|state| {
        let removed = state.executables.readers.remove(&reader);
        let removed = removed.ok_or(Status::INVALID_CODE_OBJECT_READER);
        removed.map(|_| ())
    })
}
