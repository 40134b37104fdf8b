//! Collects the times of one file by id, and then adds them to the rows by name: a name can follow the records that use
//! it, and several kernels can have the same name.

use super::gaps::{Gaps, Pauses, Span, Timeline};
use super::groups::{Agent, Group, Grouping, Ids, Process};
use super::part::Part;
use super::rows::{Numbers, QueueGaps, Subject, Totals};
use super::series::Series;
use crate::trace_reader::{Record, Trace, Untimed, direction};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use tracefile::format::{Dispatch, Marker, MemoryCopy, NO_AGENT, agent, flag, marker};

/// Source and destination.
type Agents = (u32, u32);

/// By ids. The standard library's hashes take more time than the rest of a record's statistics.
type ById<K, V> = HashMap<K, V, RandomState>;

/// The times of one file.
#[derive(Default)]
pub struct Collector {
    parts: Vec<Part>,
    grouping: Grouping,
    kernels: ById<(u32, Ids), Series>,
    /// By the id of the function's name.
    calls: ById<(u32, Ids), Series>,
    copies: ById<(&'static str, Agents, Ids), Numbers>,
    /// By the id of the message and the type.
    markers: ById<(u32, &'static str, Ids), Series>,
    /// By agent and queue.
    queues: ById<(u32, u32), Timeline>,
    gpus: ById<u32, Timeline>,
    pauses: Pauses,
    /// Records without times.
    pub untimed: ById<Part, u64>,
}

impl Collector {
    pub fn new(parts: &[Part], grouping: Grouping) -> Collector {
        Collector {
            parts: parts.to_vec(),
            grouping,
            ..Collector::default()
        }
    }

    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    pub fn record(&mut self, record: &Record, trace: &Trace) {
        match record {
            Record::Dispatch(dispatch) => {
                // HIP's blit kernels are in the table of copies.
                if self.has(Part::Kernels) || self.has(Part::Copies) {
                    self.kernel(dispatch, trace);
                }
                if self.has(Part::Gaps) {
                    self.span(dispatch, trace);
                }
            }
            Record::Call(call) if self.has(Part::Api) => {
                let (start, end) = (call.start.get(), call.end.get());
                if start > end {
                    return self.count_untimed(Part::Api);
                }
                let ids = [0, 0, call.stream.get(), call.thread.get()];
                let ids = Ids::of(self.grouping, ids);
                let series = self.calls.entry((call.name.get(), ids)).or_default();
                series.add(trace.ns(end) - trace.ns(start));
            }
            Record::Copy(copy) if self.has(Part::Copies) => self.copy(copy, trace),
            Record::Marker(marker) if self.has(Part::Markers) => self.marker(marker, trace),
            Record::Recording(recording) => {
                let time = trace.ns(recording.time.get());
                self.pauses.switch(time, recording.is_on.get() != 0);
            }
            _ => {}
        }
    }

    fn kernel(&mut self, dispatch: &Dispatch, trace: &Trace) {
        let Ok(duration) = trace.duration(dispatch) else {
            return;
        };
        let ids = [
            dispatch.agent,
            dispatch.queue,
            dispatch.stream,
            dispatch.thread,
        ];
        let ids = Ids::of(self.grouping, ids.map(u32::from));
        let series = self.kernels.entry((dispatch.kernel.get(), ids));
        series.or_default().add(duration);
    }

    fn span(&mut self, dispatch: &Dispatch, trace: &Trace) {
        let submit = trace.ns(dispatch.submit.get());
        let span = |start, end, is_exact| Span {
            submit,
            start,
            end,
            queue: dispatch.queue.get(),
            kernel: dispatch.kernel.get(),
            is_exact,
        };
        let is_of_agent = dispatch.head.flags.get() & flag::CLOCK == flag::CLOCK_AGENT;
        let span = match trace.times(dispatch) {
            Ok((start, end)) if !is_of_agent => span(start, end, true),
            Err(Untimed::Unfinished) => span(submit, u64::MAX, false),
            _ => match trace.ns(dispatch.observed.get()) {
                0 => span(submit, u64::MAX, false),
                observed => span(submit, observed, false),
            },
        };
        let agent = dispatch.agent.get();
        let queue = self.queues.entry((agent, dispatch.queue.get()));
        queue.or_default().add(span, &self.pauses);
        let gpu = self.gpus.entry(agent);
        gpu.or_default().add(span, &self.pauses);
    }

    fn copy(&mut self, copy: &MemoryCopy, trace: &Trace) {
        let Ok((start, end)) = trace.copy_times(copy) else {
            return self.count_untimed(Part::Copies);
        };
        let agents = (copy.source.get(), copy.destination.get());
        let ids = [0, 0, copy.stream.get(), copy.thread.get()];
        let key = (direction(copy), agents, Ids::of(self.grouping, ids));
        let numbers = self.copies.entry(key).or_default();
        numbers.series.add(end - start);
        numbers.bytes += u128::from(copy.size.get());
    }

    fn marker(&mut self, marker: &Marker, trace: &Trace) {
        let (start, end) = (marker.start.get(), marker.end.get());
        if marker.head.flags.get() & flag::UNFINISHED != 0 || start > end {
            return self.count_untimed(Part::Markers);
        }
        let what = match marker.what.get() {
            marker::MARK => "mark",
            marker::RANGE => "range",
            _ => "process range",
        };
        let ids = Ids::of(self.grouping, [0, 0, 0, marker.thread.get()]);
        let series = self.markers.entry((marker.text.get(), what, ids));
        let duration = trace.ns(end) - trace.ns(start);
        series.or_default().add(duration);
    }

    fn count_untimed(&mut self, part: Part) {
        *self.untimed.entry(part).or_default() += 1;
    }

    /// Adds the times to the rows. `number` is the position of the file on the command line.
    pub fn finish(self, number: usize, file: &Path, trace: &mut Trace, totals: &mut Totals) {
        let process = Rc::new(Process::of(number, file, trace));
        totals.processes.push(process.clone());
        for (part, count) in self.untimed {
            *totals.untimed.entry(part).or_default() += count;
        }
        let gpus = trace.tables.agents.iter();
        let gpus = gpus.filter(|(_, record)| record.what.get() == agent::GPU);
        totals
            .gpus
            .extend(gpus.map(|(&id, _)| Agent::of(id, trace)));

        let group = |ids, trace: &Trace| Group::new(self.grouping, ids, &process, trace);
        // Copies have no queue.
        let of_copies = |ids, trace: &Trace| Group {
            agent: None,
            ..group(ids, trace)
        };
        let is_requested = |part| self.parts.contains(&part);
        for ((kernel, ids), series) in self.kernels {
            let is_blit = trace.is_blit(kernel);
            if is_blit && is_requested(Part::Copies) {
                let agent = self.grouping.agent.then(|| Agent::of(ids.agent, trace));
                let subject = Subject {
                    is_blit,
                    destination: agent,
                    ..Subject::named(trace.kernel(kernel))
                };
                let numbers = series.clone().into();
                totals.add(Part::Copies, of_copies(ids, trace), subject, numbers);
            }
            if is_requested(Part::Kernels) {
                let subject = Subject {
                    is_blit,
                    ..Subject::kernel(kernel, trace)
                };
                totals.add(Part::Kernels, group(ids, trace), subject, series.into());
            }
        }
        for ((name, ids), series) in self.calls {
            let name = trace.tables.text(name).unwrap_or("(unknown function)");
            let subject = Subject::named(name.into());
            totals.add(Part::Api, group(ids, trace), subject, series.into());
        }
        for ((direction, (source, destination), ids), numbers) in self.copies {
            let agent = |id| (id != NO_AGENT).then(|| Agent::of(id, trace));
            let subject = Subject {
                source: agent(source),
                destination: agent(destination),
                ..Subject::named(direction.into())
            };
            totals.add(Part::Copies, of_copies(ids, trace), subject, numbers);
        }
        for ((text, what, ids), series) in self.markers {
            let text = trace.tables.text(text).unwrap_or("(unknown text)");
            let subject = Subject {
                what: Some(what),
                ..Subject::named(text.into())
            };
            totals.add(Part::Markers, group(ids, trace), subject, series.into());
        }
        for ((agent, queue), timeline) in self.queues {
            let ids = Ids {
                agent,
                queue,
                ..Ids::default()
            };
            let group = Group::new(self.grouping.of_gaps(), ids, &process, trace);
            let gaps = timeline.finish(&self.pauses);
            totals.queues.push(named(group, gaps, trace));
        }
        for (agent, timeline) in self.gpus {
            let ids = Ids {
                agent,
                ..Ids::default()
            };
            let group = Group::new(self.grouping.of_gpus(), ids, &process, trace);
            let gaps = timeline.finish(&self.pauses);
            totals.gpu_gaps.push(named(group, gaps, trace));
        }
    }
}

/// The gaps by kernels. Kernels with the same name in the same code object are added up.
fn named(group: Group, gaps: Gaps, trace: &mut Trace) -> QueueGaps {
    let mut after: HashMap<Subject, Series> = HashMap::new();
    let mut all = Series::default();
    for (kernel, series) in gaps.after {
        all.merge(series.clone());
        let kernel = Subject::kernel(kernel, trace);
        after.entry(kernel).or_default().merge(series);
    }
    QueueGaps {
        group,
        all: all.statistics(),
        after,
        busy: gaps.busy,
        uncounted: gaps.uncounted,
        late: gaps.late,
        has_kernels: gaps.has_kernels,
    }
}
