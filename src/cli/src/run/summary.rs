//! The summary of a run: the contents of the files that the runtime wrote, the losses, and the next command to run.

use crate::console::Diagnostic;
use crate::gpus;
use crate::names::Naming;
use crate::readable::{grouped, plural, quoted};
use crate::run_log::device_code::{self, DeviceCode};
use crate::run_log::journal::{Journal, Process};
use crate::trace_reader::{self, Record, Request, Selection};
use profraw::{Layout, records};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirEntry};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The variant flag of IR-level instrumentation: the profile is for the optimizer and has no coverage.
const IR_LEVEL: u64 = 1 << 56;
/// How many losses are listed.
const LOSSES: usize = 5;
/// How many files are listed.
const FILES: usize = 3;
/// Of larger traces only the size is shown.
const LARGE_TRACE: u64 = 256 << 20;

/// The contents of several profiles.
#[derive(Debug, Default)]
struct Contents {
    code_objects: HashSet<u64>,
    functions: HashSet<(u64, u64)>,
    ran: HashSet<(u64, u64)>,
    counts: u128,
    is_ir_level: bool,
    /// Which files could not be read, and why.
    errors: Vec<String>,
}

impl Contents {
    fn read(&mut self, path: &Path) {
        let added = fs::read(path)
            .map_err(anyhow::Error::new)
            .and_then(|bytes| self.add(&bytes));
        if let Err(error) = added {
            self.errors
                .push(format!("cannot read {}: {error:#}", path.display()));
        }
    }

    /// Adds a file, which may have several profiles.
    fn add(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let layout = Layout::read(rest)?;
            let records = records(rest, &layout)?;
            self.is_ir_level |= layout.header.version & IR_LEVEL != 0;
            let mut object = DefaultHasher::new();
            rest[layout.binary_ids.clone()].hash(&mut object);
            for record in &records {
                let function = (record.name, record.hash);
                function.hash(&mut object);
                self.functions.insert(function);
                if record.counters.iter().any(|&counter| counter > 0) {
                    self.ran.insert(function);
                }
                let counts = record.counters.iter().map(|&counter| u128::from(counter));
                self.counts += counts.sum::<u128>();
            }
            self.code_objects.insert(object.finish());
            rest = rest.get(layout.end..).unwrap_or_default();
        }
        Ok(())
    }
}

/// A run, except for its log.
#[derive(Debug)]
pub struct Run {
    /// The program, as given on the command line.
    pub program: PathBuf,
    /// Why the program could not preload a library.
    pub obstacle: Option<String>,
    pub is_traced: bool,
    /// The directory that was created for this run, which has no other files.
    pub directory: Option<PathBuf>,
    /// The directory to which profiles are written, if the pattern for their names says it.
    pub profiles: Option<PathBuf>,
    /// When the program was started.
    pub since: SystemTime,
    /// The signal that killed the program.
    pub signal: Option<i32>,
    /// The architectures of AMD's GPUs, or of the GPU model.
    pub gpus: BTreeSet<String>,
    /// The number of NVIDIA's GPUs.
    pub nvidia: usize,
}

/// The summary.
pub fn diagnostics(run: &Run, journal: &Journal) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut contents = Contents::default();
    for path in journal.profiles.keys() {
        contents.read(path);
    }
    if !journal.profiles.is_empty() {
        diagnostics.push(Diagnostic::note(profiles(journal, &contents)));
        diagnostics.extend(contents.errors.drain(..).map(Diagnostic::warning));
        diagnostics.extend(overwritten(journal).map(Diagnostic::warning));
        let mut profiles = journal.profiles.iter();
        if let Some((path, _)) = profiles.find(|(_, profile)| profile.is_older) {
            diagnostics.push(Diagnostic::warning(format!(
                "{} existed before this run, and %m added to it: it also has the counts of earlier runs",
                shown(path)
            )));
        }
    }
    diagnostics.extend(journal.traces.keys().map(|path| trace(path)));
    for (loss, processes) in journal.lost.iter().take(LOSSES) {
        let loss = loss.strip_prefix("lost ").unwrap_or(loss);
        diagnostics.push(Diagnostic::warning(match processes {
            1 => format!("lost: {loss}"),
            n => format!("lost, in {n} processes: {loss}"),
        }));
    }
    let cut_off = cut_off(run, journal);
    diagnostics.extend(cut_off.clone().map(Diagnostic::warning));
    if let Some(more) = journal.lost.len().checked_sub(LOSSES).filter(|&n| n > 0) {
        diagnostics.push(Diagnostic::warning(format!("lost: {more} more, see above")));
    }
    if journal.profiles.is_empty() && (journal.traces.is_empty() || !run.is_traced) {
        let is_explained = !journal.lost.is_empty() || cut_off.is_some();
        let code = device_code(journal, is_explained);
        let why = nothing(run, journal, &code, is_explained);
        diagnostics.push(Diagnostic::warning(why));
        diagnostics.extend(of_llvm(run).map(Diagnostic::note));
        if run.gpus.is_empty() && run.nvidia == 0 && !code.is_cuda() {
            diagnostics.push(Diagnostic::note(
                "--model runs the program on a simulated GPU",
            ));
        }
    }
    let next = next_command(run, journal, &contents);
    diagnostics.extend(next.map(|next| Diagnostic::note(format!("next: {next}"))));
    diagnostics
}

fn profiles(journal: &Journal, contents: &Contents) -> String {
    let processes = match journal.writers.len() {
        0 | 1 => String::new(),
        n => format!(" of {n} processes"),
    };
    format!(
        "{}{processes} in {}: {}, {} ({} ran), {} counts in all",
        plural(journal.profiles.len(), "profile"),
        directories(journal.profiles.keys()),
        plural(contents.code_objects.len(), "code object"),
        plural(contents.functions.len(), "function"),
        contents.ran.len(),
        grouped(contents.counts, ','),
    )
}

/// Handles the profiles that LLVM's own collector wrote, if the program has it as well. They have the same counts as
/// devprof's, or a part of them. devprof takes care of those with the same name, but with %m and for modules the names
/// differ, and merging all files would count twice. The duplicates are removed from the directory that was created for
/// the run. In other directories they are only reported.
pub fn remove_duplicates(run: &Run, journal: &Journal) -> Option<Diagnostic> {
    let mut duplicates = BTreeSet::new();
    for path in journal.profiles.keys() {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        let arch = name.as_bytes().split_inclusive(|&byte| byte == b'.').next();
        let arch = arch.unwrap_or_default();
        let is_duplicate = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.as_bytes().starts_with(arch) && !journal.profiles.contains_key(path)
        };
        let found = new_profiles(dir, run.since).into_iter();
        duplicates.extend(found.filter(is_duplicate));
    }
    let own = run.directory.as_ref();
    let are_own = own.is_some_and(|own| duplicates.iter().all(|path| path.starts_with(own)));
    if are_own && journal.lost.is_empty() {
        // Those that cannot be removed are reported.
        duplicates.retain(|path| fs::remove_file(path).is_err());
    }
    let files = first_and_more(&duplicates)?;
    let duplicate = if duplicates.len() == 1 {
        "duplicates"
    } else {
        "duplicate"
    };
    Some(Diagnostic::warning(format!(
        "{files} {duplicate} devprof's counts: LLVM's own collector is also in the program (`devprof flags` leaves it out); `devprof merge` ignores the duplicates"
    )))
}

/// Reports profiles that several processes wrote, each overwriting the one before.
fn overwritten(journal: &Journal) -> Option<String> {
    let mut found = journal.overwritten();
    let (path, profile) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        n => format!(" (and {n} more files)"),
    };
    Some(format!(
        "{} processes overwrote {}{more}, so only the counts of the last one are left: use %p (one file per process) or %m (one file to which all processes add) in --profile",
        profile.writers.len(),
        shown(path),
    ))
}

fn trace(path: &Path) -> Diagnostic {
    let name = shown(path);
    let (mut dispatches, mut kernels, mut gpus) = (0, HashSet::new(), HashSet::new());
    let size = fs::metadata(path).map_or(0, |data| data.len());
    if size > LARGE_TRACE {
        let size = grouped(u128::from(size >> 20), ',');
        return Diagnostic::note(format!("the trace {name}: {size} MiB"));
    }
    let all = Selection::default();
    let request = Request::new(&all, Naming::default());
    match trace_reader::each_record(path, request, |record, _| {
        if let Record::Dispatch(dispatch) = record {
            dispatches += 1;
            gpus.insert(dispatch.agent.get());
            kernels.insert(dispatch.kernel.get());
        }
    }) {
        Ok(mut trace) => {
            // A kernel has an ID for each GPU.
            let names: HashSet<_> = kernels.iter().map(|&id| trace.kernel(id)).collect();
            let on_gpus = match gpus.len() {
                0 | 1 => String::new(),
                count => format!(" on {count} GPUs"),
            };
            Diagnostic::note(format!(
                "the trace {name}: {} of {}{on_gpus}",
                plural(dispatches, "dispatch"),
                plural(names.len(), "kernel"),
            ))
        }
        Err(error) => Diagnostic::warning(format!("{error:#}")),
    }
}

/// Reports processes whose counts since the last profile are lost.
fn cut_off(run: &Run, journal: &Journal) -> Option<String> {
    let processes: Vec<Process> = journal.cut_off().collect();
    let program = |process| journal.programs.get(process);
    let programs: BTreeSet<&PathBuf> = processes.iter().filter_map(program).collect();
    let (process, others) = processes.split_first()?;
    let who = match program(process) {
        Some(program) if programs.len() == 1 => shown(program),
        _ => plural(processes.len(), "process"),
    };
    let how = match (run.signal, run.program.canonicalize().ok()) {
        (Some(signal), Some(program)) if others.is_empty() && programs.contains(&program) => {
            format!("was killed by {}", signal_name(signal))
        }
        _ => "was killed, ended with _exit, or still runs".to_owned(),
    };
    let has_written = |process| journal.writers.contains(process);
    let lost = if processes.iter().any(has_written) {
        "the counts since its last profile are lost"
    } else {
        "its counts are lost"
    };
    Some(format!(
        "{who} {how}: {lost} (--snapshot MS writes profiles while a program runs)"
    ))
}

/// The name of a signal, or its number.
fn signal_name(signal: i32) -> String {
    let names = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
    ];
    let name = names.iter().find(|&&(number, _)| number == signal);
    name.map_or_else(|| format!("signal {signal}"), |&(_, name)| name.to_owned())
}

/// The code in the programs and libraries of a run, if it can explain why nothing was collected.
fn device_code(journal: &Journal, is_explained: bool) -> DeviceCode {
    if is_explained {
        return DeviceCode::default();
    }
    let programs = journal.programs.values();
    let files: BTreeSet<&PathBuf> = programs.chain(journal.libraries(|_| true)).collect();
    DeviceCode::find(&files)
}

/// Why nothing was collected. `is_explained`: other diagnostics say it.
fn nothing(run: &Run, journal: &Journal, code: &DeviceCode, is_explained: bool) -> String {
    let what = if run.is_traced {
        "no counters and no trace were collected"
    } else {
        "no counters were collected"
    };
    let processes = plural(journal.programs.len(), "process");
    let why = if journal.programs.is_empty() {
        match &run.obstacle {
            Some(obstacle) => obstacle.clone(),
            None => "no process loaded devprof (because of DEVPROF_DISABLE=1, a changed LD_PRELOAD, or a statically linked program)".to_owned(),
        }
    } else if is_explained {
        "see above".to_owned()
    } else {
        match code.problem(&run.gpus, gpus::nvidia_architectures) {
            _ if is_without_gpu(run, journal, code) => {
                let vendor = if code.is_cuda() { "NVIDIA" } else { "AMD" };
                format!("no {vendor} GPU found")
            }
            Some(problem) => problem,
            None if journal.code.is_empty() => {
                format!("no device code was loaded ({processes} ran)")
            }
            None => format!("no instrumented device code was loaded ({processes} ran)"),
        }
    };
    format!("{what}: {why}")
}

/// Whether no device code was loaded because there is no GPU for it.
fn is_without_gpu(run: &Run, journal: &Journal, code: &DeviceCode) -> bool {
    if !journal.code.is_empty() {
        return false;
    }
    let is_without_nvidia = run.nvidia == 0;
    if code.is_cuda() {
        return is_without_nvidia;
    }
    run.gpus.is_empty() && (is_without_nvidia || !code.is_empty())
}

/// Reports the profiles that LLVM's own collector wrote instead of devprof.
fn of_llvm(run: &Run) -> Option<String> {
    let mut files = new_profiles(run.profiles.as_deref()?, run.since);
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default();
        name.as_bytes().starts_with(b"gfx")
    });
    let files = first_and_more(&files)?;
    Some(format!(
        "LLVM's own collector, which is in the program, wrote {files}; `devprof report` reads this as well (`devprof flags` links devprof instead)"
    ))
}

/// The command that shows the collected data.
fn next_command(run: &Run, journal: &Journal, contents: &Contents) -> Option<String> {
    if journal.profiles.is_empty() && journal.traces.is_empty() {
        let is_uninstrumented = !journal.code.is_empty()
            && journal.lost.is_empty()
            && journal.cut_off().next().is_none();
        let flags = "devprof flags --coverage";
        return is_uninstrumented.then(|| format!("{flags}, which prints the compiler flags"));
    }
    // If the command was a script, a launcher or an interpreter, name the programs that it started and their libraries.
    let binaries = match &device_code::binaries(journal)[..] {
        [] => quoted(&run.program),
        files => {
            let own = run.program.canonicalize().ok();
            let names = files.iter().map(|file| match &own {
                Some(own) if own == file => quoted(&run.program),
                _ => quoted(&relative(file)),
            });
            names.collect::<Vec<_>>().join(" ")
        }
    };
    let traces = || journal.traces.keys().map(|trace| quoted(&relative(trace)));
    if journal.profiles.is_empty() {
        // There is a trace, see above.
        let traces: Vec<String> = traces().collect();
        return Some(format!("devprof stats {}", traces.join(" ")));
    }
    let names = || journal.profiles.keys().map(|path| quoted(&relative(path)));
    let own = run.directory.as_ref();
    let own = own.filter(|own| journal.profiles.keys().all(|path| path.starts_with(own)));
    let files = match (own, journal.profiles.len()) {
        (Some(own), _) => vec![quoted(&relative(own))],
        (None, 0..=FILES) => names().collect(),
        (None, _) => patterns(journal.profiles.keys()),
    };
    if contents.is_ir_level {
        let host = host_profiles(run, journal);
        let host = host.iter();
        let host = host.map(|path| format!(" {}", quoted(&relative(path))));
        // A directory includes them.
        let host = own.is_none().then(|| host.collect::<String>());
        let host = host.unwrap_or_default();
        let files = files.join(" ");
        return Some(format!("devprof merge {files}{host} -o device.profdata"));
    }
    let profiles = files.iter().map(|file| format!(" --profile {file}"));
    let traces = traces().map(|trace| format!(" --trace {trace}"));
    let inputs: String = profiles.chain(traces).collect();
    Some(format!("devprof report {binaries}{inputs}"))
}

/// The profiles that LLVM's host runtime wrote during the run next to devprof's. The compiler takes one file for host and
/// device code.
fn host_profiles(run: &Run, journal: &Journal) -> BTreeSet<PathBuf> {
    let profiles = journal.profiles.keys();
    let dirs: BTreeSet<_> = profiles.filter_map(|path| path.parent()).collect();
    let files = dirs.into_iter();
    let files = files.flat_map(|dir| new_profiles(dir, run.since));
    let is_host = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let is_device = name.starts_with(b"gfx") || name.starts_with(b"sm_");
        !is_device && !journal.profiles.contains_key(path)
    };
    files.filter(is_host).collect()
}

/// The files `*.profraw` in a directory that were changed since this time.
fn new_profiles(dir: &Path, since: SystemTime) -> Vec<PathBuf> {
    // The kernel sets file times to its last timer tick, so they can be a little too early.
    let since = since - Duration::from_millis(20);
    let is_new = |file: &DirEntry| {
        let changed = file.metadata().and_then(|data| data.modified());
        file.file_name().as_bytes().ends_with(b".profraw") && changed.is_ok_and(|at| at >= since)
    };
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter(is_new).map(|file| file.path()).collect()
}

/// Patterns that match the files, quoted so that devprof and not the shell replaces them.
fn patterns<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<String> {
    let dirs: BTreeSet<_> = paths.map(|path| path.parent().unwrap_or(path)).collect();
    let dirs = dirs.iter();
    dirs.map(|dir| quoted(&relative(dir).join("*.profraw")))
        .collect()
}

fn directories<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let dirs: BTreeSet<_> = paths.map(|path| path.parent().unwrap_or(path)).collect();
    let names: Vec<String> = dirs.iter().take(FILES).map(|dir| shown(dir)).collect();
    match dirs.len().saturating_sub(FILES) {
        0 => names.join(", "),
        more => format!("{} and {more} more directories", names.join(", ")),
    }
}

/// The first path, and the number of the others. `None` if there is none.
fn first_and_more<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Option<String> {
    let mut paths = paths.into_iter();
    let first = shown(paths.next()?);
    match paths.count() {
        0 => Some(first),
        more => Some(format!("{first} and {more} more")),
    }
}

/// The path, relative to the current directory if it is in it.
fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    match here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned)) {
        Some(inside) if inside != Path::new("") => inside,
        Some(_) => PathBuf::from("."),
        None => path.to_owned(),
    }
}

fn shown(path: &Path) -> String {
    relative(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn run() -> Run {
        Run {
            program: "./a b".into(),
            obstacle: None,
            is_traced: false,
            directory: None,
            profiles: None,
            since: SystemTime::now(),
            signal: None,
            gpus: BTreeSet::new(),
            nvidia: 0,
        }
    }

    #[test]
    fn a_kernel_that_ran_on_several_gpus_is_one_kernel() {
        use tracefile::format::{Count, Counter, Dispatch, Header, Kernel, Record, pieces};
        let mut records: Vec<_> = pieces(1, "_Z4workv").map(|piece| piece.seal()).collect();
        for id in 1..=4u32 {
            let mut kernel = Kernel::new(id.into(), 0);
            kernel.name = 1.into();
            kernel.agent = id.into();
            let mut dispatch = Dispatch::new(id.into(), 0);
            dispatch.kernel = id.into();
            dispatch.agent = id.into();
            records.extend([kernel.seal(), dispatch.seal()]);
        }
        let mut file = Header::new(7, 1_000_000_000, 0, 0).page().to_vec();
        let at = Count::Records.offset();
        let count = Counter::new(records.len() as u64);
        file[at..at + size_of::<Counter>()].copy_from_slice(count.as_bytes());
        let dir = tempfile::tempdir().unwrap();
        for (count, expected) in [
            (records.len(), "4 dispatches of 1 kernel on 4 GPUs"),
            (3, "1 dispatch of 1 kernel"),
        ] {
            let path = dir.path().join("a.trace");
            fs::write(&path, [file.clone(), records[..count].concat()].concat()).unwrap();
            let message = trace(&path).message;
            assert!(message.ends_with(&format!(": {expected}")), "{message}");
        }
    }

    fn messages(run: &Run, log: &[u8]) -> String {
        let diagnostics = diagnostics(run, &Journal::read([log]));
        let messages = diagnostics.into_iter().map(|diagnostic| diagnostic.message);
        messages.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_summary_explains_why_nothing_was_collected() {
        let dir = tempfile::tempdir().unwrap();
        let cuda = dir.path().join("a");
        let cubin = include_bytes!("../../../../fixtures/counted.cubin");
        std::fs::write(&cuda, cubin).unwrap();
        let cuda = format!("7 loaded {}\n", cuda.display());
        let with_gpu = || Run {
            gpus: BTreeSet::from(["gfx1100".to_owned()]),
            ..run()
        };
        let with_nvidia = Run { nvidia: 1, ..run() };
        let is_static = Run {
            obstacle: Some("it is static".into()),
            ..run()
        };
        let loaded = "7 loaded /bin/true\n";
        let no_code = "no device code was loaded (1 process ran)$";
        for (run, log, expected) in [
            (run(), "", "no process loaded devprof"),
            (run(), loaded, "no AMD GPU found"),
            (run(), loaded, "--model"),
            // $ is the end.
            (with_gpu(), loaded, no_code),
            (
                with_gpu(),
                "7 loaded /bin/true\n7 code \n7 ended \n",
                "no instrumented device code",
            ),
            (
                with_gpu(),
                "7 loaded /bin/true\n7 code \n",
                "/bin/true was killed, ended with _exit, or still runs: its counts are lost",
            ),
            (
                with_gpu(),
                "7 loaded /bin/true\n7 code \n",
                "no counters were collected: see above",
            ),
            (run(), &cuda, "no NVIDIA GPU found$"),
            (with_nvidia, &cuda, no_code),
            (is_static, "", "it is static"),
        ] {
            let found = messages(&run, log.as_bytes()) + "$";
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn overwritten_profiles_are_reported() {
        let overwritten = messages(&run(), b"7 wrote /none/x\n8 wrote /none/x\n");
        for expected in [
            "2 processes overwrote /none/x",
            "cannot read /none/x",
            "devprof report './a b' --profile /none/x",
        ] {
            assert!(overwritten.contains(expected), "{overwritten}");
        }
        // A pattern is for devprof and not for the shell.
        let many = messages(
            &run(),
            b"7 wrote /n/a\n7 wrote /n/b\n7 wrote /n/c\n7 wrote /n/d\n",
        );
        let next = "devprof report './a b' --profile '/n/*.profraw'";
        assert!(many.contains(next), "{many}");
        // Of the processes that share a file, the first creates it and the others add to it.
        let shared = messages(&run(), b"7 wrote /none/x\n8 added /none/x\n");
        assert!(!shared.contains("overwrote"), "{shared}");
    }
}
