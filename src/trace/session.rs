//! The trace of this process: its threads, start and end.

use super::capture::{self, Capture};
use super::clock::{self, now};
use super::complete::{Completer, PollResult};
use super::file::TraceFile;
use super::{
    calls, copies, cuda_calls, markers, packet_origins, recording, streams, wakeup, watched_signals,
};
use crate::amd::{clock as hsa_clock, cooperative, doorbell, intercept};
use crate::gpu::observers::{Packet, PacketHandler};
use crate::gpu::runtime::{AgentId, ExecutableId};
use crate::nvidia::activity::{self, Flush};
use crate::nvidia::wait as cuda_wait;
use crate::output::pattern::expand_process;
use crate::support::diagnostics;
use crate::support::environment::Values;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::{Tracing, settings};
use crate::support::sync::{Busy, lock};
use crate::support::wait_limit::Waiting;
use crate::sys::threads;
use hsa_abi::{AgentHandle, ExecutableHandle, SignalHandle};
use std::cell::Cell;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tracefile::format::Header;

/// The completion thread's pause after a poll that has found something.
const SHORTEST_PAUSE: Duration = Duration::from_micros(200);
/// Its longest pause; after that it sleeps until it is woken.
const LONGEST_PAUSE: Duration = Duration::from_micros(800);
/// The interval at which packets withheld at doorbells are submitted.
const RING_PAUSE: Duration = Duration::from_micros(50);
/// The completion thread's pause if only CUDA is used. CUPTI collects the records.
const CUDA_PAUSE: Duration = Duration::from_millis(5);
/// Polls without records after which the completion thread polls only once per [`CUDA_FLUSH`], or sleeps.
const CUDA_IDLE_POLLS: u32 = 100;
/// The interval at which CUPTI is asked for records that it has not delivered. If the process is killed, the later ones are
/// lost.
const CUDA_FLUSH: Duration = Duration::from_millis(200);
/// How long a flush waits for records of kernels that have completed.
const CUDA_SETTLE: Duration = Duration::from_millis(50);
/// Polls without entries and with nothing in flight after which the completion thread sleeps.
const IDLE_POLLS: u32 = 10;

struct Trace {
    completer: Mutex<Completer>,
    /// Queues that have entries in flight and are not polled yet.
    scheduled: Mutex<Vec<u32>>,
    /// Signals that the program has destroyed, and when. Empty until [`capture::has_replaced_signals`] is true.
    destroyed: Mutex<Vec<(SignalHandle, u64)>>,
    /// The thread that submits packets withheld at doorbells.
    doorbells: Thread,
    /// HSA's functions must not be called.
    stopped: AtomicBool,
    /// The number of threads in `hsa_shut_down`. While it is not 0, HSA's functions must not be called either, because
    /// HSA may be uninitialized during that call. Changed under the lock of `completer`.
    shutting_down: AtomicUsize,
    /// CUDA is traced, and CUPTI's functions may be called.
    cuda: AtomicBool,
    /// Held while CUPTI delivers records. No lock of the trace is held while waiting for it.
    flushing: Mutex<()>,
}

static TRACE: OnceLock<Trace> = OnceLock::new();
/// The trace belongs to the parent of this forked process.
static BELONGS_TO_PARENT: AtomicBool = AtomicBool::new(false);

/// This process's trace.
fn trace() -> Option<&'static Trace> {
    TRACE
        .get()
        .filter(|_| !BELONGS_TO_PARENT.load(Ordering::Relaxed))
}

/// Called in the child of a fork. `is_owner`: HSA was not initialized at the fork, and the child may use it.
pub fn in_child(is_owner: bool) {
    BELONGS_TO_PARENT.store(TRACE.get().is_some(), Ordering::Relaxed);
    calls::in_child(is_owner);
    copies::turn_off();
    markers::in_child();
    streams::in_child();
    cuda_calls::in_child();
}

thread_local! {
    /// This thread holds or is acquiring one of the trace's locks.
    static HAS_LOCK: Cell<bool> = const { Cell::new(false) };
}

impl Trace {
    /// Does `work` under the completer's lock. `None`: the caller is a signal handler that has interrupted this thread
    /// while it held that lock, so waiting for the lock would deadlock.
    fn with_completer<R>(&self, work: impl FnOnce(&mut Completer) -> R) -> Option<R> {
        let Some(_busy) = Busy::begin(&HAS_LOCK) else {
            diagnostics::lost(
                "a signal handler interrupted the recording of the trace and calls HSA or ends the process: the trace is incomplete",
            );
            return None;
        };
        // The lock is released before the flag is cleared.
        Some(work(&mut lock(&self.completer)))
    }

    fn scheduled(&self) -> MutexGuard<'_, Vec<u32>> {
        lock(&self.scheduled)
    }

    fn poll(&self, completer: &mut Completer) -> PollResult {
        if self.stopped.load(Ordering::SeqCst) || self.shutting_down.load(Ordering::SeqCst) > 0 {
            if !self.cuda.load(Ordering::SeqCst) {
                return PollResult::default();
            }
            // HSA was shut down, CUDA was not.
            completer.run_timer();
            return PollResult {
                recorded: completer.record_without_hsa(),
                ..PollResult::default()
            };
        }
        completer.run_timer();
        completer.add_scheduled(&mut self.scheduled());
        completer.poll(&mut lock(&self.destroyed))
    }

    /// The completion thread's loop. It polls more often while dispatches complete, less often while kernels take long,
    /// and sleeps while nothing is in flight.
    fn run(&self) {
        let mut pause = SHORTEST_PAUSE;
        let mut idle = 0;
        let mut flushed = Instant::now();
        loop {
            let result = self.with_completer(|completer| self.poll(completer));
            let mut result = result.unwrap_or_default();
            if doorbell::has_withheld() {
                self.doorbells.unpark();
                result.busy += 1;
            }
            if self.cuda.load(Ordering::SeqCst) && result.busy == 0 && result.polled == 0 {
                if activity::has_lent() && flushed.elapsed() >= CUDA_FLUSH {
                    self.flush_cuda(Flush::Complete);
                    flushed = Instant::now();
                }
                idle = if result.recorded > 0 { 0 } else { idle + 1 };
                if idle < CUDA_IDLE_POLLS {
                    std::thread::park_timeout(CUDA_PAUSE);
                } else if activity::has_lent() {
                    // A kernel runs for a long time, or CUPTI keeps an empty buffer.
                    std::thread::park_timeout(CUDA_FLUSH);
                } else {
                    self.sleep();
                    (pause, idle) = (SHORTEST_PAUSE, 0);
                }
                continue;
            }
            if result.recorded > 0 {
                (pause, idle) = (SHORTEST_PAUSE, 0);
            } else if result.busy == 0 && result.polled == 0 && idle >= IDLE_POLLS {
                self.sleep();
                (pause, idle) = (SHORTEST_PAUSE, 0);
                continue;
            } else {
                pause = (2 * pause).min(LONGEST_PAUSE);
                idle = if result.busy > 0 { 0 } else { idle + 1 };
            }
            std::thread::park_timeout(pause);
        }
    }

    /// Makes CUPTI deliver its records.
    fn flush_cuda(&self, flush: Flush) {
        let _flushing = lock(&self.flushing);
        if self.cuda.load(Ordering::SeqCst) {
            activity::flush(flush);
        }
    }

    fn sleep(&self) {
        let is_stopped = || self.stopped.load(Ordering::SeqCst);
        let deadline = self.with_completer(|completer| completer.deadline());
        let deadline = deadline.flatten().filter(|_| !is_stopped());
        wakeup::sleep_while(
            || {
                is_stopped()
                    || self.scheduled().is_empty()
                        && !calls::has_records()
                        && !copies::has_records()
                        && !markers::has_records()
                        && !activity::has_full()
                        && !activity::has_lent()
            },
            deadline,
        );
    }
}

/// Called when the shared library is loaded and a trace was requested.
pub fn prepare(tracing: &Tracing) {
    recording::prepare(tracing);
}

/// Begins the trace whose path `pattern` expands to. Called while HSA is being initialized, before any launch, and
/// called again if HSA is initialized again after a shutdown. Returns whether the process is traced.
pub fn start(pattern: &OsStr) -> bool {
    if BELONGS_TO_PARENT.load(Ordering::Relaxed) {
        diagnostics::lost(
            "the parent process is already traced; this forked process is not traced",
        );
        return false;
    }
    if let Some(trace) = TRACE.get() {
        let has_same_clock = hsa_clock::clock_frequency().is_ok_and(clock::find);
        if !has_same_clock {
            diagnostics::lost(
                "DEVPROF_TRACE: HSA is not traced, because it has another clock than the trace",
            );
            return false;
        }
        trace.stopped.store(false, Ordering::SeqCst);
        wakeup::wake_if_asleep();
        // If the thread could not be started before, nothing would create signals.
        return wakeup::has_thread();
    }
    let frequency = hsa_clock::clock_frequency().map_err(|error| error.to_string());
    if let Ok(frequency) = frequency {
        clock::find(frequency);
    }
    begin(pattern, frequency)
}

/// Begins the trace of CUDA, unless HSA's has begun. Called while CUDA is being initialized. Returns whether the process is
/// traced.
pub fn start_cuda(pattern: &OsStr) -> bool {
    if BELONGS_TO_PARENT.load(Ordering::Relaxed) {
        diagnostics::lost(
            "the parent process is already traced; this forked process is not traced",
        );
        return false;
    }
    if !clock::use_default() {
        diagnostics::lost(
            "DEVPROF_TRACE: CUDA is not traced, because this HSA runtime has another clock",
        );
        return false;
    }
    let is_traced = match TRACE.get() {
        Some(_) => wakeup::has_thread(),
        None => begin(pattern, Ok(1_000_000_000)),
    };
    if let Some(trace) = TRACE.get().filter(|_| is_traced) {
        trace.cuda.store(true, Ordering::SeqCst);
    }
    is_traced
}

/// CUPTI's clock, nanoseconds.
pub extern "C" fn cuda_now() -> u64 {
    now()
}

/// CUPTI is ready: it records from now on, unless the recording is stopped.
pub fn cuda_started() {
    recording::apply_to_cuda();
    calls::start();
}

/// Creates the trace and its threads. `frequency`: ticks per second of its clock.
fn begin(pattern: &OsStr, frequency: Result<u64, String>) -> bool {
    let path = expand_process(pattern, &Values::now());
    let created = frequency.and_then(|frequency| {
        let started = now();
        let unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let header = Header::new(std::process::id(), frequency, started, unix);
        TraceFile::create(&path, &header)
            .map(|file| Completer::new(file, frequency))
            .map_err(|error| error.to_string())
    });
    let mut completer = match created {
        Ok(completer) => completer,
        Err(error) => {
            diagnostics::lost(format_args!(
                "cannot create the trace {}: {error}; the program is not traced",
                path.display()
            ));
            return false;
        }
    };
    // Started now, not when it is needed: then a thread in `dlopen` or `dlclose`, which hold the loader's lock, might
    // wait for packets that this thread is to submit, and a new thread takes that lock.
    let doorbells = match threads::spawn_without_signals("devprof-ring", || {
        guarded(Cost::Dispatches, (), submit_withheld);
    }) {
        Ok(thread) => thread,
        Err(error) => {
            diagnostics::lost(format_args!(
                "cannot start the thread that submits withheld packets: {error}; the program is not traced"
            ));
            return false;
        }
    };
    completer.record_process();
    completer.begin_recording(&settings().tracing);
    watched_signals::start();
    let trace = TRACE.get_or_init(|| Trace {
        completer: Mutex::new(completer),
        scheduled: Mutex::default(),
        destroyed: Mutex::default(),
        doorbells,
        stopped: AtomicBool::new(false),
        shutting_down: AtomicUsize::new(0),
        cuda: AtomicBool::new(false),
        flushing: Mutex::default(),
    });
    let work = move || {
        // It wakes up thousands of times per second and must not preempt launching threads.
        threads::do_not_preempt();
        guarded(Cost::Dispatches, (), || {
            wakeup::set_running();
            trace.run();
        });
    };
    match threads::spawn_without_signals("devprof-trace", work) {
        Ok(thread) => {
            wakeup::set_thread(thread);
            true
        }
        Err(error) => {
            diagnostics::lost(format_args!(
                "cannot start the thread that records dispatches: {error}; the program is not traced"
            ));
            false
        }
    }
}

/// The loop of the thread that submits the packets withheld at doorbells. Submitting takes ROCr's lock of the queue,
/// whose holder may wait for signals from the completion thread, so the completion thread must not wait for that lock.
fn submit_withheld() {
    loop {
        while doorbell::submit_withheld() {
            std::thread::sleep(RING_PAUSE);
        }
        std::thread::park();
    }
}

/// Handles the packets of one queue.
struct QueuePackets {
    queue: usize,
    capture: Capture,
}

impl PacketHandler for QueuePackets {
    fn is_idle(&self) -> bool {
        Capture::is_idle()
    }

    fn take(&mut self, batch: &mut dyn Iterator<Item = (u64, Packet)>) -> &[Packet] {
        self.capture.process(batch)
    }

    fn close(self: Box<Self>) {
        let QueuePackets { queue, capture } = *self;
        if let Some(trace) = trace() {
            // The caller is in an HSA function, so HSA is initialized even after the end of the trace.
            trace.with_completer(|completer| {
                completer.remove_queue(queue, capture);
                if trace.stopped.load(Ordering::SeqCst) {
                    completer.destroy_unused_signals();
                }
            });
        }
    }
}

/// The handler for the packets of a new queue of `size` packets; `None` for a queue that is not traced.
pub fn queue_created(agent: AgentId, queue: usize, size: u32) -> Option<Box<dyn PacketHandler>> {
    let trace = trace()?;
    let agent = AgentHandle(agent.hsa_handle());
    let capture = trace.with_completer(|completer| {
        completer.add_queue(agent, queue, size, schedule, wakeup::wake)
    })??;
    Some(Box::new(QueuePackets { queue, capture }))
}

/// The calling thread has reserved slots of a queue for `count` packets, beginning at index `first`.
pub fn slots_reserved(queue: usize, first: u64, count: u64) {
    packet_origins::record_reservation(queue, first, count);
}

/// An executable was frozen: its kernels may be dispatched next.
pub fn frozen(executable: ExecutableId) {
    if let Some(trace) = trace() {
        trace.with_completer(|completer| {
            completer.record_kernels(ExecutableHandle(executable.hsa_handle()))
        });
    }
}

/// The start and end, in ticks of the system clock, of the kernel in whose packet devprof replaced the program's
/// completion signal `signal`.
pub fn dispatch_time(signal: u64) -> Option<(u64, u64)> {
    let trace = trace().filter(|_| capture::has_replaced_signals())?;
    let time = trace.with_completer(|completer| {
        // The signal is complete, so the kernel is, too, but it may not have been polled yet.
        trace.poll(completer);
        completer.program_signal_time(SignalHandle(signal))
    })??;
    Some((time.start, time.end))
}

/// The program is about to change a signal's value.
pub fn signal_changing(signal: u64) {
    watched_signals::changing(SignalHandle(signal));
}

/// The program may change a signal's value.
pub fn signal_comparing(signal: u64) {
    watched_signals::comparing(SignalHandle(signal));
}

/// The program has changed a signal's value, which was `old`, after [`signal_comparing`].
pub fn signal_changed(signal: u64, old: i64) {
    watched_signals::changed(SignalHandle(signal), old);
}

/// The program is about to destroy a signal.
pub fn signal_destroying(signal: u64) {
    // In a forked process no thread reads signals, but the parent's thread may have been reading this one.
    let Some(trace) = trace() else { return };
    let signal = SignalHandle(signal);
    let Some(_busy) = Busy::begin(&HAS_LOCK) else {
        // A signal handler that has interrupted this thread. It may have been reading this very signal, so it cannot
        // wait for the end of that.
        watched_signals::changing(signal);
        return;
    };
    watched_signals::destroying(signal);
    if capture::has_replaced_signals() {
        lock(&trace.destroyed).push((signal, now()));
    }
}

/// A queue that is not polled has entries in flight.
fn schedule(queue: u32) {
    if let Some(trace) = trace() {
        trace.scheduled().push(queue);
        wakeup::wake_if_asleep();
    }
}

/// At the program's exit: waits up to `limit` for dispatches and copies in flight, records the rest as unfinished and
/// closes the file. Afterwards the trace does not use HSA.
pub fn finish(limit: Duration) {
    let Some(trace) = trace() else {
        return;
    };
    let begin = Instant::now();
    let mut is_cuda_idle = false;
    if trace.cuda.load(Ordering::SeqCst) {
        is_cuda_idle = cuda_wait::wait_for_all(limit);
        trace.flush_cuda(match is_cuda_idle {
            true => Flush::Idle,
            false => Flush::Forced,
        });
        let _flushing = lock(&trace.flushing);
        trace.cuda.store(false, Ordering::SeqCst);
    }
    let try_finish = |completer: &mut Completer| {
        trace.poll(completer);
        let is_over = !completer.is_busy() || begin.elapsed() >= limit;
        if is_over {
            if is_cuda_idle {
                completer.report_missing_cuda(u64::MAX);
            }
            completer.end_markers();
            completer.stop();
            if !trace.stopped.swap(true, Ordering::SeqCst) {
                report_missed(completer);
            }
        }
        is_over
    };
    while trace.with_completer(try_finish) == Some(false) {
        std::thread::sleep(SHORTEST_PAUSE);
    }
}

/// Reports dispatches that are missing from the trace.
fn report_missed(completer: &Completer) {
    cooperative::report();
    if completer.has_kernels() && !intercept::saw_queue() {
        diagnostics::lost(
            "the trace has no dispatches: kernels were loaded, but no queue was created by a function that devprof hooks; this HSA runtime may be newer than devprof",
        );
    }
}

/// A thread is about to call `hsa_shut_down`. HSA counts its users and does not report the count, so this may or may
/// not uninitialize it.
pub fn pause() {
    if let Some(trace) = trace() {
        trace.with_completer(|completer| {
            trace.poll(completer);
            report_missed(completer);
            completer.destroy_unused_signals();
            trace.shutting_down.fetch_add(1, Ordering::SeqCst);
        });
    }
}

/// The call of `hsa_shut_down` has returned. Unless [`release`] was called meanwhile, HSA is still initialized and the
/// trace continues.
pub fn resume() {
    if let Some(trace) = trace() {
        trace.with_completer(|_| trace.shutting_down.fetch_sub(1, Ordering::SeqCst));
        wakeup::wake();
    }
}

/// HSA was uninitialized. It may be initialized again.
pub fn release() {
    if let Some(trace) = trace() {
        trace.with_completer(|completer| {
            trace.stopped.store(true, Ordering::SeqCst);
            if !trace.cuda.load(Ordering::SeqCst) {
                calls::pause();
            }
            completer.release();
        });
    }
    intercept::forget_queues();
}

/// The process ends: dispatches launched after [`finish`] are recorded as unfinished.
pub fn end() {
    if let Some(trace) = trace() {
        trace.with_completer(|completer| {
            completer.end_markers();
            completer.stop();
        });
    }
}

/// The program starts or stops the recording. Without a trace, this has an effect only if the trace begins later.
pub fn set_recording(on: bool) {
    if BELONGS_TO_PARENT.load(Ordering::Relaxed) {
        return;
    }
    recording::set_by_program();
    let Some(trace) = trace() else {
        recording::switch(on);
        return;
    };
    trace.with_completer(|completer| {
        completer.set_recording(on);
        match trace.stopped.load(Ordering::SeqCst) {
            true => completer.stop(),
            false if trace.shutting_down.load(Ordering::SeqCst) == 0 => completer.fill_pools(),
            false => {}
        }
    });
    // It sleeps until the next deadline that it knows.
    wakeup::wake_if_asleep();
}

/// What a flush has found.
enum Settled {
    /// CUPTI has delivered everything.
    Complete,
    /// Records are missing, which was reported.
    Missing,
    /// Something still runs.
    Running,
}

/// Waits up to `limit` for what runs on CUDA's devices, and until CUPTI has delivered what was submitted before `time`.
fn settle_cuda(trace: &Trace, time: u64, limit: Duration) -> Settled {
    if !cuda_wait::wait_for_all(limit) {
        return Settled::Running;
    }
    let begin = Instant::now();
    let is_missing = |completer: &mut Completer| {
        trace.poll(completer);
        completer.cuda_is_missing(time)
    };
    loop {
        trace.flush_cuda(Flush::Complete);
        match trace.with_completer(is_missing) {
            Some(true) if begin.elapsed() < CUDA_SETTLE => std::thread::sleep(SHORTEST_PAUSE),
            // A buffer may have records of kernels that were launched meanwhile and still run.
            Some(true) => {
                trace.flush_cuda(Flush::Forced);
                let report = |completer: &mut Completer| {
                    trace.poll(completer);
                    completer.report_missing_cuda(time)
                };
                return match trace.with_completer(report) {
                    Some(true) => Settled::Missing,
                    _ => Settled::Complete,
                };
            }
            _ => return Settled::Complete,
        }
    }
}

/// CUDA is about to destroy a context, perhaps with running kernels.
pub fn context_destroying(context: u64) {
    if let Some(trace) = trace().filter(|trace| trace.cuda.load(Ordering::SeqCst)) {
        let waiting = Waiting::begin();
        cuda_wait::wait_for(context, waiting.limit);
        drop(waiting);
        trace.flush_cuda(Flush::Complete);
    }
}

/// The program has called `cudaProfilerStart` or `cudaProfilerStop`. They control a trace that begins stopped. Other
/// traces are complete, whether or not the program was prepared for another tool.
pub fn profiler_switched(on: bool) {
    if settings().tracing.stopped {
        set_recording(on);
    }
}

/// CUPTI has begun or filled a buffer.
pub fn activities_expected() {
    wakeup::wake_if_asleep();
}

fn report_unflushed(limit: Duration) {
    diagnostics::lost(format_args!(
        "devprof_trace_flush: dispatches or copies still run after {} ms (DEVPROF_SYNC_MS); they are recorded when they are complete",
        limit.as_millis()
    ));
}

/// Waits up to `limit` until everything that was submitted before the call is recorded, and readers of the file can see
/// it. Returns false if something is missing, which is reported.
pub fn flush(limit: Duration) -> bool {
    let Some(trace) = trace() else {
        return true;
    };
    let begin = Instant::now();
    let time = now();
    let mut is_complete = true;
    if trace.cuda.load(Ordering::SeqCst) {
        match settle_cuda(trace, time, limit) {
            Settled::Complete => {}
            Settled::Missing => is_complete = false,
            Settled::Running => {
                report_unflushed(limit);
                return false;
            }
        }
    }
    let delayed = doorbell::delayed();
    let mut pushed = None;
    let mut try_flush = |completer: &mut Completer| {
        trace.poll(completer);
        if trace.stopped.load(Ordering::SeqCst) {
            completer.stop();
            return true;
        }
        if trace.shutting_down.load(Ordering::SeqCst) > 0 {
            // Nothing was polled.
            return false;
        }
        let pushed = pushed.get_or_insert_with(|| completer.pushed());
        completer.has_processed(pushed, time)
    };
    loop {
        // Not under the completer's lock: see the lock order in src/README.md.
        if doorbell::were_taken(&delayed) {
            match trace.with_completer(&mut try_flush) {
                Some(true) => break,
                None => return false,
                Some(false) => {}
            }
        }
        if begin.elapsed() >= limit {
            report_unflushed(limit);
            return false;
        }
        std::thread::sleep(SHORTEST_PAUSE);
    }
    trace.with_completer(Completer::publish) == Some(true) && is_complete
}
