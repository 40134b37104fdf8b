//! Reads and fills of device memory, in batches on devprof's streams.

use super::driver::{Driver, check};
use super::handles;
use crate::gpu::runtime::{Error, Take};
use crate::support::alloc;
use cuda_abi::driver::*;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The largest batch of reads, and the largest part, bytes. Its memory is allocated for each [`read`].
pub const LARGEST_BATCH: usize = 16 << 20;
/// The pause between two polls of a stream.
const POLL: Duration = Duration::from_micros(20);

/// Device memory in a context: a part of one variable or of one allocation, because the driver refuses a copy of more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub context: CUcontext,
    pub range: Range<CUdeviceptr>,
}

impl Part {
    fn size(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }
}

/// Copies parts to the host, each batch within `limit`. Calls `take` for each part, with its number.
pub fn read(driver: &Driver, parts: &[Part], limit: Duration, take: Take) {
    let mut buffer = Vec::new();
    // In which a batch was too late. The next one would wait for it.
    let mut late: Option<CUcontext> = None;
    let mut first = 0;
    while first < parts.len() {
        let batch = &parts[first..first + batch(&parts[first..])];
        let context = batch[0].context;
        let results = match late == Some(context) {
            true => Err(Error::TimedOut("cuMemcpyDtoHAsync")),
            false => read_batch(driver, batch, limit, &mut buffer),
        };
        if let Err(Error::TimedOut(_)) = results {
            late = Some(context);
        }
        let mut at = 0;
        for (n, part) in batch.iter().enumerate() {
            let result = match &results {
                Ok(results) => results[n].clone(),
                Err(error) => Err(error.clone()),
            };
            take(first + n, result.map(|()| &buffer[at..at + part.size()]));
            at += part.size();
        }
        first += batch.len();
    }
}

/// How many parts from the beginning are copied together.
fn batch(parts: &[Part]) -> usize {
    let mut total = 0;
    let fits = |part: &&Part| {
        total += part.size();
        part.context == parts[0].context && total <= LARGEST_BATCH
    };
    parts.iter().take_while(fits).count().max(1)
}

/// Copies parts of one context to `buffer`, one after the other. Returns which copies the driver has refused.
fn read_batch(
    driver: &Driver,
    parts: &[Part],
    limit: Duration,
    buffer: &mut Vec<u8>,
) -> Result<Vec<Result<(), Error>>, Error> {
    let (_current, stream) = handles::enter(driver, parts[0].context)?;
    let size = parts.iter().map(Part::size).sum();
    if buffer.len() < size {
        let more = size - buffer.len();
        alloc::reserve(buffer, more).map_err(|_| Error::OutOfMemory)?;
        buffer.resize(size, 0);
    }
    let mut rest = &mut buffer[..size];
    let mut results = Vec::with_capacity(parts.len());
    for part in parts {
        let to = rest
            .split_off_mut(..part.size())
            .expect("the sum of the sizes");
        // SAFETY: memory of that size, which is kept until the stream is idle; device memory that exists.
        let result = unsafe {
            (driver.cuMemcpyDtoHAsync_v2)(
                to.as_mut_ptr().cast(),
                part.range.start,
                to.len(),
                stream,
            )
        };
        results.push(check("cuMemcpyDtoHAsync", result));
    }
    if wait_for(driver, stream, limit)? {
        return Ok(results);
    }
    // The device may still write to this memory.
    std::mem::forget(std::mem::take(buffer));
    Err(Error::TimedOut("cuMemcpyDtoHAsync"))
}

/// Waits until a stream is idle. False at the limit.
pub fn wait_for(driver: &Driver, stream: CUstream, limit: Duration) -> Result<bool, Error> {
    let end = Instant::now() + limit;
    loop {
        // SAFETY: devprof's stream of the current context.
        match unsafe { (driver.cuStreamQuery)(stream) } {
            CUresult::NOT_READY if Instant::now() >= end => return Ok(false),
            CUresult::NOT_READY => std::thread::sleep(POLL),
            result => return check("cuStreamQuery", result).map(|()| true),
        }
    }
}

/// Sets bytes of parts, all parts of a context within `limit`. Returns those that could not be set.
pub fn fill(driver: &Driver, parts: &[(Part, u8)], limit: Duration) -> Vec<(usize, Error)> {
    let mut failed = Vec::new();
    let mut first = 0;
    for parts in parts.chunk_by(|(one, _), (next, _)| one.context == next.context) {
        let all = first..first + parts.len();
        match fill_batch(driver, parts, limit) {
            Ok(refused) => failed.extend(refused.into_iter().map(|(n, error)| (first + n, error))),
            Err(error) => failed.extend(all.clone().map(|n| (n, error.clone()))),
        }
        first = all.end;
    }
    failed
}

/// Sets bytes of parts of one context. Returns those that the driver has refused.
fn fill_batch(
    driver: &Driver,
    parts: &[(Part, u8)],
    limit: Duration,
) -> Result<Vec<(usize, Error)>, Error> {
    let (_current, stream) = handles::enter(driver, parts[0].0.context)?;
    let mut refused = Vec::new();
    for (n, (part, value)) in parts.iter().enumerate() {
        // SAFETY: device memory that exists.
        let result =
            unsafe { (driver.cuMemsetD8Async)(part.range.start, *value, part.size(), stream) };
        refused.extend(
            check("cuMemsetD8Async", result)
                .err()
                .map(|error| (n, error)),
        );
    }
    match wait_for(driver, stream, limit)? {
        true => Ok(refused),
        false => Err(Error::TimedOut("cuMemsetD8Async")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_parts_of_one_context_up_to_its_size() {
        let [one, other] = [1, 2].map(CUcontext);
        let part = |context, size: usize| Part {
            context,
            range: 0x1000..0x1000 + size as u64,
        };
        let half = LARGEST_BATCH / 2;
        assert_eq!(batch(&[part(one, 8), part(one, 8), part(other, 8)]), 2);
        assert_eq!(batch(&[part(one, half), part(one, half), part(one, 8)]), 2);
        assert_eq!(batch(&[part(one, half), part(one, half + 8)]), 1);
        assert_eq!(batch(&[part(one, LARGEST_BATCH), part(one, 8)]), 1);
        assert_eq!(batch(&[part(other, 8)]), 1);
    }
}
