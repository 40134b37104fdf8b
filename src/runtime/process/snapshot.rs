//! Saves the counters of a process that does not run its exit handlers: a thread drains every DEVPROF_SNAPSHOT_MS, and
//! when a signal is about to end the process or the program calls `exec` ([`super::signals`]). The thread starts when the
//! first executable is frozen. It drains only executables whose destruction is observed: others may be destroyed at any moment.

use super::collect::collect;
use super::lifecycle;
use super::signals;
use crate::drain::kind::DrainKind;
use crate::support::diagnostics;
use crate::support::features::HAS_TRACE;
use crate::support::gate::Gate;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::run_log::{self, Event};
use crate::support::settings::{Settings, settings};
use crate::sys::threads;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The pause before the next attempt while the gate is closed.
const CLOSED_PAUSE: Duration = Duration::from_millis(1);

/// The thread was started in this process.
static STARTED: AtomicBool = AtomicBool::new(false);
/// The thread is inside while it drains.
static GATE: Gate = Gate::new();

/// Starts the thread, unless it is running or not needed.
pub fn start() {
    let settings = settings();
    // The shared library also needs it for `exec`.
    let is_needed = settings.snapshot.is_some() || settings.signals || HAS_TRACE;
    if !is_needed || STARTED.swap(true, Ordering::SeqCst) {
        return;
    }
    let run = || guarded(Cost::Counters, (), || run(settings));
    match threads::spawn_without_signals("devprof-snap", run) {
        Ok(_) => {
            signals::prepare(settings.sync_limit);
            if settings.signals {
                signals::install();
            }
        }
        Err(error) => diagnostics::lost(format_args!(
            "cannot start the thread for snapshots and signals: {error}; counters are saved at exit, when code objects are unloaded, and by the collect call, but not by DEVPROF_SNAPSHOT_MS and not when a signal ends the process"
        )),
    }
}

/// Whether [`start`] has tried to start the thread.
pub fn is_started() -> bool {
    STARTED.load(Ordering::SeqCst)
}

fn run(settings: &Settings) {
    signals::set_answering_thread();
    let mut last = Instant::now();
    let mut is_closed = false;
    loop {
        let rest = settings
            .snapshot
            .map(|period| period.saturating_sub(last.elapsed()));
        if is_closed {
            std::thread::sleep(CLOSED_PAUSE);
        }
        let request = signals::wait(rest);
        let due = settings
            .snapshot
            .is_some_and(|period| last.elapsed() >= period);
        if request.is_none() && !due {
            continue;
        }
        let begin = Instant::now();
        is_closed = !drain(request.is_some());
        if !is_closed {
            last = begin;
            if let Some(request) = request {
                run_log::append(Event::Ended, b"");
                signals::answer(request);
            }
        }
    }
}

/// Drains. `is_last`: the process may end afterwards. Returns false if the gate is closed.
fn drain(is_last: bool) -> bool {
    // So that a fork does not find the thread in a drain that has nothing to do.
    if !lifecycle::may_be_up() {
        return true;
    }
    let Some(_inside) = GATE.enter() else {
        return false;
    };
    guarded(Cost::Counters, (), || {
        let kind = if is_last && signals::take_waits_for_kernels() {
            DrainKind::All
        } else {
            DrainKind::Snapshot
        };
        collect(kind, false);
    });
    true
}

/// Before a fork: keeps the thread out of drains. Otherwise the child would inherit locks of the GPU runtime and of libc that
/// nobody releases, and would wait for them at its exit. Waits for a drain in progress, up to `limit`.
pub fn before_fork(limit: Duration) {
    GATE.close(Some(limit));
}

/// After the fork, in the parent and in the child.
pub fn after_fork() {
    GATE.open();
}

/// The last drain is over. After this returns, the thread does not use HSA.
pub fn stop() {
    signals::release();
    GATE.close(None);
}

/// In the child of a fork. Returns whether the thread was in a drain: it may have held locks that nobody will release.
pub fn in_child() -> bool {
    signals::release();
    STARTED.store(false, Ordering::SeqCst);
    GATE.reset()
}
