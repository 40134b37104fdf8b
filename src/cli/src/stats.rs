//! `devprof stats`: the times of kernels, API calls, copies and markers, and the gaps between kernels. Records with the
//! same name are one row, even if they are from several processes, unless `--by` keeps them apart.

mod collect;
mod csv;
mod gaps;
mod groups;
mod json;
mod part;
mod rows;
mod series;
mod text;

pub use json::Object;

use crate::console::Console;
use crate::exit::{Outcome, usage};
use crate::names::Naming;
use crate::readable::plural;
use crate::trace_reader::inputs::Inputs;
use crate::trace_reader::{self, Checks, Record, Request, Selection, Summary, Trace, Untimed};
use crate::{outfile, traces};
use anyhow::{Context, bail};
use clap::Args;
use collect::Collector;
use groups::{By, Grouping};
use part::Part;
use rows::{QueueGaps, Report, Totals};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// The traces that DEVPROF_TRACE or `devprof run --trace` named: files, directories or patterns. Rows add up over all files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The times of kernels (the default). HIP's kernels that copy and fill have the mark (blit)
    #[arg(long)]
    kernels: bool,
    /// The times of API calls
    #[arg(long)]
    api: bool,
    /// The times, bytes and bandwidths of copies and fills
    #[arg(long)]
    copies: bool,
    /// The times of markers (roctx, NVTX)
    #[arg(long)]
    markers: bool,
    /// The gaps between kernels of each queue, and the kernels after which they were
    #[arg(long)]
    gaps: bool,
    /// Keep the rows of each of these apart
    #[arg(long, value_enum, value_delimiter = ',', value_name = "GROUPS")]
    by: Vec<By>,
    /// Only the N rows with the longest total times, of each group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Print one JSON object, with times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values: the columns of rocprofv3's statistics, then devprof's
    #[arg(long)]
    csv: bool,
    /// Write comma-separated values to this directory, one file per table; - for stdout, as --csv
    #[arg(short, long, value_name = "DIR", conflicts_with = "json")]
    output: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    naming: Naming,
}

impl Options {
    fn parts(&self) -> Vec<Part> {
        let chosen = [
            (self.kernels, Part::Kernels),
            (self.api, Part::Api),
            (self.copies, Part::Copies),
            (self.markers, Part::Markers),
            (self.gaps, Part::Gaps),
        ];
        let chosen = chosen.into_iter().filter(|(is_chosen, _)| *is_chosen);
        let parts: Vec<Part> = chosen.map(|(_, part)| part).collect();
        if parts.is_empty() {
            return vec![Part::Kernels];
        }
        parts
    }

    /// The directory to write to.
    fn directory(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|output| !outfile::is_stdout(output))
    }

    /// Whether to print one table as comma-separated values.
    fn prints_csv(&self) -> bool {
        self.directory().is_none() && (self.csv || self.output.is_some())
    }

    /// # Errors
    /// The options do not fit together.
    fn check(&self, parts: &[Part]) -> anyhow::Result<()> {
        if self.prints_csv() && parts.len() > 1 {
            return Err(usage(
                "--csv and -o - print one table only: write one file per table with -o DIR",
            ));
        }
        if parts.contains(&Part::Gaps) && self.selection.has_kernels() {
            return Err(usage(
                "the gaps are between all kernels: request them without --kernel and --exclude-kernel",
            ));
        }
        if parts.contains(&Part::Gaps) && self.selection.windows() > 1 {
            return Err(usage(
                "the gaps are between kernels of one window: request them with one --time",
            ));
        }
        Ok(())
    }

    /// The records to read from each file. Windows are relative to the start of the first trace.
    fn requests(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Request<'_>>> {
        let (selection, naming) = (&self.selection, self.naming);
        if selection.windows() == 0 {
            return Ok(vec![Request::new(selection, naming); files.len()]);
        }
        let inputs = Inputs::read(files.to_vec())?;
        let requests = inputs.all.iter();
        let requests = requests.map(|input| input.request(selection, naming));
        Ok(requests.collect())
    }
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let parts = options.parts();
    options.check(&parts)?;
    let files = traces::expand(&options.files)?;
    let grouping = Grouping::new(&options.by, &parts, files.len())?;
    let mut totals = Totals::default();
    let mut summaries = Vec::new();
    let requests = options.requests(&files)?;
    for (number, (file, request)) in files.iter().zip(requests).enumerate() {
        let mut collector = Collector::new(&parts, grouping);
        let take = |record: &Record, trace: &mut Trace| {
            collector.record(record, trace);
            Ok(())
        };
        let (mut trace, summary) =
            trace_reader::read(file, request, Checks::Records, console, take)?;
        warn_about_untimed(file, &parts, &collector, console);
        collector.finish(number, file, &mut trace, &mut totals);
        summaries.push(summary);
    }
    check_rows(options, &parts, files.len(), &totals, console)?;
    totals.name_gpus();
    if totals.gpus.len() <= 1 && !grouping.agent {
        totals.join_routes();
    }
    let report = report(&parts, totals, &summaries, options.top);
    match options.directory() {
        Some(dir) => write_csv(&report, dir, console)?,
        None => {
            let text = if options.json {
                json::text(&report)?
            } else if options.prints_csv() {
                csv::first(&report)
            } else {
                text::tables(&report, console.colors.stdout)
            };
            console.print(&text)?;
        }
    }
    let is_complete = summaries.iter().all(|summary| !summary.is_damaged);
    Ok(Outcome::of(is_complete))
}

fn report(parts: &[Part], mut totals: Totals, summaries: &[Summary], top: Option<u32>) -> Report {
    let top = top.map(|top| top as usize);
    let rows = parts.iter().filter(|&&part| part != Part::Gaps);
    let tables = rows.map(|&part| (part, totals.sections(part, top)));
    let tables = tables.collect();
    let mut queues = std::mem::take(&mut totals.queues);
    queues.retain(|queue| queue.has_kernels);
    queues.sort_by(|a, b| a.group.cmp(&b.group));
    totals.gpu_gaps.retain(|gpu| gpu.has_kernels);
    totals.gpu_gaps.sort_by(|a, b| a.group.cmp(&b.group));
    let with_rows = |mut queue: QueueGaps| {
        let section = queue.section(top);
        (queue, section)
    };
    let untimed = |why| {
        let counts = summaries.iter().map(|summary| &summary.untimed);
        counts.filter_map(|untimed| untimed.get(&why)).sum()
    };
    Report {
        tables,
        queues: parts
            .contains(&Part::Gaps)
            .then(|| queues.into_iter().map(with_rows).collect()),
        has_hosts: totals.has_hosts(),
        totals,
        dispatches: summaries.iter().map(|summary| summary.dispatches).sum(),
        unfinished: untimed(Untimed::Unfinished),
        without_times: untimed(Untimed::NoClock),
        backwards: untimed(Untimed::Backwards),
    }
}

/// Reports the records of a file that are in no row. [`trace_reader::read`] reports dispatches and copies.
fn warn_about_untimed(file: &Path, parts: &[Part], collector: &Collector, console: &mut Console) {
    for part in parts {
        let (noun, why) = match part {
            Part::Kernels | Part::Gaps | Part::Copies => continue,
            Part::Api => ("API call", "with an end before the start"),
            Part::Markers => ("range", "that did not end"),
        };
        if let Some(&count) = collector.untimed.get(part) {
            let count = plural(count as usize, noun);
            console.warn(format!("{}: {count} {why}: left out", file.display()));
        }
    }
}

/// Reports data that the traces do not have.
///
/// # Errors
/// No requested data is in them.
fn check_rows(
    options: &Options,
    parts: &[Part],
    files: usize,
    totals: &Totals,
    console: &mut Console,
) -> anyhow::Result<()> {
    let traces = match files {
        1 => "the trace has",
        _ => "the traces have",
    };
    let selection = &options.selection;
    let is_selected = selection.has_kernels() || selection.windows() > 0;
    let missing = parts.iter().filter_map(|&part| {
        let next = match part {
            _ if totals.has_rows(part) => return None,
            Part::Kernels if is_selected => {
                "no such kernels: change --kernel, --exclude-kernel or --time"
            }
            _ if selection.windows() > 0 => {
                return Some(format!(
                    "{traces} no {} at these times: change --time",
                    part.noun()
                ));
            }
            // The empty table shows this.
            Part::Kernels => return None,
            Part::Api => {
                "no API calls: record launches with devprof run --trace, all calls with --trace-api"
            }
            Part::Copies => "no copies: record them with devprof run --trace-copies",
            Part::Markers => "no markers: record them with devprof run --trace-markers",
            Part::Gaps => "no kernels with times, and therefore no gaps between them",
        };
        Some(format!("{traces} {next}"))
    });
    let missing: Vec<String> = missing.collect();
    if missing.len() == parts.len() {
        bail!("{}", missing.join("; "));
    }
    missing.into_iter().for_each(|what| console.warn(what));
    Ok(())
}

/// Writes one file per table.
fn write_csv(report: &Report, dir: &Path, console: &mut Console) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for (name, text) in csv::files(report) {
        let out = dir.join(name);
        outfile::write(&out, |out| out.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", out.display()))?;
        let rows = plural(text.lines().count() - 1, "row");
        outfile::print_summary(console, &out, &format!("{}: {rows}", out.display()))?;
    }
    Ok(())
}
