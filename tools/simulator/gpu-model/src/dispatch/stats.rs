//! Statistics of a GPU.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::interpreter::Interpreter;
use crate::clock::thread_time;

/// Execution counts, for benchmarks.
#[derive(Debug, Default)]
pub struct Stats {
    pub dispatches: AtomicU64,
    /// Wave instructions.
    pub instructions: AtomicU64,
    /// Vector instructions, times their active lanes.
    pub lane_instructions: AtomicU64,
    /// Processor time that host threads spent in dispatches.
    pub busy_nanoseconds: AtomicU64,
}

impl Stats {
    /// Adds the interpreter's counts and resets them.
    pub fn add(&self, interpreter: &mut Interpreter) {
        self.instructions
            .fetch_add(std::mem::take(&mut interpreter.instructions), Relaxed);
        self.lane_instructions
            .fetch_add(std::mem::take(&mut interpreter.lane_instructions), Relaxed);
    }

    /// Adds the thread's processor time since its [`thread_time`] was `start`.
    pub fn add_time_since(&self, start: u64) {
        self.busy_nanoseconds
            .fetch_add(thread_time() - start, Relaxed);
    }
}
