//! Processes copies and fills: waits for their completion, selects their times and writes their records.

use super::agents::{Agent, Agents};
use super::clock;
use super::copies::{self, Copy};
use super::dispatch_clock::{RecordedTime, ReportedTimes};
use super::file::TraceFile;
use super::stream_records::StreamRecords;
use super::watched_signals::{self, Completed};
use crate::gpu::observers::Owner;
use hsa_abi::{AgentHandle, DispatchTime};
use tracefile::format::{Count, MemoryCopy, NO_AGENT, Record, direction, flag};

/// How many copies in flight are polled at a time.
const WINDOW: usize = 256;

/// A copy in flight. The agents are numbers for [`Agents::get`]; `None`: unknown.
#[derive(Clone, Copy)]
struct Pending {
    copy: Copy,
    source: Option<usize>,
    destination: Option<usize>,
}

/// The copies in flight.
#[derive(Default)]
pub struct CopyRecords {
    pending: Vec<Pending>,
    /// The number of recorded copies.
    pub recorded: u64,
}

/// How a copy ended.
enum End {
    /// It was complete when its function returned.
    Returned,
    Completed(Completed),
    /// Its completion cannot be observed.
    Unwatched,
    Unfinished,
}

impl CopyRecords {
    /// Whether copies are in flight.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the copies that were submitted before `time`, and collected, are recorded.
    pub fn are_recorded_until(&self, time: u64) -> bool {
        self.pending
            .iter()
            .all(|pending| pending.copy.submit >= time)
    }

    /// Records the copies that are complete. Returns their number.
    pub fn poll(
        &mut self,
        file: &mut TraceFile,
        streams: &mut StreamRecords,
        agents: &mut Agents,
        frequency: u64,
    ) -> usize {
        let pending = &mut self.pending;
        let dropped = copies::collect(&mut |copy| {
            let mut number = |owner| match owner {
                Owner::Agent(agent) => agents.find(AgentHandle(agent.hsa_handle()), file),
                Owner::Host | Owner::Unknown => None,
            };
            let source = number(copy.call.source);
            let destination = number(copy.call.destination);
            pending.push(Pending {
                copy,
                source,
                destination,
            });
        });
        count_dropped(file, dropped);
        let before = self.recorded;
        let mut polled = 0;
        self.pending.retain(|pending| {
            let end = match pending.copy.watch {
                None if pending.copy.call.completion.is_none() => End::Returned,
                None => End::Unwatched,
                Some(_) if polled == WINDOW => return true,
                Some(watch) => match watched_signals::poll(watch) {
                    Some(completed) => End::Completed(completed),
                    None => {
                        polled += 1;
                        return true;
                    }
                },
            };
            self.recorded += 1;
            streams.write_up_to(pending.copy.stream, file);
            write(pending, end, self.recorded, file, agents, frequency);
            false
        });
        if polled == WINDOW {
            // The next poll begins with those that were not polled.
            self.pending.rotate_left(WINDOW);
        }
        (self.recorded - before) as usize
    }

    /// Records the copies in flight as unfinished.
    pub fn stop(&mut self, file: &mut TraceFile, streams: &mut StreamRecords, agents: &Agents) {
        copies::stop();
        // HSA must not be used any more, so new agents are unknown.
        let known = |owner| match owner {
            Owner::Agent(agent) => agents.known(AgentHandle(agent.hsa_handle())),
            Owner::Host | Owner::Unknown => None,
        };
        let dropped = copies::collect(&mut |copy| {
            self.pending.push(Pending {
                copy,
                source: known(copy.call.source),
                destination: known(copy.call.destination),
            });
        });
        count_dropped(file, dropped);
        for pending in self.pending.drain(..) {
            let end = match pending.copy.call.completion {
                None => End::Returned,
                Some(_) => End::Unfinished,
            };
            pending
                .copy
                .watch
                .into_iter()
                .for_each(watched_signals::release);
            self.recorded += 1;
            streams.write_up_to(pending.copy.stream, file);
            write(&pending, end, self.recorded, file, agents, 0);
        }
    }
}

fn count_dropped(file: &mut TraceFile, dropped: u64) {
    if dropped > 0 {
        file.add_to_counter(Count::DroppedCopies, dropped);
    }
}

/// Writes the record of a copy.
fn write(
    pending: &Pending,
    end: End,
    id: u64,
    file: &mut TraceFile,
    agents: &Agents,
    frequency: u64,
) {
    let Pending { copy, .. } = pending;
    let source = pending.source.map(|number| agents.get(number));
    let destination = pending.destination.map(|number| agents.get(number));
    let mut observed = clock::now();
    let recorded = match end {
        End::Returned => {
            observed = copy.returned;
            RecordedTime {
                time: DispatchTime {
                    start: copy.submit,
                    end: copy.returned,
                },
                flags: flag::CLOCK_SYSTEM,
            }
        }
        End::Completed(completed) => {
            let gpu = [source, destination]
                .into_iter()
                .flatten()
                .find(|agent| agent.is_gpu);
            ReportedTimes {
                translated: completed.time,
                // Times of a copy by the host are of the system clock.
                raw: gpu.map_or(DispatchTime::default(), |_| completed.raw),
                window: copy.submit..=observed,
                frequency,
                agent_frequency: gpu.map_or(0, |agent| agent.frequency),
            }
            .select()
        }
        End::Unwatched => RecordedTime::NONE,
        End::Unfinished => RecordedTime {
            flags: flag::CLOCK_NONE | flag::UNFINISHED,
            ..RecordedTime::NONE
        },
    };
    let no_call = if copy.correlation == 0 {
        flag::NO_CALL
    } else {
        0
    };
    let index = |agent: Option<&Agent>| agent.map_or(NO_AGENT, |agent| agent.index);
    let mut record = MemoryCopy::new(id, recorded.flags | no_call);
    record.correlation = copy.correlation.into();
    record.submit = copy.submit.into();
    record.start = recorded.time.start.into();
    record.end = recorded.time.end.into();
    record.observed = observed.into();
    record.size = copy.call.bytes.into();
    record.source = index(source).into();
    record.destination = index(destination).into();
    record.thread = copy.thread.into();
    record.stream = copy.stream.into();
    record.direction = match copy.call.is_fill {
        true => direction::FILL,
        false => direction_of(
            is_device(copy.call.source, source),
            is_device(copy.call.destination, destination),
        ),
    }
    .into();
    record.engine = copy.call.engine.into();
    record.function = file.text(copy.call.function).into();
    file.append(record, Count::DroppedCopies);
}

/// Whether memory is a GPU's; `None`: unknown.
fn is_device(owner: Owner, agent: Option<&Agent>) -> Option<bool> {
    match owner {
        Owner::Host => Some(false),
        _ => agent.map(|agent| agent.is_gpu),
    }
}

fn direction_of(from_device: Option<bool>, to_device: Option<bool>) -> u32 {
    match (from_device, to_device) {
        (Some(false), Some(false)) => direction::HOST_TO_HOST,
        (Some(false), Some(true)) => direction::HOST_TO_DEVICE,
        (Some(true), Some(false)) => direction::DEVICE_TO_HOST,
        (Some(true), Some(true)) => direction::DEVICE_TO_DEVICE,
        _ => direction::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::runtime::AgentId;

    #[test]
    fn the_direction_is_that_of_the_agents() {
        let agent = |is_gpu| Agent {
            handle: AgentHandle(1),
            index: 0,
            frequency: 0,
            target: String::new(),
            is_gpu,
        };
        let (gpu, cpu) = (agent(true), agent(false));
        let named = Owner::Agent(AgentId::Hsa(1));
        let sides = [
            (is_device(named, Some(&gpu)), Some(true)),
            (is_device(named, Some(&cpu)), Some(false)),
            (is_device(Owner::Host, None), Some(false)),
            (is_device(named, None), None),
            (is_device(Owner::Unknown, None), None),
        ];
        assert!(sides.iter().all(|(side, expected)| side == expected));
        let (device, host) = (Some(true), Some(false));
        for (from, to, expected) in [
            (host, host, direction::HOST_TO_HOST),
            (host, device, direction::HOST_TO_DEVICE),
            (device, host, direction::DEVICE_TO_HOST),
            (device, device, direction::DEVICE_TO_DEVICE),
            (None, device, direction::UNKNOWN),
            (host, None, direction::UNKNOWN),
        ] {
            assert_eq!(direction_of(from, to), expected);
        }
    }
}
