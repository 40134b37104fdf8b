//! The statistics as tables for terminals. Lines fit into 100 columns, except for long names, which are last.

use super::groups::Agent;
use super::part::Part;
use super::rows::{QueueGaps, Report, Row, Section};
use crate::color::Paint;
use crate::readable::{bandwidth, bytes, plural, short_time};
use crate::table::Table;

/// Significant digits of times.
const DIGITS: usize = 4;
/// The table of copies has more columns.
const FEW_DIGITS: usize = 3;

pub fn tables(report: &Report, colored: bool) -> String {
    let queues = report.queues.as_deref().unwrap_or_default();
    let has_titles = report.tables.len() + usize::from(!queues.is_empty()) > 1;
    let mut texts = Vec::new();
    let title = |part| {
        let title = has_titles.then(|| Paint::Heading.on(colored, title(part)) + "\n\n");
        title.unwrap_or_default()
    };
    for (part, sections) in &report.tables {
        // A warning has reported an empty table, unless it is the table of kernels.
        if sections.is_empty() && *part != Part::Kernels {
            continue;
        }
        texts.push(title(*part) + &table(*part, sections, report.has_hosts, colored));
    }
    if !queues.is_empty() {
        texts.push(title(Part::Gaps) + &gaps(report, queues, colored));
    }
    texts.join("\n")
}

fn title(part: Part) -> &'static str {
    match part {
        Part::Kernels => "KERNELS",
        Part::Api => "API CALLS",
        Part::Copies => "COPIES AND FILLS",
        Part::Markers => "MARKERS",
        Part::Gaps => "GAPS BETWEEN KERNELS",
    }
}

/// The headings of a table's columns. Names, which are last, are aligned to the left.
fn headings(part: Part) -> Vec<&'static str> {
    let headings = match part {
        Part::Kernels => "Calls Total Mean Median Min Max StdDev Share Kernel",
        Part::Api => "Calls Total Mean Median Min Max StdDev Share Function",
        Part::Copies => "Copies Bytes Bandwidth Total Mean Median Max StdDev Share Direction",
        Part::Markers => "Number Total Mean Median Min Max StdDev Share Marker",
        Part::Gaps => "Gaps Total Mean Median Longest Share After",
    };
    headings.split(' ').collect()
}

fn table(part: Part, sections: &[Section], has_hosts: bool, colored: bool) -> String {
    let headings = headings(part);
    let left = [headings.len() - 1];
    let mut table = Table::new(&headings, &left);
    for section in sections {
        let label = section.group.label(has_hosts);
        if !label.is_empty() {
            table.group(label);
        }
        rows(&mut table, part, section, has_hosts);
    }
    table.text(colored)
}

fn rows(table: &mut Table, part: Part, section: &Section, has_hosts: bool) {
    // The group's label has the host of its process.
    let has_hosts = has_hosts && section.group.process.is_none();
    for row in &section.rows {
        table.row(cells(part, row, has_hosts));
    }
    if let (count @ 1.., share) = section.left_out {
        let more = plural(count, "more row");
        table.line(format!("{more}: {share:.1} % of the time"));
    }
}

fn cells(part: Part, row: &Row, has_hosts: bool) -> Vec<String> {
    let (subject, times) = (&row.subject, &row.times);
    let digits = match part {
        Part::Copies => FEW_DIGITS,
        _ => DIGITS,
    };
    // A mark is a point in time.
    let has_times = subject.what != Some("mark");
    let time = |ns| known(has_times.then(|| short_time(ns, digits)));
    let mut cells = vec![times.calls.to_string()];
    if part == Part::Copies {
        let size = (!subject.is_blit).then_some(row.bytes as f64);
        cells.extend([
            known(size.map(bytes)),
            known(row.bandwidth().map(bandwidth)),
        ]);
    }
    cells.extend([
        time(times.total as f64),
        time(times.mean),
        time(times.median),
    ]);
    // The shortest gap is of no interest, and with the shortest copy the table would be too wide.
    if !matches!(part, Part::Copies | Part::Gaps) {
        cells.push(time(times.min as f64));
    }
    cells.push(time(times.max as f64));
    if part != Part::Gaps {
        cells.push(time(times.deviation));
    }
    cells.push(known(has_times.then(|| format!("{:.1} %", row.share))));
    cells.push(name(part, row, has_hosts));
    cells
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

fn name(part: Part, row: &Row, has_hosts: bool) -> String {
    let subject = &row.subject;
    let mut name = match part {
        Part::Copies if !subject.is_blit => subject.name.replace('_', " "),
        _ => subject.name.to_string(),
    };
    if subject.is_blit {
        name += " (blit)";
    }
    if let Some(short_id) = &row.short_id {
        name += &format!(" [{short_id}]");
    }
    let label = |agent: &Option<Agent>| match agent {
        Some(agent) => agent.name.to_string(),
        None => "unknown".into(),
    };
    let has_source = !subject.is_blit && &*subject.name != "fill";
    match (&subject.source, &subject.destination) {
        (None, None) => {}
        (None, destination) if !has_source => name += &format!(", {}", label(destination)),
        (source, destination) => {
            name += &format!(", {} to {}", label(source), label(destination));
        }
    }
    if let Some(host) = subject.host().filter(|_| has_hosts) {
        name += &format!(" on {host}");
    }
    name
}

/// A table for each queue, then a line for each GPU.
fn gaps(report: &Report, queues: &[(QueueGaps, Section)], colored: bool) -> String {
    let headings = headings(Part::Gaps);
    let left = [headings.len() - 1];
    let mut table = Table::new(&headings, &left);
    for (queue, section) in queues {
        let label = queue.group.label(report.has_hosts);
        table.group(format!("{label}: {}", idle(queue)));
        rows(&mut table, Part::Gaps, section, report.has_hosts);
    }
    let mut text = table.text(colored) + "\n";
    for gpu in &report.totals.gpu_gaps {
        let label = gpu.group.label(report.has_hosts);
        text += &match gpu.late {
            0 => format!("{label}: {}\n", busy(gpu)),
            late => format!("{label}: {}\n", overtaken(late)),
        };
    }
    text
}

/// How long a GPU was busy.
fn busy(gpu: &QueueGaps) -> String {
    let mut text = format!(
        "busy {:.1} % of {}",
        100.0 - gpu.idle_share(),
        short_time(gpu.active() as f64, DIGITS)
    );
    if gpu.uncounted > 0 {
        let gaps = plural(gpu.uncounted as usize, "gap");
        text += &format!(", {gaps} not counted");
    }
    text
}

fn overtaken(late: u64) -> String {
    let late = plural(late as usize, "dispatch");
    format!("busy time not known, because {late} came too late in the file")
}

/// How long a queue was idle.
fn idle(queue: &QueueGaps) -> String {
    let mut text = format!(
        "idle {:.1} % of {}, {}",
        queue.idle_share(),
        short_time(queue.active() as f64, DIGITS),
        plural(queue.all.calls as usize, "gap"),
    );
    if queue.all.calls > 0 {
        let median = short_time(queue.all.median, DIGITS);
        text += &format!(", median {median}");
    }
    if queue.uncounted > 0 {
        text += &format!(", {} not counted", queue.uncounted);
    }
    if queue.late > 0 {
        text += &format!(", {} too late", plural(queue.late as usize, "dispatch"));
    }
    text
}
