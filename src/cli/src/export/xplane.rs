//! `.xplane.pb` files for XProf and TensorBoard.
//!
//! The planes are those that XLA's profilers write after they have merged the planes of their tracers: one for the host
//! (`/host:CPU`, with a line per thread), one per GPU (`/device:GPU:N`, with a line per stream), and one with the times
//! of the profile. All times are relative to the start of the profile. XProf connects an API call with its kernels and
//! copies by their correlation ID.
//!
//! A plane is one message that contains its lines, and a line is one message that contains its events in the order of
//! their start, so nothing can be written before the last record of the trace has been read. Until then the events are
//! in a temporary file ([`sort`]). Names and the launch parameters of kernels are in memory, each once.
//!
//! XProf shows one host plane per profile and identifies GPUs by the names of their planes, so a profile has one
//! process. Several processes are several files in the directory of one run, which XProf shows as its hosts. All of
//! them begin at the same time, because XProf's times relate to the start of a profile.

mod gpu;
mod plane;
mod planes;
mod proto;
mod sort;

use super::writer::Writer;
use crate::trace_reader::inputs::{Input, Inputs};
use crate::trace_reader::{self, Record, Request, Trace};
use anyhow::bail;
use gpu::kernel_details;
use plane::{Plane, Source};
use planes::Planes;
use proto::Output;
use sort::{Event, IS_UNFINISHED, NO_STREAM, Sorter, kind};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use tracefile::format::{Call, Dispatch, Marker, MemoryCopy, direction, flag, marker};
use zerocopy::FromZeros;

/// Readers of protobuf's messages reject larger files.
const MAX_SIZE: u64 = i32::MAX as u64;

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
    /// The start of the run, if it has several profiles.
    run_start: Option<u64>,
}

impl XPlane {
    /// `dir` is the directory for temporary files.
    pub fn new(out: BufWriter<File>, dir: &Path, run_start: Option<u64>) -> XPlane {
        XPlane {
            out: Output::new(out),
            dir: dir.to_owned(),
            events: Sorter::new(dir),
            planes: vec![Plane::new(None)],
            gpus: HashMap::new(),
            span: None,
            run_start,
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
            line_index: (plane as u64) << 32 | line as u64,
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
        // As in XLA, a copy between GPUs is in the plane of its source.
        let agents = match copy.direction.get() {
            direction::HOST_TO_DEVICE | direction::FILL => [to, from],
            _ => [from, to],
        };
        let plane = match agents.into_iter().find(|&agent| trace.is_gpu(agent)) {
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
        let (start, end) = trace.copy_times_or_submission(copy);
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
            detail: match call.stream.get() {
                0 => NO_STREAM,
                id => trace.stream_id(id).into(),
            },
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
    fn write(&mut self, trace: &Trace) -> anyhow::Result<()> {
        let known = trace.tables.agents.keys().copied();
        let mut agents: BTreeSet<u32> = known.filter(|&id| trace.is_gpu(id)).collect();
        agents.extend(self.gpus.keys());
        // A GPU without events has a plane, too.
        for &id in &agents {
            self.gpu(id);
        }
        let started = trace.started();
        let (first, last) = self.span.unwrap_or((started, started));
        let planes = Planes {
            out: &mut self.out,
            dir: self.dir.clone(),
            ordinals: ordinals(agents, trace),
            // An API call that initializes HSA begins before the trace.
            start: first.min(started).min(self.run_start.unwrap_or(started)),
        };
        let events = std::mem::replace(&mut self.events, Sorter::new(&self.dir));
        let size = planes.write(
            std::mem::take(&mut self.planes),
            events.sorted()?,
            last,
            trace,
        )?;
        check_size(size)
    }
}

impl Writer for XPlane {
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        match record {
            Record::Dispatch(dispatch) => self.dispatch(dispatch, trace)?,
            Record::Copy(copy) => self.copy(copy, trace)?,
            Record::Call(call) => self.call(call, trace)?,
            Record::Marker(marker) => self.marker(marker, trace)?,
            // XLA's profiles have no pauses. The trace's tables have the others.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, trace: &mut Trace) -> anyhow::Result<()> {
        self.write(trace)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The number of each GPU, which XProf uses as its ID. A GPU whose number is not known or taken gets the next free one.
fn ordinals(agents: BTreeSet<u32>, trace: &Trace) -> HashMap<u32, i64> {
    let (known, others): (Vec<u32>, Vec<u32>) = agents
        .into_iter()
        .partition(|&id| trace.number(id).is_some());
    let mut used = BTreeSet::new();
    let numbered = known.into_iter().chain(others).map(|id| {
        let number = trace.number(id).filter(|number| !used.contains(number));
        let free = || (0..).find(|number| !used.contains(number));
        let number = number.or_else(free).unwrap_or_default();
        used.insert(number);
        (id, number.into())
    });
    numbered.collect()
}

fn check_size(size: u64) -> anyhow::Result<()> {
    if size > MAX_SIZE {
        bail!(
            "the profile would have {size} bytes, but XProf reads at most {MAX_SIZE}: use another format, or record a shorter trace"
        );
    }
    Ok(())
}

/// The start of a run with several profiles: the first event or start of a trace. `None` if there is only one trace.
pub fn run_start<'a>(
    inputs: &Inputs,
    request: impl Fn(&Input) -> Request<'a>,
) -> anyhow::Result<Option<u64>> {
    if !inputs.are_several() {
        return Ok(None);
    }
    let mut start = None;
    for input in &inputs.all {
        let first = trace_reader::first_event(&input.path, request(input))?;
        start = start.into_iter().chain([first]).min();
    }
    Ok(start)
}

/// Where XProf and TensorBoard expect the profiles of a run in their log directory. The run has the name that XLA gives
/// it, which is its start. Creates the directory.
pub fn run_directory(logs: &Path, started_unix: u64) -> anyhow::Result<PathBuf> {
    // SQLite knows the calendar.
    let seconds = started_unix / 1_000_000_000;
    let run: String = rusqlite::Connection::open_in_memory()?.query_row(
        "SELECT strftime('%Y_%m_%d_%H_%M_%S', ?, 'unixepoch')",
        [seconds as i64],
        |row| row.get(0),
    )?;
    let dir = logs.join("plugins/profile").join(run);
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// The name of the profile of a trace in the directory of its run, with a number if another one has this name. XProf
/// shows the part before the extension as the name of the host. Several processes of a host can be in a run.
pub fn file_name(trace: &Trace, used: &mut HashSet<String>) -> String {
    let host = trace.tables.process.and_then(|process| {
        let host = trace.tables.text(process.host.get())?;
        // Untrusted, and the name of a file.
        Some(host.replace(
            |char: char| !char.is_alphanumeric() && !"-_.".contains(char),
            "_",
        ))
    });
    let name = format!("{}_{}", host.as_deref().unwrap_or("host"), trace.header.pid);
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let unused = names.find(|name| used.insert(name.clone()));
    format!("{}.xplane.pb", unused.unwrap_or(name))
}

fn unfinished(flags: u16) -> u32 {
    match flags & flag::UNFINISHED {
        0 => 0,
        _ => IS_UNFINISHED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_xprof_cannot_read_is_an_error() {
        assert!(check_size(MAX_SIZE).is_ok());
        let error = check_size(MAX_SIZE + 1).unwrap_err().to_string();
        assert!(error.contains("2147483648 bytes"), "{error}");
    }
}
