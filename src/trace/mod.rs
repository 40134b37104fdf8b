//! The trace: every kernel dispatch and the API call that made it, with their times (`DEVPROF_TRACE`).
//!
//! The way of a dispatch, a module a stage:
//!
//! | stage | module |
//! | --- | --- |
//! | the API call in progress on the thread | [`hip_calls`], [`calls`] |
//! | who writes a packet, and when | [`writers`] |
//! | packets that the program has written | [`capture`] |
//! | to the completion thread, and signals back | [`lane`], over [`fifo`]; [`attention`] |
//! | times, names, the record | [`complete`], [`kernels`] |
//! | the file | [`file`] |

mod attention;
pub mod calls;
pub mod capture;
mod clock;
mod complete;
mod fifo;
mod file;
mod hip_calls;
pub mod kernels;
mod lane;
mod sync;
pub mod writers;

use clock::now;
pub use lane::Signals;

use crate::guard::{Busy, Cost, lock};
use crate::host;
use crate::hsa::times::{self, DispatchTime};
use crate::hsa::types::{AgentHandle, ExecutableHandle, SignalHandle};
use crate::hsa::{cooperative, intercept};
use crate::pattern::{Values, expand_process};
use crate::report;
use capture::Capture;
use complete::{Completer, Pass};
use file::TraceFile;
use std::cell::Cell;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tracefile::format::Header;

/// The completion thread looks again so soon after it has found something.
const SHORTEST_PAUSE: Duration = Duration::from_micros(200);
/// And so late, at the latest, until it sleeps.
const LONGEST_PAUSE: Duration = Duration::from_micros(800);
/// What doorbells keep back is handed on again so soon after.
const RING_PAUSE: Duration = Duration::from_micros(50);
/// Passes that find nothing, with nothing in flight, before it sleeps.
const IDLE_PASSES: u32 = 10;

struct Trace {
    completer: Mutex<Completer>,
    /// Queues that have something in flight and are not looked at yet.
    activated: Mutex<Vec<u32>>,
    /// Signals of the program's that were destroyed, and when, after some have stood for a kernel.
    destroyed: Mutex<Vec<(SignalHandle, u64)>>,
    thread: OnceLock<Thread>,
    /// Runs while doorbells keep packets back, once that has happened.
    doorbells: OnceLock<Thread>,
    /// The completion thread sleeps until it is woken.
    asleep: AtomicBool,
    /// HSA's functions must not be called.
    stopped: AtomicBool,
    /// Threads in `hsa_shut_down`, after which HSA's functions may be out of use: nor must they be called meanwhile.
    /// Changes under the lock of `completer`.
    shutting_down: AtomicUsize,
}

static TRACE: OnceLock<Trace> = OnceLock::new();
/// The trace is that of the process that forked this one.
static PARENTS: AtomicBool = AtomicBool::new(false);

/// The trace of this process.
fn trace() -> Option<&'static Trace> {
    TRACE.get().filter(|_| !PARENTS.load(Ordering::Relaxed))
}

/// In the child of a fork; `ours`: HSA was not there, and may be initialised by the child.
pub fn forked(ours: bool) {
    PARENTS.store(TRACE.get().is_some(), Ordering::Relaxed);
    calls::forked(ours);
}

thread_local! {
    /// This thread has the completer, or is about to.
    static HAS: Cell<bool> = const { Cell::new(false) };
}

impl Trace {
    /// Does `work` under the completer's lock. `None`: a signal handler has interrupted this thread while it had that lock,
    /// and would wait for itself.
    fn with<R>(&self, work: impl FnOnce(&mut Completer) -> R) -> Option<R> {
        let Some(_busy) = Busy::begin(&HAS) else {
            report::lost(
                "a signal handler interrupted the recording of the trace and ends the process, or calls HSA: the trace is not complete",
            );
            return None;
        };
        // The lock goes before the mark.
        Some(work(&mut lock(&self.completer)))
    }

    fn activated(&self) -> MutexGuard<'_, Vec<u32>> {
        lock(&self.activated)
    }

    fn pass(&self, completer: &mut Completer) -> Pass {
        if self.stopped.load(Ordering::SeqCst) || self.shutting_down.load(Ordering::SeqCst) > 0 {
            return Pass::default();
        }
        completer.activate(&mut self.activated());
        completer.pass(&mut lock(&self.destroyed))
    }

    /// What the completion thread does: it looks often while much happens, less often while kernels take long, and
    /// sleeps while nothing is in flight.
    fn run(&self) {
        let mut pause = SHORTEST_PAUSE;
        let mut idle = 0;
        loop {
            let pass = self.with(|completer| self.pass(completer));
            let mut pass = pass.unwrap_or_default();
            if intercept::doorbells_are_held() {
                self.ring_doorbells();
                pass.busy += 1;
            }
            if pass.recorded > 0 {
                (pause, idle) = (SHORTEST_PAUSE, 0);
            } else if pass.busy == 0 && pass.looked == 0 && idle >= IDLE_PASSES {
                self.sleep();
                (pause, idle) = (SHORTEST_PAUSE, 0);
                continue;
            } else {
                pause = (2 * pause).min(LONGEST_PAUSE);
                idle = if pass.busy > 0 { 0 } else { idle + 1 };
            }
            std::thread::park_timeout(pause);
        }
    }

    /// Has another thread hand on what doorbells keep back: that goes through ROCr's lock of the queue, whose holder may
    /// wait for signals, for which the completion thread has to be free.
    fn ring_doorbells(&self) {
        if let Some(thread) = self.doorbells.get() {
            thread.unpark();
            return;
        }
        let spawned = host::spawn_quiet("devprof-ring", Cost::Dispatches, || {
            loop {
                while intercept::pump_doorbells() {
                    std::thread::sleep(RING_PAUSE);
                }
                std::thread::park();
            }
        });
        match spawned {
            Ok(thread) => {
                let _ = self.doorbells.set(thread);
            }
            // Tried again at the next pass.
            Err(error) => report::lost(format_args!(
                "cannot start the thread that hands on packets, the program waits for it: {error}"
            )),
        }
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        // Whoever activates a queue after this look sees that the thread sleeps.
        while self.asleep.load(Ordering::SeqCst)
            && self.activated().is_empty()
            && (self.stopped.load(Ordering::SeqCst) || !calls::waiting())
        {
            std::thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }

    fn nudge(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// Begins the trace that `pattern` names. HSA is being initialised and nothing is launched yet. Called again when HSA
/// is, after a shutdown.
pub fn start(pattern: &OsStr) -> bool {
    if PARENTS.load(Ordering::Relaxed) {
        report::lost(
            "the process that forked this one has a trace already; this one runs untraced",
        );
        return false;
    }
    if let Some(trace) = TRACE.get() {
        trace.stopped.store(false, Ordering::SeqCst);
        // Nobody would make signals without the thread, which could not be started then.
        return trace.thread.get().is_some();
    }
    let path = expand_process(pattern, &Values::now());
    let made = times::clock_frequency()
        .map_err(|error| error.to_string())
        .and_then(|frequency| {
            clock::find(frequency);
            let started = now();
            let unix = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_nanos() as u64);
            let header = Header::new(std::process::id(), frequency, started, unix);
            TraceFile::create(&path, &header)
                .map(|file| Completer::new(file, frequency))
                .map_err(|error| error.to_string())
        });
    let mut completer = match made {
        Ok(completer) => completer,
        Err(error) => {
            report::lost(format_args!(
                "cannot make the trace {}: {error}; the program runs untraced",
                path.display()
            ));
            return false;
        }
    };
    completer.record_process();
    let trace = TRACE.get_or_init(|| Trace {
        completer: Mutex::new(completer),
        activated: Mutex::default(),
        destroyed: Mutex::default(),
        thread: OnceLock::new(),
        doorbells: OnceLock::new(),
        asleep: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        shutting_down: AtomicUsize::new(0),
    });
    match host::spawn_quiet("devprof-trace", Cost::Dispatches, move || {
        // It wakes up thousands of times a second, and would mostly take the place of a thread that launches.
        host::give_way();
        trace.run();
    }) {
        Ok(thread) => {
            let _ = trace.thread.set(thread);
            true
        }
        Err(error) => {
            report::lost(format_args!(
                "cannot start the thread that records dispatches: {error}; the program runs untraced"
            ));
            false
        }
    }
}

/// What gets the packets of a new queue; `None` for a queue that is not traced.
pub fn queue_made(agent: AgentHandle, queue: usize, size: u32) -> Option<Capture> {
    let trace = trace()?;
    trace.with(|completer| completer.queue_made(agent, queue, size, activate, wake))?
}

/// A queue that was traced is gone.
pub fn queue_gone(queue: usize, capture: Capture) {
    if let Some(trace) = trace() {
        // The caller is in a call of HSA's, so that HSA is alive, also after the end of the trace.
        trace.with(|completer| {
            completer.queue_gone(queue, capture);
            if trace.stopped.load(Ordering::SeqCst) {
                completer.destroy_store();
            }
        });
    }
}

/// An executable was frozen: its kernels may be dispatched next.
pub fn frozen(executable: ExecutableHandle) {
    if let Some(trace) = trace() {
        trace.with(|completer| completer.frozen(executable));
    }
}

/// The times of a kernel whose completion signal, `signal`, was forwarded.
pub fn dispatch_time(signal: SignalHandle) -> Option<DispatchTime> {
    let trace = trace()?;
    trace.with(|completer| {
        // The kernel is complete, for its signal is, but perhaps nobody has looked yet.
        trace.pass(completer);
        completer.forwarded(signal)
    })?
}

/// A signal of the program's is about to be destroyed.
pub fn signal_destroyed(signal: SignalHandle) {
    if capture::is_forwarding()
        && let Some(trace) = trace()
    {
        lock(&trace.destroyed).push((signal, now()));
    }
}

/// A queue has something in flight and is not looked at.
fn activate(queue: u32) {
    if let Some(trace) = trace() {
        trace.activated().push(queue);
        trace.nudge();
    }
}

/// Wakes the completion thread if it sleeps until it is woken.
fn nudge() {
    if let Some(trace) = trace() {
        trace.nudge();
    }
}

/// Wakes the completion thread, whatever it does.
fn wake() {
    if let Some(trace) = trace() {
        trace.wake();
    }
}

/// The program ends: waits for what is in flight, up to `limit`, records the rest as unfinished, and closes the file.
/// HSA is not used any more.
pub fn finish(limit: Duration) {
    let Some(trace) = trace() else {
        return;
    };
    let begin = Instant::now();
    let is_over = |completer: &mut Completer| {
        trace.pass(completer);
        let is_over = !completer.is_busy() || begin.elapsed() >= limit;
        if is_over && !trace.stopped.swap(true, Ordering::SeqCst) {
            completer.stop();
            report_missed(completer);
        }
        is_over
    };
    while trace.with(is_over) == Some(false) {
        std::thread::sleep(SHORTEST_PAUSE);
    }
}

/// Reports dispatches that the trace does not have.
fn report_missed(completer: &Completer) {
    cooperative::report();
    if completer.has_kernels() && !intercept::saw_queue() {
        report::lost(
            "the trace has no dispatches: kernels were loaded, but no queue was created in a way that devprof knows; this HSA runtime may be newer than it",
        );
    }
}

/// Somebody shuts HSA down, perhaps not for good: it counts who uses it, and does not tell.
pub fn pause() {
    if let Some(trace) = trace() {
        trace.with(|completer| {
            trace.pass(completer);
            report_missed(completer);
            completer.destroy_store();
            trace.shutting_down.fetch_add(1, Ordering::SeqCst);
        });
    }
}

/// That is over. Unless [`release`] was called meanwhile, HSA is alive still, and the trace goes on.
pub fn resume() {
    if let Some(trace) = trace() {
        trace.with(|_| trace.shutting_down.fetch_sub(1, Ordering::SeqCst));
        trace.wake();
    }
}

/// HSA is down, and may be initialised again.
pub fn release() {
    if let Some(trace) = trace() {
        trace.with(|completer| {
            trace.stopped.store(true, Ordering::SeqCst);
            calls::pause();
            completer.release();
        });
    }
    intercept::forget_queues();
}

/// The process is at its end: what was launched after [`finish`] is recorded as unfinished.
pub fn end() {
    if let Some(trace) = trace() {
        trace.with(Completer::stop);
    }
}
