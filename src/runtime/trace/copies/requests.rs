//! The program's copies and fills: the work of the thread that requests them. In the steady state, this takes none of
//! devprof's locks, allocates nothing and makes no system call. The program's own completion signal stays in place
//! ([`watched_signals`]).

use crate::gpu::observers::{CopyCall, StartedCopy};
use crate::sys::threads;
use crate::trace::calls;
use crate::trace::hsa::watched_signals::{self, Kind, Watch};
use crate::trace::queues::thread_queues::ThreadQueues;
use crate::trace::queues::wakeup;
use crate::trace::recorder::clock;
use crate::trace::session::recording;
use hsa_abi::SignalHandle;
use std::sync::atomic::{AtomicU8, Ordering};

/// A copy or fill that was requested.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub call: CopyCall,
    /// When the function was called, system clock.
    pub submit: u64,
    /// When a synchronous function returned, system clock.
    pub returned: u64,
    /// `None` for a copy without a completion signal, or with one that cannot be watched.
    pub watch: Option<Watch>,
    /// See [`calls::current`].
    pub correlation: u64,
    /// Id of the stream, 0 for none.
    pub stream: u32,
    /// `gettid`.
    pub thread: u32,
}

mod state {
    /// Copies are not recorded.
    pub const OFF: u8 = 0;
    pub const ON: u8 = 1;
    /// The completion of further copies is not observed.
    pub const STOPPED: u8 = 2;
}

static STATE: AtomicU8 = AtomicU8::new(state::OFF);
pub static QUEUES: ThreadQueues<Copy> = ThreadQueues::new();

/// Records copies from now on.
pub fn start() {
    STATE.store(state::ON, Ordering::Relaxed);
}

/// From now on, HSA's functions are not called for copies in flight.
pub fn stop() {
    let _ = STATE.compare_exchange(
        state::ON,
        state::STOPPED,
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
}

/// Stops recording copies in this process.
pub fn turn_off() {
    STATE.store(state::OFF, Ordering::Relaxed);
}

/// The calling thread is about to request a copy. `None`: it is not recorded.
#[inline]
pub fn begin(call: &CopyCall) -> Option<StartedCopy> {
    let state = STATE.load(Ordering::Relaxed);
    if state == state::OFF {
        return None;
    }
    // HSA rejects the null signal.
    let signal = call.completion.filter(|&signal| signal != 0);
    let signal = signal.map(SignalHandle);
    if !recording::is_on() {
        // An earlier copy with this signal would get the times of this one.
        signal.into_iter().for_each(watched_signals::changing);
        return None;
    }
    let time = clock::now();
    let watch = signal.and_then(|signal| match state {
        state::ON => watched_signals::watch(signal, Kind::Copy),
        _ => {
            watched_signals::changing(signal);
            None
        }
    });
    Some(StartedCopy {
        time,
        watch: watch.map(Watch::number),
    })
}

/// The call is over.
#[inline]
pub fn end(call: &CopyCall, started: StartedCopy, is_success: bool) {
    let watch = started.watch.map(Watch::from_number);
    if !is_success {
        watch.into_iter().for_each(watched_signals::release);
        return;
    }
    let returned = match call.completion {
        None => clock::now(),
        Some(_) => 0,
    };
    let current = calls::current();
    let copy = Copy {
        call: *call,
        submit: started.time,
        returned,
        watch,
        correlation: current.id,
        stream: current.stream,
        thread: threads::thread_id(),
    };
    if !QUEUES.push(copy) {
        watch.into_iter().for_each(watched_signals::release);
    }
    wakeup::wake_if_asleep();
}
