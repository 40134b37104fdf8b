//! Starts and stops of the recording: their times and their records.

use super::file::TraceFile;
use super::{clock, recording};
use crate::support::settings::Tracing;
use std::time::{Duration, Instant};
use tracefile::format::{self, Count, Record};

pub struct Switches {
    /// Whether the recording is on according to the last record of its state. Without a record, it is on.
    recorded_on: bool,
    next: u64,
    /// When the trace began.
    began: u64,
    /// When to switch the recording, and whether it is on from then on.
    timer: Option<(Instant, bool)>,
    /// See [`Tracing::duration`].
    duration: Option<Duration>,
}

impl Default for Switches {
    fn default() -> Switches {
        Switches {
            recorded_on: true,
            next: 1,
            began: 0,
            timer: None,
            duration: None,
        }
    }
}

impl Switches {
    /// Records the initial state of the recording, unless it is on, and sets the timer.
    pub fn begin(&mut self, tracing: &Tracing, file: &mut TraceFile) {
        self.duration = tracing.duration;
        let delay = match recording::is_on() {
            true => tracing.duration,
            false if recording::was_set_by_program() => None,
            false => tracing.start_after,
        };
        self.set_timer(delay, !recording::is_on());
        self.began = clock::now();
        self.record_state(self.began, file);
    }

    /// Starts or stops the recording.
    pub fn set(&mut self, on: bool, file: &mut TraceFile) {
        let before = clock::now();
        if !recording::switch(on) {
            if !on {
                // It does not start after a time, either.
                self.timer = None;
            }
            return;
        }
        self.set_timer(self.duration.filter(|_| on), false);
        // What is recorded was submitted after the time of a start, and before that of a stop.
        self.record_state(if on { before } else { clock::now() }, file);
    }

    fn set_timer(&mut self, delay: Option<Duration>, on: bool) {
        let at = delay.and_then(|delay| Instant::now().checked_add(delay));
        self.timer = at.map(|at| (at, on));
    }

    /// Records the state of the recording at `time`, if it has changed.
    fn record_state(&mut self, time: u64, file: &mut TraceFile) {
        let is_on = recording::is_on();
        if is_on == self.recorded_on {
            return;
        }
        self.recorded_on = is_on;
        if self.next == 1 && time > self.began {
            // Otherwise the first record would mean that the trace began stopped.
            self.write_state(self.began, !is_on, file);
        }
        self.write_state(time, is_on, file);
        file.publish();
    }

    fn write_state(&mut self, time: u64, is_on: bool, file: &mut TraceFile) {
        let mut record = format::Recording::new(self.next, 0);
        self.next += 1;
        record.time = time.into();
        record.is_on = u32::from(is_on).into();
        file.append(record, Count::DroppedOthers);
    }

    /// Switches the recording when its time has come. Returns whether it was switched now.
    pub fn run_timer(&mut self, file: &mut TraceFile) -> bool {
        let due = self.timer.filter(|&(at, _)| Instant::now() >= at);
        if let Some((_, on)) = due {
            self.set(on, file);
        }
        // The program may have switched it while the trace began.
        if recording::is_on() != self.recorded_on {
            self.record_state(clock::now(), file);
        }
        due.is_some()
    }

    /// When [`Switches::run_timer`] must be called next.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.timer?.0)
    }
}
