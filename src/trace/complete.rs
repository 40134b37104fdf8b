//! What becomes of a dispatch that is complete: its times are read and checked, its record is written, its signal goes
//! back to the pool. All of it under one lock, mostly on the completion thread.

use super::calls::{self, CallRecord};
use super::capture::{Capture, Shared};
use super::dispatch_clock::{RecordedTime, ReportedTimes};
use super::file::TraceFile;
use super::in_flight::{CompletionSide, Entry, Signals, channel};
use super::kernel_index::Kernels;
use super::{clock, packet_origins};
use crate::gpu::hsa::kernels::{self, Kernel};
use crate::gpu::hsa::types::{AgentHandle, DispatchTime, ExecutableHandle, SignalHandle};
use crate::gpu::hsa::{gpus, signals};
use crate::support::diagnostics;
use crate::sys::env::host_name;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracefile::format::{self, Count, Dispatch, Record, flag};

/// Signals that a queue begins with, and by which it grows.
const BATCH: usize = 512;
/// Passes that find nothing in a queue before it is looked at no more.
const IDLE_POLLS: u32 = 40;

/// An agent that queues were made on.
struct Agent {
    handle: AgentHandle,
    /// Its place in HSA's order.
    index: u32,
    /// Ticks a second of its clock, 0 if unknown.
    frequency: u64,
    /// Such as `gfx1100`.
    target: String,
}

struct Queue {
    completion_side: CompletionSide,
    shared: Arc<Shared>,
    /// Place in `agents`.
    agent: usize,
    /// Signals to have in the pool.
    pool_target: usize,
    signal_waits: u64,
    /// The pool grows to the queue's size by itself, not further.
    size: usize,
    idle_polls: u32,
}

/// What the hook of `hsa_amd_profiling_get_dispatch_time` answers for a signal of the program's whose kernel completed
/// one of ours.
#[derive(Clone, Copy)]
struct SignalTime {
    submit: u64,
    /// `None`: the signal was used for another packet since.
    time: Option<DispatchTime>,
}

/// HSA's signals.
struct HsaSignals;

impl Signals for HsaSignals {
    fn create(&self) -> Option<SignalHandle> {
        signals::create()
    }

    fn value(&self, signal: SignalHandle) -> i64 {
        signals::value(signal)
    }

    fn reset(&self, signal: SignalHandle) {
        signals::reset(signal);
    }

    fn destroy(&self, signal: SignalHandle) {
        signals::destroy(signal);
    }
}

pub struct Completer {
    file: TraceFile,
    /// Ticks a second of the system clock.
    frequency: u64,
    agents: Vec<Agent>,
    recorded_agents: HashSet<[u8; format::RECORD_SIZE]>,
    kernels: Kernels,
    queues: HashMap<u32, Queue>,
    /// Queues that are looked at.
    active: Vec<u32>,
    queue_ids: HashMap<usize, u32>,
    next_queue: u32,
    next_dispatch: u64,
    program_signal_times: HashMap<SignalHandle, SignalTime>,
    /// Of the program's, with the times when they were destroyed. Kept from pass to pass for its memory.
    destroyed: Vec<(SignalHandle, u64)>,
    /// Signals that no queue has.
    unused_signals: Vec<SignalHandle>,
}

/// What a pass has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollResult {
    /// Dispatches and API calls recorded.
    pub recorded: usize,
    /// Queues with something in flight.
    pub busy: usize,
    /// Queues that were looked at.
    pub polled: usize,
}

impl Completer {
    pub fn new(file: TraceFile, frequency: u64) -> Completer {
        Completer {
            file,
            frequency,
            agents: Vec::new(),
            recorded_agents: HashSet::new(),
            kernels: Kernels::default(),
            queues: HashMap::new(),
            active: Vec::new(),
            queue_ids: HashMap::new(),
            next_queue: 1,
            next_dispatch: 1,
            program_signal_times: HashMap::new(),
            destroyed: Vec::new(),
            unused_signals: Vec::new(),
        }
    }

    /// The process that writes the file.
    pub fn record_process(&mut self) {
        let host = host_name().unwrap_or_default();
        let command: Vec<_> = std::env::args_os().collect();
        let command = command.join(std::ffi::OsStr::new(" "));
        let mut record = format::Process::new(std::process::id().into(), 0);
        record.host = self.file.text(&host.to_string_lossy()).into();
        record.command = self.file.text(&command.to_string_lossy()).into();
        record.parent = std::os::unix::process::parent_id().into();
        self.file.append(record, Count::DroppedOthers);
        self.file.publish();
    }

    /// A GPU's place in `agents`; `None` for agents that are no GPUs.
    fn agent(&mut self, handle: AgentHandle) -> Option<usize> {
        if let Some(place) = self.agents.iter().position(|agent| agent.handle == handle) {
            return Some(place);
        }
        let described = match gpus::describe(handle) {
            Ok(described) => described?,
            Err(error) => {
                diagnostics::lost(format_args!(
                    "the trace misses the agent {:#x}: {error}",
                    handle.0
                ));
                return None;
            }
        };
        self.agents.push(Agent {
            handle,
            index: described.index,
            frequency: described.frequency,
            target: described.target.clone(),
        });
        let mut record = format::Agent::new(described.index.into(), 0);
        record.frequency = described.frequency.into();
        record.name = self.file.text(&described.target).into();
        if let Some(product) = &described.product {
            record.product = self.file.text(product).into();
        }
        record.node = described.node.into();
        record.compute_units = described.compute_units.into();
        // HSA that was shut down and initialised again has the same agents.
        if self.recorded_agents.insert(record.seal()) {
            self.file.append(record, Count::DroppedOthers);
        }
        Some(self.agents.len() - 1)
    }

    /// A queue of `size` packets was made at address `queue`.
    pub fn create_queue(
        &mut self,
        handle: AgentHandle,
        address: usize,
        size: u32,
        activate: fn(u32),
        wake: fn(),
    ) -> Option<Capture> {
        let agent = self.agent(handle)?;
        let id = self.next_queue;
        self.next_queue += 1;
        let (launch_side, completion_side) = channel();
        let shared = Arc::<Shared>::default();
        let mut queue = Queue {
            completion_side,
            shared: shared.clone(),
            agent,
            pool_target: BATCH,
            signal_waits: 0,
            size: size as usize,
            idle_polls: 0,
        };
        add_signals(&mut queue, &mut self.unused_signals, BATCH);
        let mut record = format::Queue::new(id.into(), 0);
        record.created = clock::now().into();
        record.agent = self.agents[agent].index.into();
        record.size = size.into();
        self.file.append(record, Count::DroppedOthers);
        self.file.publish();
        self.queues.insert(id, queue);
        self.queue_ids.insert(address, id);
        Some(Capture::new(
            launch_side,
            shared,
            id,
            packet_origins::add(address, size),
            activate,
            wake,
        ))
    }

    /// A queue is gone: the GPU does not touch its signals any more.
    pub fn destroy_queue(&mut self, address: usize, capture: Capture) {
        let Some(id) = self.queue_ids.remove(&address) else {
            return;
        };
        packet_origins::remove(address);
        let Some(mut queue) = self.queues.remove(&id) else {
            return;
        };
        self.active.retain(|&active| active != id);
        self.record_completed(id, &mut queue);
        let unfinished = queue.completion_side.take_unfinished();
        self.record_unfinished(id, &queue, &unfinished);
        let unknown = queue.shared.unknown_packets.load(Ordering::Relaxed);
        self.file.count(Count::UnknownPackets, unknown);
        self.file.publish();
        let signals = unfinished.iter().map(|entry| entry.signal);
        for signal in signals.chain(
            queue
                .completion_side
                .into_signals(capture.into_launch_side()),
        ) {
            if signal.0 != 0 {
                HsaSignals.reset(signal);
                self.unused_signals.push(signal);
            }
        }
    }

    /// The kernels of an executable that was frozen.
    pub fn record_kernels(&mut self, executable: ExecutableHandle) {
        for handle in gpus::all() {
            let Some(agent) = self.agent(handle) else {
                continue;
            };
            let Agent { index, target, .. } = &self.agents[agent];
            let found = match kernels::kernels(executable, handle, *index, target) {
                Ok(found) => found,
                Err(error) => {
                    diagnostics::lost(format_args!(
                        "the trace has no names for the kernels of executable {:#x}: {error}",
                        executable.0
                    ));
                    continue;
                }
            };
            let mut new = Vec::new();
            self.kernels.add(found, |id, object, kernel: &Kernel| {
                new.push((id, object, kernel.clone()));
            });
            for (id, object, kernel) in new {
                self.record_kernel(id, object, &kernel);
            }
        }
        self.file.publish();
    }

    fn record_kernel(&mut self, id: u32, object: u64, kernel: &Kernel) {
        let flags = if kernel.registers.is_none() {
            flag::NO_REGISTERS
        } else {
            0
        };
        let mut record = format::Kernel::new(id.into(), flags);
        record.object = object.into();
        record.name = self.file.text(&kernel.name).into();
        record.agent = kernel.agent.into();
        record.kernarg = kernel.kernarg.into();
        record.lds = kernel.lds.into();
        record.scratch = kernel.scratch.into();
        if let Some(registers) = kernel.registers {
            record.vgprs = registers.vgprs.into();
            record.accum_vgprs = registers.accum_vgprs.into();
            record.sgprs = registers.sgprs.into();
        }
        self.file.append(record, Count::DroppedOthers);
    }

    /// Takes the queues that are to be looked at from now on, and leaves room for as many.
    pub fn activate(&mut self, activated: &mut Vec<u32>) {
        self.active.extend_from_slice(activated);
        activated.clear();
    }

    /// Looks at the active queues and at the API calls. `destroyed`: signals of the program's, with the times when they
    /// were destroyed, before which their kernels were complete.
    pub fn poll(&mut self, destroyed: &mut Vec<(SignalHandle, u64)>) -> PollResult {
        let mut result = PollResult::default();
        self.destroyed.append(destroyed);
        let mut active = std::mem::take(&mut self.active);
        active.retain(|&id| {
            // Queues go while they are on the list.
            let Some(mut queue) = self.queues.remove(&id) else {
                return false;
            };
            result.polled += 1;
            let recorded = self.record_completed(id, &mut queue);
            result.recorded += recorded;
            self.replenish_signals(&mut queue);
            let empty = queue.completion_side.is_empty();
            result.busy += usize::from(!empty);
            queue.idle_polls = if empty && recorded == 0 {
                queue.idle_polls + 1
            } else {
                0
            };
            let mut stays = queue.idle_polls < IDLE_POLLS;
            if !stays {
                queue.shared.poll_flag.unschedule();
                stays = !queue.completion_side.is_empty() && queue.shared.poll_flag.try_schedule();
                queue.idle_polls = 0;
            }
            self.queues.insert(id, queue);
            stays
        });
        self.active = active;
        // What those kernels left is there by now.
        for (signal, time) in self.destroyed.drain(..) {
            if self
                .program_signal_times
                .get(&signal)
                .is_some_and(|known| known.submit < time)
            {
                self.program_signal_times.remove(&signal);
            }
        }
        result.recorded += self.record_calls();
        if result.recorded > 0 {
            self.file.publish();
        }
        result
    }

    /// Keeps the queue's pool filled.
    fn replenish_signals(&mut self, queue: &mut Queue) {
        let signal_waits = queue.shared.signal_waits.load(Ordering::Relaxed);
        if signal_waits != queue.signal_waits {
            queue.signal_waits = signal_waits;
            queue.pool_target = (2 * queue.pool_target).min(queue.size.max(BATCH));
        }
        let is_waiting = queue.shared.waiting_for_signal.load(Ordering::SeqCst);
        let free = queue.completion_side.free_count();
        if is_waiting || free < queue.pool_target / 2 {
            let missing = queue.pool_target.saturating_sub(free);
            // Signals may be out on the GPU for long: a dry pool grows however many there are.
            let more = if is_waiting {
                missing.max(BATCH)
            } else {
                missing
            };
            add_signals(queue, &mut self.unused_signals, more);
        }
    }

    fn record_completed(&mut self, id: u32, queue: &mut Queue) -> usize {
        let agent = &self.agents[queue.agent];
        let (handle, index, agent_frequency) = (agent.handle, agent.index, agent.frequency);
        let frequency = self.frequency;
        let Self {
            file,
            kernels,
            program_signal_times,
            next_dispatch,
            ..
        } = self;
        queue.completion_side.poll(&HsaSignals, |entries| {
            let observed = clock::now();
            for entry in entries {
                let time = (entry.signal.0 != 0)
                    .then(|| signals::dispatch_time(handle, entry.signal))
                    .flatten();
                if entry.program_signal.0 != 0 {
                    update_signal_time(program_signal_times, entry, time);
                }
                if !entry.dispatch {
                    continue;
                }
                let mut record = dispatch(kernels, entry, *next_dispatch);
                *next_dispatch += 1;
                record.queue = id.into();
                record.agent = index.into();
                record.observed = observed.into();
                let recorded = if entry.signal.0 == 0 {
                    RecordedTime::NONE
                } else {
                    ReportedTimes {
                        translated: time,
                        raw: signals::raw_time(entry.signal),
                        window: entry.submit..=observed,
                        frequency,
                        agent_frequency,
                    }
                    .select()
                };
                record.start = recorded.time.start.into();
                record.end = recorded.time.end.into();
                record.head.flags = (record.head.flags.get() | recorded.flags).into();
                file.append(record, Count::DroppedDispatches);
            }
        })
    }

    fn record_unfinished(&mut self, id: u32, queue: &Queue, entries: &[Entry]) {
        let observed = clock::now();
        for entry in entries.iter().filter(|entry| entry.dispatch) {
            let mut record = dispatch(&self.kernels, entry, self.next_dispatch);
            self.next_dispatch += 1;
            record.queue = id.into();
            record.agent = self.agents[queue.agent].index.into();
            record.observed = observed.into();
            let flags = record.head.flags.get() | flag::UNFINISHED | flag::CLOCK_NONE;
            record.head.flags = flags.into();
            self.file.append(record, Count::DroppedDispatches);
        }
    }

    fn record_calls(&mut self) -> usize {
        let mut recorded = 0;
        calls::drain(&mut |call: CallRecord| {
            let mut record = format::Call::new(call.id, 0);
            record.start = call.start.into();
            record.end = call.end.into();
            record.thread = call.thread.into();
            record.name = self.file.text(call.function).into();
            record.status = call.status.into();
            self.file.append(record, Count::DroppedCalls);
            recorded += 1;
        });
        recorded
    }

    /// Kernels were loaded.
    pub fn has_kernels(&self) -> bool {
        !self.kernels.is_empty()
    }

    /// Something is in flight.
    pub fn is_busy(&mut self) -> bool {
        let busy = |queue: &mut Queue| !queue.completion_side.is_empty();
        self.queues.values_mut().any(busy)
    }

    /// Ends the use of HSA: what is in flight is recorded as unfinished, and what is launched from now on, too, at the
    /// next call.
    pub fn stop(&mut self) {
        let ids: Vec<u32> = self.queues.keys().copied().collect();
        for id in ids {
            let Some(mut queue) = self.queues.remove(&id) else {
                continue;
            };
            queue.shared.stopped.store(true, Ordering::SeqCst);
            let unfinished = queue.completion_side.take_unfinished();
            self.record_unfinished(id, &queue, &unfinished);
            let unknown = queue.shared.unknown_packets.swap(0, Ordering::Relaxed);
            self.file.count(Count::UnknownPackets, unknown);
            self.queues.insert(id, queue);
        }
        self.record_calls();
        self.file.close();
    }

    /// HSA has ended, and its queues and signals with it.
    pub fn release(&mut self) {
        self.stop();
        self.queues.clear();
        for (address, _) in self.queue_ids.drain() {
            packet_origins::remove(address);
        }
        self.active.clear();
        self.agents.clear();
        self.program_signal_times.clear();
        self.unused_signals.clear();
    }

    /// Gives HSA back the signals that no queue has.
    pub fn destroy_unused_signals(&mut self) {
        for signal in std::mem::take(&mut self.unused_signals) {
            HsaSignals.destroy(signal);
        }
    }

    /// The kernel's times for a signal of the program's whose kernel completed one of ours.
    pub fn program_signal_time(&self, signal: SignalHandle) -> Option<DispatchTime> {
        self.program_signal_times.get(&signal)?.time
    }
}

/// Gives the queue `count` signals more.
fn add_signals(queue: &mut Queue, unused_signals: &mut Vec<SignalHandle>, count: usize) {
    for _ in 0..count {
        match unused_signals.pop().or_else(|| HsaSignals.create()) {
            Some(signal) => queue.completion_side.add_signal(signal),
            None => {
                if queue.completion_side.free_count() == 0 {
                    diagnostics::lost(
                        "HSA makes no more signals: dispatches are recorded without their times until some are complete",
                    );
                    queue
                        .shared
                        .signals_exhausted
                        .store(true, Ordering::Release);
                }
                return;
            }
        }
    }
    queue
        .shared
        .signals_exhausted
        .store(false, Ordering::Release);
}

/// Whose time the program's signal has.
fn update_signal_time(
    program_signal_times: &mut HashMap<SignalHandle, SignalTime>,
    entry: &Entry,
    time: Option<DispatchTime>,
) {
    let new = SignalTime {
        submit: entry.submit,
        // Without a signal of ours the packet completed the program's itself.
        time: time.filter(|_| entry.dispatch && entry.signal.0 != 0),
    };
    let known = program_signal_times
        .entry(entry.program_signal)
        .or_insert(new);
    if known.submit <= new.submit {
        *known = new;
    }
}

/// What the packet says of a dispatch.
fn dispatch(kernels: &Kernels, entry: &Entry, id: u64) -> Dispatch {
    let kernel = kernels.find(entry.kernel_object, entry.epoch);
    let registers = kernels.registers(kernel);
    let mut flags = 0;
    for (set, bit) in [
        (entry.correlation == 0, flag::NO_CALL),
        (registers.is_none(), flag::NO_REGISTERS),
        (entry.vendor, flag::VENDOR),
    ] {
        flags |= if set { bit } else { 0 };
    }
    let mut record = Dispatch::new(id, flags);
    record.correlation = entry.correlation.into();
    record.submit = entry.submit.into();
    record.thread = entry.thread.into();
    record.kernel = kernel.into();
    record.grid = entry.grid.map(Into::into);
    record.workgroup = entry.workgroup.map(Into::into);
    record.lds = entry.lds.into();
    record.scratch = entry.scratch.into();
    if let Some(registers) = registers {
        record.vgprs = registers.vgprs.into();
        record.accum_vgprs = registers.accum_vgprs.into();
        record.sgprs = registers.sgprs.into();
    }
    record
}
