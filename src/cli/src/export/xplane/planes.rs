//! Writes the planes of a profile with their events.

use super::gpu::capabilities;
use super::plane::{Line, Overlap, Plane, Source, stat};
use super::proto::{self, Output, Value, XEvent, XLine, field};
use super::sort::{Event, IS_UNFINISHED, NO_STREAM, Sorted, Sorter, kind};
use crate::trace_reader::Trace;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

const HOST: &str = "/host:CPU";
const GPU: &str = "/device:GPU:";
/// The plane with the times of the profile.
const ENVIRONMENT: &str = "Task Environment";

/// The first IDs of lines that are not for a thread or a stream.
const QUEUES: i64 = 1 << 24;
const OTHERS: i64 = 1 << 28;

/// How many lines a stream, queue or thread can have. If more events overlap, the last line has all the others: only a
/// damaged trace has so many, and each line is another pass over the rest of the events.
const MAX_LINES: u32 = 256;

/// Writes the planes, when all events are known.
pub struct Planes<'a> {
    pub out: &'a mut Output,
    pub dir: PathBuf,
    /// The number of each GPU in the name of its plane, by agent.
    pub ordinals: HashMap<u32, i64>,
    /// The start of the profile, in nanoseconds of the system clock.
    pub start: u64,
}

impl Planes<'_> {
    /// Returns the size of the file.
    pub fn write(
        mut self,
        planes: Vec<Plane>,
        mut events: Sorted,
        stop: u64,
        trace: &Trace,
    ) -> io::Result<u64> {
        for (index, plane) in planes.into_iter().enumerate() {
            self.plane(index as u64, plane, &mut events, trace)?;
        }
        let before = trace.started() - self.start;
        let start = trace.header.started_unix.get().saturating_sub(before);
        let stop = start.saturating_add(stop.saturating_sub(self.start));
        let mut environment = Plane::new(None);
        let stats = [(stat::START, start), (stat::STOP, stop)]
            .map(|(name, time)| environment.stat(name, Value::Uint(time)));
        let environment = proto::XPlane {
            name: ENVIRONMENT.into(),
            stat_metadata: environment.stats.metadata(),
            stats: stats.into(),
            ..proto::XPlane::default()
        };
        self.out.message(field::PLANES, &environment)?;
        self.out.finish()
    }

    fn plane(
        &mut self,
        index: u64,
        mut plane: Plane,
        events: &mut Sorted,
        trace: &Trace,
    ) -> io::Result<()> {
        let begin = self.out.begin(field::PLANES)?;
        let ordinal = plane.agent.map(|agent| self.ordinals[&agent]);
        self.out.fields(&proto::XPlane {
            id: ordinal.unwrap_or_default(),
            name: match ordinal {
                Some(ordinal) => format!("{GPU}{ordinal}"),
                None => HOST.into(),
            },
            ..proto::XPlane::default()
        })?;
        let mut next_id = OTHERS;
        for (number, line) in (0..).zip(std::mem::take(&mut plane.lines)) {
            self.lines(
                index << 32 | number,
                &line,
                &mut next_id,
                &mut plane,
                events,
                trace,
            )?;
        }
        let pid = trace.header.pid.get();
        let mut stats = vec![plane.stat(stat::PROCESS, Value::Uint(pid.into()))];
        if let Some(id) = plane.agent {
            let agent = trace.tables.agents.get(&id);
            stats.extend(
                capabilities(agent, trace)
                    .into_iter()
                    .map(|(name, value)| plane.stat(name, value)),
            );
        }
        self.out.fields(&proto::XPlane {
            event_metadata: plane.names.metadata(),
            stat_metadata: plane.stats.metadata(),
            stats,
            ..proto::XPlane::default()
        })?;
        self.out.end(begin)
    }

    /// Writes a line, and further ones for events that overlap.
    fn lines(
        &mut self,
        line_index: u64,
        line: &Line,
        next_id: &mut i64,
        plane: &mut Plane,
        events: &mut Sorted,
        trace: &Trace,
    ) -> io::Result<()> {
        let mut other_id = || {
            *next_id += 1;
            *next_id
        };
        let source = line.source;
        let overlap = source.overlap();
        let name = source.name(&line.types, trace);
        let first = XLine {
            id: match source {
                Source::Thread(id) => id.into(),
                Source::Stream(id) => trace.stream_id(id).into(),
                Source::Queue(id) => QUEUES + i64::from(id),
                Source::Ranges | Source::Copies => other_id(),
            },
            name: name.clone(),
            ..XLine::default()
        };
        let mut rest = self.line(&first, line_index, overlap, plane, events)?;
        for number in 2..=MAX_LINES {
            if rest.is_empty() {
                break;
            }
            let line = XLine {
                id: other_id(),
                name: format!("{name} [{number}]"),
                ..XLine::default()
            };
            let rules = match number {
                MAX_LINES => Overlap::All,
                _ => overlap,
            };
            rest = self.line(&line, line_index, rules, plane, &mut rest.sorted()?)?;
        }
        Ok(())
    }

    /// Writes a line. Returns the events that overlap with those in it.
    fn line(
        &mut self,
        line: &XLine,
        line_index: u64,
        overlap: Overlap,
        plane: &mut Plane,
        events: &mut Sorted,
    ) -> io::Result<Sorter> {
        let begin = self.out.begin(field::LINES)?;
        self.out.fields(line)?;
        let mut rest = Sorter::new(&self.dir);
        // The ends of the events that contain the current time.
        let mut open: Vec<u64> = Vec::new();
        while let Some(event) = events.next_on(line_index)? {
            while open.last().is_some_and(|&end| end <= event.start) {
                open.pop();
            }
            let is_instant = event.start == event.end;
            let fits = match open.last() {
                None => true,
                Some(_) if is_instant => true,
                Some(&outer) => match overlap {
                    Overlap::None => false,
                    Overlap::Nested => event.end <= outer,
                    Overlap::All => true,
                },
            };
            if !fits {
                rest.push(event)?;
                continue;
            }
            if !is_instant {
                open.push(event.end);
            }
            let event = self.event(&event, plane);
            self.out.message(field::EVENTS, &event)?;
        }
        self.out.end(begin)?;
        Ok(rest)
    }

    fn event(&self, event: &Event, plane: &mut Plane) -> XEvent {
        let mut stats = Vec::with_capacity(4);
        let mut add = |name, value| stats.push(plane.stat(name, value));
        if event.correlation != 0 {
            add(stat::CORRELATION, Value::Uint(event.correlation));
        }
        if event.flags & IS_UNFINISHED != 0 {
            add(stat::UNFINISHED, Value::Uint(1));
        }
        let device = |agent: u32| self.ordinals.get(&agent).map(|&ordinal| ordinal as u64);
        match event.kind {
            kind::KERNEL => {
                add(stat::KERNEL, Value::Ref(event.detail));
                add(stat::QUEUE, Value::Uint(event.other.into()));
            }
            kind::COPY | kind::FILL => {
                let (name, size) = match event.kind {
                    kind::COPY => (stat::MEMCPY, "size"),
                    _ => (stat::MEMSET, "num_bytes"),
                };
                let to = device(event.other).map_or(String::new(), |to| format!(" dest:{to}"));
                let details = format!("kind:Unknown {size}:{}{to} async:1", event.detail);
                add(name, Value::Text(details));
                add(stat::BYTES, Value::Uint(event.detail));
            }
            kind::CALL => {
                if event.detail != NO_STREAM {
                    add(stat::STREAM, Value::Uint(event.detail));
                }
                if event.other != 0 {
                    add(stat::STATUS, Value::Int((event.other as i32).into()));
                }
            }
            _ => {}
        }
        if let Some(ordinal) = plane.agent.and_then(device) {
            stats.push(plane.stat(stat::DEVICE, Value::Uint(ordinal)));
        }
        XEvent {
            metadata_id: event.name.into(),
            offset_ps: Some(picoseconds(event.start - self.start)),
            duration_ps: picoseconds(event.end - event.start),
            stats,
        }
    }
}

/// At most [`i64::MAX`], which is 106 days.
fn picoseconds(ns: u64) -> i64 {
    i64::try_from(ns.saturating_mul(1000)).unwrap_or(i64::MAX)
}
