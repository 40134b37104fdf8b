//! Information about pointers: the allocation, the program's data, and callbacks for the deallocation.

use crate::device::agents;
use crate::memory::allocations::{Allocation, Kind};
use crate::results::Outcome;
use crate::state::with;
use hsa_abi::*;
use std::ffi::c_void;

pub unsafe fn hsa_amd_pointer_info(
    address: *const c_void,
    info: *mut PointerInfo,
    alloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    count: *mut u32,
    agents: *mut *mut AgentHandle,
) -> Outcome {
    if info.is_null() || address.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let mut reported = PointerInfo {
        size: size_of::<PointerInfo>() as u32,
        kind: HSA_EXT_POINTER_TYPE_UNKNOWN,
        agent_base: std::ptr::null_mut(),
        host_base: std::ptr::null_mut(),
        bytes: 0,
        user_data: std::ptr::null_mut(),
        owner: AgentHandle(0),
        global_flags: 0,
        registered: false,
    };
    let mut users: Vec<AgentHandle> = Vec::new();
    with(|state| {
        let Some((base, allocation)) = state.memory.containing(address as usize) else {
            return Ok(());
        };
        reported.kind = match allocation.kind {
            Kind::Locked => HSA_EXT_POINTER_TYPE_LOCKED,
            Kind::Attached => HSA_EXT_POINTER_TYPE_IPC,
            Kind::Pool | Kind::Code | Kind::Runtime => HSA_EXT_POINTER_TYPE_HSA,
        };
        reported.agent_base = base as *mut c_void;
        // As in ROCr, this is set even if the host cannot access the address.
        reported.host_base = base as *mut c_void;
        reported.bytes = allocation.size;
        reported.user_data = allocation.user_data as *mut c_void;
        reported.owner = agents::handle(allocation.owner);
        reported.global_flags = allocation.flags;
        reported.registered = true;
        if allocation.owner == 0 && allocation.kind != Kind::Locked {
            users.push(agents::handle(0));
        }
        users.extend(allocation.users.iter().map(|&n| agents::handle(n)));
        Ok(())
    })?;
    // SAFETY: the caller's promise: `info` has the size in its field, and no more is written. `count` and `agents`
    // are null or may be written, and `alloc` returns memory of the requested size, or null.
    unsafe {
        let size = (*info).size.min(reported.size);
        reported.size = size;
        std::ptr::copy_nonoverlapping(
            (&raw const reported).cast::<u8>(),
            info.cast::<u8>(),
            size as usize,
        );
        if let (Some(alloc), false, false) = (alloc, count.is_null(), agents.is_null()) {
            let list = alloc(users.len() * size_of::<AgentHandle>()).cast::<AgentHandle>();
            if list.is_null() {
                return Err(Status::OUT_OF_RESOURCES);
            }
            std::ptr::copy_nonoverlapping(users.as_ptr(), list, users.len());
            *count = users.len() as u32;
            *agents = list;
        }
    }
    Ok(())
}

fn allocation(address: *const c_void, work: impl FnOnce(&mut Allocation) -> Outcome) -> Outcome {
    with(|state| {
        let allocation = state.memory.containing_mut(address as usize);
        work(allocation.ok_or(Status::INVALID_ARGUMENT)?)
    })
}

pub unsafe fn hsa_amd_pointer_info_set_userdata(
    address: *const c_void,
    data: *mut c_void,
) -> Outcome {
    allocation(address, |allocation| {
        allocation.user_data = data as usize;
        Ok(())
    })
}

pub unsafe fn hsa_amd_register_deallocation_callback(
    base: *mut c_void,
    callback: DeallocationCallback,
    data: *mut c_void,
) -> Outcome {
    allocation(base, |allocation| {
        allocation.callbacks.push((callback, data as usize));
        Ok(())
    })
}

pub unsafe fn hsa_amd_deregister_deallocation_callback(
    base: *mut c_void,
    callback: DeallocationCallback,
) -> Outcome {
    allocation(base, |allocation| {
        let before = allocation.callbacks.len();
        allocation
            .callbacks
            .retain(|(known, _)| *known as usize != callback as usize);
        if allocation.callbacks.len() < before {
            Ok(())
        } else {
            Err(Status::INVALID_ARGUMENT)
        }
    })
}
