//! The kernels of an executable: their names, addresses and resources.

use super::api::loaded_api;
use super::query;
use crate::gpu::build_id;
use crate::gpu::runtime::{AgentId, Error, Segment, inside};
use crate::gpu::traced::{Kernel, Registers};
use byteorder::{ByteOrder, LittleEndian};
use hsa_abi::{AgentHandle, ExecutableHandle, LoaderTable, Status};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

/// The size of a kernel's descriptor in bytes.
const DESCRIPTOR: usize = 64;

/// The kernels of an executable on a GPU that was just frozen, with the addresses of their descriptors, by which packets
/// refer to them.
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
    let segments = segments(&query::segments_of(api, executable)?, agent);
    let loader = api.loader()?;
    // SAFETY: no thread destroys the executable during the call that freezes it.
    let read = |range: &Range<u64>| unsafe { host_bytes(loader, range, &segments) };
    // An executable has one code object per agent.
    let build_id = build_id::find(&segments, read).map(|id| Arc::from(profraw::hex(&id)));
    for (object, kernel) in &mut kernels {
        kernel.build_id.clone_from(&build_id);
        let end = object.checked_add(DESCRIPTOR as u64);
        let descriptor = end.and_then(|end| read(&(*object..end))?.first_chunk());
        if let Some(descriptor) = descriptor {
            kernel.registers = registers(descriptor, target).unwrap_or(Registers::Unknown);
        }
    }
    Ok(kernels)
}

/// The device addresses of the segments on an agent, in ascending order.
fn segments(all: &[Segment], agent: AgentHandle) -> Vec<Range<u64>> {
    let own = all
        .iter()
        .filter(|segment| segment.agent == AgentId::Hsa(agent.0));
    let range = |segment: &Segment| Some(segment.base..segment.base.checked_add(segment.size)?);
    let mut ranges: Vec<_> = own.filter_map(range).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}

/// The loader's copy of a range of device addresses in host memory. `None` if the range is not inside a segment.
///
/// # Safety
/// The executable of the segments is not destroyed while the bytes are used.
unsafe fn host_bytes<'a>(
    loader: &LoaderTable,
    range: &Range<u64>,
    segments: &[Range<u64>],
) -> Option<&'a [u8]> {
    let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    if length == 0 || !inside(range, segments) {
        return None;
    }
    let host = |address: u64| {
        let mut host = std::ptr::null();
        // SAFETY: the loader only searches for the address.
        let found = unsafe { (loader.query_host_address)(address as *const c_void, &raw mut host) };
        (found == Status::SUCCESS && !host.is_null()).then_some(host.cast::<u8>())
    };
    let first = host(range.start)?;
    if host(range.end - 1)? != first.wrapping_add(length - 1) {
        return None;
    }
    // SAFETY: the loader keeps a copy of each segment, in one piece, until the executable is destroyed. It does not change
    // after the executable was frozen.
    Some(unsafe { std::slice::from_raw_parts(first, length) })
}

/// The registers in a kernel descriptor (LLVM's AMDGPU usage guide, "Kernel Descriptor" and "compute_pgm_rsrc1",
/// "compute_pgm_rsrc3"), as rocprofv3 counts them. `None` for unknown targets.
fn registers(descriptor: &[u8; DESCRIPTOR], target: &str) -> Option<Registers> {
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
