//! What becomes of a dispatch that is complete: its times are read and checked, its record is written, its signal goes
//! back to the pool. All of it under one lock, mostly on the completion thread.

use super::calls::{self, CallRecord};
use super::capture::{Capture, Shared};
use super::file::TraceFile;
use super::in_flight::{Completing, Entry, Signals, lane};
use super::kernel_index::Kernels;
use super::{clock, packet_origins};
use crate::gpu::hsa::kernels::{self, Kernel};
use crate::gpu::hsa::{gpus, signals};
use crate::support::diagnostics;
use crate::sys::env::host_name;
use hsa_abi::{AgentHandle, DispatchTime, ExecutableHandle, SignalHandle};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracefile::format::{self, Count, Dispatch, Record, flag};

/// Signals that a queue begins with, and by which it grows.
const BATCH: usize = 512;
/// Passes that find nothing in a queue before it is looked at no more.
const IDLE_PASSES: u32 = 40;
/// Ticks a second of the clock of an agent whose runtime does not tell: that of AMD's GPUs since gfx9. Believed only
/// where it puts a dispatch between its submission and its observation.
const USUAL_FREQUENCY: u64 = 100_000_000;
/// By how much translated times may miss the time between submission and observation and still be moved into it,
/// nanoseconds: clocks that drift apart between two synchronizations.
const DRIFT: u64 = 1_000_000;

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

struct Lane {
    completing: Completing,
    shared: Arc<Shared>,
    /// Place in `agents`.
    agent: usize,
    /// Signals to have in the pool.
    target: usize,
    dry_times: u64,
    /// The pool grows to the queue's size by itself, not further.
    size: usize,
    idle: u32,
}

/// What the hook of `hsa_amd_profiling_get_dispatch_time` answers for a signal of the program's whose kernel completed
/// one of ours.
#[derive(Clone, Copy)]
struct Forwarded {
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
    lanes: HashMap<u32, Lane>,
    /// Queues that are looked at.
    active: Vec<u32>,
    queues: HashMap<usize, u32>,
    next_queue: u32,
    next_dispatch: u64,
    forwarded: HashMap<SignalHandle, Forwarded>,
    /// Of the program's, with the times when they were destroyed. Kept from pass to pass for its memory.
    destroyed: Vec<(SignalHandle, u64)>,
    /// Signals that no queue has.
    store: Vec<SignalHandle>,
}

/// What a pass has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass {
    /// Dispatches and API calls recorded.
    pub recorded: usize,
    /// Queues with something in flight.
    pub busy: usize,
    /// Queues that were looked at.
    pub looked: usize,
}

impl Completer {
    pub fn new(file: TraceFile, frequency: u64) -> Completer {
        Completer {
            file,
            frequency,
            agents: Vec::new(),
            recorded_agents: HashSet::new(),
            kernels: Kernels::default(),
            lanes: HashMap::new(),
            active: Vec::new(),
            queues: HashMap::new(),
            next_queue: 1,
            next_dispatch: 1,
            forwarded: HashMap::new(),
            destroyed: Vec::new(),
            store: Vec::new(),
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
    pub fn queue_made(
        &mut self,
        handle: AgentHandle,
        queue: usize,
        size: u32,
        activate: fn(u32),
        wake: fn(),
    ) -> Option<Capture> {
        let agent = self.agent(handle)?;
        let id = self.next_queue;
        self.next_queue += 1;
        let (launching, completing) = lane();
        let shared = Arc::<Shared>::default();
        let mut lane = Lane {
            completing,
            shared: shared.clone(),
            agent,
            target: BATCH,
            dry_times: 0,
            size: size as usize,
            idle: 0,
        };
        fill(&mut lane, &mut self.store, BATCH);
        let mut record = format::Queue::new(id.into(), 0);
        record.created = clock::now().into();
        record.agent = self.agents[agent].index.into();
        record.size = size.into();
        self.file.append(record, Count::DroppedOthers);
        self.file.publish();
        self.lanes.insert(id, lane);
        self.queues.insert(queue, id);
        Some(Capture::new(
            launching,
            shared,
            id,
            packet_origins::add(queue, size),
            activate,
            wake,
        ))
    }

    /// A queue is gone: the GPU does not touch its signals any more.
    pub fn queue_gone(&mut self, queue: usize, capture: Capture) {
        let Some(id) = self.queues.remove(&queue) else {
            return;
        };
        packet_origins::remove(queue);
        let Some(mut lane) = self.lanes.remove(&id) else {
            return;
        };
        self.active.retain(|&active| active != id);
        self.harvest(id, &mut lane);
        let unfinished = lane.completing.abandon();
        self.record_unfinished(id, &lane, &unfinished);
        let unknown = lane.shared.unknown.load(Ordering::Relaxed);
        self.file.count(Count::UnknownPackets, unknown);
        self.file.publish();
        let signals = unfinished.iter().map(|entry| entry.signal);
        for signal in signals.chain(lane.completing.dissolve(capture.into_lane())) {
            if signal.0 != 0 {
                HsaSignals.reset(signal);
                self.store.push(signal);
            }
        }
    }

    /// The kernels of an executable that was frozen.
    pub fn frozen(&mut self, executable: ExecutableHandle) {
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
    pub fn pass(&mut self, destroyed: &mut Vec<(SignalHandle, u64)>) -> Pass {
        let mut pass = Pass::default();
        self.destroyed.append(destroyed);
        let mut active = std::mem::take(&mut self.active);
        active.retain(|&id| {
            // Queues go while they are on the list.
            let Some(mut lane) = self.lanes.remove(&id) else {
                return false;
            };
            pass.looked += 1;
            let recorded = self.harvest(id, &mut lane);
            pass.recorded += recorded;
            self.feed(&mut lane);
            let empty = lane.completing.is_empty();
            pass.busy += usize::from(!empty);
            lane.idle = if empty && recorded == 0 {
                lane.idle + 1
            } else {
                0
            };
            let mut stays = lane.idle < IDLE_PASSES;
            if !stays {
                lane.shared.poll_flag.unschedule();
                stays = !lane.completing.is_empty() && lane.shared.poll_flag.try_schedule();
                lane.idle = 0;
            }
            self.lanes.insert(id, lane);
            stays
        });
        self.active = active;
        // What those kernels left is there by now.
        for (signal, time) in self.destroyed.drain(..) {
            if self.forwarded.get(&signal).is_some_and(|f| f.submit < time) {
                self.forwarded.remove(&signal);
            }
        }
        pass.recorded += self.record_calls();
        if pass.recorded > 0 {
            self.file.publish();
        }
        pass
    }

    /// Keeps the queue's pool filled.
    fn feed(&mut self, lane: &mut Lane) {
        let dry_times = lane.shared.dry_times.load(Ordering::Relaxed);
        if dry_times != lane.dry_times {
            lane.dry_times = dry_times;
            lane.target = (2 * lane.target).min(lane.size.max(BATCH));
        }
        let dry = lane.shared.dry.load(Ordering::SeqCst);
        let spare = lane.completing.spare();
        if dry || spare < lane.target / 2 {
            let missing = lane.target.saturating_sub(spare);
            // Signals may be out on the GPU for long: a dry pool grows however many there are.
            let more = if dry { missing.max(BATCH) } else { missing };
            fill(lane, &mut self.store, more);
        }
    }

    fn harvest(&mut self, id: u32, lane: &mut Lane) -> usize {
        let agent = &self.agents[lane.agent];
        let (handle, index, agent_frequency) = (agent.handle, agent.index, agent.frequency);
        let frequency = self.frequency;
        let Self {
            file,
            kernels,
            forwarded,
            next_dispatch,
            ..
        } = self;
        lane.completing.pass(&HsaSignals, |entries| {
            let observed = clock::now();
            for entry in entries {
                let time = (entry.signal.0 != 0)
                    .then(|| signals::dispatch_time(handle, entry.signal))
                    .flatten();
                if entry.program_signal.0 != 0 {
                    take_over(forwarded, entry, time);
                }
                if !entry.dispatch {
                    continue;
                }
                let mut record = dispatch(kernels, entry, *next_dispatch);
                *next_dispatch += 1;
                record.queue = id.into();
                record.agent = index.into();
                record.observed = observed.into();
                let clock = if entry.signal.0 == 0 {
                    Clock::NONE
                } else {
                    Clock {
                        translated: time,
                        raw: signals::raw_time(entry.signal),
                        window: entry.submit..=observed,
                        frequency,
                        agent_frequency,
                    }
                    .choose()
                };
                record.start = clock.time.start.into();
                record.end = clock.time.end.into();
                record.head.flags = (record.head.flags.get() | clock.flags).into();
                file.append(record, Count::DroppedDispatches);
            }
        })
    }

    fn record_unfinished(&mut self, id: u32, lane: &Lane, entries: &[Entry]) {
        let observed = clock::now();
        for entry in entries.iter().filter(|entry| entry.dispatch) {
            let mut record = dispatch(&self.kernels, entry, self.next_dispatch);
            self.next_dispatch += 1;
            record.queue = id.into();
            record.agent = self.agents[lane.agent].index.into();
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
        let busy = |lane: &mut Lane| !lane.completing.is_empty();
        self.lanes.values_mut().any(busy)
    }

    /// Ends the use of HSA: what is in flight is recorded as unfinished, and what is launched from now on, too, at the
    /// next call.
    pub fn stop(&mut self) {
        let ids: Vec<u32> = self.lanes.keys().copied().collect();
        for id in ids {
            let Some(mut lane) = self.lanes.remove(&id) else {
                continue;
            };
            lane.shared.stopped.store(true, Ordering::SeqCst);
            let unfinished = lane.completing.abandon();
            self.record_unfinished(id, &lane, &unfinished);
            let unknown = lane.shared.unknown.swap(0, Ordering::Relaxed);
            self.file.count(Count::UnknownPackets, unknown);
            self.lanes.insert(id, lane);
        }
        self.record_calls();
        self.file.close();
    }

    /// HSA has ended, and its queues and signals with it.
    pub fn release(&mut self) {
        self.stop();
        self.lanes.clear();
        for (queue, _) in self.queues.drain() {
            packet_origins::remove(queue);
        }
        self.active.clear();
        self.agents.clear();
        self.forwarded.clear();
        self.store.clear();
    }

    /// Gives HSA back the signals that no queue has.
    pub fn destroy_store(&mut self) {
        for signal in std::mem::take(&mut self.store) {
            HsaSignals.destroy(signal);
        }
    }

    /// The kernel's times for a signal of the program's whose kernel completed one of ours.
    pub fn forwarded(&self, signal: SignalHandle) -> Option<DispatchTime> {
        self.forwarded.get(&signal)?.time
    }
}

/// Gives the queue `count` signals more.
fn fill(lane: &mut Lane, store: &mut Vec<SignalHandle>, count: usize) {
    for _ in 0..count {
        match store.pop().or_else(|| HsaSignals.create()) {
            Some(signal) => lane.completing.give(signal),
            None => {
                if lane.completing.spare() == 0 {
                    diagnostics::lost(
                        "HSA makes no more signals: dispatches are recorded without their times until some are complete",
                    );
                    lane.shared.starved.store(true, Ordering::Release);
                }
                return;
            }
        }
    }
    lane.shared.starved.store(false, Ordering::Release);
}

/// Whose time the program's signal has.
fn take_over(
    forwarded: &mut HashMap<SignalHandle, Forwarded>,
    entry: &Entry,
    time: Option<DispatchTime>,
) {
    let new = Forwarded {
        submit: entry.submit,
        // Without a signal of ours the packet completed the program's itself.
        time: time.filter(|_| entry.dispatch && entry.signal.0 != 0),
    };
    let known = forwarded.entry(entry.program_signal).or_insert(new);
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

/// The times that a completed dispatch may have.
struct Clock {
    /// As HSA translates them to the system clock.
    translated: Option<DispatchTime>,
    /// The agent's ticks.
    raw: DispatchTime,
    /// From submission to observation, system clock.
    window: std::ops::RangeInclusive<u64>,
    frequency: u64,
    agent_frequency: u64,
}

/// Times and the flags that tell their clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chosen {
    time: DispatchTime,
    flags: u16,
}

impl Clock {
    const NONE: Chosen = Chosen {
        time: DispatchTime { start: 0, end: 0 },
        flags: flag::CLOCK_NONE,
    };

    fn holds(&self, time: DispatchTime) -> bool {
        time.start <= time.end
            && self.window.contains(&time.start)
            && self.window.contains(&time.end)
    }

    /// Moved into the window, if a little is enough.
    fn moved(&self, time: DispatchTime) -> Option<DispatchTime> {
        let length = time.end.checked_sub(time.start)?;
        let drift = u128::from(DRIFT) * u128::from(self.frequency) / 1_000_000_000;
        let latest = self.window.end().checked_sub(length)?;
        let start = time
            .start
            .clamp(*self.window.start(), latest.max(*self.window.start()));
        let moved = DispatchTime {
            start,
            end: start + length,
        };
        (u128::from(start.abs_diff(time.start)) <= drift && self.holds(moved)).then_some(moved)
    }

    /// The best times there are.
    fn choose(&self) -> Chosen {
        let scale = |ticks: u64| {
            let scaled = u128::from(ticks) * u128::from(self.frequency);
            scaled
                .checked_div(match self.agent_frequency {
                    0 => USUAL_FREQUENCY.into(),
                    frequency => frequency.into(),
                })
                .and_then(|scaled| u64::try_from(scaled).ok())
        };
        let scaled = scale(self.raw.start)
            .zip(scale(self.raw.end))
            .map(|(start, end)| DispatchTime { start, end });
        let candidates = [
            (self.translated, flag::CLOCK_SYSTEM),
            (scaled, flag::CLOCK_SCALED),
        ];
        for (time, flags) in candidates {
            if let Some(time) = time.filter(|&time| self.holds(time)) {
                return Chosen { time, flags };
            }
        }
        for (time, flags) in candidates {
            if let Some(time) = time.and_then(|time| self.moved(time)) {
                let flags = flags | flag::MOVED;
                return Chosen { time, flags };
            }
        }
        if self.raw.start != 0 && self.raw.start <= self.raw.end {
            return Chosen {
                time: self.raw,
                flags: flag::CLOCK_AGENT,
            };
        }
        Clock::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn time(start: u64, end: u64) -> DispatchTime {
        DispatchTime { start, end }
    }

    /// Submitted at 10 ms and seen complete at 20 ms, by a clock of nanoseconds; the agent's has a hundredth of that.
    fn chosen(translated: Option<DispatchTime>, raw: DispatchTime) -> (u64, u64, u16) {
        let clock = Clock {
            translated,
            raw,
            window: 10_000_000..=20_000_000,
            frequency: 1_000_000_000,
            agent_frequency: 10_000_000,
        };
        let Chosen { time, flags } = clock.choose();
        (time.start, time.end, flags)
    }

    #[test]
    fn times_are_believed_where_they_fit() {
        let inside = time(11_000_000, 12_000_000);
        let fits = (11_000_000, 12_000_000);
        let ticks = time(110_000, 120_000);
        let strange = time(7, 9);
        let cases = [
            (Some(inside), strange, (fits.0, fits.1, flag::CLOCK_SYSTEM)),
            // What ROCr answers where it has no clock counters.
            (
                Some(time(1 << 63, 1 << 63)),
                ticks,
                (fits.0, fits.1, flag::CLOCK_SCALED),
            ),
            (None, ticks, (fits.0, fits.1, flag::CLOCK_SCALED)),
            (Some(time(12, 11)), strange, (7, 9, flag::CLOCK_AGENT)),
            (None, time(9, 7), (0, 0, flag::CLOCK_NONE)),
            (None, time(0, 0), (0, 0, flag::CLOCK_NONE)),
            // A little early, a little late, as long as the window, too long for it.
            (
                Some(time(9_500_000, 11_000_000)),
                strange,
                (10_000_000, 11_500_000, flag::CLOCK_SYSTEM | flag::MOVED),
            ),
            (
                Some(time(19_000_000, 20_000_001)),
                strange,
                (18_999_999, 20_000_000, flag::CLOCK_SYSTEM | flag::MOVED),
            ),
            (
                Some(time(10_000_001, 20_000_001)),
                strange,
                (10_000_000, 20_000_000, flag::CLOCK_SYSTEM | flag::MOVED),
            ),
            (
                Some(time(10_000_001, 20_000_002)),
                strange,
                (7, 9, flag::CLOCK_AGENT),
            ),
            (
                Some(time(8_000_000, 8_500_000)),
                strange,
                (7, 9, flag::CLOCK_AGENT),
            ),
        ];
        for (translated, raw, expected) in cases {
            assert_eq!(chosen(translated, raw), expected, "{translated:?} {raw:?}");
        }
    }
}
