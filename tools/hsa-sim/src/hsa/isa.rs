//! Instruction set architectures and wavefronts.

use super::calls::visit;
use crate::results::{put, put_bytes, status};
use crate::settings::target::Target;
use crate::state::with;
use hsa_abi::*;
use std::ffi::{CStr, c_char, c_void};

/// The handle of the first target's architecture.
const FIRST_ISA: u64 = 0x15a0_0000;

/// The generic architecture, whose code runs on all targets.
pub const GENERIC_ISA: IsaHandle = IsaHandle(FIRST_ISA + 0x100);

const GENERIC: &str = "gfx11-generic";

/// The handle of a wavefront minus its size.
const WAVEFRONT_BASE: u64 = 0x3a7e_0000;

const ISA_PREFIX: &str = "amdgcn-amd-amdhsa--";

/// The architecture of a target.
pub fn of_target(target: &Target) -> IsaHandle {
    let number = Target::ALL.iter().position(|known| known == target);
    IsaHandle(FIRST_ISA + number.map_or(0, |n| n as u64))
}

/// The name of an architecture.
fn isa(handle: IsaHandle) -> Result<&'static str, Status> {
    if handle == GENERIC_ISA {
        return Ok(GENERIC);
    }
    let number = handle.0.wrapping_sub(FIRST_ISA);
    usize::try_from(number)
        .ok()
        .and_then(|number| Target::ALL.get(number))
        .map(|target| target.name)
        .ok_or(Status::INVALID_ISA)
}

/// See `hsa.h`.
///
/// # Safety
/// `name` is a C string, `out` may be written.
pub unsafe fn hsa_isa_from_name(name: *const c_char, out: *mut IsaHandle) -> Status {
    if name.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let target = name
        .to_str()
        .ok()
        .and_then(|name| name.strip_prefix(ISA_PREFIX))
        .and_then(|name| match name {
            GENERIC => Some(GENERIC_ISA),
            name => Target::find(name).map(of_target),
        });
    status(match with(|_| Ok(target)) {
        Err(status) => Err(status),
        Ok(None) => Err(Status::INVALID_ISA_NAME),
        // SAFETY: the caller's promise.
        Ok(Some(isa)) => unsafe { put(out, isa) },
    })
}

/// See `hsa.h`. There is one call convention, 0.
///
/// # Safety
/// `value` has memory for the attribute.
pub unsafe fn hsa_isa_get_info(
    handle: IsaHandle,
    attribute: u32,
    index: u32,
    value: *mut c_void,
) -> Status {
    if index != 0 {
        return Status::INVALID_INDEX;
    }
    match attribute {
        // SAFETY: the caller's promise.
        HSA_ISA_INFO_CALL_CONVENTION_COUNT => status(unsafe { put(value.cast(), 1u32) }),
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE => {
            let size = match with(|_| isa(handle)) {
                Ok(name) => Target::find(name).map_or(32, Target::wave_size),
                Err(status) => return status,
            };
            // SAFETY: the caller's promise.
            status(unsafe { put(value.cast(), size) })
        }
        // SAFETY: the caller's promise.
        _ => unsafe { hsa_isa_get_info_alt(handle, attribute, value) },
    }
}

/// See `hsa.h`.
///
/// # Safety
/// `value` has memory for the attribute.
pub unsafe fn hsa_isa_get_info_alt(
    handle: IsaHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let name = match with(|_| isa(handle)) {
        Ok(name) => name,
        Err(status) => return status,
    };
    let name = format!("{ISA_PREFIX}{name}\0");
    // SAFETY: the caller's promise: memory for the attribute. Its type is that of the headers.
    status(unsafe {
        match attribute {
            HSA_ISA_INFO_NAME_LENGTH => put(value.cast(), name.len() as u32),
            HSA_ISA_INFO_NAME => put_bytes(value.cast(), name.as_bytes()),
            HSA_ISA_INFO_MACHINE_MODELS => put(value.cast(), [false, true]),
            HSA_ISA_INFO_PROFILES => put(value.cast(), [true, false]),
            HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES
            | HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => {
                put(value.cast(), [false, false, true])
            }
            HSA_ISA_INFO_FAST_F16_OPERATION => put(value.cast(), true),
            HSA_ISA_INFO_WORKGROUP_MAX_DIM => put(value.cast(), [1024u16; 3]),
            HSA_ISA_INFO_WORKGROUP_MAX_SIZE => put(value.cast(), 1024u32),
            HSA_ISA_INFO_GRID_MAX_DIM => {
                let max = i32::MAX as u32;
                put(
                    value.cast(),
                    Dim3 {
                        x: max,
                        y: 0xffff,
                        z: 0xffff,
                    },
                )
            }
            HSA_ISA_INFO_GRID_MAX_SIZE => put(value.cast(), u64::from(u32::MAX)),
            HSA_ISA_INFO_FBARRIER_MAX_SIZE => put(value.cast(), 32u32),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    })
}

/// See `hsa.h`.
///
/// # Safety
/// `result` may be written.
pub unsafe fn hsa_isa_compatible(code: IsaHandle, agent: IsaHandle, result: *mut bool) -> Status {
    status(
        with(|_| {
            let (name, agent) = (isa(code)?, isa(agent)?);
            let generic = Target::find(agent).is_none_or(Target::is_generic);
            Ok(name == agent || code == GENERIC_ISA && generic)
        })
        .and_then(|same| {
            // SAFETY: the caller's promise.
            unsafe { put(result, same) }
        }),
    )
}

/// See `hsa.h`.
///
/// # Safety
/// As specified in `hsa.h`.
pub unsafe fn hsa_isa_iterate_wavefronts(
    handle: IsaHandle,
    callback: WavefrontCallback,
    data: *mut c_void,
) -> Status {
    let sizes = with(|_| {
        isa(handle).map(|_| {
            [32, 64]
                .map(|size| WavefrontHandle(WAVEFRONT_BASE + size))
                .to_vec()
        })
    });
    // SAFETY: the caller's promise.
    unsafe { visit(sizes, callback, data) }
}

/// See `hsa.h`.
///
/// # Safety
/// `value` has memory for the attribute.
pub unsafe fn hsa_wavefront_get_info(
    wavefront: WavefrontHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let size = wavefront.0.wrapping_sub(WAVEFRONT_BASE);
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    if size != 32 && size != 64 {
        return Status::INVALID_WAVEFRONT;
    }
    match attribute {
        // SAFETY: the caller's promise.
        HSA_WAVEFRONT_INFO_SIZE => status(unsafe { put(value.cast(), size as u32) }),
        _ => Status::INVALID_ARGUMENT,
    }
}
