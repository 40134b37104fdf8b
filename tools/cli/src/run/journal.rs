//! What the runtime told in the file that DEVPROF_LOG names (src/journal.rs of the runtime), one line a fact.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A profile that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// There was one before, which was added to.
    pub is_older: bool,
    /// Which processes wrote it anew, each over what the others wrote; these do not count one that adds (`%m`).
    pub writers: BTreeSet<u32>,
    pub adds: bool,
}

/// What the programs of one run have told.
#[derive(Debug, Default)]
pub struct Journal {
    /// The programs that devprof was in, by process.
    pub programs: BTreeMap<u32, PathBuf>,
    pub profiles: BTreeMap<PathBuf, Profile>,
    /// Traces, and whose they are.
    pub traces: BTreeMap<PathBuf, u32>,
    /// What was lost, each line once, and in how many processes.
    pub lost: Vec<(String, usize)>,
    /// The processes that wrote a profile or a trace.
    pub writers: BTreeSet<u32>,
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => plain.push(match bytes.next() {
                Some(b'n') => b'\n',
                Some(&other) => other,
                None => b'\\',
            }),
            byte => plain.push(byte),
        }
    }
    plain
}

impl Journal {
    /// Lines of no known kind are left out: they are of a later runtime, which the user has named.
    pub fn read(bytes: &[u8]) -> Journal {
        let mut journal = Journal::default();
        let lines = bytes.split(|&byte| byte == b'\n');
        for line in lines {
            let mut parts = line.splitn(3, |&byte| byte == b' ');
            let (Some(pid), Some(word), Some(text)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let Some(pid) = std::str::from_utf8(pid)
                .ok()
                .and_then(|pid| pid.parse().ok())
            else {
                continue;
            };
            journal.take(pid, word, unescaped(text));
        }
        journal
    }

    fn take(&mut self, pid: u32, word: &[u8], text: Vec<u8>) {
        let path = |text| PathBuf::from(OsString::from_vec(text));
        match word {
            b"loaded" => {
                self.programs.insert(pid, path(text));
            }
            b"wrote" | b"added" => {
                let adds = word == b"added";
                let profile = self.profiles.entry(path(text)).or_insert_with(|| Profile {
                    is_older: adds,
                    ..Profile::default()
                });
                match adds {
                    true => profile.adds = true,
                    false => {
                        profile.writers.insert(pid);
                    }
                }
                self.writers.insert(pid);
            }
            b"traced" => {
                self.traces.insert(path(text), pid);
                self.writers.insert(pid);
            }
            b"lost" => {
                let text = String::from_utf8_lossy(&text).into_owned();
                match self.lost.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, times)) => *times += 1,
                    None => self.lost.push((text, 1)),
                }
            }
            _ => {}
        }
    }

    /// The programs whose processes wrote something.
    pub fn written_by(&self) -> BTreeSet<&PathBuf> {
        let programs = self.programs.iter();
        programs
            .filter(|(pid, _)| self.writers.contains(pid))
            .map(|(_, program)| program)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn lines_of_several_processes_are_told_apart() {
        let journal = Journal::read(
            b"7 loaded /bin/a b\n8 loaded /bin/c\n7 wrote /p/gfx.x\\n\\\\y\n8 added /p/m\n8 lost it\n7 lost it\n\
              9 later what\n8 added /p/m\n7 traced /t\n7 wro",
        );
        assert_eq!(journal.programs[&7], Path::new("/bin/a b"));
        let profile = &journal.profiles[Path::new("/p/gfx.x\n\\y")];
        assert!(!profile.is_older && profile.writers == BTreeSet::from([7]));
        assert!(journal.profiles[Path::new("/p/m")].is_older);
        assert_eq!(journal.lost, [("it".to_owned(), 2)]);
        assert_eq!(journal.traces[Path::new("/t")], 7);
        assert_eq!(journal.written_by().len(), 2);
    }
}
