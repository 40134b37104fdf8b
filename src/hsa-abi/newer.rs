//! Additions of ROCr releases after 7.2 (hsa_ext_amd.h of ROCm 10 and of the development branches).

use crate::queue::{Queue, QueueErrorCallback};
use std::ffi::c_void;
use std::mem::offset_of;

constants! {
    "(hsa_ext_amd.h)": u16 {
        /// The version of [`QueueCreateDesc`].
        HSA_AMD_QUEUE_CREATE_DESC_VERSION = 1;
    }
    "A flag of [`QueueCreateDesc`] (hsa_ext_amd.h)": u16 {
        /// The ring and the queue's descriptor are in the system's memory. Other flags put them into the GPU's memory.
        HSA_AMD_QUEUE_CREATE_SYSTEM_MEM = 0;
    }
    "The engine of [`QueueCreateDesc`] (hsa_ext_amd.h)": u8 {
        /// A queue for kernels.
        HSA_AMD_QUEUE_ENGINE_COMPUTE = 0;
        /// A queue for copies.
        HSA_AMD_QUEUE_ENGINE_SDMA = 1;
        /// A queue of an AI engine.
        HSA_AMD_QUEUE_ENGINE_AIE = 2;
    }
    "`hsa_amd_queue_priority_t` (hsa_ext_amd.h)": u32 {
        /// The highest priority.
        HSA_AMD_QUEUE_PRIORITY_HIGH = 2;
    }
}

/// `hsa_amd_queue_create_desc_t` (hsa_ext_amd.h), version 1, with the union's member for compute queues.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QueueCreateDesc {
    /// [`HSA_AMD_QUEUE_CREATE_DESC_VERSION`].
    pub version: u16,
    /// Bits such as [`HSA_AMD_QUEUE_CREATE_SYSTEM_MEM`].
    pub flags: u16,
    /// The engine, such as [`HSA_AMD_QUEUE_ENGINE_COMPUTE`].
    pub engine: u8,
    /// Reserved.
    pub reserved_header: [u8; 3],
    /// Bytes of the ring.
    pub size: u32,
    /// An `hsa_amd_queue_priority_t`.
    pub priority: u32,
    /// Called when the queue fails.
    pub callback: Option<QueueErrorCallback>,
    /// Passed to `callback`.
    pub data: *mut c_void,
    /// Output: the queue; null if it could not be created.
    pub queue: *mut Queue,
    /// One bit for each compute unit, or null.
    pub cu_mask: *const u32,
    /// An `hsa_queue_type_t`.
    pub kind: u32,
    /// Bytes per work-item.
    pub private_segment_size: u32,
    /// The number of bits in `cu_mask`.
    pub cu_mask_count: u32,
    /// Reserved.
    pub reserved_compute: [u32; 3],
    /// A PCI traffic class.
    pub traffic_class: u32,
    /// Reserved.
    pub reserved: [u8; 20],
}

const _: () = {
    assert!(size_of::<QueueCreateDesc>() == 96);
    assert!(offset_of!(QueueCreateDesc, callback) == 16);
    assert!(offset_of!(QueueCreateDesc, queue) == 32);
    assert!(offset_of!(QueueCreateDesc, cu_mask_count) == 56);
    assert!(offset_of!(QueueCreateDesc, traffic_class) == 72);
};
