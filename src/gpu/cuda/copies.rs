//! Copies of a module's counters, one for each multiprocessor: their memory, and their sums. [`super::prepare`] sets them up.

use super::driver::{Driver, check};
use crate::gpu::counter_copies::Layout;
use crate::gpu::runtime::Error;
use byteorder::{ByteOrder, LittleEndian};
use cuda_abi::driver::*;
use std::ops::Range;

/// The largest part of the copies that is read at once, bytes.
const LARGEST_READ: u64 = 16 << 20;

/// The copies of a module's counters.
#[derive(Debug)]
pub struct Copies {
    /// Device address. The copies of a multiprocessor have a part for warps of which some lanes do not count, and a part for full
    /// warps.
    pub memory: CUdeviceptr,
    pub layout: Layout,
    /// Where each variable of the image is, in the image's order.
    pub places: Vec<Place>,
}

/// Where a variable is in a part.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// From the beginning of the part, bytes.
    pub offset: u64,
    /// The variable has uniform counters, which only full warps change.
    pub is_uniform: bool,
}

/// The sums of all copies.
pub struct Sums {
    all: Vec<u64>,
    full: Vec<u64>,
}

impl Copies {
    /// Device addresses.
    fn range(&self) -> Range<CUdeviceptr> {
        self.memory..self.memory + self.layout.size()
    }

    /// Adds the copies of a part of the variable `n`, from `start` bytes on, to `counters`.
    pub fn add(&self, sums: &Sums, n: usize, start: u64, counters: &mut [u8]) {
        let place = self.places[n];
        let sums = match place.is_uniform {
            true => &sums.full,
            false => &sums.all,
        };
        let first = ((place.offset + start) / 8) as usize;
        for (counter, sum) in counters.chunks_exact_mut(8).zip(&sums[first..]) {
            let value = LittleEndian::read_u64(counter);
            LittleEndian::write_u64(counter, value.wrapping_add(*sum));
        }
    }

    /// Reads all copies. `read` copies a range of device addresses to the host.
    pub fn sums(
        &self,
        mut read: impl FnMut(Range<CUdeviceptr>, &mut [u8]) -> Result<(), Error>,
    ) -> Result<Sums, Error> {
        let Layout { part, count } = self.layout;
        let words = (part / 8) as usize;
        let (mut partial, mut full) = (vec![0; words], vec![0; words]);
        let at_once = (LARGEST_READ / (2 * part)).clamp(1, u64::from(count));
        let mut bytes = vec![0; (at_once * 2 * part) as usize];
        let mut next = self.memory;
        let end = self.range().end;
        while next < end {
            let size = (bytes.len() as u64).min(end - next);
            let bytes = &mut bytes[..size as usize];
            read(next..next + size, bytes)?;
            for copies in bytes.chunks_exact(2 * part as usize) {
                let (of_partial, of_full) = copies.split_at(part as usize);
                add(&mut partial, of_partial);
                add(&mut full, of_full);
            }
            next += size;
        }
        let sums = partial.iter().zip(&full);
        let all = sums
            .map(|(partial, full)| partial.wrapping_add(*full))
            .collect();
        Ok(Sums { all, full })
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

/// Adds little-endian numbers to sums.
fn add(sums: &mut [u64], numbers: &[u8]) {
    for (sum, number) in sums.iter_mut().zip(numbers.chunks_exact(8)) {
        *sum = sum.wrapping_add(LittleEndian::read_u64(number));
    }
}
