//! Intercept queues, as ROCr 7.2.4 has them where a tool can see it.
//!
//! The program writes to a ring that no GPU reads. Whoever rings its doorbell has all the packets up to the first that
//! is not yet written given to the handlers as one batch, the handler registered last first, under a lock of the queue;
//! what comes out of them goes to a queue underneath. A batch that wraps around the end of the ring is a copy, another
//! is the ring itself. Its packets become free for the program when the handlers are through with it.
//!
//! What comes out of a batch goes underneath as a whole or not at all, unless it is larger than the queue. What has to
//! wait has a barrier packet before it, whose completion signal wakes a thread that tries again; until then nothing
//! more is taken, and the program's ring fills. A doorbell that a handler rings is left to that thread, too.
//!
//! With `HSA_SIM_INTERCEPT=rocr-7.2.4` two faults of ROCr's end the process where ROCr writes over memory or fails an
//! assertion: a batch of more than 256 packets that wraps around; and a batch for which there is no room, when the
//! barrier packet of an earlier one lies where the queue underneath is read.

use crate::abi::*;
use crate::cooperative;
use crate::queue::{self, Block, Request, Work};
use crate::runtime::{locked, status, with};
use crate::signal;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

type Packet = [u64; 8];

/// Packets of ROCr 7.2.4's staging buffer.
const ROCR_STAGING: usize = 256;

/// The asynchronous doorbell when nobody has rung it.
const SILENT: SignalValue = -1;

/// What stands between a ring and the queue underneath.
pub struct Interception {
    under: *mut Block,
    handlers: Vec<(PacketHandler, usize)>,
    next: u64,
    /// Packets for which the ring underneath had no room.
    overflow: Vec<Packet>,
    /// Where underneath the last barrier packet is that wakes us.
    retry: Option<u64>,
    /// For batches that wrap around.
    staging: Vec<Packet>,
    /// What goes underneath, kept for its memory: a launch allocates nothing here.
    copy: Vec<Packet>,
    async_doorbell: Signal,
    active: bool,
    faulty: bool,
}

// SAFETY: the queue underneath is used under the lock of the queue that has this.
unsafe impl Send for Interception {}

/// The handler in progress on this thread: whose packets, and how many handlers are still to come.
#[derive(Clone, Copy)]
struct Cursor {
    of: *mut Interception,
    handlers: usize,
    index: u64,
}

thread_local! {
    static CURSOR: Cell<Option<Cursor>> = const { Cell::new(None) };
}

/// Whether a handler is in progress on this thread.
pub fn in_handler() -> bool {
    CURSOR.get().is_some()
}

fn is_marker(packet: &Packet) -> bool {
    packet[0] as u8 == HSA_PACKET_TYPE_VENDOR_SPECIFIC
        && (packet[0] >> 16) as u8 == AMD_AQL_FORMAT_INTERCEPT_MARKER
}

fn die(what: &str) -> ! {
    eprintln!("hsa-sim: {what}");
    std::process::abort();
}

impl Interception {
    /// The queue underneath.
    pub fn under(&self) -> *mut Queue {
        self.under.cast()
    }

    /// Takes no more packets.
    pub fn inactivate(&mut self) {
        self.active = false;
    }

    /// Takes the packets that the program has written.
    ///
    /// # Safety
    /// `this` is the interception of the queue that `amd` belongs to, and the caller has that queue's lock. No reference
    /// to it is alive: the handlers' packet writer makes its own.
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
                            "a batch of {count} packets wraps around: ROCr 7.2.4 would copy it to {ROCR_STAGING}"
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

    /// Gives packets to handler number `handlers - 1`, or to the queue underneath.
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
            // SAFETY: the caller's promise. They need not be aligned, so they are copied.
            unsafe {
                let mut copy = std::mem::take(&mut (*this).copy);
                copy.clear();
                copy.extend((0..count).map(|n| packets.add(n).read_unaligned()));
                if !(*this).overflow.is_empty() {
                    die(
                        "a handler writes packets in two calls, and those of the first still wait: ROCr would exchange them",
                    );
                }
                let taken = (*this).submit(&copy, false);
                (*this).overflow.extend(&copy[taken..]);
                (*this).copy = copy;
            }
            return;
        };
        let cursor = Cursor {
            of: this,
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

    /// Writes packets underneath, as many as there is room for. How many.
    fn submit(&mut self, packets: &[Packet], again: bool) -> usize {
        // SAFETY: the queue underneath lives as long as the interception.
        let block = unsafe { &*self.under };
        let amd = &block.amd;
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
                die("no room for the packet that wakes an intercept queue, as with ROCr 7.2.4");
            }
            let mut barrier = [0; 8];
            barrier[0] = u64::from(HSA_PACKET_TYPE_BARRIER_AND) | 1 << 8;
            barrier[7] = self.async_doorbell;
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
        if let Work::Model(model) = &*locked(&block.work) {
            model.ring();
        }
        taken
    }

    /// Writes a packet underneath, where there is room.
    fn put(&self, index: u64, packet: &Packet) {
        // SAFETY: the queue underneath lives as long as the interception.
        let queue = unsafe { &(*self.under).amd.hsa_queue };
        let slot = (index % u64::from(queue.size)) as usize;
        let at = queue.base_address as usize + slot * size_of::<Packet>();
        // SAFETY: inside the ring; the slot is free, and the write index, stored later, makes it the model's.
        unsafe {
            let bytes = packet.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.add(2), (at + 2) as *mut u8, 62);
            (*(at as *const AtomicU16)).store(packet[0] as u16, Release);
        }
    }
}

/// `amd_aql_intercept_marker_t`: the callback is its second word.
fn mark(packet: &Packet, queue: *mut Queue, index: u64) {
    if packet[1] != 0 {
        // SAFETY: the tool wrote a function of this type there (hsa_api_trace.h).
        unsafe {
            let handler = std::mem::transmute::<usize, MarkerHandler>(packet[1] as usize);
            handler(packet.as_ptr().cast(), queue, index);
        }
    }
}

/// The packet writer that handlers get.
unsafe extern "C" fn write(packets: *const c_void, count: u64) {
    let Some(cursor) = CURSOR.get() else {
        die("the packet writer is called outside of its handler");
    };
    // SAFETY: the handler gives `count` packets. The interception is the one whose handler runs on this thread, and its
    // lock is held by the caller of `take`.
    unsafe {
        Interception::pass(
            cursor.of,
            cursor.handlers,
            packets.cast(),
            count as usize,
            cursor.index,
        );
    }
}

/// The asynchronous doorbell was rung.
unsafe extern "C" fn rung(_: SignalValue, owner: *mut c_void) -> bool {
    // SAFETY: the handler is forgotten before the queue is destroyed.
    unsafe {
        let block = &*owner.cast::<Block>();
        if let Some(doorbell) = signal::at(block.async_doorbell.load(Acquire)) {
            doorbell.value.store(SILENT, Release);
        }
        queue::ring(owner.cast());
    }
    true
}

/// Makes the program's side of an intercept queue. If that fails, `under` is still the caller's.
fn intercept(request: &Request, under: *mut Block) -> Result<*mut Block, Status> {
    queue::create(request, |state, owner| {
        let async_doorbell = signal::create(state, AMD_SIGNAL_KIND_USER, SILENT)?;
        // SAFETY: both queues are new, and nobody else knows them yet.
        unsafe {
            (*owner).async_doorbell.store(async_doorbell, Release);
            (*owner).under.store(under, Release);
            (*under).owner.store(owner, Release);
        }
        Ok(Work::Intercept(Box::new(Interception {
            under,
            handlers: Vec::new(),
            next: 0,
            overflow: Vec::new(),
            retry: None,
            staging: vec![[0; 8]; request.size as usize],
            copy: Vec::new(),
            async_doorbell,
            active: true,
            faulty: state.settings.faulty_intercept,
        })))
    })
}

/// See `hsa_api_trace.h`.
///
/// # Safety
/// As `hsa_queue_create`.
#[expect(clippy::too_many_arguments, reason = "HSA's signature")]
pub unsafe fn hsa_amd_queue_intercept_create(
    agent: Agent,
    size: u32,
    kind: u32,
    callback: Option<QueueError>,
    data: *mut c_void,
    _private: u32,
    _group: u32,
    queue: *mut *mut Queue,
) -> Status {
    if queue.is_null() {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    let mut request = Request {
        agent,
        size,
        kind,
        callback,
        data,
        id: None,
    };
    let made = queue::obtain(&request)
        .and_then(|under| {
            // SAFETY: a queue that lives. One that is cooperative has a size of its own.
            let of_under = unsafe { &(*under).amd.hsa_queue };
            request.id = Some(of_under.id);
            request.size = of_under.size;
            intercept(&request, under).inspect_err(|_| {
                // SAFETY: obtained just now. That it is a queue is known.
                let _ = unsafe { queue::give_back(under.cast()) };
            })
        })
        .and_then(|owner| {
            // SAFETY: made just now.
            cooperative::wrap(unsafe { (*owner).under.load(Acquire) }.cast());
            // SAFETY: the queue lives until `queue::destroy` has forgotten the handler.
            let handled = unsafe {
                let doorbell = (*owner).async_doorbell.load(Acquire);
                signal::hsa_amd_signal_async_handler(
                    doorbell,
                    HSA_SIGNAL_CONDITION_NE,
                    SILENT,
                    rung,
                    owner.cast(),
                )
            };
            if handled == HSA_STATUS_SUCCESS {
                return Ok(owner);
            }
            // SAFETY: made just now, and nobody knows it.
            unsafe { queue::destroy(owner.cast()) }?;
            Err(handled)
        });
    match made {
        Ok(block) => {
            // SAFETY: the caller's promise, and a new queue.
            unsafe {
                queue.write(block.cast());
                queue::notify(block.cast(), agent);
            }
            HSA_STATUS_SUCCESS
        }
        Err(status) => status,
    }
}

/// See `hsa_api_trace.h`.
///
/// # Safety
/// As `hsa_api_trace.h` says.
pub unsafe fn hsa_amd_queue_intercept_register(
    queue: *mut Queue,
    callback: PacketHandler,
    data: *mut c_void,
) -> Status {
    // SAFETY: the queue is checked, and the caller keeps it.
    status(with(|_| unsafe { queue::check(queue) }).and_then(|()| {
        // SAFETY: checked above.
        let block = unsafe { &*queue.cast::<Block>() };
        match &mut *locked(&block.work) {
            Work::Intercept(interception) => {
                interception.handlers.push((callback, data as usize));
                Ok(())
            }
            _ => Err(HSA_STATUS_ERROR_INVALID_QUEUE),
        }
    }))
}
