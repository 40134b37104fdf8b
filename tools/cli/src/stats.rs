//! `devprof stats`: which kernels took the time. Kernels are the same when their names are, also on several agents.

use crate::export::{csv, source};
use crate::names::Naming;
use crate::{Console, Ink};
use clap::Args;
use serde::Serialize;
use source::{Record, Tell, Trace, Untimed};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;

#[derive(Args)]
pub struct Options {
    /// The trace file, as DEVPROF_TRACE named it
    file: PathBuf,
    /// One JSON object, times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Comma-separated values, times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    naming: Naming,
}

/// What the dispatches of one kernel took, in nanoseconds.
#[derive(Debug, Serialize)]
struct Row {
    name: Rc<str>,
    calls: u64,
    total: u64,
    mean: u64,
    min: u64,
    max: u64,
    /// Of the time of all kernels, per cent.
    share: f64,
}

#[derive(Serialize)]
struct Report {
    kernels: Vec<Row>,
    dispatches: u64,
    /// These are in no row.
    unfinished: u64,
    without_times: u64,
    backwards: u64,
}

impl Row {
    fn new(name: Rc<str>) -> Row {
        Row {
            name,
            calls: 0,
            total: 0,
            mean: 0,
            min: u64::MAX,
            max: 0,
            share: 0.0,
        }
    }

    fn add(&mut self, duration: u64) {
        self.calls += 1;
        self.total = self.total.saturating_add(duration);
        self.min = self.min.min(duration);
        self.max = self.max.max(duration);
    }
}

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let mut rows: HashMap<Rc<str>, Row> = HashMap::new();
    let take = |record: &Record, trace: &mut Trace| {
        if let Record::Dispatch(dispatch) = record
            && let Ok(duration) = trace.duration(dispatch)
        {
            let name = trace.kernel(dispatch.kernel.get());
            let row = rows
                .entry(name)
                .or_insert_with_key(|name| Row::new(name.clone()));
            row.add(duration);
        }
        Ok(())
    };
    let (_, summary) = source::read(
        &options.file,
        options.naming,
        Tell::Problems,
        console.say,
        take,
    )?;
    let untimed = |why| summary.untimed.get(&why).copied().unwrap_or_default();
    let report = Report {
        kernels: ranked(rows.into_values().collect()),
        dispatches: summary.dispatches,
        unfinished: untimed(Untimed::Unfinished),
        without_times: untimed(Untimed::NoClock),
        backwards: untimed(Untimed::Backwards),
    };
    let text = if options.json {
        serde_json::to_string_pretty(&report).map_err(|e| e.to_string())? + "\n"
    } else if options.csv {
        comma_separated(&report.kernels)
    } else {
        table(&report.kernels, console.colors.out)
    };
    console.print(&text)?;
    Ok(summary.status())
}

/// By total time, the longest first, with means and shares.
fn ranked(mut rows: Vec<Row>) -> Vec<Row> {
    let all: u128 = rows.iter().map(|row| u128::from(row.total)).sum();
    for row in &mut rows {
        row.mean = row.total / row.calls.max(1);
        row.share = 100.0 * row.total as f64 / all.max(1) as f64;
    }
    rows.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn comma_separated(rows: &[Row]) -> String {
    let mut text = String::from("Name,Calls,Total,Mean,Min,Max,Share\n");
    for row in rows {
        let name = csv::quoted(&row.name);
        let Row {
            calls,
            total,
            mean,
            min,
            max,
            share,
            ..
        } = row;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name},{calls},{total},{mean},{min},{max},{share:.4}");
    }
    text
}

fn table(rows: &[Row], colored: bool) -> String {
    let heads = ["Calls", "Total", "Mean", "Min", "Max", "Share", "Kernel"].map(String::from);
    let mut cells = vec![heads];
    cells.extend(rows.iter().map(|row| {
        [
            row.calls.to_string(),
            readable(row.total),
            readable(row.mean),
            readable(row.min),
            readable(row.max),
            format!("{:.1} %", row.share),
            row.name.to_string(),
        ]
    }));
    let width = |column: usize| cells.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (n, cells) in cells.iter().enumerate() {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(line, "{}{cell}  ", " ".repeat(width - cell.chars().count()));
        }
        line += &cells[6];
        let line = Ink::Heading.on(colored && n == 0, &line);
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Nanoseconds in the unit that leaves one to three digits before the point.
pub fn readable(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    match units.iter().find(|(size, _)| ns >= *size) {
        Some((size, unit)) => format!("{:.3} {unit}", ns as f64 / *size as f64),
        None => format!("{ns} ns"),
    }
}
