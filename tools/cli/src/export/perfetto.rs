//! Perfetto's protobuf, which ui.perfetto.dev opens: each GPU is a process and each of its queues a track, with a counter
//! of its dispatches in flight; threads with API calls are tracks of the program's own process. From a call a flow goes to
//! each of its dispatches.
//!
//! A flow has an id of its own, which the call's slice lists: so it has to be known how many dispatches a call made when
//! the call is written, and its record may stand before theirs. That is counted first ([`Owned`]).
//!
//! On one track slices nest: the importer ends the innermost first. Kernels of a queue can overlap without nesting, so
//! one that does is put on a sibling track of the same name, which the page shows as one.

use super::source::{self, Record, Trace, clock, has};
use super::{Writer, flush};
use prost::Message;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::rc::Rc;
use tracefile::format::{Call, Dispatch, Process, flag};

/// The part of trace_packet.proto and what it includes that is written here.
mod proto {
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    pub struct TracePacket {
        #[prost(message, optional, tag = "6")]
        pub clock_snapshot: Option<ClockSnapshot>,
        #[prost(uint64, optional, tag = "8")]
        pub timestamp: Option<u64>,
        #[prost(uint32, tag = "10")]
        pub trusted_packet_sequence_id: u32,
        #[prost(message, optional, tag = "11")]
        pub track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "12")]
        pub interned_data: Option<InternedData>,
        #[prost(uint32, tag = "13")]
        pub sequence_flags: u32,
        #[prost(message, optional, tag = "60")]
        pub track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct ClockSnapshot {
        #[prost(message, repeated, tag = "1")]
        pub clocks: Vec<Clock>,
        #[prost(uint32, tag = "2")]
        pub primary_trace_clock: u32,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Clock {
        #[prost(uint32, tag = "1")]
        pub clock_id: u32,
        #[prost(uint64, tag = "2")]
        pub timestamp: u64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct InternedData {
        #[prost(message, repeated, tag = "1")]
        pub event_categories: Vec<Name>,
        #[prost(message, repeated, tag = "2")]
        pub event_names: Vec<Name>,
        #[prost(message, repeated, tag = "3")]
        pub debug_annotation_names: Vec<Name>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Name {
        #[prost(uint64, tag = "1")]
        pub iid: u64,
        #[prost(string, tag = "2")]
        pub name: String,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct TrackEvent {
        #[prost(uint64, repeated, packed = "false", tag = "3")]
        pub category_iids: Vec<u64>,
        #[prost(message, repeated, tag = "4")]
        pub debug_annotations: Vec<DebugAnnotation>,
        #[prost(uint32, tag = "9")]
        pub r#type: u32,
        #[prost(uint64, optional, tag = "10")]
        pub name_iid: Option<u64>,
        #[prost(uint64, tag = "11")]
        pub track_uuid: u64,
        #[prost(int64, optional, tag = "30")]
        pub counter_value: Option<i64>,
        #[prost(fixed64, repeated, packed = "false", tag = "47")]
        pub flow_ids: Vec<u64>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct DebugAnnotation {
        #[prost(uint64, tag = "1")]
        pub name_iid: u64,
        #[prost(bool, optional, tag = "2")]
        pub bool_value: Option<bool>,
        #[prost(uint64, optional, tag = "3")]
        pub uint_value: Option<u64>,
        #[prost(int64, optional, tag = "4")]
        pub int_value: Option<i64>,
        #[prost(string, optional, tag = "6")]
        pub string_value: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct TrackDescriptor {
        #[prost(uint64, tag = "1")]
        pub uuid: u64,
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
        #[prost(message, optional, tag = "3")]
        pub process: Option<ProcessDescriptor>,
        #[prost(message, optional, tag = "4")]
        pub thread: Option<ThreadDescriptor>,
        #[prost(uint64, optional, tag = "5")]
        pub parent_uuid: Option<u64>,
        #[prost(message, optional, tag = "8")]
        pub counter: Option<CounterDescriptor>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct CounterDescriptor {
        #[prost(uint32, tag = "3")]
        pub unit: u32,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct ProcessDescriptor {
        #[prost(int32, tag = "1")]
        pub pid: i32,
        #[prost(string, repeated, tag = "2")]
        pub cmdline: Vec<String>,
        #[prost(string, optional, tag = "6")]
        pub process_name: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct ThreadDescriptor {
        #[prost(int32, tag = "1")]
        pub pid: i32,
        #[prost(int32, tag = "2")]
        pub tid: i32,
    }
}

use proto::*;

/// `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_BOOTTIME`. ROCr's system clock is the second, which is also the one
/// that Perfetto takes a time without a clock for.
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

/// Categories and names of arguments: the place in the list, from 1, is the id.
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

/// Linux gives no process such an id, or a greater one (`PID_MAX_LIMIT`): these are the GPUs'.
const FIRST_GPU: i32 = 1 << 22;
/// Ids of tracks: the program, its threads, the GPUs, and the lanes of queues.
const HOST: u64 = 1;
const THREADS: u64 = 1 << 60;
const GPUS: u64 = 2 << 60;
const QUEUES: u64 = 3 << 60;
const COUNTERS: u64 = 4 << 60;

/// The most dispatches in flight that a queue's counter keeps in mind: twice the packets of the largest queue there is.
const MOST_IN_FLIGHT: usize = 1 << 18;

/// A queue's dispatches in flight, in the order of their submission.
#[derive(Default)]
struct InFlight {
    /// When those that have begun end, the earliest first.
    ends: BinaryHeap<Reverse<u64>>,
}

impl InFlight {
    /// Takes the first end by `now`, or the first of too many: when, and how many dispatches are left.
    fn end_by(&mut self, now: u64) -> Option<(u64, usize)> {
        let Reverse(end) = *self.ends.peek()?;
        if end > now && self.ends.len() < MOST_IN_FLIGHT {
            return None;
        }
        self.ends.pop();
        Some((end, self.ends.len()))
    }
}

/// How many dispatches each API call made, a byte a call.
#[derive(Default)]
struct Tally {
    /// By correlation id, up to [`Tally::MANY`].
    few: Vec<u8>,
    /// What is beyond.
    more: HashMap<u64, u64>,
}

impl Tally {
    const MANY: u8 = u8::MAX;
    /// Ids count calls from 1, so a greater one is none of a real trace.
    const LAST_ID: u64 = 1 << 28;

    fn get(&self, id: u64) -> u64 {
        let few = usize::try_from(id).ok().and_then(|id| self.few.get(id));
        let more = self.more.get(&id).copied().unwrap_or_default();
        u64::from(few.copied().unwrap_or_default()) + more
    }

    fn add(&mut self, id: u64) {
        let at = id as usize;
        if id > Tally::LAST_ID {
            return;
        }
        if self.few.len() <= at {
            self.few.resize(at + 1, 0);
        }
        if self.few[at] < Tally::MANY {
            self.few[at] += 1;
        } else {
            *self.more.entry(id).or_default() += 1;
        }
    }
}

/// The dispatches of each API call, and the ids of the flows to them.
#[derive(Default)]
pub struct Owned {
    all: Tally,
    /// Those that have been written.
    written: Tally,
}

impl Owned {
    /// Bits of a flow's id that tell the dispatches of a call apart. What a call made beyond has no flow, so that its
    /// slice stays in bounds.
    const BITS: u32 = 20;

    /// Counts them.
    pub fn count(path: &Path) -> Result<Owned, String> {
        let mut owned = Owned::default();
        source::each_dispatch(path, |dispatch| match dispatch.correlation.get() {
            0 => {}
            id => owned.all.add(id),
        })?;
        Ok(owned)
    }

    fn flows_of(&self, id: u64) -> impl Iterator<Item = u64> {
        (0..self.all.get(id).min(1 << Owned::BITS)).map(move |n| id << Owned::BITS | n)
    }

    /// The flow to the next dispatch of a call, if it has one.
    fn flow_of_next(&mut self, id: u64) -> Option<u64> {
        let n = self.written.get(id);
        let known = n < self.all.get(id).min(1 << Owned::BITS);
        known.then(|| {
            self.written.add(id);
            id << Owned::BITS | n
        })
    }
}

pub struct Perfetto {
    out: BufWriter<File>,
    owned: Owned,
    buffer: Vec<u8>,
    begun: bool,
    /// Ids of the names that have been written.
    names: HashMap<Rc<str>, u64>,
    threads: BTreeSet<u32>,
    agents: BTreeSet<u32>,
    /// Of each queue: when the last slice of each of its lanes ends, the earliest first.
    lanes: HashMap<u32, BinaryHeap<Reverse<(u64, u64)>>>,
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
    pub fn new(out: BufWriter<File>, owned: Owned) -> Perfetto {
        Perfetto {
            out,
            owned,
            buffer: Vec::new(),
            begun: false,
            names: HashMap::new(),
            threads: BTreeSet::new(),
            agents: BTreeSet::new(),
            lanes: HashMap::new(),
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

    fn begin(&mut self, trace: &Trace) -> std::io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
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

    /// The GPU's track, told once. A GPU that no record tells of has one, too.
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

    /// A track of the dispatch's queue that is free from its start on.
    fn lane(
        &mut self,
        dispatch: &Dispatch,
        start: u64,
        end: u64,
        trace: &Trace,
    ) -> std::io::Result<u64> {
        let queue = dispatch.queue.get();
        let parent = self.agent(dispatch.agent.get(), trace)?;
        let lanes = self.lanes.entry(queue).or_default();
        let uuid = |lane| QUEUES | u64::from(queue) << 24 | lane;
        if let Some(mut first) = lanes.peek_mut()
            && first.0.0 <= start
        {
            first.0.0 = end;
            return Ok(uuid(first.0.1));
        }
        let lane = lanes.len() as u64;
        let uuid = uuid(lane);
        lanes.push(Reverse((end, lane)));
        self.track(TrackDescriptor {
            uuid,
            name: Some(format!("Queue {queue}")),
            parent_uuid: Some(parent),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    /// The id of a name, which is written with its first use.
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
        let timed = trace.times(dispatch).is_ok();
        let (start, end) = trace.placed(dispatch);
        let track = self.lane(dispatch, start, end, trace)?;
        let kernel = trace.kernel(dispatch.kernel.get());
        let name = self.name(kernel)?;
        let flow = self.owned.flow_of_next(dispatch.correlation.get());
        self.event(
            start,
            TrackEvent {
                category_iids: vec![KERNEL],
                debug_annotations: arguments(dispatch, trace),
                r#type: if timed { BEGIN } else { INSTANT },
                name_iid: Some(name),
                track_uuid: track,
                flow_ids: flow.into_iter().collect(),
                ..TrackEvent::default()
            },
        )?;
        if timed {
            self.end(end, track)?;
        }
        self.count(dispatch, trace)
    }

    /// Counts a dispatch as in flight, from its submission to its end. A queue's dispatches come in the order of their
    /// submission, so those that end before this one's are known.
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

    fn count_ends(&mut self, queue: u32, by: u64) -> std::io::Result<()> {
        let next = |all: &mut Perfetto| all.in_flight.get_mut(&queue)?.end_by(by);
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
                number("dispatches", self.owned.all.get(id)),
            ],
            r#type: BEGIN,
            name_iid: Some(name),
            track_uuid: track,
            flow_ids: self.owned.flows_of(id).collect(),
            ..TrackEvent::default()
        };
        self.event(trace.ns(call.start.get()), event)?;
        self.end(trace.ns(call.end.get()), track)
    }
}

fn argument(name: &str) -> DebugAnnotation {
    let place = ARGUMENTS.iter().position(|argument| *argument == name);
    DebugAnnotation {
        // A name that is not in the list has no id, and shows without one.
        name_iid: place.map_or(0, |place| place as u64 + 1),
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
        text("clock", clock(dispatch).to_owned()),
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
    fn record(&mut self, record: &Record, trace: &mut Trace) -> Result<(), Box<dyn Error>> {
        self.begin(trace)?;
        match record {
            Record::Process(process) => self.host(trace, Some(process))?,
            Record::Agent(agent) => {
                self.agent(agent.head.id.get() as u32, trace)?;
            }
            Record::Call(call) => self.call(call, trace)?,
            Record::Dispatch(dispatch) => self.dispatch(dispatch, trace)?,
            // A track is made for the first dispatch, a name is written with it.
            Record::Queue(_) | Record::Kernel(_) => {}
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, trace: &mut Trace) -> Result<(), Box<dyn Error>> {
        self.begin(trace)?;
        let queues: Vec<u32> = self.in_flight.keys().copied().collect();
        for queue in queues {
            self.count_ends(queue, u64::MAX)?;
        }
        flush(self.out)
    }
}
