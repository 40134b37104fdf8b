//! `hsa_amd_queue_create` of newer ROCr (HIP creates its queues with it from ROCm 10 on): queues as descriptors describe
//! them. As in ROCr, it does not call the `hsa_queue_create` of the API table, so a tool that replaces only that one does
//! not see these queues.

use crate::abi::*;
use crate::queue::{self, Request};
use crate::runtime::{status, with};
use std::ffi::c_void;

/// `HSA_AMD_QUEUE_CREATE_DESC_VERSION`.
const VERSION: u16 = 1;
/// `HSA_AMD_QUEUE_CREATE_SYSTEM_MEM`; the other flags put the ring or the descriptor into the GPU's memory.
const SYSTEM_MEMORY: u16 = 0;
/// `HSA_AMD_QUEUE_ENGINE_COMPUTE`, `_SDMA` and `_AIE`.
const COMPUTE: u8 = 0;
const LAST_ENGINE: u8 = 2;
/// `HSA_AMD_QUEUE_PRIORITY_HIGH`, the last one.
pub const LAST_PRIORITY: u32 = 2;
const PACKET: u32 = 64;

/// `hsa_amd_queue_create_desc_t`, with what a compute queue has in its union.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QueueCreateDesc {
    pub version: u16,
    pub flags: u16,
    pub engine: u8,
    pub reserved_header: [u8; 3],
    /// Bytes of the ring.
    pub size: u32,
    pub priority: u32,
    pub callback: Option<QueueError>,
    pub callback_data: *mut c_void,
    /// What is created; null if that fails.
    pub queue: *mut Queue,
    pub cu_mask: *const u32,
    pub kind: u32,
    pub private_segment_size: u32,
    /// Bits of `cu_mask`.
    pub cu_mask_count: u32,
    pub reserved_compute: [u32; 3],
    pub traffic_class: u32,
    pub reserved: [u8; 20],
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<QueueCreateDesc>() == 96);
    assert!(offset_of!(QueueCreateDesc, callback) == 16);
    assert!(offset_of!(QueueCreateDesc, queue) == 32);
    assert!(offset_of!(QueueCreateDesc, cu_mask_count) == 56);
    assert!(offset_of!(QueueCreateDesc, traffic_class) == 72);
};

impl QueueCreateDesc {
    fn check(&self) -> Result<(), Status> {
        let valid = self.version == VERSION
            && self.engine <= LAST_ENGINE
            && self.priority <= LAST_PRIORITY
            && self.reserved_header == [0; 3]
            && self.reserved == [0; 20];
        if !valid {
            return Err(HSA_STATUS_ERROR_INVALID_ARGUMENT);
        }
        // The simulator has neither queues for copies nor rings in the GPU's memory.
        if self.engine != COMPUTE || self.flags != SYSTEM_MEMORY {
            return Err(HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
        }
        let valid = self.kind <= HSA_QUEUE_TYPE_COOPERATIVE
            && self.reserved_compute == [0; 3]
            && self.size > 0
            && self.size.is_multiple_of(PACKET)
            && self.cu_mask.is_null() == (self.cu_mask_count == 0)
            && self.cu_mask_count.is_multiple_of(32);
        if valid {
            Ok(())
        } else {
            Err(HSA_STATUS_ERROR_INVALID_ARGUMENT)
        }
    }

    fn create(&self, agent: Agent) -> Result<*mut Queue, Status> {
        self.check()?;
        let request = Request {
            agent,
            size: self.size / PACKET,
            kind: self.kind,
            callback: self.callback,
            data: self.callback_data,
            id: None,
        };
        let queue = queue::obtain(&request)?.cast();
        if !self.cu_mask.is_null() {
            // SAFETY: the program gives so many bits, and the queue is new.
            unsafe { queue::set_cu_mask(queue, self.cu_mask_count, self.cu_mask) };
        }
        Ok(queue)
    }
}

/// See `hsa_ext_amd.h` of ROCm 10. What can be created is; the first error is the result.
///
/// # Safety
/// `descs` has `count` descriptors.
pub unsafe fn hsa_amd_queue_create(
    agent: Agent,
    descs: *mut QueueCreateDesc,
    count: u32,
) -> Status {
    if descs.is_null() || count == 0 {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    let descs = unsafe { std::slice::from_raw_parts_mut(descs, count as usize) };
    let of_gpu = with(|state| state.agents.gpu(agent).map(|_| ()));
    let mut result = of_gpu;
    for desc in descs {
        let created = of_gpu.and_then(|()| desc.create(agent));
        desc.queue = created.unwrap_or(std::ptr::null_mut());
        result = result.and(created.map(|_| ()));
    }
    status(result)
}
