//! What saves counters of a process that does not come to its exit handlers: a thread that drains every
//! DEVPROF_SNAPSHOT_MS, and when a signal is about to end the process (see [`crate::signals`]). It starts with the first
//! executable that is frozen, as there is nothing to drain before, and drains only executables whose end is told: no
//! other drain of its own could be sure that they stay.

use crate::drain::{self, Order};
use crate::guard::{Cost, guarded};
use crate::host;
use crate::report;
use crate::settings::Settings;
use crate::signals;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Looks again so soon where it may not drain just now.
const BARRED_PAUSE: Duration = Duration::from_millis(1);

/// The thread was started in this process.
static STARTED: AtomicBool = AtomicBool::new(false);
/// [`BUSY`] while the thread drains, and [`BAR`] times the number of those who keep it from doing so. A lock that may be
/// held across a fork.
static GATE: AtomicU32 = AtomicU32::new(0);
const BUSY: u32 = 1;
const BAR: u32 = 2;

/// Starts the thread where it is wanted and not there.
pub fn start(settings: &'static Settings) {
    if (settings.snapshot.is_none() && !settings.signals) || STARTED.swap(true, Ordering::SeqCst) {
        return;
    }
    match host::spawn_quiet("devprof-snap", Cost::Counters, || run(settings)) {
        Ok(_) if settings.signals => signals::install(settings.sync_limit),
        Ok(_) => {}
        Err(error) => report::lost(format_args!(
            "cannot start the thread for snapshots and signals: {error}; counters are saved at exit, when code objects are unloaded, and by the collect call, but not by DEVPROF_SNAPSHOT_MS and not when a signal ends the process"
        )),
    }
}

/// The thread runs, or was to run.
pub fn is_started() -> bool {
    STARTED.load(Ordering::SeqCst)
}

fn run(settings: &Settings) {
    signals::answers_here();
    let mut last = Instant::now();
    let mut barred = false;
    loop {
        let rest = settings
            .snapshot
            .map(|period| period.saturating_sub(last.elapsed()));
        if barred {
            std::thread::sleep(BARRED_PAUSE);
        }
        let asked = signals::wait(rest);
        let due = settings
            .snapshot
            .is_some_and(|period| last.elapsed() >= period);
        if asked.is_none() && !due {
            continue;
        }
        let begin = Instant::now();
        barred = !drain(settings);
        if !barred {
            last = begin;
            asked.inspect(|&request| signals::answer(request));
        }
    }
}

/// False where there is a bar.
fn drain(settings: &Settings) -> bool {
    let free = GATE.compare_exchange(0, BUSY, Ordering::SeqCst, Ordering::SeqCst);
    if free.is_ok() {
        guarded(Cost::Counters, (), || {
            drain::drain(settings, Order::Snapshot, false);
        });
        GATE.fetch_sub(BUSY, Ordering::SeqCst);
    }
    free.is_ok()
}

/// From now on the thread drains nothing, and does nothing at all with HSA when this returns.
pub fn bar() {
    GATE.fetch_add(BAR, Ordering::SeqCst);
    while GATE.load(Ordering::SeqCst) & BUSY != 0 {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Ends what [`bar`] began.
pub fn unbar() {
    GATE.fetch_sub(BAR, Ordering::SeqCst);
}

/// The process is past its last drain.
pub fn stop() {
    signals::release();
    bar();
}

/// Before a fork. The child of a process with HSA alive does nothing; any other one must not find locks that this
/// thread held.
pub fn before_fork(alive: bool) {
    if alive {
        GATE.fetch_add(BAR, Ordering::SeqCst);
    } else {
        bar();
    }
}

/// In the child of a fork, which does not have the thread.
pub fn forked() {
    signals::release();
    STARTED.store(false, Ordering::SeqCst);
    GATE.store(0, Ordering::SeqCst);
}
