//! Which thread writes a packet, and when. This is recorded when the thread that will write the packet reserves its
//! slot. ROCr passes the packet on later, perhaps on the thread that rings the doorbell for a later packet.

use crate::support::registry::Registry;
use crate::sys::threads;
use crate::trace::calls;
use crate::trace::recorder::clock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The facts about a packet that are known before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOrigin {
    /// Correlation id of the API call in progress, 0 for none.
    pub correlation: u64,
    /// Id of that call's stream, 0 for none.
    pub stream: u32,
    /// `gettid`.
    pub thread: u32,
    /// When the slot was reserved, system clock.
    pub time: u64,
}

impl PacketOrigin {
    /// The calling thread, now.
    pub fn now() -> PacketOrigin {
        let call = calls::current();
        PacketOrigin {
            correlation: call.id,
            stream: call.stream,
            thread: threads::thread_id(),
            time: clock::now(),
        }
    }
}

#[derive(Default)]
struct Slot {
    /// One more than the packet's index.
    index: AtomicU64,
    correlation: AtomicU64,
    stream: AtomicU32,
    thread: AtomicU32,
    time: AtomicU64,
}

/// The origins of a queue's packets.
pub struct QueueOrigins {
    /// Twice as many as the queue has packets, because slots are reserved before they are free. The count is a power of
    /// two.
    slots: Box<[Slot]>,
}

/// Keyed by the queue's address.
static ORIGINS: Registry<QueueOrigins> = Registry::new();

/// Adds a new queue of `size` packets.
pub fn add(queue: usize, size: u32) -> &'static QueueOrigins {
    let count = (2 * size.max(1) as usize).next_power_of_two();
    let clear = |origins: &QueueOrigins| {
        let fits = origins.slots.len() == count;
        if fits {
            for slot in &origins.slots {
                slot.index.store(0, Ordering::Relaxed);
            }
        }
        fits
    };
    ORIGINS.add(queue as u64, clear, || QueueOrigins {
        slots: (0..count).map(|_| Slot::default()).collect(),
    })
}

/// Removes a destroyed queue.
pub fn remove(queue: usize) {
    ORIGINS.remove(queue as u64, |_| ());
}

/// The calling thread has reserved the slots of `count` packets, beginning at `first`.
#[inline]
pub fn record_reservation(queue: usize, first: u64, count: u64) {
    if let Some(origins) = ORIGINS.find(queue as u64) {
        origins.value.reserve(first, count, PacketOrigin::now());
    }
}

impl QueueOrigins {
    fn slot(&self, index: u64) -> &Slot {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }

    fn reserve(&self, first: u64, count: u64, origin: PacketOrigin) {
        for index in first..first.saturating_add(count.min(self.slots.len() as u64)) {
            let slot = self.slot(index);
            slot.correlation
                .store(origin.correlation, Ordering::Relaxed);
            slot.stream.store(origin.stream, Ordering::Relaxed);
            slot.thread.store(origin.thread, Ordering::Relaxed);
            slot.time.store(origin.time, Ordering::Relaxed);
            slot.index.store(index + 1, Ordering::Release);
        }
    }

    /// The origin of a packet; `None` if its slot was reserved while the recording was stopped, or by a function that
    /// devprof does not hook.
    pub fn get(&self, index: u64) -> Option<PacketOrigin> {
        let slot = self.slot(index);
        (slot.index.load(Ordering::Acquire) == index + 1).then(|| PacketOrigin {
            correlation: slot.correlation.load(Ordering::Relaxed),
            stream: slot.stream.load(Ordering::Relaxed),
            thread: slot.thread.load(Ordering::Relaxed),
            time: slot.time.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packets_origin_is_the_thread_that_reserved_its_slot() {
        let origins = add(0x1000, 4);
        let origin = |correlation| PacketOrigin {
            correlation,
            stream: 5,
            thread: 7,
            time: 9,
        };
        assert_eq!(origins.get(0), None);
        origins.reserve(0, 3, origin(1));
        origins.reserve(3, 1, origin(2));
        assert_eq!(origins.get(0), Some(origin(1)));
        assert_eq!(origins.get(2), Some(origin(1)));
        assert_eq!(origins.get(3), Some(origin(2)));
        assert_eq!(origins.get(4), None);
        // A slot that is reserved before it is free.
        origins.reserve(4, 3, origin(3));
        assert_eq!(origins.get(0), Some(origin(1)));
        origins.reserve(8, 1, origin(4));
        assert_eq!(origins.get(0), None);
        assert_eq!(origins.get(8), Some(origin(4)));

        record_reservation(0x1000, 9, 1);
        assert_eq!(
            origins.get(9).map(|origin| origin.thread),
            Some(threads::thread_id())
        );
        record_reservation(0x2000, 1, 1);
        remove(0x1000);
        assert!(ORIGINS.find(0x1000).is_none());
        let again = add(0x1000, 4);
        assert!(std::ptr::eq(again, origins));
        assert_eq!(again.get(9), None);
        remove(0x1000);
    }
}
