//! The memory that a wave can access.

use crate::memory::View;

/// The memory that a wave can access.
pub struct AddressSpaces<'a> {
    pub global: &'a mut View,
    /// The local memory of the workgroup.
    pub lds: &'a mut [u8],
    /// The private memory of the wave's lanes.
    pub scratch: &'a mut Scratch,
}

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
