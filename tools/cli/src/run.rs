//! `devprof run`: a program with the runtime in place, and then what was collected.

mod child;
mod journal;
mod program;
mod summary;

use crate::parts::{Part, in_path};
use crate::{Console, Ink};
use clap::Args;
use journal::Journal;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use tempfile::TempDir;

#[derive(Args)]
pub struct Options {
    /// Where to write profiles, as LLVM_PROFILE_FILE has it (%p process, %m a file to which processes add, …)
    ///
    /// Without it, LLVM_PROFILE_FILE holds, if it is set; else profiles go to a new directory, devprof-1 or the next
    /// number that is free, and processes add to the same files there.
    #[arg(long, value_name = "PATTERN")]
    profile: Option<OsString>,
    /// Record every kernel dispatch in FILE
    ///
    /// A second process that traces writes beside it, with its process id appended; %p, %h and %t stand for the process
    /// id, the host's name and TMPDIR.
    #[arg(long, value_name = "FILE")]
    trace: Option<OsString>,
    /// Run on the model of a GPU (gfx1100), whatever this machine has
    #[arg(long)]
    model: bool,
    /// Write profiles every so many milliseconds, too: a crash costs no more than that
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    snapshot: Option<u64>,
    /// How long to wait for kernels that still run when the program ends (10000)
    #[arg(long, value_name = "MS")]
    sync: Option<u64>,
    /// Load this libdevprof.so, not the one that belongs to this program
    #[arg(
        long,
        value_name = "FILE",
        env = "DEVPROF_LIBRARY",
        hide_env_values = true
    )]
    library: Option<PathBuf>,
    /// Do not say what was collected
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    command: Vec<OsString>,
}

/// As a shell has it.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let library = library(options)?;
    let log = tempfile::Builder::new()
        .prefix("devprof-run-")
        .tempfile()
        .map_err(|error| format!("cannot make a file for what the program tells: {error}"))?;
    let (name, arguments) = options.command.split_first().ok_or("no program to run")?;
    let program = in_path(name);
    let hindrance = program.as_deref().and_then(program::hindrance);
    let directory = Directory::new(options)?;
    let links = Links::default();
    let mut command = Command::new(name);
    command.args(arguments);
    environment(&mut command, options, &library, &directory, &links)?;
    // Of a run within a run: both are told.
    let outer = env::var_os("DEVPROF_LOG").filter(|name| !name.is_empty());
    command.env("DEVPROF_LOG", log.path());

    let since = SystemTime::now();
    let ended = child::run(&mut command);
    directory.remove_if_empty();
    let end = match ended {
        Ok(end) => end,
        Err(child::Error::Wait(error)) => {
            return Err(format!("cannot wait for {}: {error}", name.display()));
        }
        Err(child::Error::Start(error)) => {
            let line = format!("devprof: cannot start {}: {error}", name.display());
            (console.say)(&line);
            return Ok(match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            });
        }
    };
    let told = fs::read(log.path())
        .map_err(|error| format!("cannot read {}: {error}", log.path().display()))?;
    if let Some(outer) = outer {
        // Its reader is the one who cares whether it is there.
        let file = fs::File::options().append(true).open(outer);
        let _ = file.and_then(|mut file| file.write_all(&told));
    }
    let journal = Journal::read(&told);
    let asked = summary::Asked {
        program: program.unwrap_or_else(|| name.into()),
        hindrance,
        is_traced: options.trace.is_some(),
        directory: directory.0.clone(),
        since,
        has_gpu: options.model
            || Path::new("/dev/kfd").exists()
            || env::var_os("HSA_MODEL_LIB").is_some(),
    };
    let copies = summary::without_copies(&asked, &journal);
    if !options.quiet {
        let prefix = Ink::Good.on(console.colors.say, "devprof:");
        let lines = summary::of(&asked, &journal);
        for line in copies.into_iter().chain(lines) {
            (console.say)(&format!("{prefix} {line}"));
        }
    }
    // Its file would stay behind when a signal ends us.
    drop((log, links));
    Ok(child::end_as(end))
}

/// The shared library to load, absolute.
fn library(options: &Options) -> Result<PathBuf, String> {
    let Some(given) = &options.library else {
        return Part::Library
            .find()
            .map_err(|error| format!("no libdevprof.so, name it with --library: {error}"));
    };
    let failed = |why: &dyn std::fmt::Display| {
        format!(
            "cannot find the library {} (--library, DEVPROF_LIBRARY): {why}",
            given.display()
        )
    };
    let library = given.canonicalize().map_err(|error| failed(&error))?;
    match library.is_file() {
        true => Ok(library),
        false => Err(failed(&"not a file")),
    }
}

/// Where profiles go when nobody says it: a directory of this run, so that what is in it is what this run has counted.
struct Directory(Option<PathBuf>);

impl Directory {
    fn new(options: &Options) -> Result<Directory, String> {
        let is_set = env::var_os("LLVM_PROFILE_FILE").is_some_and(|pattern| !pattern.is_empty());
        if options.profile.is_some() || is_set {
            return Ok(Directory(None));
        }
        let here = here()?;
        for n in 1u64.. {
            let path = here.join(format!("devprof-{n}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Directory(Some(path))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(format!(
                        "cannot make {} for the profiles: {error}; say where they are to go with --profile",
                        path.display()
                    ));
                }
            }
        }
        Err("all numbers are taken".to_owned())
    }

    fn remove_if_empty(&self) {
        if let Some(path) = &self.0 {
            // It is not empty, mostly.
            let _ = fs::remove_dir(path);
        }
    }
}

fn here() -> Result<PathBuf, String> {
    env::current_dir().map_err(|error| format!("cannot tell the current directory: {error}"))
}

/// A pattern that holds wherever a process is. One that begins with %t does.
fn absolute(pattern: &OsStr) -> Result<OsString, String> {
    if pattern.as_bytes().starts_with(b"%t") {
        return Ok(pattern.to_owned());
    }
    Ok(here()?.join(pattern).into_os_string())
}

fn environment(
    command: &mut Command,
    options: &Options,
    library: &Path,
    directory: &Directory,
    links: &Links,
) -> Result<(), String> {
    let mut preload = vec![links.plain(library)?];
    if options.model {
        preload.extend(model(command, links)?);
    }
    let old = env::var_os("LD_PRELOAD").unwrap_or_default();
    command.env("LD_PRELOAD", with_preloads(&old, &preload));
    // For a program that is started with LD_PRELOAD taken away.
    let tools = env::var_os("HSA_TOOLS_LIB").unwrap_or_default();
    command.env("HSA_TOOLS_LIB", with_tool(&tools, &preload[0]));
    // Otherwise ROCr skips it next to a tool of rocprofiler-sdk.
    if env::var_os("HSA_TOOLS_ROCPROFILER_V1_TOOLS").is_none() {
        command.env("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1");
    }
    match (&options.profile, &directory.0) {
        (Some(pattern), _) => {
            command.env("LLVM_PROFILE_FILE", absolute(pattern)?);
        }
        (None, Some(directory)) => {
            command.env("LLVM_PROFILE_FILE", directory.join("%m.profraw"));
        }
        (None, None) => {}
    }
    if let Some(pattern) = &options.trace {
        command.env("DEVPROF_TRACE", absolute(pattern)?);
    }
    for (name, value) in [
        ("DEVPROF_SNAPSHOT_MS", options.snapshot),
        ("DEVPROF_SYNC_MS", options.sync),
    ] {
        if let Some(value) = value {
            command.env(name, value.to_string());
        }
    }
    Ok(())
}

/// Puts the GPU model in place. What is to be loaded for it.
fn model(command: &mut Command, links: &Links) -> Result<Vec<PathBuf>, String> {
    let part = |part: Part| {
        part.find()
            .map_err(|error| format!("--model: no GPU model: {error}"))
    };
    command
        .env("HSA_MODEL_LIB", part(Part::Model)?)
        .env("HSA_MODEL_TOPOLOGY", part(Part::Topology)?)
        // No events: ROCr's threads spin on the model's. No SDMA: the model copies with kernels. No pinning of host
        // memory for copies below so many MiB: ROCr's model mode aborts on it ("userptr not supported").
        .env("HSA_ENABLE_INTERRUPT", "0")
        .env("HSA_ENABLE_SDMA", "0")
        .env("GPU_PINNED_MIN_XFER_SIZE", "4095");
    Ok(vec![links.plain(&part(Part::Starter)?)?])
}

/// The list with these libraries before what is in it, none of them twice.
fn with_preloads(old: &OsStr, libraries: &[PathBuf]) -> OsString {
    let is_new = |name: &&[u8]| {
        let ours = libraries.iter().map(|library| library.as_os_str());
        !name.is_empty() && ours.clone().all(|ours| ours.as_bytes() != *name)
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

/// ROCr's list of tools with this one at its end.
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

/// Other names for files whose own the dynamic linker and ROCr would take for several.
#[derive(Default)]
struct Links(std::cell::OnceCell<TempDir>);

impl Links {
    /// The path, or a link to it that has no separator in its name.
    fn plain(&self, path: &Path) -> Result<PathBuf, String> {
        let is_plain = |path: &Path| {
            let separates = |byte: &u8| b" :;\"$".contains(byte);
            !path.as_os_str().as_bytes().iter().any(separates)
        };
        if is_plain(path) {
            return Ok(path.to_owned());
        }
        let failed = |error: &dyn std::fmt::Display| {
            format!(
                "{}: the dynamic linker takes no library with a space, a colon or a dollar sign in its path, and no link to it could be made: {error}",
                path.display()
            )
        };
        let dir = match self.0.get() {
            Some(dir) => dir,
            None => {
                let made = tempfile::Builder::new().prefix("devprof-run-").tempdir();
                let made = made.map_err(|error| failed(&error))?;
                self.0.get_or_init(|| made)
            }
        };
        let name = path.file_name().unwrap_or_default();
        let link = dir.path().join(name);
        if !is_plain(&link) {
            return Err(failed(&format_args!("{} is no better", link.display())));
        }
        std::os::unix::fs::symlink(path, &link).map_err(|error| failed(&error))?;
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_loads_stays() {
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
    fn a_library_with_a_space_in_its_path_gets_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("a b.so");
        fs::write(&library, "x").unwrap();
        let links = Links::default();
        // The file's own name cannot be helped.
        assert!(links.plain(&library).unwrap_err().contains("no better"));
        let spaced = dir.path().join("a b");
        fs::create_dir(&spaced).unwrap();
        let library = spaced.join("libdevprof.so");
        fs::write(&library, "x").unwrap();
        let link = links.plain(&library).unwrap();
        assert!(!link.display().to_string().contains(' '));
        assert_eq!(fs::read(&link).unwrap(), b"x");
    }
}
