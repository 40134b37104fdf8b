//! What a run has collected, in a few lines: what is in the files that the runtime told of, and what to do next.

use super::journal::{Journal, Profile};
use crate::export::source;
use crate::readable::{self, plural, quoted};
use profraw::{Layout, records};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirEntry};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// IR-level instrumentation: a profile for the optimiser, from which no coverage can be shown.
const IR_LEVEL: u64 = 1 << 56;
/// How many losses are repeated.
const LOSSES: usize = 5;
/// How many files are named one by one.
const FILES: usize = 3;
/// Larger programs are not looked into.
const LARGE_PROGRAM: u64 = 256 << 20;
/// Larger traces are only measured.
const LARGE_TRACE: u64 = 256 << 20;

/// What several profiles hold.
#[derive(Debug, Default)]
struct Counted {
    code_objects: HashSet<u64>,
    functions: HashSet<(u64, u64)>,
    ran: HashSet<(u64, u64)>,
    counts: u128,
    is_ir_level: bool,
    /// Files that could not be read, and why.
    broken: Vec<String>,
}

impl Counted {
    fn read(&mut self, path: &Path) {
        let whole = fs::read(path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| self.add(&bytes));
        if let Err(error) = whole {
            self.broken
                .push(format!("cannot read {}: {error}", path.display()));
        }
    }

    /// Of a file, which may hold several profiles.
    fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let layout = Layout::read(rest).map_err(|error| error.to_string())?;
            let records = records(rest, &layout).map_err(|error| error.to_string())?;
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

/// What a run was told to do, as far as it matters for what is said of it.
#[derive(Debug)]
pub struct Asked {
    /// The program, as the user named it.
    pub program: PathBuf,
    /// Why nothing could be loaded beside it.
    pub hindrance: Option<String>,
    pub is_traced: bool,
    /// Made for this run: nothing else is in it.
    pub directory: Option<PathBuf>,
    /// When the program was started.
    pub since: SystemTime,
    /// There is a GPU, or the model of one.
    pub has_gpu: bool,
}

/// The lines.
pub fn of(asked: &Asked, journal: &Journal) -> Vec<String> {
    let mut lines = Vec::new();
    let mut counted = Counted::default();
    for path in journal.profiles.keys() {
        counted.read(path);
    }
    if !journal.profiles.is_empty() {
        lines.push(profiles(journal, &counted));
        lines.append(&mut counted.broken);
        lines.extend(overwritten(&journal.profiles));
        let older = journal
            .profiles
            .iter()
            .find(|(_, profile)| profile.is_older);
        if let Some((path, _)) = older {
            lines.push(format!(
                "{} was there before and was added to (%m): it holds the counts of earlier runs, too",
                shown(path)
            ));
        }
    }
    lines.extend(journal.traces.keys().map(|path| trace(path)));
    for (loss, processes) in journal.lost.iter().take(LOSSES) {
        let loss = loss.strip_prefix("lost ").unwrap_or(loss);
        lines.push(match processes {
            1 => format!("lost: {loss}"),
            n => format!("lost, in {n} processes: {loss}"),
        });
    }
    if let Some(more) = journal.lost.len().checked_sub(LOSSES).filter(|&n| n > 0) {
        lines.push(format!("lost: {more} more, said above"));
    }
    if journal.profiles.is_empty() && (journal.traces.is_empty() || !asked.is_traced) {
        lines.push(nothing(asked, journal));
        if !asked.has_gpu {
            lines.push(
                "there is no AMD GPU here (no /dev/kfd): --model runs programs on a model of one"
                    .to_owned(),
            );
        }
    }
    lines.extend(next(asked, journal, &counted).map(|next| format!("next: {next}")));
    lines
}

fn profiles(journal: &Journal, counted: &Counted) -> String {
    let processes = match journal.writers.len() {
        0 | 1 => String::new(),
        n => format!(" of {n} processes"),
    };
    format!(
        "{}{processes} in {}: {}, {} ({} ran), {} counts in all",
        plural(journal.profiles.len(), "profile"),
        directories(journal.profiles.keys()),
        plural(counted.code_objects.len(), "code object"),
        plural(counted.functions.len(), "function"),
        counted.ran.len(),
        grouped(counted.counts),
    )
}

/// LLVM's own collector, where it is in the program, too, writes what devprof writes, or a part of it; under the same
/// name, which devprof sees to, or, with %m and for modules, under another. Who merges all files then counts twice: they
/// are removed from a directory that was made for the run, and told of in another.
pub fn without_copies(asked: &Asked, journal: &Journal) -> Option<String> {
    // A file's time is that of the last tick of a clock.
    let since = asked.since - Duration::from_millis(20);
    let mut copies = BTreeSet::new();
    for path in journal.profiles.keys() {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        let arch = name.as_bytes().split_inclusive(|&byte| byte == b'.').next();
        let arch = arch.unwrap_or_default();
        let is_new = |file: &DirEntry| {
            let changed = file.metadata().and_then(|data| data.modified());
            changed.is_ok_and(|changed| changed >= since)
        };
        let files = fs::read_dir(dir).into_iter().flatten().flatten();
        let copy = |file: &DirEntry| {
            let name = file.file_name();
            name.as_bytes().starts_with(arch)
                && name.as_bytes().ends_with(b".profraw")
                && !journal.profiles.contains_key(&file.path())
                && is_new(file)
        };
        copies.extend(files.filter(copy).map(|file| file.path()));
    }
    let own = asked.directory.as_ref();
    let is_own = own.is_some_and(|own| copies.iter().all(|copy| copy.starts_with(own)));
    if is_own && journal.lost.is_empty() {
        // One that cannot be removed is told of.
        copies.retain(|copy| fs::remove_file(copy).is_err());
    }
    let first = shown(copies.first()?);
    let (files, count) = match copies.len() {
        1 => (first, "counts"),
        n => (format!("{first} and {} more", n - 1), "count"),
    };
    Some(format!(
        "{files} {count} the same again, from LLVM's own collector, which is in the program, too (`devprof flags` leaves it out): `devprof merge` takes one of them"
    ))
}

/// Profiles that several processes wrote, each over the other's.
fn overwritten<'a>(
    profiles: impl IntoIterator<Item = (&'a PathBuf, &'a Profile)>,
) -> Option<String> {
    let twice = |(_, profile): &(_, &Profile)| profile.writers.len() > 1 && !profile.adds;
    let mut found = profiles.into_iter().filter(twice);
    let (path, profile) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        n => format!(" (and {n} more files)"),
    };
    Some(format!(
        "{} processes wrote {}, one over the other{more}: name a file for each (%p) or one to which all add (%m) in --profile",
        profile.writers.len(),
        shown(path),
    ))
}

fn trace(path: &Path) -> String {
    let name = shown(path);
    let (mut dispatches, mut kernels) = (0, HashSet::new());
    let size = fs::metadata(path).map_or(0, |data| data.len());
    if size > LARGE_TRACE {
        return format!("the trace {name}: {} MiB", grouped(u128::from(size >> 20)));
    }
    match source::each_dispatch(path, |dispatch| {
        dispatches += 1;
        kernels.insert(dispatch.kernel.get());
    }) {
        Ok(()) => format!(
            "the trace {name}: {} of {}",
            plural(dispatches, "dispatch"),
            plural(kernels.len(), "kernel")
        ),
        Err(error) => error,
    }
}

/// Why there is nothing.
fn nothing(asked: &Asked, journal: &Journal) -> String {
    let what = match asked.is_traced {
        true => "no counters and no trace were collected",
        false => "no counters were collected",
    };
    let why = if journal.programs.is_empty() {
        match &asked.hindrance {
            Some(hindrance) => hindrance.clone(),
            None => "devprof was loaded in no process (DEVPROF_DISABLE=1, another LD_PRELOAD, or a program that is statically linked)".to_owned(),
        }
    } else if !journal.lost.is_empty() {
        "see above".to_owned()
    } else {
        let programs: BTreeSet<&PathBuf> = journal.programs.values().collect();
        format!(
            "no instrumented device code was loaded ({} ran){}",
            plural(journal.programs.len(), "process"),
            device_code(&programs)
        )
    };
    format!("{what}: {why}")
}

/// What the programs have in themselves.
fn device_code(programs: &BTreeSet<&PathBuf>) -> String {
    let (mut objects, mut counted) = (0, BTreeSet::new());
    let is_small =
        |path: &&&PathBuf| fs::metadata(path).is_ok_and(|data| data.len() <= LARGE_PROGRAM);
    for program in programs.iter().take(FILES).filter(is_small) {
        code_objects::walk(program, code_objects::Options::default(), &mut |found| {
            if let code_objects::What::CodeObject(object) = found.what {
                objects += 1;
                if object.profile.is_some() {
                    counted.insert(object.target.to_string());
                }
            }
            ControlFlow::Continue(())
        });
    }
    if objects == 0 {
        return String::new();
    }
    let targets: Vec<String> = counted.into_iter().collect();
    match (targets.is_empty(), objects) {
        (true, 1) => "; its code object was not compiled to count".to_owned(),
        (true, n) => format!("; none of its {n} code objects was compiled to count"),
        (false, n) => format!(
            "; of its {} those for {} count",
            plural(n, "code object"),
            targets.join(", ")
        ),
    }
}

/// The command that shows what was collected.
fn next(asked: &Asked, journal: &Journal, counted: &Counted) -> Option<String> {
    if journal.profiles.is_empty() && journal.traces.is_empty() {
        let is_uninstrumented = !journal.programs.is_empty() && journal.lost.is_empty();
        let flags = "devprof flags --coverage";
        return is_uninstrumented.then(|| format!("{flags}, which says what to compile with"));
    }
    let binaries = match &journal.written_by().into_iter().collect::<Vec<_>>()[..] {
        // A script or a launcher is not what has the code objects.
        [] => quoted(&asked.program),
        programs => {
            let own = asked.program.canonicalize().ok();
            let names = programs.iter().map(|program| match &own {
                Some(own) if own == *program => quoted(&asked.program),
                _ => quoted(&relative(program)),
            });
            names.collect::<Vec<_>>().join(" ")
        }
    };
    let trace = journal.traces.keys().next();
    let trace = trace.map(|trace| quoted(&relative(trace)));
    if journal.profiles.is_empty() {
        return trace.map(|trace| format!("devprof stats {trace}"));
    }
    let names = || journal.profiles.keys().map(|path| quoted(&relative(path)));
    let patterns = || all_of(journal.profiles.keys());
    let own = asked.directory.as_ref();
    let own = own.filter(|own| journal.profiles.keys().all(|path| path.starts_with(own)));
    let files = match (own, journal.profiles.len()) {
        (Some(own), _) => quoted(&relative(own)),
        (None, 0..=FILES) => names().collect::<Vec<_>>().join(" "),
        (None, _) => patterns(),
    };
    if counted.is_ir_level {
        return Some(format!("devprof merge {files} -o device.profdata"));
    }
    let trace = trace.map(|trace| format!(" --trace {trace}"));
    let trace = trace.unwrap_or_default();
    Some(format!(
        "devprof report {binaries} --profile {files}{trace}"
    ))
}

/// Patterns of the shell for the files.
fn all_of<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let dirs: BTreeSet<_> = paths.map(|path| path.parent().unwrap_or(path)).collect();
    let dirs: Vec<String> = dirs
        .iter()
        .map(|dir| format!("{}/*.profraw", quoted(&relative(dir))))
        .collect();
    dirs.join(" ")
}

fn directories<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let dirs: BTreeSet<_> = paths.map(|path| path.parent().unwrap_or(path)).collect();
    let names: Vec<String> = dirs.iter().take(FILES).map(|dir| shown(dir)).collect();
    match dirs.len().saturating_sub(FILES) {
        0 => names.join(", "),
        more => format!("{} and {more} more directories", names.join(", ")),
    }
}

/// From here, where that is shorter.
fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir();
    match here
        .ok()
        .and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned))
    {
        Some(inside) if inside != Path::new("") => inside,
        Some(_) => PathBuf::from("."),
        None => path.to_owned(),
    }
}

fn shown(path: &Path) -> String {
    relative(path).display().to_string()
}

/// With a comma at each thousand.
fn grouped(number: u128) -> String {
    readable::grouped(number, ',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked {
            program: "./a b".into(),
            hindrance: None,
            is_traced: false,
            directory: None,
            since: SystemTime::now(),
            has_gpu: false,
        }
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
    }

    #[test]
    fn it_is_said_why_there_is_nothing() {
        let lines = |asked: &Asked, journal: &[u8]| of(asked, &Journal::read(journal)).join("\n");
        let nothing = lines(&asked(), b"");
        assert!(nothing.contains("loaded in no process"), "{nothing}");
        let ran = lines(&asked(), b"7 loaded /bin/true\n");
        assert!(
            ran.contains("(1 process ran)") && ran.contains("--model"),
            "{ran}"
        );
        let is_static = Asked {
            hindrance: Some("it is static".into()),
            ..asked()
        };
        assert!(lines(&is_static, b"").contains("it is static"));
    }

    #[test]
    fn processes_that_write_over_one_another_are_said() {
        let journal = b"7 wrote /none/x\n8 wrote /none/x\n";
        let lines = of(&asked(), &Journal::read(journal)).join("\n");
        assert!(lines.contains("2 processes wrote /none/x"), "{lines}");
        assert!(lines.contains("cannot read /none/x"), "{lines}");
        assert!(
            lines.contains("devprof report './a b' --profile /none/x"),
            "{lines}"
        );
        // The first of a pool's writers makes it, the others add.
        let pool = of(
            &asked(),
            &Journal::read(b"7 wrote /none/x\n8 added /none/x\n"),
        );
        assert!(!pool.join("\n").contains("one over the other"), "{pool:?}");
    }
}
