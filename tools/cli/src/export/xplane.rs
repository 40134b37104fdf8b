//! `.xplane.pb` files for XProf and TensorBoard.
//!
//! XLA's profilers write such a file after they have merged the planes of their tracers. Therefore the file has a plane for
//! the host (`/host:CPU`, with a line per thread), a plane per GPU (`/device:GPU:N`, with a line per stream) and one with
//! the times of the profile. All times relate to the start of the profile. XProf connects an API call with its kernels and
//! copies by their correlation ID.
//!
//! A plane is one message that contains its lines, and a line is one message that contains its events in the order of
//! their start, so nothing can be written before the last record of the trace. Until then the events are in a temporary
//! file ([`sort`]). Memory has the names, and the launch parameters of kernels, each once.

mod proto;
mod sort;

use super::Writer;
use super::source::{Record, Trace, has};
use anyhow::bail;
use proto::{Metadata, Output, Value, XEvent, XLine, XStat, field};
use sort::{Event, Sorted, Sorter};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tracefile::format::{
    Agent, Call, Dispatch, Marker, MemoryCopy, agent, direction, flag, marker, named, stream,
};
use zerocopy::FromZeros;

const HOST: &str = "/host:CPU";
const GPU: &str = "/device:GPU:";
/// The plane with the times of the profile.
const ENVIRONMENT: &str = "Task Environment";

/// Readers of protobuf's messages reject larger files.
const MAX_SIZE: u64 = i32::MAX as u64;

/// Where the IDs of lines begin that are not those of a thread or a stream.
const QUEUES: i64 = 1 << 24;
const OTHERS: i64 = 1 << 28;

/// The names of stats, as in XLA's schema, if it has them.
mod stat {
    pub const BYTES: &str = "bytes_transferred";
    pub const COMPUTE_UNITS: &str = "core_count";
    pub const CORRELATION: &str = "correlation_id";
    pub const DEVICE: &str = "device_id";
    pub const DEVICE_NAME: &str = "gpu_device_name";
    pub const KERNEL: &str = "kernel_details";
    pub const MAJOR: &str = "compute_cap_major";
    pub const MEMCPY: &str = "memcpy_details";
    pub const MEMSET: &str = "Memset_details";
    pub const MINOR: &str = "compute_cap_minor";
    pub const PROCESS: &str = "process_id";
    pub const QUEUE: &str = "queue_id";
    pub const START: &str = "profile_start_time";
    /// Not XLA's: what an API call returned.
    pub const STATUS: &str = "status";
    pub const STOP: &str = "profile_stop_time";
    pub const STREAM: &str = "stream";
    /// Not XLA's: a dispatch or range whose end was not observed.
    pub const UNFINISHED: &str = "unfinished";
    pub const VENDOR: &str = "device_vendor";
}

/// [`Event::kind`], and the meaning of its fields `detail` and `other`.
mod kind {
    /// The ID of its launch parameters; its queue.
    pub const KERNEL: u32 = 0;
    /// Its size in bytes; the agent of its destination.
    pub const COPY: u32 = 1;
    /// Like a copy.
    pub const FILL: u32 = 2;
    /// Its stream; the status.
    pub const CALL: u32 = 3;
    pub const MARKER: u32 = 4;
}

/// [`Event::flags`].
const IS_UNFINISHED: u32 = 1;

/// Numbers the names of a plane, from 1.
#[derive(Default)]
struct Names(HashMap<Rc<str>, u32>);

impl Names {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.0.get(name) {
            return id;
        }
        let id = self.0.len() as u32 + 1;
        self.0.insert(name.into(), id);
        id
    }

    fn metadata(&self) -> BTreeMap<i64, Metadata> {
        let entry = |(name, &id): (&Rc<str>, &u32)| {
            let id = id.into();
            let name = name.to_string();
            (id, Metadata { id, name })
        };
        self.0.iter().map(entry).collect()
    }
}

/// What the events of a line have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Thread(u32),
    /// Ranges of the process.
    Ranges,
    Stream(u32),
    /// Dispatches whose stream is not known.
    Queue(u32),
    /// Copies whose stream is not known.
    Copies,
}

impl Source {
    /// Whether an event can contain another one. Otherwise, events that overlap are on different lines.
    fn nests(self) -> bool {
        matches!(self, Source::Thread(_))
    }

    /// The name of a line with these types of events.
    fn name(self, types: &[String], trace: &Trace) -> String {
        let types = format!("({})", types.join(","));
        let given = |what, id: u32| {
            let name = trace.tables.names.get(&(what, id.into()))?;
            trace.tables.text(name.text.get())
        };
        match self {
            // XProf groups threads by the part before the slash.
            Source::Thread(id) => {
                let name = given(named::THREAD, id).unwrap_or("Host Threads");
                format!("{name}/{id}")
            }
            Source::Ranges => "Ranges of the process".into(),
            Source::Stream(id) => {
                let what = trace
                    .tables
                    .streams
                    .get(&id)
                    .map(|stream| stream.what.get());
                let name = given(named::STREAM, id).or(match what {
                    Some(stream::NULL) => Some("NULL"),
                    Some(stream::PER_THREAD) => Some("per thread"),
                    _ => None,
                });
                let name = name.map_or(String::new(), |name| format!(" {name} "));
                format!("Stream #{id}{name}{types}")
            }
            Source::Queue(id) => format!("Queue #{id}{types}"),
            Source::Copies => format!("Copies{types}"),
        }
    }
}

struct Plane {
    /// The GPU, or `None` for the host.
    agent: Option<u32>,
    names: Names,
    /// The names of stats, and the values that events refer to.
    stats: Names,
    lines: Vec<Line>,
    by_source: HashMap<Source, usize>,
}

struct Line {
    source: Source,
    /// The types of events on a GPU, as XLA names them. XProf shows streams with "Compute" first.
    types: Vec<String>,
}

impl Plane {
    fn new(agent: Option<u32>) -> Plane {
        Plane {
            agent,
            names: Names::default(),
            stats: Names::default(),
            lines: Vec::new(),
            by_source: HashMap::new(),
        }
    }

    /// The index of the line for an event of this type.
    fn line(&mut self, source: Source, r#type: Option<&str>) -> usize {
        let lines = &mut self.lines;
        let index = *self.by_source.entry(source).or_insert_with(|| {
            let types = Vec::new();
            lines.push(Line { source, types });
            lines.len() - 1
        });
        let types = &mut lines[index].types;
        if let Some(r#type) = r#type.filter(|r#type| types.iter().all(|known| known != r#type)) {
            types.push(r#type.to_owned());
        }
        index
    }

    fn stat(&mut self, name: &str, value: Value) -> XStat {
        XStat {
            metadata_id: self.stats.id(name).into(),
            value: Some(value),
        }
    }
}

pub struct XPlane {
    out: Output,
    /// The directory for temporary files.
    dir: PathBuf,
    events: Sorter,
    /// The host, then GPUs.
    planes: Vec<Plane>,
    gpus: HashMap<u32, usize>,
    /// Start of the first event and end of the last one, in nanoseconds.
    span: Option<(u64, u64)>,
    max_size: u64,
}

impl XPlane {
    /// `dir` is the directory for temporary files.
    pub fn new(out: BufWriter<File>, dir: &Path) -> XPlane {
        XPlane {
            out: Output::new(out),
            dir: dir.to_owned(),
            events: Sorter::new(dir),
            planes: vec![Plane::new(None)],
            gpus: HashMap::new(),
            span: None,
            max_size: MAX_SIZE,
        }
    }

    /// The index of a GPU's plane.
    fn gpu(&mut self, agent: u32) -> usize {
        *self.gpus.entry(agent).or_insert_with(|| {
            self.planes.push(Plane::new(Some(agent)));
            self.planes.len() - 1
        })
    }

    /// Adds an event to a plane's line. Its start and end must be set.
    fn add(&mut self, plane: usize, source: Source, name: &str, event: Event) -> io::Result<()> {
        let (first, last) = self.span.unwrap_or((event.start, event.end));
        self.span = Some((first.min(event.start), last.max(event.end)));
        let r#type = match event.kind {
            kind::KERNEL => Some("Compute"),
            kind::COPY | kind::FILL => Some(name),
            _ => None,
        };
        let line = self.planes[plane].line(source, r#type);
        self.events.push(Event {
            place: (plane as u64) << 32 | line as u64,
            name: self.planes[plane].names.id(name),
            ..event
        })
    }

    fn dispatch(&mut self, dispatch: &Dispatch, trace: &mut Trace) -> io::Result<()> {
        let plane = self.gpu(dispatch.agent.get());
        let source = match dispatch.stream.get() {
            0 => Source::Queue(dispatch.queue.get()),
            stream => Source::Stream(stream),
        };
        let (start, end) = trace.times_or_submission(dispatch);
        let details = kernel_details(dispatch, trace);
        let event = Event {
            start,
            end,
            correlation: dispatch.correlation.get(),
            detail: self.planes[plane].stats.id(&details).into(),
            other: dispatch.queue.get(),
            kind: kind::KERNEL,
            flags: unfinished(dispatch.head.flags.get()),
            ..Event::new_zeroed()
        };
        let name = trace.kernel(dispatch.kernel.get());
        self.add(plane, source, &name, event)
    }

    fn copy(&mut self, copy: &MemoryCopy, trace: &Trace) -> io::Result<()> {
        let (from, to) = (copy.source.get(), copy.destination.get());
        let is_gpu = |&id: &u32| {
            let agent = trace.tables.agents.get(&id);
            agent.is_some_and(|agent| agent.what.get() == agent::GPU)
        };
        // As in XLA, a copy between GPUs is in the plane of its source.
        let agents = match copy.direction.get() {
            direction::HOST_TO_DEVICE | direction::FILL => [to, from],
            _ => [from, to],
        };
        let plane = match agents.into_iter().find(is_gpu) {
            Some(agent) => self.gpu(agent),
            None => 0,
        };
        let source = match copy.stream.get() {
            stream if stream != 0 && plane != 0 => Source::Stream(stream),
            _ => Source::Copies,
        };
        let name = match copy.direction.get() {
            direction::HOST_TO_DEVICE => "MemcpyH2D",
            direction::DEVICE_TO_HOST => "MemcpyD2H",
            direction::DEVICE_TO_DEVICE if from != to => "MemcpyP2P",
            direction::DEVICE_TO_DEVICE => "MemcpyD2D",
            direction::FILL => "Memset",
            _ => "MemcpyOther",
        };
        let submit = trace.ns(copy.submit.get());
        let (start, end) = trace.copy_times(copy).unwrap_or((submit, submit));
        let event = Event {
            start,
            end,
            correlation: copy.correlation.get(),
            detail: copy.size.get(),
            other: to,
            kind: match copy.direction.get() {
                direction::FILL => kind::FILL,
                _ => kind::COPY,
            },
            flags: unfinished(copy.head.flags.get()),
            ..Event::new_zeroed()
        };
        self.add(plane, source, name, event)
    }

    fn call(&mut self, call: &Call, trace: &Trace) -> io::Result<()> {
        let start = trace.ns(call.start.get());
        let event = Event {
            start,
            end: trace.ns(call.end.get()).max(start),
            correlation: call.head.id.get(),
            detail: call.stream.get().into(),
            other: call.status.get() as u32,
            kind: kind::CALL,
            ..Event::new_zeroed()
        };
        let source = Source::Thread(call.thread.get());
        self.add(0, source, trace.function(call), event)
    }

    fn marker(&mut self, marker: &Marker, trace: &Trace) -> io::Result<()> {
        let start = trace.ns(marker.start.get());
        let event = Event {
            start,
            end: trace.ns(marker.end.get()).max(start),
            kind: kind::MARKER,
            flags: unfinished(marker.head.flags.get()),
            ..Event::new_zeroed()
        };
        let source = match marker.what.get() {
            marker::PROCESS_RANGE => Source::Ranges,
            _ => Source::Thread(marker.thread.get()),
        };
        let text = trace.tables.text(marker.text.get());
        self.add(0, source, text.unwrap_or("(unknown marker)"), event)
    }

    /// Writes everything.
    fn write(mut self, trace: &Trace) -> anyhow::Result<()> {
        // A GPU without events has a plane, too.
        for (&id, agent) in &trace.tables.agents {
            if agent.what.get() == agent::GPU {
                self.gpu(id);
            }
        }
        let agents: BTreeSet<u32> = self.gpus.keys().copied().collect();
        let started = trace.ns(trace.header.started.get());
        let (first, last) = self.span.unwrap_or((started, started));
        let planes = Planes {
            out: self.out,
            dir: self.dir,
            ordinals: agents.into_iter().zip(0..).collect(),
            // An API call that initializes HSA begins before the trace.
            start: first.min(started),
        };
        let size = planes.write(self.planes, self.events.sorted()?, last, trace)?;
        if size > self.max_size {
            bail!(
                "it would have {size} bytes, and XProf reads at most {}: use another format, or record a shorter trace",
                self.max_size
            );
        }
        Ok(())
    }
}

impl Writer for XPlane {
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        match record {
            Record::Dispatch(dispatch) => self.dispatch(dispatch, trace)?,
            Record::Copy(copy) => self.copy(copy, trace)?,
            Record::Call(call) => self.call(call, trace)?,
            Record::Marker(marker) => self.marker(marker, trace)?,
            // The trace's tables have them.
            Record::Process(_)
            | Record::Agent(_)
            | Record::Queue(_)
            | Record::Kernel(_)
            | Record::Stream(_)
            | Record::Name(_) => {}
            Record::Recording(_) => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>, trace: &mut Trace) -> anyhow::Result<()> {
        self.write(trace)
    }
}

/// Where XProf and TensorBoard expect the profile of a trace in their log directory. Creates the directories.
pub fn path_in_logs(logs: &Path, trace: &Trace) -> anyhow::Result<PathBuf> {
    // A run has the name that XLA gives it. SQLite knows the calendar.
    let seconds = trace.header.started_unix.get() / 1_000_000_000;
    let run: String = rusqlite::Connection::open_in_memory()?.query_row(
        "SELECT strftime('%Y_%m_%d_%H_%M_%S', ?, 'unixepoch')",
        [seconds as i64],
        |row| row.get(0),
    )?;
    let host = trace.tables.process.and_then(|process| {
        let host = trace.tables.text(process.host.get())?;
        // Untrusted, and the name of a file.
        Some(host.replace(
            |char: char| !char.is_alphanumeric() && !"-_.".contains(char),
            "_",
        ))
    });
    let host = host.as_deref().unwrap_or("host");
    let dir = logs.join("plugins/profile").join(run);
    std::fs::create_dir_all(&dir)?;
    // XProf shows the name as that of the host. Several processes of a host can be in a run.
    Ok(dir.join(format!("{host}_{}.xplane.pb", trace.header.pid)))
}

/// Writes the planes, when all events are known.
struct Planes {
    out: Output,
    dir: PathBuf,
    /// The number of each GPU in the name of its plane, by agent.
    ordinals: HashMap<u32, i64>,
    /// The start of the profile, in nanoseconds of the system clock.
    start: u64,
}

impl Planes {
    /// Returns the size of the file.
    fn write(
        mut self,
        planes: Vec<Plane>,
        mut events: Sorted,
        stop: u64,
        trace: &Trace,
    ) -> io::Result<u64> {
        for (index, plane) in planes.into_iter().enumerate() {
            self.plane(index as u64, plane, &mut events, trace)?;
        }
        let before = trace.ns(trace.header.started.get()) - self.start;
        let start = trace.header.started_unix.get().saturating_sub(before);
        let stop = start + (stop.max(self.start) - self.start);
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
        place: u64,
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
        let name = source.name(&line.types, trace);
        let first = XLine {
            id: match source {
                Source::Thread(id) | Source::Stream(id) => id.into(),
                Source::Queue(id) => QUEUES + i64::from(id),
                Source::Ranges | Source::Copies => other_id(),
            },
            name: name.clone(),
            ..XLine::default()
        };
        let mut rest = self.line(&first, place, source, plane, events)?;
        for number in 2.. {
            if rest.is_empty() {
                break;
            }
            let line = XLine {
                id: other_id(),
                name: format!("{name} [{number}]"),
                ..XLine::default()
            };
            rest = self.line(&line, place, source, plane, &mut rest.sorted()?)?;
        }
        Ok(())
    }

    /// Writes a line. Returns the events that overlap with those in it.
    fn line(
        &mut self,
        line: &XLine,
        place: u64,
        source: Source,
        plane: &mut Plane,
        events: &mut Sorted,
    ) -> io::Result<Sorter> {
        let begin = self.out.begin(field::LINES)?;
        self.out.fields(line)?;
        let mut rest = Sorter::new(&self.dir);
        // The ends of the events that contain the current time.
        let mut open: Vec<u64> = Vec::new();
        while let Some(event) = events.next_at(place)? {
            while open.last().is_some_and(|&end| end <= event.start) {
                open.pop();
            }
            let is_instant = event.start == event.end;
            let fits = match open.last() {
                Some(&outer) => is_instant || source.nests() && event.end <= outer,
                None => true,
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
                if event.detail != 0 {
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

fn unfinished(flags: u16) -> u32 {
    match flags & flag::UNFINISHED {
        0 => 0,
        _ => IS_UNFINISHED,
    }
}

/// The parameters of a launch, with the keys that XProf reads and those that XLA writes for AMD's GPUs.
fn kernel_details(dispatch: &Dispatch, trace: &Trace) -> String {
    let block = dispatch.workgroup.map(|size| u32::from(size.get()));
    let [bx, by, bz] = block;
    let [gx, gy, gz] = [0, 1, 2].map(|axis| dispatch.grid[axis].get().div_ceil(block[axis].max(1)));
    let kernel = trace.tables.kernels.get(&dispatch.kernel.get());
    let lds = dispatch.lds.get();
    let fixed = kernel.map_or(lds, |kernel| kernel.lds.get().min(lds));
    let mut details = String::new();
    if !has(dispatch, flag::NO_REGISTERS) {
        details = format!("regs:{} ", registers(dispatch, trace));
    }
    details
        + &format!(
            "static_shared:{fixed} dynamic_shared:{} grid:{gx},{gy},{gz} block:{bx},{by},{bz} private_mem:{} group_mem:{lds}",
            lds - fixed,
            dispatch.scratch,
        )
}

/// The vector registers per work-item. On GPUs with one file for both types, they are allocated one after the other.
fn registers(dispatch: &Dispatch, trace: &Trace) -> u32 {
    let vector: u32 = dispatch.vgprs.get().into();
    let accumulation: u32 = dispatch.accum_vgprs.get().into();
    let has_one_file = matches!(version(target(dispatch.agent.get(), trace)), Some((9, minor, stepping)) if minor >= 4 || stepping == 10);
    match has_one_file && accumulation != 0 {
        true => vector.next_multiple_of(4) + accumulation,
        false => vector.max(accumulation),
    }
}

fn target(agent: u32, trace: &Trace) -> &str {
    let agent = trace.tables.agents.get(&agent);
    let name = agent.and_then(|agent| trace.tables.text(agent.name.get()));
    name.unwrap_or_default()
}

/// Major version, minor version and stepping of a target, such as (9, 0, 10) for `gfx90a`.
fn version(target: &str) -> Option<(u64, u64, u64)> {
    let digits = target.split(':').next()?.strip_prefix("gfx")?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let mut rest = rest.chars().map(|digit| digit.to_digit(16));
    let minor = rest.next()??;
    let stepping = rest.next()??;
    Some((major.parse().ok()?, minor.into(), stepping.into()))
}

/// The properties of a GPU.
fn capabilities(agent: Option<&Agent>, trace: &Trace) -> Vec<(&'static str, Value)> {
    let mut stats = vec![(stat::VENDOR, Value::Text("AMD".into()))];
    let Some(agent) = agent else {
        return stats;
    };
    let target = target(agent.head.id.get() as u32, trace);
    stats.push((stat::DEVICE_NAME, Value::Text(target.into())));
    if let Some((major, minor, _)) = version(target) {
        stats.push((stat::MAJOR, Value::Uint(major)));
        stats.push((stat::MINOR, Value::Uint(minor)));
    }
    match agent.compute_units.get() {
        0 => {}
        units => stats.push((stat::COMPUTE_UNITS, Value::Uint(units.into()))),
    }
    stats
}
