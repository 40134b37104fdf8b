//! The memory that a wave can access.

use super::gws::Gws;
use crate::memory::{SCRATCH_APERTURE, View};

/// The memory that a wave can access.
pub struct AddressSpaces<'a> {
    pub global: &'a mut View,
    /// The local memory of the workgroup.
    pub lds: &'a mut [u8],
    /// The private memory of the wave's lanes.
    pub scratch: &'a mut Scratch,
    /// The GPU's global wave sync.
    pub gws: &'a Gws,
}

/// The resource of the private segment that kernels of gfx90a get in user SGPRs. It has the words that ROCr uses (swizzled, 64
/// lanes, dwords), but its address is no address of memory: executors recognize the resource and access the wave's
/// [`Scratch`].
pub const SCRATCH_RESOURCE: [u32; 4] = [0, SCRATCH_APERTURE >> 16 | 1 << 31, u32::MAX, 0x00ea_4000];

/// FLAT_SCRATCH_INIT of gfx90a, which a kernel adds to the wave's offset (always 0).
pub const FLAT_SCRATCH_INIT: u64 = (SCRATCH_APERTURE as u64) << 16;

/// The private memory of a wave: one segment of `lane_size` bytes per lane. Allocated at the first access.
#[derive(Debug)]
pub struct Scratch {
    bytes: Vec<u8>,
    lane_size: usize,
    lanes: usize,
}

impl Scratch {
    pub fn new(lane_size: usize, lanes: usize) -> Scratch {
        Scratch {
            bytes: Vec::new(),
            lane_size,
            lanes,
        }
    }

    /// The segment of a lane.
    pub fn lane(&mut self, lane: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; self.lane_size * self.lanes];
        }
        &mut self.bytes[lane * self.lane_size..][..self.lane_size]
    }
}
