//! Whether the completion thread polls a queue. The launching thread schedules the queue, the completion thread unschedules
//! it after a while without entries. No entry may be left in a queue that is not scheduled.

use super::atomics::{AtomicBool, Ordering};

/// Whether a queue is on the list of those that are polled, or is about to be.
pub struct PollFlag(AtomicBool);

impl Default for PollFlag {
    fn default() -> PollFlag {
        PollFlag(AtomicBool::new(false))
    }
}

impl PollFlag {
    /// Entries were pushed. If true is returned, the caller must add the queue to the list. Otherwise the queue is on it,
    /// and the thread that removes it will see the entries.
    ///
    /// This is a swap although the queue is usually on the list: a load would need a fence, which takes four times as
    /// long.
    #[inline]
    pub fn try_schedule(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// The queue is removed from the list. Entries that were pushed before a [`try_schedule`](PollFlag::try_schedule) that
    /// returned false are visible from now on.
    pub fn unschedule(&self) {
        self.0.swap(false, Ordering::AcqRel);
    }
}

/// Every interleaving of a thread that pushes and one that takes the queue off the list while it does.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::trace::fifo::fifo;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;

    #[test]
    fn no_entry_is_left_on_a_queue_that_nobody_looks_at() {
        loom::model(|| {
            let shared = Arc::new((PollFlag::default(), AtomicUsize::new(0)));
            let (mut entries, mut pushed) = fifo(1);
            let launching = shared.clone();
            let launches = loom::thread::spawn(move || {
                let (attention, activated) = &*launching;
                for n in 0..2 {
                    entries.push(n);
                    if attention.try_schedule() {
                        activated.fetch_add(1, Ordering::AcqRel);
                    }
                }
            });
            let (attention, activated) = &*shared;
            let mut listed = false;
            for _ in 0..2 {
                let new = activated.swap(0, Ordering::AcqRel);
                assert!(new + usize::from(listed) <= 1, "on the list twice");
                listed |= new > 0;
                if listed {
                    while pushed.pop().is_some() {}
                    attention.unschedule();
                    listed = !pushed.is_empty() && attention.try_schedule();
                }
            }
            launches.join().unwrap();
            let awaited = listed || activated.load(Ordering::Acquire) > 0;
            assert!(awaited || pushed.is_empty(), "an entry that nobody sees");
        });
    }
}
