//! `--by`: the groups that keep rows apart, and their names.

use super::part::Part;
use crate::exit::usage;
use crate::trace_reader::Trace;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::rc::Rc;
use tracefile::format::named;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The trace's process
    Process,
    /// The GPU. For copies, source and destination
    Agent,
    /// The queue
    Queue,
    /// The HIP stream
    Stream,
    /// The thread that launched, copied or called
    Thread,
}

impl By {
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Whether the records of this part have it.
    fn applies_to(self, part: Part) -> bool {
        match part {
            Part::Kernels => true,
            Part::Api => matches!(self, By::Process | By::Stream | By::Thread),
            Part::Copies => self != By::Queue,
            Part::Markers => matches!(self, By::Process | By::Thread),
            // Gaps are always by queue.
            Part::Gaps => matches!(self, By::Process | By::Agent | By::Queue),
        }
    }
}

/// The groups that keep rows apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grouping {
    pub process: bool,
    pub agent: bool,
    pub queue: bool,
    pub stream: bool,
    pub thread: bool,
    /// There are several files. Ids of queues, streams and threads are of one process.
    has_files: bool,
}

impl Grouping {
    /// # Errors
    /// The records of a part cannot be grouped by one of these.
    pub fn new(by: &[By], parts: &[Part], files: usize) -> anyhow::Result<Grouping> {
        for &part in parts {
            if let Some(wrong) = by.iter().find(|by| !by.applies_to(part)) {
                let possible = By::value_variants().iter();
                let possible = possible.filter(|by| by.applies_to(part));
                let possible: Vec<String> = possible.map(|by| by.name()).collect();
                return Err(usage(format!(
                    "{} cannot be grouped by {}, only by {}: use another --by, or request them in another run",
                    part.noun(),
                    wrong.name(),
                    possible.join(", ")
                )));
            }
        }
        let has = |what| by.contains(&what);
        let of_process = has(By::Queue) || has(By::Stream) || has(By::Thread);
        Ok(Grouping {
            process: has(By::Process) || files > 1 && of_process,
            agent: has(By::Agent),
            queue: has(By::Queue),
            stream: has(By::Stream),
            thread: has(By::Thread),
            has_files: files > 1,
        })
    }

    /// The grouping of gaps.
    pub fn of_gaps(self) -> Grouping {
        Grouping {
            process: self.process || self.has_files,
            agent: true,
            queue: true,
            ..self
        }
    }

    /// The grouping of the busy time of GPUs.
    pub fn of_gpus(self) -> Grouping {
        Grouping {
            queue: false,
            ..self.of_gaps()
        }
    }
}

/// The ids by which the records of one file are grouped. Ids by which they are not are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ids {
    pub agent: u32,
    pub queue: u32,
    pub stream: u32,
    pub thread: u32,
}

impl Ids {
    pub fn of(grouping: Grouping, [agent, queue, stream, thread]: [u32; 4]) -> Ids {
        let only = |is_grouped, id: u32| if is_grouped { id } else { 0 };
        Ids {
            // A queue is of one agent, which is a part of its name.
            agent: only(grouping.agent || grouping.queue, agent),
            queue: only(grouping.queue, queue),
            stream: only(grouping.stream, stream),
            thread: only(grouping.thread, thread),
        }
    }
}

/// A process and the file that it wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Process {
    /// The number of the file on the command line, because processes on different hosts can have the same id.
    #[serde(skip)]
    pub number: usize,
    pub file: String,
    pub pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Rc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Rc<str>>,
}

impl Process {
    pub fn of(number: usize, file: &Path, trace: &Trace) -> Process {
        let record = trace.tables.process;
        let text = |id: Option<u32>| trace.tables.text(id?).map(Rc::from);
        Process {
            number,
            file: file.display().to_string(),
            pid: trace.header.pid.get(),
            host: text(record.map(|record| record.host.get())),
            command: text(record.map(|record| record.command.get())),
        }
    }

    fn label(&self) -> String {
        let program = self.command.as_deref().and_then(|command| {
            let path = command.split(' ').next()?;
            Path::new(path).file_name()?.to_str()
        });
        match program {
            Some(program) => format!("process {} ({program})", self.pid),
            None => format!("process {}", self.pid),
        }
    }
}

/// The GPU or CPU of an agent. The agents of several processes can be the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Agent {
    pub host: Option<Rc<str>>,
    /// See [`Trace::number`].
    pub number: Option<u32>,
    pub node: u32,
    pub name: Rc<str>,
}

impl Agent {
    pub fn of(id: u32, trace: &Trace) -> Agent {
        let tables = &trace.tables;
        let given = trace.given_name(named::AGENT, id.into());
        let name = trace.agent_name(id, given);
        let host = tables.process.map(|process| process.host.get());
        Agent {
            host: host.and_then(|id| tables.text(id)).map(Rc::from),
            number: trace.number(id),
            node: trace.node(id),
            name: name.into(),
        }
    }

    /// Adds the node to the name.
    pub fn name_with_node(&mut self) {
        self.name = format!("{} (node {})", self.name, self.node).into();
    }
}

/// The group of the rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    pub process: Option<Rc<Process>>,
    pub agent: Option<Agent>,
    pub queue: Option<u32>,
    /// Id and name.
    pub stream: Option<(u32, Rc<str>)>,
    pub thread: Option<(u32, Rc<str>)>,
}

impl Group {
    pub fn new(grouping: Grouping, ids: Ids, process: &Rc<Process>, trace: &Trace) -> Group {
        let Ids { stream, thread, .. } = ids;
        Group {
            process: grouping.process.then(|| process.clone()),
            agent: (grouping.agent || grouping.queue).then(|| Agent::of(ids.agent, trace)),
            queue: grouping.queue.then_some(ids.queue),
            stream: (grouping.stream).then(|| (stream, stream_name(stream, trace))),
            thread: (grouping.thread).then(|| (thread, thread_name(thread, trace))),
        }
    }

    /// The host of the agent or process.
    pub fn host(&self) -> Option<&str> {
        match &self.agent {
            Some(agent) => agent.host.as_deref(),
            None => self.process.as_ref()?.host.as_deref(),
        }
    }

    /// Its name for people. Empty if rows are not grouped.
    pub fn label(&self, has_hosts: bool) -> String {
        let process = self.process.as_deref();
        let parts = [
            self.host().filter(|_| has_hosts).map(str::to_owned),
            process.map(Process::label),
            self.agent.as_ref().map(|agent| agent.name.to_string()),
            self.queue.map(|queue| format!("queue {queue}")),
            self.stream.as_ref().map(|(_, name)| name.to_string()),
            self.thread.as_ref().map(|(_, name)| name.to_string()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn stream_name(id: u32, trace: &Trace) -> Rc<str> {
    match id {
        0 => "no stream".into(),
        id => trace.stream_name(id).into(),
    }
}

fn thread_name(id: u32, trace: &Trace) -> Rc<str> {
    match trace.given_name(named::THREAD, id.into()) {
        Some(name) => format!("thread {id} ({name})").into(),
        None => format!("thread {id}").into(),
    }
}
