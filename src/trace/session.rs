//! The trace of this process: its threads, its start and its end.

use super::capture::{self, Capture};
use super::clock::{self, now};
use super::complete::{Completer, Pass};
use super::file::TraceFile;
use super::{calls, packet_origins, wakeup};
use crate::gpu::events::{Packet, PacketHandler};
use crate::gpu::hsa::{clock as hsa_clock, cooperative, doorbell, intercept};
use crate::gpu::runtime::{AgentId, ExecutableId};
use crate::output::pattern::expand_process;
use crate::support::diagnostics;
use crate::support::environment::Values;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::sync::{Busy, lock};
use crate::sys::threads;
use hsa_abi::{AgentHandle, ExecutableHandle, SignalHandle};
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
    /// Runs while doorbells keep packets back, once that has happened.
    doorbells: OnceLock<Thread>,
    /// HSA's functions must not be called.
    stopped: AtomicBool,
    /// Threads in `hsa_shut_down`, after which HSA's functions may be out of use: nor must they be called meanwhile.
    /// Changes under the lock of `completer`.
    shutting_down: AtomicUsize,
}

static TRACE: OnceLock<Trace> = OnceLock::new();
/// The trace belongs to the process that forked this one.
static IS_PARENTS: AtomicBool = AtomicBool::new(false);

/// The trace of this process.
fn trace() -> Option<&'static Trace> {
    TRACE.get().filter(|_| !IS_PARENTS.load(Ordering::Relaxed))
}

/// In the child of a fork. `is_owner`: HSA was not initialized at the fork, and the child may use it.
pub fn in_child(is_owner: bool) {
    IS_PARENTS.store(TRACE.get().is_some(), Ordering::Relaxed);
    calls::in_child(is_owner);
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
            diagnostics::lost(
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
            if doorbell::has_withheld() {
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
        let work = || {
            loop {
                while doorbell::submit_withheld() {
                    std::thread::sleep(RING_PAUSE);
                }
                std::thread::park();
            }
        };
        let spawned = threads::spawn_without_signals("devprof-ring", move || {
            guarded(Cost::Dispatches, (), work);
        });
        match spawned {
            Ok(thread) => {
                let _ = self.doorbells.set(thread);
            }
            // Tried again at the next pass.
            Err(error) => diagnostics::lost(format_args!(
                "cannot start the thread that hands on packets, the program waits for it: {error}"
            )),
        }
    }

    fn sleep(&self) {
        wakeup::sleep_while(|| {
            self.activated().is_empty()
                && (self.stopped.load(Ordering::SeqCst) || !calls::waiting())
        });
    }
}

/// Begins the trace that `pattern` names. HSA is being initialised and nothing is launched yet. Called again when HSA
/// is, after a shutdown.
pub fn start(pattern: &OsStr) -> bool {
    if IS_PARENTS.load(Ordering::Relaxed) {
        diagnostics::lost(
            "the process that forked this one has a trace already; this one runs untraced",
        );
        return false;
    }
    if let Some(trace) = TRACE.get() {
        trace.stopped.store(false, Ordering::SeqCst);
        // Nobody would make signals without the thread, which could not be started then.
        return wakeup::has_thread();
    }
    let path = expand_process(pattern, &Values::now());
    let made = hsa_clock::clock_frequency()
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
            diagnostics::lost(format_args!(
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
        doorbells: OnceLock::new(),
        stopped: AtomicBool::new(false),
        shutting_down: AtomicUsize::new(0),
    });
    let work = move || {
        // It wakes up thousands of times a second, and must not preempt the threads that launch.
        threads::do_not_preempt();
        guarded(Cost::Dispatches, (), || trace.run());
    };
    match threads::spawn_without_signals("devprof-trace", work) {
        Ok(thread) => {
            wakeup::set_thread(thread);
            true
        }
        Err(error) => {
            diagnostics::lost(format_args!(
                "cannot start the thread that records dispatches: {error}; the program runs untraced"
            ));
            false
        }
    }
}

/// The packets of one queue.
struct QueuePackets {
    queue: usize,
    capture: Capture,
}

impl PacketHandler for QueuePackets {
    fn take(&mut self, first: u64, packets: &[Packet]) -> &[Packet] {
        self.capture.take(first, packets)
    }

    fn close(self: Box<Self>) {
        let QueuePackets { queue, capture } = *self;
        if let Some(trace) = trace() {
            // The caller is in a call of HSA, so HSA is initialized, also after the end of the trace.
            trace.with(|completer| {
                completer.queue_gone(queue, capture);
                if trace.stopped.load(Ordering::SeqCst) {
                    completer.destroy_store();
                }
            });
        }
    }
}

/// The handler for the packets of a new queue of `size` packets; `None` for a queue that is not traced.
pub fn queue_created(agent: AgentId, queue: usize, size: u32) -> Option<Box<dyn PacketHandler>> {
    let trace = trace()?;
    let agent = AgentHandle(agent.0);
    let capture = trace
        .with(|completer| completer.queue_made(agent, queue, size, activate, wakeup::wake))??;
    Some(Box::new(QueuePackets { queue, capture }))
}

/// The calling thread has reserved slots of a queue.
pub fn slots_reserved(queue: usize, first: u64, count: u64) {
    packet_origins::reserved(queue, first, count);
}

/// An executable was frozen: its kernels may be dispatched next.
pub fn frozen(executable: ExecutableId) {
    if let Some(trace) = trace() {
        trace.with(|completer| completer.frozen(ExecutableHandle(executable.0)));
    }
}

/// The start and end of the kernel whose completion signal of the program, `signal`, was forwarded.
pub fn dispatch_time(signal: u64) -> Option<(u64, u64)> {
    let trace = trace()?;
    let time = trace.with(|completer| {
        // The kernel is complete, because the signal is, but perhaps it was not polled yet.
        trace.pass(completer);
        completer.forwarded(SignalHandle(signal))
    })??;
    Some((time.start, time.end))
}

/// A signal of the program is about to be destroyed.
pub fn signal_destroying(signal: u64) {
    if capture::is_forwarding()
        && let Some(trace) = trace()
    {
        lock(&trace.destroyed).push((SignalHandle(signal), now()));
    }
}

/// A queue has something in flight and is not looked at.
fn activate(queue: u32) {
    if let Some(trace) = trace() {
        trace.activated().push(queue);
        wakeup::nudge();
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
        diagnostics::lost(
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
        wakeup::wake();
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
