//! Last stage, for one process: which file belongs to which code object, from one drain to the next, and from one time
//! that it is loaded to the next.

use crate::discover::Agent;
use crate::hsa::types::{AgentHandle, ExecutableHandle};
use crate::merge::{self, merge};
use crate::place::{self, FileId, ObjectId, Target, Values};
use crate::report::{self, Outcome};
use crate::settings::Settings;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

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

/// A file, and the code object whose counts are in it. One that is loaded, unloaded and loaded again has one file.
struct Slot {
    arch: String,
    signature: u64,
    /// The n of the file's name.
    number: usize,
    binary_id: Option<Vec<u8>>,
    records: usize,
    /// What was counted while the code object was loaded before.
    before: Option<Vec<u8>>,
    /// Where it is loaded now.
    loaded: Option<ExecutableHandle>,
    /// What the loaded one had counted at the last drain.
    last: Option<Vec<u8>>,
    /// All of it: what the file is to hold.
    image: Vec<u8>,
    written: Option<Written>,
}

/// What was written, and where to.
struct Written {
    path: PathBuf,
    image: Vec<u8>,
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
                if slot
                    .loaded
                    .is_some_and(|loaded| !executables.contains(&loaded))
                {
                    slot.unload();
                }
            }
        }
        // New names are given in an order that is the same from run to run: by what the code object is, then by agent
        // and load order (the sort is stable).
        profiles.sort_by_key(|profile| (profile.signature, profile.agent));
        let mut changed: Vec<usize> = profiles
            .into_iter()
            .map(|profile| self.take(&agents[profile.agent], profile))
            .collect();
        let target = Target::new(settings.pattern.as_deref());
        let values = Values::now();
        if let Scope::All(_) = scope {
            // The name may be another one now, for code objects that are gone, too.
            changed.extend((0..self.slots.len()).filter(|n| self.slots[*n].loaded.is_none()));
        }
        for n in changed {
            let slot = &mut self.slots[n];
            let (arch, records) = (slot.arch.clone(), slot.records);
            match slot.write(&target, &values) {
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
        let here = |slot: &&mut Slot| slot.loaded == Some(executable);
        self.slots.iter_mut().filter(here).for_each(Slot::unload);
    }

    /// Takes a profile into its slot, whose index is returned.
    fn take(&mut self, agent: &Agent, profile: Profile) -> usize {
        let kind = Kind {
            agent: agent.handle,
            signature: profile.signature,
        };
        let here = self.kinds.entry(kind).or_default();
        let of = |loaded: Option<ExecutableHandle>| {
            let slots = &self.slots;
            let fits = |&&n: &&usize| {
                slots[n].loaded == loaded && merge(&slots[n].image, &profile.image, None).is_ok()
            };
            here.iter().find(fits).copied()
        };
        let n = match of(Some(profile.executable)).or_else(|| of(None)) {
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
                    loaded: None,
                    last: None,
                    image: Vec::new(),
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

    /// Forgets what was counted so far.
    pub fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.before = None;
            slot.last = None;
            // An image of ours can be read.
            let _ = merge::reset(&mut slot.image);
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
    fn take(&mut self, profile: Profile) {
        let fallen = |last: &Vec<u8>| merge::has_fallen(&profile.image, last) == Ok(true);
        if !profile.certain && self.last.as_ref().is_some_and(fallen) {
            self.unload();
        }
        self.loaded = Some(profile.executable);
        self.binary_id = profile.binary_id;
        self.records = profile.records;
        // That they add up was seen when the slot was chosen.
        let sum = self
            .before
            .as_ref()
            .and_then(|before| merge(before, &profile.image, None).ok());
        self.image = sum.unwrap_or_else(|| profile.image.clone());
        self.last = Some(profile.image);
    }

    /// The code object is gone, and may come again.
    fn unload(&mut self) {
        self.loaded = None;
        self.last = None;
        self.before = Some(self.image.clone());
    }

    /// Writes the image. Where to; `None`: it is there already.
    fn write(&mut self, target: &Target, values: &Values) -> Result<Option<&Path>, place::Error> {
        let to = target.destination(
            values,
            ObjectId {
                signature: self.signature,
                build_id: self.binary_id.as_deref(),
            },
        );
        if to.continuous {
            report::lost(
                "%c in LLVM_PROFILE_FILE (continuous mode) is left out: device counters are not in host memory",
            );
        }
        if to.merge {
            return self.add(&to.path);
        }
        let path = place::prefixed(&to.path, &self.arch, self.number);
        // What is gone counts no more: its file is left to whoever has taken it.
        let is_there = |written: &Written| {
            written.path == path
                && written.image == self.image
                && (self.loaded.is_none() || written.id.is_some_and(|id| id.is_at(&path)))
        };
        if self.written.as_ref().is_some_and(is_there) {
            return Ok(None);
        }
        let id = place::write(&path, &self.image)?;
        Ok(Some(self.wrote(path, Some(id))))
    }

    /// Adds the image to a file that other processes share. Where that one is of another build, or damaged, to the next
    /// that is not.
    fn add(&mut self, shared: &Path) -> Result<Option<&Path>, place::Error> {
        let mut number = 0;
        loop {
            let path = place::prefixed(shared, &self.arch, number);
            let added = self.written.as_ref().filter(|written| written.path == path);
            let added = added.map(|written| &written.image[..]);
            if added == Some(&self.image) {
                return Ok(None);
            }
            let mut mismatch = None;
            place::update(&path, |old| match old.filter(|old| !old.is_empty()) {
                None => Some(self.image.clone()),
                Some(old) => merge(&old, &self.image, added)
                    .map_err(|error| mismatch = Some(error))
                    .ok(),
            })?;
            let Some(mismatch) = mismatch else {
                return Ok(Some(self.wrote(path, None)));
            };
            number += 1;
            report::lost(format_args!(
                "{} is left as it is: {mismatch}; the counters of this process go to {}",
                path.display(),
                place::prefixed(shared, &self.arch, number).display()
            ));
        }
    }

    fn wrote(&mut self, path: PathBuf, id: Option<FileId>) -> &Path {
        let image = self.image.clone();
        &self.written.insert(Written { path, image, id }).path
    }
}
