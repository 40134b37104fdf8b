//! The kernels of an executable: their names, addresses and resources.

use super::api::loaded_api;
use super::query;

use crate::gpu::runtime::Error;
use crate::gpu::traced::{Kernel, Registers};
use byteorder::{ByteOrder, LittleEndian};
use hsa_abi::{AgentHandle, ExecutableHandle, Status};
use std::ffi::c_void;

/// The kernels of an executable on a GPU, with the addresses of their descriptors, by which packets refer to them.
pub fn kernels(
    executable: ExecutableHandle,
    agent: AgentHandle,
    index: u32,
    target: &str,
) -> Result<Vec<(u64, Kernel)>, Error> {
    let api = loaded_api()?;
    let mut kernels = query::kernels(api, executable, agent, index)?;
    if kernels.is_empty() {
        return Ok(kernels);
    }
    let segments = query::segments_of(api, executable)?;
    let loader = api.loader()?;
    for (object, kernel) in &mut kernels {
        let is_inside = segments.iter().any(|segment| {
            let at = object.checked_sub(segment.base);
            let end = at.and_then(|at| at.checked_add(64));
            end.is_some_and(|end| end <= segment.size)
        });
        let mut host = std::ptr::null();
        // SAFETY: the loader only searches for the address.
        let found = unsafe { (loader.query_host_address)(*object as *const c_void, &raw mut host) };
        if is_inside && found == Status::SUCCESS && !host.is_null() {
            // SAFETY: the descriptor's 64 bytes are inside a loaded segment. The loader keeps the segment's copy on the host
            // until the executable is destroyed, and no thread destroys it during the call that freezes it.
            let descriptor = unsafe { host.cast::<[u8; 64]>().read_unaligned() };
            kernel.registers = registers(&descriptor, target).unwrap_or(Registers::Unknown);
        }
    }
    Ok(kernels)
}

/// The registers in a kernel descriptor (LLVM's AMDGPU usage guide, "Kernel Descriptor" and "compute_pgm_rsrc1",
/// "compute_pgm_rsrc3"), as rocprofv3 counts them. `None` for unknown targets.
fn registers(descriptor: &[u8; 64], target: &str) -> Option<Registers> {
    let word = |at: usize| LittleEndian::read_u32(&descriptor[at..]);
    let (rsrc3, rsrc1) = (word(44), word(48));
    let properties = LittleEndian::read_u16(&descriptor[56..]);
    // The stepping is the last digit, the minor version the one before it, both hexadecimal.
    let digits = target.strip_prefix("gfx")?.split(':').next()?;
    let major: u32 = digits.get(..digits.len().checked_sub(2)?)?.parse().ok()?;
    let granules = (rsrc1 & 0x3f) as u16 + 1;
    let scalar = ((rsrc1 >> 6) & 0xf) as u16;
    let wave32 = properties & 1 << 10 != 0;
    // gfx90a, gfx94x, gfx950: one register file, whose upper part are the accumulation registers.
    let unified = major == 9
        && matches!(
            &digits[digits.len() - 2..],
            "0a" | "40" | "41" | "42" | "50"
        );
    let (vgprs, accum_vgprs) = if unified {
        let first_accum = ((rsrc3 & 0x3f) as u16 + 1) * 4;
        let all = granules * 8;
        (first_accum.min(all), all.saturating_sub(first_accum))
    } else if major == 9 && &digits[digits.len() - 2..] == "08" {
        // gfx908: two register files of the same size.
        (granules * 4, granules * 4)
    } else {
        let granule = match major {
            6..=9 => 4,
            12 if digits.starts_with("125") => 16,
            10..=12 if wave32 => 8,
            10..=12 => 4,
            _ => return None,
        };
        (granules * granule, 0)
    };
    let sgprs = match major {
        6..=8 => (scalar + 1) * 8,
        9 => (scalar / 2 + 1) * 16,
        // Each wave has all scalar registers.
        _ => 128,
    };
    Some(Registers::Amd {
        vgprs,
        accum_vgprs,
        sgprs,
    })
}
