//! Last stage, for one process: which file belongs to which code object, from one drain to the next, and from one time
//! that it is loaded to the next.

use crate::discover::Agent;
use crate::hsa::types::{AgentHandle, ExecutableHandle};
use crate::journal::{self, Event};
use crate::merge;
use crate::pattern::{ObjectId, Target, Values};
use crate::place::{self, FileId};
use crate::report::{self, Outcome};
use crate::room::{self, NoRoom};
use crate::settings::Settings;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A profile that only needs a name.
pub struct Profile {
    /// Index into the agents.
    pub agent: usize,
    pub executable: ExecutableHandle,
    /// See [`crate::signature`].
    pub signature: u64,
    pub binary_id: Option<Vec<u8>>,
    pub image: Vec<u8>,
    pub records: usize,
    /// The executable has been the same since it was first seen. Where nobody tells of unloading, another one may have
    /// come into its place.
    pub certain: bool,
}

/// What a code object of one agent is, wherever it lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    agent: AgentHandle,
    signature: u64,
}

/// An image. Most of the time all that a slot holds is one and the same.
type Shared = Arc<Vec<u8>>;

/// A file, and the code object whose counts are in it. One that is loaded again, or several times at once, has one file:
/// programs unload when they like, HIP on a thread of its own, and names must not depend on that.
struct Slot {
    arch: String,
    signature: u64,
    /// The n of the file's name.
    number: usize,
    binary_id: Option<Vec<u8>>,
    records: usize,
    /// What was counted by those that are unloaded.
    before: Option<Shared>,
    /// Those that are loaded, and what each had counted at the last drain.
    loaded: BTreeMap<ExecutableHandle, Shared>,
    /// All of it: what the file is to hold.
    image: Shared,
    written: Option<Written>,
}

/// Where one drain's files go to.
struct Where {
    target: Target,
    values: Values,
    /// The program's directory, which it may change. Empty where it is gone: names are relative then.
    here: PathBuf,
}

/// What was written, and where to.
struct Written {
    /// Absolute: the program may change its directory.
    path: PathBuf,
    image: Shared,
    /// Of a file of this process's own, to be found again. `None`: it is shared (%m).
    id: Option<FileId>,
}

/// The files that this process has written.
#[derive(Default)]
pub struct Files {
    slots: Vec<Slot>,
    /// Indices into the slots.
    kinds: HashMap<Kind, Vec<usize>>,
    /// How many code objects of each architecture have a name.
    named: HashMap<String, usize>,
}

/// Which executables a drain has looked at.
pub enum Scope<'a> {
    /// All that are loaded.
    All(&'a HashSet<ExecutableHandle>),
    /// Some of them.
    Some,
}

impl Files {
    /// Names and writes the profiles.
    pub fn place(
        &mut self,
        agents: &[Agent],
        settings: &Settings,
        mut profiles: Vec<Profile>,
        scope: Scope,
        outcome: &mut Outcome,
    ) {
        // Code objects whose end nobody told of: what they had counted at the last drain is all there is.
        if let Scope::All(executables) = scope {
            for slot in &mut self.slots {
                let all: Vec<_> = slot.loaded.keys().copied().collect();
                for gone in all.iter().filter(|loaded| !executables.contains(loaded)) {
                    slot.unload(*gone);
                }
            }
        }
        // New names are given in an order that is the same from run to run: by what the code object is, then by agent
        // and load order (the sort is stable).
        profiles.sort_by_key(|profile| (profile.signature, profile.agent));
        let mut changed: BTreeSet<usize> = profiles
            .into_iter()
            .map(|profile| self.take(&agents[profile.agent], profile))
            .collect();
        let place = Where {
            target: Target::new(&settings.environment),
            values: Values {
                pid: std::process::id(),
                ..settings.environment.values.clone()
            },
            here: std::env::current_dir().unwrap_or_default(),
        };
        if let Scope::All(_) = scope {
            // The name may be another one now, for code objects that are gone, too.
            changed.extend((0..self.slots.len()).filter(|n| self.slots[*n].loaded.is_empty()));
        }
        for n in changed {
            let slot = &mut self.slots[n];
            let (arch, records) = (slot.arch.clone(), slot.records);
            let summed = slot.sum().map_err(place::Error::from);
            match summed.and_then(|()| slot.write(&place)) {
                Ok(Some(path)) => {
                    outcome.written += 1;
                    report::note(
                        settings.verbose,
                        format_args!("{records} records of {arch} to {}", path.display()),
                    );
                }
                Ok(None) => outcome.written += 1,
                Err(error) => outcome.lose(format_args!(
                    "lost the counters of a code object on {arch}: {error}"
                )),
            }
        }
    }

    /// An executable is gone, and may come again.
    pub fn unload(&mut self, executable: ExecutableHandle) {
        for slot in &mut self.slots {
            slot.unload(executable);
        }
    }

    /// Takes a profile into its slot, whose index is returned.
    fn take(&mut self, agent: &Agent, profile: Profile) -> usize {
        let kind = Kind {
            agent: agent.handle,
            signature: profile.signature,
        };
        let here = self.kinds.entry(kind).or_default();
        let fits = |&&n: &&usize| merge::fits(&self.slots[n].image, &profile.image).is_ok();
        let n = match here.iter().find(fits).copied() {
            Some(n) => n,
            None => {
                let count = self.named.entry(agent.name.clone()).or_default();
                self.slots.push(Slot {
                    arch: agent.name.clone(),
                    signature: kind.signature,
                    number: *count,
                    binary_id: None,
                    records: 0,
                    before: None,
                    loaded: BTreeMap::new(),
                    image: Shared::default(),
                    written: None,
                });
                *count += 1;
                here.push(self.slots.len() - 1);
                self.slots.len() - 1
            }
        };
        self.slots[n].take(profile);
        n
    }

    /// Forgets what was counted so far. What a pool's file has of it stays there.
    pub fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.before = None;
            slot.loaded.clear();
            slot.written = None;
            // Nothing shares it now, and an image of ours can be read.
            if let Some(image) = Arc::get_mut(&mut slot.image) {
                let _ = merge::reset(image);
            }
        }
    }

    /// Writes the files again that somebody has replaced since. LLVM's own collector, where it is in the program too,
    /// has the same names and leaves out the device functions that are no kernels.
    pub fn place_again(&mut self) {
        for slot in &mut self.slots {
            let Some(written) = &mut slot.written else {
                continue;
            };
            if written.id.is_some_and(|id| id.is_replaced(&written.path)) {
                match place::write(&written.path, &written.image) {
                    Ok(id) => written.id = Some(id),
                    Err(error) => {
                        report::lost(format_args!("lost the counters of a code object: {error}"))
                    }
                }
            }
        }
    }
}

impl Slot {
    fn take(&mut self, mut profile: Profile) {
        if let Ok(stopped) = merge::cap(&mut profile.image) {
            say_stopped(stopped, &self.arch);
        }
        let last = self.loaded.get(&profile.executable);
        let same = last.is_some_and(|last| **last == profile.image);
        let fallen = last.is_some_and(|last| merge::has_fallen(&profile.image, last) == Ok(true));
        if fallen && !profile.certain {
            self.unload(profile.executable);
        }
        self.binary_id = profile.binary_id;
        self.records = profile.records;
        let image = Arc::new(profile.image);
        if self.image.is_empty() {
            // The first: others are compared with it.
            self.image = image.clone();
        }
        if !same {
            self.loaded.insert(profile.executable, image);
        }
    }

    /// Makes the image from what was counted. Fails where there is no memory for it; nothing is forgotten then.
    fn sum(&mut self) -> Result<(), NoRoom> {
        let mut all = self.before.iter().chain(self.loaded.values());
        let Some(first) = all.next() else {
            return Ok(());
        };
        let Some(second) = all.next() else {
            self.image = first.clone();
            return Ok(());
        };
        let mut sum = room::copy_of(first)?;
        for image in std::iter::once(second).chain(all) {
            add(&mut sum, image, &self.arch);
        }
        self.image = Arc::new(sum);
        Ok(())
    }

    /// The code object is gone from there, and may come again.
    fn unload(&mut self, executable: ExecutableHandle) {
        let Some(last) = self.loaded.remove(&executable) else {
            return;
        };
        let Some(before) = &self.before else {
            self.before = Some(last);
            return;
        };
        match room::copy_of(before) {
            Ok(mut sum) => {
                add(&mut sum, &last, &self.arch);
                self.before = Some(Arc::new(sum));
            }
            Err(error) => report::lost(format_args!(
                "lost the counters of a code object on {}: {error}",
                self.arch
            )),
        }
    }

    /// Writes the image. Where to; `None`: it is there already, or is not wanted.
    fn write(&mut self, place: &Where) -> Result<Option<&Path>, place::Error> {
        let Where {
            target,
            values,
            here,
        } = place;
        let to = target.destination(
            values,
            ObjectId {
                signature: self.signature,
                build_id: self.binary_id.as_deref(),
            },
        );
        if let Some(differs) = to.differs {
            report::lost(differs);
        }
        let host = here.join(&to.path);
        if to.merge {
            return self.add(&host);
        }
        let path = place::prefixed(&host, &self.arch, self.number);
        // What is gone counts no more: its file is left to whoever has taken it.
        let is_there = |written: &Written| {
            written.path == path
                && written.image == self.image
                && (self.loaded.is_empty() || written.id.is_some_and(|id| id.is_at(&path)))
        };
        if self.written.as_ref().is_some_and(is_there) || !is_wanted(&host, &path)? {
            return Ok(None);
        }
        let id = place::write(&path, &self.image)?;
        Ok(Some(self.wrote(path, Some(id), Event::Wrote)))
    }

    /// Adds the image to a file that other processes share. Where that one is of another build, or damaged, to the next
    /// that is not.
    fn add(&mut self, shared: &Path) -> Result<Option<&Path>, place::Error> {
        let mut refused = Vec::new();
        loop {
            let path = place::prefixed(shared, &self.arch, refused.len());
            let added = self.written.as_ref().filter(|written| written.path == path);
            let is_there = added.is_some_and(|added| added.image == self.image);
            if is_there || !is_wanted(shared, &path)? {
                return Ok(None);
            }
            let (mut mismatch, mut is_new) = (None, false);
            place::update(&path, self.image.len(), |old| {
                let Some(mut sum) = old.filter(|old| !old.is_empty()) else {
                    is_new = true;
                    return Ok(Some(room::copy_of(&self.image)?));
                };
                let added = added.map(|added| &added.image[..]);
                match merge::add(&mut sum, &self.image, added) {
                    Ok(stopped) => {
                        say_stopped(stopped, &self.arch);
                        Ok(Some(sum))
                    }
                    Err(error) => {
                        mismatch = Some(error);
                        Ok(None)
                    }
                }
            })?;
            if let Some(mismatch) = mismatch {
                refused.push((path, mismatch));
                continue;
            }
            // Said by the first process that makes room beside them.
            for (refused, mismatch) in refused.into_iter().filter(|_| is_new) {
                report::lost(format_args!(
                    "{} is left as it is: {mismatch}; the counters of this code object go to {}",
                    refused.display(),
                    path.display()
                ));
            }
            let event = if is_new { Event::Wrote } else { Event::Added };
            return Ok(Some(self.wrote(path, None, event)));
        }
    }

    fn wrote(&mut self, path: PathBuf, id: Option<FileId>, event: Event) -> &Path {
        journal::note_file(event, &path);
        let image = self.image.clone();
        &self.written.insert(Written { path, image, id }).path
    }
}

/// See [`place::is_wanted`]: of the host's file, and of the device's beside it.
fn is_wanted(host: &Path, device: &Path) -> Result<bool, place::Error> {
    Ok(place::is_wanted(host)? && place::is_wanted(device)?)
}

/// Adds an image of the same code object, as was seen when its slot was chosen.
fn add(sum: &mut [u8], image: &[u8], arch: &str) {
    if let Ok(stopped) = merge::add(sum, image, None) {
        say_stopped(stopped, arch);
    }
}

fn say_stopped(counters: usize, arch: &str) {
    if counters > 0 {
        report::lost(format_args!(
            "{counters} counters of a code object on {arch} stop at 2^56: llvm-profdata refuses a file with a larger count"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_held_once() {
        let mut files = Files::default();
        let agent = Agent {
            handle: AgentHandle(1),
            name: "gfx1100".into(),
        };
        let profile = |executable, image: &[u8]| Profile {
            agent: 0,
            executable: ExecutableHandle(executable),
            signature: 2,
            binary_id: None,
            image: image.to_vec(),
            records: 1,
            certain: true,
        };
        let n = files.take(&agent, profile(3, b"one"));
        let slot = &mut files.slots[n];
        // Counted again; nothing new was counted.
        for image in [b"two", b"two"] {
            slot.take(profile(3, image));
            slot.sum().unwrap();
            slot.wrote("x".into(), None, Event::Wrote);
            assert_eq!(**slot.image, *image);
            let others = [
                &slot.loaded[&ExecutableHandle(3)],
                &slot.written.as_ref().unwrap().image,
            ];
            assert!(others.iter().all(|other| Arc::ptr_eq(other, &slot.image)));
        }
        slot.unload(ExecutableHandle(3));
        slot.sum().unwrap();
        assert!(
            slot.before
                .as_ref()
                .is_some_and(|before| Arc::ptr_eq(before, &slot.image))
        );
    }
}
