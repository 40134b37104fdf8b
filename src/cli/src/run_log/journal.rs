//! devprof's actions in the processes of a run, collected from the run log.

use runlog::{Entry, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A process: the index of its node's log, and its id on that node.
pub type Process = (usize, u32);

/// A profile that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The file existed before the run: processes have added to it, and none has created it.
    pub is_older: bool,
    /// The processes that replaced the file. Those that added to it (`%m`) are not among them.
    pub writers: BTreeSet<Process>,
    /// A process added to the file.
    pub adds: bool,
}

/// The contents of the run log of one run.
#[derive(Debug, Default)]
pub struct Journal {
    /// The programs that loaded the runtime.
    pub programs: BTreeMap<Process, PathBuf>,
    /// The processes that loaded device code, and the libraries that were in each of them then.
    pub code: BTreeMap<Process, BTreeSet<PathBuf>>,
    pub profiles: BTreeMap<PathBuf, Profile>,
    /// Traces, and the process that wrote each.
    pub traces: BTreeMap<PathBuf, Process>,
    /// The losses, each message once, and the number of processes that reported it.
    pub lost: Vec<(String, usize)>,
    /// The processes that wrote a profile or a trace.
    pub writers: BTreeSet<Process>,
    /// The processes whose counters were read because they ended.
    pub ended: BTreeSet<Process>,
}

impl Journal {
    /// Reads the logs of several nodes.
    pub fn read<'a>(logs: impl IntoIterator<Item = &'a [u8]>) -> Journal {
        let mut journal = Journal::default();
        for (node, log) in logs.into_iter().enumerate() {
            for entry in runlog::entries(log) {
                journal.add(node, entry);
            }
        }
        journal
    }

    fn add(&mut self, node: usize, entry: Entry) {
        let process = (node, entry.pid);
        let text = entry.text.into_owned();
        let path = |text| PathBuf::from(OsString::from_vec(text));
        match entry.event {
            Event::Loaded => {
                self.programs.insert(process, path(text));
            }
            Event::Code => {
                self.code.entry(process).or_default();
            }
            Event::Mapped => {
                self.code.entry(process).or_default().insert(path(text));
            }
            Event::Ended => {
                self.ended.insert(process);
            }
            Event::Wrote => {
                let profile = self.profiles.entry(path(text)).or_default();
                // Another node's log may come first.
                profile.is_older = false;
                profile.writers.insert(process);
                self.writers.insert(process);
            }
            Event::Added => {
                let profile = self.profiles.entry(path(text));
                let profile = profile.or_insert_with(|| Profile {
                    is_older: true,
                    ..Profile::default()
                });
                profile.adds = true;
                self.writers.insert(process);
            }
            Event::Traced => {
                self.traces.insert(path(text), process);
                self.writers.insert(process);
            }
            Event::Lost => {
                let text = String::from_utf8_lossy(&text).into_owned();
                match self.lost.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, processes)) => *processes += 1,
                    None => self.lost.push((text, 1)),
                }
            }
        }
    }

    /// The profiles that several processes wrote, each overwriting the one before.
    pub fn overwritten(&self) -> impl Iterator<Item = (&PathBuf, &Profile)> {
        let twice = |(_, profile): &(_, &Profile)| profile.writers.len() > 1 && !profile.adds;
        self.profiles.iter().filter(twice)
    }

    /// The programs whose processes wrote something.
    pub fn written_by(&self) -> BTreeSet<&PathBuf> {
        let programs = self.programs.iter();
        programs
            .filter(|(process, _)| self.writers.contains(process))
            .map(|(_, program)| program)
            .collect()
    }

    /// The libraries that were in these processes when device code was loaded.
    pub fn libraries(&self, is_included: impl Fn(Process) -> bool) -> BTreeSet<&PathBuf> {
        let processes = self
            .code
            .iter()
            .filter(|&(&process, _)| is_included(process));
        processes.flat_map(|(_, libraries)| libraries).collect()
    }

    /// The processes that loaded device code, and whose counters were not read at their end: they were killed, ended
    /// with `_exit`, or still run.
    pub fn cut_off(&self) -> impl Iterator<Item = Process> {
        let processes = self.code.keys();
        processes
            .copied()
            .filter(|process| !self.ended.contains(process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn entries_of_several_processes_are_kept_apart() {
        let journal = Journal::read([&
            b"7 loaded /bin/a b\n8 loaded /bin/c\n7 wrote /p/gfx.x\\n\\\\y\n8 added /p/m\n8 lost it\n7 lost it\n\
              9 later what\n8 added /p/m\n7 traced /t\n7 code \n7 mapped /l\n8 code \n8 ended \n7 wro"[..],
        ]);
        assert_eq!(journal.cut_off().collect::<Vec<_>>(), [(0, 7)]);
        assert_eq!(journal.libraries(|_| true), BTreeSet::from([&"/l".into()]));
        assert!(journal.libraries(|process| process == (0, 8)).is_empty());
        assert_eq!(journal.programs[&(0, 7)], Path::new("/bin/a b"));
        let profile = &journal.profiles[Path::new("/p/gfx.x\n\\y")];
        assert!(!profile.is_older && profile.writers == BTreeSet::from([(0, 7)]));
        assert!(journal.profiles[Path::new("/p/m")].is_older);
        assert_eq!(journal.lost, [("it".to_owned(), 2)]);
        assert_eq!(journal.traces[Path::new("/t")], (0, 7));
        assert_eq!(journal.written_by().len(), 2);
    }
    #[test]
    fn processes_of_several_nodes_are_kept_apart() {
        let logs = ["7 code \n7 wrote /p\n", "7 code \n7 wrote /p\n7 ended \n"];
        let journal = Journal::read(logs.map(str::as_bytes));
        assert_eq!(journal.cut_off().collect::<Vec<_>>(), [(0, 7)]);
        assert_eq!(journal.overwritten().count(), 1);
        let logs = ["7 added /p\n", "7 wrote /p\n"];
        let journal = Journal::read(logs.map(str::as_bytes));
        assert!(!journal.profiles[Path::new("/p")].is_older);
    }
}
