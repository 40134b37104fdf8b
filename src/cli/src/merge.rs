//! `devprof merge`: merges many profiles into one that clang and llvm-cov read.
//!
//! [`arguments`] finds the files, [`profile`] reads and validates them, [`inputs`] adds the counters of files of the
//! same code object, and [`profdata`] merges the results with the llvm-profdata that reads each raw version. Only one file
//! and a limited amount of sums are in memory at a time, so thousands of files need hardly more memory than a few.

mod arguments;
mod inputs;
mod llvm_duplicates;
mod output_group;
mod profdata;
mod profile;

pub use arguments::expand;
pub use profile::{Arch, is_profile, only_ran, open};

use crate::console::{Console, Diagnostic};
use crate::exit::{Outcome, usage};
use crate::llvm::{self, Llvm, Tool};
use crate::paths::Found;
use crate::readable::{and_more, plural};
use crate::{outfile, parallel, paths, progress};
use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::ProgressBar;
use inputs::Inputs;
use output_group::OutputGroup;
use profdata::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

#[derive(Args)]
pub struct Options {
    /// Profiles: raw (.profraw) of any architecture and of the host, indexed (.profdata), text
    ///
    /// A directory means all .profraw files in it and below, a pattern (*, ?, [a-z], **) all files and
    /// directories that match it, and
    /// @FILE all paths in FILE, one per line (@- reads them from stdin).
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

/// How to merge.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct How {
    /// Write one file per architecture: OUT.gfx1100.profdata, OUT.host.profdata
    ///
    /// Without this option there is one file, or two if some profiles have counts, and others say only which code ran, as those
    /// of device and host with `devprof flags --coverage`: the counts are in OUT.host.profdata, or
    /// in OUT.counts.profdata if they are not only the host's.
    ///
    /// A function that is compiled for several architectures, or for host and device, has the same name and usually the
    /// same hash in all of them. In a common file, its counts are added. That is right for -fprofile-use, which
    /// compiles all of them with one file, and for coverage on any architecture. Coverage on one architecture needs a
    /// separate file.
    #[arg(long)]
    pub by_arch: bool,
    /// Write nothing if a file is damaged or does not match the others, instead of leaving it out
    #[arg(long)]
    pub strict: bool,
    /// Leave out functions that never ran: smaller for -fprofile-use, wrong for coverage
    #[arg(long)]
    pub sparse: bool,
}

/// The result of a merge.
#[derive(Debug)]
pub struct Merged {
    pub outputs: Vec<Output>,
    /// Number of files, and of functions of files, that are in no output. Each was reported.
    pub left_out: usize,
}

/// A file that was written.
#[derive(Debug, Default)]
pub struct Output {
    pub path: PathBuf,
    /// Architectures of the profiles in it.
    pub archs: BTreeSet<Arch>,
    /// The build ID of the code object or program whose profiles are in it, if all are of the same one.
    pub build_id: Option<String>,
    /// One of the files in it.
    pub first: PathBuf,
    /// Number of files in it.
    pub files: usize,
    /// Number of functions in it. A function with several structures (hashes) counts once per structure.
    pub functions: usize,
    /// What the file has, if that is not counts of all files.
    counts: &'static str,
    /// The llvm-profdatas that were used. The last one wrote the file.
    pub tools: Vec<Tool>,
}

pub fn run(options: &Options, console: &mut Console) -> Result<Outcome> {
    let llvm = options.llvm.search()?;
    let merged = merge(
        expand(&options.files)?,
        &options.output,
        options.how,
        &|_, _| false,
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
            "{}: {}, {}, {}{}; {}",
            self.path.display(),
            plural(self.files, "file"),
            plural(self.functions, "function"),
            joined(&self.archs),
            self.counts,
            tools.join(" and ")
        )
    }
}

/// Reports and counts the files and functions that are left out of the outputs.
struct Losses<'a> {
    report: &'a mut dyn FnMut(Diagnostic),
    bar: ProgressBar,
    number: usize,
    strict: bool,
}

impl Losses<'_> {
    fn add(&mut self, what: &str) {
        self.number += 1;
        self.warn(format!("{what}; left out"));
    }

    fn warn(&mut self, message: String) {
        let warning = Diagnostic::warning(message);
        self.bar.suspend(|| (self.report)(warning));
    }

    /// Adds the files and functions that llvm-profdata refused. All files are reported, functions up to a maximum number.
    fn add_problems(&mut self, problems: &[Problem]) {
        let mut functions = 0;
        for problem in problems {
            functions += usize::from(!problem.complete_file);
            if problem.complete_file || functions <= MAX_LISTED {
                self.add(&problem.to_string())
            } else {
                self.number += 1
            }
        }
        if functions > MAX_LISTED {
            self.warn(format!("and {} more functions", functions - MAX_LISTED));
        }
    }

    /// # Errors
    /// With `--strict`, if there are losses.
    fn check(&self) -> Result<()> {
        ensure!(
            !self.strict || self.number == 0,
            "nothing was written: --strict does not allow leaving out files"
        );
        Ok(())
    }
}

/// Maximum number of functions, or files, to list in messages.
const MAX_LISTED: usize = 20;

/// Merges the files into `out`, or with [`How::by_arch`] into files
/// next to it. Damaged files are reported and left out. With [`How::by_arch`], raw profiles of an architecture with a build
/// ID for which `is_apart` returns true have a file of their own.
///
/// # Errors
/// Nothing could be merged or written. With [`How::strict`], it is also an error if a file or function is left out.
pub fn merge(
    mut found: Found,
    out: &Path,
    how: How,
    is_apart: &dyn Fn(&Arch, &str) -> bool,
    llvm: &Llvm,
    report: &mut dyn FnMut(Diagnostic),
) -> Result<Merged> {
    if how.by_arch && outfile::is_stream(out) {
        return Err(usage(format!(
            "--by-arch cannot write files next to {}: name a file with -o, or leave out --by-arch",
            out.display()
        )));
    }
    if let Some(warning) = leave_out_duplicates(&mut found) {
        report(warning);
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
    if let Some(first) = found.related.first() {
        (losses.report)(Diagnostic::note(format!(
            "{}: included, because the program wrote them next to its host profile",
            and_more(first, found.related.len())
        )));
    }
    let mut inputs = Inputs::default();
    let mut groups: BTreeMap<Key, OutputGroup> = BTreeMap::new();
    std::thread::scope(|scope| {
        // Finding LLVM's tools starts several programs. Do that while the files are read.
        scope.spawn(|| {
            let found = llvm.all("llvm-profdata");
            found.tools.first().map(|tool| tool.raw_version().is_ok())
        });
        for path in &found.files {
            let mut add = || {
                let profile = profile::open(path)?;
                let only_ran = profile.only_ran();
                let added = inputs.add(path, profile)?;
                let input = &inputs.all[added.input];
                let arch = &input.arch;
                let id = input.build_id.as_ref();
                let key = if how.by_arch {
                    let own = id.filter(|id| is_apart(arch, id)).cloned();
                    Key::Arch(arch.clone(), own)
                } else {
                    Key::Kind { only_ran }
                };
                let group = groups.entry(key).or_default();
                group.check(path, only_ran)?;
                group.add(added, arch);
                anyhow::Ok(())
            };
            if let Err(error) = add() {
                losses.add(&format!("{}: {error:#}", path.display()));
            }
            losses.bar.inc(1);
        }
    });
    losses.bar.finish_and_clear();
    losses.check()?;
    ensure!(!groups.is_empty(), "there is no profile to merge");
    let has_flags = groups.contains_key(&Key::Kind { only_ran: true });
    ensure!(
        !has_flags || groups.len() == 1 || !outfile::is_stream(out),
        "some files have counts, and others say only which code ran: they cannot both be written to {}; name a file with -o",
        out.display()
    );

    let scratch = tempfile::tempdir().with_context(|| {
        let dir = std::env::temp_dir();
        format!("cannot create a directory in {}", dir.display())
    })?;
    let groups: Vec<(Key, OutputGroup)> = groups.into_iter().collect();
    let outcomes = parallel::map(&groups, |(key, group)| {
        let path = path_of(out, key, group, has_flags);
        let cannot_write = || format!("cannot write {}", path.display());
        if found.has(&path) {
            return Err(usage(format!(
                "{}: it is one of the profiles to merge; name another with -o",
                cannot_write()
            )));
        }
        let part = outfile::create_temporary(&path).with_context(cannot_write)?;
        // Closed, because there may be more outputs than a process may have open files.
        let part = part.into_temp_path();
        let to: &Path = &part;
        let scratch = tempfile::tempdir_in(scratch.path()).with_context(cannot_write)?;
        let outcome = profdata::merge(group, &inputs, llvm, how.sparse, scratch.path(), to)?;
        let functions = match (group.functions(), outcome.tools.last()) {
            (Some(functions), _) if outcome.problems.is_empty() && !how.sparse => functions,
            (_, Some(tool)) if outcome.files > 0 => profdata::functions(tool, to)?,
            _ => 0,
        };
        Ok((path, part, outcome, functions))
    });
    let mut written = Vec::new();
    for ((key, group), outcome) in groups.iter().zip(outcomes) {
        let (path, part, outcome, functions) = outcome?;
        losses.add_problems(&outcome.problems);
        if outcome.files == 0 {
            continue;
        }
        if let (shared @ 1.., archs) = group.shared() {
            losses.warn(format!(
                "{}: {} {} in {}, with the same name and hash; the counts are added. --by-arch keeps them apart",
                path.display(),
                plural(shared, "function"),
                if shared == 1 { "is" } else { "are" },
                joined(archs)
            ));
        }
        let output = Output {
            functions,
            archs: outcome.archs,
            files: outcome.files,
            tools: outcome.tools,
            counts: match key {
                Key::Kind { only_ran: true } => ", only which code ran",
                Key::Kind { only_ran: false } if has_flags => ", counts",
                Key::Kind { .. } | Key::Arch(..) => "",
            },
            build_id: match key {
                Key::Arch(_, id) => id.clone(),
                Key::Kind { .. } => None,
            },
            first: inputs.all[group.inputs[0]].files[0].clone(),
            path,
        };
        written.push((part, output));
    }
    losses.check()?;
    ensure!(
        !written.is_empty(),
        "llvm-profdata refused all of the profiles"
    );
    let keep = |(part, output): (TempPath, Output)| {
        outfile::commit_closed(part, &output.path)
            .with_context(|| format!("cannot write {}", output.path.display()))?;
        Ok(output)
    };
    Ok(Merged {
        outputs: written.into_iter().map(keep).collect::<Result<_>>()?,
        left_out: losses.number,
    })
}

/// The directories of files.
pub fn directories(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    files
        .iter()
        .map(|file| paths::directory(file).to_owned())
        .collect()
}

/// Leaves out profiles of LLVM's runtime that duplicate devprof's. Returns a warning if there are any.
fn leave_out_duplicates(found: &mut Found) -> Option<Diagnostic> {
    let duplicates = llvm_duplicates::find(&found.files);
    if duplicates.is_empty() {
        return None;
    }
    found.files.retain(|path| !duplicates.contains(path));
    let mut names: Vec<_> = duplicates
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.sort();
    let more = match names.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(MAX_LISTED);
    Some(Diagnostic::warning(format!(
        "LLVM's own runtime collected device profiles, too; they are left out, because devprof's files next to them \
         have the same counts: {}{more}",
        names.join(", ")
    )))
}

/// The profiles in an output.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Those with flags, or those with counts: llvm-profdata would add counts to flags, and refuses functions of host and device,
    /// which have more flags than counters.
    Kind { only_ran: bool },
    /// Those of an architecture, and of a code object if it has an output of its own, by its build ID.
    Arch(Arch, Option<String>),
}

/// `dir/OUT.gfx1100.profdata`, `dir/OUT.gfx1100.BUILD.profdata`, or without architectures `dir/OUT.profdata`. Next to a file of flags,
/// counts are in `dir/OUT.host.profdata` if they are all of the host, or else in `dir/OUT.counts.profdata`.
fn path_of(out: &Path, key: &Key, group: &OutputGroup, has_flags: bool) -> PathBuf {
    let suffix = match key {
        Key::Arch(arch, None) => arch.to_string(),
        Key::Arch(arch, Some(id)) => format!("{arch}.{id}"),
        Key::Kind { only_ran: false } if has_flags && group.is_of_host() => "host".to_owned(),
        Key::Kind { only_ran: false } if has_flags => "counts".to_owned(),
        Key::Kind { .. } => return out.to_owned(),
    };
    let mut name = out.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{suffix}"));
    if let Some(extension) = out.extension() {
        name.push(".");
        name.push(extension);
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
