//! `devprof run`: runs a program with the runtime loaded, and then summarizes the collected data.

mod child;
mod links;
mod model;
mod preload;
pub mod summary;

pub use links::Links;

use crate::console::{Console, Diagnostic};
use crate::exit::{Outcome, StartError, usage};
use crate::gpus;
use crate::locate::{Component, find_in_path};
use crate::run_log::journal::Journal;
use crate::run_log::saved;
use anyhow::{Context, bail};
use clap::Args;
use model::Model;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use tempfile::TempDir;

/// The pattern for the names of profiles in a directory.
const DEFAULT_NAME: &str = "%m.profraw";

#[derive(Args)]
pub struct Options {
    /// Where to write profiles; a pattern as in LLVM_PROFILE_FILE (%p: process ID, %m: merge processes into
    /// one file, …)
    ///
    /// A directory, or a name that ends with a slash, means %m.profraw in it. The default is LLVM_PROFILE_FILE if that is
    /// set, or else %m.profraw in a new directory, devprof-1 or the next free number. A directory also gets a .runlog
    /// file, in which `devprof report` finds the binaries.
    #[arg(long, value_name = "PATTERN")]
    profile: Option<OsString>,
    /// Trace kernel dispatches to FILE
    ///
    /// If FILE is in use by another process, the process ID is appended to the name. In FILE, %p stands for the process
    /// ID, %h for the host name and %t for TMPDIR.
    #[arg(long, value_name = "FILE")]
    trace: Option<OsString>,
    /// Also trace all API calls of HIP or CUDA, not only those that launch, copy or fill
    #[arg(long, requires = "trace")]
    trace_api: bool,
    /// Also trace copies and fills of memory
    #[arg(long, requires = "trace")]
    trace_copies: bool,
    /// Also trace the program's markers and ranges (roctx, NVTX)
    #[arg(long, requires = "trace")]
    trace_markers: bool,
    /// Do not record until the program calls devprof_trace_start, roctxProfilerResume or cudaProfilerStart
    #[arg(long, requires = "trace")]
    trace_stopped: bool,
    /// Start the recording MS milliseconds after the program has initialized its GPU runtime
    #[arg(long, value_name = "MS", requires = "trace")]
    trace_start_after: Option<u64>,
    /// Stop the recording MS milliseconds after each start
    #[arg(long, value_name = "MS", requires = "trace", value_parser = clap::value_parser!(u64).range(1..))]
    trace_duration: Option<u64>,
    #[command(flatten)]
    model: model::Options,
    /// Also write profiles every MS milliseconds, so that a crash loses at most the counts of that time
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    snapshot: Option<u64>,
    /// How many milliseconds to wait for running kernels when the program exits [default: 10000]
    #[arg(long, value_name = "MS")]
    sync: Option<u64>,
    /// Load this libdevprof.so instead of the installed one
    #[arg(
        long,
        value_name = "FILE",
        env = "DEVPROF_LIBRARY",
        hide_env_values = true
    )]
    library: Option<PathBuf>,
    /// Exit with status 1 if the program succeeds, but no profile was written
    #[arg(long)]
    require_profile: bool,
    /// Do not print the summary
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    command: Vec<OsString>,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let library = library(options)?;
    let (name, arguments) = options.command.split_first().context("no program to run")?;
    let program = find_in_path(name);
    let obstacle = program.as_deref().and_then(preload::obstacle);
    let directory = Directory::new(options)?;
    let log = log(pattern(options, &directory).as_deref())?;
    let links = Links::default();
    let mut command = Command::new(name);
    command.args(arguments);
    let model = options.model.model()?;
    environment(
        &mut command,
        options,
        model.as_ref(),
        &library,
        &directory,
        &links,
    )?;
    if let Some(model) = model.as_ref().filter(|_| !options.quiet) {
        console.report(&Diagnostic::note(model.to_string()));
    }
    let outer = env::var_os(settings::LOG.name).filter(|name| !name.is_empty());
    command.env(settings::LOG.name, log.path());

    let since = SystemTime::now();
    let ended = child::run(&mut command);
    let records = runlog::read(log.path())
        .with_context(|| format!("cannot read the run log {}", log.path().display()));
    // Now, because it may be in that directory.
    drop(log);
    directory.remove_if_empty();
    let end = match ended {
        Ok(end) => end,
        Err(child::Error::Wait(error)) => {
            return Err(error).with_context(|| format!("cannot wait for {}", name.display()));
        }
        Err(child::Error::Start(source)) => {
            let program = name.display().to_string();
            return Err(StartError { program, source }.into());
        }
    };
    let records = records?;
    if let Some(outer) = outer {
        append_to_outer(Path::new(&outer), &records);
    }
    let journal = Journal::read(records.iter().map(|(_, log)| &log[..]));
    let run = summary::Run {
        program: program.unwrap_or_else(|| name.into()),
        obstacle,
        is_traced: options.trace.is_some(),
        profiles: profile_directory(options, &directory),
        directory: directory.0.clone(),
        since,
        signal: match end {
            child::End::Killed(signal) => Some(signal),
            child::End::Exited(_) => None,
        },
        gpus: match &model {
            Some(model) => model.architectures(),
            None => gpus::architectures(),
        },
        nvidia: gpus::nvidia(Path::new("/")).len(),
    };
    let duplicates = summary::remove_duplicates(&run, &journal);
    if !options.quiet {
        let summary = summary::diagnostics(&run, &journal);
        for diagnostic in duplicates.into_iter().chain(summary) {
            console.report(&diagnostic);
        }
    }
    if let Some(dir) = log_directory(options, &directory, &journal) {
        for (_, log) in &records {
            if let Err(error) = saved::save(dir, log) {
                console.warn(format!(
                    "{error:#}: `devprof report` needs the names of the binaries"
                ));
            }
        }
    }
    let failure = failure(options, &journal, end, console);
    // Remove the temporary files now: no destructors run if a signal ends this process.
    drop(links);
    let status = child::end_as(end);
    Ok(failure.unwrap_or(Outcome::Program(status)))
}

/// Creates a directory for the run log: next to the profiles, because processes on other nodes append to it, too.
fn log(profiles: Option<&Path>) -> anyhow::Result<TempDir> {
    let is_fixed = |dir: &&Path| !dir.as_os_str().as_bytes().contains(&b'%');
    let next_to_profiles = profiles.map(|pattern| {
        let mut dirs = pattern.ancestors().skip(1);
        dirs.find(is_fixed).unwrap_or(Path::new("/")).to_owned()
    });
    let here = env::current_dir().ok();
    let create = |dir: PathBuf| {
        let mut name = tempfile::Builder::new();
        name.prefix(".devprof-run-").tempdir_in(dir)
    };
    let shared = next_to_profiles.into_iter().chain(here);
    match shared.map(create).find_map(Result::ok) {
        Some(log) => Ok(log),
        None => create(env::temp_dir()).context("cannot create a directory for the run log"),
    }
}

/// If this is a run within another `devprof run`, its records are appended to the outer run's log as well.
fn append_to_outer(outer: &Path, records: &[(OsString, Vec<u8>)]) {
    let is_directory = outer.is_dir();
    for (name, log) in records {
        let mut options = fs::File::options();
        let file = if is_directory {
            options.append(true).create(true).open(outer.join(name))
        } else {
            options.append(true).open(outer)
        };
        // The outer run reports the error if its log does not exist.
        let _ = file.and_then(|mut file| file.write_all(log));
    }
}

/// Why a run of a program that succeeded is not a success. Another status or a signal of the program takes precedence.
fn failure(
    options: &Options,
    journal: &Journal,
    end: child::End,
    console: &mut Console,
) -> Option<Outcome> {
    if end != child::End::Exited(0) {
        return None;
    }
    if options.require_profile && journal.profiles.is_empty() {
        console.error("no profile was written, and --require-profile requires one");
        return Some(Outcome::Failed);
    }
    let overwritten = journal.overwritten().next().is_some();
    (overwritten || !journal.lost.is_empty()).then_some(Outcome::Incomplete)
}

/// The absolute path of the shared library to load.
fn library(options: &Options) -> anyhow::Result<PathBuf> {
    let Some(given) = &options.library else {
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

/// The default directory for profiles. It is created for this run, so that it has only the counts of this run.
struct Directory(Option<PathBuf>);

impl Directory {
    fn new(options: &Options) -> anyhow::Result<Directory> {
        let is_set =
            env::var_os(settings::PROFILE_FILE.name).is_some_and(|pattern| !pattern.is_empty());
        if options.profile.is_some() || is_set {
            return Ok(Directory(None));
        }
        let here = current_dir()?;
        for n in 1u64.. {
            let path = here.join(format!("devprof-{n}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Directory(Some(path))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => bail!(
                    "cannot create {} for the profiles: {error}; choose another location with --profile",
                    path.display()
                ),
            }
        }
        bail!("no unused directory devprof-N in {}", here.display())
    }

    fn remove_if_empty(&self) {
        if let Some(path) = &self.0 {
            // Fails if it is not empty, as intended.
            let _ = fs::remove_dir(path);
        }
    }
}

/// The pattern for the names of profiles, as an absolute path. `None`: it begins with %t.
fn pattern(options: &Options, default: &Directory) -> Option<PathBuf> {
    let pattern = match (&options.profile, &default.0) {
        (Some(given), _) => profile_pattern(given),
        (None, Some(dir)) => dir.join(DEFAULT_NAME).into_os_string(),
        (None, None) => env::var_os(settings::PROFILE_FILE.name)?,
    };
    let absolute = PathBuf::from(absolute(&pattern).ok()?);
    absolute.is_absolute().then_some(absolute)
}

/// The directory to which profiles are written, if the pattern for their names says it.
fn profile_directory(options: &Options, default: &Directory) -> Option<PathBuf> {
    if let Some(dir) = &default.0 {
        return Some(dir.clone());
    }
    let pattern = pattern(options, default)?;
    let dir = pattern.parent()?;
    (!dir.as_os_str().as_bytes().contains(&b'%')).then(|| dir.to_owned())
}

/// The directory of the profiles, if it was the default one or named as a directory, and has profiles of this run.
fn log_directory<'a>(
    options: &'a Options,
    default: &'a Directory,
    journal: &Journal,
) -> Option<&'a Path> {
    let dir = match &options.profile {
        Some(given) => Some(Path::new(given)).filter(|given| given.is_dir()),
        None => default.0.as_deref(),
    }?;
    let resolved = dir.canonicalize().ok()?;
    let is_in = |profile: &PathBuf| {
        let parent = profile
            .parent()
            .and_then(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| parent == resolved)
    };
    journal.profiles.keys().any(is_in).then_some(dir)
}

fn current_dir() -> anyhow::Result<PathBuf> {
    env::current_dir().context("cannot determine the current directory")
}

/// The pattern for profiles: the given one, or %m.profraw in the given directory.
fn profile_pattern(given: &OsStr) -> OsString {
    if crate::outfile::is_directory(Path::new(given)) {
        Path::new(given).join(DEFAULT_NAME).into_os_string()
    } else {
        given.to_owned()
    }
}

/// The pattern as an absolute path, because the program may change its directory. A pattern that begins with %t is
/// already absolute.
fn absolute(pattern: &OsStr) -> anyhow::Result<OsString> {
    if pattern.as_bytes().starts_with(b"%t") {
        return Ok(pattern.to_owned());
    }
    Ok(current_dir()?.join(pattern).into_os_string())
}

/// Sets the environment of the program.
fn environment(
    command: &mut Command,
    options: &Options,
    model: Option<&Model>,
    library: &Path,
    directory: &Directory,
    links: &Links,
) -> anyhow::Result<()> {
    let mut preload = vec![links.without_separators(library)?];
    if let Some(model) = model {
        preload.extend(model.prepare(command, links)?);
    }
    let old = env::var_os("LD_PRELOAD").unwrap_or_default();
    command.env("LD_PRELOAD", with_preloads(&old, &preload));
    // In case LD_PRELOAD is removed before the program starts.
    let tools = env::var_os("HSA_TOOLS_LIB").unwrap_or_default();
    command.env("HSA_TOOLS_LIB", with_tool(&tools, &preload[0]));
    // Without it, ROCr skips devprof if a rocprofiler-sdk tool is present.
    if env::var_os("HSA_TOOLS_ROCPROFILER_V1_TOOLS").is_none() {
        command.env("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1");
    }
    let profile = match (&options.profile, &directory.0) {
        (Some(pattern), _) => Some(absolute(&profile_pattern(pattern))?),
        (None, Some(directory)) => Some(directory.join(DEFAULT_NAME).into_os_string()),
        (None, None) => None,
    };
    let trace = options.trace.as_deref().map(absolute).transpose()?;
    let flag = |is_on: bool| is_on.then(|| OsString::from("1"));
    let number = |value: Option<u64>| value.map(|value| OsString::from(value.to_string()));
    for (setting, value) in [
        (settings::PROFILE_FILE, profile),
        (settings::TRACE, trace),
        (settings::TRACE_API, flag(options.trace_api)),
        (settings::TRACE_COPIES, flag(options.trace_copies)),
        (settings::TRACE_MARKERS, flag(options.trace_markers)),
        (settings::TRACE_STOPPED, flag(options.trace_stopped)),
        (settings::SNAPSHOT, number(options.snapshot)),
        (settings::SYNC, number(options.sync)),
        (
            settings::TRACE_START_AFTER,
            number(options.trace_start_after),
        ),
        (settings::TRACE_DURATION, number(options.trace_duration)),
    ] {
        if let Some(value) = value {
            command.env(setting.name, value);
        }
    }
    Ok(())
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
    fn a_directory_is_a_pattern_for_its_profiles() {
        let dir = tempfile::tempdir().unwrap();
        let pattern = profile_pattern(dir.path().as_os_str());
        assert_eq!(Path::new(&pattern), dir.path().join("%m.profraw"));
        assert_eq!(profile_pattern(OsStr::new("none/")), "none/%m.profraw");
        assert_eq!(profile_pattern(OsStr::new("none/%p")), "none/%p");
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
