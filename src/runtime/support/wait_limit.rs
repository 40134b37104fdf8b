//! How long devprof waits for the GPU: up to DEVPROF_SYNC_MS each time, and all waits at the end of the process together.

#![forbid(unsafe_code)]

use super::settings::settings;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time that is left for the waits at the end of the process, nanoseconds.
static LEFT: AtomicU64 = AtomicU64::new(NOT_ENDING);
/// The process does not end.
const NOT_ENDING: u64 = u64::MAX;

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().min(u128::from(NOT_ENDING - 1)) as u64
}

/// The process ends.
pub fn begin_ending() {
    let all = nanoseconds(settings().sync_limit);
    // It may have begun before.
    let _ = LEFT.compare_exchange(NOT_ENDING, all, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether the process ends.
pub fn is_ending() -> bool {
    LEFT.load(Ordering::Relaxed) != NOT_ENDING
}

/// The limit for a wait that begins now.
pub fn left() -> Duration {
    match LEFT.load(Ordering::Relaxed) {
        NOT_ENDING => settings().sync_limit,
        left => Duration::from_nanos(left),
    }
}

/// Whether earlier waits at the end of the process have left nothing.
pub fn is_used_up() -> bool {
    left().is_zero() && !settings().sync_limit.is_zero()
}

/// A wait. When it is dropped, its time counts.
pub struct Waiting {
    start: Instant,
    /// The time that was left when it began.
    pub limit: Duration,
}

impl Waiting {
    pub fn begin() -> Waiting {
        Waiting {
            start: Instant::now(),
            limit: left(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let time = nanoseconds(self.start.elapsed());
        let less = |left| (left != NOT_ENDING).then_some(u64::saturating_sub(left, time));
        // If the process does not end, nothing changes.
        let _ = LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_share_one_limit_from_the_end_of_the_process_on() {
        let limit = settings().sync_limit;
        let late = |limit| Waiting {
            start: Instant::now().checked_sub(limit).expect("a later time"),
            limit,
        };
        drop(late(limit));
        assert_eq!(left(), limit);
        begin_ending();
        drop(late(limit / 2));
        let half = left();
        assert!(half <= limit / 2);
        begin_ending();
        assert_eq!(left(), half);
        drop(late(limit));
        assert_eq!(Waiting::begin().limit, Duration::ZERO);
        assert!(is_used_up());
        LEFT.store(NOT_ENDING, Ordering::Relaxed);
    }
}
