//! The summary of a run: the contents of the files that the runtime wrote, the losses, and the next command to run.

use super::child::End;
use super::model;
use crate::console::Diagnostic;
use crate::gpus;
use crate::names::Naming;
use crate::paths;
use crate::readable::{and_more, grouped, plural};
use crate::run_log::device_code::{DeviceCode, Problem};
use crate::run_log::journal::{Journal, Process};
use crate::trace_reader::{self, Record, Request, Selection};
use crate::triton;
use profraw::Layout;
use profraw::format::BYTE_COVERAGE;
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
/// The exit status if the dynamic linker cannot start a program.
const NOT_STARTED: u8 = 127;
/// Of larger traces only the size is shown.
const LARGE_TRACE: u64 = 256 << 20;

/// The contents of several profiles.
#[derive(Debug, Default)]
struct Contents {
    code_objects: HashSet<u64>,
    functions: HashSet<(u64, u64)>,
    ran: HashSet<(u64, u64)>,
    /// The sum of all counts. Byte coverage has none.
    counts: Option<u128>,
    is_ir_level: bool,
    /// Which files could not be read, and why.
    errors: Vec<String>,
}

impl Contents {
    fn read(&mut self, path: &Path) {
        let mut read = || {
            let (mut file, size) = paths::open(path)?;
            let mut bytes = Vec::new();
            paths::read_profiles(&mut file, size, &mut bytes)?;
            self.add(&bytes)
        };
        if let Err(error) = read() {
            self.errors
                .push(format!("cannot read {}: {error:#}", path.display()));
        }
    }

    /// Adds a file, which may have several profiles.
    fn add(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let layout = Layout::read(rest)?;
            self.is_ir_level |= layout.header.version & IR_LEVEL != 0;
            let mut object = DefaultHasher::new();
            rest[layout.binary_ids.clone()].hash(&mut object);
            for ranges in profraw::counter_ranges(rest, &layout) {
                let ranges = ranges?;
                let function = (ranges.name, ranges.hash);
                function.hash(&mut object);
                self.functions.insert(function);
                let counts = profraw::counts_in(rest, &layout, ranges.counters);
                let counts: u128 = counts.map(u128::from).sum();
                if counts > 0 {
                    self.ran.insert(function);
                }
                if layout.header.version & BYTE_COVERAGE == 0 {
                    *self.counts.get_or_insert_default() += counts;
                }
            }
            self.code_objects.insert(object.finish());
            rest = &rest[profraw::end(rest, &layout)?..];
        }
        Ok(())
    }
}

/// A file of raw profiles, as the summary reads it.
#[cfg(any(test, fuzzing))]
pub fn fuzz(bytes: &[u8]) {
    let mut contents = Contents::default();
    let _ = contents.add(bytes);
    assert!(contents.ran.len() <= contents.functions.len());
    assert!(contents.functions.len() <= bytes.len() / profraw::format::V10.record);
}

/// A run, except for its log.
#[derive(Debug)]
pub struct Run {
    /// The program, as given on the command line.
    pub program: PathBuf,
    /// Why the program could not preload a library.
    pub obstacle: Option<String>,
    pub is_traced: bool,
    /// The traces stay after the run.
    pub keeps_traces: bool,
    /// Only losses are reported.
    pub is_quiet: bool,
    /// The directory that was created for this run, which has no other files.
    pub directory: Option<PathBuf>,
    /// The directory to which profiles are written, if the pattern for their names says it.
    pub profiles: Option<PathBuf>,
    /// When the program was started.
    pub since: SystemTime,
    /// How the program ended.
    pub end: End,
    /// The architectures of AMD's GPUs, or of the simulated ones.
    pub gpus: BTreeSet<String>,
    /// The GPUs are simulated.
    pub is_model: bool,
    /// The number of NVIDIA's GPUs.
    pub nvidia: usize,
}

/// The losses, and, unless the run is quiet, the rest of the summary. The flag: a profile is IR-level.
pub fn diagnostics(run: &Run, journal: &Journal) -> (Vec<Diagnostic>, bool) {
    let mut contents = Contents::default();
    for path in journal.profiles.keys() {
        contents.read(path);
    }
    let losses = losses(run, journal, &mut contents);
    if run.is_quiet {
        return (losses, contents.is_ir_level);
    }
    let mut diagnostics = Vec::new();
    if !journal.profiles.is_empty() {
        diagnostics.push(Diagnostic::note(profiles(journal, &contents)));
    }
    diagnostics.extend(losses);
    let mut profiles = journal.profiles.iter();
    if let Some((path, _)) = profiles.find(|(_, profile)| profile.is_older) {
        diagnostics.push(Diagnostic::warning(format!(
            "{} existed before this run, and %m added to it: it also has the counts of earlier runs",
            shown(path)
        )));
    }
    if run.keeps_traces {
        diagnostics.extend(journal.traces.keys().map(|path| trace(path)));
    }
    if journal.profiles.is_empty() && (journal.traces.is_empty() || !run.is_traced) {
        let code = device_code(run, journal);
        let why = nothing(run, journal, &code);
        diagnostics.push(Diagnostic::warning(why));
        diagnostics.extend(of_llvm(run).map(Diagnostic::note));
        if run.gpus.is_empty() && run.nvidia == 0 && !code.is_cuda() {
            let model = code.simulated(&model::known());
            let model = model.unwrap_or_else(|| "--model".to_owned());
            diagnostics.push(Diagnostic::note(format!(
                "{model} runs the program on a simulated GPU"
            )));
        }
    }
    (diagnostics, contents.is_ir_level)
}

/// The losses: counts that are missing from the profiles.
fn losses(run: &Run, journal: &Journal, contents: &mut Contents) -> Vec<Diagnostic> {
    let mut losses = std::mem::take(&mut contents.errors);
    losses.extend(overwritten(journal));
    for (loss, processes) in journal.lost.iter().take(LOSSES) {
        let loss = loss.strip_prefix("lost ").unwrap_or(loss);
        losses.push(match processes {
            1 => format!("lost: {loss}"),
            n => format!("lost, in {n} processes: {loss}"),
        });
    }
    if let Some(more) = journal.lost.len().checked_sub(LOSSES).filter(|&n| n > 0) {
        losses.push(format!("lost: {more} more, see above"));
    }
    losses.extend(cut_off(run, journal));
    losses.into_iter().map(Diagnostic::warning).collect()
}

fn profiles(journal: &Journal, contents: &Contents) -> String {
    let processes = match journal.writers.len() {
        0 | 1 => String::new(),
        n => format!(" of {n} processes"),
    };
    let counts = contents.counts.map(|counts| grouped(counts, ','));
    format!(
        "{}{processes} in {}: {}, {} ({} ran){}",
        plural(journal.profiles.len(), "profile"),
        directories(journal.profiles.keys()),
        plural(contents.code_objects.len(), "code object"),
        plural(contents.functions.len(), "function"),
        contents.ran.len(),
        counts.map_or_else(String::new, |counts| format!(", {counts} counts in all")),
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
    let how = match (run.end, run.program.canonicalize().ok()) {
        (End::Killed(signal), Some(program))
            if others.is_empty() && programs.contains(&program) =>
        {
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
        "{who} {how}: {lost} (--snapshot 1s writes profiles while a program runs)"
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

/// The code in the programs and libraries of a run, and of Triton, if it can explain why nothing was collected.
fn device_code(run: &Run, journal: &Journal) -> DeviceCode {
    if !journal.lost.is_empty() {
        return DeviceCode::default();
    }
    let programs = journal.programs.values();
    let compiled = run.profiles.as_deref().map(triton::cubins);
    let files = programs.chain(journal.libraries(|_| true));
    DeviceCode::find(&files.chain(compiled.iter().flatten()).collect())
}

/// Why nothing was collected.
fn nothing(run: &Run, journal: &Journal, code: &DeviceCode) -> String {
    let what = if run.is_traced {
        "no counters and no trace were collected"
    } else {
        "no counters were collected"
    };
    let processes = plural(journal.programs.len(), "process");
    let is_cut_off = journal.cut_off().next().is_some();
    let why = if journal.programs.is_empty() {
        not_loaded(run)
    } else if !journal.lost.is_empty() {
        "see above".to_owned()
    } else {
        match code.problem(&run.gpus, gpus::nvidia_architectures) {
            _ if is_without_gpu(run, journal, code) => {
                let vendor = if code.is_cuda() { "NVIDIA" } else { "AMD" };
                format!("no {vendor} GPU found")
            }
            // Code for another GPU can also be the reason for a crash.
            Some(Problem::OtherGpu(problem)) if run.is_model => {
                let model = code.simulated(&model::known());
                let model = model.map(|options| format!(", or simulate that GPU: {options}"));
                problem + &model.unwrap_or_default()
            }
            Some(Problem::OtherGpu(problem)) => problem,
            _ if is_cut_off => "see above".to_owned(),
            Some(Problem::NotInstrumented(problem)) => problem,
            None if journal.code.is_empty() => {
                format!("no device code was loaded ({processes} ran)")
            }
            None => format!("no instrumented device code was loaded ({processes} ran)"),
        }
    };
    format!("{what}: {why}")
}

/// Why no process loaded devprof.
fn not_loaded(run: &Run) -> String {
    match (&run.obstacle, run.end) {
        (Some(obstacle), _) => obstacle.clone(),
        (None, End::Exited(NOT_STARTED)) => format!(
            "{} was not started (status 127): the dynamic linker prints the reason, such as a missing library",
            run.program.display()
        ),
        _ => "no process loaded devprof (because of DEVPROF_DISABLE=1, a changed LD_PRELOAD, or a statically linked program)".to_owned(),
    }
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

/// The profiles that LLVM's host runtime wrote during the run next to devprof's. The compiler takes one file for host and
/// device code.
pub fn host_profiles(run: &Run, journal: &Journal) -> BTreeSet<PathBuf> {
    let profiles = journal.profiles.keys();
    let dirs: BTreeSet<_> = profiles.filter_map(|path| path.parent()).collect();
    let files = dirs.into_iter();
    let files = files.flat_map(|dir| new_profiles(dir, run.since));
    let is_host = |path: &PathBuf| has_host_name(path) && !journal.profiles.contains_key(path);
    files.filter(is_host).collect()
}

/// Whether the name of a profile does not begin with an architecture of a GPU.
pub fn has_host_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    !name.starts_with(b"gfx") && !name.starts_with(b"sm_")
}

/// The files `*.profraw` in a directory that were changed since this time.
pub fn new_profiles(dir: &Path, since: SystemTime) -> Vec<PathBuf> {
    // The kernel sets file times to its last timer tick, so they can be a little too early.
    let since = since - Duration::from_millis(20);
    let is_new = |file: &DirEntry| {
        let changed = file.metadata().and_then(|data| data.modified());
        file.file_name().as_bytes().ends_with(b".profraw") && changed.is_ok_and(|at| at >= since)
    };
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter(is_new).map(|file| file.path()).collect()
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
    let first = relative(paths.next()?);
    Some(and_more(&first, 1 + paths.count()))
}

/// The path, relative to the current directory if it is in it.
pub fn relative(path: &Path) -> PathBuf {
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
            keeps_traces: true,
            is_quiet: false,
            directory: None,
            profiles: None,
            since: SystemTime::now(),
            end: End::Exited(0),
            gpus: BTreeSet::new(),
            is_model: false,
            nvidia: 0,
        }
    }

    /// The log of a process that loaded code without counters.
    const ENDED: &str = "7 loaded /bin/true\n7 code \n7 ended \n";

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
        let (diagnostics, _) = diagnostics(run, &Journal::read([log]));
        let messages = diagnostics.into_iter().map(|diagnostic| diagnostic.message);
        messages.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_counter_is_summed_once() {
        let add = |bytes: &[u8]| {
            let mut contents = Contents::default();
            contents.add(bytes)?;
            anyhow::Ok((
                contents.functions.len(),
                contents.ran.len(),
                contents.counts,
            ))
        };
        // A value profile follows the first profile.
        let two = [
            fuzz::corpus::profile(10, &[16]),
            fuzz::corpus::profile(11, &[]),
        ]
        .concat();
        assert_eq!(add(&two).unwrap(), (2, 2, Some(2 * 1524)));
        let shared = fuzz::hostile::profile(100_000, 100_000, 100_000);
        let error = add(&shared).unwrap_err().to_string();
        let expected = "record 1: the records up to it claim 200000 counters, but there are 100000";
        assert_eq!(error, expected);
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
        let is_not_started = Run {
            end: End::Exited(NOT_STARTED),
            ..run()
        };
        let not_started =
            "./a b was not started (status 127): the dynamic linker prints the reason";
        let lost = "/bin/true was killed, ended with _exit, or still runs: its counts are lost";
        let (loaded, killed) = ("7 loaded /bin/true\n", "7 loaded /bin/true\n7 code \n");
        let no_code = "no device code was loaded (1 process ran)$";
        for (run, log, expected) in [
            (run(), "", "no process loaded devprof"),
            (run(), loaded, "no AMD GPU found"),
            (run(), loaded, "--model"),
            // $ is the end.
            (with_gpu(), loaded, no_code),
            (with_gpu(), ENDED, "no instrumented device code"),
            (with_gpu(), killed, lost),
            (with_gpu(), killed, "no counters were collected: see above"),
            (run(), &cuda, "no NVIDIA GPU found$"),
            (with_nvidia, &cuda, no_code),
            (is_static, "", "it is static"),
            (is_not_started, "", not_started),
        ] {
            let found = messages(&run, log.as_bytes()) + "$";
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_quiet_run_reports_only_losses() {
        let quiet = || Run {
            is_quiet: true,
            ..run()
        };
        for log in ["", "7 loaded /bin/true\n", ENDED] {
            assert_eq!(messages(&quiet(), log.as_bytes()), "");
        }
        let log = b"7 wrote /none/x\n8 wrote /none/x\n7 lost lost it\n7 code \n";
        let losses = messages(&quiet(), log);
        let expected = [
            "cannot read /none/x",
            "2 processes overwrote /none/x",
            "lost: it",
            "the counts since its last profile are lost",
        ];
        assert_eq!(losses.lines().count(), expected.len(), "{losses}");
        for (line, expected) in losses.lines().zip(expected) {
            assert!(line.contains(expected), "{losses}");
        }
    }

    #[test]
    fn overwritten_profiles_are_reported() {
        let overwritten = messages(&run(), b"7 wrote /none/x\n8 wrote /none/x\n");
        for expected in ["2 processes overwrote /none/x", "cannot read /none/x"] {
            assert!(overwritten.contains(expected), "{overwritten}");
        }
        // Of the processes that share a file, the first creates it and the others add to it.
        let shared = messages(&run(), b"7 wrote /none/x\n8 added /none/x\n");
        assert!(!shared.contains("overwrote"), "{shared}");
    }
}
