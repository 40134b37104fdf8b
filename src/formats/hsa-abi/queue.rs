//! Queues and the types of their packets.

use crate::handle::{AgentHandle, SignalHandle};
use crate::status::Status;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

constants! {
    "`hsa_queue_type_t` (hsa.h)": u32 {
        /// Several threads may write packets.
        HSA_QUEUE_TYPE_MULTI = 0;
        /// Only one thread writes packets.
        HSA_QUEUE_TYPE_SINGLE = 1;
        /// The agent's queue for kernels whose workgroups wait for each other.
        HSA_QUEUE_TYPE_COOPERATIVE = 2;
    }
    "`hsa_queue_feature_t` (hsa.h)": u32 {
        HSA_QUEUE_FEATURE_KERNEL_DISPATCH = 1;
    }
    "`hsa_queue_info_attribute_t` (hsa_ext_amd.h)": u32 {
        /// [`AgentHandle`].
        HSA_AMD_QUEUE_INFO_AGENT = 0;
        /// u64.
        HSA_AMD_QUEUE_INFO_DOORBELL_ID = 1;
    }
    "`hsa_packet_type_t` (hsa.h): the low byte of a packet's header": u8 {
        HSA_PACKET_TYPE_VENDOR_SPECIFIC = 0;
        HSA_PACKET_TYPE_INVALID = 1;
        HSA_PACKET_TYPE_KERNEL_DISPATCH = 2;
        HSA_PACKET_TYPE_BARRIER_AND = 3;
        HSA_PACKET_TYPE_BARRIER_OR = 5;
    }
    "(hsa_api_trace.h)": u8 {
        /// The format of a vendor-specific packet that calls a [`MarkerHandler`].
        AMD_AQL_FORMAT_INTERCEPT_MARKER = 0xfe;
    }
}

/// `hsa_queue_t` (hsa.h)
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Queue {
    /// `type`: an `hsa_queue_type_t`.
    pub kind: u32,
    /// Bits of `hsa_queue_feature_t`.
    pub features: u32,
    /// The ring of packets.
    pub base_address: *mut c_void,
    /// Rung after packets are written.
    pub doorbell_signal: SignalHandle,
    /// Packets in the ring, a power of two.
    pub size: u32,
    /// Reserved.
    pub reserved1: u32,
    /// Unique in the process.
    pub id: u64,
}

/// `amd_queue_v2_t` (amd_hsa_queue.h): ROCr's `hsa_queue_t` is the beginning of this struct.
#[repr(C, align(64))]
pub struct AmdQueue {
    /// The part that programs use.
    pub hsa_queue: Queue,
    /// Bits of `amd_queue_capabilities_t`.
    pub caps: u32,
    /// Reserved.
    pub reserved1: [u32; 3],
    /// The number of packets that programs have reserved.
    pub write_dispatch_id: AtomicU64,
    /// Bits 32 to 63 of the address at which kernels see the group segment.
    pub group_segment_aperture_base_hi: u32,
    /// Bits 32 to 63 of the address at which kernels see the private segment.
    pub private_segment_aperture_base_hi: u32,
    /// Used by the packet processor.
    pub reserved2: [u32; 14],
    /// The number of packets that the packet processor has consumed.
    pub read_dispatch_id: AtomicU64,
    /// The offset of `read_dispatch_id`, in bytes.
    pub read_dispatch_id_field_base_byte_offset: u32,
    /// Used by the packet processor.
    pub reserved3: [u32; 539],
}

/// The callback of `hsa_queue_create` (hsa.h): the error, the queue, and the data that was passed.
pub type QueueErrorCallback = unsafe extern "C" fn(Status, *mut Queue, *mut c_void);
/// `hsa_amd_queue_intercept_packet_writer` (hsa_api_trace.h): packets and their number.
pub type PacketWriter = unsafe extern "C" fn(*const c_void, u64);
/// `hsa_amd_queue_intercept_handler` (hsa_api_trace.h): packets, their number, the index of the first one in the queue,
/// the registered data, and the function that writes packets to the queue.
pub type PacketHandler = unsafe extern "C" fn(*const c_void, u64, u64, *mut c_void, PacketWriter);
/// `hsa_amd_runtime_queue_notifier` (hsa_api_trace.h)
pub type QueueNotifier = unsafe extern "C" fn(*const Queue, AgentHandle, *mut c_void);
/// `amd_intercept_marker_handler` (hsa_api_trace.h): the packet, the queue, and the packet's index.
pub type MarkerHandler = unsafe extern "C" fn(*const c_void, *mut Queue, u64);
