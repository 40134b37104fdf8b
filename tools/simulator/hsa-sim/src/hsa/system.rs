//! The system: clocks, versions, extensions, names of statuses, events.

use super::loader;
use crate::device::clock;
use crate::results::{put, put_bytes, status};
use crate::state::{is_loading, with};
use crate::system_events;
use hsa_abi::*;
use std::ffi::{c_char, c_void};

/// `HSA_SYSTEM_INFO_EXTENSIONS`: one bit for each supported extension.
pub fn extensions() -> [u8; 128] {
    let mut bits = [0; 128];
    let n = usize::from(HSA_EXTENSION_AMD_LOADER);
    bits[n / 8] |= 1 << (n % 8);
    bits
}

pub unsafe fn hsa_system_get_info(attribute: u32, value: *mut c_void) -> Status {
    if is_loading() {
        // SAFETY: the caller's promise.
        return status(unsafe { while_loading(attribute, value) });
    }
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    // SAFETY: the caller's promise: memory for the attribute. Its type is that of the headers.
    status(unsafe {
        match attribute {
            HSA_SYSTEM_INFO_VERSION_MAJOR => put(value.cast(), 1u16),
            HSA_SYSTEM_INFO_VERSION_MINOR => put(value.cast(), 1u16),
            HSA_SYSTEM_INFO_TIMESTAMP => put(value.cast(), clock::system_ticks()),
            HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY => put(value.cast(), clock::SYSTEM_FREQUENCY),
            HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT => put(value.cast(), u64::MAX),
            HSA_SYSTEM_INFO_ENDIANNESS => put(value.cast(), 0u32),
            HSA_SYSTEM_INFO_MACHINE_MODEL => put(value.cast(), HSA_MACHINE_MODEL_LARGE),
            HSA_SYSTEM_INFO_EXTENSIONS => put_bytes(value.cast(), &extensions()),
            HSA_AMD_SYSTEM_INFO_BUILD_VERSION => put(value.cast(), c"hsa-sim".as_ptr() as usize),
            HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED
            | HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT
            | HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED
            | HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED
            | HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED
            | HSA_AMD_SYSTEM_INFO_XNACK_ENABLED => put(value.cast(), false),
            HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR => put(value.cast(), 1u16),
            HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR => put(value.cast(), 15u16),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    })
}

/// An attribute of the system while a thread is in the first call of `hsa_init`. As in ROCr (`Runtime::Acquire`,
/// `ReadSystemClock`), HSA seems to be initialized, and the time is divided by a period that is still 0.
///
/// # Safety
/// As for [`hsa_system_get_info`].
unsafe fn while_loading(attribute: u32, value: *mut c_void) -> Result<(), Status> {
    match attribute {
        // SAFETY: the caller's promise: memory for a u16.
        HSA_SYSTEM_INFO_VERSION_MAJOR | HSA_SYSTEM_INFO_VERSION_MINOR => unsafe {
            put(value.cast(), 1u16)
        },
        _ => {
            eprintln!("hsa-sim: hsa_system_get_info while another thread initializes HSA");
            // SAFETY: ends the process.
            unsafe { libc::raise(libc::SIGFPE) };
            Err(Status::ERROR)
        }
    }
}

/// The minor version of an extension, if it is supported with this major version.
fn supported(extension: u16, major: u16) -> Option<u16> {
    (extension == HSA_EXTENSION_AMD_LOADER && major == 1).then_some(loader::MINOR)
}

fn is_extension(extension: u16) -> Result<(), Status> {
    if extension <= 3
        || (HSA_EXTENSION_AMD_PROFILER..=HSA_EXTENSION_AMD_PC_SAMPLING).contains(&extension)
    {
        Ok(())
    } else {
        Err(Status::INVALID_ARGUMENT)
    }
}

pub unsafe fn hsa_system_extension_supported(
    extension: u16,
    major: u16,
    minor: u16,
    result: *mut bool,
) -> Status {
    let found = supported(extension, major).is_some_and(|has| minor <= has);
    status(with(|_| is_extension(extension)).and_then(|()| {
        // SAFETY: the caller's promise.
        unsafe { put(result, found) }
    }))
}

pub unsafe fn hsa_system_major_extension_supported(
    extension: u16,
    major: u16,
    minor: *mut u16,
    result: *mut bool,
) -> Status {
    let found = supported(extension, major);
    status(with(|_| is_extension(extension)).and_then(|()| {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(has) = found {
                put(minor, has)?;
            }
            put(result, found.is_some())
        }
    }))
}

pub unsafe fn hsa_agent_extension_supported(
    extension: u16,
    agent: AgentHandle,
    major: u16,
    minor: u16,
    result: *mut bool,
) -> Status {
    match with(|state| state.agents.number(agent)) {
        // SAFETY: the caller's promise.
        Ok(_) => unsafe { hsa_system_extension_supported(extension, major, minor, result) },
        Err(status) => status,
    }
}

pub unsafe fn hsa_agent_major_extension_supported(
    extension: u16,
    agent: AgentHandle,
    major: u16,
    minor: *mut u16,
    result: *mut bool,
) -> Status {
    match with(|state| state.agents.number(agent)) {
        // SAFETY: the caller's promise.
        Ok(_) => unsafe { hsa_system_major_extension_supported(extension, major, minor, result) },
        Err(status) => status,
    }
}

pub unsafe fn hsa_system_get_extension_table(
    extension: u16,
    major: u16,
    minor: u16,
    table: *mut c_void,
) -> Status {
    match loader::size(minor) {
        // SAFETY: the caller's promise.
        Some(size) => unsafe {
            hsa_system_get_major_extension_table(extension, major, size, table)
        },
        None => Status::ERROR,
    }
}

pub unsafe fn hsa_system_get_major_extension_table(
    extension: u16,
    major: u16,
    length: usize,
    table: *mut c_void,
) -> Status {
    if let Err(status) = with(|_| is_extension(extension)) {
        return status;
    }
    if table.is_null() || length == 0 {
        return Status::INVALID_ARGUMENT;
    }
    if supported(extension, major).is_none() {
        return Status::ERROR;
    }
    let functions = &loader::TABLE;
    let length = length.min(size_of_val(functions));
    // SAFETY: the caller's promise, and not more bytes than the table has.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *functions).cast::<u8>(), table.cast(), length);
    }
    Status::SUCCESS
}

pub unsafe fn hsa_extension_get_name(extension: u16, name: *mut *const c_char) -> Status {
    let text = match extension {
        HSA_EXTENSION_FINALIZER => c"HSA_EXTENSION_FINALIZER",
        HSA_EXTENSION_IMAGES => c"HSA_EXTENSION_IMAGES",
        HSA_EXTENSION_AMD_PROFILER => c"HSA_EXTENSION_AMD_PROFILER",
        HSA_EXTENSION_AMD_LOADER => c"HSA_EXTENSION_AMD_LOADER",
        HSA_EXTENSION_AMD_AQLPROFILE => c"HSA_EXTENSION_AMD_AQLPROFILE",
        HSA_EXTENSION_AMD_PC_SAMPLING => c"HSA_EXTENSION_AMD_PC_SAMPLING",
        _ => return Status::INVALID_ARGUMENT,
    };
    // SAFETY: the caller's promise. A pointer has the size of usize.
    status(with(|_| Ok(())).and_then(|()| unsafe { put(name.cast(), text.as_ptr() as usize) }))
}

/// The text is the status's name.
pub unsafe fn hsa_status_string(code: Status, text: *mut *const c_char) -> Status {
    let Some(name) = code.name() else {
        return Status::INVALID_ARGUMENT;
    };
    // SAFETY: the caller's promise. A pointer has the size of usize.
    status(with(|_| Ok(())).and_then(|()| unsafe { put(text.cast(), name.as_ptr() as usize) }))
}

/// The only event that the simulator reports is the memory fault of a kernel.
pub unsafe fn hsa_amd_register_system_event_handler(
    callback: SystemEventCallback,
    data: *mut c_void,
) -> Status {
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    system_events::register(callback, data);
    Status::SUCCESS
}

/// The simulator has no log.
pub unsafe fn hsa_amd_enable_logging(_flags: *mut u8, _file: *mut c_void) -> Status {
    status(with(|_| Ok(())))
}
