//! Copies from and to device memory. Each agent has a pinned staging buffer and a few signals, which are created on first
//! use and kept for later drains. Copies are asynchronous, in batches. If the buffer cannot grow, the pieces are smaller. If
//! pinned memory or the asynchronous copy fails, `hsa_memory_copy` and then `hipMemcpy` copy one piece at a time (`hipMemcpy` not
//! during an iteration over the executables).
//!
//! The GPU's copy engines copy. If they do not complete a read in half of its time limit, a kernel of ROCr copies the same
//! again, into another buffer, and kernels copy until the engines have completed all earlier requests. A write is not
//! repeated: the engine may still execute it later, and overwrite later counts.
//!
//! The host never reads device memory directly: without a large BAR it may not access the pages, and with one it would
//! bypass the GPU's caches.

use super::api::{Api, check, failed};
use super::{hip, pools, query};
use crate::gpu::runtime::{Error, Take};
use hsa_abi::*;
use std::ffi::c_void;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long a wait for copies may poll before it sleeps. In this time ROCr polls, with and without interrupts.
const WAIT_SLICE: Duration = Duration::from_micros(20);
/// The longest pause between two slices.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The size of the largest batch, bytes. It limits a drain's memory. A copy of this size takes 0.6 ms at 25 GB/s, a
/// wait 0.02 ms.
pub const BATCH: usize = 16 << 20;
/// The number of copies that are submitted before the first wait. Many concurrent copies have lost completions on MI300X
/// (ROCm/rocm-systems#7896). If ROCr copies by kernels, their queue has 64 packets (minAqlSize_ in amd_gpu_agent.h), and the
/// arguments of a kernel are overwritten 64 copies later (ObtainAsyncKernelCopyArg in amd_blit_kernel.cpp).
const CONCURRENT: usize = 8;
/// The copy engines get at least this time, if the limit allows it, before kernels copy instead.
const PATIENCE: Duration = Duration::from_secs(1);
/// `HSA_AMD_SDMA_ENGINE_0` (hsa_ext_amd.h).
const FIRST_ENGINE: u32 = 1;
/// The size of the smallest buffer, bytes.
const MIN_SIZE: usize = 1 << 16;
/// The alignment of pieces in the buffer: a cache line.
const LINE: usize = 64;

/// The buffer for copies from one agent.
pub struct Staging {
    api: &'static Api,
    gpu: AgentHandle,
    /// The CPU agent and its pool of pinned memory. `None` if it has no such pool.
    host: Option<(AgentHandle, PoolHandle)>,
    pinned: Option<Pinned>,
    /// Signals that no copy uses, with the value 0 or less. Each copy has its own: without PCIe atomics, a copy engine writes
    /// the value that the signal had when the copy was requested, minus 1 (BlitSdma::SubmitCommand in amd_blit_sdma.cpp).
    signals: Vec<SignalHandle>,
    abandoned: Vec<Abandoned>,
    /// The buffer for synchronous copies.
    heap: Vec<u8>,
    write_back: Option<WriteBack>,
}

/// Writes back and invalidates the caches of the GPU. Copies read memory, but writes of kernels may still be in the
/// GPU's L2 cache: HIP's dispatches end with a release of agent scope unless the host waits for them, and the copy engine of
/// gfx9 does not flush caches (CLR, rocvirtual.cpp; ROCr, amd_blit_sdma.cpp).
///
/// A kernel of ROCr copies some bytes from pinned memory to pinned memory. Its packet has fences of system scope
/// (`kDispatchPacketHeader` in amd_blit_kernel.cpp): the command processor writes back all dirty lines, whichever queue's
/// kernels wrote them, and invalidates clean ones, so that kernels see data that was copied to the device. ROCr's queue for this
/// exists as soon as a code object is loaded. A queue of devprof's own would cost up to 177 MiB of the GPU's memory (for the
/// state of interrupted waves) and one of the few hardware queues.
#[derive(Clone, Copy)]
struct WriteBack {
    pinned: Pinned,
    signal: SignalHandle,
}

#[derive(Clone, Copy)]
struct Pinned {
    base: *mut u8,
    size: usize,
}

/// A buffer with copies that were not complete at their time limit, and their signals.
struct Abandoned {
    pinned: Pinned,
    signals: Vec<SignalHandle>,
}

/// A copy between device memory and the pinned buffer.
struct DeviceCopy {
    device: Range<u64>,
    /// In the buffer.
    offset: usize,
}

impl DeviceCopy {
    /// Where it ends in the buffer.
    fn end(&self) -> usize {
        self.offset + length(&self.device)
    }
}

#[derive(Clone, Copy)]
enum Direction {
    FromDevice,
    ToDevice,
}

// SAFETY: the pinned memory belongs to its `Staging` alone, and HSA's functions may be called from any thread.
unsafe impl Send for Pinned {}

impl Staging {
    /// `cpu`: the agent whose memory is used. Does not allocate memory.
    pub fn new(api: &'static Api, gpu: AgentHandle, cpu: Option<AgentHandle>) -> Staging {
        let fine = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
        let host = cpu.and_then(|cpu| pools::find(api, cpu, fine).map(|pool| (cpu, pool)));
        Staging {
            api,
            gpu,
            host,
            pinned: None,
            signals: Vec::new(),
            abandoned: Vec::new(),
            heap: Vec::new(),
            write_back: None,
        }
    }

    /// The size of the largest piece that [`copy`](Staging::copy) copies through the pinned buffer, if it copies
    /// `total` bytes: smaller than [`BATCH`] if the buffer cannot grow.
    pub fn largest_piece(&mut self, total: usize) -> usize {
        self.reserve(total).map_or(BATCH, |pinned| pinned.size)
    }

    /// Copies `pieces` of device memory. For each it calls `take` with the number of the piece and its bytes, or the
    /// error. Each piece must be non-empty, no larger than [`BATCH`], and in memory that is allocated on the agent.
    /// Fails if no memory can be allocated, or if a batch takes longer than `limit`.
    pub fn copy(
        &mut self,
        pieces: &[Range<u64>],
        limit: Duration,
        take: Take,
    ) -> Result<(), Error> {
        let largest = self.largest_piece(end(pieces));
        let mut first = 0;
        while first < pieces.len() {
            let offsets = offsets(&pieces[first..], largest);
            let batch = &pieces[first..first + offsets.len()];
            let copied = self.copy_batch(batch, &offsets, limit)?;
            for (n, piece) in batch.iter().enumerate() {
                let size = length(piece);
                let bytes =
                    match (copied[n], self.pinned) {
                        // SAFETY: the bytes are in the buffer, their copy is complete, and `take` does not keep them.
                        (true, Some(pinned)) => Ok(unsafe {
                            std::slice::from_raw_parts(pinned.base.add(offsets[n]), size)
                        }),
                        _ => self.copy_one(piece),
                    };
                take(first + n, bytes);
            }
            first += batch.len();
        }
        Ok(())
    }

    /// Writes the caches back, see [`WriteBack`]. Returns false if that takes longer than `limit`.
    pub fn write_back(&mut self, limit: Duration) -> Result<bool, Error> {
        const FUNCTION: &str = "hsa_amd_memory_async_copy_on_engine";
        let start = Instant::now();
        let write_back = self.write_back.take();
        let write_back = write_back.map_or_else(|| self.new_write_back(), Ok)?;
        let WriteBack { pinned, signal } = *self.write_back.insert(write_back);
        // An earlier copy still uses the signal.
        if self.wait(signal, start, limit) > 0 {
            return Ok(false);
        }
        // SAFETY: inside the buffer.
        let to = unsafe { pinned.base.add(LINE) };
        // SAFETY: the signal is this agent's, and no copy uses it now. Both ends are in the buffer, which the agent may access,
        // and which exists until the copy is complete.
        let status = self.request(signal, || unsafe {
            self.copy_by_kernel(to.cast(), pinned.base.cast(), LINE, signal)
        });
        check(FUNCTION, status)?;
        match self.wait(signal, start, limit) {
            // The copy has failed.
            ..0 => Err(failed(FUNCTION, Status::ERROR)),
            value => Ok(value == 0),
        }
    }

    fn new_write_back(&mut self) -> Result<WriteBack, Error> {
        let no_pool = || failed("hsa_amd_agent_iterate_memory_pools", Status::ERROR);
        let (_, pool) = self.host.ok_or_else(no_pool)?;
        let size = 2 * LINE;
        let base = self.allocate(pool, size)?;
        let pinned = Pinned { base, size };
        let signal = self.signal().inspect_err(|_| self.free(pinned))?;
        Ok(WriteBack { pinned, signal })
    }

    /// Sets every byte of each range in one batch. The ranges must not overlap, and must be in memory that is allocated
    /// on the agent. Returns the indices of the ranges that could not be set. Fails if the batch takes longer than
    /// `limit`.
    pub fn fill(
        &mut self,
        ranges: &[(Range<u64>, u8)],
        limit: Duration,
    ) -> Result<Vec<(usize, Error)>, Error> {
        let filled = self.fill_batch(ranges, limit)?;
        let mut failed = Vec::new();
        for (n, (range, byte)) in ranges.iter().enumerate() {
            if !filled[n]
                && let Err(error) = self.fill_one(range, *byte)
            {
                failed.push((n, error));
            }
        }
        Ok(failed)
    }

    /// Writes at most [`MIN_SIZE`] bytes to memory that is allocated on the agent. Fails if the copy takes longer than
    /// `limit`.
    pub fn write(&mut self, address: u64, bytes: &[u8], limit: Duration) -> Result<(), Error> {
        let size = bytes.len();
        self.take_back();
        if let Some(pinned) = self.reserve(size).filter(|pinned| pinned.size >= size) {
            // SAFETY: inside the buffer, and no copy uses it now.
            unsafe { pinned.base.copy_from_nonoverlapping(bytes.as_ptr(), size) };
            let copy = DeviceCopy {
                device: address..address + size as u64,
                offset: 0,
            };
            if self.run(&[copy], Direction::ToDevice, pinned, limit)? == [true] {
                return Ok(());
            }
        }
        // SAFETY: `bytes` has `size` bytes, and the destination is in memory that is allocated on the agent.
        let status = unsafe {
            (self.api.hsa_memory_copy)(address as *mut c_void, bytes.as_ptr().cast(), size)
        };
        check("hsa_memory_copy", status)
    }

    /// Sets the bytes of the ranges with concurrent copies, and waits. The pinned buffer has an area for each value of
    /// a byte, which is the source of all copies with that value. Returns which of the ranges were set.
    fn fill_batch(
        &mut self,
        ranges: &[(Range<u64>, u8)],
        limit: Duration,
    ) -> Result<Vec<bool>, Error> {
        let mut values: Vec<u8> = Vec::new();
        for (_, byte) in ranges {
            if !values.contains(byte) {
                values.push(*byte);
            }
        }
        let longest = ranges.iter().map(|(range, _)| length(range)).max();
        let longest = longest.unwrap_or(0).next_multiple_of(LINE);
        let mut filled = vec![false; ranges.len()];
        self.take_back();
        let Some(pinned) = self.reserve(longest.saturating_mul(values.len())) else {
            return Ok(filled);
        };
        // All areas have the same size, a multiple of LINE, which is 0 if there are very many.
        let area = longest.min(pinned.size / values.len().max(1) / LINE * LINE);
        if area == 0 {
            return Ok(filled);
        }
        for (n, &value) in values.iter().enumerate() {
            // SAFETY: inside the buffer, and no copy uses it now.
            unsafe { pinned.base.add(n * area).write_bytes(value, area) };
        }
        let mut copies = Vec::new();
        let mut owners = Vec::new();
        for (n, (range, byte)) in ranges.iter().enumerate() {
            let from = values.iter().position(|value| value == byte);
            let from = area * from.unwrap_or(0);
            for start in range.clone().step_by(area) {
                owners.push(n);
                copies.push(DeviceCopy {
                    device: start..range.end.min(start + area as u64),
                    offset: from,
                });
            }
        }
        let copied = self.run(&copies, Direction::ToDevice, pinned, limit)?;
        filled.fill(true);
        for (n, copied) in owners.into_iter().zip(copied) {
            filled[n] &= copied;
        }
        Ok(filled)
    }

    /// Sets every byte of `range` synchronously.
    fn fill_one(&mut self, range: &Range<u64>, byte: u8) -> Result<(), Error> {
        let most = length(range).min(BATCH);
        let bytes = self.heap(most, byte)?;
        for start in range.clone().step_by(BATCH) {
            let size = length(&(start..range.end)).min(BATCH);
            // SAFETY: `size` is at most the size of `bytes`, and the destination is a part of the range.
            let status =
                unsafe { (self.api.hsa_memory_copy)(start as *mut c_void, bytes.cast(), size) };
            check("hsa_memory_copy", status)?;
        }
        Ok(())
    }

    /// Copies one piece synchronously.
    fn copy_one(&mut self, piece: &Range<u64>) -> Result<&[u8], Error> {
        let size = length(piece);
        let to = self.heap(size, 0)?;
        // SAFETY: `to` has `size` bytes, and the piece is in memory that is allocated on the agent.
        let status =
            unsafe { (self.api.hsa_memory_copy)(to.cast(), piece.start as *const c_void, size) };
        if status == Status::SUCCESS {
            return Ok(&self.heap[..size]);
        }
        if query::is_iterating() {
            let both = "hsa_amd_memory_async_copy and hsa_memory_copy";
            return Err(failed(both, status));
        }
        // SAFETY: as above.
        if unsafe { hip::copy_to_host(to.cast(), piece.start as *const c_void, size) } {
            return Ok(&self.heap[..size]);
        }
        let all = "hsa_amd_memory_async_copy, hsa_memory_copy and hipMemcpy";
        Err(failed(all, status))
    }

    /// A buffer that is not pinned, of `size` bytes with the value `byte`.
    fn heap(&mut self, size: usize, byte: u8) -> Result<*mut u8, Error> {
        self.heap.clear();
        self.heap
            .try_reserve(size)
            .map_err(|_| failed("malloc", Status::ERROR))?;
        self.heap.resize(size, byte);
        Ok(self.heap.as_mut_ptr())
    }

    /// The pinned buffer, with at least `size` bytes, up to [`BATCH`]. If it is too small, a larger one is allocated
    /// before it is freed. If that fails, the smaller one is kept.
    fn reserve(&mut self, size: usize) -> Option<Pinned> {
        let (_, pool) = self.host?;
        let size = size.min(BATCH).next_power_of_two().max(MIN_SIZE);
        if self.pinned.is_none_or(|pinned| pinned.size < size)
            && let Ok(base) = self.allocate(pool, size)
            && let Some(old) = self.pinned.replace(Pinned { base, size })
        {
            self.free(old);
        }
        self.pinned
    }

    fn allocate(&self, pool: PoolHandle, size: usize) -> Result<*mut u8, Error> {
        let base = pools::allocate(self.api, pool, size)?;
        // SAFETY: one agent, no flags, memory of a pool.
        let status =
            unsafe { (self.api.hsa_amd_agents_allow_access)(1, &self.gpu, std::ptr::null(), base) };
        if let Err(error) = check("hsa_amd_agents_allow_access", status) {
            pools::free(self.api, base);
            return Err(error);
        }
        Ok(base.cast())
    }

    /// All copies to the buffer must be complete.
    fn free(&self, pinned: Pinned) {
        pools::free(self.api, pinned.base.cast());
    }

    /// Copies the pieces to their offsets in the pinned buffer. Returns which of them were copied.
    fn copy_batch(
        &mut self,
        pieces: &[Range<u64>],
        offsets: &[usize],
        limit: Duration,
    ) -> Result<Vec<bool>, Error> {
        let copy = |(device, &offset): (&Range<u64>, &usize)| DeviceCopy {
            device: device.clone(),
            offset,
        };
        let copies: Vec<DeviceCopy> = pieces.iter().zip(offsets).map(copy).collect();
        let end = copies.iter().map(DeviceCopy::end).max().unwrap_or(0);
        let start = Instant::now();
        self.take_back();
        if !self.engines_are_stuck() {
            let first = (limit / 2).max(PATIENCE).min(limit);
            let copied = self.read_batch(&copies, end, first);
            if !self.engines_are_stuck() || first == limit {
                return copied;
            }
        }
        self.read_batch(&copies, end, limit.saturating_sub(start.elapsed()))
    }

    /// Executes copies from the device to the pinned buffer, of which they need `end` bytes.
    fn read_batch(
        &mut self,
        copies: &[DeviceCopy],
        end: usize,
        limit: Duration,
    ) -> Result<Vec<bool>, Error> {
        // An earlier batch may have abandoned its buffer.
        let pinned = self.pinned.or_else(|| self.reserve(end));
        match pinned.filter(|pinned| pinned.size >= end) {
            Some(pinned) => self.run(copies, Direction::FromDevice, pinned, limit),
            None => Ok(vec![false; copies.len()]),
        }
    }

    /// Executes copies between the device and `pinned`, this agent's buffer, and waits. The copies must be inside the
    /// buffer. Returns which of them were executed.
    fn run(
        &mut self,
        copies: &[DeviceCopy],
        direction: Direction,
        pinned: Pinned,
        limit: Duration,
    ) -> Result<Vec<bool>, Error> {
        let start = Instant::now();
        let mut copied = Vec::new();
        for some in copies.chunks(CONCURRENT) {
            let limit = limit.saturating_sub(start.elapsed());
            copied.extend(self.run_concurrently(some, direction, pinned, limit)?);
        }
        Ok(copied)
    }

    /// As [`run`](Staging::run), for at most [`CONCURRENT`] copies. If they are not complete at the time limit, the
    /// buffer is abandoned.
    fn run_concurrently(
        &mut self,
        copies: &[DeviceCopy],
        direction: Direction,
        pinned: Pinned,
        limit: Duration,
    ) -> Result<Vec<bool>, Error> {
        let Some((cpu, _)) = self.host else {
            return Ok(vec![false; copies.len()]);
        };
        let submitted: Vec<Option<SignalHandle>> = copies
            .iter()
            .map(|copy| self.submit(copy, direction, pinned, cpu))
            .collect();
        let start = Instant::now();
        let (mut copied, mut pending) = (Vec::new(), Vec::new());
        for signal in submitted {
            // A copy that was refused.
            let Some(signal) = signal else {
                copied.push(false);
                continue;
            };
            let value = self.wait(signal, start, limit);
            // A copy that fails makes the value negative.
            copied.push(value == 0);
            if value > 0 {
                pending.push(signal)
            } else {
                self.signals.push(signal)
            }
        }
        if !pending.is_empty() {
            self.abandon(pinned, pending);
            return Err(Error::TimedOut("a copy (hsa_amd_memory_async_copy)"));
        }
        Ok(copied)
    }

    /// Requests a copy. Returns the signal that it completes; `None` if it was refused.
    fn submit(
        &mut self,
        copy: &DeviceCopy,
        direction: Direction,
        pinned: Pinned,
        cpu: AgentHandle,
    ) -> Option<SignalHandle> {
        let signal = self.signal().ok()?;
        let size = length(&copy.device);
        let device = copy.device.start as *mut c_void;
        // SAFETY: inside the buffer.
        let host = unsafe { pinned.base.add(copy.offset) }.cast::<c_void>();
        let (to, from) = match direction {
            Direction::FromDevice => (host, device),
            Direction::ToDevice => (device, host),
        };
        // SAFETY: the signal is this agent's, and no copy uses it now. One end is in the agent's allocated memory (the
        // caller's promise), the other in the buffer, which the agent may access. Both exist until the copy is complete
        // or abandoned.
        let status = self.request(signal, || unsafe {
            if self.engines_are_stuck() {
                return self.copy_by_kernel(to, from, size, signal);
            }
            let (to_agent, from_agent) = match direction {
                Direction::FromDevice => (cpu, self.gpu),
                Direction::ToDevice => (self.gpu, cpu),
            };
            let (count, dependencies) = (0, std::ptr::null());
            let copy = self.api.hsa_amd_memory_async_copy;
            copy(
                to,
                to_agent,
                from,
                from_agent,
                size,
                count,
                dependencies,
                signal,
            )
        });
        if status != Status::SUCCESS {
            self.signals.push(signal);
            return None;
        }
        Some(signal)
    }

    /// Requests a copy, which completes `signal`. If it is refused, nothing does, and the signal's value is 0 again.
    fn request(&self, signal: SignalHandle, copy: impl FnOnce() -> Status) -> Status {
        // SAFETY: the signal is this agent's.
        let set = |value| unsafe { (self.api.hsa_signal_store_relaxed)(signal, value) };
        set(1);
        let status = copy();
        if status != Status::SUCCESS {
            set(0);
        }
        status
    }

    /// Requests a copy by a kernel of ROCr.
    ///
    /// # Safety
    /// The agent may access both ends, which exist until the copy is complete. No other copy uses the signal.
    unsafe fn copy_by_kernel(
        &self,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        signal: SignalHandle,
    ) -> Status {
        // Between two agents that are the same, and unless an engine is forced, a kernel copies
        // (GpuAgent::DmaCopyOnEngine).
        // SAFETY: the caller's promise.
        unsafe {
            (self.api.hsa_amd_memory_async_copy_on_engine)(
                to,
                self.gpu,
                from,
                self.gpu,
                size,
                0,
                std::ptr::null(),
                signal,
                FIRST_ENGINE,
                false,
            )
        }
    }

    /// Waits until a copy's signal is less than 1, until `limit` after `start` at most. Returns its value.
    fn wait(&self, signal: SignalHandle, start: Instant, limit: Duration) -> SignalValue {
        loop {
            let value = self.api.wait_for_signal(signal, WAIT_SLICE);
            let elapsed = start.elapsed();
            if value < 1 || elapsed >= limit {
                return value;
            }
            // The wait takes at most about an eighth longer than the copies.
            std::thread::sleep((elapsed / 8).min(LONGEST_PAUSE));
        }
    }

    /// The device may still use the buffer and the signals: they can neither be used nor freed until the copies are
    /// complete.
    fn abandon(&mut self, pinned: Pinned, signals: Vec<SignalHandle>) {
        self.pinned = None;
        self.abandoned.push(Abandoned { pinned, signals });
    }

    /// Takes back abandoned buffers and signals whose copies are complete now.
    fn take_back(&mut self) {
        let abandoned = std::mem::take(&mut self.abandoned);
        for Abandoned { pinned, signals } in abandoned {
            let (signals, complete): (Vec<_>, Vec<_>) = signals
                .into_iter()
                .partition(|&signal| self.wait(signal, Instant::now(), Duration::ZERO) > 0);
            self.signals.extend(complete);
            if signals.is_empty() {
                self.free(pinned);
            } else {
                self.abandoned.push(Abandoned { pinned, signals });
            }
        }
    }

    /// Copies that were requested earlier are not complete: kernels copy instead of the copy engines.
    fn engines_are_stuck(&self) -> bool {
        !self.abandoned.is_empty()
    }

    /// A signal that no copy uses.
    fn signal(&mut self) -> Result<SignalHandle, Error> {
        if let Some(signal) = self.signals.pop() {
            return Ok(signal);
        }
        self.api.create_signal(0)
    }

    /// Frees all memory and signals. HSA must be initialized. A `Staging` that is dropped instead leaks them.
    pub fn release(mut self) {
        self.take_back();
        if let Some(pinned) = self.pinned.take() {
            self.free(pinned);
        }
        // The GPU may still use the others.
        if let Some(WriteBack { pinned, signal }) = self.write_back.take()
            && self.wait(signal, Instant::now(), Duration::ZERO) <= 0
        {
            self.free(pinned);
            self.signals.push(signal);
        }
        for signal in std::mem::take(&mut self.signals) {
            self.api.destroy_signal(signal);
        }
    }
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

/// The offsets of the first pieces in the buffer: as many as fit into `size` bytes, at least one.
fn offsets(pieces: &[Range<u64>], size: usize) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut end: usize = 0;
    for piece in pieces {
        let start = end.next_multiple_of(LINE);
        end = start + length(piece);
        if end > size && !offsets.is_empty() {
            break;
        }
        offsets.push(start);
    }
    offsets
}

/// The bytes that the pieces need in the buffer.
fn end(pieces: &[Range<u64>]) -> usize {
    let add = |end: usize, piece| end.next_multiple_of(LINE).saturating_add(length(piece));
    pieces.iter().fold(0, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_contains_as_many_pieces_as_fit() {
        let size = BATCH as u64;
        assert_eq!(offsets(&[0..100, 200..264, 300..301], BATCH), [0, 128, 192]);
        assert_eq!(offsets(&[0..size, 0..1], BATCH), [0]);
        assert_eq!(
            offsets(&[0..size / 2, 0..size / 2, 0..1], BATCH),
            [0, BATCH / 2]
        );
        assert_eq!(
            offsets(&[0..size - 64, 0..64, 0..1], BATCH),
            [0, BATCH - 64]
        );
        assert_eq!(offsets(&[0..100, 0..100, 0..100], 256), [0, 128]);
        assert_eq!(offsets(&[0..100, 0..1], 64), [0]);
        assert_eq!(offsets(&[], BATCH), []);
    }

    #[test]
    fn the_buffer_has_memory_for_all_pieces() {
        assert_eq!(end(&[]), 0);
        assert_eq!(end(&[0..100, 200..264, 300..301]), 193);
    }
}
