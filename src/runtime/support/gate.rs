//! Keeps a thread of devprof out of the GPU runtimes while the process forks or ends. Unlike a mutex, a forked child can read
//! the state, and whoever closes the gate can stop waiting.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How often a thread that waits looks again.
const INTERVAL: Duration = Duration::from_micros(50);

/// [`BUSY`] while the thread is inside, plus [`CLOSED`] for each caller that keeps the gate closed.
pub struct Gate(AtomicU32);

const BUSY: u32 = 1;
const CLOSED: u32 = 2;

/// The thread is inside until this is dropped.
pub struct Inside<'a>(&'a Gate);

impl Gate {
    pub const fn new() -> Gate {
        Gate(AtomicU32::new(0))
    }

    /// Lets the thread in. `None` while the gate is closed.
    pub fn enter(&self) -> Option<Inside<'_>> {
        let entered = self
            .0
            .compare_exchange(0, BUSY, Ordering::SeqCst, Ordering::SeqCst);
        entered.is_ok().then(|| Inside(self))
    }

    /// Closes the gate and waits, up to `limit` if there is one, until the thread is outside.
    pub fn close(&self, limit: Option<Duration>) {
        if self.0.fetch_add(CLOSED, Ordering::SeqCst) & BUSY == 0 {
            return;
        }
        let begin = Instant::now();
        while self.0.load(Ordering::SeqCst) & BUSY != 0
            && limit.is_none_or(|limit| begin.elapsed() < limit)
        {
            std::thread::sleep(INTERVAL);
        }
    }

    /// Takes one [`Gate::close`] back.
    pub fn open(&self) {
        self.0.fetch_sub(CLOSED, Ordering::SeqCst);
    }

    /// In the child of a fork, which does not have the thread. Returns whether the thread was inside: it may have held locks
    /// that nobody will release.
    pub fn reset(&self) -> bool {
        self.0.swap(0, Ordering::SeqCst) & BUSY != 0
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(BUSY, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_lets_nobody_in_until_it_is_opened_as_often() {
        let gate = Gate::new();
        gate.close(None);
        gate.close(None);
        gate.open();
        assert!(gate.enter().is_none());
        gate.open();
        assert!(gate.enter().is_some());
        assert!(gate.enter().is_some());
    }

    #[test]
    fn closing_waits_up_to_the_limit_and_the_child_knows_who_was_inside() {
        let gate = Gate::new();
        let inside = gate.enter();
        gate.close(Some(Duration::from_millis(1)));
        assert!(gate.enter().is_none());
        std::mem::forget(inside);
        assert!(gate.reset());
        assert!(!gate.reset());
    }

    #[test]
    fn closing_waits_for_the_thread_inside() {
        let gate = Gate::new();
        let inside = gate.enter();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                drop(inside);
            });
            gate.close(None);
            assert!(!gate.reset());
        });
    }
}
