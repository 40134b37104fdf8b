//! Whether the completion thread looks at a queue. The launching thread has it look, the completion thread ends it by
//! itself after a while, and no entry may be left that neither thinks of.

use super::sync::{AtomicBool, Ordering};

/// Whether a queue is on the list of those that are looked at, or about to be.
pub struct Attention(AtomicBool);

impl Default for Attention {
    fn default() -> Attention {
        Attention(AtomicBool::new(false))
    }
}

impl Attention {
    /// Entries were pushed. True: the caller has to put the queue on the list; false: whoever takes it off will see them.
    ///
    /// A swap, though it is mostly on the list: a load would need a fence before it, which takes four times as long.
    #[inline]
    pub fn demand(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// The queue is taken off the list. What was pushed before a [`demand`](Attention::demand) that was answered with
    /// false is seen from now on.
    pub fn end(&self) {
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
            let shared = Arc::new((Attention::default(), AtomicUsize::new(0)));
            let (mut entries, mut pushed) = fifo(1);
            let launching = shared.clone();
            let launches = loom::thread::spawn(move || {
                let (attention, activated) = &*launching;
                for n in 0..2 {
                    entries.push(n);
                    if attention.demand() {
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
                    attention.end();
                    listed = !pushed.is_empty() && attention.demand();
                }
            }
            launches.join().unwrap();
            let awaited = listed || activated.load(Ordering::Acquire) > 0;
            assert!(awaited || pushed.is_empty(), "an entry that nobody sees");
        });
    }
}
