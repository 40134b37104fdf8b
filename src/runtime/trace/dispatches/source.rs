//! Processes complete dispatches: reads and checks their times, records them and returns their signals to the pool.

use super::capture::{self, Capture, Shared};
use super::doorbells::{self, Doorbells};
use super::in_flight::{Complete, Entry, channel};
use super::kernel_addresses::KernelAddresses;
use super::packet_origins;
use super::queue::{HsaSignals, Queue};
use super::signal_times::SignalTimes;
use crate::amd::kernels;
use crate::amd::traced::gpus;
use crate::amd::{cooperative, intercept, signals};
use crate::gpu::traced::AgentKey;
use crate::support::diagnostics;
use crate::trace::devices;
use crate::trace::hsa::{self, watched_signals};
use crate::trace::recorder::times::{RecordedTime, ReportedTimes};
use crate::trace::recorder::{Recorder, clock};
use crate::trace::session::{Delivery, Mark, Progress, Runtime, Source, recording};
use hsa_abi::{AgentHandle, DispatchTime, ExecutableHandle, SignalHandle};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracefile::format::{Count, Dispatch, Record, flag};

#[derive(Default)]
pub struct Dispatches {
    kernels: KernelAddresses,
    /// Keyed by id.
    queues: HashMap<u32, Queue>,
    /// Ids of the queues that are polled.
    polled_queues: Vec<u32>,
    /// Keyed by the queue's address.
    queue_ids: HashMap<usize, u32>,
    signal_times: SignalTimes,
    /// Signals that are in no queue's pool and in no packet.
    unused_signals: Vec<SignalHandle>,
}

impl Source for Dispatches {
    fn poll(&mut self, to: &mut Recorder) -> Progress {
        let mut progress = Progress::default();
        if self.runtime() != Runtime::Usable {
            return progress;
        }
        capture::take_scheduled(&mut self.polled_queues);
        self.signal_times.begin_poll();
        let mut polled_queues = std::mem::take(&mut self.polled_queues);
        polled_queues.retain(|id| {
            // The queue was destroyed after it was scheduled.
            let Some(queue) = self.queues.get_mut(id) else {
                return false;
            };
            let recorded = record_completed(*id, queue, &self.kernels, &mut self.signal_times, to);
            queue.replenish_pool(&mut self.unused_signals);
            progress.polled += 1;
            progress.recorded += recorded;
            progress.busy += usize::from(!queue.completion_side.is_empty());
            queue.stays_scheduled(recorded)
        });
        self.polled_queues = polled_queues;
        self.signal_times.end_poll();
        watched_signals::give_back();
        progress
    }

    /// Stops using HSA.
    fn stop(&mut self, to: &mut Recorder) {
        for (id, queue) in &mut self.queues {
            queue.shared.stopped.store(true, Ordering::SeqCst);
            let unfinished = queue.completion_side.take_unfinished();
            record_unfinished(*id, queue, &self.kernels, &unfinished, to);
            record_unknown_packets(&queue.shared, to);
        }
        if hsa::stop() {
            self.report_missed();
        }
    }

    fn runtime(&self) -> Runtime {
        hsa::runtime()
    }

    fn has_work(&self) -> bool {
        capture::has_scheduled()
    }

    fn is_busy(&mut self) -> bool {
        let mut queues = self.queues.values_mut();
        queues.any(|queue| !queue.completion_side.is_empty())
    }

    /// Creates signals for queues that were created while the recording was stopped.
    fn switched(&mut self, on: bool) {
        if on && self.runtime() == Runtime::Usable {
            for queue in self.queues.values_mut() {
                queue.fill_pool(&mut self.unused_signals);
            }
        }
    }

    fn mark(&self, mark: &mut Mark) {
        let queues = self.queues.iter();
        mark.queues
            .extend(queues.map(|(&id, queue)| (id, queue.completion_side.pushed())));
    }

    fn has_recorded(&self, mark: &Mark) -> bool {
        self.runtime() != Runtime::Paused
            && mark.queues.iter().all(|&(id, count)| {
                let queue = self.queues.get(&id);
                queue.is_none_or(|queue| queue.completion_side.has_processed(count))
            })
    }

    fn delivery(&self) -> Option<&'static dyn Delivery> {
        Some(&Doorbells)
    }
}

impl Dispatches {
    /// Starts the thread that submits withheld packets.
    pub fn start() -> io::Result<Dispatches> {
        doorbells::start()?;
        watched_signals::start();
        Ok(Dispatches::default())
    }

    /// Adds the new queue of `size` packets at `address`. `None`: its agent is not a GPU.
    pub fn add_queue(
        &mut self,
        handle: AgentHandle,
        address: usize,
        size: u32,
        to: &mut Recorder,
    ) -> Option<Capture> {
        let agent = devices::gpu(AgentKey::Hsa(handle.0), to)?;
        let (launch_side, completion_side) = channel();
        let shared = Arc::<Shared>::default();
        let mut queue = Queue::new(completion_side, shared.clone(), agent, size as usize);
        if recording::is_on() {
            queue.fill_pool(&mut self.unused_signals);
        }
        let id = to.add_queue(to.agents.get(agent).index, size);
        to.file.publish();
        self.queues.insert(id, queue);
        self.queue_ids.insert(address, id);
        let origins = packet_origins::add(address, size);
        Some(Capture::new(launch_side, shared, id, origins))
    }

    /// Removes a destroyed queue, whose signals the GPU does not access any more.
    pub fn remove_queue(&mut self, address: usize, capture: Capture, to: &mut Recorder) {
        let Some(id) = self.queue_ids.remove(&address) else {
            return;
        };
        packet_origins::remove(address);
        let Some(mut queue) = self.queues.remove(&id) else {
            return;
        };
        self.polled_queues.retain(|&polled| polled != id);
        record_completed(id, &mut queue, &self.kernels, &mut self.signal_times, to);
        let unfinished = queue.completion_side.take_unfinished();
        record_unfinished(id, &queue, &self.kernels, &unfinished, to);
        record_unknown_packets(&queue.shared, to);
        to.file.publish();
        let pooled = queue
            .completion_side
            .into_signals(capture.into_launch_side());
        let in_flight = unfinished.iter().map(|entry| entry.signal);
        for signal in in_flight.chain(pooled).filter(|signal| signal.0 != 0) {
            signals::reset(signal);
            self.unused_signals.push(signal);
        }
        // The caller is in an HSA function, so HSA is initialized even after the end of the trace.
        if self.runtime() == Runtime::Stopped {
            self.destroy_unused_signals();
        }
    }

    /// Records the kernels of an executable that was frozen.
    pub fn add_kernels(&mut self, executable: ExecutableHandle, to: &mut Recorder) {
        for handle in gpus() {
            let Some(agent) = devices::gpu(AgentKey::Hsa(handle.0), to) else {
                continue;
            };
            let agent = to.agents.get(agent);
            let found = match kernels::kernels(executable, handle, agent.index, &agent.target) {
                Ok(found) => found,
                Err(error) => {
                    diagnostics::lost(format_args!(
                        "the trace does not name the kernels of executable {:#x}: {error}",
                        executable.0
                    ));
                    continue;
                }
            };
            self.kernels.add(
                found
                    .into_iter()
                    .map(|(object, kernel)| (object, to.add_kernel(&kernel, object))),
            );
        }
        to.file.publish();
    }

    /// Reports dispatches that are missing from the trace.
    fn report_missed(&self) {
        cooperative::report();
        if intercept::missed_queues() {
            diagnostics::lost(
                "the trace has no dispatches: the program uses a queue that was not created by a function that devprof hooks; this HSA runtime may be newer than devprof",
            );
        }
    }

    /// HSA may be shut down next.
    pub fn pause(&mut self) {
        self.report_missed();
        self.destroy_unused_signals();
        hsa::begin_shutdown();
    }

    /// HSA was shut down, which has destroyed its queues and signals.
    pub fn release(&mut self, to: &mut Recorder) {
        self.queues.clear();
        for (address, _) in self.queue_ids.drain() {
            packet_origins::remove(address);
        }
        self.polled_queues.clear();
        to.agents.forget_hsa();
        self.signal_times.clear();
        self.unused_signals.clear();
    }

    fn destroy_unused_signals(&mut self) {
        for signal in std::mem::take(&mut self.unused_signals) {
            signals::destroy(signal);
        }
    }

    /// See [`SignalTimes::get`].
    pub fn signal_time(&self, signal: SignalHandle) -> Option<DispatchTime> {
        self.signal_times.get(signal)
    }
}

/// Records and reports packets whose kernels are not in the trace.
fn record_unknown_packets(shared: &Shared, to: &mut Recorder) {
    let unknown = shared.unknown_packets.swap(0, Ordering::Relaxed);
    to.file.add_to_counter(Count::UnknownPackets, unknown);
    let jumps = shared.jumps.swap(0, Ordering::Relaxed);
    if jumps > 0 {
        diagnostics::lost(format_args!(
            "the trace does not have the kernels of {jumps} launches of graphs that the GPU reads from memory \
             (AQL_IB_JUMP packets)"
        ));
    }
}

/// Records the complete dispatches of the queue `id`. Returns the number of processed entries.
fn record_completed(
    id: u32,
    queue: &mut Queue,
    kernels: &KernelAddresses,
    signal_times: &mut SignalTimes,
    to: &mut Recorder,
) -> usize {
    let key = to.agents.key(queue.agent);
    let agent = to.agents.get(queue.agent);
    let (index, agent_frequency) = (agent.index, agent.frequency);
    let frequency = to.frequency;
    queue.completion_side.poll(&HsaSignals, |complete| {
        let observed = clock::now();
        for packet in complete {
            let entry = &packet.entry;
            let (raw, time) = reported_times(key, packet);
            if entry.program_signal.0 != 0 {
                signal_times.update(entry, time);
            }
            if !entry.dispatch {
                continue;
            }
            let recorded = raw.map_or(RecordedTime::NONE, |raw| {
                ReportedTimes {
                    translated: time.map(Into::into),
                    raw: raw.into(),
                    window: entry.submit..=observed,
                    frequency,
                    agent_frequency,
                }
                .select()
            });
            let mut record = dispatch_record(id, index, kernels, entry, recorded.flags);
            record.observed = observed.into();
            record.start = recorded.time.start.into();
            record.end = recorded.time.end.into();
            to.add_dispatch(record);
        }
    })
}

/// Records dispatches of the queue `id` that were not observed to be complete, and releases their watches.
fn record_unfinished(
    id: u32,
    queue: &Queue,
    kernels: &KernelAddresses,
    entries: &[Entry],
    to: &mut Recorder,
) {
    let observed = clock::now();
    let index = to.agents.get(queue.agent).index;
    let watches = entries.iter().filter_map(|entry| entry.watch);
    watches.for_each(watched_signals::release);
    for entry in entries.iter().filter(|entry| entry.dispatch) {
        let flags = flag::UNFINISHED | flag::CLOCK_NONE;
        let mut record = dispatch_record(id, index, kernels, entry, flags);
        record.observed = observed.into();
        to.add_dispatch(record);
    }
}

/// A complete dispatch's times: ticks of the agent's clock, and HSA's translation to the system clock.
fn reported_times(
    agent: AgentKey,
    packet: &Complete,
) -> (Option<DispatchTime>, Option<DispatchTime>) {
    let AgentKey::Hsa(handle) = agent else {
        return (None, None);
    };
    let agent = AgentHandle(handle);
    let signal = packet.entry.signal;
    if signal.0 != 0 {
        let raw = signals::raw_time(signal);
        return (Some(raw), signals::dispatch_time(agent, signal));
    }
    let raw = packet.watched.and_then(|watched| watched.time);
    (raw, raw.and_then(|raw| signals::system_time(agent, raw)))
}

/// A dispatch's record, without the fields that are known only after its completion.
fn dispatch_record(
    queue: u32,
    agent: u32,
    kernels: &KernelAddresses,
    entry: &Entry,
    mut flags: u16,
) -> Dispatch {
    for (set, bit) in [
        (entry.correlation == 0, flag::NO_CALL),
        (entry.vendor, flag::VENDOR),
    ] {
        flags |= if set { bit } else { 0 };
    }
    let mut record = Dispatch::new(0, flags);
    record.queue = queue.into();
    record.agent = agent.into();
    record.correlation = entry.correlation.into();
    record.submit = entry.submit.into();
    record.thread = entry.thread.into();
    record.stream = entry.stream.into();
    record.kernel = kernels.find(entry.kernel_object, entry.epoch).into();
    record.grid = entry.grid.map(Into::into);
    record.workgroup = entry.workgroup.map(Into::into);
    record.lds = entry.lds.into();
    record.scratch = entry.scratch.into();
    record
}
