//! The API calls of the program: which one is in progress on a thread, and their records. A call takes no lock,
//! allocates nothing and calls no system in the steady state: each thread puts its records into a queue of its own.

use super::fifo::{Consumer, Producer, fifo};
use super::{clock, wakeup};
use crate::support::sync::lock;
use crate::sys::threads;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What calls return that end by an exception (`hipErrorUnknown`).
const ERROR_UNKNOWN: i32 = 999;
/// Records after which a thread sees to it that they are collected.
const NUDGE: u64 = 256;

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
    /// What it returned (`hipError_t`).
    pub status: i32,
}

/// Whether calls are recorded.
mod state {
    /// Those that return after HSA's clock is there: HSA has not told of its start yet.
    pub const WAITING: u8 = 0;
    pub const ON: u8 = 1;
    /// Never again in this process.
    pub const OFF: u8 = 2;
}

static STATE: AtomicU8 = AtomicU8::new(state::WAITING);
/// HSA's clock when the recording began.
static STARTED: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A queue that the collector has not seen.
struct New {
    calls: Consumer<CallRecord>,
    next: *mut New,
}

/// Queues of threads that the collector has not seen: a stack, taken as a whole.
static NEW: AtomicPtr<New> = AtomicPtr::new(ptr::null_mut());
/// Queues that it knows.
static KNOWN: Mutex<Vec<Consumer<CallRecord>>> = Mutex::new(Vec::new());

thread_local! {
    static CURRENT: Cell<u64> = const { Cell::new(0) };
    static RECORDED: Cell<u64> = const { Cell::new(0) };
    static PRODUCER: Cell<Option<Producer<CallRecord>>> = const { Cell::new(None) };
}

/// Correlation id of the API call in progress on this thread, 0 for none.
pub fn current() -> u64 {
    CURRENT.get()
}

/// Calls are recorded from now on. HSA's clock is there.
pub fn start() {
    STARTED.store(clock::now(), Ordering::Relaxed);
    // After the clock that `end` reads.
    STATE.store(state::ON, Ordering::Release);
}

/// HSA's clock is about to go, and may come again.
pub fn pause() {
    if STATE.load(Ordering::Relaxed) == state::ON {
        STATE.store(state::WAITING, Ordering::Relaxed);
    }
}

/// No call is recorded in this process.
pub fn turn_off() {
    STATE.store(state::OFF, Ordering::Relaxed);
}

/// In the child of a fork. `is_owner`: HSA was not initialized at the fork, and the child may use it.
pub fn in_child(is_owner: bool) {
    if !is_owner || STATE.load(Ordering::Relaxed) != state::WAITING {
        turn_off();
    }
}

/// A call in progress; it ends when this is dropped.
pub struct Call {
    id: u64,
    /// 0: HSA's clock was not there.
    start: u64,
    /// Of [`clock::early`], where there is no `start`.
    early: u64,
    function: &'static str,
    pub status: i32,
}

/// A call of `function` begins on this thread. `None`: it is not to be recorded, or it is a part of one that is.
#[inline]
pub fn begin(function: &'static str) -> Option<Call> {
    let state = STATE.load(Ordering::Acquire);
    if state == state::OFF || CURRENT.get() != 0 {
        return None;
    }
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    CURRENT.set(id);
    let (start, early) = match state {
        state::ON => (clock::now(), 0),
        _ => (0, clock::early()),
    };
    Some(Call {
        id,
        start,
        early,
        function,
        status: ERROR_UNKNOWN,
    })
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(0);
        if STATE.load(Ordering::Acquire) != state::ON {
            return;
        }
        let end = clock::now();
        let start = match self.start {
            0 if clock::early_is_true() => self.early,
            0 => STARTED.load(Ordering::Relaxed),
            start => start,
        };
        record(CallRecord {
            id: self.id,
            start: start.min(end),
            end,
            function: self.function,
            thread: threads::thread_id(),
            status: self.status,
        });
    }
}

fn record(call: CallRecord) {
    let kept = PRODUCER.try_with(|cell| {
        // Taken out while it is used: a signal handler finds none and makes one, which is dropped here, but read.
        let mut producer = cell.take().unwrap_or_else(producer);
        producer.push(call);
        cell.set(Some(producer));
    });
    if kept.is_err() {
        // The thread is about to end and has no queue any more.
        producer().push(call);
    }
    let recorded = RECORDED.get() + 1;
    RECORDED.set(recorded);
    if recorded.is_multiple_of(NUDGE) {
        wakeup::nudge();
    }
}

/// A new queue, which the collector will find.
#[cold]
fn producer() -> Producer<CallRecord> {
    let (producer, calls) = fifo(1);
    let next = NEW.load(Ordering::Relaxed);
    let new = Box::into_raw(Box::new(New { calls, next }));
    let mut top = next;
    loop {
        match NEW.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return producer,
            Err(now) => top = now,
        }
        // SAFETY: made above, and nobody else knows it yet.
        unsafe { (*new).next = top };
    }
}

fn known() -> MutexGuard<'static, Vec<Consumer<CallRecord>>> {
    let mut known = lock(&KNOWN);
    let mut new = NEW.swap(ptr::null_mut(), Ordering::Acquire);
    while !new.is_null() {
        // SAFETY: made from a box by `producer`, and the whole stack was taken.
        let taken = unsafe { Box::from_raw(new) };
        new = taken.next;
        known.push(taken.calls);
    }
    known
}

/// There are calls to be collected.
pub fn waiting() -> bool {
    known().iter_mut().any(|calls| !calls.is_empty())
}

/// Gives `take` the calls that have returned since the last time.
pub fn drain(take: &mut impl FnMut(CallRecord)) {
    known().retain_mut(|calls| {
        // Asked before: what the thread pushed last is there when it is gone.
        let closed = calls.is_closed();
        while let Some(call) = calls.pop() {
            take(call);
        }
        !closed
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect() -> Vec<CallRecord> {
        let mut all = Vec::new();
        drain(&mut |call| all.push(call));
        all.sort_by_key(|call| call.id);
        all
    }

    fn call(function: &'static str, status: i32) {
        if let Some(mut call) = begin(function) {
            call.status = status;
        }
    }

    /// One test: there is one state a process.
    #[test]
    fn calls_are_recorded_once_each() {
        // Before HSA: not recorded, but for what ends after HSA's start.
        call("early", 0);
        let first = begin("first");
        assert_ne!(current(), 0);
        start();
        drop(first);
        assert_eq!(current(), 0);
        {
            let outer = begin("outer");
            assert!(begin("inner").is_none(), "a part of the outer call");
            let mut outer = outer.expect("recorded");
            assert_eq!(current(), outer.id);
            outer.status = 7;
        }
        let calls = collect();
        let seen: Vec<_> = calls.iter().map(|c| (c.function, c.status)).collect();
        assert_eq!(seen, [("first", ERROR_UNKNOWN), ("outer", 7)]);
        assert!(calls[0].id < calls[1].id);
        assert_eq!(calls[0].thread, threads::thread_id());
        assert!(!waiting());

        // Threads, with more records than a segment has, that are gone when they are collected.
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..1000).for_each(|n| call("many", n))))
            .collect();
        let mut early = collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert!(waiting() || early.len() == 4000);
        early.extend(collect());
        assert_eq!(early.len(), 4000);
        let mut ids: Vec<_> = early.iter().map(|c| c.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4000);
        let mut threads: Vec<_> = early.iter().map(|c| c.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(threads.len(), 4);
        // This thread's queue is kept, those of the threads are not.
        assert_eq!(known().len(), 1);

        // A call from the destructor of a thread-local that outlives the queue.
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                assert!(PRODUCER.try_with(|_| ()).is_err(), "the queue is gone");
                call("late", 0);
            }
        }
        thread_local! {
            static LATE: Cell<Option<Late>> = const { Cell::new(None) };
        }
        std::thread::spawn(|| {
            // The value that is first used is dropped last.
            LATE.set(Some(Late));
            call("before", 0);
        })
        .join()
        .expect("no panic");
        let seen: Vec<_> = collect().iter().map(|c| c.function).collect();
        assert_eq!(seen, ["before", "late"]);

        pause();
        call("between", 0);
        in_child(true);
        start();
        call("again", 0);
        assert_eq!(collect().len(), 1);
        in_child(true);
        call("child", 0);
        assert!(begin("child").is_none());
        assert!(collect().is_empty());
    }
}
