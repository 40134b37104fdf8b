//! The planes, lines and names of a profile, without their events.

use super::proto::{Metadata, Value, XStat};
use crate::trace_reader::Trace;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use tracefile::format::{named, stream};

/// The names of stats, as in XLA's schema, if it has them.
pub mod stat {
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
    /// Not XLA's: the result of an API call.
    pub const STATUS: &str = "status";
    pub const STOP: &str = "profile_stop_time";
    pub const STREAM: &str = "stream";
    /// Not XLA's: a dispatch or range whose end was not observed.
    pub const UNFINISHED: &str = "unfinished";
    pub const VENDOR: &str = "device_vendor";
}

/// Numbers the names of a plane, from 1.
#[derive(Default)]
pub struct Names(HashMap<Rc<str>, u32>);

impl Names {
    pub fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.0.get(name) {
            return id;
        }
        let id = self.0.len() as u32 + 1;
        self.0.insert(name.into(), id);
        id
    }

    pub fn metadata(&self) -> BTreeMap<i64, Metadata> {
        let entry = |(name, &id): (&Rc<str>, &u32)| {
            let id = id.into();
            let name = name.to_string();
            (id, Metadata { id, name })
        };
        self.0.iter().map(entry).collect()
    }
}

/// The source of the events on a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    Thread(u32),
    /// Ranges of the process.
    Ranges,
    Stream(u32),
    /// Dispatches whose stream is not known.
    Queue(u32),
    /// Copies whose stream is not known.
    Copies,
}

/// Which events on one line can overlap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    None,
    /// An event can contain others.
    Nested,
    All,
}

impl Source {
    pub fn overlap(self) -> Overlap {
        match self {
            Source::Thread(_) => Overlap::Nested,
            _ => Overlap::None,
        }
    }

    /// The name of a line with these types of events.
    pub fn name(self, types: &[String], trace: &Trace) -> String {
        let types = format!("({})", types.join(","));
        match self {
            // XProf groups threads by the part before the slash.
            Source::Thread(id) => {
                let name = trace
                    .given_name(named::THREAD, id.into())
                    .unwrap_or("Host Threads");
                format!("{name}/{id}")
            }
            Source::Ranges => "Ranges of the process".into(),
            Source::Stream(id) => {
                let what = trace.tables.streams.get(&id).map(|known| known.what.get());
                let given = trace.given_name(named::STREAM, id.into());
                let name = given.or(match what {
                    Some(stream::NULL) => Some("NULL"),
                    Some(stream::PER_THREAD) => Some("per thread"),
                    _ => None,
                });
                let name = name.map_or(String::new(), |name| format!(" {name} "));
                format!("Stream #{}{name}{types}", trace.stream_id(id))
            }
            Source::Queue(id) => format!("Queue #{id}{types}"),
            Source::Copies => format!("Copies{types}"),
        }
    }
}

pub struct Plane {
    /// The GPU, or `None` for the host.
    pub agent: Option<u32>,
    pub names: Names,
    /// The names of stats, and the values that events refer to.
    pub stats: Names,
    pub lines: Vec<Line>,
    by_source: HashMap<Source, usize>,
}

pub struct Line {
    pub source: Source,
    /// The types of events on a GPU, as XLA names them. XProf shows streams with "Compute" first.
    pub types: Vec<String>,
}

impl Plane {
    pub fn new(agent: Option<u32>) -> Plane {
        Plane {
            agent,
            names: Names::default(),
            stats: Names::default(),
            lines: Vec::new(),
            by_source: HashMap::new(),
        }
    }

    /// The index of the line for an event of this type.
    pub fn line(&mut self, source: Source, r#type: Option<&str>) -> usize {
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

    pub fn stat(&mut self, name: &str, value: Value) -> XStat {
        XStat {
            metadata_id: self.stats.id(name).into(),
            value: Some(value),
        }
    }
}
