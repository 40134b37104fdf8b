//! Who writes a packet, and when: asked when its place in the queue is reserved, on the thread that will write it. ROCr
//! hands the packet on later, perhaps on the thread that rings for another packet behind it.

use super::{calls, clock};
use crate::support::registry::Registry;
use crate::sys::threads;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What is known of a packet before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOrigin {
    /// The API call in progress, 0 for none.
    pub correlation: u64,
    /// `gettid`.
    pub thread: u32,
    /// When the place was reserved, system clock.
    pub time: u64,
}

impl PacketOrigin {
    /// This thread, now.
    pub fn now() -> PacketOrigin {
        PacketOrigin {
            correlation: calls::current(),
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
    thread: AtomicU32,
    time: AtomicU64,
}

/// The origins of a queue's packets.
pub struct QueueOrigins {
    /// Twice as many as packets: a place is reserved before it is free. A power of two.
    slots: Box<[Slot]>,
}

/// By the queue's address.
static ORIGINS: Registry<QueueOrigins> = Registry::new();

/// The origins of a new queue of `size` packets.
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

/// The queue is gone.
pub fn remove(queue: usize) {
    ORIGINS.remove(queue as u64, |_| ());
}

/// This thread has reserved the places of `count` packets from `first` on.
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
            slot.thread.store(origin.thread, Ordering::Relaxed);
            slot.time.store(origin.time, Ordering::Relaxed);
            slot.index.store(index + 1, Ordering::Release);
        }
    }

    /// Who has reserved the place of a packet; `None`: by a function that is not watched.
    pub fn get(&self, index: u64) -> Option<PacketOrigin> {
        let slot = self.slot(index);
        (slot.index.load(Ordering::Acquire) == index + 1).then(|| PacketOrigin {
            correlation: slot.correlation.load(Ordering::Relaxed),
            thread: slot.thread.load(Ordering::Relaxed),
            time: slot.time.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_writer_that_reserved_its_place() {
        let origins = add(0x1000, 4);
        let origin = |correlation| PacketOrigin {
            correlation,
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
        // A place that is reserved before it is free.
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
