//! Perfetto's protobuf format, which ui.perfetto.dev opens.
//!
//! Each GPU is shown as a process. Its tracks are the streams with its kernels, or the queues ([`Tracks`]), the copies
//! in each direction, and for each queue a counter of the dispatches in flight. The program's process has a track for
//! each thread with its API calls, ranges and marks, and tracks for copies between hosts, for ranges of the process and
//! for the times at which nothing was recorded. A flow connects each API call with each of its dispatches and copies.
//!
//! The slice of a call lists the IDs of its flows, so the number of the call's dispatches and copies must be known when
//! the slice is written. But their records may follow later in the trace. That is why a separate pass counts them
//! ([`FirstPass`]). It also reads the names that the program gave to threads, streams and agents: the importer uses the
//! first name of a track.
//!
//! Slices on one track must nest. [`lanes`] and [`threads`] take care of that.
//!
//! Several traces follow each other in the file. Each is a packet sequence of its own, because interned names belong to a
//! sequence. IDs of tracks and flows, which all sequences share, contain the number of the trace. Perfetto takes
//! processes with the same process ID for one, so each further one gets an ID that no process has ([`Pids`]).

mod first_pass;
mod in_flight;
mod lanes;
mod proto;
mod threads;

pub use first_pass::FirstPass;

use super::writer::{Writer, flush};
use crate::trace_reader::inputs::{Input, Member};
use crate::trace_reader::{Record, Request, Trace, clock, has};
use clap::ValueEnum;
use in_flight::{InFlight, Value};
use lanes::{Group, Lanes};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::rc::Rc;
use threads::{Rank, Step, Threads};
use tracefile::format::{
    Call, Dispatch, Marker, MemoryCopy, NO_AGENT, Process, Recording, direction, flag, marker,
    named,
};

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
const CATEGORIES: &str = "kernel api blit copy marker recording";
const KERNEL: u64 = 1;
const API: u64 = 2;
const BLIT: u64 = 3;
const COPY: u64 = 4;
const MARKER: u64 = 5;
const RECORDING: u64 = 6;
const ARGUMENTS: &str = "
    dispatch correlation thread kernel grid workgroup lds scratch vgprs accum_vgprs sgprs submit clock
    unfinished status dispatches queue stream copies copy function bytes bandwidth_gb_s source destination
    engine marker range end_thread build_id
";

/// IDs of tracks: the program, its pauses, its threads, the GPUs, the tracks in [`Lanes`], and the queues' counters.
/// The number of the trace is added to them ([`TRACE_SHIFT`]).
const HOST: u64 = 1;
const PAUSES: u64 = 2;
const THREADS: u64 = 1 << 60;
const GPUS: u64 = 2 << 60;
const LANES: u64 = 3 << 60;
const COUNTERS: u64 = 4 << 60;
/// The lowest bit of the number of the trace in the ID of a track.
const TRACE_SHIFT: u32 = 40;

/// The tracks of kernels. rocprofv3 has the same default, and `--group-by-queue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Tracks {
    /// One for each stream of HIP; kernels whose stream is not known are on the track of their queue
    #[default]
    Stream,
    /// One for each queue
    Queue,
}

/// The process IDs in the output.
struct Pids {
    used: HashSet<i32>,
    next: i32,
}

impl Pids {
    /// Linux uses only smaller ones for processes (`PID_MAX_LIMIT`).
    const FIRST_OTHER: i32 = 1 << 22;

    /// The ID of a process, or another one if a process of another trace has this ID.
    fn of_process(&mut self, pid: u32) -> i32 {
        match i32::try_from(pid) {
            Ok(pid) if self.used.insert(pid) => pid,
            _ => self.other(),
        }
    }

    /// An ID that no process has.
    fn other(&mut self) -> i32 {
        let unused = (self.next..i32::MAX).find(|&pid| self.used.insert(pid));
        self.next = unused.unwrap_or(i32::MAX);
        self.next
    }
}

pub struct Perfetto {
    out: BufWriter<File>,
    tracks: Tracks,
    buffer: Vec<u8>,
    pids: Pids,
    /// The number of the current trace, from 0.
    number: u32,
    trace: State,
}

/// The state of the current trace.
#[derive(Default)]
struct State {
    first_pass: FirstPass,
    has_header: bool,
    member: Option<Member>,
    /// The process ID in the output, and the suffixes of the names of the process and of GPUs.
    pid: i32,
    process_suffix: String,
    gpu_suffix: String,
    /// The IDs of the names that have been written.
    names: HashMap<Rc<str>, u64>,
    /// The IDs of the build IDs that were written. A build ID has the ID of its text in the trace.
    build_ids: HashSet<u32>,
    /// Threads and GPUs whose tracks are described.
    threads: BTreeSet<u32>,
    agents: BTreeSet<u32>,
    lanes: Lanes,
    /// Calls and markers.
    thread_slices: Threads<Record>,
    in_flight: BTreeMap<u32, InFlight>,
    /// When the recording stopped, while it is stopped, and whether its track is described.
    stopped: Option<u64>,
    has_pauses: bool,
    /// The latest time of an event.
    latest: u64,
}

fn interned(names: &str) -> Vec<Name> {
    let name = |(iid, name): (u64, &str)| Name {
        iid,
        name: name.to_owned(),
    };
    (1..).zip(names.split_whitespace()).map(name).collect()
}

impl Perfetto {
    pub fn new(out: BufWriter<File>, tracks: Tracks) -> Perfetto {
        Perfetto {
            out,
            tracks,
            buffer: Vec::new(),
            pids: Pids {
                used: HashSet::new(),
                next: Pids::FIRST_OTHER,
            },
            number: 0,
            trace: State::default(),
        }
    }

    /// The ID of a track of the current trace.
    fn uuid(&self, track: u64) -> u64 {
        track | u64::from(self.number) << TRACE_SHIFT
    }

    /// Writes a packet, as the next element of the trace.
    fn packet(&mut self, mut packet: TracePacket) -> std::io::Result<()> {
        packet.trusted_packet_sequence_id = self.number + 1;
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
        self.trace.latest = self.trace.latest.max(timestamp);
        self.packet(TracePacket {
            timestamp: Some(timestamp),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// Describes a track with a name, below another one.
    fn named_track(&mut self, uuid: u64, name: String, parent: u64) -> std::io::Result<()> {
        self.track(TrackDescriptor {
            uuid,
            name: Some(name),
            parent_uuid: Some(parent),
            ..TrackDescriptor::default()
        })
    }

    fn track(&mut self, track: TrackDescriptor) -> std::io::Result<()> {
        self.packet(TracePacket {
            track_descriptor: Some(track),
            ..TracePacket::default()
        })
    }

    /// Writes the packets at the start of a trace, once.
    fn header(&mut self, trace: &Trace) -> std::io::Result<()> {
        if std::mem::replace(&mut self.trace.has_header, true) {
            return Ok(());
        }
        let pid = trace.header.pid.get();
        self.trace.pid = self.pids.of_process(pid);
        if let Some(member) = &self.trace.member {
            self.trace.gpu_suffix = format!(" ({})", member.label());
            // Perfetto shows the process ID next to the name of a process.
            if member.has_hosts || i64::from(self.trace.pid) != i64::from(pid) {
                self.trace.process_suffix = self.trace.gpu_suffix.clone();
            }
        }
        let clock = |clock_id, timestamp| Clock {
            clock_id,
            timestamp,
        };
        self.packet(TracePacket {
            sequence_flags: CLEARED,
            // One relation is enough for all traces: the relations of several would be almost the same.
            clock_snapshot: (self.number == 0).then(|| ClockSnapshot {
                clocks: vec![
                    clock(BOOTTIME, trace.started()),
                    clock(REALTIME, trace.header.started_unix.get()),
                ],
                primary_trace_clock: BOOTTIME,
            }),
            interned_data: Some(InternedData {
                event_categories: interned(CATEGORIES),
                event_names: Vec::new(),
                debug_annotation_names: interned(ARGUMENTS),
                debug_annotation_string_values: Vec::new(),
            }),
            ..TracePacket::default()
        })?;
        self.host(trace, None)
    }

    /// Describes the track of the program's process.
    fn host(&mut self, trace: &Trace, process: Option<&Process>) -> std::io::Result<()> {
        let command = process.and_then(|process| trace.tables.text(process.command.get()));
        let mut words = command.into_iter().flat_map(str::split_whitespace);
        let suffix = &self.trace.process_suffix;
        let name = match words.clone().next() {
            Some(program) => Some(format!("{program}{suffix}")),
            None if suffix.is_empty() => None,
            None => Some(suffix.trim().to_owned()),
        };
        self.track(TrackDescriptor {
            uuid: self.uuid(HOST),
            process: Some(ProcessDescriptor {
                pid: self.trace.pid,
                process_name: name,
                cmdline: words.by_ref().map(str::to_owned).collect(),
            }),
            ..TrackDescriptor::default()
        })
    }

    /// The track of a GPU, which is described at its first use. A GPU without a record has one, too.
    fn agent(&mut self, agent: u32, trace: &Trace) -> std::io::Result<u64> {
        let uuid = self.uuid(GPUS | u64::from(agent));
        if self.trace.agents.insert(agent) {
            let given = self.given_name(named::AGENT, agent);
            let name = trace.agent_name(agent, given) + &self.trace.gpu_suffix;
            let pid = self.pids.other();
            self.track(TrackDescriptor {
                uuid,
                process: Some(ProcessDescriptor {
                    pid,
                    process_name: Some(name),
                    cmdline: Vec::new(),
                }),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(uuid)
    }

    /// The track of a thread, which is described at its first use.
    fn thread(&mut self, thread: u32) -> std::io::Result<u64> {
        let uuid = self.uuid(THREADS | u64::from(thread));
        if self.trace.threads.insert(thread) {
            let thread_name = self.given_name(named::THREAD, thread).map(str::to_owned);
            self.track(TrackDescriptor {
                uuid,
                thread: Some(ThreadDescriptor {
                    pid: self.trace.pid,
                    tid: thread as i32,
                    thread_name,
                }),
                parent_uuid: Some(self.uuid(HOST)),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(uuid)
    }

    /// A track of the group that has no slice after the start, for a slice.
    fn lane(
        &mut self,
        group: Group,
        (start, end): (u64, u64),
        trace: &Trace,
    ) -> std::io::Result<u64> {
        let (number, is_new) = self.trace.lanes.take(group, start, end);
        let uuid = self.uuid(LANES | number);
        if is_new {
            let (parent, name) = match group {
                Group::Queue { agent, queue } => {
                    (self.agent(agent, trace)?, format!("Queue {queue}"))
                }
                Group::Stream { agent, stream } => {
                    (self.agent(agent, trace)?, self.stream_name(stream, trace))
                }
                Group::Copies { gpu, direction } => {
                    let parent = match gpu {
                        Some(gpu) => self.agent(gpu, trace)?,
                        None => self.uuid(HOST),
                    };
                    (parent, copy_names(direction).1.to_owned())
                }
                Group::ProcessRanges => (self.uuid(HOST), "Process ranges".to_owned()),
            };
            self.named_track(uuid, name, parent)?;
        }
        Ok(uuid)
    }

    /// The name that the program gave to a thread, a stream or an agent ([`named`]).
    fn given_name(&self, what: u32, id: u32) -> Option<&str> {
        let names = &self.trace.first_pass.names;
        names.get(&(what, id.into())).map(String::as_str)
    }

    /// The name that the program gave to a stream, or else its default name.
    fn stream_name(&self, stream: u32, trace: &Trace) -> String {
        match self.given_name(named::STREAM, stream) {
            Some(name) => name.to_owned(),
            None => trace.default_stream_name(stream),
        }
    }

    /// The ID of a name, which is written at its first use.
    fn name(&mut self, name: Rc<str>) -> std::io::Result<u64> {
        if let Some(&iid) = self.trace.names.get(&name) {
            return Ok(iid);
        }
        let iid = self.trace.names.len() as u64 + 1;
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
        self.trace.names.insert(name, iid);
        Ok(iid)
    }

    /// The argument with the build ID of a kernel's code object, unless it is not known. The ID is written at its first use.
    fn build_id(&mut self, kernel: u32, trace: &Trace) -> std::io::Result<Option<DebugAnnotation>> {
        let Some(build_id) = trace.build_id(kernel) else {
            return Ok(None);
        };
        let text = trace.tables.kernels[&kernel].build_id.get();
        if self.trace.build_ids.insert(text) {
            self.packet(TracePacket {
                interned_data: Some(InternedData {
                    debug_annotation_string_values: vec![Name {
                        iid: text.into(),
                        name: build_id.to_owned(),
                    }],
                    ..InternedData::default()
                }),
                ..TracePacket::default()
            })?;
        }
        let mut argument = argument("build_id");
        argument.string_value_iid = Some(text.into());
        Ok(Some(argument))
    }

    fn dispatch(&mut self, dispatch: &Dispatch, trace: &mut Trace) -> std::io::Result<()> {
        let has_times = trace.times(dispatch).is_ok();
        let (start, end) = trace.times_or_submission(dispatch);
        let agent = dispatch.agent.get();
        let group = match (self.tracks, dispatch.stream.get()) {
            (Tracks::Stream, stream) if stream != 0 => Group::Stream { agent, stream },
            _ => Group::Queue {
                agent,
                queue: dispatch.queue.get(),
            },
        };
        let track = self.lane(group, (start, end), trace)?;
        let kernel = trace.kernel(dispatch.kernel.get());
        let is_blit = trace.is_blit(dispatch.kernel.get());
        let category = if is_blit { BLIT } else { KERNEL };
        let mut arguments = self.dispatch_arguments(dispatch, trace);
        arguments.extend(self.build_id(dispatch.kernel.get(), trace)?);
        let event = TrackEvent {
            category_iids: vec![category],
            debug_annotations: arguments,
            name_iid: Some(self.name(kernel)?),
            track_uuid: track,
            flow_ids: self.flow(dispatch.correlation.get()),
            ..TrackEvent::default()
        };
        self.slice(event, (start, end), has_times)?;
        self.count(dispatch, trace)
    }

    fn copy(&mut self, copy: &MemoryCopy, trace: &Trace) -> std::io::Result<()> {
        let has_times = trace.copy_times(copy).is_ok();
        let (start, end) = trace.copy_times_or_submission(copy);
        // HSA copies with the source's engines if the source is a GPU.
        let agents = [copy.source.get(), copy.destination.get()];
        let gpu = agents.into_iter().find(|&agent| trace.is_gpu(agent));
        let group = Group::Copies {
            gpu,
            direction: match copy.direction.get() {
                known @ direction::HOST_TO_HOST..=direction::FILL => known,
                _ => direction::UNKNOWN,
            },
        };
        let track = self.lane(group, (start, end), trace)?;
        let event = TrackEvent {
            category_iids: vec![COPY],
            debug_annotations: self.copy_arguments(copy, trace),
            name_iid: Some(self.name(copy_names(copy.direction.get()).0.into())?),
            track_uuid: track,
            flow_ids: self.flow(copy.correlation.get()),
            ..TrackEvent::default()
        };
        self.slice(event, (start, end), has_times)
    }

    /// The flow to the next dispatch or copy of a call.
    fn flow(&mut self, call: u64) -> Vec<u64> {
        let flow = self.trace.first_pass.flows.next_of_call(call);
        flow.into_iter().collect()
    }

    /// Writes a slice with its end, or an instant if it has no times.
    fn slice(
        &mut self,
        mut event: TrackEvent,
        (start, end): (u64, u64),
        has_times: bool,
    ) -> std::io::Result<()> {
        let track = event.track_uuid;
        event.r#type = if has_times { BEGIN } else { INSTANT };
        self.event(start, event)?;
        if has_times {
            self.end_slice(end, track)?;
        }
        Ok(())
    }

    /// Counts a dispatch as in flight from its submission to its end. A dispatch without times ends when its completion
    /// was observed.
    fn count(&mut self, dispatch: &Dispatch, trace: &Trace) -> std::io::Result<()> {
        let queue = dispatch.queue.get();
        let submit = trace.ns(dispatch.submit.get());
        let end = match trace.times(dispatch) {
            Ok((_, end)) => end,
            Err(_) => trace.ns(dispatch.observed.get()),
        };
        if !self.trace.in_flight.contains_key(&queue) {
            let parent = self.agent(dispatch.agent.get(), trace)?;
            self.track(TrackDescriptor {
                uuid: self.uuid(COUNTERS | u64::from(queue)),
                name: Some(format!("Queue {queue} in flight")),
                parent_uuid: Some(parent),
                counter: Some(CounterDescriptor { unit: COUNT }),
                ..TrackDescriptor::default()
            })?;
        }
        let in_flight = self.trace.in_flight.entry(queue).or_default();
        let values = in_flight.push(submit, end);
        self.counter(queue, values)
    }

    /// Writes values of a queue's counter.
    fn counter(&mut self, queue: u32, values: Vec<Value>) -> std::io::Result<()> {
        for (time, number) in values {
            let event = TrackEvent {
                r#type: COUNTER,
                track_uuid: self.uuid(COUNTERS | u64::from(queue)),
                counter_value: Some(number as i64),
                ..TrackEvent::default()
            };
            self.event(time, event)?;
        }
        Ok(())
    }

    fn end_slice(&mut self, end: u64, track_uuid: u64) -> std::io::Result<()> {
        let event = TrackEvent {
            r#type: END,
            track_uuid,
            ..TrackEvent::default()
        };
        self.event(end, event)
    }

    /// The event at which a call begins, without its track.
    fn call(&mut self, call: &Call, trace: &Trace) -> std::io::Result<TrackEvent> {
        let id = call.head.id.get();
        let mut status = argument("status");
        status.int_value = Some(call.status.get().into());
        let flows = &self.trace.first_pass.flows;
        let mut arguments = vec![
            number("correlation", id),
            status,
            number("dispatches", flows.dispatches.get(id)),
        ];
        arguments.extend(non_zero("copies", flows.copies.get(id)));
        arguments.extend(self.stream_argument(call.stream.get(), trace));
        Ok(TrackEvent {
            category_iids: vec![API],
            debug_annotations: arguments,
            r#type: BEGIN,
            name_iid: Some(self.name(trace.function(call).into())?),
            flow_ids: self.trace.first_pass.flows.of_call(id).collect(),
            ..TrackEvent::default()
        })
    }

    /// The event at which a marker begins, without its track.
    fn marker(&mut self, marker: &Marker, trace: &Trace) -> std::io::Result<TrackEvent> {
        let message = trace.tables.text(marker.text.get()).unwrap_or_default();
        let mut arguments = vec![number("marker", marker.head.id.get())];
        arguments.extend(unfinished(marker.head.flags.get()));
        let is_mark = marker.what.get() == marker::MARK;
        Ok(TrackEvent {
            category_iids: vec![MARKER],
            debug_annotations: arguments,
            r#type: if is_mark { INSTANT } else { BEGIN },
            name_iid: Some(self.name(message.into())?),
            ..TrackEvent::default()
        })
    }

    /// Adds a call or marker to its thread's track.
    fn on_thread(
        &mut self,
        thread: u32,
        times: (u64, u64),
        rank: Rank,
        slice: Record,
        trace: &Trace,
    ) -> std::io::Result<()> {
        self.trace
            .thread_slices
            .push(thread, times.0, times.1, rank, slice);
        let steps = self.trace.thread_slices.take_ready();
        self.steps(steps, trace)
    }

    /// Writes slices on the tracks of threads.
    fn steps(&mut self, steps: Vec<Step<Record>>, trace: &Trace) -> std::io::Result<()> {
        for step in steps {
            match step {
                Step::Begin {
                    thread,
                    slice,
                    ends,
                } => {
                    let (start, mut event) = match &slice {
                        Record::Call(call) => (call.start, self.call(call, trace)?),
                        Record::Marker(marker) => (marker.start, self.marker(marker, trace)?),
                        _ => continue,
                    };
                    event.track_uuid = self.thread(thread)?;
                    self.event(trace.ns(start.get()), event)?;
                    if let Some(end) = ends {
                        self.end_slice(end, self.uuid(THREADS | u64::from(thread)))?;
                    }
                }
                Step::End { thread, time } => {
                    self.end_slice(time, self.uuid(THREADS | u64::from(thread)))?
                }
            }
        }
        Ok(())
    }

    fn process_range(&mut self, range: &Marker, trace: &Trace) -> std::io::Result<()> {
        let start = trace.ns(range.start.get());
        let end = trace.ns(range.end.get()).max(start);
        let mut event = self.marker(range, trace)?;
        event.debug_annotations.extend([
            number("range", range.range.get()),
            number("thread", range.thread.get()),
            number("end_thread", range.end_thread.get()),
        ]);
        event.track_uuid = self.lane(Group::ProcessRanges, (start, end), trace)?;
        self.slice(event, (start, end), true)
    }

    /// Remembers when the recording stopped, and writes a slice for the time until it is started.
    fn recording(&mut self, recording: &Recording, trace: &Trace) -> std::io::Result<()> {
        let time = trace.ns(recording.time.get());
        if recording.is_on.get() == 0 {
            self.trace.stopped.get_or_insert(time);
            return Ok(());
        }
        match self.trace.stopped.take() {
            Some(stopped) => self.pause(stopped, time),
            None => Ok(()),
        }
    }

    fn pause(&mut self, start: u64, end: u64) -> std::io::Result<()> {
        if !std::mem::replace(&mut self.trace.has_pauses, true) {
            let (pauses, host) = (self.uuid(PAUSES), self.uuid(HOST));
            self.named_track(pauses, "Recording".to_owned(), host)?;
        }
        let event = TrackEvent {
            category_iids: vec![RECORDING],
            name_iid: Some(self.name("Not recorded".into())?),
            track_uuid: self.uuid(PAUSES),
            ..TrackEvent::default()
        };
        self.slice(event, (start, end.max(start)), true)
    }

    /// The argument with the name of a stream, unless it is not known.
    fn stream_argument(&self, stream: u32, trace: &Trace) -> Option<DebugAnnotation> {
        (stream != 0).then(|| text("stream", self.stream_name(stream, trace)))
    }

    fn dispatch_arguments(&self, dispatch: &Dispatch, trace: &Trace) -> Vec<DebugAnnotation> {
        let [wx, wy, wz] = dispatch.workgroup.map(|size| size.get());
        let [gx, gy, gz] = dispatch.grid.map(|size| size.get());
        let mut arguments = vec![
            number("dispatch", dispatch.head.id.get()),
            number("thread", dispatch.thread.get()),
            number("queue", dispatch.queue.get()),
            number("kernel", dispatch.kernel.get()),
            text("grid", format!("{gx} {gy} {gz}")),
            text("workgroup", format!("{wx} {wy} {wz}")),
            number("lds", dispatch.lds.get()),
            number("scratch", dispatch.scratch.get()),
            number("submit", trace.ns(dispatch.submit.get())),
            text("clock", clock(dispatch.head.flags.get()).to_owned()),
        ];
        arguments.extend(self.stream_argument(dispatch.stream.get(), trace));
        arguments.extend(non_zero("correlation", dispatch.correlation.get()));
        if !has(dispatch, flag::NO_REGISTERS) {
            arguments.extend([
                number("vgprs", dispatch.vgprs.get()),
                number("accum_vgprs", dispatch.accum_vgprs.get()),
                number("sgprs", dispatch.sgprs.get()),
            ]);
        }
        arguments.extend(unfinished(dispatch.head.flags.get()));
        arguments
    }

    fn copy_arguments(&self, copy: &MemoryCopy, trace: &Trace) -> Vec<DebugAnnotation> {
        let flags = copy.head.flags.get();
        let mut arguments = vec![
            number("copy", copy.head.id.get()),
            text("function", trace.copy_function(copy).to_owned()),
            number("bytes", copy.size.get()),
            number("thread", copy.thread.get()),
            number("submit", trace.ns(copy.submit.get())),
            text("clock", clock(flags).to_owned()),
        ];
        // Bytes per nanosecond are gigabytes per second.
        if let Ok((start, end)) = trace.copy_times(copy)
            && start < end
        {
            let mut bandwidth = argument("bandwidth_gb_s");
            bandwidth.double_value = Some(copy.size.get() as f64 / (end - start) as f64);
            arguments.push(bandwidth);
        }
        for (name, agent) in [
            ("source", copy.source.get()),
            ("destination", copy.destination.get()),
        ] {
            if agent != NO_AGENT {
                arguments.push(text(name, trace.agent(agent)));
            }
        }
        arguments.extend(non_zero("engine", copy.engine.get()));
        arguments.extend(self.stream_argument(copy.stream.get(), trace));
        arguments.extend(non_zero("correlation", copy.correlation.get()));
        arguments.extend(unfinished(flags));
        arguments
    }
}

/// The names of a copy in a direction, and of its track.
fn copy_names(direction: u32) -> (&'static str, &'static str) {
    match direction {
        direction::HOST_TO_HOST => ("Copy host to host", "Copies host to host"),
        direction::HOST_TO_DEVICE => ("Copy host to device", "Copies host to device"),
        direction::DEVICE_TO_HOST => ("Copy device to host", "Copies device to host"),
        direction::DEVICE_TO_DEVICE => ("Copy device to device", "Copies device to device"),
        direction::FILL => ("Fill", "Fills"),
        _ => ("Copy", "Copies"),
    }
}

fn argument(name: &str) -> DebugAnnotation {
    let index = ARGUMENTS.split_whitespace().position(|own| own == name);
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

/// The argument, unless the number or ID is 0.
fn non_zero(name: &str, value: impl Into<u64>) -> Option<DebugAnnotation> {
    let value = value.into();
    (value != 0).then(|| number(name, value))
}

/// The argument of a dispatch, copy or marker with these flags that did not end.
fn unfinished(flags: u16) -> Option<DebugAnnotation> {
    let mut unfinished = argument("unfinished");
    unfinished.bool_value = Some(true);
    (flags & flag::UNFINISHED != 0).then_some(unfinished)
}

impl Writer for Perfetto {
    fn begin(&mut self, input: &Input, request: Request) -> anyhow::Result<()> {
        self.number = input.number() - 1;
        // Only the counts of one trace are in memory.
        self.trace = State::default();
        self.trace = State {
            first_pass: FirstPass::read(&input.path, request, self.number)?,
            member: input.member.clone(),
            ..State::default()
        };
        Ok(())
    }

    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        self.header(trace)?;
        match record {
            Record::Process(process) => self.host(trace, Some(process))?,
            Record::Agent(agent) => {
                let id = agent.head.id.get() as u32;
                if trace.is_gpu(id) {
                    self.agent(id, trace)?;
                }
            }
            Record::Call(call) => {
                let times = (trace.ns(call.start.get()), trace.ns(call.end.get()));
                self.on_thread(call.thread.get(), times, Rank::Call, *record, trace)?;
            }
            Record::Marker(marker) => {
                let times = (trace.ns(marker.start.get()), trace.ns(marker.end.get()));
                let rank = match marker.what.get() {
                    marker::MARK => Rank::Mark,
                    marker::RANGE => Rank::Range(marker.depth.get()),
                    _ => {
                        self.process_range(marker, trace)?;
                        return Ok(());
                    }
                };
                self.on_thread(marker.thread.get(), times, rank, *record, trace)?;
            }
            Record::Dispatch(dispatch) => self.dispatch(dispatch, trace)?,
            Record::Copy(copy) => self.copy(copy, trace)?,
            Record::Recording(recording) => self.recording(recording, trace)?,
            // Tracks and names are written with the first slice that uses them.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, trace: &mut Trace) -> anyhow::Result<()> {
        self.header(trace)?;
        let rest = self.trace.thread_slices.take_rest();
        self.steps(rest, trace)?;
        for (queue, mut in_flight) in std::mem::take(&mut self.trace.in_flight) {
            self.counter(queue, in_flight.take_rest())?;
        }
        if let Some(stopped) = self.trace.stopped.take() {
            self.pause(stopped, self.trace.latest)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        flush(self.out)
    }
}
