//! The program's API calls: the one in progress on a thread, and records of those that have returned. In the steady
//! state a call takes no lock, allocates nothing and makes no system call: each thread has its own queue of records.

use crate::sys::threads;
use crate::trace::queues::thread_queues::ThreadQueues;
use crate::trace::queues::wakeup;
use crate::trace::recorder::clock;
use crate::trace::recorder::streams::{self, NamedStream};
use crate::trace::session::recording;
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The recorded status of a call that ends with an exception (`hipErrorUnknown`).
const ERROR_UNKNOWN: i32 = 999;
/// The number of records after which a thread wakes the completion thread to collect them.
const WAKE_INTERVAL: u64 = 256;

/// An API call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    /// Correlation id, from 1.
    pub id: u64,
    /// System clock.
    pub start: u64,
    /// System clock.
    pub end: u64,
    pub function: &'static str,
    /// `gettid` of the thread that called.
    pub thread: u32,
    /// The error code that it returned (`hipError_t`); 0 if the function does not return an error code.
    pub status: i32,
    /// Id of the stream that its arguments name, 0 for none.
    pub stream: u32,
}

/// Whether the trace can record.
pub mod state {
    /// HSA's initialization was not reported yet, or HSA was shut down. A call is recorded if it returns after that.
    pub const WAITING: u8 = 0;
    pub const ON: u8 = 1;
    /// Permanent in this process.
    pub const OFF: u8 = 2;
}

static STATE: AtomicU8 = AtomicU8::new(state::WAITING);
/// The system clock when recording began.
static STARTED: AtomicU64 = AtomicU64::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub static QUEUES: ThreadQueues<CallRecord> = ThreadQueues::new();

/// The API call in progress on a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Current {
    /// Correlation id, 0 for none.
    pub id: u64,
    /// Id of the call's stream, 0 for none.
    pub stream: u32,
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current { id: 0, stream: 0 }) };
    static RECORDED: Cell<u64> = const { Cell::new(0) };
}

/// See [`state`]. With [`state::ON`], HSA's clock is available.
pub fn state() -> u8 {
    // Acquire: see `start`.
    STATE.load(Ordering::Acquire)
}

/// The system clock when recording began.
pub fn started() -> u64 {
    STARTED.load(Ordering::Relaxed)
}

/// The API call in progress on this thread.
pub fn current() -> Current {
    CURRENT.get()
}

/// Records calls from now on. HSA's clock is available.
pub fn start() {
    STARTED.store(clock::now(), Ordering::Relaxed);
    // Release: `Call::drop` reads the clock's id only after it has loaded this state with acquire order.
    STATE.store(state::ON, Ordering::Release);
}

/// HSA's clock is about to become unavailable, perhaps temporarily.
pub fn pause() {
    if STATE.load(Ordering::Relaxed) == state::ON {
        STATE.store(state::WAITING, Ordering::Relaxed);
    }
}

/// Stops recording calls in this process.
pub fn turn_off() {
    STATE.store(state::OFF, Ordering::Relaxed);
}

/// Called in the child of a fork. `is_owner`: HSA was not initialized at the fork, and the child may use it.
pub fn in_child(is_owner: bool) {
    if !is_owner || STATE.load(Ordering::Relaxed) != state::WAITING {
        turn_off();
    }
}

/// A call in progress.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    id: u64,
    /// System clock; 0: HSA's clock was not available yet.
    start: u64,
    /// [`clock::early`] if `start` is 0.
    early: u64,
    function: &'static str,
    stream: u32,
}

impl Started {
    /// When it was called, system clock; 0: HSA's clock was not available yet.
    pub fn start(&self) -> u64 {
        self.start
    }
}

/// A call in progress that ends when this is dropped.
pub struct Call {
    started: Started,
    pub status: i32,
}

impl Call {
    /// The call, which ends with [`Started::end`] instead.
    pub fn started(self) -> Started {
        let started = self.started;
        std::mem::forget(self);
        started
    }
}

/// Begins a call of `function` on this thread, for `stream`. `None`: calls are not recorded now, or the call is nested
/// in another one.
#[inline]
pub fn begin(function: &'static str, stream: NamedStream) -> Option<Call> {
    let state = STATE.load(Ordering::Acquire);
    if state == state::OFF || !recording::is_on() || CURRENT.get().id != 0 {
        return None;
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    // First without the stream: a signal handler that interrupts `streams::id` must not call it, too.
    CURRENT.set(Current { id, stream: 0 });
    let stream = streams::id(stream);
    CURRENT.set(Current { id, stream });
    let (start, early) = match state {
        state::ON => (clock::now(), 0),
        _ => (0, clock::early()),
    };
    Some(Call {
        started: Started {
            id,
            start,
            early,
            function,
            stream,
        },
        status: ERROR_UNKNOWN,
    })
}

impl Drop for Call {
    fn drop(&mut self) {
        self.started.end(self.status);
    }
}

impl Started {
    /// The call has returned `status`. To be called on the thread that began it.
    #[inline(never)]
    pub fn end(self, status: i32) {
        CURRENT.set(Current::default());
        if STATE.load(Ordering::Acquire) != state::ON {
            return;
        }
        let end = clock::now();
        let start = match self.start {
            0 if clock::early_is_valid() => self.early,
            0 => STARTED.load(Ordering::Relaxed),
            start => start,
        };
        record(CallRecord {
            id: self.id,
            start: start.min(end),
            end,
            function: self.function,
            thread: threads::thread_id(),
            status,
            stream: self.stream,
        });
    }
}

fn record(call: CallRecord) {
    QUEUES.push(call);
    let recorded = RECORDED.get() + 1;
    RECORDED.set(recorded);
    if recorded.is_multiple_of(WAKE_INTERVAL) {
        wakeup::wake_if_asleep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected() -> Vec<CallRecord> {
        let mut all = Vec::new();
        QUEUES.collect(|(), call| all.extend(call));
        all.sort_by_key(|call| call.id);
        all
    }

    fn begin(function: &'static str) -> Option<Call> {
        super::begin(function, NamedStream::None)
    }

    fn call(function: &'static str, status: i32) {
        if let Some(mut call) = begin(function) {
            call.status = status;
        }
    }

    /// One test, because the state is global.
    #[test]
    fn calls_are_recorded_once_each() {
        // Before HSA's initialization, only calls that end after it are recorded.
        call("early", 0);
        let first = begin("first");
        assert_ne!(current().id, 0);
        start();
        drop(first);
        assert_eq!(current(), Current::default());
        {
            let outer = begin("outer");
            assert!(begin("inner").is_none(), "nested in the outer call");
            let mut outer = outer.expect("recorded");
            assert_eq!(current().id, outer.started.id);
            outer.status = 7;
        }
        let calls = collected();
        let seen: Vec<_> = calls.iter().map(|c| (c.function, c.status)).collect();
        assert_eq!(seen, [("first", ERROR_UNKNOWN), ("outer", 7)]);
        assert!(calls[0].id < calls[1].id);
        assert_eq!(calls[0].thread, threads::thread_id());
        assert!(!QUEUES.has_entries());

        // Threads that have ended when their records are collected, each with more records than a segment has.
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..1000).for_each(|n| call("many", n))))
            .collect();
        let mut early = collected();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert!(QUEUES.has_entries() || early.len() == 4000);
        early.extend(collected());
        assert_eq!(early.len(), 4000);
        let mut ids: Vec<_> = early.iter().map(|c| c.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4000);
        let mut threads: Vec<_> = early.iter().map(|c| c.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(threads.len(), 4);

        // A call in the destructor of a thread-local variable.
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                call("late", 0);
            }
        }
        thread_local! {
            static LATE: Cell<Option<Late>> = const { Cell::new(None) };
        }
        std::thread::spawn(|| {
            LATE.set(Some(Late));
            call("before", 0);
        })
        .join()
        .expect("no panic");
        let seen: Vec<_> = collected().iter().map(|c| c.function).collect();
        assert_eq!(seen, ["before", "late"]);

        pause();
        call("between", 0);
        in_child(true);
        start();
        call("again", 0);
        assert_eq!(collected().len(), 1);
        in_child(true);
        call("child", 0);
        assert!(begin("child").is_none());
        assert!(collected().is_empty());
    }
}
