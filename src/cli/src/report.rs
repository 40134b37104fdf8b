//! `devprof report`: shows which source lines ran on the GPUs, and which kernels.
//!
//! [`inputs`] finds the files that the arguments name, [`read`] reads them, [`build`] combines the contents in a [`model`],
//! and [`render`] writes it. There is one module per output format.

mod attribution;
mod baseline;
mod build;
mod census;
mod cobertura;
mod column_data;
mod counters;
mod counts;
mod coverage_py;
mod cuda;
mod decisions;
pub mod diff;
mod formula;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod github;
mod html;
mod inputs;
pub mod lcov;
mod lines;
mod llvm_cov;
mod mapping;
mod markdown;
mod matching;
mod mcdc;
pub mod model;
mod notes;
mod numbers;
mod objects;
mod output;
mod paths;
mod plan;
mod python;
mod read;
mod render;
mod select;
mod sonar;
mod source;
pub mod test_database;
mod text;
mod thresholds;
mod trace;
mod xml;

use crate::console::Console;
use crate::exit::{Outcome, usage};
use crate::llvm;
use crate::names::Naming;
use crate::outfile;
use anyhow::{Context, bail};
use attribution::Attribution;
use clap::Args;
use diff::Changed;
use inputs::Inputs;
use model::Report;
use notes::Notes;
pub use render::{Format, Target};
use source::Finder;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
// Binaries first, as in the examples of the documents.
#[command(
    override_usage = "devprof report [OPTIONS] [BINARY]... --profile <FILE>...\n       devprof report [OPTIONS] [BINARY]... --trace <FILE>..."
)]
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
    #[arg(long, required_unless_present = "trace", value_name = "FILE")]
    profile: Vec<PathBuf>,
    /// The trace of the same run (DEVPROF_TRACE), to show calls and times of all kernels, instrumented or not, and which kernels of the binaries never ran; a file, a directory or a pattern; can be repeated
    ///
    /// Calls and times of several traces add up. They are also shown for each trace. Without --profile, the binaries need not be
    /// instrumented, and the report has only kernels.
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// Include the host code of the binaries, from the profiles of the host
    #[arg(long, requires = "profile")]
    host: bool,
    #[command(flatten)]
    content: Content,
}

/// What the report has, and where it is written.
#[derive(Args)]
#[group(skip)]
pub struct Content {
    /// The formats to write [default: by the output's extension, html for another output, or text]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT")]
    pub format: Vec<Format>,
    /// The file to write, - for stdout, or a directory for html and for several formats
    ///
    /// The extensions .info, .lcov, .json, .xml, .md and .txt, and the names sonar.xml, .coverage and .coverage.* select a
    /// format. A directory must be new, or must have an earlier report, which is replaced. It gets index.html and other pages,
    /// lcov.info and one .lcov file per architecture, report.json, coverage.xml (cobertura), sonar.xml, report.md, report.txt,
    /// annotations.txt (github) and .coverage.devprof (coverage-py).
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Open the pages (html) in the browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    text: text::Options,
    #[command(flatten)]
    select: select::Options,
    /// Include only lines that were changed since this commit of the working tree's git repository
    ///
    /// Kernels and functions without such lines are left out. Thresholds apply to the lines that are left. With -, the output
    /// of `git diff --unified=0` is read from stdin.
    #[arg(long, value_name = "REV")]
    diff: Option<String>,
    #[command(flatten)]
    thresholds: thresholds::Options,
    /// Show the changes since an earlier report: a file of --format json, or a directory that has it
    #[arg(long, value_name = "REPORT")]
    baseline: Option<PathBuf>,
    /// Accept code objects in which clang's default setting counts only one block in eight
    #[arg(long)]
    allow_sampled: bool,
    /// Search this directory for sources that are not at the paths at which they were compiled, and show sources that are in it
    ///
    /// Without it, only sources in the working tree are shown: the git tree of the current directory, or else this directory.
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

fn path_map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("expected FROM=TO".to_owned()),
    }
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let own = &options.content;
    let target = Target::new(&own.format, own.output.as_deref(), own.open)?;
    if options.profile.is_empty() {
        own.check_without_profiles(&target)?;
    }
    let inputs = Inputs::find(&options.binaries, &options.profile, &options.trace)?;
    target.check()?;
    write(own, inputs, options.host, &[target], None, console)
}

impl Content {
    /// # Errors
    /// An option needs profiles, because it is about lines.
    fn check_without_profiles(&self, target: &Target) -> anyhow::Result<()> {
        let given = [
            (self.diff.is_some(), "--diff"),
            (self.baseline.is_some(), "--baseline"),
            (
                !self.select.is_empty(),
                "--include and --ignore-filename-regex",
            ),
            (
                self.text.is_about_lines(),
                "--show-missing-lines and --show-missing-conditions",
            ),
        ];
        let given = given
            .into_iter()
            .find_map(|(is_given, name)| is_given.then_some(name));
        if let Some(option) = given.or(self.thresholds.of_lines()) {
            return Err(usage(format!(
                "{option}: a trace has only kernels; name the profiles with --profile"
            )));
        }
        if let Some(format) = target.formats().into_iter().find(Format::is_of_lines) {
            return Err(usage(format!(
                "the format {} has lines, and a trace has only kernels: name the profiles with --profile, or use text, html, json or markdown",
                format.name()
            )));
        }
        Ok(())
    }
}

/// Of the profiles of a directory, and the binaries in the logs of the runs that wrote them. `host`: includes host code.
/// `tests`: writes a database of the tests whose profiles are in the directory.
pub fn of_directory(
    options: &Content,
    dir: &Path,
    host: bool,
    targets: &[Target],
    tests: Option<&test_database::Output>,
    console: &mut Console,
) -> anyhow::Result<Outcome> {
    let inputs = Inputs::find(&[], &[dir.to_owned()], &[])?;
    let tests = tests.map(|tests| (dir, tests));
    write(options, inputs, host, targets, tests, console)
}

fn write(
    options: &Content,
    inputs: Inputs,
    host: bool,
    targets: &[Target],
    tests: Option<(&Path, &test_database::Output)>,
    console: &mut Console,
) -> anyhow::Result<Outcome> {
    let title = inputs.title();
    let finder = Finder::new(
        options.path_map.clone(),
        options.sources_from.clone(),
        objects::build_time(&inputs.binaries),
    );
    let mut notes = Notes::default();
    let select = options.select.select()?;
    // The sources of kernels that are not instrumented are not known.
    let has_all = options.diff.is_none() && options.select.is_empty();
    let mut contents = match inputs.profiles {
        None => read::traces_only(&inputs.binaries, &inputs.traces, &mut notes, console)?,
        Some(profiles) => {
            let how = read::How {
                llvm: &options.llvm.search()?,
                host,
                allow_sampled: options.allow_sampled,
                census: has_all,
                tests: tests.map(|(directory, _)| directory),
            };
            let (binaries, traces) = (&inputs.binaries, &inputs.traces);
            read::read(binaries, profiles, traces, how, &mut notes, console)?
        }
    };
    let unknown = formula::compute_results(&mut contents.columns, &select, &finder);
    if let Some((attribution, (_, output))) = contents.attribution.as_ref().zip(tests) {
        write_tests(output, attribution, &finder)?;
    }
    notes.warning_about(formula::UNKNOWN.to_owned(), unknown.into_iter().collect());
    let mut report = model(options, &select, &title, &contents, &finder)?;
    if let Some(attribution) = &contents.attribution {
        attribution.add_to(&mut report);
    }
    if let Some(rev) = &options.diff {
        let rev = if rev == "-" {
            "the commit of the diff"
        } else {
            rev
        };
        notes.note(match report.files.len() {
            0 => format!("No line with device code was changed since {rev}."),
            _ => format!("Only the lines that were changed since {rev} are included."),
        });
    }
    notes.report(
        &report,
        targets.iter().any(|target| target.has(Format::Lcov)),
    );
    // The text that is printed has the notes, so they are not reported as diagnostics.
    let is_text = |target: &Target| matches!(target, Target::Stdout(Format::Text));
    let is_printed = targets.iter().any(is_text);
    let (notes, is_complete) = notes.finish(is_printed, console);
    report.notes = notes;
    // A change without device code reaches every threshold.
    let has_lines = options.diff.is_none() || !report.files.is_empty();
    let failures = has_lines.then(|| options.thresholds.failures(&report));
    let failures = failures.unwrap_or_default();
    for target in targets {
        render::write(
            target,
            &report,
            options.text,
            &failures,
            options.open,
            console,
        )?;
    }
    thresholds::print(&failures, console);
    Ok(if failures.is_empty() {
        Outcome::of(is_complete)
    } else {
        Outcome::BelowThreshold
    })
}

/// Writes the database of tests, and their lines for LCOV next to it.
fn write_tests(
    output: &test_database::Output,
    attribution: &Attribution,
    finder: &Finder,
) -> anyhow::Result<()> {
    let locations = attribution.locations(finder);
    test_database::write(output, attribution, &locations)?;
    let path = output.path.with_file_name(lcov::TESTS_NAME);
    outfile::write(&path, |out| lcov::write_tests(attribution, &locations, out))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The model of the report, without notes.
fn model(
    options: &Content,
    select: &select::Select,
    title: &str,
    contents: &build::Contents,
    finder: &Finder,
) -> anyhow::Result<Report> {
    let changed = options.diff.as_deref().map(Changed::since).transpose()?;
    let mut report = build::report(
        title,
        contents,
        options.naming,
        select,
        changed.as_ref(),
        |path| finder.find(path),
    );
    if report.has_coverage() && report.files.is_empty() && changed.is_none() {
        bail!(
            "no source file is left: --include and --ignore-filename-regex leave out all of them"
        );
    }
    if let Some(path) = &options.baseline {
        report.baseline = Some(baseline::compare(path, select, &report)?);
    }
    Ok(report)
}
