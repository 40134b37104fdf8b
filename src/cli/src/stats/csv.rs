//! The statistics as comma-separated values.
//!
//! The first eight columns are as in rocprofv3's statistics files, in its order: `kernel_stats`, `hip_api_stats`,
//! `memory_copy_stats` and `marker_api_stats`. All versions of rocprofv3 that write `StdDev` have the same columns.
//! devprof's own columns follow. The sources are in rocprofiler-sdk's source/lib/output: `get_stats_output_file` in
//! generateCSV.cpp, statistics.hpp (the standard deviation of a sample) and domain_type.cpp (the names of files).
//!
//! Percentages are of the time of a group (`--by`). rocprofv3 has no groups, gaps or fills.

use super::part::Part;
use super::rows::{QueueGaps, Report, Row, Section};
use crate::csv::quoted;

const COLUMNS: &str = "Name Calls TotalDurationNs AverageNs Percentage MinNs MaxNs StdDev MedianNs";

/// The file of a table.
fn file(part: Part) -> &'static str {
    match part {
        Part::Kernels => "kernel_stats.csv",
        Part::Api => "hip_api_stats.csv",
        Part::Copies => "memory_copy_stats.csv",
        Part::Markers => "marker_api_stats.csv",
        Part::Gaps => "gap_stats.csv",
    }
}

/// The columns of a part after [`COLUMNS`].
fn columns(part: Part) -> &'static str {
    match part {
        Part::Kernels => "Blit BuildId",
        Part::Api => "",
        Part::Copies => "Bytes BytesPerSecond Source Destination",
        Part::Markers => "Kind",
        Part::Gaps => "BuildId QueueIdlePercentage",
    }
}

/// All tables, with the names of their files.
pub fn files(report: &Report) -> Vec<(&'static str, String)> {
    let tables = report.tables.iter().map(|(part, sections)| {
        let sections = sections.iter().map(|section| (section, None));
        (file(*part), table(*part, sections))
    });
    let mut files: Vec<_> = tables.collect();
    if let Some(queues) = report.queues.as_ref().filter(|queues| !queues.is_empty()) {
        let sections = queues.iter();
        let sections = sections.map(|(queue, section)| (section, Some(queue)));
        files.push((file(Part::Gaps), table(Part::Gaps, sections)));
    }
    files
}

/// The only table.
pub fn first(report: &Report) -> String {
    let table = files(report).into_iter().next();
    table.map(|(_, text)| text).unwrap_or_default()
}

fn table<'a>(
    part: Part,
    sections: impl Iterator<Item = (&'a Section, Option<&'a QueueGaps>)>,
) -> String {
    let sections: Vec<_> = sections.collect();
    let mut text = String::new();
    let headings = COLUMNS.split(' ').chain(columns(part).split_whitespace());
    let mut headings: Vec<String> = headings.map(quoted).collect();
    if let Some((section, _)) = sections.first() {
        let groups = groups(part, section, None).into_iter();
        headings.extend(groups.map(|(heading, _)| quoted(heading)));
    }
    text += &(headings.join(",") + "\n");
    for (section, queue) in sections {
        for row in &section.rows {
            let mut cells = cells(part, row);
            cells.extend(queue.map(|queue| format!("{:.6}", queue.idle_share())));
            let groups = groups(part, section, row.subject.host()).into_iter();
            cells.extend(groups.map(|(_, cell)| cell));
            text += &(cells.join(",") + "\n");
        }
    }
    text
}

/// The headings and cells of the groups. Copies always have a host: if they are not in a group with one, the host of
/// their agents.
fn groups(
    part: Part,
    section: &Section,
    host_of_copy: Option<&str>,
) -> Vec<(&'static str, String)> {
    let group = &section.group;
    let process = group.process.as_deref();
    let has_host = process.is_some() || group.agent.is_some() || part == Part::Copies;
    let host = group.host().or(host_of_copy).unwrap_or_default();
    let host = has_host.then_some(host);
    [
        ("Host", host.map(quoted)),
        ("Process", process.map(|process| process.pid.to_string())),
        (
            "Agent",
            group.agent.as_ref().map(|agent| quoted(&agent.name)),
        ),
        ("Queue", group.queue.map(|queue| queue.to_string())),
        (
            "Stream",
            group.stream.as_ref().map(|(_, text)| quoted(text)),
        ),
        (
            "Thread",
            group.thread.as_ref().map(|(_, text)| quoted(text)),
        ),
    ]
    .into_iter()
    .filter_map(|(heading, cell)| Some((heading, cell?)))
    .collect()
}

fn cells(part: Part, row: &Row) -> Vec<String> {
    let (times, subject) = (&row.times, &row.subject);
    let name = match part {
        Part::Copies if !subject.is_blit => operation(&subject.name),
        _ => subject.name.to_string(),
    };
    let mut cells = vec![
        quoted(&name),
        times.calls.to_string(),
        times.total.to_string(),
        format!("{:.6}", times.mean),
        format!("{:.6}", row.share),
        times.min.to_string(),
        times.max.to_string(),
        format!("{:.6}", times.deviation),
        format!("{:.1}", times.median),
    ];
    let build_id = || quoted(subject.build_id.as_deref().unwrap_or_default());
    match part {
        Part::Kernels => cells.extend([u8::from(subject.is_blit).to_string(), build_id()]),
        Part::Gaps => cells.push(build_id()),
        Part::Copies => {
            // The bytes of a blit kernel are not known.
            let bytes = (!subject.is_blit).then(|| row.bytes.to_string());
            cells.push(bytes.unwrap_or_default());
            let rate = row.bandwidth().map(|rate| format!("{rate:.0}"));
            cells.push(rate.unwrap_or_default());
            for agent in [&subject.source, &subject.destination] {
                let name = agent.as_ref().map(|agent| quoted(&agent.name));
                cells.push(name.unwrap_or_default());
            }
        }
        Part::Markers => cells.push(quoted(subject.what.unwrap_or_default())),
        Part::Api => {}
    }
    cells
}

/// The name of a direction in rocprofv3. It does not record fills.
fn operation(direction: &str) -> String {
    let kind = if direction == "fill" { "" } else { "COPY_" };
    format!("MEMORY_{kind}{}", direction.to_uppercase())
}
