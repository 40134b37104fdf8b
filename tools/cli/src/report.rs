//! `devprof report`: shows which source lines ran on the GPUs.
//!
//! [`objects`] extracts the code objects with a coverage mapping from the binaries, `merge` merges the profiles of each
//! architecture, [`plan`] assigns profiles to code objects, [`column_data`] runs llvm-cov on each code object with its
//! profile, and [`build`] combines the results with the traces in a [`model`]. There is one module per output format.

mod baseline;
mod build;
mod cobertura;
mod column_data;
mod counts;
mod cuda;
mod github;
mod html;
mod lcov;
mod lines;
mod llvm_cov;
mod mapping;
mod markdown;
mod matching;
pub mod model;
mod notes;
mod objects;
mod output;
mod paths;
mod plan;
mod select;
mod source;
mod text;
mod thresholds;
mod trace;

use crate::console::Console;
use crate::exit::{Outcome, usage};
use crate::merge::{self, Arch};
use crate::names::Naming;
use crate::run_log::saved;
use crate::{gpus, llvm, outfile, progress};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use code_objects::Sampling;
use column_data::ColumnData;
use counts::Which;
use llvm::{Llvm, Tool};
use model::Report;
use notes::Notes;
use objects::{Object, ObjectGroup, Objects};
use source::Finder;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
// Binaries first, as in the examples of the documents.
#[command(override_usage = "devprof report [OPTIONS] [BINARY]... --profile <FILE>...")]
pub struct Options {
    /// The programs, libraries or code objects that ran, compiled with the flags of `devprof flags --coverage`
    #[arg(value_name = "BINARY")]
    binaries: Vec<PathBuf>,
    /// Their profiles: raw (.profraw), merged (.profdata), a directory of raw ones, or a pattern (*, ?, [a-z], **) of files or directories; can be repeated
    ///
    /// Quote a pattern, so that the shell does not replace it: --profile 'run*/*.profraw'
    ///
    /// The architecture of a raw profile is part of its name (gfx1100.default.profraw). A merged profile does not
    /// distinguish architectures, unless it has a name as `devprof merge --by-arch` writes it (OUT.gfx1100.profdata).
    #[arg(long, required = true, value_name = "FILE")]
    profile: Vec<PathBuf>,
    /// The trace of the same run (DEVPROF_TRACE), to show calls and times of all kernels, instrumented or not; a file, a directory or a pattern; can be repeated
    ///
    /// Calls and times of several traces add up. They are also shown for each trace.
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// The formats to write [default: that of the output's extension, html for another output, or text]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT")]
    format: Vec<Format>,
    /// The file to write, - for stdout, or a directory for html and for several formats
    ///
    /// The extensions .info, .lcov, .json, .xml, .md and .txt select a format. A directory is a new one, or that of an
    /// earlier report, which is replaced. It gets index.html and other pages, lcov.info and one .lcov file per
    /// architecture, report.json, coverage.xml (cobertura), report.md, report.txt and annotations.txt (github).
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Open the pages (html) in the browser
    #[arg(long)]
    open: bool,
    /// Include the host code of the binaries, from the profiles of the host
    #[arg(long)]
    host: bool,
    #[command(flatten)]
    select: select::Options,
    #[command(flatten)]
    thresholds: thresholds::Options,
    /// Show what changed since an earlier report: a file of --format json, or a directory that has it
    #[arg(long, value_name = "REPORT")]
    baseline: Option<PathBuf>,
    /// Accept code objects in which clang's default setting counts only one block in eight
    #[arg(long)]
    allow_sampled: bool,
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
    /// Cobertura's XML, for GitLab, Jenkins and others
    Cobertura,
    /// Markdown, for the summary of a CI job
    Markdown,
    /// Annotations of lines that did not run, as workflow commands of GitHub Actions
    Github,
}

impl Format {
    /// The format of a single file with this name.
    fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "info" | "lcov" => Some(Format::Lcov),
            "json" => Some(Format::Json),
            "xml" => Some(Format::Cobertura),
            "md" => Some(Format::Markdown),
            "txt" => Some(Format::Text),
            _ => None,
        }
    }

    /// The name of its file in the directory of a report. `None` if it has several files.
    fn file_name(self) -> Option<&'static str> {
        match self {
            Format::Html | Format::Lcov => None,
            Format::Text => Some("report.txt"),
            Format::Json => Some("report.json"),
            Format::Cobertura => Some(cobertura::NAME),
            Format::Markdown => Some("report.md"),
            Format::Github => Some("annotations.txt"),
        }
    }
}

/// Where to write the report.
enum Target<'a> {
    Stdout(Format),
    File(Format, &'a Path),
    Directory(BTreeSet<Format>, &'a Path),
}

fn path_map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("expected FROM=TO".to_owned()),
    }
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let target = target(options)?;
    check_binaries(options)?;
    let binaries = binaries(options)?;
    if let Target::Directory(_, dir) = &target {
        output::check(dir)?;
    }
    let (report, is_complete) = create(options, &binaries, &target, console)?;
    let failures = options.thresholds.failures(&report);
    match &target {
        Target::Stdout(format) => {
            let bytes = bytes(*format, &report, &failures).context("cannot write the report")?;
            console.print_bytes(&bytes)?;
        }
        Target::File(format, path) => {
            let failed = || format!("cannot write {}", path.display());
            let bytes = bytes(*format, &report, &failures).with_context(failed)?;
            let temporary = outfile::create_temporary(path).with_context(failed)?;
            std::fs::write(temporary.path(), bytes).with_context(failed)?;
            outfile::commit(temporary, path).with_context(failed)?;
            console.print(&text::totals(path, &report))?;
        }
        Target::Directory(formats, dir) => {
            output::replace(dir, |dir| write_files(formats, &report, &failures, dir))
                .with_context(|| format!("cannot write {}", dir.display()))?;
            console.print(&text::totals(dir, &report))?;
            if options.open {
                open(&dir.join("index.html"), console);
            }
        }
    }
    thresholds::print(&failures, console);
    Ok(match failures.is_empty() {
        true => Outcome::of(is_complete),
        false => Outcome::BelowThreshold,
    })
}

/// Where to write which formats.
fn target(options: &Options) -> anyhow::Result<Target<'_>> {
    let mut formats: BTreeSet<Format> = options.format.iter().copied().collect();
    let output = options.output.as_deref();
    let output = output.filter(|output| !outfile::is_stdout(output));
    if formats.is_empty() {
        let is_directory = output.is_some_and(outfile::is_directory);
        let named = output.filter(|_| !is_directory).and_then(Format::of);
        let default = match output {
            None => Format::Text,
            Some(_) => Format::Html,
        };
        formats.insert(named.unwrap_or(default));
    }
    let single = formats.first().copied();
    let single = single.filter(|format| formats.len() == 1 && *format != Format::Html);
    let target = match (single, output) {
        (Some(format), None) => Target::Stdout(format),
        (Some(format), Some(path)) if !outfile::is_directory(path) => Target::File(format, path),
        (_, Some(dir)) => Target::Directory(formats, dir),
        (None, None) => {
            return Err(usage(
                "html, and more than one format, require a directory: name it with -o DIR",
            ));
        }
    };
    let has_pages =
        matches!(&target, Target::Directory(formats, _) if formats.contains(&Format::Html));
    if options.open && !has_pages {
        return Err(usage(
            "--open requires the format html: name its directory with -o DIR",
        ));
    }
    Ok(target)
}

/// Checks that no binary is a profile, because a shell has replaced the pattern after `--profile` with several names.
fn check_binaries(options: &Options) -> anyhow::Result<()> {
    for path in &options.binaries {
        let is_profile = merge::is_profile(path);
        if is_profile || path.is_dir() {
            let what = if is_profile { "profile" } else { "directory" };
            return Err(usage(format!(
                "{}: a {what}, not a binary; each profile needs its own --profile, and a pattern needs quotes: --profile '*.profraw'",
                path.display()
            )));
        }
    }
    Ok(())
}

/// The binaries that the options name, or those in the logs of the runs that wrote the profiles.
fn binaries(options: &Options) -> anyhow::Result<Cow<'_, [PathBuf]>> {
    if !options.binaries.is_empty() {
        return Ok(Cow::Borrowed(&options.binaries));
    }
    let dirs = merge::directories(&options.profile)?;
    let found = saved::binaries(dirs.iter().map(PathBuf::as_path))?;
    if found.is_empty() {
        return Err(usage(
            "name the binaries that ran; they can be left out only if `devprof run` has saved its log (a .runlog file) next to the profiles",
        ));
    }
    Ok(Cow::Owned(found))
}

/// Opens a page in the browser.
fn open(page: &Path, console: &mut Console) {
    let opener = "xdg-open";
    let status = std::process::Command::new(opener).arg(page).status();
    let why = match status {
        Ok(status) if status.success() => return,
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    console.warn(format!(
        "--open: {opener} failed ({why}); open {} in a browser",
        page.display()
    ));
}

/// A format that is a single file.
fn bytes(format: Format, report: &Report, failures: &[String]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    match format {
        Format::Text => out = text::report(report).into_bytes(),
        Format::Lcov => lcov::write(report, Which::All, &mut out)?,
        Format::Json => {
            serde_json::to_writer(&mut out, report)?;
            out.push(b'\n');
        }
        Format::Cobertura => cobertura::write(report, &mut out)?,
        Format::Markdown => out = markdown::report(report, failures).into_bytes(),
        Format::Github => out = github::report(report, failures).into_bytes(),
        // It has several files.
        Format::Html => {}
    }
    Ok(out)
}

/// Writes all formats to a directory.
fn write_files(
    formats: &BTreeSet<Format>,
    report: &Report,
    failures: &[String],
    dir: &Path,
) -> std::io::Result<()> {
    for format in formats {
        match (format, format.file_name()) {
            (Format::Lcov, _) => lcov::write_all(report, dir)?,
            (_, Some(name)) => std::fs::write(dir.join(name), bytes(*format, report, failures)?)?,
            (_, None) => html::write(report, dir)?,
        }
    }
    Ok(())
}

/// Creates the report. Also returns whether it includes all of the input.
fn create(
    options: &Options,
    binaries: &[PathBuf],
    target: &Target,
    console: &mut Console,
) -> anyhow::Result<(Report, bool)> {
    let llvm = options.llvm.search()?;
    let select = options.select.select()?;
    let scratch = tempfile::Builder::new()
        .prefix("devprof-report-")
        .tempdir()
        .with_context(|| {
            let parent = std::env::temp_dir();
            format!("cannot create a directory in {}", parent.display())
        })?;
    let mut notes = Notes::default();

    let objects = Objects::extract(binaries, &scratch.path().join("objects"))?;
    if objects.found.is_empty() && !options.host {
        bail!(objects.why_empty(binaries));
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
    let llvm_cov = llvm_cov(&llvm, &merged)?;
    let tool = merged.outputs.iter().find_map(|output| output.tools.last());
    let profiles: BTreeMap<Arch, PathBuf> = merged
        .outputs
        .iter()
        .filter_map(|output| Some((output.archs.first()?.clone(), output.path.clone())))
        .collect();

    let traces = trace::read_all(&options.trace, console)?;
    for trace in traces.iter().filter(|trace| !trace.is_complete) {
        notes.loss(format!(
            "Parts of the trace {} could not be read: calls and times are too low.",
            trace.path
        ));
    }

    let hosts: Vec<Object> = match options.host {
        true => binaries.iter().map(|path| Object::host(path)).collect(),
        false => Vec::new(),
    };
    let plan = plan::groups(&objects.found, &hosts, &profiles, &mut notes)?;
    if let Some(tool) = tool {
        matching::check(&plan, tool, binaries)?;
    }
    if !options.allow_sampled {
        check_sampled(&plan)?;
    }
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
        build_time: objects::build_time(binaries),
    };
    let mut report = build::report(
        &title(binaries),
        &columns,
        &traces,
        options.naming,
        &select,
        |path| finder.find(path),
    );
    if report.files.is_empty() {
        bail!(
            "no source file is left: --include and --ignore-filename-regex leave out all of them"
        );
    }
    if let Some(path) = &options.baseline {
        report.baseline = Some(baseline::compare(path, &report)?);
    }
    notes.sources(&report);
    notes.kernels(&report);
    let has_lcov = match target {
        Target::Stdout(format) | Target::File(format, _) => *format == Format::Lcov,
        Target::Directory(formats, _) => formats.contains(&Format::Lcov),
    };
    if has_lcov {
        notes.not_in_lcov(&report);
    }
    // The text that is printed has the notes, so they are not reported as diagnostics.
    let is_printed = matches!(target, Target::Stdout(Format::Text));
    let (notes, is_complete) = notes.finish(is_printed, console);
    report.notes = notes;
    Ok((report, is_complete))
}

/// The llvm-cov of the release that merged the profiles, or of a later one, which reads them as well.
fn llvm_cov(llvm: &Llvm, merged: &merge::Merged) -> anyhow::Result<Tool> {
    let tools = merged
        .outputs
        .iter()
        .filter_map(|output| output.tools.last());
    let Some(profdata) = tools.max_by_key(|tool| tool.version.numbers) else {
        return llvm.newest("llvm-cov");
    };
    if let Ok(same) = llvm.of_release("llvm-cov", &profdata.version) {
        return Ok(same);
    }
    let newest = llvm.newest("llvm-cov")?;
    let release = profdata.version.numbers[0];
    if newest.version.numbers[0] < release {
        bail!(
            "llvm-cov {} ({}) cannot read a profile of LLVM {release}: apt-get install llvm-{release}, or name an installation of LLVM {release} with --llvm DIR",
            newest.version,
            newest.path.display()
        );
    }
    Ok(newest)
}

/// # Errors
/// Code objects that ran count only some of their blocks.
fn check_sampled(plan: &[ObjectGroup]) -> anyhow::Result<()> {
    let ran = plan.iter().filter(|column| column.profile.is_some());
    let mut objects = ran.flat_map(|column| &column.objects);
    match objects.find(|object| object.sampling == Sampling::Yes) {
        None => Ok(()),
        Some(object) => {
            let remedy = match gpus::compute_capability(&object.processor) {
                Some(_) => "without -DDEVPROF_SAMPLING",
                None => &format!("with {}", notes::EVERY_BLOCK),
            };
            bail!(
                "{}: sampled build (1 block in 8): coverage would be under-reported; rebuild {remedy}, or accept it with --allow-sampled",
                object.origin
            )
        }
    }
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
