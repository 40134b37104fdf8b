//! A queue from one thread to another that never makes the first one wait: what a launching thread knows of a dispatch
//! or of an API call goes through it to the completion thread.
//!
//! Entries lie in segments, linked in order. The consumer hands each segment back when it has read all of it, and the
//! producer takes it for its next entries, so that in the steady state nothing is allocated. There is no lock; the
//! producer's work for an entry is bounded.

use super::atomics::{
    Arc, AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, Track, UnsafeCell,
};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// Entries of a segment.
#[cfg(not(all(test, loom)))]
pub const SEGMENT: usize = 256;
/// Segments that wait to be used again, at most; the consumer frees what is more (after a burst).
#[cfg(not(all(test, loom)))]
const SPARE: u64 = 64;

#[cfg(all(test, loom))]
pub const SEGMENT: usize = 2;
#[cfg(all(test, loom))]
const SPARE: u64 = 1;

/// Owned by the producer while it is new or a spare of the producer's, read by both while it is linked; given back by
/// the consumer, which by then has read all of it.
struct Segment<T> {
    entries: [UnsafeCell<MaybeUninit<T>>; SEGMENT],
    /// Entries that are there; only grows while the segment is linked.
    written: AtomicUsize,
    /// The next segment of the queue, or the next spare.
    next: AtomicPtr<Segment<T>>,
    _track: Track<()>,
}

struct Shared<T> {
    /// Segments that the consumer gave back and the producer has not taken: a stack.
    spare: AtomicPtr<Segment<T>>,
    /// Spare segments that the producer has used again, ever. Written by the producer.
    reused: AtomicU64,
    /// Segments ever allocated. Written by the producer.
    allocations: AtomicU64,
    /// The producer is gone; all that it pushed is to be seen.
    closed: AtomicBool,
    /// The first segment of the queue, once the consumer is gone.
    left: AtomicPtr<Segment<T>>,
}

/// The half that puts in.
pub struct Producer<T: Copy + Send> {
    shared: Arc<Shared<T>>,
    segment: NonNull<Segment<T>>,
    written: usize,
    /// Spare segments taken from `shared`: a list.
    spare: *mut Segment<T>,
}

/// The half that takes out.
pub struct Consumer<T: Copy + Send> {
    shared: Arc<Shared<T>>,
    segment: NonNull<Segment<T>>,
    read: usize,
    /// Entries of the segment that are known to be there.
    written: usize,
    /// Segments ever given back.
    returned: u64,
}

// SAFETY: each half owns its fields, and what it shares with the other one is atomic, but for the entries: an entry is
// written before `written` or `next` (release) says that it is there, and read after (acquire).
unsafe impl<T: Copy + Send> Send for Producer<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Send> Send for Consumer<T> {}

/// An empty queue, for which `segments` segments of [`SEGMENT`] entries (at least one) are allocated in advance.
pub fn fifo<T: Copy + Send>(segments: usize) -> (Producer<T>, Consumer<T>) {
    let first = Segment::allocate();
    let shared = Arc::new(Shared {
        spare: AtomicPtr::new(ptr::null_mut()),
        reused: AtomicU64::new(0),
        allocations: AtomicU64::new(segments.max(1) as u64),
        closed: AtomicBool::new(false),
        left: AtomicPtr::new(ptr::null_mut()),
    });
    let mut spare: *mut Segment<T> = ptr::null_mut();
    for _ in 1..segments {
        let segment = Segment::allocate();
        // SAFETY: just allocated, nobody else knows it.
        unsafe { segment.as_ref() }
            .next
            .store(spare, Ordering::Relaxed);
        spare = segment.as_ptr();
    }
    let producer = Producer {
        shared: shared.clone(),
        segment: first,
        written: 0,
        spare,
    };
    let consumer = Consumer {
        shared,
        segment: first,
        read: 0,
        written: 0,
        // The consumer counts the spare ones by what was given back less what was used again.
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

    /// Frees a segment and all that are linked behind it.
    ///
    /// # Safety
    /// They were made by `allocate`, and nobody else has them.
    unsafe fn free_all(mut segment: *mut Segment<T>) {
        while !segment.is_null() {
            // SAFETY: made from a box, and nobody else has it, as the caller says.
            let whole = unsafe { Box::from_raw(segment) };
            segment = whole.next.load(Ordering::Relaxed);
        }
    }
}

impl<T: Copy + Send> Producer<T> {
    /// Puts an entry at the end. Never waits; allocates when the segment is full and there is no spare one.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.written == SEGMENT {
            self.link_next();
        }
        // SAFETY: the producer's segment is freed by the consumer only after all of it was read, and it is not full.
        let segment = unsafe { self.segment.as_ref() };
        segment.entries[self.written].with_mut(|slot| {
            // SAFETY: the consumer reads the entry only after `written` says that it is there.
            unsafe { (*slot).write(entry) };
        });
        self.written += 1;
        segment.written.store(self.written, Ordering::Release);
    }

    /// Apart from the entry, which is written into its place at once.
    #[cold]
    fn link_next(&mut self) {
        let next = self.empty_segment();
        // SAFETY: it is the producer's alone until it is linked.
        let segment = unsafe { next.as_ref() };
        segment.next.store(ptr::null_mut(), Ordering::Relaxed);
        segment.written.store(0, Ordering::Relaxed);
        // SAFETY: the consumer stays in this segment until `next` is set; this is the last time that it is used here.
        unsafe { self.segment.as_ref() }
            .next
            .store(next.as_ptr(), Ordering::Release);
        self.segment = next;
        self.written = 0;
    }

    fn empty_segment(&mut self) -> NonNull<Segment<T>> {
        if self.spare.is_null() {
            self.spare = self.shared.spare.swap(ptr::null_mut(), Ordering::Acquire);
        }
        match NonNull::new(self.spare) {
            Some(segment) => {
                // SAFETY: a spare segment was given back by the consumer, which has let go of it.
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

    /// Segments that were ever allocated for this queue.
    #[cfg(test)]
    pub fn allocations(&self) -> u64 {
        self.shared.allocations.load(Ordering::Relaxed)
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Takes the first entry. `None`: there is none now.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the consumer's segment is linked; only the consumer gives it back.
        let segment = unsafe { self.segment.as_ref() };
        let entry = segment.entries[self.read].with(|slot| {
            // SAFETY: it was written before `written` said so, and nobody writes it while the segment is linked.
            unsafe { (*slot).assume_init() }
        });
        self.read += 1;
        Some(entry)
    }

    /// Whether there is no entry now.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.read == self.written && !self.look()
    }

    /// Looks for entries after those that are known.
    fn look(&mut self) -> bool {
        // SAFETY: the consumer's segment is linked; only the consumer gives it back.
        let segment = unsafe { self.segment.as_ref() };
        if self.read == SEGMENT {
            let Some(next) = NonNull::new(segment.next.load(Ordering::Acquire)) else {
                return false;
            };
            let read = std::mem::replace(&mut self.segment, next);
            self.give_back(read);
            self.read = 0;
        }
        // SAFETY: as above.
        let segment = unsafe { self.segment.as_ref() };
        self.written = segment.written.load(Ordering::Acquire);
        self.read < self.written
    }

    /// Hands a segment that was read to the producer, which has left it before: it was full, and is linked to the next.
    fn give_back(&mut self, segment: NonNull<Segment<T>>) {
        let spare = self.returned - self.shared.reused.load(Ordering::Relaxed);
        if spare >= SPARE {
            // SAFETY: neither half uses it any more, and the next one is not its to free.
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
            // SAFETY: not yet given back, so still the consumer's.
            unsafe { segment.as_ref() }
                .next
                .store(top, Ordering::Relaxed);
            // The producer only ever takes all, so a second round succeeds.
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

    /// Whether the producer is gone. What it pushed before is still to be taken out.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Segments that were ever allocated for this queue.
    #[cfg(test)]
    pub fn allocations(&self) -> u64 {
        self.shared.allocations.load(Ordering::Relaxed)
    }
}

/// Adds one to a counter that only the calling thread writes: a load and a store, no locked instruction.
fn increment(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl<T: Copy + Send> Drop for Producer<T> {
    fn drop(&mut self) {
        // SAFETY: the producer's spare segments are its own.
        unsafe { Segment::free_all(self.spare) };
        self.shared.closed.store(true, Ordering::Release);
    }
}

impl<T: Copy + Send> Drop for Consumer<T> {
    fn drop(&mut self) {
        // What the producer still pushes is linked behind it, and is freed with the producer.
        self.shared
            .left
            .store(self.segment.as_ptr(), Ordering::Release);
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: both halves are gone: the linked and the given back segments are nobody else's.
        unsafe {
            Segment::free_all(self.left.load(Ordering::Acquire));
            Segment::free_all(self.spare.load(Ordering::Acquire));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_in_order_and_segments_are_used_again() {
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
    fn a_burst_is_kept_and_its_segments_are_freed_but_for_a_few() {
        let (mut producer, mut consumer) = fifo(1);
        let burst = 1000 * SEGMENT as u64;
        for n in 0..burst {
            producer.push(n);
        }
        assert_eq!(consumer.allocations(), 1000);
        for n in 0..burst {
            assert_eq!(consumer.pop(), Some(n));
        }
        assert_eq!(consumer.pop(), None);
        assert_eq!(consumer.returned, SPARE);
        // The rest of a burst that is as long as the spare segments needs none.
        for n in 0..SPARE * SEGMENT as u64 {
            producer.push(n);
        }
        assert_eq!(consumer.allocations(), 1000);
    }

    #[test]
    fn threads_pass_everything_on() {
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

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Five entries go through segments of two while the consumer reads: in every interleaving they come out once and
    /// in order, and nothing is leaked (loom looks after `Track` and `Arc`). `reads` of the consumer run beside the
    /// producer, the rest after it.
    fn run(segments: usize, before: u32, beside: u32, reads: usize) {
        loom::model(move || {
            let (mut producer, mut consumer) = fifo(segments);
            for n in 0..before {
                producer.push(n);
            }
            let writer = loom::thread::spawn(move || {
                for n in before..before + beside {
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
            assert_eq!(next, before + beside);
            assert!(consumer.is_closed());
        });
    }

    #[test]
    fn a_queue_that_was_empty() {
        run(1, 0, 5, 5);
    }

    #[test]
    fn segments_come_back_while_the_producer_needs_them() {
        run(1, 4, 5, 6);
        run(2, 3, 4, 6);
    }

    #[test]
    fn either_half_may_go_first() {
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
