//! Wakes the completion thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

static THREAD: OnceLock<Thread> = OnceLock::new();
/// The thread sleeps until it is woken.
static ASLEEP: AtomicBool = AtomicBool::new(false);

pub fn set_thread(thread: Thread) {
    THREAD.get_or_init(|| thread);
}

/// Whether the thread was started.
pub fn has_thread() -> bool {
    THREAD.get().is_some()
}

/// The calling thread, which is the completion thread, sleeps while `is_idle`. Whoever ends that calls [`nudge`] or
/// [`wake`] afterwards.
pub fn sleep_while(is_idle: impl Fn() -> bool) {
    ASLEEP.store(true, Ordering::SeqCst);
    // Whoever adds work after this check sees that the thread sleeps.
    while ASLEEP.load(Ordering::SeqCst) && is_idle() {
        std::thread::park();
    }
    ASLEEP.store(false, Ordering::SeqCst);
}

/// Wakes the thread if it sleeps in [`sleep_while`].
pub fn nudge() {
    if ASLEEP.swap(false, Ordering::SeqCst) {
        wake();
    }
}

/// Wakes the thread, also from a short pause.
pub fn wake() {
    if let Some(thread) = THREAD.get() {
        thread.unpark();
    }
}
