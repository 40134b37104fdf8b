//! `devprof run`: runs a program with the runtime loaded, and then summarizes the collected data.

pub mod child;
mod ctest;
mod links;
mod model;
mod next;
mod preload;
pub mod profiles;
mod python;
pub mod recording;
pub mod summary;

pub use links::Links;

use crate::console::{Console, Diagnostic};
use crate::exit::{Outcome, StartError, usage};
use crate::gpus;
use crate::locate::{Component, find_in_path};
use crate::run_log::device_code;
use crate::run_log::journal::Journal;
use crate::run_log::saved;
use crate::times;
use anyhow::Context;
use clap::Args;
use ctest::Ctest;
use model::Model;
use profiles::Profiles;
use recording::Recording;
use runlog::Event;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The options of AddressSanitizer's runtime.
const ASAN_OPTIONS: &str = "ASAN_OPTIONS";

/// The variables of `--ptx`: devprof's, and CuPy's, which otherwise makes code for the GPU itself.
const PTX: [&str; 2] = [settings::PTX.name, "CUPY_COMPILE_WITH_PTX"];

#[derive(Args)]
pub struct Options {
    /// Where to write profiles; a pattern as in LLVM_PROFILE_FILE (%p: process ID, %m: merge processes into
    /// one file, …)
    ///
    /// A directory, or a name without an extension, means %m.profraw in it. The default is LLVM_PROFILE_FILE if that is
    /// set, or else %m.profraw in a new directory, devprof-1 or the next free number. The directory, unless its name has
    /// a pattern, also gets a .runlog file, in which `devprof report` finds the binaries.
    #[arg(long, value_name = "PATTERN")]
    profile: Option<OsString>,
    /// Collect the coverage of kernels that Triton compiles while the program runs, those of torch.compile included
    ///
    /// They are compiled again: their caches are directories next to the profiles.
    #[arg(long)]
    coverage: bool,
    #[command(flatten)]
    trace: recording::Options,
    /// Exit with status 1 if the program succeeds, but no profile was written
    #[arg(long)]
    require_profile: bool,
    /// Do not print the summary, only losses
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    program: Program,
}

/// The program to run, and how.
#[derive(Args)]
#[group(skip)]
pub struct Program {
    #[command(flatten)]
    model: model::Options,
    /// Also write profiles periodically, so that a crash loses at most the counts of this time: milliseconds, or 500ms, 5s, 2m
    #[arg(long, value_name = "TIME", value_parser = times::positive_milliseconds)]
    snapshot: Option<u64>,
    /// How long to wait for running kernels when the program exits [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = times::milliseconds)]
    sync: Option<u64>,
    /// Instrument the PTX that the program passes to the CUDA driver: code that libraries compile while it runs (NVRTC, Numba,
    /// CuPy), and PTX with line information in programs
    #[arg(long)]
    ptx: bool,
    /// Load this libdevprof.so instead of the installed one
    #[arg(
        long,
        value_name = "FILE",
        env = "DEVPROF_LIBRARY",
        hide_env_values = true
    )]
    library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    command: Vec<OsString>,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let request = Request {
        program: &options.program,
        profile: options.profile.as_deref(),
        own_directory: None,
        coverage: options.coverage,
        per_test: false,
        trace: &options.trace,
        summary: if options.quiet {
            Summary::Losses
        } else {
            Summary::Always
        },
    };
    let ran = execute(&request, console)?;
    let mut failure = ran.is_incomplete().then_some(Outcome::Incomplete);
    if options.require_profile && ran.end == child::End::Exited(0) && !ran.has_profiles() {
        console.error("no profile was written, and --require-profile requires one");
        failure = Some(Outcome::Failed);
    }
    let recorded = ran
        .recorded
        .filter(|&recorded| ran.end == child::End::Exited(0) && recorded != Outcome::Complete);
    let status = child::end_as(ran.end);
    Ok(failure.or(recorded).unwrap_or(Outcome::Program(status)))
}

/// When the summary of a run is printed. Losses always are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Summary {
    Always,
    /// If there is no profile, it explains why.
    WithoutProfiles,
    Losses,
}

/// What to run, and where it writes.
pub struct Request<'a> {
    pub program: &'a Program,
    /// The pattern for the names of profiles.
    pub profile: Option<&'a OsStr>,
    /// The directory of the profiles, if it has only those of this run.
    pub own_directory: Option<PathBuf>,
    /// Also of the kernels that Triton compiles while the program runs. Their caches are next to the profiles.
    pub coverage: bool,
    /// Attribute the counts to tests.
    pub per_test: bool,
    pub trace: &'a recording::Options,
    pub summary: Summary,
}

/// A run that has ended.
pub struct Ran {
    pub end: child::End,
    /// The tests that the program lists, if their names were needed.
    pub tests: Vec<String>,
    journal: Journal,
    /// How the use of the trace ended.
    recorded: Option<Outcome>,
}

impl Ran {
    pub fn has_profiles(&self) -> bool {
        !self.journal.profiles.is_empty()
    }

    /// Whether counts are missing, although the program succeeded.
    pub fn is_incomplete(&self) -> bool {
        self.end == child::End::Exited(0) && self.has_losses()
    }

    /// Whether counts are missing.
    pub fn has_losses(&self) -> bool {
        !self.journal.lost.is_empty()
            || self.journal.overwritten().next().is_some()
            || device_code::has_lost_counts(&self.journal)
    }
}

/// Runs the program until it ends, and prints the summary.
pub fn execute(request: &Request, console: &mut Console) -> anyhow::Result<Ran> {
    let own = request.program;
    request.trace.check()?;
    let library = library(own)?;
    let (name, arguments) = own.command.split_first().context("no program to run")?;
    let program = find_in_path(name);
    let obstacle = program.as_deref().and_then(preload::obstacle);
    let model = own.model.model()?;
    let profiles = Profiles::new(request.profile)?;
    let log = profiles::scratch(profiles.pattern())?;
    let coverage = match request.coverage {
        true => Some(python::Coverage::new(&profiles)?),
        false => None,
    };
    let recording = request.trace.recording(profiles.pattern())?;
    let keeps_traces = recording.as_ref().is_none_or(Recording::is_kept);
    let links = Links::default();
    let ctest = match request.per_test && ctest::is_ctest(name) {
        true => Some(Ctest::new(name, arguments)?),
        false => None,
    };
    let mut command = Command::new(name);
    match &ctest {
        Some(ctest) => command.args(ctest.arguments(arguments)),
        None => command.args(arguments),
    };
    preloads(&mut command, model.as_ref(), &library, &links)?;
    variables(&mut command, request, &profiles, recording.as_ref());
    if let Some(coverage) = &coverage {
        coverage.prepare(&mut command);
    }
    if let Some(model) = model
        .as_ref()
        .filter(|_| request.summary != Summary::Losses)
    {
        console.report(&Diagnostic::note(model.to_string()));
    }
    let outer = env::var_os(settings::LOG.name).filter(|name| !name.is_empty());
    command.env(settings::LOG.name, log.path());

    let since = SystemTime::now();
    let ended = child::run(&mut command);
    let records = runlog::read(log.path())
        .with_context(|| format!("cannot read the run log {}", log.path().display()));
    // Now, because they may be in that directory.
    drop((log, coverage));
    let end = match ended {
        Ok(end) => end,
        Err(error) => {
            drop(recording);
            profiles.remove_if_empty();
            let program = name.display().to_string();
            return Err(match error {
                child::Error::Start(source) => StartError { program, source }.into(),
                child::Error::Wait(error) => {
                    anyhow::Error::new(error).context(format!("cannot wait for {program}"))
                }
            });
        }
    };
    let records = records?;
    if let Some(outer) = outer {
        append_to_outer(Path::new(&outer), &records, keeps_traces);
    }
    let journal = Journal::read(records.iter().map(|(_, log)| &log[..]));
    let is_quiet = match request.summary {
        Summary::Always => false,
        Summary::WithoutProfiles => !journal.profiles.is_empty(),
        Summary::Losses => true,
    };
    let run = summary::Run {
        program: program.unwrap_or_else(|| name.into()),
        obstacle,
        is_traced: recording.is_some(),
        keeps_traces,
        is_quiet,
        profiles: profiles.directory().map(Path::to_owned),
        directory: (request.own_directory.clone()).or_else(|| profiles.created.clone()),
        since,
        end,
        gpus: match &model {
            Some(model) => model.architectures(),
            None => gpus::architectures(),
        },
        is_model: model.is_some(),
        nvidia: gpus::nvidia(Path::new("/")).len(),
    };
    let recorded = recording.map(|recording| recording.finish(&journal, console));
    profiles.remove_if_empty();
    let duplicates = summary::remove_duplicates(&run, &journal);
    let duplicates = duplicates.filter(|_| !is_quiet);
    let (mut summary, is_ir_level) = summary::diagnostics(&run, &journal);
    if !is_quiet {
        summary.extend(next::commands(&run, &journal, is_ir_level));
    }
    for diagnostic in duplicates.into_iter().chain(summary) {
        console.report(&diagnostic);
    }
    if let Some(dir) = profiles.log_directory(&journal) {
        for (_, log) in &records {
            if let Err(error) = saved::save(dir, log) {
                console.warn(format!(
                    "{error:#}: `devprof report` needs the names of the binaries"
                ));
            }
        }
    }
    Ok(Ran {
        end,
        tests: ctest.map(|ctest| ctest.tests).unwrap_or_default(),
        journal,
        recorded,
    })
}

/// If this is a run within another `devprof run`, its records are appended to the outer run's log as well.
fn append_to_outer(outer: &Path, records: &[(OsString, Vec<u8>)], keeps_traces: bool) {
    let is_directory = outer.is_dir();
    for (name, log) in records {
        let entries = runlog::entries(log);
        let lasting = entries.filter(|entry| keeps_traces || entry.event != Event::Traced);
        let log: Vec<u8> = lasting.flat_map(|entry| entry.to_line()).collect();
        let mut options = fs::File::options();
        let file = if is_directory {
            options.append(true).create(true).open(outer.join(name))
        } else {
            options.append(true).open(outer)
        };
        // The outer run reports the error if its log does not exist.
        let _ = file.and_then(|mut file| file.write_all(&log));
    }
}

/// The absolute path of the shared library to load.
fn library(program: &Program) -> anyhow::Result<PathBuf> {
    let Some(given) = &program.library else {
        return Component::Library
            .find()
            .context("cannot find libdevprof.so; name it with --library");
    };
    let failed = |why: &dyn std::fmt::Display| {
        usage(format!(
            "cannot find the library {} (--library, DEVPROF_LIBRARY): {why}",
            given.display()
        ))
    };
    let library = given.canonicalize().map_err(|error| failed(&error))?;
    if library.is_file() {
        Ok(library)
    } else {
        Err(failed(&"not a file"))
    }
}

/// Sets the libraries that the program loads.
fn preloads(
    command: &mut Command,
    model: Option<&Model>,
    library: &Path,
    links: &Links,
) -> anyhow::Result<()> {
    let mut preload = vec![links.without_separators(library)?];
    if let Some(model) = model {
        preload.extend(model.prepare(command, links)?);
    }
    let old = env::var_os("LD_PRELOAD").unwrap_or_default();
    command.env("LD_PRELOAD", with_preloads(&old, &preload));
    // AddressSanitizer's shared runtime refuses to run if another library is loaded first. Preloading it as well would
    // also load it into the programs that this one starts.
    let old = env::var_os(ASAN_OPTIONS).unwrap_or_default();
    command.env(ASAN_OPTIONS, with_asan_option(old));
    // In case LD_PRELOAD is removed before the program starts.
    let tools = env::var_os("HSA_TOOLS_LIB").unwrap_or_default();
    command.env("HSA_TOOLS_LIB", with_tool(&tools, &preload[0]));
    // Without it, ROCr skips devprof if a rocprofiler-sdk tool is present.
    if env::var_os("HSA_TOOLS_ROCPROFILER_V1_TOOLS").is_none() {
        command.env("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1");
    }
    Ok(())
}

/// Sets devprof's variables of the program.
fn variables(
    command: &mut Command,
    request: &Request,
    profiles: &Profiles,
    recording: Option<&Recording>,
) {
    let number = |value: Option<u64>| value.map(|value| OsString::from(value.to_string()));
    let trace = recording.map(|recording| recording.name.clone());
    let general = [
        (settings::PROFILE_FILE.name, profiles.setting()),
        (settings::TRACE.name, trace),
        (settings::SNAPSHOT.name, number(request.program.snapshot)),
        (settings::SYNC.name, number(request.program.sync)),
        (settings::TEST.name, request.per_test.then(OsString::new)),
    ];
    let ptx: &[&str] = if request.program.ptx { &PTX } else { &[] };
    let ptx = ptx.iter().map(|name| (*name, Some("1".into())));
    for (name, value) in general
        .into_iter()
        .chain(request.trace.settings())
        .chain(ptx)
    {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
}

/// The options of AddressSanitizer without the check that its runtime is the first library, unless the user has set that.
fn with_asan_option(old: OsString) -> OsString {
    let name = b"verify_asan_link_order";
    if old.as_bytes().windows(name.len()).any(|part| part == name) {
        return old;
    }
    let mut options = old;
    if !options.is_empty() {
        options.push(":");
    }
    options.push("verify_asan_link_order=0");
    options
}

/// The list of libraries with these added at the start, without duplicates of them.
fn with_preloads(old: &OsStr, libraries: &[PathBuf]) -> OsString {
    let is_new = |name: &&[u8]| {
        let mut added = libraries.iter().map(|library| library.as_os_str());
        !name.is_empty() && added.all(|library| library.as_bytes() != *name)
    };
    let old = old.as_bytes().split(|byte| matches!(byte, b' ' | b':'));
    let mut list = OsString::new();
    let all = libraries.iter().map(|library| library.as_os_str());
    for name in all.chain(old.filter(is_new).map(OsStr::from_bytes)) {
        if !list.is_empty() {
            list.push(":");
        }
        list.push(name);
    }
    list
}

/// ROCr's list of tools with this one added at the end, unless it is in the list.
fn with_tool(old: &OsStr, library: &Path) -> OsString {
    let mut tools = old.as_bytes().split(|&byte| byte == b' ');
    let mut list = old.to_owned();
    if tools.any(|tool| tool == library.as_os_str().as_bytes()) {
        return list;
    }
    if !list.is_empty() {
        list.push(" ");
    }
    list.push(library);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_the_user_preloads_are_kept() {
        let preload = |old: &str, new: &[&str]| {
            let new: Vec<_> = new.iter().map(PathBuf::from).collect();
            with_preloads(OsStr::new(old), &new).into_string().unwrap()
        };
        assert_eq!(preload("", &["/d.so"]), "/d.so");
        assert_eq!(
            preload("/a.so b.so", &["/d.so", "/e.so"]),
            "/d.so:/e.so:/a.so:b.so"
        );
        assert_eq!(preload("/a.so:/d.so", &["/d.so"]), "/d.so:/a.so");
        let tool = |old: &str| {
            let list = with_tool(OsStr::new(old), Path::new("/d.so"));
            list.into_string().unwrap()
        };
        assert_eq!(tool(""), "/d.so");
        assert_eq!(tool("/a.so /b.so"), "/a.so /b.so /d.so");
        assert_eq!(tool("/d.so /b.so"), "/d.so /b.so");
    }

    #[test]
    fn the_options_of_address_sanitizer_are_kept() {
        let asan = |old: &str| with_asan_option(old.into()).into_string().unwrap();
        assert_eq!(asan(""), "verify_asan_link_order=0");
        assert_eq!(asan("a=1"), "a=1:verify_asan_link_order=0");
        assert_eq!(asan("verify_asan_link_order=1"), "verify_asan_link_order=1");
    }

    #[test]
    fn a_library_with_a_space_in_its_path_gets_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("a b.so");
        fs::write(&library, "x").unwrap();
        let links = Links::default();
        // A link has the same file name, so that does not help.
        let error = links.without_separators(&library).unwrap_err().to_string();
        assert!(error.contains("the file name"), "{error}");
        let spaced = dir.path().join("a b");
        fs::create_dir(&spaced).unwrap();
        let library = spaced.join("libdevprof.so");
        fs::write(&library, "x").unwrap();
        let link = links.without_separators(&library).unwrap();
        assert!(!link.display().to_string().contains(' '));
        assert_eq!(fs::read(&link).unwrap(), b"x");
    }
}
