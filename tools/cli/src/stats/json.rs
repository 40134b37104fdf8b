//! The statistics as one JSON object. Times are in nanoseconds, shares in percent.

use super::Report;
use super::groups::Group;
use super::rows::{Part, QueueGaps, Row, Section};
use super::series::Statistics;
use anyhow::Context;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::rc::Rc;

/// The times of a row.
#[derive(Serialize)]
struct Times {
    calls: u64,
    total: u64,
    mean: f64,
    median: f64,
    /// The median is at most 0.05 % off. See [`super::series`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    median_is_approximate: bool,
    min: u64,
    max: u64,
    stddev: f64,
}

impl Times {
    fn of(times: &Statistics) -> Times {
        Times {
            calls: times.calls,
            total: times.total,
            mean: times.mean,
            median: times.median,
            median_is_approximate: !times.has_exact_median,
            min: times.min,
            max: times.max,
            stddev: times.deviation,
        }
    }
}

/// What the rows of a group have in common.
#[derive(Serialize)]
struct Common<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
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
        let (process, agent) = (group.process.as_deref(), group.agent.as_ref());
        let host = match agent {
            Some(agent) => agent.host.as_deref(),
            None => process.and_then(|process| process.host.as_deref()),
        };
        Common {
            process: process.map(|process| process.pid),
            host,
            agent: agent.map(|agent| &*agent.name),
            node: agent.map(|agent| agent.node),
            queue: group.queue,
            stream: group.stream.as_ref().map(|(id, _)| *id),
            stream_name: group.stream.as_ref().map(|(_, name)| &**name),
            thread: group.thread.as_ref().map(|(id, _)| *id),
            thread_name: group.thread.as_ref().map(|(_, name)| &**name),
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    /// The kernel, function, direction or message.
    name: &'a str,
    /// A kernel with which HIP copies or fills.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    blit: bool,
    /// `mark`, `range` or `process range`.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'static str>,
    #[serde(flatten)]
    copied: Option<Copied<'a>>,
    #[serde(flatten)]
    times: Times,
    share: f64,
}

#[derive(Serialize)]
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
    fn of<'a>(part: Part, group: &'a Group, row: &'a Row) -> Line<'a> {
        let subject = &row.subject;
        let name = |agent: &'a Option<super::groups::Agent>| -> Option<&'a str> {
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
            common: Common::of(group),
            name: &subject.name,
            blit: subject.is_blit,
            what: subject.what,
            copied,
            times: Times::of(&row.times),
            share: row.share,
        }
    }
}

/// The gaps of a queue or of a GPU.
#[derive(Serialize)]
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
    times: Times,
    /// By the kernel that ran before.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Vec<Value>>,
}

impl Idle<'_> {
    fn of<'a>(queue: &'a QueueGaps, after: Option<Vec<Value>>) -> Idle<'a> {
        Idle {
            common: Common::of(&queue.group),
            busy: queue.busy,
            active: queue.active(),
            idle_share: queue.idle_share(),
            uncounted: queue.uncounted,
            late: queue.late,
            times: Times::of(&queue.all),
            after,
        }
    }
}

pub fn text(report: &Report) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(&object(report)?);
    Ok(text.context("cannot write JSON")? + "\n")
}

fn object(report: &Report) -> anyhow::Result<Value> {
    let mut object = Map::new();
    let mut insert = |key: &str, value| object.insert(key.into(), value);
    let mut left_out = Map::new();
    let mut untimed = Map::new();
    for (part, sections) in &report.tables {
        let rows = sections.iter().flat_map(|section| lines(*part, section));
        insert(key(*part), rows.collect());
        let count: usize = sections.iter().map(|section| section.left_out.0).sum();
        left_out.insert(key(*part).into(), count.into());
        if *part != Part::Kernels {
            let count = report.totals.untimed.get(part).copied();
            untimed.insert(key(*part).into(), count.unwrap_or_default().into());
        }
    }
    if !report.queues.is_empty() {
        let queues = report.queues.iter().map(|(queue, section)| {
            let after = lines(Part::Gaps, section).map(|mut row| {
                if let Value::Object(fields) = &mut row {
                    // The queue has them.
                    let common = ["process", "host", "agent", "node", "queue"];
                    common.iter().for_each(|&field| drop(fields.remove(field)));
                }
                row
            });
            json!(Idle::of(queue, Some(after.collect())))
        });
        insert(key(Part::Gaps), queues.collect());
        let gpus = report.totals.gpu_gaps.iter();
        insert("gpus", gpus.map(|gpu| json!(Idle::of(gpu, None))).collect());
    }
    let processes: Vec<_> = report.totals.processes.iter().map(Rc::as_ref).collect();
    insert("processes", json!(processes));
    insert("left_out", left_out.into());
    insert("untimed", untimed.into());
    insert("dispatches", report.dispatches.into());
    insert("unfinished", report.unfinished.into());
    insert("without_times", report.without_times.into());
    insert("backwards", report.backwards.into());
    Ok(object.into())
}

fn key(part: Part) -> &'static str {
    match part {
        Part::Kernels => "kernels",
        Part::Api => "api",
        Part::Copies => "copies",
        Part::Markers => "markers",
        Part::Gaps => "gaps",
    }
}

fn lines(part: Part, section: &Section) -> impl Iterator<Item = Value> {
    let rows = section.rows.iter();
    rows.map(move |row| json!(Line::of(part, &section.group, row)))
}
