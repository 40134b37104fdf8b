//! Reads and fills of device memory, in batches on devprof's streams.

use super::activity;
use super::driver::{self, Current, Driver, check};
use super::registry::registry;
use crate::gpu::runtime::{Error, Take};
use crate::support::alloc;
use crate::support::diagnostics;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::sync::lock;
use crate::sys::threads;
use cuda_abi::driver::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The largest batch of reads, and the largest part, bytes. Its memory is allocated for each batch.
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

/// Makes a context the current one. Returns devprof's stream in it.
pub fn enter(driver: &Driver, context: CUcontext) -> Result<(Current<'_>, CUstream), Error> {
    let current = Current::enter(driver, context)?;
    let known = registry().context(context).and_then(|known| known.stream);
    if let Some(stream) = known {
        return Ok((current, stream));
    }
    let mut stream = CUstream::NULL;
    // SAFETY: writes the stream, which is destroyed with the context.
    let result = unsafe { (driver.cuStreamCreate)(&raw mut stream, CU_STREAM_NON_BLOCKING) };
    check("cuStreamCreate", result)?;
    if let Err(error) = activity::add_own_stream(context, stream) {
        diagnostics::lost(format_args!(
            "DEVPROF_TRACE: the trace has devprof's own copies and fills, too: {error}"
        ));
    }
    registry().context_mut(context).stream = Some(stream);
    Ok((current, stream))
}

/// Copies parts to the host, each batch within `limit`. Calls `take` for each part, with its number.
///
/// The driver's copy to pageable memory returns when it is complete, so a thread copies. Memory that is pinned cannot be
/// allocated while kernels run.
pub fn read(parts: &[Part], limit: Duration, take: Take) {
    let mut first = 0;
    for parts in parts.chunk_by(|one, next| one.context == next.context) {
        let batches = Batches::start(parts);
        let mut next = 0;
        while next < parts.len() {
            match batches
                .as_ref()
                .map_err(Error::clone)
                .and_then(|of| of.receive(limit))
            {
                Ok(batch) => {
                    let mut at = 0;
                    for result in batch.results {
                        let size = parts[next].size();
                        take(first + next, result.map(|()| &batch.bytes[at..at + size]));
                        at += size;
                        next += 1;
                    }
                }
                // The next batches would wait for this one.
                Err(error) => {
                    (next..parts.len()).for_each(|n| take(first + n, Err(error.clone())));
                    next = parts.len();
                }
            }
        }
        first += parts.len();
    }
}

/// Contexts whose copies were too late, and whether they are over now.
static LATE: Mutex<Vec<(CUcontext, Arc<AtomicBool>)>> = Mutex::new(Vec::new());

/// A batch of copies: which of them the driver has refused, and the bytes of all, one after the other.
struct Batch {
    results: Vec<Result<(), Error>>,
    bytes: Vec<u8>,
}

/// The batches that a thread reads from a context.
struct Batches {
    context: CUcontext,
    received: Receiver<Result<Batch, Error>>,
    is_over: Arc<AtomicBool>,
}

const TOO_LATE: Error = Error::TimedOut("cuMemcpyDtoHAsync");

impl Batches {
    fn start(parts: &[Part]) -> Result<Batches, Error> {
        let context = parts[0].context;
        {
            let mut late = lock(&LATE);
            late.retain(|(_, is_over)| !is_over.load(Ordering::Acquire));
            // A copy would wait for that one.
            if late.iter().any(|(of, _)| *of == context) {
                return Err(TOO_LATE);
            }
        }
        let (send, received) = mpsc::sync_channel(1);
        let is_over = Arc::new(AtomicBool::new(false));
        let (parts, over) = (parts.to_vec(), is_over.clone());
        let work = move || {
            let mut rest = &parts[..];
            while let Some(driver) = driver::known().filter(|_| !rest.is_empty()) {
                let (parts, others) = rest.split_at(batch(rest));
                let read = read_batch(driver, parts);
                let is_last = read.is_err();
                // The receiver is dropped if this was too late.
                if send.send(read).is_err() || is_last {
                    break;
                }
                rest = others;
            }
            over.store(true, Ordering::Release);
        };
        if !threads::spawn_here(Box::new(|| guarded(Cost::Counters, (), work))) {
            return Err(Error::NoThread);
        }
        Ok(Batches {
            context,
            received,
            is_over,
        })
    }

    fn receive(&self, limit: Duration) -> Result<Batch, Error> {
        match self.received.recv_timeout(limit) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Disconnected) => Err(Error::NoThread),
            Err(RecvTimeoutError::Timeout) => {
                lock(&LATE).push((self.context, self.is_over.clone()));
                Err(TOO_LATE)
            }
        }
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

/// Copies parts of one context. Waits without a limit.
fn read_batch(driver: &Driver, parts: &[Part]) -> Result<Batch, Error> {
    let (_current, stream) = enter(driver, parts[0].context)?;
    let size = parts.iter().map(Part::size).sum();
    let mut bytes: Vec<u8> = alloc::zeroed(size).map_err(|_| Error::OutOfMemory)?;
    let mut rest = &mut bytes[..];
    // Before the first copy, because all copies must end before the bytes are freed.
    let targets: Option<Vec<&mut [u8]>> = parts
        .iter()
        .map(|part| rest.split_off_mut(..part.size()))
        .collect();
    let mut results = Vec::with_capacity(parts.len());
    // Without targets, the sum of the sizes has overflowed.
    for (part, to) in parts.iter().zip(targets.ok_or(Error::OutOfMemory)?) {
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
    // SAFETY: devprof's stream of the current context.
    check("cuStreamSynchronize", unsafe {
        (driver.cuStreamSynchronize)(stream)
    })?;
    Ok(Batch { results, bytes })
}

/// How often a stream is polled before the first pause.
const FIRST_POLLS: usize = 100;

/// Waits until a stream is idle. False at the limit.
pub fn wait_for(driver: &Driver, stream: CUstream, limit: Duration) -> Result<bool, Error> {
    let end = Instant::now() + limit;
    let mut polls = 0;
    loop {
        // SAFETY: devprof's stream of the current context.
        match unsafe { (driver.cuStreamQuery)(stream) } {
            CUresult::NOT_READY if Instant::now() >= end => return Ok(false),
            CUresult::NOT_READY if polls < FIRST_POLLS => polls += 1,
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
    let (_current, stream) = enter(driver, parts[0].0.context)?;
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
    if wait_for(driver, stream, limit)? {
        Ok(refused)
    } else {
        Err(Error::TimedOut("cuMemsetD8Async"))
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
