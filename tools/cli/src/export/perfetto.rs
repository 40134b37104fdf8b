//! Perfetto's protobuf format, which ui.perfetto.dev opens. Each GPU is shown as a process, and each of its queues as a
//! track with a counter of the dispatches in flight. Threads with API calls are tracks of the program's process. A flow
//! connects each API call with each of its dispatches.
//!
//! The slice of a call lists the IDs of its flows. So the number of the call's dispatches must be known when the slice is
//! written, but the records of the dispatches may follow later in the trace. That is why they are counted in a separate
//! pass ([`Flows`]).
//!
//! The slices on one track must nest, because the importer ends the innermost one first. The kernels of a queue can
//! overlap without nesting. Those that do are put on sibling tracks of the same name, which the UI shows as one.

mod flows;
mod proto;

pub use flows::Flows;

use super::source::{Record, Trace, clock, has};
use super::{Writer, flush};
use prost::Message;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::rc::Rc;
use tracefile::format::{Call, Dispatch, Process, flag};

use proto::*;

/// `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_BOOTTIME`. ROCr's system clock is the latter, which is also Perfetto's
/// default clock.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
/// `SEQ_INCREMENTAL_STATE_CLEARED` and `SEQ_NEEDS_INCREMENTAL_STATE`.
const CLEARED: u32 = 1;
const NEEDS: u32 = 2;
/// `TYPE_SLICE_BEGIN`, `TYPE_SLICE_END`, `TYPE_INSTANT` and `TYPE_COUNTER`.
const BEGIN: u32 = 1;
const END: u32 = 2;
const INSTANT: u32 = 3;
const COUNTER: u32 = 4;
/// `UNIT_COUNT`.
const COUNT: u32 = 2;

/// Categories and names of arguments. The ID of each is its position in the list, starting at 1.
const CATEGORIES: [&str; 2] = ["kernel", "api"];
const KERNEL: u64 = 1;
const API: u64 = 2;
const ARGUMENTS: [&str; 16] = [
    "dispatch",
    "correlation",
    "thread",
    "kernel",
    "grid",
    "workgroup",
    "lds",
    "scratch",
    "vgprs",
    "accum_vgprs",
    "sgprs",
    "submit",
    "clock",
    "unfinished",
    "status",
    "dispatches",
];

/// The process ID of the first GPU. Linux uses only smaller ones for processes (`PID_MAX_LIMIT`).
const FIRST_GPU: i32 = 1 << 22;
/// IDs of tracks: the program, its threads, the GPUs, the queues, and the queues' counters.
const HOST: u64 = 1;
const THREADS: u64 = 1 << 60;
const GPUS: u64 = 2 << 60;
const QUEUES: u64 = 3 << 60;
const COUNTERS: u64 = 4 << 60;

/// The maximum number of dispatches in flight that are tracked per queue: twice the size of the largest queue.
const MAX_IN_FLIGHT: usize = 1 << 18;

/// The dispatches of a queue that are in flight.
#[derive(Default)]
struct InFlight {
    /// Their end times, earliest first.
    ends: BinaryHeap<Reverse<u64>>,
}

impl InFlight {
    /// Removes the dispatch that ends first, if it ends by `now` or if there are too many. Returns its end and the
    /// number of dispatches that are left.
    fn pop_ended(&mut self, now: u64) -> Option<(u64, usize)> {
        let Reverse(end) = *self.ends.peek()?;
        if end > now && self.ends.len() < MAX_IN_FLIGHT {
            return None;
        }
        self.ends.pop();
        Some((end, self.ends.len()))
    }
}

pub struct Perfetto {
    out: BufWriter<File>,
    flows: Flows,
    buffer: Vec<u8>,
    has_header: bool,
    /// The IDs of the names that have been written.
    names: HashMap<Rc<str>, u64>,
    threads: BTreeSet<u32>,
    agents: BTreeSet<u32>,
    /// The tracks of each queue: the end of the last slice and the track's number, earliest end first.
    queue_tracks: HashMap<u32, BinaryHeap<Reverse<(u64, u64)>>>,
    in_flight: BTreeMap<u32, InFlight>,
}

fn named(names: &[&str]) -> Vec<Name> {
    let ids = 1..;
    let name = |(iid, name): (u64, &&str)| Name {
        iid,
        name: (*name).to_owned(),
    };
    ids.zip(names).map(name).collect()
}

impl Perfetto {
    pub fn new(out: BufWriter<File>, flows: Flows) -> Perfetto {
        Perfetto {
            out,
            flows,
            buffer: Vec::new(),
            has_header: false,
            names: HashMap::new(),
            threads: BTreeSet::new(),
            agents: BTreeSet::new(),
            queue_tracks: HashMap::new(),
            in_flight: BTreeMap::new(),
        }
    }

    /// Writes a packet, as the next element of the trace.
    fn packet(&mut self, mut packet: TracePacket) -> std::io::Result<()> {
        packet.trusted_packet_sequence_id = 1;
        packet.sequence_flags |= NEEDS;
        self.buffer.clear();
        // Field 1 of the trace, length-delimited.
        self.buffer.push(1 << 3 | 2);
        packet
            .encode_length_delimited(&mut self.buffer)
            .map_err(std::io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn event(&mut self, timestamp: u64, event: TrackEvent) -> std::io::Result<()> {
        self.packet(TracePacket {
            timestamp: Some(timestamp),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn track(&mut self, track: TrackDescriptor) -> std::io::Result<()> {
        self.packet(TracePacket {
            track_descriptor: Some(track),
            ..TracePacket::default()
        })
    }

    /// Writes the packets at the start of the trace, once.
    fn begin(&mut self, trace: &Trace) -> std::io::Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        let clock = |clock_id, timestamp| Clock {
            clock_id,
            timestamp,
        };
        self.packet(TracePacket {
            sequence_flags: CLEARED,
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![
                    clock(BOOTTIME, trace.ns(trace.header.started.get())),
                    clock(REALTIME, trace.header.started_unix.get()),
                ],
                primary_trace_clock: BOOTTIME,
            }),
            interned_data: Some(InternedData {
                event_categories: named(&CATEGORIES),
                event_names: Vec::new(),
                debug_annotation_names: named(&ARGUMENTS),
            }),
            ..TracePacket::default()
        })?;
        self.host(trace, None)
    }

    /// Describes the track of the program's process.
    fn host(&mut self, trace: &Trace, process: Option<&Process>) -> std::io::Result<()> {
        let command = process.and_then(|process| trace.tables.text(process.command.get()));
        let mut words = command.into_iter().flat_map(str::split_whitespace);
        self.track(TrackDescriptor {
            uuid: HOST,
            process: Some(ProcessDescriptor {
                pid: trace.header.pid.get() as i32,
                process_name: words.clone().next().map(str::to_owned),
                cmdline: words.by_ref().map(str::to_owned).collect(),
            }),
            ..TrackDescriptor::default()
        })
    }

    /// The track of a GPU, which is described at its first use. A GPU without a record has one, too.
    fn agent(&mut self, agent: u32, trace: &Trace) -> std::io::Result<u64> {
        let uuid = GPUS | u64::from(agent);
        if self.agents.insert(agent) {
            let known = trace.tables.agents.get(&agent);
            let texts = known.map(|known| [known.product.get(), known.name.get()]);
            let texts = texts.into_iter().flatten();
            let name = texts.filter_map(|id| trace.tables.text(id)).next();
            self.track(TrackDescriptor {
                uuid,
                process: Some(ProcessDescriptor {
                    pid: FIRST_GPU.saturating_add_unsigned(agent),
                    process_name: Some(format!(
                        "GPU {} {}",
                        trace.node(agent),
                        name.unwrap_or("(unknown)")
                    )),
                    cmdline: Vec::new(),
                }),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(uuid)
    }

    /// The track of a thread, which is described at its first use.
    fn thread(&mut self, thread: u32, trace: &Trace) -> std::io::Result<u64> {
        let uuid = THREADS | u64::from(thread);
        if self.threads.insert(thread) {
            self.track(TrackDescriptor {
                uuid,
                thread: Some(ThreadDescriptor {
                    pid: trace.header.pid.get() as i32,
                    tid: thread as i32,
                }),
                parent_uuid: Some(HOST),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(uuid)
    }

    /// A track of the dispatch's queue that has no slice after the start of the dispatch.
    fn queue_track(
        &mut self,
        dispatch: &Dispatch,
        start: u64,
        end: u64,
        trace: &Trace,
    ) -> std::io::Result<u64> {
        let queue = dispatch.queue.get();
        let parent = self.agent(dispatch.agent.get(), trace)?;
        let tracks = self.queue_tracks.entry(queue).or_default();
        let uuid = |number| QUEUES | u64::from(queue) << 24 | number;
        if let Some(mut first) = tracks.peek_mut()
            && first.0.0 <= start
        {
            first.0.0 = end;
            return Ok(uuid(first.0.1));
        }
        let number = tracks.len() as u64;
        let uuid = uuid(number);
        tracks.push(Reverse((end, number)));
        self.track(TrackDescriptor {
            uuid,
            name: Some(format!("Queue {queue}")),
            parent_uuid: Some(parent),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    /// The ID of a name, which is written at its first use.
    fn name(&mut self, name: Rc<str>) -> std::io::Result<u64> {
        if let Some(&iid) = self.names.get(&name) {
            return Ok(iid);
        }
        let iid = self.names.len() as u64 + 1;
        self.packet(TracePacket {
            interned_data: Some(InternedData {
                event_names: vec![Name {
                    iid,
                    name: name.to_string(),
                }],
                ..InternedData::default()
            }),
            ..TracePacket::default()
        })?;
        self.names.insert(name, iid);
        Ok(iid)
    }

    fn dispatch(&mut self, dispatch: &Dispatch, trace: &mut Trace) -> std::io::Result<()> {
        let has_times = trace.times(dispatch).is_ok();
        let (start, end) = trace.times_or_submission(dispatch);
        let track = self.queue_track(dispatch, start, end, trace)?;
        let kernel = trace.kernel(dispatch.kernel.get());
        let name = self.name(kernel)?;
        let flow = self.flows.next_of_call(dispatch.correlation.get());
        self.event(
            start,
            TrackEvent {
                category_iids: vec![KERNEL],
                debug_annotations: arguments(dispatch, trace),
                r#type: if has_times { BEGIN } else { INSTANT },
                name_iid: Some(name),
                track_uuid: track,
                flow_ids: flow.into_iter().collect(),
                ..TrackEvent::default()
            },
        )?;
        if has_times {
            self.end(end, track)?;
        }
        self.count(dispatch, trace)
    }

    /// Counts a dispatch as in flight from its submission to its end. The dispatches of a queue are in the order of their
    /// submission, so all that end before the submission of this one are known.
    fn count(&mut self, dispatch: &Dispatch, trace: &Trace) -> std::io::Result<()> {
        let queue = dispatch.queue.get();
        let submit = trace.ns(dispatch.submit.get());
        let end = match trace.times(dispatch) {
            Ok((_, end)) => end,
            Err(_) => trace.ns(dispatch.observed.get()),
        };
        if !self.in_flight.contains_key(&queue) {
            let parent = self.agent(dispatch.agent.get(), trace)?;
            self.track(TrackDescriptor {
                uuid: COUNTERS | u64::from(queue),
                name: Some(format!("Queue {queue} in flight")),
                parent_uuid: Some(parent),
                counter: Some(CounterDescriptor { unit: COUNT }),
                ..TrackDescriptor::default()
            })?;
        }
        self.count_ends(queue, submit)?;
        let in_flight = self.in_flight.entry(queue).or_default();
        in_flight.ends.push(Reverse(end.max(submit)));
        let number = in_flight.ends.len();
        self.counter(queue, submit, number)
    }

    /// Writes the counter's values for the dispatches that end by a given time.
    fn count_ends(&mut self, queue: u32, by: u64) -> std::io::Result<()> {
        let next = |all: &mut Perfetto| all.in_flight.get_mut(&queue)?.pop_ended(by);
        while let Some((end, left)) = next(self) {
            self.counter(queue, end, left)?;
        }
        Ok(())
    }

    fn counter(&mut self, queue: u32, timestamp: u64, number: usize) -> std::io::Result<()> {
        let event = TrackEvent {
            r#type: COUNTER,
            track_uuid: COUNTERS | u64::from(queue),
            counter_value: Some(number as i64),
            ..TrackEvent::default()
        };
        self.event(timestamp, event)
    }

    fn end(&mut self, end: u64, track_uuid: u64) -> std::io::Result<()> {
        let event = TrackEvent {
            r#type: END,
            track_uuid,
            ..TrackEvent::default()
        };
        self.event(end, event)
    }

    fn call(&mut self, call: &Call, trace: &Trace) -> std::io::Result<()> {
        let track = self.thread(call.thread.get(), trace)?;
        let name = self.name(trace.function(call).into())?;
        let id = call.head.id.get();
        let mut status = argument("status");
        status.int_value = Some(call.status.get().into());
        let event = TrackEvent {
            category_iids: vec![API],
            debug_annotations: vec![
                number("correlation", id),
                status,
                number("dispatches", self.flows.dispatches(id)),
            ],
            r#type: BEGIN,
            name_iid: Some(name),
            track_uuid: track,
            flow_ids: self.flows.of_call(id).collect(),
            ..TrackEvent::default()
        };
        self.event(trace.ns(call.start.get()), event)?;
        self.end(trace.ns(call.end.get()), track)
    }
}

fn argument(name: &str) -> DebugAnnotation {
    let index = ARGUMENTS.iter().position(|argument| *argument == name);
    DebugAnnotation {
        name_iid: index.map_or(0, |index| index as u64 + 1),
        ..DebugAnnotation::default()
    }
}

fn number(name: &str, value: impl Into<u64>) -> DebugAnnotation {
    let mut number = argument(name);
    number.uint_value = Some(value.into());
    number
}

fn text(name: &str, value: String) -> DebugAnnotation {
    let mut text = argument(name);
    text.string_value = Some(value);
    text
}

fn arguments(dispatch: &Dispatch, trace: &Trace) -> Vec<DebugAnnotation> {
    let [wx, wy, wz] = dispatch.workgroup.map(|size| size.get());
    let [gx, gy, gz] = dispatch.grid.map(|size| size.get());
    let mut arguments = vec![
        number("dispatch", dispatch.head.id.get()),
        number("thread", dispatch.thread.get()),
        number("kernel", dispatch.kernel.get()),
        text("grid", format!("{gx} {gy} {gz}")),
        text("workgroup", format!("{wx} {wy} {wz}")),
        number("lds", dispatch.lds.get()),
        number("scratch", dispatch.scratch.get()),
        number("submit", trace.ns(dispatch.submit.get())),
        text("clock", clock(dispatch.head.flags.get()).to_owned()),
    ];
    if dispatch.correlation.get() != 0 {
        arguments.push(number("correlation", dispatch.correlation.get()));
    }
    if !has(dispatch, flag::NO_REGISTERS) {
        arguments.extend([
            number("vgprs", dispatch.vgprs.get()),
            number("accum_vgprs", dispatch.accum_vgprs.get()),
            number("sgprs", dispatch.sgprs.get()),
        ]);
    }
    if has(dispatch, flag::UNFINISHED) {
        let mut unfinished = argument("unfinished");
        unfinished.bool_value = Some(true);
        arguments.push(unfinished);
    }
    arguments
}

impl Writer for Perfetto {
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        self.begin(trace)?;
        match record {
            Record::Process(process) => self.host(trace, Some(process))?,
            Record::Agent(agent) => {
                self.agent(agent.head.id.get() as u32, trace)?;
            }
            Record::Call(call) => self.call(call, trace)?,
            Record::Dispatch(dispatch) => self.dispatch(dispatch, trace)?,
            // Tracks and names are written with the first dispatch that uses them.
            Record::Queue(_) | Record::Kernel(_) => {}
            Record::Copy(_)
            | Record::Marker(_)
            | Record::Stream(_)
            | Record::Name(_)
            | Record::Recording(_) => {}
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, trace: &mut Trace) -> anyhow::Result<()> {
        self.begin(trace)?;
        let queues: Vec<u32> = self.in_flight.keys().copied().collect();
        for queue in queues {
            self.count_ends(queue, u64::MAX)?;
        }
        flush(self.out)
    }
}
