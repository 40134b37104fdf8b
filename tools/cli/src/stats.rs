//! `devprof stats`: the time that each kernel took. Kernels with the same name are one kernel, on any agent.

use crate::Console;
use crate::exit::Outcome;
use crate::export::{csv, source};
use crate::names::Naming;
use crate::readable;
use crate::table::Table;
use anyhow::Context;
use clap::Args;
use serde::Serialize;
use source::{Checks, Record, Trace, Untimed};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;

#[derive(Args)]
pub struct Options {
    /// The trace file that DEVPROF_TRACE or `devprof run --trace` named
    file: PathBuf,
    /// Print one JSON object, with times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values, with times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    naming: Naming,
}

/// The durations of one kernel's dispatches, in nanoseconds.
#[derive(Debug, Serialize)]
struct Row {
    name: Rc<str>,
    calls: u64,
    total: u64,
    mean: u64,
    min: u64,
    max: u64,
    /// Percentage of the time of all kernels.
    share: f64,
}

#[derive(Serialize)]
struct Report {
    kernels: Vec<Row>,
    dispatches: u64,
    /// The following dispatches are in no row.
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

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
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
        Checks::Records,
        console,
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
        serde_json::to_string_pretty(&report).context("cannot write JSON")? + "\n"
    } else if options.csv {
        comma_separated(&report.kernels)
    } else {
        table(&report.kernels, console.colors.stdout)
    };
    console.print(&text)?;
    Ok(summary.outcome())
}

/// Sorts by total time, longest first, and computes means and shares.
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
    let headings = ["Calls", "Total", "Mean", "Min", "Max", "Share", "Kernel"];
    let mut table = Table::new(&headings, &[6]);
    for row in rows {
        table.row([
            row.calls.to_string(),
            readable::time(row.total),
            readable::time(row.mean),
            readable::time(row.min),
            readable::time(row.max),
            format!("{:.1} %", row.share),
            row.name.to_string(),
        ]);
    }
    table.text(colored)
}
