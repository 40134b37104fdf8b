//! The packet of a kernel dispatch.

/// The fields of an AQL kernel dispatch packet, its address and its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    pub workgroup_size: [u16; 3],
    pub grid_size: [u32; 3],
    /// Bytes per work-item.
    pub private_segment_size: u32,
    /// Bytes of LDS per workgroup, static and dynamic.
    pub group_segment_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    pub kernarg_address: u64,
    /// Address of the packet itself, for kernels that read it; 0 if it is not in GPU memory.
    pub address: u64,
    /// Address of the queue's `amd_queue_t`; 0 if it does not exist.
    pub queue: u64,
    /// The packet's index in its queue: the dispatch id.
    pub id: u64,
}
