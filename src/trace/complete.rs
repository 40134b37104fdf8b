//! Processes complete dispatches: reads and checks their times, writes their records and returns their signals to the
//! pool. Also collects API calls, copies and markers. The [`Completer`] is used under one lock, mostly by the completion
//! thread.

use super::agents::{Agent, Agents};
use super::calls::{self, CallRecord};
use super::capture::{Capture, Shared};
use super::copy_records::CopyRecords;
use super::cuda_records::{CudaRecords, Output};
use super::dispatch_clock::{RecordedTime, ReportedTimes};
use super::file::TraceFile;
use super::in_flight::{CompletionSide, Entry, Signals, channel};
use super::kernel_index::Kernels;
use super::marker_records::MarkerRecords;
use super::stream_records::StreamRecords;
use super::switches::Switches;
use super::watched_signals::{self, Completed, Watch};
use super::{clock, packet_origins, recording};
use crate::amd::kernels::{self, Kernel};
use crate::amd::{gpus, signals};
use crate::support::diagnostics;
use crate::support::settings::Tracing;
use crate::sys::env::host_name;
use hsa_abi::{AgentHandle, DispatchTime, ExecutableHandle, SignalHandle};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tracefile::format::{self, Count, Dispatch, Record, flag};

/// The initial number of signals in a queue's pool, and the number by which an empty pool grows.
const BATCH: usize = 512;
/// Polls without entries after which a queue is unscheduled.
const IDLE_POLLS: u32 = 40;

struct Queue {
    completion_side: CompletionSide,
    shared: Arc<Shared>,
    /// See [`Agents::find`].
    agent: usize,
    /// The number of signals to keep in the pool.
    pool_target: usize,
    /// [`Shared::signal_waits`] at the last poll.
    signal_waits: u64,
    /// In packets. `pool_target` grows up to this number.
    size: usize,
    idle_polls: u32,
}

/// The times that the hook of `hsa_amd_profiling_get_dispatch_time` returns for one of the program's signals. The
/// kernel completed devprof's signal instead.
#[derive(Clone, Copy)]
struct SignalTime {
    submit: u64,
    /// `None`: the program has since reused the signal for a packet that completes it itself.
    time: Option<DispatchTime>,
}

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

    fn poll_watch(&self, watch: Watch) -> Option<Completed> {
        watched_signals::poll(watch)
    }
}

pub struct Completer {
    file: TraceFile,
    /// Ticks per second of the system clock.
    frequency: u64,
    agents: Agents,
    copies: CopyRecords,
    cuda: CudaRecords,
    kernels: Kernels,
    /// Keyed by id.
    queues: HashMap<u32, Queue>,
    /// Ids of the queues that are polled.
    polled_queues: Vec<u32>,
    /// Keyed by the queue's address.
    queue_ids: HashMap<usize, u32>,
    next_queue: u32,
    next_dispatch: u64,
    streams: StreamRecords,
    program_signal_times: HashMap<SignalHandle, SignalTime>,
    /// Signals that the program has destroyed, and when. Empty between two polls; kept to reuse its memory.
    destroyed: Vec<(SignalHandle, u64)>,
    /// Signals that are in no queue's pool and in no packet.
    unused_signals: Vec<SignalHandle>,
    markers: MarkerRecords,
    switches: Switches,
}

/// What a poll has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollResult {
    /// Recorded dispatches, API calls, copies and markers.
    pub recorded: usize,
    /// Queues with entries in flight, and one more if copies are in flight.
    pub busy: usize,
    /// Polled queues.
    pub polled: usize,
}

impl Completer {
    pub fn new(file: TraceFile, frequency: u64) -> Completer {
        Completer {
            file,
            frequency,
            agents: Agents::default(),
            copies: CopyRecords::default(),
            cuda: CudaRecords::default(),
            kernels: Kernels::default(),
            queues: HashMap::new(),
            polled_queues: Vec::new(),
            queue_ids: HashMap::new(),
            next_queue: 1,
            next_dispatch: 1,
            streams: StreamRecords::default(),
            program_signal_times: HashMap::new(),
            destroyed: Vec::new(),
            unused_signals: Vec::new(),
            markers: MarkerRecords::default(),
            switches: Switches::default(),
        }
    }

    /// Records the initial state of the recording, unless it is on, and sets the timer.
    pub fn begin_recording(&mut self, tracing: &Tracing) {
        self.switches.begin(tracing, &mut self.file);
    }

    /// Starts or stops the recording.
    pub fn set_recording(&mut self, on: bool) {
        self.switches.set(on, &mut self.file);
    }

    /// Switches the recording when its time has come.
    pub fn run_timer(&mut self) {
        if self.switches.run_timer(&mut self.file) {
            self.fill_pools();
        }
    }

    /// When [`Completer::run_timer`] must be called next.
    pub fn deadline(&self) -> Option<Instant> {
        self.switches.deadline()
    }

    /// Creates signals for queues that were created while the recording was stopped.
    pub fn fill_pools(&mut self) {
        if !recording::is_on() {
            return;
        }
        for queue in self.queues.values_mut() {
            let is_stopped = queue.shared.stopped.load(Ordering::Relaxed);
            if !is_stopped && queue.completion_side.free_count() == 0 {
                add_signals(queue, &mut self.unused_signals, BATCH);
            }
        }
    }

    /// For each queue, its id and the number of entries that it ever had.
    pub fn pushed(&self) -> Vec<(u32, u64)> {
        let queues = self.queues.iter();
        queues
            .map(|(&id, queue)| (id, queue.completion_side.pushed()))
            .collect()
    }

    /// Whether the entries that [`Completer::pushed`] has counted, and the copies submitted before `time`, were
    /// processed.
    pub fn has_processed(&self, pushed: &[(u32, u64)], time: u64) -> bool {
        self.copies.are_recorded_until(time)
            && pushed.iter().all(|&(id, count)| {
                let queue = self.queues.get(&id);
                queue.is_none_or(|queue| queue.completion_side.has_processed(count))
            })
    }

    /// Makes all records visible to readers. Returns whether the file has all of them.
    pub fn publish(&mut self) -> bool {
        self.file.publish();
        self.file.is_complete()
    }

    /// Records the process that writes the file.
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

    /// The number of a GPU in `agents`; `None` if the agent is not a GPU.
    fn gpu(&mut self, handle: AgentHandle) -> Option<usize> {
        let found = self.agents.find(handle, &mut self.file);
        found.filter(|&number| self.agents.get(number).is_gpu)
    }

    /// Adds the new queue of `size` packets at `address`. `None`: its agent is not a GPU.
    pub fn add_queue(
        &mut self,
        handle: AgentHandle,
        address: usize,
        size: u32,
        schedule: fn(u32),
        wake: fn(),
    ) -> Option<Capture> {
        let agent = self.gpu(handle)?;
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
        if recording::is_on() {
            add_signals(&mut queue, &mut self.unused_signals, BATCH);
        }
        let mut record = format::Queue::new(id.into(), 0);
        record.created = clock::now().into();
        record.agent = self.agents.get(agent).index.into();
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
            schedule,
            wake,
        ))
    }

    /// Removes a destroyed queue, whose signals the GPU does not access any more.
    pub fn remove_queue(&mut self, address: usize, capture: Capture) {
        let Some(id) = self.queue_ids.remove(&address) else {
            return;
        };
        packet_origins::remove(address);
        let Some(mut queue) = self.queues.remove(&id) else {
            return;
        };
        self.polled_queues.retain(|&polled| polled != id);
        self.record_completed(id, &mut queue);
        let unfinished = queue.completion_side.take_unfinished();
        self.record_unfinished(id, &queue, &unfinished);
        self.record_unknown_packets(&queue.shared);
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

    /// Records and reports packets whose kernels are not in the trace.
    fn record_unknown_packets(&mut self, shared: &Shared) {
        let unknown = shared.unknown_packets.swap(0, Ordering::Relaxed);
        self.file.add_to_counter(Count::UnknownPackets, unknown);
        let jumps = shared.jumps.swap(0, Ordering::Relaxed);
        if jumps > 0 {
            diagnostics::lost(format_args!(
                "the trace does not have the kernels of {jumps} launches of graphs that the GPU reads from memory \
                 (AQL_IB_JUMP packets)"
            ));
        }
    }

    /// Records the kernels of an executable that was frozen.
    pub fn record_kernels(&mut self, executable: ExecutableHandle) {
        for handle in gpus::all() {
            let Some(agent) = self.gpu(handle) else {
                continue;
            };
            let Agent { index, target, .. } = self.agents.get(agent);
            let found = match kernels::kernels(executable, handle, *index, target) {
                Ok(found) => found,
                Err(error) => {
                    diagnostics::lost(format_args!(
                        "the trace does not name the kernels of executable {:#x}: {error}",
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

    /// Begins to poll the queues in `scheduled`. Empties it and keeps its capacity.
    pub fn add_scheduled(&mut self, scheduled: &mut Vec<u32>) {
        self.polled_queues.extend_from_slice(scheduled);
        scheduled.clear();
    }

    /// Processes the polled queues, the API calls, the markers and the copies. `destroyed`: signals that the program
    /// has destroyed, and when. Their kernels were complete by then.
    pub fn poll(&mut self, destroyed: &mut Vec<(SignalHandle, u64)>) -> PollResult {
        let mut result = PollResult::default();
        self.destroyed.append(destroyed);
        let mut polled_queues = std::mem::take(&mut self.polled_queues);
        polled_queues.retain(|&id| {
            // The queue was destroyed after it was scheduled.
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
        self.polled_queues = polled_queues;
        // The entries of those kernels were processed above.
        for (signal, time) in self.destroyed.drain(..) {
            if self
                .program_signal_times
                .get(&signal)
                .is_some_and(|known| known.submit < time)
            {
                self.program_signal_times.remove(&signal);
            }
        }
        result.recorded += self.record_without_hsa();
        let Self {
            copies,
            streams,
            file,
            agents,
            ..
        } = self;
        result.recorded += copies.poll(file, streams, agents, self.frequency);
        result.busy += usize::from(copies.is_busy());
        watched_signals::give_back();
        if result.recorded > 0 {
            self.file.publish();
        }
        result
    }

    /// Processes what needs no function of HSA: CUDA's activities, the API calls and the markers. Returns the number of
    /// records.
    pub fn record_without_hsa(&mut self) -> usize {
        let mut output = Output {
            file: &mut self.file,
            agents: &mut self.agents,
            kernels: &mut self.kernels,
            streams: &mut self.streams,
            frequency: self.frequency,
            next_queue: &mut self.next_queue,
            next_dispatch: &mut self.next_dispatch,
            copies: &mut self.copies.recorded,
        };
        let mut recorded = self.cuda.record(&mut output);
        recorded += self.record_calls();
        recorded += self
            .markers
            .record(&mut self.streams, &mut self.agents, &mut self.file);
        recorded
    }

    /// Whether records of CUDA's kernels that were launched before `time` may be missing.
    pub fn cuda_is_missing(&mut self, time: u64) -> bool {
        self.cuda.has_missing(time)
    }

    /// See [`CudaRecords::report_missing`].
    pub fn report_missing_cuda(&mut self, time: u64) -> bool {
        self.cuda.report_missing(time, &mut self.file)
    }

    /// Refills the queue's pool.
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
            // The GPU may hold the signals of an empty pool for a long time, so the pool grows beyond its target.
            let more = if is_waiting {
                missing.max(BATCH)
            } else {
                missing
            };
            add_signals(queue, &mut self.unused_signals, more);
        }
    }

    /// Records the queue's complete dispatches. Returns the number of processed entries.
    fn record_completed(&mut self, id: u32, queue: &mut Queue) -> usize {
        let agent = self.agents.get(queue.agent);
        let (handle, index, agent_frequency) = (agent.handle, agent.index, agent.frequency);
        let frequency = self.frequency;
        let Self {
            file,
            kernels,
            program_signal_times,
            next_dispatch,
            streams,
            ..
        } = self;
        queue.completion_side.poll(&HsaSignals, |entries| {
            let observed = clock::now();
            for entry in entries {
                let (raw, time) = reported_times(handle, entry);
                if entry.program_signal.0 != 0 {
                    update_signal_time(program_signal_times, entry, time);
                }
                if !entry.dispatch {
                    continue;
                }
                streams.write_up_to(entry.stream, file);
                let mut record = dispatch_record(kernels, entry, *next_dispatch);
                *next_dispatch += 1;
                record.queue = id.into();
                record.agent = index.into();
                record.observed = observed.into();
                let recorded = raw.map_or(RecordedTime::NONE, |raw| {
                    ReportedTimes {
                        translated: time,
                        raw,
                        window: entry.submit..=observed,
                        frequency,
                        agent_frequency,
                    }
                    .select()
                });
                record.start = recorded.time.start.into();
                record.end = recorded.time.end.into();
                record.head.flags = (record.head.flags.get() | recorded.flags).into();
                file.append(record, Count::DroppedDispatches);
            }
        })
    }

    /// Records dispatches that were not observed to be complete, and releases their watches.
    fn record_unfinished(&mut self, id: u32, queue: &Queue, entries: &[Entry]) {
        let observed = clock::now();
        let watches = entries.iter().filter_map(|entry| entry.watch);
        watches.for_each(watched_signals::release);
        for entry in entries.iter().filter(|entry| entry.dispatch) {
            self.streams.write_up_to(entry.stream, &mut self.file);
            let mut record = dispatch_record(&self.kernels, entry, self.next_dispatch);
            self.next_dispatch += 1;
            record.queue = id.into();
            record.agent = self.agents.get(queue.agent).index.into();
            record.observed = observed.into();
            let flags = record.head.flags.get() | flag::UNFINISHED | flag::CLOCK_NONE;
            record.head.flags = flags.into();
            self.file.append(record, Count::DroppedDispatches);
        }
    }

    fn record_calls(&mut self) -> usize {
        let mut recorded = 0;
        let Self { streams, file, .. } = self;
        let dropped = calls::collect(&mut |call: CallRecord| {
            streams.write_up_to(call.stream, file);
            let mut record = format::Call::new(call.id, 0);
            record.start = call.start.into();
            record.end = call.end.into();
            record.thread = call.thread.into();
            record.name = file.static_text(call.function).into();
            record.status = call.status.into();
            record.stream = call.stream.into();
            file.append(record, Count::DroppedCalls);
            recorded += 1;
        });
        if dropped > 0 {
            file.add_to_counter(Count::DroppedCalls, dropped);
        }
        recorded
    }

    /// The trace is about to end: records the ranges that have not ended.
    pub fn end_markers(&mut self) {
        self.markers
            .end(&mut self.streams, &mut self.agents, &mut self.file);
    }

    /// Whether kernels were loaded.
    pub fn has_kernels(&self) -> bool {
        !self.kernels.is_empty()
    }

    /// Whether dispatches or copies are in flight.
    pub fn is_busy(&mut self) -> bool {
        let busy = |queue: &mut Queue| !queue.completion_side.is_empty();
        self.queues.values_mut().any(busy) || self.copies.is_busy()
    }

    /// Stops using HSA and closes the file. Records dispatches and copies in flight as unfinished. The next call does
    /// the same for later ones.
    pub fn stop(&mut self) {
        let ids: Vec<u32> = self.queues.keys().copied().collect();
        for id in ids {
            let Some(mut queue) = self.queues.remove(&id) else {
                continue;
            };
            queue.shared.stopped.store(true, Ordering::SeqCst);
            let unfinished = queue.completion_side.take_unfinished();
            self.record_unfinished(id, &queue, &unfinished);
            self.record_unknown_packets(&queue.shared);
            self.queues.insert(id, queue);
        }
        self.record_without_hsa();
        self.copies
            .stop(&mut self.file, &mut self.streams, &self.agents);
        self.file.close();
    }

    /// HSA was shut down, which has destroyed its queues and signals.
    pub fn release(&mut self) {
        self.stop();
        self.queues.clear();
        for (address, _) in self.queue_ids.drain() {
            packet_origins::remove(address);
        }
        self.polled_queues.clear();
        self.agents.release();
        self.program_signal_times.clear();
        self.unused_signals.clear();
    }

    /// Destroys the unused signals.
    pub fn destroy_unused_signals(&mut self) {
        for signal in std::mem::take(&mut self.unused_signals) {
            HsaSignals.destroy(signal);
        }
    }

    /// The times, in ticks of the system clock, of the kernel in whose packet devprof replaced the program's completion
    /// signal `signal`.
    pub fn program_signal_time(&self, signal: SignalHandle) -> Option<DispatchTime> {
        self.program_signal_times.get(&signal)?.time
    }
}

/// A complete dispatch's times: ticks of the agent's clock, and HSA's translation to the system clock.
fn reported_times(
    agent: AgentHandle,
    entry: &Entry,
) -> (Option<DispatchTime>, Option<DispatchTime>) {
    if entry.signal.0 != 0 {
        let raw = signals::raw_time(entry.signal);
        return (Some(raw), signals::dispatch_time(agent, entry.signal));
    }
    let raw = entry.watched.and_then(|watched| watched.time);
    (raw, raw.and_then(|raw| signals::system_time(agent, raw)))
}

/// Adds `count` signals to the queue's pool.
fn add_signals(queue: &mut Queue, unused_signals: &mut Vec<SignalHandle>, count: usize) {
    for _ in 0..count {
        match unused_signals.pop().or_else(|| HsaSignals.create()) {
            Some(signal) => queue.completion_side.add_signal(signal),
            None => {
                if queue.completion_side.free_count() == 0 {
                    diagnostics::lost(
                        "HSA cannot create more signals: dispatches are recorded without times until earlier dispatches complete",
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

/// Updates the times that `hsa_amd_profiling_get_dispatch_time` returns for the program's signal: those of the packet
/// that was submitted last.
fn update_signal_time(
    program_signal_times: &mut HashMap<SignalHandle, SignalTime>,
    entry: &Entry,
    time: Option<DispatchTime>,
) {
    let new = SignalTime {
        submit: entry.submit,
        // A packet without devprof's signal completes the program's signal itself.
        time: time.filter(|_| entry.dispatch && entry.signal.0 != 0),
    };
    let known = program_signal_times
        .entry(entry.program_signal)
        .or_insert(new);
    if known.submit <= new.submit {
        *known = new;
    }
}

/// A dispatch's record, without the fields that are known only after its completion.
fn dispatch_record(kernels: &Kernels, entry: &Entry, id: u64) -> Dispatch {
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
    record.stream = entry.stream.into();
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
