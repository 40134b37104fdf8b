//! The packets of intercept queues: everything that a tool can observe is as in ROCr 7.2.4.
//!
//! The program writes to a ring that no GPU reads. A store to its doorbell passes one batch of packets to the handlers: all
//! packets up to the first one that the program has not yet written. The queue's lock is held during that. The handler that was
//! registered last is called first. The packets that the handlers write go to a queue underneath. If a batch wraps around
//! the end of the ring, the handlers get a copy, otherwise a pointer into the ring. The program can reuse the packets when
//! the handlers return.
//!
//! Either all packets of a batch are submitted to the queue underneath or none of them, unless the batch is larger than the
//! queue. If packets have to wait, a barrier packet is submitted first. Its completion signal wakes a thread, which tries
//! again. Until then, no packets are taken from the program's ring. If a handler rings a doorbell, the same thread handles
//! that.
//!
//! With `HSA_SIM_INTERCEPT=rocr-7.2.4`, two bugs of ROCr end the process where ROCr corrupts memory or fails an assertion: a
//! batch of more than 256 packets that wraps around; and a batch that has to wait while the barrier packet of an earlier one
//! is at the read index of the queue underneath.

use crate::sync::die;
use hsa_abi::*;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

type Packet = [u64; 8];

/// The size of ROCr 7.2.4's staging buffer, in packets.
const ROCR_STAGING: usize = 256;

/// Connects a program's ring with the queue underneath.
pub struct Interception {
    /// The queue underneath, and the function that rings it.
    under: *mut AmdQueue,
    ring_under: unsafe fn(*mut AmdQueue),
    handlers: Vec<(PacketHandler, usize)>,
    /// The index of the next packet to take from the program's ring.
    next: u64,
    /// Packets that wait because the ring underneath was full.
    overflow: Vec<Packet>,
    /// The index of the last barrier packet that wakes this queue.
    retry: Option<u64>,
    /// The copy of a batch that wraps around.
    staging: Vec<Packet>,
    /// A buffer for the packets that are submitted, so that a launch does not allocate memory.
    copy: Vec<Packet>,
    async_doorbell: SignalHandle,
    active: bool,
    faulty: bool,
}

// SAFETY: the queue underneath is only used under the lock of the queue that owns the interception.
unsafe impl Send for Interception {}

/// The handler that runs on this thread: its interception, the number of handlers after it, and the index of its packets.
#[derive(Clone, Copy)]
struct Cursor {
    interception: *mut Interception,
    handlers: usize,
    index: u64,
}

thread_local! {
    static CURSOR: Cell<Option<Cursor>> = const { Cell::new(None) };
}

/// Whether a handler runs on this thread.
pub fn in_handler() -> bool {
    CURSOR.get().is_some()
}

fn is_marker(packet: &Packet) -> bool {
    packet[0] as u8 == HSA_PACKET_TYPE_VENDOR_SPECIFIC
        && (packet[0] >> 16) as u8 == AMD_AQL_FORMAT_INTERCEPT_MARKER
}

impl Interception {
    /// An interception without handlers. `packets` is the size of the program's ring. `async_doorbell` is the signal that
    /// wakes the queue when packets wait. `faulty`: with two bugs of ROCr 7.2.4, which end the process.
    ///
    /// # Safety
    /// The queue `under` lives as long as the result, and `ring_under` may be called for it.
    pub unsafe fn new(
        under: *mut AmdQueue,
        ring_under: unsafe fn(*mut AmdQueue),
        packets: u32,
        async_doorbell: SignalHandle,
        faulty: bool,
    ) -> Interception {
        Interception {
            under,
            ring_under,
            handlers: Vec::new(),
            next: 0,
            overflow: Vec::new(),
            retry: None,
            staging: vec![[0; 8]; packets as usize],
            copy: Vec::new(),
            async_doorbell,
            active: true,
            faulty,
        }
    }

    /// The queue underneath.
    pub fn under(&self) -> *mut Queue {
        self.under.cast()
    }

    /// Adds a handler. It is called before the handlers that were added earlier.
    pub fn register(&mut self, handler: PacketHandler, data: usize) {
        self.handlers.push((handler, data));
    }

    /// Stops taking packets.
    pub fn inactivate(&mut self) {
        self.active = false;
    }

    /// Processes the packets that the program has written.
    ///
    /// # Safety
    /// `this` is the interception of the queue that `amd` belongs to, and the caller has that queue's lock. The caller has no
    /// reference to it: the packet writer of the handlers creates its own.
    pub unsafe fn take(this: *mut Interception, amd: &AmdQueue) {
        let queue = &amd.hsa_queue;
        let size = u64::from(queue.size);
        let (first, staging) = {
            // SAFETY: the caller's promise.
            let this = unsafe { &mut *this };
            if !this.active {
                return;
            }
            if !this.overflow.is_empty() {
                let waiting = std::mem::take(&mut this.overflow);
                let taken = this.submit(&waiting, true);
                this.overflow.extend(&waiting[taken..]);
                if !this.overflow.is_empty() {
                    return;
                }
            }
            (this.next, this.staging.as_mut_ptr())
        };
        let ring = queue.base_address.cast::<Packet>();
        // SAFETY: inside the ring; a packet's header is written last, and with release, by the program.
        let header = |n: u64| unsafe { &*ring.add((n % size) as usize).cast::<AtomicU16>() };
        let end = amd.write_dispatch_id.load(Acquire).min(first + size);
        let written = |n: &u64| header(*n).load(Acquire) as u8 != HSA_PACKET_TYPE_INVALID;
        let count = (first..end).take_while(written).count();
        if count > 0 {
            let at = (first % size) as usize;
            // SAFETY: inside the ring, and the staging buffer is as large; the caller's promise.
            unsafe {
                let batch = if at + count <= size as usize {
                    ring.add(at)
                } else {
                    if (*this).faulty && count > ROCR_STAGING {
                        die(&format!(
                            "a batch of {count} packets wraps around: ROCr 7.2.4 would copy it to a buffer of {ROCR_STAGING}"
                        ));
                    }
                    let head = size as usize - at;
                    std::ptr::copy_nonoverlapping(ring.add(at), staging, head);
                    std::ptr::copy_nonoverlapping(ring, staging.add(head), count - head);
                    staging
                };
                let handlers = (*this).handlers.len();
                Interception::pass(this, handlers, batch, count, first);
            }
        }
        let next = first + count as u64;
        for n in first..next {
            header(n).store(u16::from(HSA_PACKET_TYPE_INVALID), Release);
        }
        // SAFETY: the caller's promise.
        unsafe { (*this).next = next };
        amd.read_dispatch_id.store(next, Release);
    }

    /// Passes packets to handler number `handlers - 1`, or to the queue underneath if `handlers` is 0.
    ///
    /// # Safety
    /// As for [`Interception::take`]; there are `count` packets.
    unsafe fn pass(
        this: *mut Interception,
        handlers: usize,
        packets: *const Packet,
        count: usize,
        index: u64,
    ) {
        // SAFETY: the caller's promise.
        let handler = unsafe {
            let all = &(*this).handlers;
            handlers.checked_sub(1).map(|n| all[n])
        };
        let Some((handler, data)) = handler else {
            // SAFETY: the caller's promise. The packets may be unaligned, so they are copied.
            unsafe {
                let mut copy = std::mem::take(&mut (*this).copy);
                copy.clear();
                copy.extend((0..count).map(|n| packets.add(n).read_unaligned()));
                if !(*this).overflow.is_empty() {
                    die(
                        "a handler writes packets in a second call while packets of the first call are waiting: ROCr would reorder them",
                    );
                }
                let taken = (*this).submit(&copy, false);
                (*this).overflow.extend(&copy[taken..]);
                (*this).copy = copy;
            }
            return;
        };
        let cursor = Cursor {
            interception: this,
            handlers: handlers - 1,
            index,
        };
        let before = CURSOR.replace(Some(cursor));
        // SAFETY: the tool registered the function; the packets live during the call.
        unsafe {
            handler(
                packets.cast(),
                count as u64,
                index,
                data as *mut c_void,
                write,
            );
        }
        CURSOR.set(before);
    }

    /// Writes packets to the queue underneath. Returns how many were written; the others have to wait. `again`: the packets
    /// have waited before.
    fn submit(&mut self, packets: &[Packet], again: bool) -> usize {
        // SAFETY: the queue underneath lives as long as the interception.
        let amd = unsafe { &*self.under };
        let size = u64::from(amd.hsa_queue.size);
        let wanted = packets.iter().filter(|packet| !is_marker(packet)).count() as u64;
        let mut write = amd.write_dispatch_id.load(Relaxed);
        let read = amd.read_dispatch_id.load(Acquire);
        let free = size - (write - read);
        let waking = self
            .retry
            .is_some_and(|at| if self.faulty { at > read } else { at >= read });
        let reserved = u64::from(!waking);
        let mut count = if wanted >= size || (again && free > reserved + 1) {
            wanted.min(free.saturating_sub(reserved))
        } else if free >= wanted + reserved {
            wanted
        } else {
            0
        };
        if count < wanted && !waking {
            if free == 0 {
                die("no free slot for the packet that wakes an intercept queue, as in ROCr 7.2.4");
            }
            let mut barrier = [0; 8];
            barrier[0] = u64::from(HSA_PACKET_TYPE_BARRIER_AND) | 1 << 8;
            barrier[7] = self.async_doorbell.0;
            self.put(write, &barrier);
            amd.write_dispatch_id.store(write + 1, Release);
            self.retry = Some(write);
            write += 1;
        }
        let mut taken = 0;
        let first = write;
        while let Some(packet) = packets.get(taken) {
            if is_marker(packet) {
                mark(packet, self.under.cast(), write);
            } else if count > 0 {
                self.put(write, packet);
                write += 1;
                count -= 1;
            } else {
                break;
            }
            taken += 1;
        }
        if write > first {
            amd.write_dispatch_id.store(write, Release);
        }
        // SAFETY: the caller of `new` guarantees this.
        unsafe { (self.ring_under)(self.under) };
        taken
    }

    /// Writes a packet to the queue underneath, whose slot is free.
    fn put(&self, index: u64, packet: &Packet) {
        // SAFETY: the queue underneath lives as long as the interception.
        let queue = unsafe { &(*self.under).hsa_queue };
        let slot = (index % u64::from(queue.size)) as usize;
        let at = queue.base_address as usize + slot * size_of::<Packet>();
        // SAFETY: inside the ring; the slot is free, and the model reads it only after the store to the write index.
        unsafe {
            let bytes = packet.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.add(2), (at + 2) as *mut u8, 62);
            (*(at as *const AtomicU16)).store(packet[0] as u16, Release);
        }
    }
}

/// Calls the callback of an `amd_aql_intercept_marker_t`. It is the packet's second word.
fn mark(packet: &Packet, queue: *mut Queue, index: u64) {
    if packet[1] != 0 {
        // SAFETY: the tool wrote a function of this type there (hsa_api_trace.h).
        unsafe {
            let handler = std::mem::transmute::<usize, MarkerHandler>(packet[1] as usize);
            handler(packet.as_ptr().cast(), queue, index);
        }
    }
}

/// The packet writer for handlers.
unsafe extern "C" fn write(packets: *const c_void, count: u64) {
    let Some(cursor) = CURSOR.get() else {
        die("the packet writer is called outside of its handler");
    };
    // SAFETY: the handler passes `count` packets. The interception is the one whose handler runs on this thread, and its
    // lock is held by the caller of `take`.
    unsafe {
        Interception::pass(
            cursor.interception,
            cursor.handlers,
            packets.cast(),
            count as usize,
            cursor.index,
        );
    }
}
