//! HSA's functions that the archive puts in their place in the program that it is linked into. HIP's calls of them reach
//! the program's, so the archive hears of executables without being a tool of ROCr. tools/build-runtime gives these
//! functions HSA's names in the archive; in the shared library, which is a tool, nobody calls them.

use super::api;
use super::hip::next_function;
use super::types::*;
use crate::instance::{self, Order};
use std::ffi::{CStr, c_char};

/// ROCr's function, of the type `F` of function pointers.
///
/// # Safety
/// `F` is the type of the function in `hsa/hsa.h`.
unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let function = next_function(name, api::LIBRARIES)?;
    // SAFETY: a function's address, of the type that the caller names.
    Some(unsafe { std::mem::transmute_copy::<_, F>(&function) })
}

/// `hsa_init`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn devprof_hsa_init() -> Status {
    type Init = unsafe extern "C" fn() -> Status;
    // SAFETY: its type.
    let Some(init) = (unsafe { next::<Init>(c"hsa_init") }) else {
        return Status::ERROR;
    };
    instance::order(Order::Starts);
    // SAFETY: it takes nothing.
    let status = unsafe { init() };
    instance::order(Order::Started);
    status
}

/// `hsa_shut_down`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn devprof_hsa_shut_down() -> Status {
    type ShutDown = unsafe extern "C" fn() -> Status;
    // SAFETY: its type.
    let Some(shut_down) = (unsafe { next::<ShutDown>(c"hsa_shut_down") }) else {
        return Status::NOT_INITIALIZED;
    };
    instance::order(Order::ShutDown);
    // SAFETY: it takes nothing.
    let status = unsafe { shut_down() };
    instance::order(Order::IsDown);
    status
}

/// `hsa_executable_freeze`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn devprof_hsa_executable_freeze(
    executable: ExecutableHandle,
    options: *const c_char,
) -> Status {
    type Freeze = unsafe extern "C" fn(ExecutableHandle, *const c_char) -> Status;
    // SAFETY: its type.
    let Some(freeze) = (unsafe { next::<Freeze>(c"hsa_executable_freeze") }) else {
        return Status::NOT_INITIALIZED;
    };
    // SAFETY: the program's arguments.
    let status = unsafe { freeze(executable, options) };
    if status == Status::SUCCESS {
        instance::order(Order::Frozen(executable.0));
    }
    status
}

/// `hsa_executable_destroy`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn devprof_hsa_executable_destroy(executable: ExecutableHandle) -> Status {
    type Destroy = unsafe extern "C" fn(ExecutableHandle) -> Status;
    // SAFETY: its type.
    let Some(destroy) = (unsafe { next::<Destroy>(c"hsa_executable_destroy") }) else {
        return Status::NOT_INITIALIZED;
    };
    let freezing = instance::order(Order::Going(executable.0));
    // SAFETY: the program's argument.
    let status = unsafe { destroy(executable) };
    instance::order(Order::Gone {
        executable: executable.0,
        freezing,
        destroyed: status == Status::SUCCESS,
    });
    status
}
