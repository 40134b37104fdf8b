//! Copies of a module's counters, one for each multiprocessor. [`super::prepare`] sets them up.

use super::driver::{Driver, check};
use crate::gpu::copy_layout::Layout;
use crate::gpu::copy_layout::sums::Sums;
use crate::gpu::runtime::Error;
use cuda_abi::driver::*;
use std::ops::Range;

/// The copies of a module's counters.
#[derive(Debug)]
pub struct Copies {
    /// Device address. The copies of a multiprocessor have a part for warps of which some lanes do not count, and a part for full
    /// warps.
    pub memory: CUdeviceptr,
    pub layout: Layout,
    /// For each variable of the image that has counters, in the image's order. The bitmaps, which follow, have no copies.
    pub offsets: Vec<CounterOffset>,
}

/// Where the counters of a variable are in a part.
#[derive(Clone, Copy, Debug)]
pub struct CounterOffset {
    /// From the beginning of the part, bytes.
    pub offset: u64,
    /// The variable has uniform counters, which only full warps change.
    pub is_uniform: bool,
}

impl Copies {
    /// Device addresses.
    pub fn range(&self) -> Range<CUdeviceptr> {
        self.memory..self.memory + self.layout.size()
    }

    /// Adds the copies of a part of the variable `n`, from `start` bytes on, to `counters`. Does nothing for a bitmap.
    pub fn add(&self, sums: &Sums, n: usize, start: u64, counters: &mut [u8]) {
        let Some(counters_at) = self.offsets.get(n) else {
            return;
        };
        let first = ((counters_at.offset + start) / 8) as usize;
        if counters_at.is_uniform {
            sums.add_full(first, counters)
        } else {
            sums.add_all(first, counters)
        }
    }

    /// Sets all copies to zero, on devprof's stream of the current context.
    pub fn clear(&self, driver: &Driver, stream: CUstream) -> Result<(), Error> {
        // SAFETY: the copies' memory, which is freed with the module.
        let result = unsafe {
            (driver.cuMemsetD8Async)(self.memory, 0, self.layout.size() as usize, stream)
        };
        check("cuMemsetD8Async", result)
    }
}
