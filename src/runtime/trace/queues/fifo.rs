//! A single-producer, single-consumer queue whose producer never waits. Launching threads use it to pass data about
//! dispatches and API calls to the completion thread.
//!
//! Entries are stored in segments, which are linked in order. The consumer returns each segment when it has read all of
//! it, and the producer reuses the segment for its next entries, so nothing is allocated in the steady state. There is
//! no lock, and the producer's work per entry is bounded.

use super::atomics::{
    Arc, AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, Track, UnsafeCell,
};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// Entries per segment.
#[cfg(not(all(test, feature = "loom")))]
pub const SEGMENT: usize = 256;
/// The maximum number of segments kept for reuse. The consumer frees further ones (after a burst).
#[cfg(not(all(test, feature = "loom")))]
const SPARE: u64 = 64;

#[cfg(all(test, feature = "loom"))]
pub const SEGMENT: usize = 2;
#[cfg(all(test, feature = "loom"))]
const SPARE: u64 = 1;

/// Owned by the producer while it is new or in the producer's list of spare segments, accessed by both sides while it
/// is linked, returned by the consumer, which by then has read all of it.
struct Segment<T> {
    entries: [UnsafeCell<MaybeUninit<T>>; SEGMENT],
    /// The number of entries written. It only grows while the segment is linked.
    written: AtomicUsize,
    /// The next segment of the queue or of the list of spare segments.
    next: AtomicPtr<Segment<T>>,
    _track: Track<()>,
}

struct Shared<T> {
    /// Segments that the consumer has returned and the producer has not taken yet: a stack.
    spare: AtomicPtr<Segment<T>>,
    /// How many spare segments the producer has ever reused. Written by the producer.
    reused: AtomicU64,
    /// How many segments were ever allocated. Written by the producer.
    allocations: AtomicU64,
    /// How many segments the consumer has read completely. Written by the consumer.
    read: AtomicU64,
    /// The producer was dropped; everything it pushed is visible.
    closed: AtomicBool,
    /// The first segment of the queue, set when the consumer is dropped.
    head: AtomicPtr<Segment<T>>,
}

/// The sending side.
pub struct Producer<T: Copy + Send> {
    shared: Arc<Shared<T>>,
    segment: NonNull<Segment<T>>,
    written: usize,
    /// How many segments were linked after the first one.
    linked: u64,
    /// Spare segments taken from `shared`: a linked list.
    spare: *mut Segment<T>,
}

/// The receiving side.
pub struct Consumer<T: Copy + Send> {
    shared: Arc<Shared<T>>,
    segment: NonNull<Segment<T>>,
    read: usize,
    /// The number of entries of the segment known to be written.
    written: usize,
    /// How many segments were ever returned.
    returned: u64,
}

// SAFETY: each side owns its fields, and everything the sides share is atomic, except for the entries. An entry is
// written before the release store to `written` or `next` that publishes it, and read after the acquire load.
unsafe impl<T: Copy + Send> Send for Producer<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Send> Send for Consumer<T> {}

/// Creates an empty queue with `segments` preallocated segments (at least one) of [`SEGMENT`] entries.
pub fn fifo<T: Copy + Send>(segments: usize) -> (Producer<T>, Consumer<T>) {
    let first = Segment::allocate();
    let shared = Arc::new(Shared {
        spare: AtomicPtr::new(ptr::null_mut()),
        reused: AtomicU64::new(0),
        allocations: AtomicU64::new(segments.max(1) as u64),
        read: AtomicU64::new(0),
        closed: AtomicBool::new(false),
        head: AtomicPtr::new(ptr::null_mut()),
    });
    let mut spare: *mut Segment<T> = ptr::null_mut();
    for _ in 1..segments {
        let segment = Segment::allocate();
        // SAFETY: just allocated and not shared yet.
        unsafe { segment.as_ref() }
            .next
            .store(spare, Ordering::Relaxed);
        spare = segment.as_ptr();
    }
    let producer = Producer {
        shared: shared.clone(),
        segment: first,
        written: 0,
        linked: 0,
        spare,
    };
    let consumer = Consumer {
        shared,
        segment: first,
        read: 0,
        written: 0,
        // The consumer computes the number of spare segments as `returned - reused`.
        returned: segments.max(1) as u64 - 1,
    };
    (producer, consumer)
}

impl<T> Segment<T> {
    fn allocate() -> NonNull<Segment<T>> {
        let segment = Box::new(Segment {
            entries: [(); SEGMENT].map(|()| UnsafeCell::new(MaybeUninit::uninit())),
            written: AtomicUsize::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            _track: Track::new(()),
        });
        NonNull::from(Box::leak(segment))
    }

    /// Frees a segment and all segments linked after it.
    ///
    /// # Safety
    /// They were created by `allocate`, and nothing else refers to them.
    unsafe fn free_all(mut segment: *mut Segment<T>) {
        while !segment.is_null() {
            // SAFETY: created from a box, and by this function's contract nothing else refers to it.
            let freed = unsafe { Box::from_raw(segment) };
            segment = freed.next.load(Ordering::Relaxed);
        }
    }
}

impl<T: Copy + Send> Producer<T> {
    /// Appends an entry. Never waits; allocates if the segment is full and there is no spare one.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.written == SEGMENT {
            self.link_next();
        }
        // SAFETY: the consumer returns or frees the producer's segment only after it has read all entries, and this
        // segment is not full.
        let segment = unsafe { self.segment.as_ref() };
        segment.entries[self.written].with_mut(|slot| {
            // SAFETY: the consumer reads the entry only after the store to `written` below.
            unsafe { (*slot).write(entry) };
        });
        self.written += 1;
        segment.written.store(self.written, Ordering::Release);
    }

    /// Whether `segments` segments of entries are in the queue, so that the next entry needs another segment.
    #[inline]
    pub fn is_full(&self, segments: u64) -> bool {
        self.written == SEGMENT && self.has_segments(segments)
    }

    #[cold]
    fn has_segments(&self, segments: u64) -> bool {
        self.linked + 1 >= segments + self.shared.read.load(Ordering::Relaxed)
    }

    /// Does not take the entry as an argument, so that `push` writes the entry directly into its slot.
    #[cold]
    fn link_next(&mut self) {
        let next = self.empty_segment();
        // SAFETY: only the producer refers to it until it is linked.
        let segment = unsafe { next.as_ref() };
        segment.next.store(ptr::null_mut(), Ordering::Relaxed);
        segment.written.store(0, Ordering::Relaxed);
        // SAFETY: the consumer keeps this segment until `next` is set, and the producer does not access it afterwards.
        unsafe { self.segment.as_ref() }
            .next
            .store(next.as_ptr(), Ordering::Release);
        self.segment = next;
        self.written = 0;
        self.linked += 1;
    }

    fn empty_segment(&mut self) -> NonNull<Segment<T>> {
        if self.spare.is_null() {
            self.spare = self.shared.spare.swap(ptr::null_mut(), Ordering::Acquire);
        }
        match NonNull::new(self.spare) {
            Some(segment) => {
                // SAFETY: the consumer does not access a segment that it has returned.
                self.spare = unsafe { segment.as_ref() }.next.load(Ordering::Relaxed);
                increment(&self.shared.reused);
                segment
            }
            None => {
                increment(&self.shared.allocations);
                Segment::allocate()
            }
        }
    }

    /// How many segments were ever allocated for this queue.
    #[cfg(all(test, not(feature = "loom")))]
    pub fn allocations(&self) -> u64 {
        self.shared.allocations.load(Ordering::Relaxed)
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Removes the first entry. `None`: the queue is empty now.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the consumer's segment is linked; only the consumer returns it.
        let segment = unsafe { self.segment.as_ref() };
        let entry = segment.entries[self.read].with(|slot| {
            // SAFETY: the entry was written before `written` was stored, and is not written again while the segment is
            // linked.
            unsafe { (*slot).assume_init() }
        });
        self.read += 1;
        Some(entry)
    }

    /// Whether the queue is empty now.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.read == self.written && !self.load_written()
    }

    /// The number of entries in the queue now.
    pub fn count(&self) -> usize {
        let (mut segment, mut read, mut count) = (self.segment, self.read, 0);
        loop {
            // SAFETY: the consumer's segment and those linked to it; only the consumer returns them.
            let linked = unsafe { segment.as_ref() };
            // `next` is loaded first: if it is set, the segment is full.
            let next = NonNull::new(linked.next.load(Ordering::Acquire));
            count += linked.written.load(Ordering::Acquire) - read;
            let Some(next) = next else {
                return count;
            };
            (segment, read) = (next, 0);
        }
    }

    /// Loads the number of entries that the producer has written. Returns whether there are new entries.
    fn load_written(&mut self) -> bool {
        // SAFETY: the consumer's segment is linked; only the consumer returns it.
        let segment = unsafe { self.segment.as_ref() };
        if self.read == SEGMENT {
            let Some(next) = NonNull::new(segment.next.load(Ordering::Acquire)) else {
                return false;
            };
            let read = std::mem::replace(&mut self.segment, next);
            increment(&self.shared.read);
            self.return_segment(read);
            self.read = 0;
        }
        // SAFETY: as above.
        let segment = unsafe { self.segment.as_ref() };
        self.written = segment.written.load(Ordering::Acquire);
        self.read < self.written
    }

    /// Returns a segment that was read to the producer, which does not use it any more: it was full and is linked to
    /// the next one.
    fn return_segment(&mut self, segment: NonNull<Segment<T>>) {
        let spare = self.returned - self.shared.reused.load(Ordering::Relaxed);
        if spare >= SPARE {
            // SAFETY: neither side uses it any more. Clearing `next` keeps `free_all` from freeing the next segment.
            unsafe {
                segment
                    .as_ref()
                    .next
                    .store(ptr::null_mut(), Ordering::Relaxed);
                Segment::free_all(segment.as_ptr());
            }
            return;
        }
        self.returned += 1;
        let mut top = self.shared.spare.load(Ordering::Relaxed);
        loop {
            // SAFETY: not returned yet, so the consumer still owns it.
            unsafe { segment.as_ref() }
                .next
                .store(top, Ordering::Relaxed);
            // The producer only ever takes the complete stack, so a second attempt succeeds.
            match self.shared.spare.compare_exchange(
                top,
                segment.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Whether the producer was dropped. Entries pushed before may still be in the queue.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// How many segments were ever allocated for this queue.
    #[cfg(all(test, not(feature = "loom")))]
    pub fn allocations(&self) -> u64 {
        self.shared.allocations.load(Ordering::Relaxed)
    }
}

/// Adds one to a counter that only the calling thread writes: a load and a store, without a locked instruction.
fn increment(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl<T: Copy + Send> Drop for Producer<T> {
    fn drop(&mut self) {
        // SAFETY: the producer owns its spare segments.
        unsafe { Segment::free_all(self.spare) };
        self.shared.closed.store(true, Ordering::Release);
    }
}

impl<T: Copy + Send> Drop for Consumer<T> {
    fn drop(&mut self) {
        // Segments that the producer links later follow this one and are freed with `Shared`.
        self.shared
            .head
            .store(self.segment.as_ptr(), Ordering::Release);
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: both sides were dropped, so nothing else refers to the linked and the returned segments.
        unsafe {
            Segment::free_all(self.head.load(Ordering::Acquire));
            Segment::free_all(self.spare.load(Ordering::Acquire));
        }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn entries_arrive_in_order_and_segments_are_reused() {
        let (mut producer, mut consumer) = fifo(2);
        assert!(consumer.is_empty());
        let mut next = 0u64;
        for round in 0..1000u64 {
            for n in 0..200 {
                producer.push(round * 200 + n);
            }
            while let Some(entry) = consumer.pop() {
                assert_eq!(entry, next);
                next += 1;
            }
            assert!(consumer.is_empty());
        }
        assert_eq!(next, 200_000);
        assert_eq!(producer.allocations(), 2);
    }

    #[test]
    fn a_burst_is_kept_and_most_of_its_segments_are_freed() {
        let (mut producer, mut consumer) = fifo(1);
        let burst = 1000 * SEGMENT as u64;
        for n in 0..burst {
            producer.push(n);
        }
        assert_eq!(consumer.count() as u64, burst);
        assert_eq!(consumer.allocations(), 1000);
        for n in 0..burst {
            assert_eq!(consumer.pop(), Some(n));
            if n % 100 == 0 {
                assert_eq!(consumer.count() as u64, burst - 1 - n);
            }
        }
        assert_eq!((consumer.pop(), consumer.count()), (None, 0));
        assert_eq!(consumer.returned, SPARE);
        // A new burst that fits into the spare segments needs no allocation.
        for n in 0..SPARE * SEGMENT as u64 {
            producer.push(n);
        }
        assert_eq!(consumer.allocations(), 1000);
    }

    #[test]
    fn a_queue_is_full_until_a_segment_was_read() {
        let (mut producer, mut consumer) = fifo(1);
        for n in 0..3 * SEGMENT {
            assert!(!producer.is_full(3));
            producer.push(n);
        }
        assert!(producer.is_full(3) && !producer.is_full(4));
        for _ in 0..=SEGMENT {
            consumer.pop();
        }
        assert!(!producer.is_full(3));
        producer.push(0);
        assert!(!producer.is_full(3));
    }

    #[test]
    fn entries_pass_between_threads_completely_and_in_order() {
        let (mut producer, mut consumer) = fifo(1);
        let count = 300_000u64;
        let writer = std::thread::spawn(move || {
            for n in 0..count {
                producer.push((n, !n));
            }
        });
        let mut next = 0;
        while next < count {
            match consumer.pop() {
                Some(entry) => {
                    assert_eq!(entry, (next, !next));
                    next += 1;
                }
                None => std::thread::yield_now(),
            }
        }
        writer.join().unwrap();
        assert!(consumer.is_closed());
        assert!(consumer.is_empty());
    }
}

#[cfg(all(test, feature = "loom"))]
mod loom_tests {
    use super::*;

    /// The producer pushes `before` entries, then `concurrent` entries while the consumer tries `reads` reads; the rest
    /// is read afterwards. In every interleaving the entries arrive once and in order, and nothing leaks (loom checks
    /// `Track` and `Arc`).
    fn run(segments: usize, before: u32, concurrent: u32, reads: usize) {
        loom::model(move || {
            let (mut producer, mut consumer) = fifo(segments);
            for n in 0..before {
                producer.push(n);
            }
            let writer = loom::thread::spawn(move || {
                for n in before..before + concurrent {
                    producer.push(n);
                }
            });
            let mut next = 0;
            for _ in 0..reads {
                if let Some(entry) = consumer.pop() {
                    assert_eq!(entry, next);
                    next += 1;
                }
            }
            let closed = consumer.is_closed();
            if !closed {
                writer.join().unwrap();
            }
            while let Some(entry) = consumer.pop() {
                assert_eq!(entry, next);
                next += 1;
            }
            assert_eq!(next, before + concurrent);
            assert!(consumer.is_closed());
        });
    }

    #[test]
    fn an_empty_queue() {
        run(1, 0, 3, 4);
    }

    #[test]
    fn segments_are_returned_while_the_producer_needs_them() {
        run(1, 4, 4, 6);
        run(2, 3, 3, 6);
    }

    #[test]
    fn the_consumer_may_be_dropped_before_the_producer() {
        loom::model(|| {
            let (mut producer, mut consumer) = fifo(1);
            for n in 0..3 {
                producer.push(n);
            }
            let writer = loom::thread::spawn(move || {
                for n in 3..6 {
                    producer.push(n);
                }
            });
            for n in 0..3 {
                assert_eq!(consumer.pop(), Some(n));
            }
            drop(consumer);
            writer.join().unwrap();
        });
    }
}
