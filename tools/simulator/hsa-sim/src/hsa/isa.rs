//! Instruction set architectures and wavefronts.

use super::calls::visit;
use crate::results::{put, put_bytes, status};
use crate::settings::isa::Isa;
use crate::state::with;
use hsa_abi::*;
use std::ffi::{CStr, c_char, c_void};

/// The handle of the first architecture.
const FIRST_ISA: u64 = 0x15a0_0000;

/// The handle of a wavefront minus its size.
const WAVEFRONT_BASE: u64 = 0x3a7e_0000;

const ISA_PREFIX: &str = "amdgcn-amd-amdhsa--";

/// The handle of an architecture.
pub fn handle(isa: &Isa) -> IsaHandle {
    IsaHandle(FIRST_ISA + isa.number() as u64)
}

/// The architecture of a handle.
fn isa(handle: IsaHandle) -> Result<Isa, Status> {
    let number = usize::try_from(handle.0.wrapping_sub(FIRST_ISA)).ok();
    number.and_then(Isa::numbered).ok_or(Status::INVALID_ISA)
}

pub unsafe fn hsa_isa_from_name(name: *const c_char, out: *mut IsaHandle) -> Status {
    if name.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let found = name
        .to_str()
        .ok()
        .and_then(|name| name.strip_prefix(ISA_PREFIX))
        .and_then(Isa::find);
    status(match with(|_| Ok(found)) {
        Err(status) => Err(status),
        Ok(None) => Err(Status::INVALID_ISA_NAME),
        // SAFETY: the caller's promise.
        Ok(Some(isa)) => unsafe { put(out, handle(&isa)) },
    })
}

/// There is one call convention, 0.
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
                Ok(isa) => isa.wave_size,
                Err(status) => return status,
            };
            // SAFETY: the caller's promise.
            status(unsafe { put(value.cast(), size) })
        }
        // SAFETY: the caller's promise.
        _ => unsafe { hsa_isa_get_info_alt(handle, attribute, value) },
    }
}

pub unsafe fn hsa_isa_get_info_alt(
    handle: IsaHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let isa = match with(|_| isa(handle)) {
        Ok(isa) => isa,
        Err(status) => return status,
    };
    let name = format!("{ISA_PREFIX}{}\0", isa.target_id());
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

pub unsafe fn hsa_isa_compatible(code: IsaHandle, agent: IsaHandle, result: *mut bool) -> Status {
    status(
        with(|_| {
            let (code, agent) = (isa(code)?, isa(agent)?);
            Ok(agent.runs(&code))
        })
        .and_then(|same| {
            // SAFETY: the caller's promise.
            unsafe { put(result, same) }
        }),
    )
}

/// As in ROCr, an architecture has only its default wavefront.
pub unsafe fn hsa_isa_iterate_wavefronts(
    handle: IsaHandle,
    callback: WavefrontCallback,
    data: *mut c_void,
) -> Status {
    let sizes = with(|_| {
        let size = isa(handle)?.wave_size;
        Ok(vec![WavefrontHandle(WAVEFRONT_BASE + u64::from(size))])
    });
    // SAFETY: the caller's promise.
    unsafe { visit(sizes, callback, data) }
}

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
