//! The system: clocks, versions, extensions, names of statuses, events.

use super::loader;
use crate::device::clock;
use crate::results::{Out, Outcome, put};
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

pub unsafe fn hsa_system_get_info(attribute: u32, value: *mut c_void) -> Outcome {
    // SAFETY: the caller's promise: memory for the attribute, whose type the headers specify.
    let out = unsafe { Out::new(value) };
    if is_loading() {
        return while_loading(attribute, out);
    }
    with(|_| Ok(()))?;
    match attribute {
        HSA_SYSTEM_INFO_VERSION_MAJOR => out.put(1u16),
        HSA_SYSTEM_INFO_VERSION_MINOR => out.put(1u16),
        HSA_SYSTEM_INFO_TIMESTAMP => out.put(clock::system_ticks()),
        HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY => out.put(clock::SYSTEM_FREQUENCY),
        HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT => out.put(u64::MAX),
        HSA_SYSTEM_INFO_ENDIANNESS => out.put(0u32),
        HSA_SYSTEM_INFO_MACHINE_MODEL => out.put(HSA_MACHINE_MODEL_LARGE),
        HSA_SYSTEM_INFO_EXTENSIONS => out.put_bytes(&extensions()),
        HSA_AMD_SYSTEM_INFO_BUILD_VERSION => out.put(c"hsa-sim".as_ptr() as usize),
        HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED
        | HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT
        | HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED
        | HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED
        | HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED
        | HSA_AMD_SYSTEM_INFO_XNACK_ENABLED => out.put(false),
        HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR => out.put(1u16),
        HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR => out.put(15u16),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

/// An attribute of the system while a thread is in the first call of `hsa_init`. As in ROCr (`Runtime::Acquire`,
/// `ReadSystemClock`), HSA seems to be initialized, and the time is divided by a period that is still 0.
fn while_loading(attribute: u32, out: Out) -> Outcome {
    match attribute {
        HSA_SYSTEM_INFO_VERSION_MAJOR | HSA_SYSTEM_INFO_VERSION_MINOR => out.put(1u16),
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
) -> Outcome {
    let found = supported(extension, major).is_some_and(|has| minor <= has);
    with(|_| is_extension(extension))?;
    // SAFETY: the caller's promise.
    unsafe { put(result, found) }
}

pub unsafe fn hsa_system_major_extension_supported(
    extension: u16,
    major: u16,
    minor: *mut u16,
    result: *mut bool,
) -> Outcome {
    let found = supported(extension, major);
    with(|_| is_extension(extension))?;
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(has) = found {
            put(minor, has)?;
        }
        put(result, found.is_some())
    }
}

pub unsafe fn hsa_agent_extension_supported(
    extension: u16,
    agent: AgentHandle,
    major: u16,
    minor: u16,
    result: *mut bool,
) -> Outcome {
    with(|state| state.agents.number(agent))?;
    // SAFETY: the caller's promise.
    unsafe { hsa_system_extension_supported(extension, major, minor, result) }
}

pub unsafe fn hsa_agent_major_extension_supported(
    extension: u16,
    agent: AgentHandle,
    major: u16,
    minor: *mut u16,
    result: *mut bool,
) -> Outcome {
    with(|state| state.agents.number(agent))?;
    // SAFETY: the caller's promise.
    unsafe { hsa_system_major_extension_supported(extension, major, minor, result) }
}

pub unsafe fn hsa_system_get_extension_table(
    extension: u16,
    major: u16,
    minor: u16,
    table: *mut c_void,
) -> Outcome {
    let size = loader::size(minor).ok_or(Status::ERROR)?;
    // SAFETY: the caller's promise.
    unsafe { hsa_system_get_major_extension_table(extension, major, size, table) }
}

pub unsafe fn hsa_system_get_major_extension_table(
    extension: u16,
    major: u16,
    length: usize,
    table: *mut c_void,
) -> Outcome {
    with(|_| is_extension(extension))?;
    if table.is_null() || length == 0 {
        return Err(Status::INVALID_ARGUMENT);
    }
    if supported(extension, major).is_none() {
        return Err(Status::ERROR);
    }
    let functions = &loader::TABLE;
    let length = length.min(size_of_val(functions));
    // SAFETY: the caller's promise, and not more bytes than the table has.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *functions).cast::<u8>(), table.cast(), length);
    }
    Ok(())
}

pub unsafe fn hsa_extension_get_name(extension: u16, name: *mut *const c_char) -> Outcome {
    let text = match extension {
        HSA_EXTENSION_FINALIZER => c"HSA_EXTENSION_FINALIZER",
        HSA_EXTENSION_IMAGES => c"HSA_EXTENSION_IMAGES",
        HSA_EXTENSION_AMD_PROFILER => c"HSA_EXTENSION_AMD_PROFILER",
        HSA_EXTENSION_AMD_LOADER => c"HSA_EXTENSION_AMD_LOADER",
        HSA_EXTENSION_AMD_AQLPROFILE => c"HSA_EXTENSION_AMD_AQLPROFILE",
        HSA_EXTENSION_AMD_PC_SAMPLING => c"HSA_EXTENSION_AMD_PC_SAMPLING",
        _ => return Err(Status::INVALID_ARGUMENT),
    };
    with(|_| Ok(()))?;
    // SAFETY: the caller's promise. A pointer has the size of usize.
    unsafe { put(name.cast(), text.as_ptr() as usize) }
}

/// The text is the status's name.
pub unsafe fn hsa_status_string(code: Status, text: *mut *const c_char) -> Outcome {
    let name = code.name().ok_or(Status::INVALID_ARGUMENT)?;
    with(|_| Ok(()))?;
    // SAFETY: the caller's promise. A pointer has the size of usize.
    unsafe { put(text.cast(), name.as_ptr() as usize) }
}

/// The only event that the simulator reports is the memory fault of a kernel.
pub unsafe fn hsa_amd_register_system_event_handler(
    callback: SystemEventCallback,
    data: *mut c_void,
) -> Outcome {
    with(|_| Ok(()))?;
    system_events::register(callback, data);
    Ok(())
}

/// The simulator has no log.
pub unsafe fn hsa_amd_enable_logging(_flags: *mut u8, _file: *mut c_void) -> Outcome {
    with(|_| Ok(()))
}
