//! Who writes a packet, and when: asked when its place in the queue is reserved, on the thread that will write it. ROCr
//! hands the packet on later, perhaps on the thread that rings for another packet behind it.

use super::{calls, clock};
use crate::support::registry::Registry;
use crate::sys::threads;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What is known of a packet before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The API call in progress, 0 for none.
    pub correlation: u64,
    /// `gettid`.
    pub thread: u32,
    /// When the place was reserved, system clock.
    pub time: u64,
}

impl Writer {
    /// This thread, now.
    pub fn now() -> Writer {
        Writer {
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

/// The writers of a queue's packets.
pub struct Writers {
    /// Twice as many as packets: a place is reserved before it is free. A power of two.
    slots: Box<[Slot]>,
}

/// By the queue's address.
static WRITERS: Registry<Writers> = Registry::new();

/// The writers of a new queue of `size` packets.
pub fn add(queue: usize, size: u32) -> &'static Writers {
    let count = (2 * size.max(1) as usize).next_power_of_two();
    let clear = |writers: &Writers| {
        let fits = writers.slots.len() == count;
        if fits {
            for slot in &writers.slots {
                slot.index.store(0, Ordering::Relaxed);
            }
        }
        fits
    };
    WRITERS.add(queue as u64, clear, || Writers {
        slots: (0..count).map(|_| Slot::default()).collect(),
    })
}

/// The queue is gone.
pub fn remove(queue: usize) {
    WRITERS.remove(queue as u64, |_| ());
}

/// This thread has reserved the places of `count` packets from `first` on.
#[inline]
pub fn reserved(queue: usize, first: u64, count: u64) {
    if let Some(writers) = WRITERS.find(queue as u64) {
        writers.value.reserve(first, count, Writer::now());
    }
}

impl Writers {
    fn slot(&self, index: u64) -> &Slot {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }

    fn reserve(&self, first: u64, count: u64, writer: Writer) {
        for index in first..first.saturating_add(count.min(self.slots.len() as u64)) {
            let slot = self.slot(index);
            slot.correlation
                .store(writer.correlation, Ordering::Relaxed);
            slot.thread.store(writer.thread, Ordering::Relaxed);
            slot.time.store(writer.time, Ordering::Relaxed);
            slot.index.store(index + 1, Ordering::Release);
        }
    }

    /// Who has reserved the place of a packet; `None`: by a function that is not watched.
    pub fn of(&self, index: u64) -> Option<Writer> {
        let slot = self.slot(index);
        (slot.index.load(Ordering::Acquire) == index + 1).then(|| Writer {
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
        let writers = add(0x1000, 4);
        let writer = |correlation| Writer {
            correlation,
            thread: 7,
            time: 9,
        };
        assert_eq!(writers.of(0), None);
        writers.reserve(0, 3, writer(1));
        writers.reserve(3, 1, writer(2));
        assert_eq!(writers.of(0), Some(writer(1)));
        assert_eq!(writers.of(2), Some(writer(1)));
        assert_eq!(writers.of(3), Some(writer(2)));
        assert_eq!(writers.of(4), None);
        // A place that is reserved before it is free.
        writers.reserve(4, 3, writer(3));
        assert_eq!(writers.of(0), Some(writer(1)));
        writers.reserve(8, 1, writer(4));
        assert_eq!(writers.of(0), None);
        assert_eq!(writers.of(8), Some(writer(4)));

        reserved(0x1000, 9, 1);
        assert_eq!(
            writers.of(9).map(|writer| writer.thread),
            Some(threads::thread_id())
        );
        reserved(0x2000, 1, 1);
        remove(0x1000);
        assert!(WRITERS.find(0x1000).is_none());
        let again = add(0x1000, 4);
        assert!(std::ptr::eq(again, writers));
        assert_eq!(again.of(9), None);
        remove(0x1000);
    }
}
