//! The statistics as tables for terminals. Lines fit into 100 columns, except for long names, which are last.

use super::Report;
use super::rows::{Part, QueueGaps, Row, Section};
use super::series::Statistics;
use crate::color::Paint;
use crate::readable::{bandwidth, bytes, plural, short_time};
use crate::table::Table;

/// Significant digits of times.
const DIGITS: usize = 4;
/// The table of copies has more columns.
const FEW_DIGITS: usize = 3;

pub fn tables(report: &Report, colored: bool) -> String {
    let has_titles = report.tables.len() + usize::from(!report.queues.is_empty()) > 1;
    let mut texts = Vec::new();
    let title = |part| match has_titles {
        true => Paint::Heading.on(colored, title(part)) + "\n\n",
        false => String::new(),
    };
    for (part, sections) in &report.tables {
        // A warning has reported an empty table, except that of kernels.
        if sections.is_empty() && *part != Part::Kernels {
            continue;
        }
        texts.push(title(*part) + &table(*part, sections, report.has_hosts, colored));
    }
    if !report.queues.is_empty() {
        texts.push(title(Part::Gaps) + &gaps(report, colored));
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

fn headings(part: Part) -> &'static [&'static str] {
    match part {
        Part::Kernels => &[
            "Calls", "Total", "Mean", "Median", "Min", "Max", "StdDev", "Share", "Kernel",
        ],
        Part::Api => &[
            "Calls", "Total", "Mean", "Median", "Min", "Max", "StdDev", "Share", "Function",
        ],
        Part::Copies => &[
            "Copies",
            "Bytes",
            "Mean size",
            "Bandwidth",
            "Total",
            "Mean",
            "Median",
            "Min",
            "Max",
            "Direction",
        ],
        Part::Markers => &["Number", "Total", "Mean", "Median", "Min", "Max", "Marker"],
        Part::Gaps => &[
            "Gaps", "Total", "Mean", "Median", "Longest", "Share", "After",
        ],
    }
}

fn table(part: Part, sections: &[Section], has_hosts: bool, colored: bool) -> String {
    let left = [headings(part).len() - 1];
    let mut table = Table::new(headings(part), &left);
    for section in sections {
        let label = section.group.label(has_hosts);
        if !label.is_empty() {
            table.line(label);
        }
        rows(&mut table, part, section);
    }
    table.text(colored)
}

fn rows(table: &mut Table, part: Part, section: &Section) {
    for row in &section.rows {
        table.row(cells(part, row));
    }
    if let (count @ 1.., share) = section.left_out {
        let more = plural(count, "more row");
        table.line(match part {
            Part::Markers => more,
            _ => format!("{more}: {share:.1} % of the time"),
        });
    }
}

fn cells(part: Part, row: &Row) -> Vec<String> {
    let subject = &row.subject;
    let mut cells = vec![row.times.calls.to_string()];
    let digits = if part == Part::Copies {
        FEW_DIGITS
    } else {
        DIGITS
    };
    if part == Part::Copies {
        let size = (!subject.is_blit).then_some(row.bytes as f64);
        cells.extend([
            known(size.map(bytes)),
            known(row.mean_size().map(bytes)),
            known(row.bandwidth().map(bandwidth)),
        ]);
    }
    match subject.what {
        // A point in time.
        Some("mark") => cells.extend((0..5).map(|_| known(None))),
        _ => cells.extend(times(&row.times, digits)),
    }
    match part {
        Part::Kernels | Part::Api => {
            cells.push(short_time(row.times.deviation, digits));
            cells.push(share(row));
        }
        Part::Gaps => {
            // The shortest gap is of no interest.
            cells.remove(4);
            cells.push(share(row));
        }
        Part::Copies | Part::Markers => {}
    }
    cells.push(name(part, row));
    cells
}

/// Total, mean, median, minimum and maximum.
fn times(times: &Statistics, digits: usize) -> [String; 5] {
    let numbers = [
        times.total as f64,
        times.mean,
        times.median,
        times.min as f64,
        times.max as f64,
    ];
    numbers.map(|ns| short_time(ns, digits))
}

fn share(row: &Row) -> String {
    format!("{:.1} %", row.share)
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

fn name(part: Part, row: &Row) -> String {
    let subject = &row.subject;
    let name = match part {
        Part::Copies if !subject.is_blit => subject.name.replace('_', " "),
        _ => subject.name.to_string(),
    };
    let label = |agent: &Option<super::groups::Agent>| {
        let label = agent.as_ref().map(|agent| agent.name.to_string());
        label.unwrap_or_else(|| "unknown".into())
    };
    match (&subject.source, &subject.destination) {
        (None, None) if subject.is_blit => format!("{name} (blit)"),
        (None, None) => name,
        (None, Some(_)) if subject.is_blit => {
            format!("{name} (blit), {}", label(&subject.destination))
        }
        (None, Some(_)) if &*subject.name == "fill" => {
            format!("{name}, {}", label(&subject.destination))
        }
        (source, destination) => {
            format!("{name}, {} to {}", label(source), label(destination))
        }
    }
}

/// A table for each queue, then a line for each GPU.
fn gaps(report: &Report, colored: bool) -> String {
    let left = [headings(Part::Gaps).len() - 1];
    let mut table = Table::new(headings(Part::Gaps), &left);
    for (queue, section) in &report.queues {
        table.line(format!(
            "{}: {}",
            queue.group.label(report.has_hosts),
            idle(queue)
        ));
        rows(&mut table, Part::Gaps, section);
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
