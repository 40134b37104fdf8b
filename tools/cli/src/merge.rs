//! `devprof merge`: many profiles become one that clang and llvm-cov read.
//!
//! [`inputs`] finds the files, [`profile`] tells what each is and whether it is whole, [`sums`] adds up those of one
//! code object, and LLVM's own llvm-profdata, the one that reads each raw version, merges what is left ([`profdata`]).
//! Files are read one at a time, so that thousands need no more memory than a few.

mod doubled;
mod inputs;
mod profdata;
mod profile;
mod sums;

pub use profile::Arch;

use crate::console::Diagnostic;
use crate::exit::{Outcome, usage};
use crate::llvm::{self, Llvm, Tool};

use crate::readable::plural;
use crate::{Console, outfile, progress};
use anyhow::{Context, bail};
use clap::Args;
use indicatif::ProgressBar;
use profdata::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use sums::{Pile, Sums};
use tempfile::NamedTempFile;

#[derive(Args)]
pub struct Options {
    /// Profiles: raw (.profraw) of any architecture and of the host, indexed (.profdata), text
    ///
    /// A directory stands for the .profraw files in it and below, a pattern (*, ?, [a-z], **) for the files that fit
    /// it, @FILE for the lines of FILE (@- for those of stdin).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file to write, - for stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    llvm: llvm::Options,
}

/// What becomes of the profiles.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct How {
    /// Write a file for each architecture: OUT.gfx1100.profdata, OUT.host.profdata
    ///
    /// A function that several architectures have, or host and device, has one name and mostly one hash in all of them,
    /// and in a common file its counts are added up. That is right for -fprofile-use, where all of them are compiled
    /// from one file, and for what was covered on any of them. What was covered on one needs that one's own file.
    #[arg(long)]
    pub by_arch: bool,
    /// Write nothing when a file is damaged or does not fit the others, instead of leaving it out
    #[arg(long)]
    pub strict: bool,
    /// Leave out functions that never ran: smaller for -fprofile-use, wrong for coverage
    #[arg(long)]
    pub sparse: bool,
}

/// What was written, and what was not.
#[derive(Debug)]
pub struct Merged {
    pub outputs: Vec<Output>,
    /// How many files, and functions of files, are in no output. Each was said.
    pub left_out: usize,
}

/// A file that was written.
#[derive(Debug)]
pub struct Output {
    pub path: PathBuf,
    /// What its profiles are of.
    pub archs: BTreeSet<Arch>,
    /// How many files are in it.
    pub files: usize,
    /// How many functions are in it: one of several structures (hashes) counts several times.
    pub functions: usize,
    /// The llvm-profdatas that merged it, the one that wrote it last.
    pub tools: Vec<Tool>,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let llvm = options.llvm.search()?;
    let merged = merge(
        &options.files,
        &options.output,
        options.how,
        &llvm,
        &mut |diagnostic| console.report(&diagnostic),
    )?;
    for output in &merged.outputs {
        outfile::print_summary(console, &output.path, &output.to_string())?;
    }
    Ok(Outcome::of(merged.left_out == 0))
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let tools: Vec<String> = (self.tools.iter())
            .map(|tool| format!("llvm-profdata {} ({})", tool.version, tool.path.display()))
            .collect();
        write!(
            f,
            "{}: {}, {}, {}; {}",
            self.path.display(),
            plural(self.files, "file"),
            plural(self.functions, "function"),
            joined(&self.archs),
            tools.join(" and ")
        )
    }
}

/// Says what is not in an output.
struct Losses<'a> {
    report: &'a mut dyn FnMut(Diagnostic),
    bar: ProgressBar,
    number: usize,
    strict: bool,
}

impl Losses<'_> {
    fn add(&mut self, what: &str) {
        self.number += 1;
        let warning = Diagnostic::warning(format!("{what}; left out"));
        self.bar.suspend(|| (self.report)(warning));
    }

    /// # Errors
    /// There were some, and there must be none.
    fn check(&self) -> anyhow::Result<()> {
        match self.strict && self.number > 0 {
            true => bail!("nothing was written, as --strict wants all of it"),
            false => Ok(()),
        }
    }
}

/// How many functions that do not fit, or files that need not be merged, are named.
const FUNCTIONS: usize = 20;

/// Merges what `files` name, as [`Options`] has it, into `out`, or with [`How::by_arch`] into files beside it. What is
/// damaged is said and left out.
///
/// # Errors
/// Nothing could be merged or written; with [`How::strict`], not everything.
pub fn merge(
    files: &[PathBuf],
    out: &Path,
    how: How,
    llvm: &Llvm,
    report: &mut dyn FnMut(Diagnostic),
) -> anyhow::Result<Merged> {
    if how.by_arch && outfile::is_stream(out) {
        return Err(usage(format!(
            "{} cannot have a file for each architecture beside it: name a file with -o, or leave out --by-arch",
            out.display()
        )));
    }
    let mut found = inputs::expand(files).map_err(anyhow::Error::msg)?;
    let doubled = doubled::doubled(&found.files);
    if !doubled.is_empty() {
        found.files.retain(|path| !doubled.contains(path));
        let mut names: Vec<_> = doubled
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        names.sort();
        let more = names.len().saturating_sub(FUNCTIONS);
        names.truncate(FUNCTIONS);
        report(Diagnostic::warning(format!(
            "LLVM's own runtime collected, too; devprof's files beside hold the counts, so these are left out: {}{}",
            names.join(", "),
            if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            }
        )));
    }
    let mut losses = Losses {
        report,
        bar: progress::bar(
            found.files.len() as u64,
            "{wide_bar} {pos} of {len} profiles, {eta} left",
        ),
        number: 0,
        strict: how.strict,
    };
    found.missing.iter().for_each(|what| losses.add(what));
    let mut sums = Sums::default();
    let mut piles: BTreeMap<Option<Arch>, Pile> = BTreeMap::new();
    std::thread::scope(|scope| {
        // Looking for LLVM's tools starts several programs: that goes on beside the reading.
        scope.spawn(|| {
            let found = llvm.all("llvm-profdata");
            found.tools.first().map(|tool| tool.raw_version().is_ok())
        });
        for path in &found.files {
            match profile::open(path).and_then(|profile| sums.sort(path, profile)) {
                Err(why) => losses.add(&format!("{}: {why:#}", path.display())),
                Ok(sorted) => {
                    let own = how.by_arch.then(|| sorted.arch.clone());
                    piles.entry(own).or_default().add(sorted);
                }
            }
            losses.bar.inc(1);
        }
    });
    losses.bar.finish_and_clear();
    losses.check()?;
    if piles.is_empty() {
        bail!("there is no profile to merge");
    }

    let scratch = tempfile::tempdir().with_context(|| {
        let dir = std::env::temp_dir();
        format!("cannot create a directory in {}", dir.display())
    })?;
    let mut parts = Vec::new();
    for (arch, pile) in piles {
        let path = match &arch {
            Some(arch) => beside(out, arch),
            None => out.to_owned(),
        };
        let failed = format!("cannot write {}", path.display());
        if found.has(&path) {
            return Err(usage(format!(
                "{failed}: it is one of the profiles to merge; name another with -o"
            )));
        }
        let part = outfile::create_temporary(&path).context(failed)?;
        let outcome = profdata::merge(&pile, &sums, llvm, how.sparse, scratch.path(), part.path())
            .map_err(anyhow::Error::msg)?;
        tell(&outcome.problems, &mut losses);
        let Some(tool) = outcome.tools.last().filter(|_| outcome.files > 0) else {
            continue;
        };
        let functions = match pile.functions() {
            Some(functions) if outcome.problems.is_empty() && !how.sparse => functions,
            _ => profdata::functions(tool, part.path()).map_err(anyhow::Error::msg)?,
        };
        if let (mixed @ 1.., archs) = pile.mixed() {
            (losses.report)(Diagnostic::warning(format!(
                "{}: {} {} in {}, with the same name and hash, and their counts are added up; --by-arch keeps \
                 them apart",
                path.display(),
                plural(mixed, "function"),
                if mixed == 1 { "is" } else { "are" },
                joined(archs)
            )));
        }
        let output = Output {
            functions,
            archs: outcome.archs,
            files: outcome.files,
            tools: outcome.tools,
            path,
        };
        parts.push((part, output));
    }
    losses.check()?;
    if parts.is_empty() {
        bail!("llvm-profdata took none of the profiles");
    }
    let keep = |(part, output): (NamedTempFile, Output)| {
        outfile::commit(part, &output.path)
            .with_context(|| format!("cannot write {}", output.path.display()))?;
        Ok(output)
    };
    Ok(Merged {
        outputs: parts.into_iter().map(keep).collect::<anyhow::Result<_>>()?,
        left_out: losses.number,
    })
}

/// Files are all named, functions up to a number.
fn tell(problems: &[Problem], losses: &mut Losses) {
    let mut functions = 0;
    for problem in problems {
        functions += usize::from(!problem.whole_file);
        match problem.whole_file || functions <= FUNCTIONS {
            true => losses.add(&problem.to_string()),
            false => losses.number += 1,
        }
    }
    if functions > FUNCTIONS {
        (losses.report)(Diagnostic::warning(format!(
            "and {} more functions",
            functions - FUNCTIONS
        )));
    }
}

/// `dir/OUT.gfx1100.profdata`
fn beside(out: &Path, arch: &Arch) -> PathBuf {
    let mut name = out.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{arch}"));
    if let Some(ending) = out.extension() {
        name.push(".");
        name.push(ending);
    }
    out.with_file_name(name)
}

fn joined(archs: &BTreeSet<Arch>) -> String {
    let archs: Vec<String> = archs.iter().map(Arch::to_string).collect();
    match archs.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}
