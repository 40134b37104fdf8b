//! `devprof report`: shows which source lines ran on the GPUs.
//!
//! [`objects`] extracts the code objects with a coverage mapping from the binaries, `merge` merges the profiles of each
//! architecture, [`plan`] assigns profiles to code objects, [`column_data`] runs llvm-cov on each code object with its
//! profile, and [`build`] combines the results with the trace in a [`model`]. There is one module per output format.

mod build;
mod column_data;
mod html;
mod lcov;
mod lines;
mod llvm_cov;
mod mapping;
mod model;
mod notes;
mod objects;
mod output;
mod plan;
mod source;
mod text;
mod trace;

use crate::exit::{Outcome, usage};
use crate::merge::{self, Arch};
use crate::names::Naming;
use crate::{Console, llvm, progress};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use column_data::ColumnData;
use model::Report;
use notes::Notes;
use objects::{Object, Objects};
use source::Finder;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
// --profile takes several values, so a binary after it would be parsed as a profile.
#[command(override_usage = "devprof report [OPTIONS] <BINARY>... --profile <FILE>...")]
pub struct Options {
    /// The programs, libraries or code objects that ran, compiled with the flags of `devprof flags --coverage`
    #[arg(required = true, value_name = "BINARY")]
    binaries: Vec<PathBuf>,
    /// Their profiles: raw (.profraw), a directory of raw ones, a pattern (*, ?), or merged (.profdata)
    ///
    /// The architecture of a raw profile is part of its name (gfx1100.default.profraw). A merged profile does not
    /// distinguish architectures, unless it has a name as `devprof merge --by-arch` writes it (OUT.gfx1100.profdata).
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    profile: Vec<PathBuf>,
    /// The trace of the same run (DEVPROF_TRACE), to show calls and times of all kernels, instrumented or not
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The formats to write [default: text, or html with --output]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT")]
    format: Vec<Format>,
    /// The directory to write to: a new one, or that of an earlier report, which is replaced
    ///
    /// Html writes index.html and other pages, lcov writes coverage.lcov (all architectures) and one file per
    /// architecture, json writes report.json, and text is printed to stdout.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Include the host code of the binaries, from the profiles of the host
    #[arg(long)]
    host: bool,
    /// Search this directory for sources that are not at the paths at which they were compiled
    #[arg(long, value_name = "DIR")]
    sources_from: Vec<PathBuf>,
    /// Replace the prefix FROM of source paths with TO
    #[arg(long, value_name = "FROM=TO", value_parser = path_map)]
    path_map: Vec<(String, String)>,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    llvm: llvm::Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Format {
    /// Kernels, files, and notes about the numbers
    Text,
    /// Pages that need no server; the first is index.html
    Html,
    /// For genhtml and other tools that read LCOV's tracefiles
    Lcov,
    /// All data, for programs
    Json,
}

fn path_map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("expected FROM=TO".to_owned()),
    }
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let formats = formats(options)?;
    if let Some(dir) = &options.output {
        output::check(dir)?;
    }
    let has_text = formats.contains(&Format::Text);
    let (report, is_complete) = create(options, has_text, console)?;
    match &options.output {
        None => {
            let mut bytes = Vec::new();
            for format in &formats {
                write_stream(*format, &report, &mut bytes).context("cannot write the report")?;
            }
            console.print(&String::from_utf8_lossy(&bytes))?;
        }
        Some(dir) => {
            output::replace(dir, |dir| write_files(&formats, &report, dir))
                .with_context(|| format!("cannot write {}", dir.display()))?;
            let text = match has_text {
                true => text::report(&report),
                false => text::totals(dir, &report),
            };
            console.print(&text)?;
        }
    }
    Ok(Outcome::of(is_complete))
}

/// The formats to write. Checks that they can be written without a directory, if none is given.
fn formats(options: &Options) -> anyhow::Result<BTreeSet<Format>> {
    let mut formats: BTreeSet<Format> = options.format.iter().copied().collect();
    if formats.is_empty() {
        formats.insert(if options.output.is_some() {
            Format::Html
        } else {
            Format::Text
        });
    }
    if options.output.is_none() && (formats.contains(&Format::Html) || formats.len() > 1) {
        return Err(usage(
            "html, and more than one format, require a directory: name it with -o DIR",
        ));
    }
    Ok(formats)
}

/// Writes a format that is a single file.
fn write_stream(format: Format, report: &Report, out: &mut Vec<u8>) -> std::io::Result<()> {
    match format {
        Format::Text => out.extend(text::report(report).into_bytes()),
        Format::Lcov => lcov::write(report, lcov::Which::Device, out)?,
        Format::Json => {
            serde_json::to_writer(&mut *out, report)?;
            out.push(b'\n');
        }
        Format::Html => {}
    }
    Ok(())
}

/// Writes all formats except text to a directory.
fn write_files(formats: &BTreeSet<Format>, report: &Report, dir: &Path) -> std::io::Result<()> {
    for format in formats {
        match format {
            Format::Text => {}
            Format::Html => html::write(report, dir)?,
            Format::Lcov => lcov::write_all(report, dir)?,
            Format::Json => {
                let mut bytes = Vec::new();
                write_stream(Format::Json, report, &mut bytes)?;
                std::fs::write(dir.join("report.json"), bytes)?;
            }
        }
    }
    Ok(())
}

/// Creates the report. Also returns whether it includes all of the input. `has_text`: the report will be printed as text
/// with its notes, so they are not reported as diagnostics.
fn create(
    options: &Options,
    has_text: bool,
    console: &mut Console,
) -> anyhow::Result<(Report, bool)> {
    let llvm = options.llvm.search()?;
    let llvm_cov = llvm.newest("llvm-cov")?;
    let scratch = tempfile::Builder::new()
        .prefix("devprof-report-")
        .tempdir()
        .with_context(|| {
            let parent = std::env::temp_dir();
            format!("cannot create a directory in {}", parent.display())
        })?;
    let mut notes = Notes::default();

    let objects = Objects::extract(&options.binaries, &scratch.path().join("objects"))?;
    if objects.found.is_empty() && !options.host {
        bail!(objects.why_empty(&options.binaries));
    }
    notes.losses(
        "Parts of the binaries could not be read",
        objects.damage.clone(),
    );

    let mut problems = Vec::new();
    let how = merge::How {
        by_arch: true,
        ..merge::How::default()
    };
    let path = scratch.path().join("merged.profdata");
    let merged = merge::merge(&options.profile, &path, how, &llvm, &mut |diagnostic| {
        console.report(&diagnostic);
        problems.push(diagnostic.message.trim_end_matches("; left out").to_owned());
    })?;
    if merged.left_out > 0 {
        notes.reported_loss("Not all of the profiles could be used", problems);
    }
    let profiles: BTreeMap<Arch, PathBuf> = merged
        .outputs
        .iter()
        .filter_map(|output| Some((output.archs.first()?.clone(), output.path.clone())))
        .collect();

    let dispatches = match &options.trace {
        None => None,
        Some(path) => {
            let (kernels, is_complete) = trace::read(path, console)?;
            if !is_complete {
                notes.loss(format!(
                    "Parts of the trace {} could not be read: calls and times are too low.",
                    path.display()
                ));
            }
            Some(kernels)
        }
    };

    let hosts: Vec<Object> = match options.host {
        true => options
            .binaries
            .iter()
            .map(|path| Object::host(path))
            .collect(),
        false => Vec::new(),
    };
    let plan = plan::columns(&objects.found, &hosts, &profiles, &mut notes)?;
    let number: usize = plan.iter().map(|column| column.objects.len()).sum();
    let bar = progress::bar(number as u64, "{bar:40} {pos}/{len} code objects");
    let columns: Vec<ColumnData> = plan
        .iter()
        .map(|column| ColumnData::read(column, &llvm_cov, &bar))
        .collect();
    bar.finish_and_clear();
    if columns.iter().all(|column| column.functions.is_empty()) {
        let errors = columns.iter().flat_map(|column| &column.problems.unread);
        let errors: Vec<&str> = errors.map(String::as_str).collect();
        bail!(
            "no function of the binaries could be read: {}",
            errors.join("; ")
        );
    }
    for column in &columns {
        notes.problems(column);
        notes.not_run(column);
    }
    notes.sampled(&plan);

    let finder = Finder {
        maps: options.path_map.clone(),
        roots: options.sources_from.clone(),
        build_time: objects::build_time(&options.binaries),
    };
    let mut report = build::report(
        &title(&options.binaries),
        &columns,
        dispatches.as_ref(),
        options.naming,
        |path| finder.find(path),
    );
    notes.sources(&report);
    notes.kernels(&report);
    if options.format.contains(&Format::Lcov) {
        notes.not_in_lcov(&report);
    }
    let (notes, is_complete) = notes.finish(has_text, console);
    report.notes = notes;
    Ok((report, is_complete))
}

/// The title of the report: the names of the binaries.
fn title(binaries: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        path.file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned()
    };
    match binaries {
        [one] => name(one),
        [one, two] => format!("{} and {}", name(one), name(two)),
        [one, rest @ ..] => format!("{} and {} more", name(one), rest.len()),
        [] => String::new(),
    }
}
