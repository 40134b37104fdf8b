//! The GPU, and the host threads that run its dispatches.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::Error;
use super::interpreter::Interpreter;
use super::packet::Packet;
use super::run::Run;
use super::stats::Stats;
use super::symbol;
use crate::clock::thread_time;
use crate::exec::Gws;
use crate::isa::Architecture;
use crate::memory::Memory;
use crate::thread::{self, lock};
use crate::topology::Units;

/// A dispatch that takes longer than this gets helper threads.
const HELPER_DELAY: Duration = Duration::from_micros(100);

#[derive(Default)]
struct Jobs {
    runs: VecDeque<Arc<Run>>,
    helpers: usize,
    closed: bool,
}

/// The work of the helper threads.
#[derive(Default)]
struct Pool {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

/// A GPU: its memory, and the host threads that run kernels.
pub struct Gpu {
    arch: Architecture,
    units: Units,
    memory: Arc<Memory>,
    gws: Arc<Gws>,
    pool: Arc<Pool>,
    max_helpers: usize,
    /// Interpreters that are not in use. They are kept because they cache decoded instructions.
    idle: Mutex<Vec<Interpreter>>,
    stats: Arc<Stats>,
}

impl Gpu {
    /// A gfx1100 GPU. A long dispatch uses as many threads as there are processors, at most 16.
    pub fn new(memory: Arc<Memory>) -> Gpu {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Gpu::with_threads(memory, threads.min(16))
    }

    /// A dispatch uses at most `threads` threads, including the caller's.
    pub fn with_threads(memory: Arc<Memory>, threads: usize) -> Gpu {
        Gpu {
            arch: Architecture::default(),
            units: Units::of(Architecture::default()),
            memory,
            gws: Arc::default(),
            pool: Arc::default(),
            max_helpers: threads.saturating_sub(1),
            idle: Mutex::default(),
            stats: Arc::default(),
        }
    }

    /// Changes the instruction set, and the compute units to [`Units::of`].
    pub fn with_architecture(mut self, arch: Architecture) -> Gpu {
        self.arch = arch;
        self.units = Units::of(arch);
        // They decode for the previous one.
        lock(&self.idle).clear();
        self
    }

    /// Changes the compute units.
    pub fn with_units(mut self, units: Units) -> Gpu {
        self.units = units;
        self
    }

    pub fn architecture(&self) -> Architecture {
        self.arch
    }

    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Runs a dispatch until all its waves have ended. Returns [`Error::Stopped`] early if `stop` returns true.
    pub fn dispatch(&self, packet: &Packet, stop: impl Fn() -> bool) -> Result<(), Error> {
        let start = thread_time();
        let mut interpreter = lock(&self.idle)
            .pop()
            .unwrap_or_else(|| Interpreter::new(self.memory.clone(), self.gws.clone(), self.arch));
        let result = self.run(packet, &mut interpreter, stop);
        self.stats.dispatches.fetch_add(1, Relaxed);
        self.stats.add_time_since(start);
        lock(&self.idle).push(interpreter);
        result
    }

    fn run(
        &self,
        packet: &Packet,
        interpreter: &mut Interpreter,
        stop: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let memory = &mut interpreter.memory;
        let run = Run::new(self.arch, self.units, packet, memory, self.stats.clone()).map_err(
            |reason| Error::Packet {
                kernel: symbol::kernel_name(packet.kernel_object, memory),
                reason,
            },
        )?;
        let run = Arc::new(run);
        let mut shared = run.is_one_workgroup();
        loop {
            run.work(interpreter, || {
                if stop() {
                    run.stop();
                }
                if !shared && start.elapsed() > HELPER_DELAY {
                    shared = true;
                    self.start_helpers(&run);
                }
            });
            if run.wait_for_others() {
                break;
            }
            if stop() {
                run.stop();
            }
        }
        run.take_error().map_or(Ok(()), Err)
    }

    fn start_helpers(&self, run: &Arc<Run>) {
        let mut jobs = lock(&self.pool.jobs);
        for _ in 0..self.max_helpers {
            jobs.runs.push_back(run.clone());
        }
        while jobs.helpers < self.max_helpers {
            let (pool, arch) = (self.pool.clone(), self.arch);
            let (memory, gws) = (self.memory.clone(), self.gws.clone());
            // Not an error: the dispatch takes longer with fewer helpers.
            if thread::spawn(c"gpu-model help", move || help(&pool, memory, gws, arch)).is_err() {
                break;
            }
            jobs.helpers += 1;
        }
        if jobs.helpers == 0 {
            jobs.runs.clear();
        }
        drop(jobs);
        self.pool.changed.notify_all();
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        lock(&self.pool.jobs).closed = true;
        self.pool.changed.notify_all();
    }
}

/// Works on dispatches until the GPU is dropped.
fn help(pool: &Pool, memory: Arc<Memory>, gws: Arc<Gws>, arch: Architecture) {
    let mut interpreter = Interpreter::new(memory, gws, arch);
    let mut jobs = lock(&pool.jobs);
    while !jobs.closed {
        let Some(run) = jobs.runs.pop_front() else {
            jobs = pool
                .changed
                .wait(jobs)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(jobs);
        let start = thread_time();
        run.work(&mut interpreter, || {});
        run.stats().add_time_since(start);
        jobs = lock(&pool.jobs);
    }
}
