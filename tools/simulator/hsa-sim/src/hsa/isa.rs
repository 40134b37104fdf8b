//! Instruction set architectures and wavefronts.

use super::calls::visit;
use crate::results::{Out, Outcome, put};
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

pub unsafe fn hsa_isa_from_name(name: *const c_char, out: *mut IsaHandle) -> Outcome {
    if name.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let found = name
        .to_str()
        .ok()
        .and_then(|name| name.strip_prefix(ISA_PREFIX))
        .and_then(Isa::find);
    let isa = with(|_| found.ok_or(Status::INVALID_ISA_NAME))?;
    // SAFETY: the caller's promise.
    unsafe { put(out, handle(&isa)) }
}

/// There is one call convention, 0.
pub unsafe fn hsa_isa_get_info(
    handle: IsaHandle,
    attribute: u32,
    index: u32,
    value: *mut c_void,
) -> Outcome {
    if index != 0 {
        return Err(Status::INVALID_INDEX);
    }
    // SAFETY: the caller's promise: memory for the attribute.
    let out = unsafe { Out::new(value) };
    match attribute {
        HSA_ISA_INFO_CALL_CONVENTION_COUNT => out.put(1u32),
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE => {
            out.put(with(|_| isa(handle))?.wave_size)
        }
        // SAFETY: the caller's promise.
        _ => unsafe { hsa_isa_get_info_alt(handle, attribute, value) },
    }
}

pub unsafe fn hsa_isa_get_info_alt(
    handle: IsaHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let isa = with(|_| isa(handle))?;
    let name = format!("{ISA_PREFIX}{}\0", isa.target_id());
    // SAFETY: the caller's promise: memory for the attribute, whose type the headers specify.
    let out = unsafe { Out::new(value) };
    match attribute {
        HSA_ISA_INFO_NAME_LENGTH => out.put(name.len() as u32),
        HSA_ISA_INFO_NAME => out.put_bytes(name.as_bytes()),
        HSA_ISA_INFO_MACHINE_MODELS => out.put([false, true]),
        HSA_ISA_INFO_PROFILES => out.put([true, false]),
        HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES
        | HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => out.put([false, false, true]),
        HSA_ISA_INFO_FAST_F16_OPERATION => out.put(true),
        HSA_ISA_INFO_WORKGROUP_MAX_DIM => out.put([1024u16; 3]),
        HSA_ISA_INFO_WORKGROUP_MAX_SIZE => out.put(1024u32),
        HSA_ISA_INFO_GRID_MAX_DIM => {
            let max = i32::MAX as u32;
            out.put(Dim3 {
                x: max,
                y: 0xffff,
                z: 0xffff,
            })
        }
        HSA_ISA_INFO_GRID_MAX_SIZE => out.put(u64::from(u32::MAX)),
        HSA_ISA_INFO_FBARRIER_MAX_SIZE => out.put(32u32),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

pub unsafe fn hsa_isa_compatible(code: IsaHandle, agent: IsaHandle, result: *mut bool) -> Outcome {
    let runs = with(|_| {
        let code = isa(code)?;
        Ok(isa(agent)?.runs(&code))
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(result, runs) }
}

/// As in ROCr, an architecture has only its default wavefront.
pub unsafe fn hsa_isa_iterate_wavefronts(
    handle: IsaHandle,
    callback: WavefrontCallback,
    data: *mut c_void,
) -> Outcome {
    let sizes = with(|_| {
        let size = isa(handle)?.wave_size;
        Ok(vec![WavefrontHandle(WAVEFRONT_BASE + u64::from(size))])
    })?;
    // SAFETY: the caller's promise.
    unsafe { visit(sizes, callback, data) }
}

pub unsafe fn hsa_wavefront_get_info(
    wavefront: WavefrontHandle,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let size = wavefront.0.wrapping_sub(WAVEFRONT_BASE);
    with(|_| Ok(()))?;
    if size != 32 && size != 64 {
        return Err(Status::INVALID_WAVEFRONT);
    }
    match attribute {
        // SAFETY: the caller's promise.
        HSA_WAVEFRONT_INFO_SIZE => unsafe { put(value.cast(), size as u32) },
        _ => Err(Status::INVALID_ARGUMENT),
    }
}
