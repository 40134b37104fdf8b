//! `devprof report`: which lines of the sources ran on the GPUs.
//!
//! [`objects`] takes the code objects with a coverage mapping out of the binaries, `merge` makes a profile of each
//! architecture, [`gather`] has llvm-cov read each code object with its architecture's profile, [`model`] joins what
//! they say with the trace, and a module a format writes it.

mod gather;
mod html;
mod lcov;
mod lines;
mod llvm_cov;
mod mapping;
mod model;
mod notes;
mod objects;
mod output;
mod source;
mod text;
mod trace;

use crate::merge::{self, Arch};
use crate::names::Naming;
use crate::{Console, PARTLY, llvm};
use clap::{Args, ValueEnum};
use gather::Gathered;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::Report;
use notes::Notes;
use objects::{Object, Objects};
use source::Finder;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
// Behind --profile, which takes several, a binary would be a profile.
#[command(override_usage = "devprof report [OPTIONS] <BINARY>... --profile <FILE>...")]
pub struct Options {
    /// The programs, libraries or code objects that ran, compiled with the coverage flags
    #[arg(required = true, value_name = "BINARY")]
    binaries: Vec<PathBuf>,
    /// What they counted: raw profiles (.profraw) as they were written, a directory of them, a pattern (*, ?), or
    /// merged ones (.profdata)
    ///
    /// The architecture is taken from a raw profile's name (gfx1100.default.profraw). A merged profile does not tell
    /// architectures apart, unless it is named as `devprof merge --by-arch` names it (OUT.gfx1100.profdata).
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    profile: Vec<PathBuf>,
    /// The trace of the same run (DEVPROF_TRACE): calls and times of kernels, and those that are not instrumented
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// What to write; without it, text to stdout, or, with --output, html
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT")]
    format: Vec<Format>,
    /// The directory to write to, which is made, or was made by devprof report before
    ///
    /// index.html, coverage.lcov (all architectures) and an .lcov for each, report.json; text goes to stdout.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The host's code of the same binaries, too, from the profiles of the host
    #[arg(long)]
    host: bool,
    /// A directory that has the sources' tree or a part of it, where they are not at the paths that were compiled
    #[arg(long, value_name = "DIR")]
    sources_from: Vec<PathBuf>,
    /// Sources whose path begins with FROM are read at TO and what follows
    #[arg(long, value_name = "FROM=TO", value_parser = path_map)]
    path_map: Vec<(String, String)>,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    llvm: llvm::Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Format {
    /// Kernels, files and what to know about the numbers
    Text,
    /// Pages that begin at index.html and need no server
    Html,
    /// For genhtml and whatever else reads LCOV's tracefiles
    Lcov,
    /// All of it, for programs
    Json,
}

fn path_map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("it must be FROM=TO".to_owned()),
    }
}

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let formats = formats(options)?;
    if let Some(dir) = &options.output {
        output::check(dir)?;
    }
    let shown = formats.contains(&Format::Text);
    let (report, whole) = make(options, shown, console)?;
    match &options.output {
        None => {
            let mut bytes = Vec::new();
            for format in &formats {
                one(*format, &report, &mut bytes)
                    .map_err(|e| format!("cannot write the report: {e}"))?;
            }
            console.print(&String::from_utf8_lossy(&bytes))?;
        }
        Some(dir) => {
            output::replace(dir, |dir| all(&formats, &report, dir))
                .map_err(|e| format!("cannot write {}: {e}", dir.display()))?;
            let text = if shown {
                text::report(&report)
            } else {
                text::line(dir, &report)
            };
            console.print(&text)?;
        }
    }
    Ok(if whole { 0 } else { PARTLY })
}

/// What to write, and that there is a place for it.
fn formats(options: &Options) -> Result<BTreeSet<Format>, String> {
    let mut formats: BTreeSet<Format> = options.format.iter().copied().collect();
    if formats.is_empty() {
        formats.insert(if options.output.is_some() {
            Format::Html
        } else {
            Format::Text
        });
    }
    if options.output.is_none() && (formats.contains(&Format::Html) || formats.len() > 1) {
        return Err("pages, or several formats, want a directory: name it with -o DIR".to_owned());
    }
    Ok(formats)
}

/// A format that is one stream.
fn one(format: Format, report: &Report, out: &mut Vec<u8>) -> std::io::Result<()> {
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

/// All formats that are files.
fn all(formats: &BTreeSet<Format>, report: &Report, dir: &Path) -> std::io::Result<()> {
    for format in formats {
        match format {
            Format::Text => {}
            Format::Html => html::write(report, dir)?,
            Format::Lcov => lcov::write_all(report, dir)?,
            Format::Json => {
                let mut bytes = Vec::new();
                one(Format::Json, report, &mut bytes)?;
                std::fs::write(dir.join("report.json"), bytes)?;
            }
        }
    }
    Ok(())
}

/// The report, and whether all that was named is in it. `shown`: as text, with what is wrong.
fn make(options: &Options, shown: bool, console: &mut Console) -> Result<(Report, bool), String> {
    let llvm = options.llvm.search()?;
    let llvm_cov = llvm.newest("llvm-cov")?;
    let scratch = tempfile::Builder::new()
        .prefix("devprof-report-")
        .tempdir()
        .map_err(|e| {
            format!(
                "cannot make a directory in {}: {e}",
                std::env::temp_dir().display()
            )
        })?;
    let mut notes = Notes::default();

    let objects = Objects::extract(&options.binaries, &scratch.path().join("objects"))?;
    if objects.found.is_empty() && !options.host {
        return Err(objects.nothing(&options.binaries));
    }
    notes.lost(
        "Parts of the binaries could not be read",
        objects.damage.clone(),
    );

    let mut said = Vec::new();
    let how = merge::How {
        by_arch: true,
        ..merge::How::default()
    };
    let place = scratch.path().join("merged.profdata");
    let merged = merge::merge(&options.profile, &place, how, &llvm, &mut |line| {
        (console.say)(line);
        let line = line.trim_start_matches("devprof: ");
        said.push(line.trim_end_matches("; left out").to_owned());
    })?;
    if merged.left_out > 0 {
        notes.left_out("Not all of the profiles could be used", said);
    }
    let profiles: BTreeMap<Arch, PathBuf> = merged
        .outputs
        .iter()
        .filter_map(|output| Some((output.archs.first()?.clone(), output.path.clone())))
        .collect();

    let ran = match &options.trace {
        None => None,
        Some(path) => {
            let (kernels, whole) = trace::read(path, console)?;
            if !whole {
                let place = path.display();
                notes.loss(format!(
                    "Parts of the trace {place} could not be read: calls and times are too small."
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
    let plan = plan(&objects.found, &hosts, &profiles, &mut notes)?;
    let bar = progress(plan.iter().map(|column| column.objects.len()).sum());
    let gathered: Vec<Gathered> = plan
        .iter()
        .map(|column| {
            let profile = column.profile.map(PathBuf::as_path);
            let read = Gathered::read(&column.name, &column.objects, profile, &llvm_cov, &bar);
            Gathered {
                host: column.host,
                ..read
            }
        })
        .collect();
    bar.finish_and_clear();
    if gathered.iter().all(|column| column.functions.is_empty()) {
        let why = gathered.iter().flat_map(|column| &column.problems.unread);
        let why: Vec<&str> = why.map(String::as_str).collect();
        return Err(format!(
            "no function of the binaries could be read: {}",
            why.join("; ")
        ));
    }
    for column in &gathered {
        notes.problems(column);
        notes.idle(column);
    }
    notes.sampled(&plan);

    let finder = Finder {
        maps: options.path_map.clone(),
        roots: options.sources_from.clone(),
        built: objects::built(&options.binaries),
    };
    let mut report = model::build(
        &title(&options.binaries),
        &gathered,
        ran.as_ref(),
        options.naming,
        |path| finder.find(path),
    );
    notes.sources(&report);
    notes.kernels(&report);
    if options.format.contains(&Format::Lcov) {
        notes.unnamed(&report);
    }
    let (notes, whole) = notes.finish(shown, console);
    report.notes = notes;
    Ok((report, whole))
}

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

/// A column of the report, before it is read.
struct Planned<'a> {
    name: String,
    host: bool,
    objects: Vec<&'a Object>,
    profile: Option<&'a PathBuf>,
}

/// Which profile counts for which code objects.
fn plan<'a>(
    objects: &'a [Object],
    hosts: &'a [Object],
    profiles: &'a BTreeMap<Arch, PathBuf>,
    notes: &mut Notes,
) -> Result<Vec<Planned<'a>>, String> {
    let device = |name: &str, objects: Vec<&'a Object>, profile| Planned {
        name: name.to_owned(),
        host: false,
        objects,
        profile,
    };
    let mut processors: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for object in objects {
        processors
            .entry(&object.processor)
            .or_default()
            .push(object);
    }
    let mut columns = Vec::new();
    let mut used = BTreeSet::new();
    for (arch, profile) in profiles {
        let Arch::Gpu(name) = arch else { continue };
        // A GPU takes the code object for itself before one for its family.
        let processor = [name.as_str()]
            .into_iter()
            .find(|own| processors.contains_key(own));
        let Some(processor) = processor.or_else(|| {
            processors
                .keys()
                .copied()
                .find(|family| objects::serves(family, name))
        }) else {
            notes.loss(format!("There is a profile of {name}, and no code object for it in the binaries: its counts are left out."));
            continue;
        };
        used.insert(processor);
        columns.push(device(name, processors[processor].clone(), Some(profile)));
    }
    let unknown = profiles.get(&Arch::Unknown);
    match (unknown, processors.len()) {
        (Some(profile), 1) if columns.is_empty() => {
            let (name, objects) = processors.pop_first().unwrap_or_default();
            used.insert(name);
            columns.push(device(name, objects, Some(profile)));
        }
        (Some(profile), 1..) => {
            columns.push(device("merged", objects.iter().collect(), Some(profile)));
            used.extend(processors.keys());
            notes.warning("The merged profile does not tell architectures apart: its counts stand under “merged”, for all architectures together.");
        }
        _ => {}
    }
    if unknown.is_some() {
        notes.note("A merged profile does not tell device from host: where host and device have a function of the same name, counts of the host may be among the device’s. Raw profiles keep them apart.");
    }
    if columns.is_empty() && hosts.is_empty() {
        let of = profiles
            .keys()
            .map(Arch::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let there = processors.keys().copied().collect::<Vec<_>>().join(", ");
        return Err(format!(
            "the profiles are of {of}, the code objects for {there}: name the profiles that the runtime wrote for these (ARCH.NAME.profraw)"
        ));
    }
    for (name, objects) in processors {
        if !used.contains(name) {
            notes.note(format!(
                "{name} did not run: there is no profile of it. Its code counts in no total."
            ));
            columns.push(device(name, objects, None));
        }
    }
    columns.sort_by(|a, b| (a.profile.is_none(), &a.name).cmp(&(b.profile.is_none(), &b.name)));
    if !hosts.is_empty() {
        let profile = profiles.get(&Arch::Host).or(unknown);
        if profile.is_none() {
            notes.loss("There is no profile of the host: nothing is known of its code. It is written beside the device’s (NAME.profraw).");
        }
        columns.push(Planned {
            name: "host".to_owned(),
            host: true,
            objects: hosts.iter().collect(),
            profile,
        });
    }
    Ok(columns)
}

fn progress(objects: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        Some(objects as u64),
        match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        },
    );
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} code objects");
    style
        .map(|style| bar.clone().with_style(style))
        .unwrap_or(bar)
}
