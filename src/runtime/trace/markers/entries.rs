//! The program's markers: each thread passes entries to the completion thread. [`super::ranges`] makes ranges of it.
//!
//! A marker costs one read of the clock and a copy of its message: no lock, no allocation and no system
//! call in the steady state. A message that does not fit into an entry continues in the next ones.

use super::ranges::{Action, Entry, MAX_TEXT, PIECE, ThreadRanges, level_in};
use crate::sys::threads;
use crate::trace::calls::{self, state};
use crate::trace::queues::fifo::Producer;
use crate::trace::queues::thread_queues::ThreadQueues;
use crate::trace::queues::wakeup;
use crate::trace::recorder::clock;
use crate::trace::session::recording;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of entries after which a thread wakes the completion thread to collect them.
const WAKE_INTERVAL: u32 = 256;
/// How many entries are kept while HSA is not initialized. The process may never initialize it.
const MAX_EARLY: u64 = 65_536;

pub static QUEUES: ThreadQueues<Entry, ThreadRanges> = ThreadQueues::new();
/// The number of entries made while HSA was not initialized, since the last [`collect`].
static EARLY: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LEVELS: Cell<Levels> = const { Cell::new(Levels { depth: 0, recorded: 0 }) };
    static PUSHED: Cell<u32> = const { Cell::new(0) };
    /// Levels in the other domains of NVTX that this thread has used.
    static OF_DOMAINS: RefCell<Vec<(u32, Levels)>> = const { RefCell::new(Vec::new()) };
}

/// Changes the calling thread's levels in a domain. `None`: the thread is ending.
#[inline]
fn with_levels<T>(domain: u32, work: impl FnOnce(&mut Levels) -> T) -> Option<T> {
    if domain == 0 {
        let mut levels = LEVELS.get();
        let result = work(&mut levels);
        LEVELS.set(levels);
        return Some(result);
    }
    let of_domains = |all: &RefCell<Vec<(u32, Levels)>>| {
        let mut all = all.try_borrow_mut().ok()?;
        let n = match all.iter().position(|(known, _)| *known == domain) {
            Some(n) => n,
            None => {
                all.push((domain, Levels::default()));
                all.len() - 1
            }
        };
        Some(work(&mut all[n].1))
    };
    OF_DOMAINS.try_with(of_domains).ok().flatten()
}

/// The ranges of a thread that are not popped.
#[derive(Clone, Copy, Default)]
struct Levels {
    depth: u32,
    /// No range that contains at least this number of ranges was recorded, so its end is not, either.
    recorded: u32,
}

/// Begins a range of this thread in a domain of NVTX, or in 0, the default domain. Returns how many ranges of the domain contain
/// it.
#[inline]
pub fn push(domain: u32, text: Option<&[u8]>) -> u32 {
    let push = |levels: &mut Levels| {
        let Levels { depth, recorded } = *levels;
        let is_recorded = record(Action::Push, level_in(domain, depth), text);
        *levels = Levels {
            depth: depth.saturating_add(1),
            recorded: if is_recorded {
                depth.saturating_add(1)
            } else {
                recorded.min(depth)
            },
        };
        depth
    };
    with_levels(domain, push).unwrap_or(0)
}

/// Ends the last range of this thread in a domain. Returns how many ranges contained it; `None` if there is no range.
#[inline]
pub fn pop(domain: u32) -> Option<u32> {
    let pop = |levels: &mut Levels| {
        let Levels { depth, recorded } = *levels;
        let depth = depth.checked_sub(1)?;
        *levels = Levels {
            depth,
            recorded: recorded.min(depth),
        };
        if depth < recorded {
            record(Action::Pop, level_in(domain, depth), None);
        }
        Some(depth)
    };
    with_levels(domain, pop).flatten()
}

/// As [`push`] in the default domain, if markers are not recorded.
pub fn push_unrecorded() -> u32 {
    let levels = LEVELS.get();
    LEVELS.set(Levels {
        depth: levels.depth.saturating_add(1),
        ..levels
    });
    levels.depth
}

/// Records an action. While the recording is stopped, only ends of ranges and names are recorded. Returns whether the
/// action was recorded.
#[inline]
pub fn record(action: Action, value: u64, text: Option<&[u8]>) -> bool {
    if !recording::is_on() && !action.ends() && !action.names() {
        return false;
    }
    let is_early = match calls::state() {
        state::ON => false,
        state::WAITING if may_record_early(action) => true,
        _ => return false,
    };
    let text = text.unwrap_or_default();
    let text = &text[..text.len().min(MAX_TEXT)];
    let mut entry = Entry {
        time: if is_early {
            clock::early()
        } else {
            clock::now()
        },
        value,
        thread: threads::thread_id(),
        action,
        is_early,
        length: text.len() as u16,
        text: [0; PIECE],
    };
    let was_pushed = QUEUES.with(|producer| {
        let first = text.len().min(PIECE);
        entry.text[..first].copy_from_slice(&text[..first]);
        producer.push(entry);
        if text.len() > PIECE {
            push_rest(producer, entry, &text[PIECE..]);
        }
    });
    let pushed = PUSHED.get().wrapping_add(1);
    PUSHED.set(pushed);
    if pushed.is_multiple_of(WAKE_INTERVAL) {
        wakeup::wake_if_asleep();
    }
    was_pushed
}

#[cold]
fn push_rest(producer: &mut Producer<Entry>, mut entry: Entry, text: &[u8]) {
    entry.action = Action::More;
    for piece in text.chunks(PIECE) {
        entry.text[..piece.len()].copy_from_slice(piece);
        producer.push(entry);
    }
}

#[cold]
fn may_record_early(action: Action) -> bool {
    let is_allowed = EARLY.fetch_add(1, Ordering::Relaxed) < MAX_EARLY;
    if !is_allowed && !action.ends() {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
    is_allowed
}

/// Passes the entries since the last call to `take`, in the order of each thread, and `None` when a thread has ended.
/// Returns how many markers were dropped since the last call.
pub fn collect(take: impl FnMut(&mut ThreadRanges, Option<Entry>)) -> u64 {
    EARLY.store(0, Ordering::Relaxed);
    QUEUES.collect(take) + DROPPED.swap(0, Ordering::Relaxed)
}

/// Called in the child of a fork: markers before the fork are the parent's.
pub fn in_child() {
    QUEUES.discard();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels of this thread: depth, and below which level ranges may be recorded.
    fn levels() -> (u32, u32) {
        let levels = LEVELS.get();
        (levels.depth, levels.recorded)
    }

    #[test]
    fn the_end_of_an_unrecorded_range_is_not_recorded() {
        std::thread::spawn(|| {
            assert_eq!(pop(0), None);
            assert_eq!([push_unrecorded(), push_unrecorded()], [0, 1]);
            assert_eq!(levels(), (2, 0));
            // As if the third range had been recorded.
            LEVELS.set(Levels {
                depth: 3,
                recorded: 3,
            });
            push_unrecorded();
            assert_eq!((pop(0), levels()), (Some(3), (3, 3)));
            assert_eq!((pop(0), levels()), (Some(2), (2, 2)));
            assert_eq!((pop(0), pop(0), levels()), (Some(1), Some(0), (0, 0)));
            assert_eq!(pop(0), None);
        })
        .join()
        .expect("no panic");
    }
}
