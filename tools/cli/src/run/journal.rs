//! What devprof did in the processes of a run, collected from the run log.

use runlog::{Entry, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A profile that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The file existed before the run: the first process of the run that wrote it added to it.
    pub is_older: bool,
    /// The processes that replaced the file. Those that added to it (`%m`) are not among them.
    pub writers: BTreeSet<u32>,
    /// A process added to the file.
    pub adds: bool,
}

/// What the run log of one run contains.
#[derive(Debug, Default)]
pub struct Journal {
    /// The programs that loaded the runtime, by process id.
    pub programs: BTreeMap<u32, PathBuf>,
    /// The processes that loaded device code, and the libraries that were in each of them then.
    pub code: BTreeMap<u32, BTreeSet<PathBuf>>,
    pub profiles: BTreeMap<PathBuf, Profile>,
    /// Traces, and the process that wrote each.
    pub traces: BTreeMap<PathBuf, u32>,
    /// The losses, each message once, and the number of processes that reported it.
    pub lost: Vec<(String, usize)>,
    /// The processes that wrote a profile or a trace.
    pub writers: BTreeSet<u32>,
    /// The processes whose counters were read because they ended.
    pub ended: BTreeSet<u32>,
}

impl Journal {
    pub fn read(log: &[u8]) -> Journal {
        let mut journal = Journal::default();
        for entry in runlog::entries(log) {
            journal.add(entry);
        }
        journal
    }

    fn add(&mut self, entry: Entry) {
        let pid = entry.pid;
        let text = entry.text.into_owned();
        let path = |text| PathBuf::from(OsString::from_vec(text));
        match entry.event {
            Event::Loaded => {
                self.programs.insert(pid, path(text));
            }
            Event::Code => {
                self.code.entry(pid).or_default();
            }
            Event::Mapped => {
                self.code.entry(pid).or_default().insert(path(text));
            }
            Event::Ended => {
                self.ended.insert(pid);
            }
            Event::Wrote => {
                self.profiles
                    .entry(path(text))
                    .or_default()
                    .writers
                    .insert(pid);
                self.writers.insert(pid);
            }
            Event::Added => {
                let profile = self.profiles.entry(path(text));
                let profile = profile.or_insert_with(|| Profile {
                    is_older: true,
                    ..Profile::default()
                });
                profile.adds = true;
                self.writers.insert(pid);
            }
            Event::Traced => {
                self.traces.insert(path(text), pid);
                self.writers.insert(pid);
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
            .filter(|(pid, _)| self.writers.contains(pid))
            .map(|(_, program)| program)
            .collect()
    }

    /// The libraries that were in these processes when device code was loaded.
    pub fn libraries(&self, is_included: impl Fn(u32) -> bool) -> BTreeSet<&PathBuf> {
        let processes = self.code.iter().filter(|&(&pid, _)| is_included(pid));
        processes.flat_map(|(_, libraries)| libraries).collect()
    }

    /// The processes that loaded device code, and whose counters were not read at their end: they were killed, ended
    /// with `_exit`, or still run.
    pub fn cut_off(&self) -> impl Iterator<Item = u32> {
        let processes = self.code.keys();
        processes.copied().filter(|pid| !self.ended.contains(pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn entries_of_several_processes_are_kept_apart() {
        let journal = Journal::read(
            b"7 loaded /bin/a b\n8 loaded /bin/c\n7 wrote /p/gfx.x\\n\\\\y\n8 added /p/m\n8 lost it\n7 lost it\n\
              9 later what\n8 added /p/m\n7 traced /t\n7 code \n7 mapped /l\n8 code \n8 ended \n7 wro",
        );
        assert_eq!(journal.cut_off().collect::<Vec<_>>(), [7]);
        assert_eq!(journal.libraries(|_| true), BTreeSet::from([&"/l".into()]));
        assert!(journal.libraries(|pid| pid == 8).is_empty());
        assert_eq!(journal.programs[&7], Path::new("/bin/a b"));
        let profile = &journal.profiles[Path::new("/p/gfx.x\n\\y")];
        assert!(!profile.is_older && profile.writers == BTreeSet::from([7]));
        assert!(journal.profiles[Path::new("/p/m")].is_older);
        assert_eq!(journal.lost, [("it".to_owned(), 2)]);
        assert_eq!(journal.traces[Path::new("/t")], 7);
        assert_eq!(journal.written_by().len(), 2);
    }
}
