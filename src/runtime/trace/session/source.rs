//! The interface between the session and the sources of records.

use crate::trace::recorder::Recorder;
use std::any::Any;
use std::time::Duration;

/// Makes records from data that the program's threads or a GPU runtime have left for it. Called under the
/// session's lock.
pub trait Source: Any + Send {
    /// Records complete work.
    fn poll(&mut self, to: &mut Recorder) -> Progress;

    /// Records work in flight as unfinished. It may be called again, for later work.
    fn stop(&mut self, to: &mut Recorder) {
        self.poll(to);
    }

    /// The trace is about to end: [`Source::stop`] follows, after this was called for all sources.
    fn end(&mut self, _to: &mut Recorder) {}

    /// The state of the GPU runtime whose work this source records. Nothing is recorded while none is usable.
    fn runtime(&self) -> Runtime {
        Runtime::Stopped
    }

    /// Whether a poll may find something.
    fn has_work(&self) -> bool;

    /// Whether something is in flight.
    fn is_busy(&mut self) -> bool {
        false
    }

    /// The recording is about to start.
    fn starting(&mut self) {}

    /// The recording was started or stopped.
    fn switched(&mut self, _on: bool) {}

    /// Adds the work that was submitted until now to `mark`.
    fn mark(&self, _mark: &mut Mark) {}

    /// Whether everything in `mark` is recorded.
    fn has_recorded(&self, _mark: &Mark) -> bool {
        true
    }

    /// Whether records of work that was submitted before `time` may be missing.
    fn has_missing(&mut self, _time: u64) -> bool {
        false
    }

    /// Reports the records that [`Source::has_missing`] means. They will not be delivered any more. Returns whether there
    /// were any.
    fn report_missing(&mut self, _time: u64, _to: &mut Recorder) -> bool {
        false
    }

    /// The part of this source that works without the session's lock.
    fn delivery(&self) -> Option<&'static dyn Delivery> {
        None
    }
}

/// The state of a GPU runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// It is not used, or not used any more.
    Stopped,
    /// It must not be used now.
    Paused,
    Usable,
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Processed entries.
    pub recorded: usize,
    /// Queues with entries in flight.
    pub busy: usize,
    /// Polled queues.
    pub polled: usize,
}

/// The work that had been submitted at a time.
#[derive(Default)]
pub struct Mark {
    /// System clock.
    pub time: u64,
    /// Ids of queues, and the numbers of entries that they ever had.
    pub queues: Vec<(u32, u64)>,
}

/// How a source and its GPU runtime pass on work and records. Called without the session's lock, because the runtime
/// takes its own locks, waits, or calls devprof.
pub trait Delivery: Sync {
    /// Passes on work that was withheld from the runtime, on another thread. Returns whether there is any.
    fn submit(&self) -> bool {
        false
    }

    /// Work that the program has submitted and that the runtime has not taken yet, for [`Delivery::has_taken`].
    fn delayed(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn has_taken(&self, _delayed: &[(u64, u64)]) -> bool {
        true
    }

    /// Whether the runtime delivers records on request.
    fn is_on_request(&self) -> bool {
        false
    }

    /// Whether the runtime has records that it has not delivered.
    fn is_outstanding(&self) -> bool {
        false
    }

    /// Makes the runtime deliver the records of complete work.
    fn request(&self) {}

    /// Makes the runtime deliver all records.
    fn force(&self) {}

    /// Waits up to `limit` until the runtime's devices are idle. Returns whether they are.
    fn wait(&self, _limit: Duration) -> bool {
        true
    }

    /// The trace is about to end: waits up to `limit`, and makes the runtime deliver all records for the last time.
    fn finish(&self, _limit: Duration) {}
}
