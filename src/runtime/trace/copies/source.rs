//! Processes copies and fills: waits for their completion, selects their times and writes their records.

use super::requests::{self, Copy, QUEUES};
use crate::gpu::observers::Owner;
use crate::gpu::traced::{Agent, AgentKey};
use crate::trace::devices;
use crate::trace::hsa;
use crate::trace::hsa::watched_signals::{self, Completed};
use crate::trace::recorder::times::{Interval, RecordedTime, ReportedTimes};
use crate::trace::recorder::{Recorder, clock};
use crate::trace::session::{Mark, Progress, Runtime, Source};
use tracefile::format::{Count, MemoryCopy, NO_AGENT, Record, direction, flag};

/// How many copies in flight are polled at a time.
const WINDOW: usize = 256;

/// A copy in flight. The agents are numbers in the recorder; `None`: unknown.
#[derive(Clone, Copy)]
struct Pending {
    copy: Copy,
    source: Option<usize>,
    destination: Option<usize>,
}

/// The copies in flight.
#[derive(Default)]
pub struct Copies {
    pending: Vec<Pending>,
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

impl Source for Copies {
    fn poll(&mut self, to: &mut Recorder) -> Progress {
        if self.runtime() != Runtime::Usable {
            return Progress::default();
        }
        self.collect(to, devices::number);
        let mut recorded = 0;
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
            recorded += 1;
            record(pending, end, to);
            false
        });
        if polled == WINDOW {
            // The next poll begins with those that were not polled.
            self.pending.rotate_left(WINDOW);
        }
        watched_signals::give_back();
        Progress {
            recorded,
            busy: usize::from(self.is_busy()),
            polled: 0,
        }
    }

    fn stop(&mut self, to: &mut Recorder) {
        requests::stop();
        // HSA must not be used any more, so new agents are unknown.
        self.collect(to, |agent, to| to.agents.find(agent).flatten());
        for pending in self.pending.drain(..) {
            let end = match pending.copy.call.completion {
                None => End::Returned,
                Some(_) => End::Unfinished,
            };
            let watch = pending.copy.watch;
            watch.into_iter().for_each(watched_signals::release);
            record(&pending, end, to);
        }
    }

    fn runtime(&self) -> Runtime {
        hsa::runtime()
    }

    fn has_work(&self) -> bool {
        QUEUES.has_entries()
    }

    fn is_busy(&mut self) -> bool {
        !self.pending.is_empty()
    }

    fn has_recorded(&self, mark: &Mark) -> bool {
        let mut pending = self.pending.iter();
        pending.all(|pending| pending.copy.submit >= mark.time)
    }
}

impl Copies {
    /// Takes the copies that threads have begun. `number` returns the number of an agent in the recorder.
    fn collect(
        &mut self,
        to: &mut Recorder,
        number: impl Fn(AgentKey, &mut Recorder) -> Option<usize>,
    ) {
        let mut number = |owner| match owner {
            Owner::Agent(agent) => number(AgentKey::Hsa(agent.hsa_handle()), to),
            Owner::Host | Owner::Unknown => None,
        };
        let dropped = QUEUES.collect(|(), copy: Option<Copy>| {
            self.pending.extend(copy.map(|copy| Pending {
                copy,
                source: number(copy.call.source),
                destination: number(copy.call.destination),
            }));
        });
        to.file.add_to_counter(Count::DroppedCopies, dropped);
    }
}

/// Records a copy.
fn record(pending: &Pending, end: End, to: &mut Recorder) {
    let Pending { copy, .. } = pending;
    let source = pending.source.map(|number| to.agents.get(number));
    let destination = pending.destination.map(|number| to.agents.get(number));
    let mut observed = clock::now();
    let recorded = match end {
        End::Returned => {
            observed = copy.returned;
            RecordedTime {
                time: Interval {
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
                translated: completed.time.map(Into::into),
                // Times of a copy by the host are of the system clock.
                raw: gpu.map_or(Interval::default(), |_| completed.raw.into()),
                window: copy.submit..=observed,
                frequency: to.frequency,
                agent_frequency: gpu.map_or(0, |agent| agent.frequency),
            }
            .select()
        }
        End::Unwatched => RecordedTime::NONE,
        End::Unfinished => RecordedTime::UNFINISHED,
    };
    let no_call = if copy.correlation == 0 {
        flag::NO_CALL
    } else {
        0
    };
    let index = |agent: Option<&Agent>| agent.map_or(NO_AGENT, |agent| agent.index);
    let mut record = MemoryCopy::new(0, recorded.flags | no_call);
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
    record.direction = if copy.call.is_fill {
        direction::FILL
    } else {
        direction_of(
            is_device(copy.call.source, source),
            is_device(copy.call.destination, destination),
        )
    }
    .into();
    record.engine = copy.call.engine.into();
    to.add_copy(record, copy.call.function);
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
            is_gpu,
            ..Agent::default()
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
