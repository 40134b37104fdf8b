//! The trace of this process: its lock, its thread and its end. It polls a list of [`Source`]s.

pub mod recording;
mod source;

pub use source::{Delivery, Mark, Progress, Runtime, Source};

use super::queues::wakeup;
use super::recorder::{Recorder, clock};
use crate::support::diagnostics;
use crate::support::gate::Gate;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::support::sync::{Busy, lock};
use crate::sys::threads;
use recording::History;
use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The completion thread's pause after a poll that has found something.
const SHORTEST_PAUSE: Duration = Duration::from_micros(200);
/// Its longest pause; after that it sleeps until it is woken.
const LONGEST_PAUSE: Duration = Duration::from_micros(800);
/// Polls without entries and with nothing in flight after which the completion thread sleeps.
const IDLE_POLLS: u32 = 10;
/// The completion thread's pause if nothing but records that a runtime collects is awaited.
const DELIVERY_PAUSE: Duration = Duration::from_millis(5);
/// Polls without records after which the completion thread polls only once per [`REQUEST_INTERVAL`], or sleeps.
const IDLE_DELIVERY_POLLS: u32 = 100;
/// The interval at which a runtime is asked for records that it has not delivered. If the process is killed, the later
/// ones are lost.
const REQUEST_INTERVAL: Duration = Duration::from_millis(200);
/// How long a flush waits for records of work that has completed.
const DELIVERY_LIMIT: Duration = Duration::from_millis(50);

struct Session {
    state: Mutex<State>,
    deliveries: Vec<&'static dyn Delivery>,
}

/// The data that the lock guards.
struct State {
    recorder: Recorder,
    history: History,
    sources: Vec<Box<dyn Source>>,
}

static SESSION: OnceLock<Session> = OnceLock::new();
/// The completion thread is inside while it uses the GPU runtimes.
static GATE: Gate = Gate::new();
/// The trace belongs to the parent of this forked process.
static BELONGS_TO_PARENT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread holds or is acquiring one of the trace's locks.
    static HAS_LOCK: Cell<bool> = const { Cell::new(false) };
}

/// This process's trace.
fn session() -> Option<&'static Session> {
    SESSION.get().filter(|_| !belongs_to_parent())
}

/// Whether this process is traced.
pub fn is_traced() -> bool {
    session().is_some()
}

/// Before a fork: keeps the completion thread out of the GPU runtimes, so that the child inherits none of their locks from it.
/// Waits up to `limit`.
pub fn before_fork(limit: Duration) {
    GATE.close(Some(limit));
}

/// After the fork, in the parent and in the child.
pub fn after_fork() {
    GATE.open();
}

/// Called in the child of a fork.
pub fn in_child() {
    BELONGS_TO_PARENT.store(SESSION.get().is_some(), Ordering::Relaxed);
}

/// Whether the parent of this forked process is traced, and this process therefore is not.
pub fn belongs_to_parent() -> bool {
    BELONGS_TO_PARENT.load(Ordering::Relaxed)
}

/// Marks the calling thread as one that takes a lock of the trace. `None`: the caller is a signal handler that has
/// interrupted this thread while it held such a lock, so waiting for a lock would deadlock.
pub fn begin_locking() -> Option<Busy> {
    Busy::begin(&HAS_LOCK)
}

/// Begins the trace and its thread.
pub fn begin(mut recorder: Recorder, sources: Vec<Box<dyn Source>>) -> bool {
    let history = History::begin(&settings().tracing, &mut recorder);
    let session = SESSION.get_or_init(|| Session {
        deliveries: sources.iter().filter_map(|s| s.delivery()).collect(),
        state: Mutex::new(State {
            recorder,
            history,
            sources,
        }),
    });
    let work = move || {
        // It wakes up thousands of times per second and must not preempt launching threads.
        threads::do_not_preempt();
        guarded(Cost::Dispatches, (), || {
            wakeup::set_running();
            session.run();
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

impl State {
    fn has_runtime(&self, states: &[Runtime]) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| states.contains(&source.runtime()))
    }

    /// Whether all GPU runtimes are stopped.
    fn is_stopped(&self) -> bool {
        !self.has_runtime(&[Runtime::Paused, Runtime::Usable])
    }

    fn poll(&mut self) -> Progress {
        let mut all = Progress::default();
        if !self.has_runtime(&[Runtime::Usable]) {
            return all;
        }
        if let Some(on) = self.history.due() {
            self.set_recording(on);
        }
        self.history.catch_up(&mut self.recorder);
        for source in &mut self.sources {
            let progress = source.poll(&mut self.recorder);
            all.recorded += progress.recorded;
            all.busy += progress.busy;
            all.polled += progress.polled;
        }
        if all.recorded > 0 {
            self.recorder.file.publish();
        }
        all
    }

    fn set_recording(&mut self, on: bool) {
        let before = clock::now();
        // A runtime may record a little more work than is submitted in between: launching threads know the exact state.
        if on {
            self.sources.iter_mut().for_each(|source| source.starting());
        }
        let is_changed = recording::set(on);
        for source in &mut self.sources {
            source.switched(on);
        }
        if is_changed {
            self.history.changed(on, before, &mut self.recorder);
        } else {
            self.history.unchanged(on);
        }
    }

    fn stop(&mut self) {
        for source in &mut self.sources {
            source.stop(&mut self.recorder);
        }
        self.recorder.file.close();
    }

    fn end(&mut self) {
        for source in &mut self.sources {
            source.end(&mut self.recorder);
        }
        self.stop();
    }
}

impl Session {
    /// Does `work` under the session's lock. `None`: see [`begin_locking`].
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> Option<R> {
        let Some(_busy) = begin_locking() else {
            diagnostics::lost(
                "a signal handler interrupted the recording of the trace and calls HSA or ends the process: the trace is incomplete",
            );
            return None;
        };
        // The lock is released before the mark is removed.
        Some(work(&mut lock(&self.state)))
    }

    fn is_on_request(&self) -> bool {
        self.deliveries.iter().any(|d| d.is_on_request())
    }

    fn is_outstanding(&self) -> bool {
        self.deliveries.iter().any(|d| d.is_outstanding())
    }

    /// The completion thread's loop. It polls more often while dispatches complete, less often while kernels take long,
    /// and sleeps while nothing is in flight.
    fn run(&self) {
        let mut pause = SHORTEST_PAUSE;
        let mut idle = 0;
        let mut requested = Instant::now();
        loop {
            let Some(inside) = GATE.enter() else {
                std::thread::sleep(SHORTEST_PAUSE);
                continue;
            };
            let mut progress = self.with(State::poll).unwrap_or_default();
            progress.busy += self.deliveries.iter().filter(|d| d.submit()).count();
            let is_quiet = progress.busy == 0 && progress.polled == 0;
            if is_quiet && self.is_on_request() {
                if self.is_outstanding() && requested.elapsed() >= REQUEST_INTERVAL {
                    self.deliveries.iter().for_each(|d| d.request());
                    requested = Instant::now();
                }
                drop(inside);
                idle = if progress.recorded > 0 { 0 } else { idle + 1 };
                if idle < IDLE_DELIVERY_POLLS {
                    std::thread::park_timeout(DELIVERY_PAUSE);
                } else if self.is_outstanding() {
                    // A kernel runs for a long time, or the runtime keeps an empty buffer.
                    std::thread::park_timeout(REQUEST_INTERVAL);
                } else {
                    self.sleep();
                    (pause, idle) = (SHORTEST_PAUSE, 0);
                }
                continue;
            }
            drop(inside);
            if progress.recorded > 0 {
                (pause, idle) = (SHORTEST_PAUSE, 0);
            } else if is_quiet && idle >= IDLE_POLLS {
                self.sleep();
                (pause, idle) = (SHORTEST_PAUSE, 0);
                continue;
            } else {
                pause = (2 * pause).min(LONGEST_PAUSE);
                idle = if progress.busy > 0 { 0 } else { idle + 1 };
            }
            std::thread::park_timeout(pause);
        }
    }

    fn sleep(&self) {
        let deadline = self.with(|state| state.history.deadline().filter(|_| !state.is_stopped()));
        let is_idle = |state: &mut State| {
            let has_work = state.sources.iter().any(|source| source.has_work());
            state.is_stopped() || !has_work && !self.is_outstanding()
        };
        wakeup::sleep_while(|| self.with(is_idle) == Some(true), deadline.flatten());
    }

    /// Waits up to `limit` for running work, and until the runtime has delivered the records of work that was submitted
    /// before `time`.
    fn settle(&self, delivery: &dyn Delivery, time: u64, limit: Duration) -> Settled {
        if !delivery.wait(limit) {
            return Settled::Running;
        }
        let begin = Instant::now();
        let has_missing = |state: &mut State| {
            state.poll();
            state.sources.iter_mut().any(|s| s.has_missing(time))
        };
        let report = |state: &mut State| {
            state.poll();
            let State {
                recorder, sources, ..
            } = state;
            let reported = sources
                .iter_mut()
                .filter_map(|s| s.report_missing(time, recorder).then_some(()));
            reported.count() > 0
        };
        loop {
            delivery.request();
            match self.with(has_missing) {
                Some(true) if begin.elapsed() < DELIVERY_LIMIT => {
                    std::thread::sleep(SHORTEST_PAUSE);
                }
                // A buffer may have records of kernels that were launched meanwhile and still run.
                Some(true) => {
                    delivery.force();
                    return match self.with(report) {
                        Some(true) => Settled::Missing,
                        _ => Settled::Complete,
                    };
                }
                _ => return Settled::Complete,
            }
        }
    }
}

/// The result of a flush.
enum Settled {
    /// The runtime has delivered everything.
    Complete,
    /// Records are missing, which was reported.
    Missing,
    /// Something still runs.
    Running,
}

/// Does `work` with one of the sources, under the session's lock. `None`: this process is not traced, or see
/// [`begin_locking`].
pub fn with_source<S: Source, R>(work: impl FnOnce(&mut S, &mut Recorder) -> R) -> Option<R> {
    let found = with(|state| {
        let mut sources = state.sources.iter_mut();
        let source = sources.find_map(|s| (&mut **s as &mut dyn Any).downcast_mut())?;
        Some(work(source, &mut state.recorder))
    });
    found.flatten()
}

/// Whether all GPU runtimes are stopped.
pub fn is_stopped() -> bool {
    with(|state| state.is_stopped()) == Some(true)
}

/// As [`Session::with`]. `None` also if this process is not traced.
fn with<R>(work: impl FnOnce(&mut State) -> R) -> Option<R> {
    session()?.with(work)
}

/// Records complete work.
pub fn poll() {
    with(State::poll);
}

/// Records work in flight as unfinished, and closes the file until there are more records.
pub fn stop() {
    with(State::stop);
}

/// At the program's exit: waits up to `limit` for work in flight, records the rest as unfinished and closes the file.
/// Afterwards the trace does not use the GPU runtimes.
pub fn finish(limit: Duration) {
    let Some(session) = session() else {
        return;
    };
    let begin = Instant::now();
    session.deliveries.iter().for_each(|d| d.finish(limit));
    let try_finish = |state: &mut State| {
        state.poll();
        let is_busy = state.sources.iter_mut().any(|source| source.is_busy());
        let is_over = !is_busy || begin.elapsed() >= limit;
        if is_over {
            state.end();
        }
        is_over
    };
    while session.with(try_finish) == Some(false) {
        std::thread::sleep(SHORTEST_PAUSE);
    }
}

/// The process ends: work that was submitted after [`finish`] is recorded as unfinished.
pub fn end() {
    with(State::end);
}

/// The program starts or stops the recording. Without a trace, this has an effect only if the trace begins later.
pub fn set_recording(on: bool) {
    if belongs_to_parent() {
        return;
    }
    recording::set_by_program();
    let Some(session) = session() else {
        recording::set(on);
        return;
    };
    session.with(|state| {
        state.set_recording(on);
        if state.is_stopped() {
            state.stop();
        }
    });
    // It sleeps until the next deadline that it knows.
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
    let Some(session) = session() else {
        return true;
    };
    let begin = Instant::now();
    let time = clock::now();
    let mut is_complete = true;
    for delivery in session.deliveries.iter().filter(|d| d.is_on_request()) {
        match session.settle(*delivery, time, limit) {
            Settled::Complete => {}
            Settled::Missing => is_complete = false,
            Settled::Running => {
                report_unflushed(limit);
                return false;
            }
        }
    }
    let delayed: Vec<_> = session.deliveries.iter().map(|d| d.delayed()).collect();
    let mut mark = None;
    let mut try_flush = |state: &mut State| {
        state.poll();
        if state.is_stopped() {
            state.stop();
        }
        let mark = mark.get_or_insert_with(|| {
            let mut mark = Mark {
                time,
                ..Mark::default()
            };
            state.sources.iter().for_each(|s| s.mark(&mut mark));
            mark
        });
        state.sources.iter().all(|s| s.has_recorded(mark))
    };
    loop {
        // Not under the session's lock: see the lock order in src/runtime/README.md.
        let mut deliveries = session.deliveries.iter().zip(&delayed);
        if deliveries.all(|(delivery, delayed)| delivery.has_taken(delayed)) {
            match session.with(&mut try_flush) {
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
    let is_published = session.with(|state| {
        state.recorder.file.publish();
        state.recorder.file.is_complete()
    });
    is_published == Some(true) && is_complete
}
