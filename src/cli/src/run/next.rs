//! The commands that show the collected data.

use super::summary::{Run, host_profiles, new_profiles, relative};
use crate::console::Diagnostic;
use crate::readable::quoted;
use crate::run_log::device_code::{self, DeviceCode};
use crate::run_log::journal::Journal;
use crate::triton;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How many files are listed by their names.
const FILES: usize = 3;
/// How long a list of files is at most, unless a pattern would include others.
const LENGTH: usize = 120;

pub fn commands(run: &Run, journal: &Journal, is_ir_level: bool) -> Vec<Diagnostic> {
    let traces = match run.keeps_traces {
        true => arguments(journal.traces.keys(), |_| false),
        false => Vec::new(),
    };
    let (first, second) = if !journal.profiles.is_empty() {
        let stats = (!traces.is_empty()).then(|| stats(&traces));
        (Some(of_profiles(run, journal, is_ir_level, &traces)), stats)
    } else if !traces.is_empty() {
        (Some(stats(&traces)), kernels(run, &traces))
    } else {
        let is_uninstrumented = !journal.code.is_empty()
            && journal.lost.is_empty()
            && journal.cut_off().next().is_none()
            && journal.traces.is_empty();
        let flags = "devprof flags --coverage, which prints the compiler flags";
        (is_uninstrumented.then(|| flags.to_owned()), None)
    };
    let first = first.map(|next| format!("next: {next}"));
    let second = second.map(|next| format!("or: {next}"));
    first
        .into_iter()
        .chain(second)
        .map(Diagnostic::note)
        .collect()
}

fn stats(traces: &[String]) -> String {
    format!("devprof stats {}", traces.join(" "))
}

/// The command that shows the kernels that never ran, if the program has kernels.
fn kernels(run: &Run, traces: &[String]) -> Option<String> {
    let has_code = !DeviceCode::find(&BTreeSet::from([&run.program])).is_empty();
    let program = quoted(&run.program);
    let traces = traces.iter().map(|trace| format!(" --trace {trace}"));
    has_code.then(|| format!("devprof report {program}{}", traces.collect::<String>()))
}

fn of_profiles(run: &Run, journal: &Journal, is_ir_level: bool, traces: &[String]) -> String {
    let paths = || journal.profiles.keys();
    let dirs: BTreeSet<&Path> = paths().filter_map(|path| path.parent()).collect();
    let is_complete = |dir: &Path| {
        // The files of LLVM's runtime are of this run, too.
        let of_run = new_profiles(dir, run.since).into_iter();
        has_no_other(dir, &of_run.chain(paths().cloned()).collect())
    };
    let complete: BTreeSet<&Path> = dirs.into_iter().filter(|dir| is_complete(dir)).collect();
    let files = arguments(paths(), |dir| complete.contains(dir));
    if is_ir_level {
        // A directory includes the host's profiles.
        let host = host_profiles(run, journal);
        let is_listed = |path: &&PathBuf| path.parent().is_none_or(|dir| !complete.contains(dir));
        let host = host.iter().filter(is_listed);
        let host = host.map(|path| quoted(&relative(path)));
        let files: Vec<String> = files.into_iter().chain(host).collect();
        return format!("devprof merge {} -o device.profdata", files.join(" "));
    }
    // If the command was a script, a launcher or an interpreter, name the programs that it started and their libraries.
    let own = run.program.canonicalize().ok();
    let mut binaries: Vec<String> = Vec::new();
    for file in device_code::binaries(journal) {
        binaries.push(match &own {
            Some(own) if *own == file => quoted(&run.program),
            _ => quoted(&relative(&file)),
        });
    }
    let has_compiled = run
        .profiles
        .as_deref()
        .is_some_and(|dir| !triton::cubins(dir).is_empty());
    if has_compiled {
        // There can be hundreds. The report finds all.
        binaries.clear();
    } else if binaries.is_empty() {
        binaries.push(quoted(&run.program));
    }
    let profiles = files.iter().map(|file| format!(" --profile {file}"));
    let traces = traces.iter().map(|trace| format!(" --trace {trace}"));
    let inputs: String = profiles.chain(traces).collect();
    let binaries = binaries.iter().map(|binary| format!(" {binary}"));
    format!("devprof report{}{inputs}", binaries.collect::<String>())
}

/// Arguments that name the files: a directory that `is_complete`, names, or instead of long lists of names patterns
/// that match no other files. They are quoted, so that devprof and not the shell replaces patterns.
fn arguments<'a>(
    paths: impl Iterator<Item = &'a PathBuf>,
    is_complete: impl Fn(&Path) -> bool,
) -> Vec<String> {
    let mut dirs: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for path in paths {
        dirs.entry(path.parent().unwrap_or(path))
            .or_default()
            .push(path);
    }
    let mut arguments = Vec::new();
    for (dir, files) in dirs {
        if is_complete(dir) {
            arguments.push(quoted(&relative(dir)));
            continue;
        }
        let names: Vec<String> = files.iter().map(|file| quoted(&relative(file))).collect();
        let is_short = names.len() <= FILES && names.join(" ").len() <= LENGTH;
        let pattern = (!is_short).then(|| pattern(dir, &files)).flatten();
        arguments.extend(pattern.map_or(names, |pattern| vec![pattern]));
    }
    arguments
}

/// Whether a directory has only these profiles, and no directories, in which others could be.
fn has_no_other(dir: &Path, of_run: &BTreeSet<PathBuf>) -> bool {
    let Ok(entries) = fs::read_dir(dir) else {
        return false;
    };
    entries.flatten().all(|entry| {
        let path = entry.path();
        let is_profile = path
            .extension()
            .is_some_and(|extension| extension == "profraw");
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (!is_directory || triton::is_cache(&path)) && (!is_profile || of_run.contains(&path))
    })
}

/// The pattern of names in a directory that begin and end like all of these files. `None` if one file is all, or if it
/// matches others.
fn pattern(dir: &Path, files: &[&Path]) -> Option<String> {
    let names: Vec<&[u8]> = files
        .iter()
        .map(|file| file.file_name().unwrap_or_default().as_bytes())
        .collect();
    let (first, others) = names
        .split_first()
        .filter(|(_, others)| !others.is_empty())?;
    let same = |count: usize, is_same: &dyn Fn(&[u8], usize) -> bool| {
        (0..count)
            .take_while(|&n| others.iter().all(|other| is_same(other, n)))
            .count()
    };
    let start = same(first.len(), &|other, n| other.get(n) == first.get(n));
    let end = same(first.len() - start, &|other, n| {
        other.len() > start + n && other[other.len() - 1 - n] == first[first.len() - 1 - n]
    });
    let (start, end) = (&first[..start], &first[first.len() - end..]);
    let matches = |name: &[u8]| {
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    let is_other = |name: &[u8]| matches(name) && !names.contains(&name);
    let mut entries = fs::read_dir(dir).ok()?.flatten();
    if entries.any(|entry| is_other(entry.file_name().as_bytes())) {
        return None;
    }
    let name = [start, b"*", end].concat();
    let path = relative(dir).join(String::from_utf8(name).ok()?);
    // In other positions, these characters would be patterns, too.
    let text = path.to_str()?;
    (text.matches(['*', '?', '[']).count() == 1).then(|| quoted(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_files_become_patterns_that_match_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let named = |names: &[&str], is_complete: bool| {
            let paths: Vec<PathBuf> = names.iter().map(|name| at(name)).collect();
            let arguments = arguments(paths.iter(), |_| is_complete).join(" ");
            arguments.replace(&format!("{}", dir.path().display()), "D")
        };
        let run = ["t", "t.1", "t.12", "t.123"];
        for name in run {
            fs::write(at(name), "").unwrap();
        }
        assert_eq!(named(&run[..1], false), "D/t");
        assert_eq!(named(&run, false), "'D/t*'");
        assert_eq!(named(&run, true), "D");
        assert_eq!(named(&["aXa", "aXYXa", "aYXa", "aXXa"], false), "'D/a*Xa'");
        let long = ["1", "2"].map(|start| format!("{start}.{}.profraw", "x".repeat(80)));
        let expected = format!("'D/*.{}.profraw'", "x".repeat(80));
        assert_eq!(named(&long.each_ref().map(|name| &**name), false), expected);
        fs::write(at("t.older"), "").unwrap();
        assert_eq!(named(&run, false), "D/t D/t.1 D/t.12 D/t.123");
    }

    #[test]
    fn a_directory_is_named_if_all_profiles_in_it_are_of_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a.profraw", "1.runlog", ".devprof-lock"] {
            fs::write(at(name), "").unwrap();
        }
        let of_run = BTreeSet::from([at("a.profraw")]);
        assert!(has_no_other(dir.path(), &of_run));
        assert!(!has_no_other(dir.path(), &BTreeSet::new()));
        fs::create_dir(at("sub")).unwrap();
        assert!(!has_no_other(dir.path(), &of_run));
        assert!(!has_no_other(&at("none"), &of_run));
    }
}
