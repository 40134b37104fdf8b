//! Who writes a packet, and when: asked when its place in the queue is reserved, on the thread that will write it. ROCr
//! hands the packet on later, perhaps on the thread that rings for another packet behind it.

use super::{calls, clock};
use crate::host;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

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
            thread: host::thread_id(),
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
    /// Address of the queue, 0: free.
    queue: AtomicUsize,
    /// Twice as many as packets: a place is reserved before it is free.
    slots: Box<[Slot]>,
    next: AtomicPtr<Writers>,
}

/// By the hash of the queue's address: lists that only grow. The entries of queues that are gone are used again.
static BUCKETS: [AtomicPtr<Writers>; 64] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 64];
/// Held while the lists change.
static CHANGE: Mutex<()> = Mutex::new(());

fn bucket(queue: usize) -> &'static AtomicPtr<Writers> {
    &BUCKETS[((queue as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize]
}

fn entries(queue: usize) -> impl Iterator<Item = &'static Writers> {
    // SAFETY: null, or an entry that is never freed.
    let entry = |at: &AtomicPtr<Writers>| unsafe { at.load(Ordering::Acquire).as_ref() };
    std::iter::successors(entry(bucket(queue)), move |writers| entry(&writers.next))
}

/// The writers of a new queue of `size` packets.
pub fn add(queue: usize, size: u32) -> &'static Writers {
    let _change = CHANGE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let count = 2 * size.max(1) as usize;
    let free = |writers: &&Writers| {
        writers.queue.load(Ordering::Relaxed) == 0 && writers.slots.len() == count
    };
    if let Some(writers) = entries(queue).find(free) {
        for slot in &writers.slots {
            slot.index.store(0, Ordering::Relaxed);
        }
        writers.queue.store(queue, Ordering::Release);
        return writers;
    }
    let bucket = bucket(queue);
    let writers: &'static Writers = Box::leak(Box::new(Writers {
        queue: AtomicUsize::new(queue),
        slots: (0..count).map(|_| Slot::default()).collect(),
        next: AtomicPtr::new(bucket.load(Ordering::Relaxed)),
    }));
    bucket.store(std::ptr::from_ref(writers).cast_mut(), Ordering::Release);
    writers
}

/// The queue is gone.
pub fn remove(queue: usize) {
    let _change = CHANGE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(writers) = find(queue) {
        writers.queue.store(0, Ordering::Release);
    }
}

fn find(queue: usize) -> Option<&'static Writers> {
    entries(queue).find(|writers| writers.queue.load(Ordering::Acquire) == queue)
}

/// This thread has reserved the places of `count` packets from `first` on.
#[inline]
pub fn reserved(queue: usize, first: u64, count: u64) {
    if let Some(writers) = find(queue) {
        writers.reserve(first, count, Writer::now());
    }
}

impl Writers {
    fn slot(&self, index: u64) -> &Slot {
        &self.slots[(index % self.slots.len() as u64) as usize]
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
            Some(host::thread_id())
        );
        reserved(0x2000, 1, 1);
        remove(0x1000);
        assert!(find(0x1000).is_none());
        let again = add(0x1000, 4);
        assert!(std::ptr::eq(again, writers));
        assert_eq!(again.of(9), None);
        remove(0x1000);
    }
}
