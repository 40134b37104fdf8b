//! Additions of ROCr releases after 7.2 (hsa_ext_amd.h of ROCm 10 and of the development branches).

use crate::handle::{AgentHandle, SignalHandle};
use crate::queue::{Queue, QueueErrorCallback};
use std::ffi::c_void;
use std::mem::offset_of;

constants! {
    "(hsa_ext_amd.h)": u16 {
        /// The version of [`QueueCreateDesc`].
        HSA_AMD_QUEUE_CREATE_DESC_VERSION = 1;
        /// The version of [`MemoryCopyOp`].
        HSA_AMD_MEMORY_COPY_OP_VERSION = 1;
    }
    "A flag of [`QueueCreateDesc`] (hsa_ext_amd.h)": u16 {
        /// The ring and the queue's descriptor are in the system's memory. Other flags put them into the GPU's memory.
        HSA_AMD_QUEUE_CREATE_SYSTEM_MEM = 0;
    }
    "The engine of [`QueueCreateDesc`] (hsa_ext_amd.h)": u8 {
        /// A queue for kernels.
        HSA_AMD_QUEUE_ENGINE_COMPUTE = 0;
        /// A queue of an AI engine.
        HSA_AMD_QUEUE_ENGINE_AIE = 2;
    }
    "`hsa_amd_queue_priority_t` (hsa_ext_amd.h)": u32 {
        /// The highest priority.
        HSA_AMD_QUEUE_PRIORITY_HIGH = 2;
    }
    "The type of a [`MemoryCopyOp`] (hsa_ext_amd.h)": u16 {
        /// From the source to the destination.
        HSA_AMD_MEMORY_COPY_OP_LINEAR = 0;
        /// From one source to several destinations.
        HSA_AMD_MEMORY_COPY_OP_LINEAR_BROADCAST = 1;
        /// Exchanges the contents.
        HSA_AMD_MEMORY_COPY_OP_LINEAR_SWAP = 2;
        /// Both are addresses of pointers.
        HSA_AMD_MEMORY_COPY_OP_LINEAR_INDIRECT_SRCDST = 5;
    }
}

/// Hints for the packet processor in the handle of a packet's completion signal, in the bits that the alignment of signals
/// leaves 0. Other functions get handles without hints. The packet processor may ignore hints. (`amd_signal_hint_t` in
/// amd_hsa_signal.h of the development branch.)
pub mod signal_hint {
    use crate::handle::SignalHandle;

    /// The handle has the hints of the second format, in its lowest ten bits instead of six.
    const FORMAT_V2: u64 = 1;
    const TIMES_ON: u64 = 1 << 4;
    const TIMES_OFF: u64 = 2 << 4;
    const TIMES_MASK: u64 = 3 << 4;
    /// The value of the signal does not change. In the second format.
    const NO_VALUE: u64 = 1 << 6;

    fn mask(handle: u64) -> u64 {
        if handle & FORMAT_V2 == 0 { 0x3f } else { 0x3ff }
    }

    /// The signal itself.
    pub fn without(handle: u64) -> SignalHandle {
        SignalHandle(handle & !mask(handle))
    }

    /// Whether the packet changes the signal's value when it is complete.
    pub fn changes_value(handle: u64) -> bool {
        handle & mask(handle) & NO_VALUE == 0
    }

    /// The handle with the hint that the packet's times are written to the signal, if its hint is that they are not.
    pub fn with_times(handle: u64) -> u64 {
        match handle & TIMES_MASK {
            TIMES_OFF => handle & !TIMES_MASK | TIMES_ON,
            _ => handle,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn hints_are_in_the_bits_that_the_alignment_leaves() {
            const SIGNAL: u64 = 0x7f12_3456_7840;
            const ALIGNED: u64 = 0x7f12_3456_7800;
            assert_eq!(without(SIGNAL).0, SIGNAL);
            assert_eq!(without(SIGNAL | 0x3e).0, SIGNAL);
            assert_eq!(without(ALIGNED | 0x3ff).0, ALIGNED);
            assert!(changes_value(SIGNAL | 0x3e));
            assert!(!changes_value(ALIGNED | FORMAT_V2 | NO_VALUE));
            assert_eq!(with_times(SIGNAL | 0x2e), SIGNAL | 0x1e);
            for other in [0, 0xe, 0x1e, 0x3e] {
                assert_eq!(with_times(SIGNAL | other), SIGNAL | other);
            }
        }
    }
}

/// `hsa_amd_memory_copy_op_t` (hsa_ext_amd.h), version 1, with its unions as numbers. If `entries` is not 0, the
/// destination, its agent and, except for a broadcast, the source and the size are addresses of lists.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryCopyOp {
    /// The version of this struct.
    pub version: u16,
    /// Such as [`HSA_AMD_MEMORY_COPY_OP_LINEAR`].
    pub kind: u16,
    /// The number of entries in the lists; 0: there are no lists.
    pub entries: u16,
    /// A PCI traffic class.
    pub traffic_class: u16,
    /// Decremented when all entries are complete.
    pub completion: SignalHandle,
    /// An address, or the address of a list of addresses.
    pub from: u64,
    /// The source's agent, also for a list.
    pub from_agent: AgentHandle,
    /// An [`AgentHandle`], or the address of a list of them.
    pub to_agent: u64,
    /// An address, or the address of a list of addresses.
    pub to: u64,
    /// Bytes, or the address of a list of `usize`. For an exchange without lists, the bytes of the source.
    pub size: u64,
    /// For an exchange without lists, the bytes of the destination.
    pub to_size: u64,
    /// `wait` and `signal`: memory that the engine polls before and writes after the copy.
    pub reserved: [u64; 8],
}

const _: () = {
    assert!(size_of::<MemoryCopyOp>() == 128);
    assert!(offset_of!(MemoryCopyOp, completion) == 8);
    assert!(offset_of!(MemoryCopyOp, to_agent) == 32);
    assert!(offset_of!(MemoryCopyOp, size) == 48);
};

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
