//! Copies: synchronous ones, and asynchronous ones. A thread executes the asynchronous copies whose dependencies are met,
//! in the order of their requests. Every copy is checked against the allocations
//! ([`crate::memory::allocations::Memory::check_copy`]).

use crate::device::clock::system_ticks;
use crate::device::l2::L2;
use crate::faults::injection;
use crate::faults::plan::CopyFault;
use crate::signals::{changes, copy_times, pool};
use crate::state::with;
use crate::sync::{die, locked};
use gpu_model::exec::clock_ticks;
use gpu_model::thread::{self, Thread};
use hsa_abi::*;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The copy engines of each GPU.
pub const COPY_ENGINES: u32 = 2;

/// Bytes to copy.
#[derive(Clone, Copy)]
pub struct Piece {
    /// Addresses in this process, not those that the program uses.
    pub to: usize,
    pub from: usize,
    pub size: usize,
}

/// The executor of a copy, which decides where its times are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// A copy engine. Its times are next to the `amd_signal_t` ([`copy_times`]).
    Engine,
    /// A kernel of the runtime, whose packet has fences of system scope. Its times are in the `amd_signal_t`.
    Kernel,
    /// The host. Its times are in the `amd_signal_t`, and of the system's clock.
    Host,
}

pub struct Job {
    /// The fault applies to each piece.
    pub pieces: Vec<Piece>,
    pub executor: Executor,
    /// The cache of the GPU that executes the copy.
    pub l2: Option<Arc<L2>>,
    pub fault: Option<CopyFault>,
    pub dependencies: Vec<SignalHandle>,
    pub completion: SignalHandle,
}

/// Whether copies have times (`hsa_amd_profiling_async_copy_enable`).
pub static HAS_TIMES: AtomicBool = AtomicBool::new(false);

/// A copy that was requested.
struct Requested {
    job: Job,
    has_times: bool,
    /// The value that the copy writes to its completion signal. `None`: it decrements the signal.
    written: Option<SignalValue>,
}

#[derive(Default)]
struct Engine {
    jobs: VecDeque<Requested>,
    /// The pieces of the copy that is executed now.
    running: Vec<Piece>,
    thread: Option<Thread>,
    stop: bool,
}

static ENGINE: Mutex<Engine> = Mutex::new(Engine {
    jobs: VecDeque::new(),
    running: Vec::new(),
    thread: None,
    stop: false,
});

/// Copies memory that other threads may use at the same time. Addresses that are not mapped end the process with SIGSEGV.
///
/// # Safety
/// Both ranges may be accessed.
unsafe fn bytes(to: usize, from: usize, size: usize) {
    let mut at = 0;
    if to % 8 == from % 8 && !(from..from.wrapping_add(size)).contains(&to) {
        while at < size {
            let by_word = size - at >= 8 && (to + at).is_multiple_of(8);
            // SAFETY: the caller's promise; eight bytes at once only if they are aligned and inside the ranges.
            unsafe {
                if by_word {
                    let word = (*((from + at) as *const AtomicU64)).load(Relaxed);
                    (*((to + at) as *const AtomicU64)).store(word, Relaxed);
                } else {
                    let byte = (*((from + at) as *const AtomicU8)).load(Relaxed);
                    (*((to + at) as *const AtomicU8)).store(byte, Relaxed);
                }
            }
            at += if by_word { 8 } else { 1 };
        }
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size) };
    }
}

/// Copies bytes and applies the plan's fault.
///
/// # Safety
/// Both ranges may be accessed.
pub unsafe fn transfer(to: usize, from: usize, size: usize, fault: Option<CopyFault>) {
    let size = match fault {
        Some(CopyFault::Short(limit)) => size.min(limit),
        _ => size,
    };
    // SAFETY: the caller's promise.
    unsafe { bytes(to, from, size) };
    if let Some(CopyFault::Torn(intact)) = fault {
        for at in intact.min(size)..size {
            // SAFETY: inside the range that was just written.
            unsafe { (*((to + at) as *const AtomicU8)).fetch_xor(0xff, Relaxed) };
        }
    }
}

/// Checks a copy. Returns the addresses of the target's and the source's bytes in this process.
pub fn check(to: usize, from: usize, size: usize) -> Result<(usize, usize), Status> {
    let end = |start: usize| start.checked_add(size);
    let (Some(to_end), Some(from_end)) = (end(to), end(from)) else {
        die(&format!(
            "a copy of {size:#x} bytes from {from:#x} to {to:#x} wraps around the address space"
        ));
    };
    with(
        |state| match state.memory.check_copy(to..to_end, from..from_end) {
            Ok(()) => Ok((
                state.memory.host_address(to),
                state.memory.host_address(from),
            )),
            Err(what) => die(&what),
        },
    )
}

/// The memory of a code object with these addresses in this process will be freed. A copy that still uses it ends the process: on
/// hardware, it is a memory fault, or it reads what is allocated there next.
pub fn check_unused(bytes: Range<usize>) {
    let engine = locked(&ENGINE);
    let requested = engine
        .jobs
        .iter()
        .flat_map(|requested| &requested.job.pieces);
    for &Piece { to, from, size } in requested.chain(&engine.running) {
        let uses = |start: usize| start < bytes.end && bytes.start < start + size;
        if uses(to) || uses(from) {
            die("a code object is unloaded before a copy of it is complete");
        }
    }
}

/// Queues a copy for the engine.
pub fn start(job: Job) -> Result<(), Status> {
    let has_times = HAS_TIMES.load(Acquire);
    if has_times {
        copy_times::requested(job.completion, job.executor != Executor::Host);
    }
    let requested = Requested {
        written: written(&job),
        job,
        has_times,
    };
    let mut engine = locked(&ENGINE);
    engine.jobs.push_back(requested);
    if engine.thread.is_none() {
        engine.stop = false;
        match thread::spawn(c"hsa-sim copy", run) {
            Ok(thread) => engine.thread = Some(thread),
            Err(_) => {
                engine.jobs.pop_back();
                return Err(Status::OUT_OF_RESOURCES);
            }
        }
    }
    drop(engine);
    changes::notify();
    Ok(())
}

/// The value of the completion signal after a copy by an engine without PCIe atomics. It has to be known when the copy is
/// requested (`BlitSdma::SubmitCommand` in ROCr).
fn written(job: &Job) -> Option<SignalValue> {
    let has_atomics = with(|state| Ok(state.settings.pcie_atomics)).unwrap_or(true);
    if job.executor != Executor::Engine || has_atomics {
        return None;
    }
    // SAFETY: the request has checked the handle.
    let signal = unsafe { pool::get(job.completion) };
    signal.map(|signal| signal.value.load(Acquire) - 1)
}

/// The engine's thread.
fn run() {
    loop {
        let seen = changes::version();
        let mut idle = Duration::from_secs(1);
        let ready = {
            let mut engine = locked(&ENGINE);
            if engine.stop {
                return;
            }
            if !engine.jobs.is_empty() {
                // A kernel changes a dependency without a notification.
                idle = Duration::from_millis(1);
            }
            let next = engine.jobs.iter().position(|Requested { job, .. }| {
                job.dependencies.iter().all(|&signal| {
                    // SAFETY: signals that a copy depends on live until it is done, as HSA requires.
                    let signal = unsafe { pool::get(signal) };
                    signal.is_none_or(|signal| signal.value.load(Acquire) == 0)
                })
            });
            let ready = next.and_then(|n| engine.jobs.remove(n));
            if let Some(Requested { job, .. }) = &ready {
                engine.running.clone_from(&job.pieces);
            }
            ready
        };
        match ready {
            Some(requested) => execute(&requested),
            None => changes::wait_since(seen, idle),
        }
    }
}

fn execute(requested: &Requested) {
    let &Requested {
        ref job,
        has_times,
        written,
    } = requested;
    let of_engine = match job.executor {
        Executor::Engine => injection::engine_fault(),
        Executor::Kernel | Executor::Host => None,
    };
    let fault = of_engine.or(job.fault);
    let clock = match job.executor {
        Executor::Host => system_ticks,
        Executor::Engine | Executor::Kernel => clock_ticks,
    };
    let start = clock();
    let by_kernel = job.executor == Executor::Kernel;
    let l2 = job.l2.as_ref().filter(|_| by_kernel);
    if let Some(l2) = l2 {
        l2.write_back();
    }
    if fault != Some(CopyFault::Error) {
        for &Piece { to, from, size } in &job.pieces {
            // SAFETY: both ranges were checked at the request, and the program keeps the memory until the copy is done.
            unsafe { transfer(to, from, size, fault) };
        }
    }
    if let Some(l2) = l2 {
        l2.invalidate();
    }
    // From here on, the program may free the memory.
    locked(&ENGINE).running.clear();
    // SAFETY: the program keeps the signal until the copy is done.
    let Some(signal) = (unsafe { pool::get(job.completion) }) else {
        die("the completion signal of a copy was destroyed before the copy was complete");
    };
    if has_times && job.executor == Executor::Engine {
        copy_times::executed(job.completion, start, clock());
    } else if has_times {
        signal.start_ts.store(start, Release);
        signal.end_ts.store(clock(), Release);
    }
    match fault {
        Some(CopyFault::Drop) => return,
        Some(CopyFault::Error) => signal.value.store(-1, Release),
        _ => match written {
            Some(value) => signal.value.store(value, Release),
            None => {
                signal.value.fetch_sub(1, AcqRel);
            }
        },
    }
    changes::notify();
}

/// At shutdown: ends the thread. Copies that it has not executed are dropped.
pub fn stop() {
    let thread = {
        let mut engine = locked(&ENGINE);
        engine.stop = true;
        engine.jobs.clear();
        HAS_TIMES.store(false, Release);
        engine.thread.take()
    };
    changes::notify();
    if let Some(thread) = thread {
        thread.join();
    }
}
