//! Notifications of changes, for threads that wait for signals.

use crate::sync::{die, locked};
use hsa_abi::*;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

static VERSION: AtomicU64 = AtomicU64::new(0);

static WAITERS: AtomicUsize = AtomicUsize::new(0);

static BELL: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// The number of notifications so far.
pub fn version() -> u64 {
    VERSION.load(SeqCst)
}

/// Notifies all waiting threads of a change.
pub fn notify() {
    VERSION.fetch_add(1, SeqCst);
    if WAITERS.load(SeqCst) > 0 {
        drop(locked(&BELL.0));
        BELL.1.notify_all();
    }
}

/// Waits at most `limit` for a notification after [`version`] returned `seen`.
pub fn wait_since(seen: u64, limit: Duration) {
    WAITERS.fetch_add(1, SeqCst);
    let bell = locked(&BELL.0);
    drop(
        BELL.1
            .wait_timeout_while(bell, limit, |()| version() == seen)
            .unwrap_or_else(PoisonError::into_inner),
    );
    WAITERS.fetch_sub(1, SeqCst);
}

pub fn holds(condition: u32, value: SignalValue, compare: SignalValue) -> bool {
    match condition {
        HSA_SIGNAL_CONDITION_EQ => value == compare,
        HSA_SIGNAL_CONDITION_NE => value != compare,
        HSA_SIGNAL_CONDITION_LT => value < compare,
        HSA_SIGNAL_CONDITION_GTE => value >= compare,
        _ => {
            die(&format!("{condition} is not a signal condition"));
        }
    }
}

/// The time that a wait polls before it sleeps.
const SPIN: Duration = Duration::from_micros(30);

/// The interval of polls: kernels change signals without a notification.
pub const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Waits until `met` returns a value, but at most `timeout` ticks of the system's clock.
pub fn wait<T>(timeout: u64, met: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let seen = version();
        if let Some(found) = met() {
            return Some(found);
        }
        let waited = start.elapsed();
        let left = Duration::from_nanos(timeout).saturating_sub(waited);
        if left.is_zero() {
            return None;
        }
        if waited < SPIN {
            std::thread::yield_now();
        } else {
            wait_since(seen, left.min(POLL_INTERVAL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    #[test]
    fn a_wait_ends_at_the_change_or_at_its_timeout() {
        let value = AtomicI64::new(1);
        let is_zero = || (value.load(Relaxed) == 0).then_some(());
        let start = Instant::now();
        assert_eq!(wait(20_000_000, is_zero), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                value.store(0, Relaxed);
                notify();
            });
            assert_eq!(wait(u64::MAX, is_zero), Some(()));
        });
    }

    #[test]
    fn conditions_are_those_of_the_header() {
        let met: Vec<_> = (0..4).map(|c| [-1, 0, 1].map(|v| holds(c, v, 0))).collect();
        assert_eq!(
            met,
            [
                [false, true, false],
                [true, false, true],
                [true, false, false],
                [false, true, true]
            ]
        );
    }
}
