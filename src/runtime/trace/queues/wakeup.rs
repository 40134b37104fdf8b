//! Wakes the completion thread from its sleep and its pauses.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

static THREAD: OnceLock<Thread> = OnceLock::new();
/// See [`is_running`].
static RUNNING: AtomicBool = AtomicBool::new(false);
/// The thread is in [`sleep_while`] and was not woken yet.
static ASLEEP: AtomicBool = AtomicBool::new(false);

pub fn set_thread(thread: Thread) {
    THREAD.get_or_init(|| thread);
}

/// Whether the thread was started.
pub fn has_thread() -> bool {
    THREAD.get().is_some()
}

/// Called by the completion thread when it begins.
pub fn set_running() {
    // The first call takes the dynamic loader's lock.
    std::thread::park_timeout(Duration::ZERO);
    RUNNING.store(true, Ordering::Release);
}

/// Whether the completion thread needs the dynamic loader's lock no more. Before that, a thread in `dlopen` must not
/// wait for it.
pub fn is_running() -> bool {
    RUNNING.load(Ordering::Acquire)
}

/// The calling thread, which is the completion thread, sleeps while `is_idle`, at most until `deadline`. A thread that
/// adds work must call [`wake_if_asleep`] or [`wake`] afterwards.
pub fn sleep_while(is_idle: impl Fn() -> bool, deadline: Option<Instant>) {
    ASLEEP.store(true, Ordering::SeqCst);
    // A thread that adds work after `is_idle` was evaluated sees `ASLEEP`.
    while ASLEEP.load(Ordering::SeqCst) && is_idle() {
        let Some(deadline) = deadline else {
            std::thread::park();
            continue;
        };
        let rest = deadline.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            break;
        }
        std::thread::park_timeout(rest);
    }
    ASLEEP.store(false, Ordering::SeqCst);
}

/// Wakes the thread if it sleeps in [`sleep_while`].
pub fn wake_if_asleep() {
    if ASLEEP.swap(false, Ordering::SeqCst) {
        wake();
    }
}

/// Wakes the thread, also from a pause between two polls.
pub fn wake() {
    if let Some(thread) = THREAD.get() {
        thread.unpark();
    }
}
