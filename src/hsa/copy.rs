//! Copies from device memory: one pinned staging buffer and one signal an agent, made on first use and kept for every
//! later drain; asynchronous copies, one wait. Where pinned memory or the asynchronous copy cannot be had,
//! `hsa_memory_copy` and then `hipMemcpy` do it one range at a time. A small range of memory that the host can reach
//! is read in place: submitting a copy and waiting for it would take longer.

use super::api::{Api, Error, ok};
use super::hip;
use super::types::*;
use std::ffi::c_void;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long a wait for copies holds its processor before it gives it to others for a while: ROCr waits by looking all the
/// time, where it has no interrupts and in the first moments where it has.
const WAIT_SLICE: Duration = Duration::from_micros(20);
/// And for how long, at the most.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Up to so many bytes are read in place where that is possible. Over PCIe a read of 64 bytes takes about a
/// microsecond, as much as a tenth of what a copy costs.
const IN_PLACE: usize = 0;

/// Where copies from one agent land.
pub struct Staging {
    api: &'static Api,
    gpu: AgentHandle,
    /// The agent that the pinned memory belongs to, and its pool. `None`: there is no such pool.
    host: Option<(AgentHandle, PoolHandle)>,
    pinned: Option<Pinned>,
    signal: Option<SignalHandle>,
    /// What was not copied asynchronously.
    heap: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Pinned {
    base: *mut u8,
    size: usize,
}

// SAFETY: the pinned memory belongs to its `Staging` alone, and HSA's functions may be called from any thread.
unsafe impl Send for Pinned {}

/// Where the bytes of a range are, as an offset, or why they are nowhere.
#[derive(Clone, Copy)]
enum Place {
    Heap(usize),
    Pinned(usize),
    Failed(Status),
}

impl Staging {
    /// `cpu` is the agent whose memory is used. Allocates nothing yet.
    pub fn new(api: &'static Api, gpu: AgentHandle, cpu: Option<AgentHandle>) -> Staging {
        let host = cpu.and_then(|cpu| pinned_pool(api, cpu).map(|pool| (cpu, pool)));
        Staging {
            api,
            gpu,
            host,
            pinned: None,
            signal: None,
            heap: Vec::new(),
        }
    }

    /// Copies `ranges` of device memory and gives the bytes of each, or an error for a range that could not be copied.
    /// Every range must lie in memory that is allocated on the agent. `Err` when there is no memory to copy to, or the
    /// copies did not end within `limit`.
    pub fn copy(&mut self, ranges: &[Range<u64>], limit: Duration) -> Result<Copied<'_>, Error> {
        self.heap.clear();
        let mut places = Vec::with_capacity(ranges.len());
        let mut batch = Vec::new();
        for (n, range) in ranges.iter().enumerate() {
            let size = length(range);
            #[allow(clippy::absurd_extreme_comparisons, reason = "temporary")]
            let host = if size <= IN_PLACE {
                host_address(self.api, range)
            } else {
                None
            };
            places.push(match host {
                Some(host) => {
                    let at = self.heap.len();
                    let room = self.grow(size)?;
                    // SAFETY: HSA says that the host can read the whole range there, and `room` has its size. The
                    // device may write meanwhile: any value of the bytes will do.
                    unsafe { std::ptr::copy_nonoverlapping(host, room, size) };
                    Place::Heap(at)
                }
                None => {
                    batch.push(n);
                    Place::Failed(Status::ERROR)
                }
            });
        }
        if !batch.is_empty() {
            self.copy_batch(ranges, &mut places, &batch, limit)?;
        }
        for n in batch {
            if let Place::Failed(_) = places[n] {
                let size = length(&ranges[n]);
                let at = self.heap.len();
                let room = self.grow(size)?;
                places[n] = match copy_one(self.api, room, ranges[n].start, size) {
                    Ok(()) => Place::Heap(at),
                    Err(status) => Place::Failed(status),
                };
            }
        }
        let pinned = match self.pinned {
            // SAFETY: the buffer has that size and nobody writes to it until the borrow ends: all copies are done.
            Some(pinned) => unsafe { std::slice::from_raw_parts(pinned.base, pinned.size) },
            None => &[],
        };
        Ok(Copied {
            heap: &self.heap,
            pinned,
            places,
        })
    }

    /// Sets every byte of `range`, which lies in memory that is allocated on the agent.
    pub fn fill(&mut self, range: &Range<u64>, byte: u8) -> Result<(), Error> {
        self.heap.clear();
        let size = length(range);
        // From pinned memory no page has to be locked first.
        let bytes = match self.reserve(size) {
            Some((_, pinned)) => pinned.base,
            None => self.grow(size)?,
        };
        // SAFETY: `bytes` has that size, and nobody reads it now; so has the range.
        let status = unsafe {
            bytes.write_bytes(byte, size);
            (self.api.hsa_memory_copy)(range.start as *mut c_void, bytes.cast(), size)
        };
        ok("hsa_memory_copy", status)
    }

    /// Room for `size` more bytes at the heap buffer's end.
    fn grow(&mut self, size: usize) -> Result<*mut u8, Error> {
        let at = self.heap.len();
        self.heap
            .try_reserve(size)
            .map_err(|_| Error::Call("malloc", Status::ERROR))?;
        self.heap.resize(at + size, 0);
        Ok(self.heap[at..].as_mut_ptr())
    }

    /// The pinned buffer, with room for `size` bytes. A larger one is allocated before the old one is given back.
    fn reserve(&mut self, size: usize) -> Option<(AgentHandle, Pinned)> {
        let (cpu, pool) = self.host?;
        if let Some(pinned) = self.pinned.filter(|pinned| pinned.size >= size) {
            return Some((cpu, pinned));
        }
        let size = size.checked_next_power_of_two()?.max(1 << 16);
        let pinned = Pinned {
            base: self.allocate(pool, size).ok()?,
            size,
        };
        if let Some(old) = self.pinned.replace(pinned) {
            self.free(old);
        }
        Some((cpu, pinned))
    }

    fn allocate(&self, pool: PoolHandle, size: usize) -> Result<*mut u8, Error> {
        let mut base = std::ptr::null_mut::<c_void>();
        // SAFETY: plain allocation from a pool that allows it.
        ok("hsa_amd_memory_pool_allocate", unsafe {
            (self.api.hsa_amd_memory_pool_allocate)(pool, size, 0, &raw mut base)
        })?;
        // SAFETY: one agent, no flags, memory of a pool.
        let status =
            unsafe { (self.api.hsa_amd_agents_allow_access)(1, &self.gpu, std::ptr::null(), base) };
        if let Err(error) = ok("hsa_amd_agents_allow_access", status) {
            // SAFETY: allocated just above and used by nobody.
            unsafe { (self.api.hsa_amd_memory_pool_free)(base) };
            return Err(error);
        }
        Ok(base.cast())
    }

    fn free(&self, pinned: Pinned) {
        // SAFETY: allocated from a pool by `allocate`; all copies into it are done. A failure leaks it, which is all
        // that can be done.
        unsafe { (self.api.hsa_amd_memory_pool_free)(pinned.base.cast()) };
    }

    /// Copies the ranges numbered in `batch` at once and waits. What could not be copied keeps its place.
    fn copy_batch(
        &mut self,
        ranges: &[Range<u64>],
        places: &mut [Place],
        batch: &[usize],
        limit: Duration,
    ) -> Result<(), Error> {
        let mut offsets = Vec::with_capacity(batch.len());
        let mut end = 0usize;
        for &n in batch {
            offsets.push(end);
            // Aligned to a cache line, as the device's copy kernels like it.
            let Some(next) = end
                .checked_add(length(&ranges[n]))
                .and_then(|end| end.checked_next_multiple_of(64))
            else {
                return Ok(());
            };
            end = next;
        }
        let Some((cpu, pinned)) = self.reserve(end) else {
            return Ok(());
        };
        let Ok(signal) = self.signal() else {
            return Ok(());
        };
        let wanted = batch.len() as SignalValue;
        // SAFETY: the signal is ours and no copy uses it now.
        unsafe { (self.api.hsa_signal_store_relaxed)(signal, wanted) };
        let mut submitted = Vec::with_capacity(batch.len());
        for (&n, &offset) in batch.iter().zip(&offsets) {
            // SAFETY: source inside the agent's allocated memory (the caller's promise), destination inside the
            // buffer (`reserve`), both alive until the wait below is over.
            let status = unsafe {
                (self.api.hsa_amd_memory_async_copy)(
                    pinned.base.add(offset).cast(),
                    cpu,
                    ranges[n].start as *const c_void,
                    self.gpu,
                    length(&ranges[n]),
                    0,
                    std::ptr::null(),
                    signal,
                )
            };
            match status {
                Status::SUCCESS => submitted.push((n, offset)),
                refused => places[n] = Place::Failed(refused),
            }
        }
        // The copies that were refused leave the signal above 0 by their number.
        let rest = wanted - submitted.len() as SignalValue;
        let start = Instant::now();
        loop {
            // SAFETY: the signal is ours. The timeout is a hint in ticks of HSA's clock, at least a nanosecond each.
            let value = unsafe {
                (self.api.hsa_signal_wait_scacquire)(
                    signal,
                    SIGNAL_CONDITION_LT,
                    rest + 1,
                    WAIT_SLICE.as_nanos() as u64,
                    WAIT_STATE_BLOCKED,
                )
            };
            if value == rest {
                submitted
                    .into_iter()
                    .for_each(|(n, offset)| places[n] = Place::Pinned(offset));
                return Ok(());
            }
            if value < rest {
                // A copy that fails on its way makes the value negative; which one, HSA does not say, and others may
                // still be under way: neither buffer nor signal can be used or freed any more.
                self.pinned = None;
                self.signal = None;
                return Ok(());
            }
            let elapsed = start.elapsed();
            if elapsed >= limit {
                // As above: the device may still write.
                self.pinned = None;
                self.signal = None;
                return Err(Error::Call(
                    "waiting for hsa_amd_memory_async_copy",
                    Status::ERROR,
                ));
            }
            // An eighth more than it has to take.
            std::thread::sleep((elapsed / 8).min(LONGEST_PAUSE));
        }
    }

    fn signal(&mut self) -> Result<SignalHandle, Error> {
        if let Some(signal) = self.signal {
            return Ok(signal);
        }
        let mut signal = SignalHandle(0);
        // SAFETY: no consumers named: any agent may use it.
        ok("hsa_signal_create", unsafe {
            (self.api.hsa_signal_create)(0, 0, std::ptr::null(), &raw mut signal)
        })?;
        self.signal = Some(signal);
        Ok(signal)
    }

    /// Gives everything back to HSA. To be called while HSA is alive; a `Staging` that is dropped without it leaks.
    pub fn release(mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.free(pinned);
        }
        if let Some(signal) = self.signal.take() {
            // SAFETY: created by `signal`, and no copy uses it.
            unsafe { (self.api.hsa_signal_destroy)(signal) };
        }
    }
}

/// The bytes of the ranges given to [`Staging::copy`], by their position there.
pub struct Copied<'a> {
    heap: &'a [u8],
    pinned: &'a [u8],
    places: Vec<Place>,
}

impl<'a> Copied<'a> {
    /// The bytes of range `n`, whose size is `size`.
    pub fn get(&self, n: usize, size: usize) -> Result<&'a [u8], Error> {
        match self.places[n] {
            Place::Heap(at) => Ok(&self.heap[at..][..size]),
            Place::Pinned(at) => Ok(&self.pinned[at..][..size]),
            Place::Failed(status) => Err(Error::Call(
                "hsa_amd_memory_async_copy, hsa_memory_copy and hipMemcpy",
                status,
            )),
        }
    }
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

/// Where the host can read the memory at `range`, if it can: one allocation of HSA's, which knows the host's address.
fn host_address(api: &Api, range: &Range<u64>) -> Option<*const u8> {
    let mut info = std::mem::MaybeUninit::<PointerInfo>::zeroed();
    // SAFETY: `info` is writable and its first member holds its size, as the header asks.
    let info = unsafe {
        (*info.as_mut_ptr()).size = size_of::<PointerInfo>() as u32;
        let pointer = range.start as *const c_void;
        let status =
            (api.hsa_amd_pointer_info)(pointer, info.as_mut_ptr(), 0, std::ptr::null_mut(), 0);
        if status != Status::SUCCESS {
            return None;
        }
        // All fields are plain numbers and were zero before; `registered` is a C bool.
        info.assume_init()
    };
    let offset = usize::try_from(range.start.checked_sub(info.agent_base as u64)?).ok()?;
    let end = offset.checked_add(length(range))?;
    let whole = info.kind == POINTER_TYPE_HSA && !info.host_base.is_null() && end <= info.bytes;
    whole.then(|| info.host_base.cast::<u8>().wrapping_add(offset))
}

/// One range by the synchronous ways.
fn copy_one(api: &Api, to: *mut u8, from: u64, size: usize) -> Result<(), Status> {
    // SAFETY: `to` has room for `size` bytes, `from` lies in memory that is allocated on an agent.
    let status = unsafe { (api.hsa_memory_copy)(to.cast(), from as *const c_void, size) };
    if status == Status::SUCCESS {
        return Ok(());
    }
    // SAFETY: as above.
    if unsafe { hip::copy_to_host(to.cast(), from as *const c_void, size) } {
        Ok(())
    } else {
        Err(status)
    }
}

/// A pool of fine-grained host memory that allows allocation.
fn pinned_pool(api: &Api, cpu: AgentHandle) -> Option<PoolHandle> {
    struct Search<'a> {
        api: &'a Api,
        found: Option<PoolHandle>,
    }
    unsafe extern "C" fn visit(pool: PoolHandle, data: *mut c_void) -> Status {
        // SAFETY: `data` is the search that `pinned_pool` passed, alive and not otherwise used during the call.
        let search = unsafe { &mut *data.cast::<Search>() };
        let (mut segment, mut flags, mut allowed) = (u32::MAX, 0u32, false);
        let info = search.api.hsa_amd_memory_pool_get_info;
        // SAFETY: the attributes are a 32-bit enumeration, a u32 and a bool.
        let known = unsafe {
            info(pool, POOL_INFO_SEGMENT, (&raw mut segment).cast()) == Status::SUCCESS
                && info(pool, POOL_INFO_GLOBAL_FLAGS, (&raw mut flags).cast()) == Status::SUCCESS
                && info(pool, POOL_INFO_ALLOC_ALLOWED, (&raw mut allowed).cast()) == Status::SUCCESS
        };
        if known && segment == SEGMENT_GLOBAL && flags & POOL_FLAG_FINE_GRAINED != 0 && allowed {
            search.found = Some(pool);
            return Status::INFO_BREAK;
        }
        Status::SUCCESS
    }
    let mut search = Search { api, found: None };
    // SAFETY: `visit` gets back the pointer given here. No pool found is an answer, whatever the status says.
    unsafe { (api.hsa_amd_agent_iterate_memory_pools)(cpu, visit, (&raw mut search).cast()) };
    search.found
}
