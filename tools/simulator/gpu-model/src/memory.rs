//! Global memory: the allocated address ranges, and accesses that are checked against these ranges.
//!
//! The bytes belong to ROCr or to the user of the library. The byte at GPU virtual address `a` is at host address
//! `base + a`, unless the range has its own host address ([`Memory::allocated_at`]). Host threads and waves of several
//! queues use the same bytes at the same time, so every access is a host atomic: naturally aligned accesses do not tear,
//! and an atomic instruction of the GPU is an atomic operation of the host.

use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::fault::Fault;

/// High half of the flat addresses of the workgroup's LDS.
pub const LDS_APERTURE: u32 = 0x4000_0000;
/// High half of the flat addresses of the lane's private segment.
pub const SCRATCH_APERTURE: u32 = 0x5000_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
    writable: bool,
    /// Host address minus GPU address.
    offset: usize,
}

const EMPTY: Span = Span {
    start: 1,
    end: 0,
    writable: false,
    offset: 0,
};

impl Span {
    fn contains(&self, address: u64, size: usize) -> bool {
        address >= self.start && address < self.end && self.end - address >= size as u64
    }

    /// Whether this range and an adjacent one can be accessed as one range.
    fn can_join(&self, other: &Span) -> bool {
        self.writable == other.writable && self.offset == other.offset
    }

    #[inline]
    fn host(&self, address: u64) -> *mut u8 {
        self.offset.wrapping_add(address as usize) as *mut u8
    }
}

/// The registry of allocated ranges.
#[derive(Debug, Default)]
pub struct Memory {
    spans: RwLock<Spans>,
    /// The number of changes so far. A [`View`] discards its cached ranges when this number has changed.
    generation: AtomicU64,
}

#[derive(Debug, Default)]
struct Spans {
    /// Host address of GPU address 0, for ranges without their own host address.
    base: usize,
    /// By start address. No two ranges overlap.
    by_start: BTreeMap<u64, Span>,
}

impl Memory {
    /// Memory without allocated ranges. GPU address 0 is at host address `base`.
    pub fn new(base: usize) -> Arc<Memory> {
        let memory = Memory::default();
        memory.set_base(base);
        Arc::new(memory)
    }

    /// Sets the host address of GPU address 0. Call this before any range is allocated.
    pub fn set_base(&self, base: usize) {
        self.write().base = base;
    }

    fn read(&self) -> RwLockReadGuard<'_, Spans> {
        self.spans.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Spans> {
        self.spans.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a range. Its bytes are at the base plus `address`.
    ///
    /// # Safety
    /// The host bytes of the range must stay mapped and readable (and writable, if `writable`) until [`Memory::freed`] has
    /// removed the range and all waves that ran at that time have ended. Other code may access the bytes only in ways that
    /// are allowed concurrently with atomic accesses.
    pub unsafe fn allocated(&self, address: u64, size: u64, writable: bool) {
        let base = self.read().base;
        self.insert(address, size, base, writable);
    }

    /// Registers a range whose bytes are at `host`.
    ///
    /// # Panics
    /// If `address`, `size` and `host` are not multiples of 8: an aligned access must be aligned on the host.
    ///
    /// # Safety
    /// See [`Memory::allocated`]. If a part of a range is replaced or freed, its bounds must also be multiples of 8: an
    /// aligned access must not cross a bound.
    pub unsafe fn allocated_at(&self, address: u64, size: u64, host: usize, writable: bool) {
        assert!((address | size | host as u64).is_multiple_of(8));
        self.insert(address, size, host.wrapping_sub(address as usize), writable);
    }

    fn insert(&self, start: u64, size: u64, offset: usize, writable: bool) {
        let end = start.saturating_add(size);
        if end == start {
            return;
        }
        let mut spans = self.write();
        remove(&mut spans.by_start, start, end);
        spans.by_start.insert(
            start,
            Span {
                start,
                end,
                writable,
                offset,
            },
        );
        self.generation.fetch_add(1, AcqRel);
    }

    /// Removes a range. It may be a part of an allocated range, or include several.
    pub fn freed(&self, address: u64, size: u64) {
        let mut spans = self.write();
        remove(&mut spans.by_start, address, address.saturating_add(size));
        self.generation.fetch_add(1, AcqRel);
    }

    /// A number that changes when a range is allocated or freed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// The largest range around `address` that can be accessed as one range. It may consist of several allocated ranges.
    fn span(&self, address: u64) -> Option<Span> {
        let spans = &self.read().by_start;
        let mut span = *spans.range(..=address).next_back()?.1;
        if address >= span.end {
            return None;
        }
        for (_, before) in spans.range(..span.start).rev() {
            if before.end != span.start || !span.can_join(before) {
                break;
            }
            span.start = before.start;
        }
        for (_, after) in spans.range(span.end..) {
            if after.start != span.end || !span.can_join(after) {
                break;
            }
            span.end = after.end;
        }
        Some(span)
    }

    /// The allocated range that contains `address`.
    pub fn allocation(&self, address: u64) -> Option<std::ops::Range<u64>> {
        let spans = &self.read().by_start;
        let span = spans.range(..=address).next_back()?.1;
        (address < span.end).then_some(span.start..span.end)
    }
}

/// Removes the addresses from `start` to `end` (exclusive) from all ranges.
fn remove(spans: &mut BTreeMap<u64, Span>, start: u64, end: u64) {
    let overlapping: Vec<Span> = spans
        .range(..end)
        .rev()
        .map(|(_, span)| *span)
        .take_while(|span| span.end > start)
        .collect();
    for span in overlapping {
        spans.remove(&span.start);
        if span.start < start {
            spans.insert(span.start, Span { end: start, ..span });
        }
        if span.end > end {
            spans.insert(end, Span { start: end, ..span });
        }
    }
}

fn fault(address: u64, size: usize, write: bool) -> Fault {
    Fault::Memory {
        address,
        size,
        write,
        lane: None,
    }
}

/// Memory that a lane can access, as integers and as consecutive dwords.
pub trait Storage {
    fn load_u8(&mut self, address: u64) -> Result<u8, Fault>;
    fn load_u16(&mut self, address: u64) -> Result<u16, Fault>;
    fn load_u32(&mut self, address: u64) -> Result<u32, Fault>;
    fn load_dwords(&mut self, address: u64, into: &mut [u32]) -> Result<(), Fault>;
    fn store_u8(&mut self, address: u64, value: u8) -> Result<(), Fault>;
    fn store_u16(&mut self, address: u64, value: u16) -> Result<(), Fault>;
    fn store_u32(&mut self, address: u64, value: u32) -> Result<(), Fault>;
    fn store_dwords(&mut self, address: u64, from: &[u32]) -> Result<(), Fault>;
    /// Atomically replaces the dword at `address` with the result of `change`. Returns the old value. `change` may be called
    /// more than once.
    fn update_u32(&mut self, address: u64, change: impl FnMut(u32) -> u32) -> Result<u32, Fault>;
    /// [`Storage::update_u32`] for 64 bits.
    fn update_u64(&mut self, address: u64, change: impl FnMut(u64) -> u64) -> Result<u64, Fault>;
}

/// One thread's access to memory. It caches recently used ranges.
pub struct View {
    memory: Arc<Memory>,
    generation: u64,
    recent: [Span; 8],
    oldest: usize,
}

macro_rules! access {
    ($vis:vis $load:ident, $store:ident, $int:ty, $atomic:ty) => {
        #[inline]
        $vis fn $load(&mut self, address: u64) -> Result<$int, Fault> {
            let pointer = self.host_pointer(address, size_of::<$int>(), false)?;
            if address.is_multiple_of(size_of::<$int>() as u64) {
                // SAFETY: the range is allocated, so it is mapped and readable (the contract of `Memory::allocated`), and
                // the pointer is aligned.
                return Ok(unsafe { (*pointer.cast::<$atomic>()).load(Acquire) });
            }
            let mut bytes = [0; size_of::<$int>()];
            for (n, byte) in bytes.iter_mut().enumerate() {
                *byte = self.load_byte(address + n as u64)?;
            }
            Ok(<$int>::from_le_bytes(bytes))
        }

        #[inline]
        $vis fn $store(&mut self, address: u64, value: $int) -> Result<(), Fault> {
            let pointer = self.host_pointer(address, size_of::<$int>(), true)?;
            if address.is_multiple_of(size_of::<$int>() as u64) {
                // SAFETY: the range is allocated and writable, and the pointer is aligned.
                unsafe { (*pointer.cast::<$atomic>()).store(value, Release) };
                return Ok(());
            }
            for (n, byte) in value.to_le_bytes().into_iter().enumerate() {
                self.store_byte(address + n as u64, byte)?;
            }
            Ok(())
        }
    };
}

macro_rules! update {
    ($update:ident, $int:ty, $atomic:ty) => {
        fn $update(
            &mut self,
            address: u64,
            mut change: impl FnMut($int) -> $int,
        ) -> Result<$int, Fault> {
            Fault::check_alignment(address, size_of::<$int>())?;
            let pointer = self.host_pointer(address, size_of::<$int>(), true)?;
            // SAFETY: the bytes are allocated and writable, and the pointer is aligned.
            let word = unsafe { &*pointer.cast::<$atomic>() };
            let mut old = word.load(Relaxed);
            while let Err(now) = word.compare_exchange_weak(old, change(old), AcqRel, Relaxed) {
                old = now;
            }
            Ok(old)
        }
    };
}

impl View {
    pub fn new(memory: Arc<Memory>) -> View {
        let mut view = View {
            generation: 0,
            recent: [EMPTY; 8],
            oldest: 0,
            memory,
        };
        view.clear_cache();
        view
    }

    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    #[cold]
    fn clear_cache(&mut self) {
        self.generation = self.memory.generation();
        self.recent = [EMPTY; 8];
    }

    /// The host address of an access. Fails if one of its bytes is not allocated. Returns null if the bytes are not
    /// contiguous on the host, which is impossible for an aligned access of at most 8 bytes ([`Memory::allocated_at`]).
    #[inline]
    fn host_pointer(&mut self, address: u64, size: usize, write: bool) -> Result<*mut u8, Fault> {
        if self.generation != self.memory.generation() {
            self.clear_cache();
        }
        for span in &self.recent {
            if span.contains(address, size) && (span.writable || !write) {
                return Ok(span.host(address));
            }
        }
        self.find(address, size, write)
    }

    #[cold]
    fn find(&mut self, address: u64, size: usize, write: bool) -> Result<*mut u8, Fault> {
        let fault = fault(address, size, write);
        let end = address.checked_add(size as u64).ok_or(fault.clone())?;
        let mut first: Option<Span> = None;
        let mut contiguous = true;
        let mut at = address;
        while at < end {
            match self.memory.span(at) {
                Some(span) if span.writable || !write => {
                    self.recent[self.oldest] = span;
                    self.oldest = (self.oldest + 1) % self.recent.len();
                    contiguous &= span.offset == first.get_or_insert(span).offset;
                    at = span.end;
                }
                _ => return Err(fault),
            }
        }
        Ok(first
            .filter(|_| contiguous)
            .map_or(std::ptr::null_mut(), |span| span.host(address)))
    }

    /// One byte of an access that is not aligned.
    fn load_byte(&mut self, address: u64) -> Result<u8, Fault> {
        let pointer = self.host_pointer(address, 1, false)?;
        // SAFETY: the byte is allocated.
        Ok(unsafe { (*pointer.cast::<AtomicU8>()).load(Relaxed) })
    }

    /// One byte of an access that is not aligned.
    fn store_byte(&mut self, address: u64, byte: u8) -> Result<(), Fault> {
        let pointer = self.host_pointer(address, 1, true)?;
        // SAFETY: the byte is allocated and writable.
        unsafe { (*pointer.cast::<AtomicU8>()).store(byte, Relaxed) };
        Ok(())
    }

    access!(pub load_u64, store_u64, u64, AtomicU64);
}

impl Storage for View {
    access!(load_u8, store_u8, u8, AtomicU8);
    access!(load_u16, store_u16, u16, AtomicU16);
    access!(load_u32, store_u32, u32, AtomicU32);
    update!(update_u32, u32, AtomicU32);
    update!(update_u64, u64, AtomicU64);

    /// Aligned pairs do not tear.
    fn load_dwords(&mut self, address: u64, into: &mut [u32]) -> Result<(), Fault> {
        let pointer = self.host_pointer(address, size_of_val(into), false)?;
        if pointer.is_null() || !address.is_multiple_of(4) {
            for (n, dword) in into.iter_mut().enumerate() {
                *dword = self.load_u32(address + 4 * n as u64)?;
            }
            return Ok(());
        }
        let mut n = 0;
        while n < into.len() {
            // SAFETY: all bytes are allocated, `n` stays inside of them, and each access is aligned.
            unsafe {
                let pointer = pointer.add(4 * n);
                if n + 1 < into.len() && pointer.addr().is_multiple_of(8) {
                    let pair = (*pointer.cast::<AtomicU64>()).load(Acquire);
                    into[n] = pair as u32;
                    into[n + 1] = (pair >> 32) as u32;
                    n += 2;
                } else {
                    into[n] = (*pointer.cast::<AtomicU32>()).load(Acquire);
                    n += 1;
                }
            }
        }
        Ok(())
    }

    /// Aligned pairs do not tear.
    fn store_dwords(&mut self, address: u64, from: &[u32]) -> Result<(), Fault> {
        let pointer = self.host_pointer(address, size_of_val(from), true)?;
        if pointer.is_null() || !address.is_multiple_of(4) {
            for (n, dword) in from.iter().enumerate() {
                self.store_u32(address + 4 * n as u64, *dword)?;
            }
            return Ok(());
        }
        let mut n = 0;
        while n < from.len() {
            // SAFETY: all bytes are allocated and writable, `n` stays inside of them, and each access is aligned.
            unsafe {
                let pointer = pointer.add(4 * n);
                if n + 1 < from.len() && pointer.addr().is_multiple_of(8) {
                    let pair = u64::from(from[n]) | u64::from(from[n + 1]) << 32;
                    (*pointer.cast::<AtomicU64>()).store(pair, Release);
                    n += 2;
                } else {
                    (*pointer.cast::<AtomicU32>()).store(from[n], Release);
                    n += 1;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// 64 bytes at GPU address 0x1000, followed by 32 read-only bytes.
    fn small() -> (Box<[u64; 16]>, Arc<Memory>) {
        let bytes = Box::new([0u64; 16]);
        let memory = Memory::new((bytes.as_ptr() as usize).wrapping_sub(0x1000));
        // SAFETY: the box outlives the memory in every test.
        unsafe {
            memory.allocated(0x1000, 64, true);
            memory.allocated(0x1040, 32, false);
        }
        (bytes, memory)
    }

    #[test]
    fn accesses_use_the_bytes_at_base_plus_address() {
        let (bytes, memory) = small();
        let mut view = View::new(memory);
        view.store_u32(0x1008, 0x1122_3344).unwrap();
        view.store_u8(0x100c, 0x55).unwrap();
        assert_eq!(bytes[1], 0x55_1122_3344);
        assert_eq!(view.load_u16(0x1009).unwrap(), 0x2233);
        view.store_dwords(0x1011, &[0x0403_0201, 5]).unwrap();
        assert_eq!(bytes[2], 0x0000_0504_0302_0100);
        let mut back = [0; 2];
        view.load_dwords(0x1011, &mut back).unwrap();
        assert_eq!(back, [0x0403_0201, 5]);
    }

    #[test]
    fn aligned_64_bit_accesses_do_not_tear() {
        let (_bytes, memory) = small();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut view = View::new(memory.clone());
                for n in 1.. {
                    // Only the pair in the middle is aligned.
                    view.store_dwords(0x1004, &[7, n, n, 7]).unwrap();
                    if stop.load(Relaxed) {
                        break;
                    }
                }
            });
            let mut view = View::new(memory.clone());
            let mut pair = [0; 2];
            let mut torn = 0;
            let mut changes = 0;
            while changes < 5_000 {
                let last = pair;
                view.load_dwords(0x1008, &mut pair).unwrap();
                changes += u32::from(pair != last);
                torn += u32::from(pair[0] != pair[1]);
            }
            stop.store(true, Relaxed);
            assert_eq!(torn, 0);
        });
    }

    #[test]
    fn an_access_outside_of_the_allocated_ranges_is_a_fault() {
        let (_bytes, memory) = small();
        let mut view = View::new(memory.clone());
        assert_eq!(view.load_u32(0xffe), Err(fault(0xffe, 4, false)));
        assert_eq!(view.load_u8(0x1060), Err(fault(0x1060, 1, false)));
        assert_eq!(view.load_u64(0x105c), Err(fault(0x105c, 8, false)));
        assert_eq!(view.store_u32(0x1040, 1), Err(fault(0x1040, 4, true)));
        assert_eq!(
            view.load_u64(u64::MAX - 3),
            Err(fault(u64::MAX - 3, 8, false))
        );
        assert!(view.load_u64(0x103c).is_ok(), "across two adjacent ranges");
        assert_eq!(view.store_u64(0x103c, 1), Err(fault(0x103c, 8, true)));
        memory.freed(0x1010, 16);
        assert_eq!(view.load_u32(0x1010), Err(fault(0x1010, 4, false)));
        assert_eq!(view.load_u32(0x101c), Err(fault(0x101c, 4, false)));
        assert!(view.load_u32(0x100c).is_ok());
        assert!(view.load_u32(0x1020).is_ok());
    }

    #[test]
    fn adjacent_ranges_can_be_anywhere_on_the_host() {
        let (first, second) = (Box::new([0u64; 8]), Box::new([0u64; 8]));
        let memory = Memory::new(0);
        // SAFETY: the boxes outlive the memory.
        unsafe {
            memory.allocated_at(0x1000, 64, second.as_ptr() as usize, true);
            memory.allocated_at(0x1040, 64, first.as_ptr() as usize, true);
        }
        let mut view = View::new(memory.clone());
        // One access of each kind within a range, and one across the bound.
        view.store_u64(0x1038, 0x0807_0605_0403_0201).unwrap();
        view.store_u32(0x103e, 0xddcc_bbaa).unwrap();
        assert_eq!(second[7], 0xbbaa_0605_0403_0201);
        assert_eq!(first[0], 0xddcc);
        assert_eq!(view.load_u64(0x103c), Ok(0x0000_ddcc_bbaa_0605));
        view.store_dwords(0x1038, &[1, 2, 3, 4]).unwrap();
        assert_eq!((second[7], first[0]), (2 << 32 | 1, 4 << 32 | 3));
        let mut back = [0; 4];
        view.load_dwords(0x1038, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        view.update_u32(0x1040, |old| old + 1).unwrap();
        assert_eq!(first[0], 4 << 32 | 4);
        assert_eq!(view.load_u64(0x107c), Err(fault(0x107c, 8, false)));
        memory.freed(0x1000, 64);
        assert_eq!(view.load_u32(0x103e), Err(fault(0x103e, 4, false)));
        assert_eq!(memory.allocation(0x1041), Some(0x1040..0x1080));
    }

    #[test]
    fn updates_are_atomic_between_threads() {
        let (bytes, memory) = small();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut view = View::new(memory.clone());
                    for _ in 0..10_000 {
                        view.update_u32(0x1004, |old| old + 1).unwrap();
                        view.update_u64(0x1008, |old| old + 1).unwrap();
                    }
                });
            }
        });
        assert_eq!(bytes[0], 40_000 << 32);
        assert_eq!(bytes[1], 40_000);
        let mut view = View::new(memory);
        assert_eq!(
            view.update_u64(0x1004, |old| old),
            Err(Fault::Alignment {
                address: 0x1004,
                size: 8,
                lane: None,
            })
        );
    }
}
