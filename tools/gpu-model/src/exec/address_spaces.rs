//! The memory that the instructions of a wave can access.

use crate::memory::View;

/// What a wave's instructions reach beside its registers.
pub struct AddressSpaces<'a> {
    pub memory: &'a mut View,
    /// The workgroup's.
    pub lds: &'a mut [u8],
    /// The wave's private segments.
    pub scratch: &'a mut Scratch,
}

/// The private segments of a wave's lanes, one behind the other. Made when first touched.
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

    pub fn lane(&mut self, lane: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; self.lane_size * self.lanes];
        }
        &mut self.bytes[lane * self.lane_size..][..self.lane_size]
    }
}
