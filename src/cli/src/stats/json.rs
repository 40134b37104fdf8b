//! The statistics as one JSON object. Times are in nanoseconds, shares in percent.

use super::groups::{Agent, Group, Process};
use super::part::Part;
use super::rows::{QueueGaps, Report, Row, Section};
use super::series::Statistics;
use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The version of the format. Incremented with every incompatible change.
const VERSION: u32 = 1;

/// The statistics of traces. Times are in nanoseconds. New fields may be added without a new version.
// Rows are at the end, because there can be many.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "devprof stats --json")]
pub struct Object<'a> {
    #[schemars(extend("const" = "devprof stats"))]
    format: &'static str,
    #[schemars(extend("const" = VERSION))]
    version: u32,
    processes: Vec<&'a Process>,
    dispatches: u64,
    unfinished: u64,
    without_times: u64,
    backwards: u64,
    /// Other records without times, by table.
    untimed: BTreeMap<&'static str, u64>,
    /// Rows that `--top` left out, by table.
    left_out: BTreeMap<&'static str, usize>,
    #[serde(flatten)]
    tables: Tables<'a>,
}

/// The tables that were requested.
#[derive(Default, Serialize, JsonSchema)]
struct Tables<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Vec<Line<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<Vec<Line<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<Vec<Line<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    markers: Option<Vec<Line<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gaps: Option<Vec<Idle<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<Vec<Idle<'a>>>,
}

/// The properties that the rows of a group share.
#[derive(Default, Serialize, JsonSchema)]
struct Common<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    /// The number of the GPU: HIP's or CUDA's.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_name: Option<&'a str>,
}

impl Common<'_> {
    fn of(group: &Group) -> Common<'_> {
        let agent = group.agent.as_ref();
        Common {
            process: group.process.as_ref().map(|process| process.pid),
            host: group.host(),
            agent: agent.map(|agent| &*agent.name),
            gpu: agent.and_then(|agent| agent.number),
            node: agent.map(|agent| agent.node),
            queue: group.queue,
            stream: group.stream.as_ref().map(|(id, _)| *id),
            stream_name: group.stream.as_ref().map(|(_, name)| &**name),
            thread: group.thread.as_ref().map(|(id, _)| *id),
            thread_name: group.thread.as_ref().map(|(_, name)| &**name),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Line<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    /// The kernel, function, direction or message.
    name: &'a str,
    /// The build ID of a kernel's code object in hexadecimal. Kernels with the same name in several code objects have several rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<&'a str>,
    /// A kernel with which HIP copies or fills.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    blit: bool,
    /// The kind of a marker.
    #[schemars(extend("enum" = ["mark", "range", "process range"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'static str>,
    #[serde(flatten)]
    #[serde(skip_serializing_if = "Option::is_none")]
    copied: Option<Copied<'a>>,
    #[serde(flatten)]
    times: &'a Statistics,
    share: f64,
}

#[derive(Serialize, JsonSchema)]
struct Copied<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    /// For a blit kernel, the GPU on which it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a str>,
    /// A blit kernel has no number of bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_size: Option<f64>,
    /// Bytes per second of copy time.
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth: Option<f64>,
}

impl Line<'_> {
    fn of<'a>(part: Part, common: Common<'a>, row: &'a Row) -> Line<'a> {
        let subject = &row.subject;
        let name = |agent: &'a Option<Agent>| -> Option<&'a str> {
            agent.as_ref().map(|agent| &*agent.name)
        };
        let copied = (part == Part::Copies).then(|| Copied {
            source: name(&subject.source),
            destination: name(&subject.destination),
            bytes: (!subject.is_blit).then_some(row.bytes),
            mean_size: row.mean_size(),
            bandwidth: row.bandwidth(),
        });
        Line {
            common: Common {
                host: common.host.or(subject.host()),
                ..common
            },
            name: &subject.name,
            build_id: subject.build_id.as_deref(),
            blit: subject.is_blit,
            what: subject.what,
            copied,
            times: &row.times,
            share: row.share,
        }
    }
}

/// The gaps of a queue or of a GPU.
#[derive(Serialize, JsonSchema)]
struct Idle<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    /// How long kernels ran.
    busy: u64,
    /// How long kernels ran, plus the gaps.
    active: u64,
    /// The share of the gaps in `active`, in percent.
    idle_share: f64,
    /// Gaps that are not in the other numbers, because something unknown may have run in them.
    uncounted: u64,
    /// Dispatches that too many later ones have overtaken: gaps before them may be too long. See [`super::gaps`].
    late: u64,
    #[serde(flatten)]
    times: &'a Statistics,
    /// By the kernel that ran before.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Vec<Line<'a>>>,
}

impl Idle<'_> {
    fn of<'a>(queue: &'a QueueGaps, after: Option<&'a Section>) -> Idle<'a> {
        // The properties that the rows share are in the queue's object.
        let line = |row| Line::of(Part::Gaps, Common::default(), row);
        Idle {
            common: Common::of(&queue.group),
            busy: queue.busy,
            active: queue.active(),
            idle_share: queue.idle_share(),
            uncounted: queue.uncounted,
            late: queue.late,
            times: &queue.all,
            after: after.map(|section| section.rows.iter().map(line).collect()),
        }
    }
}

pub fn text(report: &Report) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(&object(report));
    Ok(text.context("cannot write JSON")? + "\n")
}

fn object(report: &Report) -> Object<'_> {
    let mut tables = Tables::default();
    let mut untimed = BTreeMap::new();
    let mut left_out = BTreeMap::new();
    for (part, sections) in &report.tables {
        let (key, table) = match part {
            Part::Kernels => ("kernels", &mut tables.kernels),
            Part::Api => ("api", &mut tables.api),
            Part::Copies => ("copies", &mut tables.copies),
            Part::Markers => ("markers", &mut tables.markers),
            Part::Gaps => continue,
        };
        let rows = sections.iter().flat_map(|section| lines(*part, section));
        *table = Some(rows.collect());
        left_out.insert(key, sections.iter().map(|section| section.left_out.0).sum());
        if *part != Part::Kernels {
            let count = report.totals.untimed.get(part).copied();
            untimed.insert(key, count.unwrap_or_default());
        }
    }
    if let Some(queues) = &report.queues {
        let queues = queues.iter();
        let queues = queues.map(|(queue, section)| Idle::of(queue, Some(section)));
        tables.gaps = Some(queues.collect());
        let gpus = report.totals.gpu_gaps.iter();
        tables.gpus = Some(gpus.map(|gpu| Idle::of(gpu, None)).collect());
    }
    Object {
        format: "devprof stats",
        version: VERSION,
        processes: report.totals.processes.iter().map(Rc::as_ref).collect(),
        dispatches: report.dispatches,
        unfinished: report.unfinished,
        without_times: report.without_times,
        backwards: report.backwards,
        untimed,
        left_out,
        tables,
    }
}

fn lines(part: Part, section: &Section) -> impl Iterator<Item = Line<'_>> {
    let rows = section.rows.iter();
    rows.map(move |row| Line::of(part, Common::of(&section.group), row))
}
