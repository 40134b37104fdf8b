//! Whether the trace records now: one flag, which launching threads read. And the times of its changes, and their
//! records.

use crate::gpu::observers;
use crate::support::settings::Tracing;
use crate::trace::recorder::{Recorder, clock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracefile::format::{self, Count, Record};

/// The program has switched the recording, so the times in the settings have no effect any more.
static SWITCHED_BY_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Whether dispatches, API calls, copies and markers that are submitted now are recorded. A thread that has switched
/// the recording, or that is synchronized with such a thread, sees the new state.
#[inline]
pub fn is_on() -> bool {
    observers::observes_launches()
}

/// Called when the shared library is loaded and a trace was requested: sets the state in which the trace begins.
pub fn prepare(tracing: &Tracing) {
    if tracing.stopped || tracing.start_after.is_some() {
        set(false);
    }
}

/// Starts or stops the recording. Returns whether this changes the state.
pub fn set(on: bool) -> bool {
    observers::set_observes_launches(on) != on
}

/// The program starts or stops the recording.
pub fn set_by_program() {
    SWITCHED_BY_PROGRAM.store(true, Ordering::Relaxed);
}

/// The records of the recording's state, and when it changes next.
pub struct History {
    /// Whether the recording is on according to the last record of its state. Without a record, it is on.
    recorded_on: bool,
    next: u64,
    /// When the trace began.
    began: u64,
    /// When to switch the recording, and whether it is on from then on.
    timer: Option<(Instant, bool)>,
    /// See [`Tracing::duration`].
    duration: Option<Duration>,
    /// See [`Tracing::every`].
    every: Option<Duration>,
    /// When the recording was last started.
    started: Instant,
}

impl History {
    /// Records the initial state of the recording, unless it is on, and sets the timer.
    pub fn begin(tracing: &Tracing, to: &mut Recorder) -> History {
        let delay = if is_on() {
            tracing.duration
        } else if SWITCHED_BY_PROGRAM.load(Ordering::Relaxed) {
            None
        } else {
            tracing.start_after
        };
        let mut history = History {
            recorded_on: true,
            next: 1,
            began: clock::now(),
            timer: None,
            duration: tracing.duration,
            every: tracing.every,
            started: Instant::now(),
        };
        history.set_timer(delay, !is_on());
        history.record_state(history.began, to);
        history
    }

    /// The recording was started or stopped between `before` and now.
    pub fn changed(&mut self, on: bool, before: u64, to: &mut Recorder) {
        if on {
            self.started = Instant::now();
            self.set_timer(self.duration, false);
        } else {
            let every = self
                .every
                .filter(|_| !SWITCHED_BY_PROGRAM.load(Ordering::Relaxed));
            let rest = every.map(|every| every.saturating_sub(self.started.elapsed()));
            self.set_timer(rest, true);
        }
        // The interval contains all times of submissions that were recorded.
        self.record_state(if on { before } else { clock::now() }, to);
    }

    /// The recording was to be started or stopped, and was so already.
    pub fn unchanged(&mut self, on: bool) {
        if !on {
            // It does not start after a time, either.
            self.timer = None;
        }
    }

    fn set_timer(&mut self, delay: Option<Duration>, on: bool) {
        let at = delay.and_then(|delay| Instant::now().checked_add(delay));
        self.timer = at.map(|at| (at, on));
    }

    /// Records the state of the recording at `time`, if it has changed.
    fn record_state(&mut self, time: u64, to: &mut Recorder) {
        let is_on = is_on();
        if is_on == self.recorded_on {
            return;
        }
        self.recorded_on = is_on;
        if self.next == 1 && time > self.began {
            // Otherwise the first record would mean that the trace began stopped.
            self.write_state(self.began, !is_on, to);
        }
        self.write_state(time, is_on, to);
        to.file.publish();
    }

    fn write_state(&mut self, time: u64, is_on: bool, to: &mut Recorder) {
        let mut record = format::Recording::new(self.next, 0);
        self.next += 1;
        record.time = time.into();
        record.is_on = u32::from(is_on).into();
        to.file.append(record, Count::DroppedOthers);
    }

    /// Records the state if the program has switched it while the trace began.
    pub fn catch_up(&mut self, to: &mut Recorder) {
        if is_on() != self.recorded_on {
            self.record_state(clock::now(), to);
        }
    }

    /// The state to switch to, if its time has come.
    pub fn due(&self) -> Option<bool> {
        let (_, on) = self.timer.filter(|&(at, _)| Instant::now() >= at)?;
        Some(on)
    }

    /// When [`History::due`] must be called next.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.timer?.0)
    }
}
