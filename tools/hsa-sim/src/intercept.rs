//! Intercept queues: the program writes to a ring that no GPU reads; when it rings the doorbell, the handlers get the
//! new packets, on the thread that rang, the one registered last first, and what comes out of them goes to a queue
//! underneath.

use crate::abi::*;
use crate::queue::{self, Block, Request, Work};
use crate::runtime::{locked, status, with};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, Ordering::Acquire, Ordering::Release};
use std::time::Duration;

type Packet = [u64; 8];

/// What stands between a ring and the queue underneath.
pub struct Interception {
    /// The queue that the program has.
    owner: *mut Block,
    under: *mut Block,
    handlers: Vec<(PacketHandler, usize)>,
    next: u64,
    /// Packets for which the ring underneath had no room.
    waiting: VecDeque<Packet>,
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

fn kind(packet: &Packet) -> u8 {
    packet[0] as u8
}

impl Interception {
    /// The queue underneath.
    pub fn under(&self) -> *mut Queue {
        self.under.cast()
    }

    /// Takes the packets that the program has written.
    pub fn take(&mut self, amd: &AmdQueue) {
        let queue = &amd.hsa_queue;
        let mut packets = Vec::<Packet>::new();
        let first = self.next;
        while self.next < amd.write_dispatch_id.load(Acquire) {
            let slot = self.next % u64::from(queue.size);
            let at = queue.base_address as usize + slot as usize * size_of::<Packet>();
            // SAFETY: inside the ring; the header is written last, and with release, by the program.
            unsafe {
                let header = &*(at as *const AtomicU16);
                if header.load(Acquire) as u8 == HSA_PACKET_TYPE_INVALID {
                    break;
                }
                packets.push(*(at as *const Packet));
                header.store(u16::from(HSA_PACKET_TYPE_INVALID), Release);
            }
            self.next += 1;
        }
        if !packets.is_empty() {
            self.pass(self.handlers.len(), &packets, first);
        }
        amd.read_dispatch_id.store(self.next, Release);
    }

    /// Gives packets to handler number `handlers - 1`, or to the queue underneath.
    fn pass(&mut self, handlers: usize, packets: &[Packet], index: u64) {
        let Some(&(handler, data)) = handlers.checked_sub(1).and_then(|n| self.handlers.get(n))
        else {
            self.submit(packets);
            return;
        };
        let cursor = Cursor {
            of: self,
            handlers: handlers - 1,
            index,
        };
        let before = CURSOR.replace(Some(cursor));
        // SAFETY: the tool registered the function; the packets live during the call.
        unsafe {
            handler(
                packets.as_ptr().cast(),
                packets.len() as u64,
                index,
                data as *mut c_void,
                write,
            );
        }
        CURSOR.set(before);
    }

    fn submit(&mut self, packets: &[Packet]) {
        self.waiting.extend(packets);
        self.pump();
        if !self.waiting.is_empty() {
            // The ring is full: somebody has to come back, and the program's thread must not wait here.
            // SAFETY: the function takes a queue's address and checks that it is still one.
            let status =
                unsafe { crate::signal::hsa_amd_async_function(pump_later, self.owner.cast()) };
            if status != HSA_STATUS_SUCCESS {
                eprintln!("hsa-sim: packets do not fit into a queue and no thread can be started");
                std::process::abort();
            }
        }
    }

    /// Writes what waits, as far as there is room.
    fn pump(&mut self) {
        // SAFETY: the queue underneath lives as long as the interception.
        let block = unsafe { &*self.under };
        let amd = &block.amd;
        let size = u64::from(amd.hsa_queue.size);
        while let Some(packet) = self.waiting.front().copied() {
            let index = amd.write_dispatch_id.load(Acquire);
            if kind(&packet) == HSA_PACKET_TYPE_VENDOR_SPECIFIC
                && (packet[0] >> 16) as u8 == AMD_AQL_FORMAT_INTERCEPT_MARKER
            {
                self.waiting.pop_front();
                mark(&packet, self.under.cast(), index);
                continue;
            }
            if index - amd.read_dispatch_id.load(Acquire) >= size {
                break;
            }
            self.waiting.pop_front();
            let slot = (index % size) as usize;
            let at = amd.hsa_queue.base_address as usize + slot * size_of::<Packet>();
            // SAFETY: inside the ring; the slot is free, and the header makes it the model's.
            unsafe {
                let bytes = (&raw const packet).cast::<u8>();
                std::ptr::copy_nonoverlapping(bytes.add(2), (at + 2) as *mut u8, 62);
                (*(at as *const AtomicU16)).store(packet[0] as u16, Release);
            }
            amd.write_dispatch_id.store(index + 1, Release);
        }
        if let Work::Model(model) = &*locked(&block.work) {
            model.ring();
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
        eprintln!("hsa-sim: the packet writer is called outside of its handler");
        std::process::abort();
    };
    // SAFETY: the handler gives `count` packets, which are copied: they need not be aligned. The interception is the
    // one whose handler runs on this thread, and its lock is held by the caller of `take`.
    unsafe {
        let packets: Vec<Packet> = (0..count as usize)
            .map(|n| packets.cast::<Packet>().add(n).read_unaligned())
            .collect();
        (*cursor.of).pass(cursor.handlers, &packets, cursor.index);
    }
}

/// Comes back for packets that had no room.
unsafe extern "C" fn pump_later(owner: *mut c_void) {
    std::thread::sleep(Duration::from_micros(50));
    // SAFETY: only compared.
    if unsafe { queue::check(owner.cast()) }.is_err() {
        return;
    }
    // SAFETY: a queue; the program must not destroy one that has packets in it.
    let block = unsafe { &*owner.cast::<Block>() };
    if let Work::Intercept(interception) = &mut *locked(&block.work) {
        interception.submit(&[]);
    }
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
    let request = Request {
        agent,
        size,
        kind,
        callback,
        data,
    };
    let made = queue::create(&request, |state, block| {
        // SAFETY: `create` gives its new block.
        unsafe { queue::start(state, block, &request) }
    })
    .and_then(|under| {
        let made = queue::create(&request, |_, owner| {
            Work::Intercept(Box::new(Interception {
                owner,
                under,
                handlers: Vec::new(),
                next: 0,
                waiting: VecDeque::new(),
            }))
        });
        if made.is_err() {
            // SAFETY: made just now, and nobody knows it.
            unsafe { queue::destroy(under.cast()) }?;
        }
        made
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
