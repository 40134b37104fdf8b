//! A flag: whether the completion thread polls a queue. The launching thread schedules the queue; the
//! completion thread unschedules it after some time without entries. A queue that is not scheduled must have no
//! entries.

use super::atomics::{AtomicBool, Ordering};

/// Whether a queue is in the list of polled queues or is about to be added to it.
pub struct PollFlag(AtomicBool);

impl Default for PollFlag {
    fn default() -> PollFlag {
        PollFlag(AtomicBool::new(false))
    }
}

impl PollFlag {
    /// Called after entries were pushed. If it returns true, the caller must add the queue to the list. Otherwise the
    /// queue is in the list, and the thread that removes it will see the entries.
    ///
    /// This is a swap, although the queue is usually in the list: a load would need a fence, which takes four times as
    /// long.
    #[inline]
    pub fn try_schedule(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Called when the queue is removed from the list. Afterwards the caller sees all entries that were pushed before a
    /// [`try_schedule`](PollFlag::try_schedule) that returned false.
    pub fn unschedule(&self) {
        self.0.swap(false, Ordering::AcqRel);
    }
}

/// Every interleaving of a thread that pushes entries and one that concurrently unschedules the queue.
#[cfg(all(test, feature = "loom"))]
mod loom_tests {
    use super::*;
    use crate::trace::queues::fifo::fifo;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;

    #[test]
    fn no_entry_is_left_in_a_queue_that_is_not_polled() {
        loom::model(|| {
            let shared = Arc::new((PollFlag::default(), AtomicUsize::new(0)));
            let (mut entries, mut pushed) = fifo(1);
            let launcher = shared.clone();
            let launches = loom::thread::spawn(move || {
                let (flag, scheduled) = &*launcher;
                for n in 0..2 {
                    entries.push(n);
                    if flag.try_schedule() {
                        scheduled.fetch_add(1, Ordering::AcqRel);
                    }
                }
            });
            let (flag, scheduled) = &*shared;
            let mut listed = false;
            for _ in 0..2 {
                let new = scheduled.swap(0, Ordering::AcqRel);
                assert!(new + usize::from(listed) <= 1, "in the list twice");
                listed |= new > 0;
                if listed {
                    while pushed.pop().is_some() {}
                    flag.unschedule();
                    listed = !pushed.is_empty() && flag.try_schedule();
                }
            }
            launches.join().unwrap();
            let is_scheduled = listed || scheduled.load(Ordering::Acquire) > 0;
            assert!(
                is_scheduled || pushed.is_empty(),
                "an entry in an unscheduled queue"
            );
        });
    }
}
