//! The kernels of an executable: their names, addresses and resources.

use super::api::loaded_api;
use super::query;
use crate::gpu::runtime::Error;
use crate::gpu::traced::{Kernel, Registers};
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
    let symbols = query::kernels(api, executable, agent)?;
    if symbols.is_empty() {
        return Ok(Vec::new());
    }
    let segments = query::segments_of(api, executable)?;
    let loader = api.loader()?;
    Ok(symbols
        .into_iter()
        .map(|symbol| {
            let is_inside = segments.iter().any(|segment| {
                symbol
                    .object
                    .checked_sub(segment.base)
                    .is_some_and(|at| at.checked_add(64).is_some_and(|end| end <= segment.size))
            });
            let mut host = std::ptr::null();
            // SAFETY: the loader only searches for the address.
            let found = unsafe {
                (loader.query_host_address)(symbol.object as *const c_void, &raw mut host)
            };
            let is_readable = is_inside && found == Status::SUCCESS && !host.is_null();
            let registers = is_readable
                .then(|| {
                    // SAFETY: the descriptor's 64 bytes are inside a loaded segment. The loader keeps the segment's
                    // copy on the host until the executable is destroyed, and no thread destroys it during the call
                    // that freezes it.
                    let descriptor = unsafe { host.cast::<[u8; 64]>().read_unaligned() };
                    registers(&descriptor, target)
                })
                .flatten()
                .unwrap_or(Registers::Unknown);
            let kernel = Kernel {
                name: symbol.name,
                agent: index,
                kernarg: symbol.kernarg,
                lds: symbol.group,
                scratch: symbol.private,
                registers,
            };
            (symbol.object, kernel)
        })
        .collect())
}

/// The registers in a kernel descriptor (LLVM's AMDGPU usage guide, "Kernel Descriptor" and "compute_pgm_rsrc1",
/// "compute_pgm_rsrc3"), as rocprofv3 counts them. `None` for unknown targets.
pub fn registers(descriptor: &[u8; 64], target: &str) -> Option<Registers> {
    let word = |at: usize| {
        u32::from_le_bytes([
            descriptor[at],
            descriptor[at + 1],
            descriptor[at + 2],
            descriptor[at + 3],
        ])
    };
    let (rsrc3, rsrc1) = (word(44), word(48));
    let properties = u16::from_le_bytes([descriptor[56], descriptor[57]]);
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
