//! Memory of GPUs that several processes share.
//!
//! A handle names the file of the process that has allocated the memory, which must not have ended when another one attaches
//! it. Both processes simulate the same machine: the same `HSA_SIM_AGENTS`.

use crate::device::shared_file::Location;
use crate::memory::allocations::{Exported, Kind};
use crate::results::{Outcome, put};
use crate::state::with;
use hsa_abi::*;
use std::ffi::c_void;

/// Memory with its GPU's node in the machine, in place of its agent's number, which depends on `ROCR_VISIBLE_DEVICES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    location: Location,
    size: usize,
    node: usize,
    flags: u32,
}

/// Pages fit into 40 bits: the simulator's file has 2^52 bytes.
const PAGE_BITS: u32 = 12;
const FLAG_BITS: u32 = 8;

impl Shared {
    fn handle(&self) -> IpcHandle {
        let pages = |bytes: u64| bytes >> PAGE_BITS;
        let words = [
            u64::from(self.location.process) | (self.location.descriptor as u64) << 32,
            self.location.inode,
            pages(self.location.offset) | (self.node as u64) << 48,
            pages(self.size as u64) | u64::from(self.flags) << (64 - FLAG_BITS),
        ];
        let mut handle = IpcHandle { handle: [0; 8] };
        for (half, word) in handle
            .handle
            .iter_mut()
            .zip(words.into_iter().flat_map(|word| [word, word >> 32]))
        {
            *half = word as u32;
        }
        handle
    }

    fn of_handle(handle: &IpcHandle) -> Shared {
        let word =
            |n: usize| u64::from(handle.handle[2 * n]) | u64::from(handle.handle[2 * n + 1]) << 32;
        let bytes = |pages: u64, bits: u32| (pages & ((1 << bits) - 1)) << PAGE_BITS;
        Shared {
            location: Location {
                process: word(0) as u32,
                descriptor: (word(0) >> 32) as i32,
                inode: word(1),
                offset: bytes(word(2), 48),
            },
            size: bytes(word(3), 48) as usize,
            node: (word(2) >> 48) as usize,
            flags: (word(3) >> (64 - FLAG_BITS)) as u32,
        }
    }
}

fn refused(function: &str, why: &str) -> Status {
    eprintln!("hsa-sim: {function}: {why}");
    Status::INVALID_ARGUMENT
}

/// As the memory of an allocation is a number of pages, `size` may be rounded up to one.
pub unsafe fn hsa_amd_ipc_memory_create(
    base: *mut c_void,
    size: usize,
    handle: *mut IpcHandle,
) -> Outcome {
    if base.is_null() || handle.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let shared = with(|state| {
        let exported = state.memory.export(base as usize, size);
        let exported = exported.map_err(|why| refused("hsa_amd_ipc_memory_create", &why))?;
        Ok(Shared {
            location: exported.location,
            size: exported.size,
            node: state.agents.gpus[exported.owner - 1].device.node,
            flags: exported.flags,
        })
    })?;
    // SAFETY: the caller's promise.
    unsafe { handle.write_unaligned(shared.handle()) };
    Ok(())
}

/// As in ROCr, CPUs in the list are ignored.
pub unsafe fn hsa_amd_ipc_memory_attach(
    handle: *const IpcHandle,
    size: usize,
    count: u32,
    agents: *const AgentHandle,
    base: *mut *mut c_void,
) -> Outcome {
    if handle.is_null() || base.is_null() || count > 0 && agents.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let (shared, wanted) = unsafe {
        let wanted = match count {
            0 => &[],
            count => std::slice::from_raw_parts(agents, count as usize),
        };
        (Shared::of_handle(&handle.read_unaligned()), wanted)
    };
    let address = with(|state| {
        let refused = |why: &str| Err(refused("hsa_amd_ipc_memory_attach", why));
        let owner = state
            .agents
            .gpus
            .iter()
            .position(|gpu| gpu.device.node == shared.node);
        let Some(owner) = owner.map(|n| n + 1) else {
            return refused("this process does not see the GPU that has the memory");
        };
        if size == 0 || size.checked_next_multiple_of(1 << PAGE_BITS) != Some(shared.size) {
            return refused("this is not the size of the memory");
        }
        let mut users = match wanted {
            [] => state.agents.all_gpus(),
            wanted => state.agents.gpus_in(wanted)?,
        };
        users.sort_unstable();
        users.dedup();
        let from = Exported {
            location: shared.location,
            size: shared.size,
            owner,
            flags: shared.flags,
        };
        match state.memory.attach(&from, users) {
            Some(address) => Ok(address),
            None => refused(
                "the process that has the memory has ended, or does not run on this machine",
            ),
        }
    })?;
    // SAFETY: the caller's promise.
    unsafe { put(base.cast(), address) }
}

/// Each attachment has its own address.
pub unsafe fn hsa_amd_ipc_memory_detach(base: *mut c_void) -> Outcome {
    with(|state| {
        let detached = state.memory.free(base as usize, Kind::Attached);
        detached.map(|_| ()).ok_or(Status::INVALID_ARGUMENT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_have_all_fields() {
        let shared = Shared {
            location: Location {
                process: 0x8765_4321,
                descriptor: 0x7654_3210,
                inode: 0xfedc_ba98_7654_3210,
                offset: 0xf_ffff_ffff_f000,
            },
            size: 0x4_2000,
            node: 4096,
            flags: 0x8f,
        };
        assert_eq!(Shared::of_handle(&shared.handle()), shared);
    }
}
