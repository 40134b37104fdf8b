//! The packet processor of a queue. It processes AQL packets in order, as in the HSA Platform System Architecture
//! Specification, and AMD's vendor packets.
//!
//! A kernel without the barrier bit starts while the kernel in front of it is still running, if that one has run for a
//! while ([`OVERLAP_DELAY`]). Any other packet starts when the kernels in front of it are complete, as if it had the
//! barrier bit.
//!
//! Each queue has its own thread, which polls for more packets for a while after the last one. Then the thread sleeps,
//! and one common thread polls the write indexes of all sleeping queues. So an idle queue costs almost nothing. If a
//! kernel may start while another one is running, a new thread takes over the queue, and the old one ends with its
//! kernel.

use std::cell::RefCell;
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::clock_ticks;
use crate::dispatch::{self, Descriptor, Gpu, Packet};
use crate::fault::Fault;
use crate::memory::{Storage, View};
use crate::thread::{self, Thread, lock};

/// Where a queue is in memory. All addresses are GPU virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Address of the ring.
    pub ring: u64,
    /// The number of packets in the ring.
    pub packets: u64,
    /// Address of the write index: the number of packets written since the queue's start.
    pub write_index: u64,
    /// Address of the read index.
    pub read_index: u64,
    /// Address of the `amd_queue_t`, for kernels that read it; 0 if it does not exist.
    pub queue: u64,
}

/// The program that uses the model.
pub trait Host: Send + Sync + 'static {
    /// Wakes the threads that wait for the event: a signal has changed.
    fn set_event(&self, event: u32);
    /// Whether kernels are executed. If not, kernel packets complete immediately, and so do packets of a type or format
    /// that is not modelled: for simulators that only need packets to complete.
    fn executes(&self) -> bool {
        true
    }
    /// Whether packets may be as in ROCr's development branch: with hints in the lowest bits of completion signals
    /// (amd_hsa_signal.h, `amd_signal_hint_t`), and jumps to packets in memory (hsa_ext_amd.h,
    /// `hsa_amd_aql_ib_jump_packet_t`). Otherwise these are errors.
    fn has_newest_packets(&self) -> bool {
        false
    }
    /// Called for a packet whose header has an acquire fence at system scope: before its kernel starts, or when the
    /// wait of a barrier is over. For simulators of memory that is not coherent; the model's memory is coherent.
    fn acquire(&self) {}
    /// Called for a packet whose header has a release fence at system scope: when it is complete, before its signal
    /// changes.
    fn release(&self) {}
    /// Called once for each packet when it is complete, before its signal changes. `has_signal`: it has a completion signal.
    fn ended(&self, header: u16, has_signal: bool) {
        let _ = (header, has_signal);
    }
    /// Called once for each kernel packet (`kernel` is true), and for each other packet that has a completion signal.
    /// Returns how the packet completes, so that a simulator can test how programs react. If it returns `None`, the
    /// model does not change the completion signal.
    fn completes(&self, ended: Completion, kernel: bool) -> Option<Completion> {
        let _ = kernel;
        Some(ended)
    }
    /// Called if a packet fails. The queue's thread ends after this call.
    fn failed(&self, error: &Error);
}

/// The completion of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Address of the completion signal; 0 if the packet does not have one.
    pub signal: u64,
    /// The bits of [`hint`] in the signal's handle.
    pub hints: u64,
    /// Start and end in ticks of the GPU's clock (100 MHz). With `None`, the times in the signal do not change.
    pub times: Option<(u64, u64)>,
}

/// Hints in the handle of a completion signal.
pub mod hint {
    const FORMAT_V2: u64 = 1;
    pub const NO_INTERRUPT: u64 = 1 << 1;
    pub const INTERRUPT_ON_ZERO: u64 = 2 << 1;
    pub const INTERRUPT_MASK: u64 = 3 << 1;
    /// The value becomes 0, whatever it was.
    pub const VALUE_BINARY: u64 = 1 << 3;
    /// The times are written, even if the queue does not do it.
    pub const TIMES_ON: u64 = 1 << 4;
    pub const TIMES_OFF: u64 = 2 << 4;
    pub const TIMES_MASK: u64 = 3 << 4;
    /// The value does not change. Only in handles of the second format.
    pub const NO_VALUE: u64 = 1 << 6;

    /// The bits of a handle that are not the signal's address.
    pub fn mask(handle: u64) -> u64 {
        if handle & FORMAT_V2 == 0 { 0x3f } else { 0x3ff }
    }
}

/// Why a packet failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Dispatch(#[from] dispatch::Error),
    #[error("queue {queue:#x}, packet {index}: {reason}")]
    Packet {
        queue: u64,
        index: u64,
        reason: String,
    },
}

const THREAD_NAME: &CStr = c"gpu-model queue";

struct Shared {
    gpu: Arc<Gpu>,
    host: Arc<dyn Host>,
    info: Info,
    stop: AtomicBool,
    doorbell: Mutex<bool>,
    rung: Condvar,
    /// The number of running kernels whose threads do not process the queue any more.
    overlapped: AtomicUsize,
    /// The queue's threads.
    threads: Mutex<Vec<Thread>>,
}

/// A queue whose packets are being processed. Dropping it stops the processing, even in the middle of a kernel.
pub struct Queue {
    shared: Arc<Shared>,
}

impl Queue {
    /// Starts the processing. Fails if no thread can be started.
    pub fn start(gpu: Arc<Gpu>, host: Arc<dyn Host>, info: Info) -> io::Result<Queue> {
        let shared = Arc::new(Shared {
            gpu,
            host,
            info,
            stop: AtomicBool::new(false),
            doorbell: Mutex::new(false),
            rung: Condvar::new(),
            overlapped: AtomicUsize::new(0),
            threads: Mutex::default(),
        });
        let processed = shared.clone();
        shared.add_thread(thread::spawn(THREAD_NAME, move || processed.process(None))?);
        Ok(Queue { shared })
    }

    /// Rings the doorbell: there may be new packets. Without this call, the next poll finds them.
    pub fn ring(&self) {
        self.shared.ring();
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.stop.store(true, Release);
        self.ring();
        // A thread that ends may have started another one.
        while let Some(thread) = self.shared.take_thread() {
            thread.join();
        }
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Acquire)
    }

    /// Processes the queue from packet `next` on, or from its read index. The work of one of the queue's threads.
    fn process(self: Arc<Self>, next: Option<u64>) {
        if let Err(error) = Processor::new(self.clone()).run(next) {
            self.host.failed(&error);
        }
    }

    fn add_thread(&self, thread: Thread) {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.has_ended());
        threads.push(thread);
    }

    fn take_thread(&self) -> Option<Thread> {
        lock(&self.threads).pop()
    }

    /// Waits until the doorbell rings, for at most `pause`.
    fn wait(&self, pause: Duration) {
        let rung = lock(&self.doorbell);
        let (mut rung, _) = self
            .rung
            .wait_timeout_while(rung, pause, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }

    fn ring(&self) {
        *lock(&self.doorbell) = true;
        self.rung.notify_one();
    }
}

/// The time between two polls, after `idle` without a new packet.
fn pause(idle: Duration) -> Duration {
    Duration::from_micros(match idle.as_micros() {
        0..POLLING => 20,
        POLLING..100_000 => 100,
        100_000..1_000_000 => 500,
        _ => return MAX_PAUSE,
    })
}

const MAX_PAUSE: Duration = Duration::from_millis(2);

/// How long an idle queue's own thread polls for packets, in microseconds.
const POLLING: u128 = 2_000;

/// How long a kernel runs before the next one may start next to it. Starting a thread for it takes longer than a small
/// kernel.
const OVERLAP_DELAY: Duration = Duration::from_micros(100);

/// A queue whose thread sleeps until its write index is no longer `next`.
struct Sleeper {
    shared: Arc<Shared>,
    memory: View,
    next: u64,
}

/// The thread that polls the write indexes of sleeping queues.
struct Watcher {
    sleepers: Mutex<Vec<Sleeper>>,
    /// Signalled when a queue starts to sleep.
    changed: Condvar,
    started: Mutex<bool>,
}

static WATCHER: Watcher = Watcher {
    sleepers: Mutex::new(Vec::new()),
    changed: Condvar::new(),
    started: Mutex::new(false),
};

impl Watcher {
    /// Starts the thread if it is not running. Returns whether it is running.
    fn start(&'static self) -> bool {
        let mut started = lock(&self.started);
        if !*started {
            *started = thread::spawn(c"gpu-model watch", || self.watch()).is_ok();
        }
        *started
    }

    /// Waits until the doorbell rings or the queue's write index changes. If the thread cannot be started, waits for
    /// [`MAX_PAUSE`].
    fn sleep(&'static self, sleeper: Sleeper) {
        if !self.start() {
            sleeper.shared.wait(MAX_PAUSE);
            return;
        }
        let shared = sleeper.shared.clone();
        lock(&self.sleepers).push(sleeper);
        self.changed.notify_one();
        let mut rung = lock(&shared.doorbell);
        while !*rung {
            rung = shared
                .rung
                .wait(rung)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *rung = false;
        drop(rung);
        // Once the queue's thread is awake, no other thread may read the queue's memory.
        lock(&self.sleepers).retain(|other| !Arc::ptr_eq(&other.shared, &shared));
    }

    fn watch(&self) {
        let mut sleepers = lock(&self.sleepers);
        let mut since = Instant::now();
        loop {
            if sleepers.is_empty() {
                sleepers = self
                    .changed
                    .wait(sleepers)
                    .unwrap_or_else(PoisonError::into_inner);
                since = Instant::now();
            }
            for Sleeper {
                shared,
                memory,
                next,
            } in sleepers.iter_mut()
            {
                // If the index cannot be read, the queue's own thread reports it.
                if memory.load_u64(shared.info.write_index) != Ok(*next) {
                    shared.ring();
                    since = Instant::now();
                }
            }
            drop(sleepers);
            std::thread::sleep(pause(since.elapsed()));
            sleepers = lock(&self.sleepers);
        }
    }
}

/// Packet types, and the formats of AMD's vendor-specific packets.
pub mod packet {
    pub const VENDOR_SPECIFIC: u8 = 0;
    pub const INVALID: u8 = 1;
    pub const KERNEL_DISPATCH: u8 = 2;
    pub const BARRIER_AND: u8 = 3;
    pub const BARRIER_OR: u8 = 5;
    pub const AMD_PM4_IB: u8 = 1;
    pub const AMD_BARRIER_VALUE: u8 = 2;
    pub const AMD_IB_JUMP: u8 = 7;
    pub const SIZE: u64 = 64;
    /// Whether the packet waits for those in front of it.
    pub fn has_barrier_bit(header: u16) -> bool {
        header >> 8 & 1 != 0
    }
    /// Whether the header has an acquire fence at system scope.
    pub fn acquires(header: u16) -> bool {
        header >> 9 & 3 == SCOPE_SYSTEM
    }
    /// Whether the header has a release fence at system scope.
    pub fn releases(header: u16) -> bool {
        header >> 11 & 3 == SCOPE_SYSTEM
    }
    const SCOPE_SYSTEM: u16 = 2;
}

/// PM4 commands. The accepted ones only affect caches and ordering. The model does not have caches and does not
/// reorder.
mod pm4 {
    pub const NOP: u32 = 0x10;
    pub const INDIRECT_BUFFER: u32 = 0x3f;
    pub const ACQUIRE_MEM: u32 = 0x58;
}

/// Offsets in an `amd_signal_t`.
mod signal {
    pub const VALUE: u64 = 8;
    pub const EVENT_MAILBOX: u64 = 16;
    pub const EVENT_ID: u64 = 24;
    pub const START: u64 = 32;
    pub const END: u64 = 40;
}

/// The result of one poll of the queue.
#[derive(PartialEq, Eq)]
enum Step {
    Done,
    /// There is no packet.
    Empty,
    /// The next packet has to wait.
    Waiting,
    /// Another thread processes the queue.
    HandedOver,
}

/// The outcome of an attempt to process a packet.
enum Outcome {
    /// The packet is complete. `start`: when its processing started, in ticks of the GPU's clock.
    Completed { start: u64 },
    /// The kernel is complete, and another thread has taken over the queue meanwhile.
    Overlapped { start: u64 },
    /// The packet has to wait.
    MustWait,
}

/// Why a packet failed, without its queue and index.
enum Failure {
    Dispatch(dispatch::Error),
    Other(String),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Other(fault.to_string())
    }
}

struct Processor {
    shared: Arc<Shared>,
    executes: bool,
    memory: View,
    next: u64,
}

impl Processor {
    fn new(shared: Arc<Shared>) -> Processor {
        Processor {
            memory: View::new(shared.gpu.memory().clone()),
            executes: shared.host.executes(),
            shared,
            next: 0,
        }
    }

    fn run(&mut self, next: Option<u64>) -> Result<(), Error> {
        let info = self.shared.info;
        self.next = match next {
            Some(next) => next,
            None => self.with_context(|this| Ok(this.memory.load_u64(info.read_index)?))?,
        };
        let mut idle_since = Instant::now();
        while !self.shared.stopped() {
            match self.with_context(Self::step) {
                Ok(Step::Done) => idle_since = Instant::now(),
                Ok(Step::HandedOver) => break,
                Ok(step) => {
                    let idle = idle_since.elapsed();
                    if idle < Duration::from_micros(10) {
                        // Spin instead of yielding: after a yield, polling threads of ROCr would get the processor for
                        // milliseconds. After a short sleep, as below, a thread gets the processor back immediately.
                        std::hint::spin_loop();
                    } else if step == Step::Empty && idle.as_micros() >= POLLING {
                        WATCHER.sleep(Sleeper {
                            shared: self.shared.clone(),
                            memory: View::new(self.shared.gpu.memory().clone()),
                            next: self.next,
                        });
                        idle_since = Instant::now();
                    } else {
                        self.shared.wait(pause(idle));
                    }
                }
                Err(Error::Dispatch(dispatch::Error::Stopped)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds queue and packet index to the errors of `work`.
    fn with_context<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        work(self).map_err(|failure| match failure {
            Failure::Dispatch(error) => Error::Dispatch(error),
            Failure::Other(reason) => Error::Packet {
                queue: self.shared.info.ring,
                index: self.next,
                reason,
            },
        })
    }

    /// Processes the next packet, if there is one and it does not have to wait.
    fn step(&mut self) -> Result<Step, Failure> {
        let info = self.shared.info;
        if self.next == self.memory.load_u64(info.write_index)? {
            return Ok(Step::Empty);
        }
        let address = info.ring + self.next % info.packets * packet::SIZE;
        let header = self.memory.load_u16(address)?;
        let kernel = header as u8 == packet::KERNEL_DISPATCH;
        let waits = !kernel || packet::has_barrier_bit(header);
        if waits && self.shared.overlapped.load(Acquire) != 0 {
            return Ok(Step::Waiting);
        }
        if kernel && packet::acquires(header) {
            self.shared.host.acquire();
        }
        let format = self.memory.load_u8(address + 2)?;
        let is_jump = header as u8 == packet::VENDOR_SPECIFIC && format == packet::AMD_IB_JUMP;
        // Once the packet is consumed, the program may reuse its slot.
        let handle = self
            .memory
            .load_u64(address + if is_jump { 48 } else { 56 })?;
        let outcome = match header as u8 {
            packet::INVALID => Outcome::MustWait,
            packet::KERNEL_DISPATCH => self.kernel(address, true)?,
            packet::BARRIER_AND => self.barrier(address, true)?,
            packet::BARRIER_OR => self.barrier(address, false)?,
            packet::VENDOR_SPECIFIC => match format {
                packet::AMD_PM4_IB => self.pm4(address)?,
                packet::AMD_BARRIER_VALUE => self.barrier_value(address)?,
                packet::AMD_IB_JUMP if self.shared.host.has_newest_packets() => {
                    self.jump(address)?
                }
                other => self.unknown("vendor packet format", other)?,
            },
            other => self.unknown("packet type", other)?,
        };
        let (start, is_overlapped) = match outcome {
            Outcome::Completed { start } => (start, false),
            Outcome::Overlapped { start } => (start, true),
            Outcome::MustWait => return Ok(Step::Waiting),
        };
        if !kernel && packet::acquires(header) {
            self.shared.host.acquire();
        }
        if packet::releases(header) {
            self.shared.host.release();
        }
        if !is_overlapped {
            self.consume(address)?;
        }
        self.end(handle, start, header)?;
        if is_overlapped {
            self.shared.overlapped.fetch_sub(1, AcqRel);
            self.shared.ring();
            return Ok(Step::HandedOver);
        }
        Ok(Step::Done)
    }

    /// Completes a packet that has started at `start`. `handle`: its completion signal, or 0.
    fn end(&mut self, handle: u64, start: u64, header: u16) -> Result<(), Failure> {
        let kernel = header as u8 == packet::KERNEL_DISPATCH;
        self.shared.host.ended(header, handle != 0);
        let hints = handle & hint::mask(handle);
        if hints != 0 && !self.shared.host.has_newest_packets() {
            return Err(Failure::Other(format!(
                "the completion signal {handle:#x} is not aligned"
            )));
        }
        if kernel || handle != 0 {
            let ended = Completion {
                signal: handle - hints,
                hints,
                times: Some((start, clock_ticks())),
            };
            if let Some(completion) = self.shared.host.completes(ended, kernel)
                && completion.signal != 0
            {
                self.complete(completion)?;
            }
        }
        Ok(())
    }

    /// `hsa_amd_aql_ib_jump_packet_t`: executes the packets at another address.
    fn jump(&mut self, address: u64) -> Result<Outcome, Failure> {
        let start = clock_ticks();
        let count = self.memory.load_u32(address + 4)?;
        let target = self.memory.load_u64(address + 8)?;
        for at in (0..u64::from(count)).map(|n| target + n * packet::SIZE) {
            let header = self.memory.load_u16(at)?;
            if header as u8 != packet::KERNEL_DISPATCH {
                return Err(unsupported("a jump to packet type", header as u8));
            }
            let start = clock_ticks();
            self.kernel(at, false)?;
            let handle = self.memory.load_u64(at + 56)?;
            self.end(handle, start, header)?;
        }
        Ok(Outcome::Completed { start })
    }

    /// Makes the slot of the packet at `address` free.
    fn consume(&mut self, address: u64) -> Result<(), Fault> {
        self.memory.store_u16(address, u16::from(packet::INVALID))?;
        self.next += 1;
        self.memory
            .store_u64(self.shared.info.read_index, self.next)
    }

    /// While the kernel with the descriptor at `kernel`, of the packet at `address`, is running: if the next packet is a
    /// kernel without the barrier bit, another thread takes over the queue. Returns whether it does.
    /// A kernel that reads its packet keeps the slot, so it does not overlap with the next one.
    fn hand_over(&mut self, address: u64, kernel: u64) -> Result<bool, Failure> {
        let info = self.shared.info;
        let next = self.next + 1;
        if next == self.memory.load_u64(info.write_index)? {
            return Ok(false);
        }
        let header = self
            .memory
            .load_u16(info.ring + next % info.packets * packet::SIZE)?;
        if header as u8 != packet::KERNEL_DISPATCH || packet::has_barrier_bit(header) {
            return Ok(false);
        }
        let descriptor = Descriptor::read(self.shared.gpu.architecture(), kernel, &mut self.memory);
        if descriptor.map_or(true, |descriptor| descriptor.reads_packet()) {
            return Ok(false);
        }
        self.consume(address)?;
        self.shared.overlapped.fetch_add(1, AcqRel);
        let processed = self.shared.clone();
        let thread = thread::spawn(THREAD_NAME, move || processed.process(Some(next)))
            .map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))?;
        self.shared.add_thread(thread);
        Ok(true)
    }

    fn complete(&mut self, ended: Completion) -> Result<(), Failure> {
        let memory = &mut self.memory;
        let at = ended.signal;
        // The program may destroy the signal as soon as its value has changed.
        let mailbox = memory.load_u64(at + signal::EVENT_MAILBOX)?;
        let event = memory.load_u32(at + signal::EVENT_ID)?;
        if let Some((start, end)) = ended.times {
            memory.store_u64(at + signal::START, start)?;
            memory.store_u64(at + signal::END, end)?;
        }
        let changed = |value: u64| match ended.hints & (hint::VALUE_BINARY | hint::NO_VALUE) {
            0 => value.wrapping_sub(1),
            hint::VALUE_BINARY => 0,
            _ => value,
        };
        let value = changed(memory.update_u64(at + signal::VALUE, changed)?);
        let interrupts = match ended.hints & hint::INTERRUPT_MASK {
            hint::NO_INTERRUPT => false,
            hint::INTERRUPT_ON_ZERO => value == 0,
            _ => true,
        };
        if interrupts && mailbox != 0 {
            memory.store_u64(mailbox, u64::from(event))?;
        }
        if interrupts && event != 0 {
            self.shared.host.set_event(event);
        }
        Ok(())
    }

    fn unknown(&self, what: &str, value: u8) -> Result<Outcome, Failure> {
        if self.executes {
            return Err(unsupported(what, value));
        }
        Ok(Outcome::Completed {
            start: clock_ticks(),
        })
    }

    /// Executes the kernel of a packet. `may_overlap`: the next packet of the queue may start before it is complete.
    fn kernel(&mut self, address: u64, may_overlap: bool) -> Result<Outcome, Failure> {
        if !self.executes {
            return Ok(Outcome::Completed {
                start: clock_ticks(),
            });
        }
        let mut words = [0; 16];
        self.memory.load_dwords(address, &mut words)?;
        let long = |n: usize| u64::from(words[n]) | u64::from(words[n + 1]) << 32;
        let dimensions = words[0] >> 16 & 3;
        let in_use = |d: usize| (d as u32) < dimensions;
        let workgroup = [
            (words[1] & 0xffff) as u16,
            (words[1] >> 16) as u16,
            (words[2] & 0xffff) as u16,
        ];
        let packet = Packet {
            workgroup_size: std::array::from_fn(|d| if in_use(d) { workgroup[d] } else { 1 }),
            grid_size: std::array::from_fn(|d| if in_use(d) { words[3 + d] } else { 1 }),
            private_segment_size: words[6],
            group_segment_size: words[7],
            kernel_object: long(8),
            kernarg_address: long(10),
            address,
            queue: self.shared.info.queue,
            id: self.next,
        };
        let start = clock_ticks();
        let shared = self.shared.clone();
        let state = RefCell::new((self, Ok(false)));
        let begun = Instant::now();
        let poll = || {
            let (this, handed_over) = &mut *state.borrow_mut();
            if may_overlap
                && let Ok(false) = handed_over
                && begun.elapsed() > OVERLAP_DELAY
            {
                *handed_over = this.hand_over(address, packet.kernel_object);
            }
            shared.stopped()
        };
        shared
            .gpu
            .dispatch(&packet, poll)
            .map_err(Failure::Dispatch)?;
        Ok(match state.into_inner().1? {
            true => Outcome::Overlapped { start },
            false => Outcome::Completed { start },
        })
    }

    fn signal_value(&mut self, signal: u64) -> Result<i64, Failure> {
        Ok(self.memory.load_u64(signal + signal::VALUE)? as i64)
    }

    fn barrier(&mut self, address: u64, all: bool) -> Result<Outcome, Failure> {
        let start = clock_ticks();
        let (mut awaited, mut met) = (0, 0);
        for n in 0..5 {
            let dependency = self.memory.load_u64(address + 8 + 8 * n)?;
            if dependency != 0 {
                awaited += 1;
                met += i32::from(self.signal_value(dependency)? == 0);
            }
        }
        let enough = if all {
            met == awaited
        } else {
            met > 0 || awaited == 0
        };
        Ok(if enough {
            Outcome::Completed { start }
        } else {
            Outcome::MustWait
        })
    }

    /// `hsa_amd_barrier_value_packet_t`
    fn barrier_value(&mut self, address: u64) -> Result<Outcome, Failure> {
        let start = clock_ticks();
        let on = self.memory.load_u64(address + 8)?;
        let reference = self.memory.load_u64(address + 16)? as i64;
        let mask = self.memory.load_u64(address + 24)? as i64;
        let condition = self.memory.load_u32(address + 32)?;
        let met = if on == 0 {
            true
        } else {
            let value = self.signal_value(on)? & mask;
            match condition {
                0 => value == reference,
                1 => value != reference,
                2 => value < reference,
                3 => value >= reference,
                other => return Err(unsupported("barrier condition", other)),
            }
        };
        Ok(if met {
            Outcome::Completed { start }
        } else {
            Outcome::MustWait
        })
    }

    /// A packet that jumps to a buffer of PM4 commands.
    fn pm4(&mut self, address: u64) -> Result<Outcome, Failure> {
        let start = clock_ticks();
        let mut jump = [0; 4];
        self.memory.load_dwords(address + 4, &mut jump)?;
        if opcode(jump[0]) != pm4::INDIRECT_BUFFER {
            return Err(unsupported(
                "PM4 command in a packet",
                format!("{:#x}", jump[0]),
            ));
        }
        let buffer = u64::from(jump[1] & !3) | u64::from(jump[2] & 0xffff) << 32;
        let words = u64::from(jump[3] & 0xf_ffff);
        let mut at = 0;
        while at < words {
            let command = self.memory.load_u32(buffer + 4 * at)?;
            let length = match (command >> 30, opcode(command)) {
                (3, pm4::NOP) if command >> 16 & 0x3fff == 0x3fff => 1,
                (3, pm4::NOP | pm4::ACQUIRE_MEM) => u64::from(command >> 16 & 0x3fff) + 2,
                (2, _) => 1,
                _ => return Err(unsupported("PM4 command", format!("{command:#x}"))),
            };
            at += length;
        }
        Ok(Outcome::Completed { start })
    }
}

fn opcode(command: u32) -> u32 {
    command >> 8 & 0xff
}

fn unsupported(what: &str, value: impl fmt::Display) -> Failure {
    Failure::Other(format!("{what} {value} is not modelled"))
}
