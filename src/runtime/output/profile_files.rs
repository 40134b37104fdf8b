//! The profile files of this process. Each belongs to a code object, over all drains and if the code object is loaded
//! again.

use super::atomic_file::{self, FileId};
use super::earlier_program;
use super::lock::Wait;
use super::pattern::ObjectId;
use super::target::Target;
use super::test_files::Test;
use crate::gpu::runtime::{Agent, AgentId, ExecutableId, IdMap, IdSet};
use crate::support::alloc::{self, OutOfMemory};
use crate::support::diagnostics::{self, Outcome};
use crate::support::environment::Values;
use crate::support::run_log::{self, Event};
use crate::support::settings::Settings;
use crate::sys::env;
use profraw::counts;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A profile of one code object.
pub struct Profile {
    /// Index into the agents.
    pub agent: usize,
    pub executable: ExecutableId,
    /// Identifies the functions that the code object counts.
    pub fingerprint: u64,
    pub binary_id: Option<Vec<u8>>,
    pub image: Vec<u8>,
    pub records: usize,
    /// devprof would have observed the destruction of the executable. Otherwise it may have been destroyed since the
    /// last drain, and its id reused.
    pub is_observed: bool,
}

/// A raw profile. A slot often refers several times to the same one.
type Shared = Arc<Vec<u8>>;

/// A file, and the code object whose counts are in it. A code object that is loaded several times, one after the other
/// or at once, has one file: programs unload code objects at any time, and HIP on its own thread, but file names must
/// not depend on that.
struct Slot {
    arch: String,
    fingerprint: u64,
    /// `n` in the file's name.
    number: usize,
    binary_id: Option<Vec<u8>>,
    records: usize,
    /// The sum of the counts of tests that have ended. Their counters were reset then.
    ended_tests: Option<Shared>,
    /// The sum of the counts of executables that were destroyed since then.
    unloaded_counts: Option<Shared>,
    /// The counts in each executable at the last drain, sorted.
    loaded: Vec<(ExecutableId, Shared)>,
    /// The file with the sum of all of these.
    all: Output,
    /// The file of the current test: the sum without tests that have ended.
    test: Output,
}

/// A file, and its content.
#[derive(Default)]
struct Output {
    image: Shared,
    written: Option<Written>,
}

/// A file of a code object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Has all counts of the process.
    All,
    /// Has the counts of the current test.
    Test,
}

/// The directory of profiles that are written now. `None`: none are written.
pub fn directory(settings: &Settings) -> Option<PathBuf> {
    let names = Names::new(settings);
    let object = ObjectId {
        fingerprint: 0,
        build_id: None,
    };
    let path = names.target.destination(&names.values, object).path;
    let path = names.directory.join(path);
    atomic_file::is_wanted(&path)
        .is_ok_and(|is_wanted| is_wanted)
        .then(|| path.parent().map(Path::to_owned))?
}

/// The names of one drain's files.
struct Names {
    target: Target,
    test: Option<Test>,
    values: Values,
    /// The program's current directory. Empty if it was removed: names are relative then.
    directory: PathBuf,
    /// When devprof was loaded.
    loaded: SystemTime,
}

impl Names {
    fn new(settings: &Settings) -> Names {
        Names {
            target: Target::new(&settings.environment),
            test: Test::current(settings),
            values: Values {
                pid: std::process::id(),
                ..settings.environment.values.clone()
            },
            directory: std::env::current_dir().unwrap_or_default(),
            loaded: settings.loaded,
        }
    }
}

/// A file that was written.
struct Written {
    /// Absolute: the program may change its directory.
    path: PathBuf,
    image: Shared,
    /// `None`: the file is shared with other processes (%m).
    id: Option<FileId>,
}

/// The files that this process has written.
#[derive(Default)]
pub struct Files {
    slots: Vec<Slot>,
    /// Indices into the slots, by agent and fingerprint.
    by_code_object: IdMap<(AgentId, u64), Vec<usize>>,
    wait: Wait,
}

impl Files {
    /// Writes the profiles. `existing`: all executables that exist, if all were drained.
    pub fn write(
        &mut self,
        agents: &[Agent],
        settings: &Settings,
        mut profiles: Vec<Profile>,
        existing: Option<&IdSet<ExecutableId>>,
        files: &[Which],
        outcome: &mut Outcome,
    ) {
        // For code objects whose unloading was not observed, the counts of the last drain are kept.
        if let Some(existing) = existing {
            for slot in &mut self.slots {
                let all = slot.loaded.iter().map(|(id, _)| *id);
                let unloaded: Vec<_> = all.filter(|id| !existing.contains(id)).collect();
                unloaded.into_iter().for_each(|id| slot.unload(id));
            }
        }
        // New files are numbered in an order that is the same in each run: by fingerprint, then by agent, then by load
        // order (the sort is stable). `sort_by_key` would add 7 KB to the archive.
        profiles.sort_by_cached_key(|profile| (profile.fingerprint, profile.agent));
        let mut changed: Vec<usize> = profiles
            .into_iter()
            .map(|profile| self.add_profile(&agents[profile.agent], profile))
            .collect();
        let names = Names::new(settings);
        if existing.is_some() {
            // The pattern may have changed, also for code objects that are unloaded.
            changed.extend((0..self.slots.len()).filter(|n| self.slots[*n].loaded.is_empty()));
        }
        changed.sort_unstable();
        changed.dedup();
        self.wait.begin(settings.sync_limit);
        for n in changed {
            let slot = &mut self.slots[n];
            let (arch, records) = (slot.arch.clone(), slot.records);
            let mut written = slot.sum().map_err(atomic_file::Error::from);
            for which in files {
                let result = written.and_then(|()| slot.write(*which, &names, &mut self.wait));
                written = result.map(|path| {
                    if let Some(path) = path {
                        diagnostics::note(
                            settings.verbose,
                            format_args!("{records} records of {arch} to {}", path.display()),
                        );
                    }
                });
            }
            if let Err(error) = written {
                outcome.lose(format_args!(
                    "lost the counters of a code object on {arch}: {error}"
                ));
            }
        }
    }

    /// The current test has ended, and all counters were reset.
    pub fn end_test(&mut self, outcome: &mut Outcome) {
        for slot in &mut self.slots {
            if let Err(error) = slot.sum() {
                outcome.lose(format_args!(
                    "lost the counters of a code object on {}: {error}",
                    slot.arch
                ));
            }
            let ended = slot.all.image.clone();
            slot.begin_test(Some(ended));
        }
    }

    /// An executable was destroyed. Its code objects may be loaded again.
    pub fn unload(&mut self, executable: ExecutableId) {
        for slot in &mut self.slots {
            slot.unload(executable);
        }
    }

    /// Adds a profile to its slot. Returns the slot's index.
    fn add_profile(&mut self, agent: &Agent, profile: Profile) -> usize {
        let code_object = (agent.id, profile.fingerprint);
        let known = self.by_code_object.entry(code_object).or_default();
        let is_same =
            |&&n: &&usize| counts::check_same(&self.slots[n].all.image, &profile.image).is_ok();
        let n = match known.iter().find(is_same).copied() {
            Some(n) => n,
            None => {
                let mut others = self.slots.iter().rev();
                let last = others.find(|slot| slot.arch == agent.name);
                let number = last.map_or(0, |slot| slot.number + 1);
                self.slots.push(Slot {
                    arch: agent.name.clone(),
                    fingerprint: profile.fingerprint,
                    number,
                    binary_id: None,
                    records: 0,
                    ended_tests: None,
                    unloaded_counts: None,
                    loaded: Vec::new(),
                    all: Output::default(),
                    test: Output::default(),
                });
                known.push(self.slots.len() - 1);
                self.slots.len() - 1
            }
        };
        self.slots[n].update(profile);
        n
    }

    /// Discards the counts so far. Those in a shared file (%m) stay there.
    pub fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.begin_test(None);
            slot.all.written = None;
            // No other reference is left, and the image is valid because devprof has encoded it.
            if let Some(image) = Arc::get_mut(&mut slot.all.image) {
                let _ = counts::reset(image);
            }
        }
    }

    /// Writes the files again that were replaced. LLVM's own collector, if it is in the program, uses the same names,
    /// and its files lack device functions that are not kernels.
    pub fn rewrite_replaced(&mut self) {
        for slot in &mut self.slots {
            let Some(written) = &mut slot.all.written else {
                continue;
            };
            let now = FileId::at(&written.path);
            if written.id.is_some() && now.is_some() && now != written.id {
                match atomic_file::write(&written.path, &written.image) {
                    Ok(id) => written.id = Some(id),
                    Err(error) => diagnostics::lost(format_args!(
                        "lost the counters of a code object: {error}"
                    )),
                }
            }
        }
    }
}

impl Slot {
    /// Replaces the counts of the profile's executable.
    fn update(&mut self, mut profile: Profile) {
        if let Ok(saturated) = counts::saturate(&mut profile.image) {
            report_saturated(saturated, &self.arch);
        }
        let found = self.find(profile.executable).ok();
        let last = found.map(|n| &self.loaded[n].1);
        let same = last.is_some_and(|last| **last == profile.image);
        let has_decreased =
            last.is_some_and(|last| counts::has_decreased(&profile.image, last) == Ok(true));
        if has_decreased && !profile.is_observed {
            self.unload(profile.executable);
        }
        self.binary_id = profile.binary_id;
        self.records = profile.records;
        let image = Arc::new(profile.image);
        if self.all.image.is_empty() {
            // Later images are compared with the first one.
            self.all.image = image.clone();
        }
        if !same {
            match self.find(profile.executable) {
                Ok(n) => self.loaded[n].1 = image,
                Err(n) => self.loaded.insert(n, (profile.executable, image)),
            }
        }
    }

    /// All counters were reset. `ended`: the counts of tests that have ended.
    fn begin_test(&mut self, ended: Option<Shared>) {
        self.ended_tests = ended;
        self.unloaded_counts = None;
        self.loaded.clear();
        self.test = Output::default();
    }

    /// Adds up the images. If memory cannot be allocated, nothing changes.
    fn sum(&mut self) -> Result<(), OutOfMemory> {
        let loaded = self.loaded.iter().map(|(_, image)| image);
        let Some(test) = self.sum_of(&mut self.unloaded_counts.iter().chain(loaded))? else {
            return Ok(());
        };
        let all = self.sum_of(&mut self.ended_tests.iter().chain([&test]))?;
        self.all.image = all.unwrap_or_default();
        self.test.image = test;
        Ok(())
    }

    /// `None` if there are no images.
    fn sum_of(
        &self,
        images: &mut dyn Iterator<Item = &Shared>,
    ) -> Result<Option<Shared>, OutOfMemory> {
        let Some(first) = images.next() else {
            return Ok(None);
        };
        let Some(second) = images.next() else {
            return Ok(Some(first.clone()));
        };
        let mut sum = alloc::copy_of(first)?;
        add(&mut sum, second, &self.arch);
        for image in images {
            add(&mut sum, image, &self.arch);
        }
        Ok(Some(Arc::new(sum)))
    }

    /// The index of an executable's counts, or where to insert them.
    fn find(&self, executable: ExecutableId) -> Result<usize, usize> {
        self.loaded.binary_search_by_key(&executable, |(id, _)| *id)
    }

    /// The code object is no longer loaded by this executable.
    fn unload(&mut self, executable: ExecutableId) {
        let Ok(n) = self.find(executable) else {
            return;
        };
        let (_, last) = self.loaded.remove(n);
        let sum = self.sum_of(&mut self.unloaded_counts.iter().chain([&last]));
        match sum {
            Ok(sum) => self.unloaded_counts = sum,
            Err(error) => diagnostics::lost(format_args!(
                "lost the counters of a code object on {}: {error}",
                self.arch
            )),
        }
    }

    /// Writes a file. Returns its path, or `None` if it is up to date, nothing ran in the test, or the name is /dev/null.
    fn write(
        &mut self,
        which: Which,
        names: &Names,
        wait: &mut Wait,
    ) -> Result<Option<&Path>, atomic_file::Error> {
        let object = ObjectId {
            fingerprint: self.fingerprint,
            build_id: self.binary_id.as_deref(),
        };
        let (output, test) = match (which, &names.test) {
            (Which::All, _) => (&mut self.all, None),
            (Which::Test, Some(test)) if counts::has_any(&self.test.image) => {
                (&mut self.test, Some(test))
            }
            (Which::Test, _) => return Ok(None),
        };
        let to = names.target.destination(&names.values, object);
        if let Some(warning) = to.warning.filter(|_| test.is_none()) {
            diagnostics::lost(warning);
        }
        // The caller has chosen the current directory.
        if env::is_secure() && !to.path.is_absolute() {
            return Err(atomic_file::Error::Privileged(to.path));
        }
        let mut host = names.directory.join(&to.path);
        if !atomic_file::is_wanted(&host)? {
            return Ok(None);
        }
        if let Some(test) = test
            && let Some((directory, name)) = host.parent().zip(host.file_name())
        {
            host = test.directory(directory)?.join(name);
        }
        if to.merge {
            return output.add_to_shared(&host, &self.arch, which, wait);
        }
        let path = atomic_file::prefixed(&host, &self.arch, self.number);
        // The counts of an unloaded code object do not change: its file is not written again, even if it was replaced.
        let is_current = |written: &Written| {
            written.path == path
                && written.image == output.image
                && (self.loaded.is_empty()
                    || written.id.is_some() && written.id == FileId::at(&path))
        };
        if output.written.as_ref().is_some_and(is_current) || !atomic_file::is_wanted(&path)? {
            return Ok(None);
        }
        let names_process = names.target.names_process() && which == Which::All;
        if names_process && earlier_program::has_written(&path, names.loaded) {
            diagnostics::lost(format_args!(
                "{} is replaced: it has the counts of the program that this process executed before (exec); with %m in the name, the counts are added up",
                path.display()
            ));
        }
        let id = atomic_file::write(&path, &output.image)?;
        Ok(Some(output.record_write(
            path,
            Some(id),
            Event::Wrote,
            which,
        )))
    }
}

impl Output {
    /// Adds the image to a file that other processes share: the first one that is neither damaged nor from another
    /// build.
    fn add_to_shared(
        &mut self,
        shared: &Path,
        arch: &str,
        which: Which,
        wait: &mut Wait,
    ) -> Result<Option<&Path>, atomic_file::Error> {
        let mut refused = Vec::new();
        loop {
            let path = atomic_file::prefixed(shared, arch, refused.len());
            let added = self.written.as_ref().filter(|written| written.path == path);
            let is_current = added.is_some_and(|added| added.image == self.image);
            if is_current || !atomic_file::is_wanted(&path)? {
                return Ok(None);
            }
            let (mut mismatch, mut is_new) = (None, false);
            atomic_file::update(&path, self.image.len(), wait, |old| {
                let Some(mut sum) = old.filter(|old| !old.is_empty()) else {
                    is_new = true;
                    return Ok(Some(alloc::copy_of(&self.image)?));
                };
                let added = added.map(|added| &added.image[..]);
                match counts::add(&mut sum, &self.image, added) {
                    Ok(saturated) => {
                        report_saturated(saturated, arch);
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
            // Only the process that creates the file reports this.
            for (refused, mismatch) in refused.into_iter().filter(|_| is_new) {
                diagnostics::lost(format_args!(
                    "{} is left unchanged: {mismatch}; the counters of this code object go to {}",
                    refused.display(),
                    path.display()
                ));
            }
            let event = if is_new { Event::Wrote } else { Event::Added };
            return Ok(Some(self.record_write(path, None, event, which)));
        }
    }

    fn record_write(
        &mut self,
        path: PathBuf,
        id: Option<FileId>,
        event: Event,
        which: Which,
    ) -> &Path {
        // A test's counts are also in a file of the process.
        if which == Which::All {
            run_log::append_path(event, &path);
        }
        let image = self.image.clone();
        &self.written.insert(Written { path, image, id }).path
    }
}

/// Adds an image of the same code object.
fn add(sum: &mut [u8], image: &[u8], arch: &str) {
    if let Ok(saturated) = counts::add(sum, image, None) {
        report_saturated(saturated, arch);
    }
}

fn report_saturated(counters: usize, arch: &str) {
    if counters > 0 {
        diagnostics::lost(format_args!(
            "{counters} counters of a code object on {arch} saturated at 2^56, llvm-profdata's limit"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::{Header, V11};

    #[test]
    fn equal_counts_share_their_memory() {
        let mut files = Files::default();
        let agent = Agent {
            id: AgentId::Hsa(1),
            name: "gfx1100".into(),
        };
        let profile = |executable, image: &[u8]| Profile {
            agent: 0,
            executable: ExecutableId::Hsa(executable),
            fingerprint: 2,
            binary_id: None,
            image: image.to_vec(),
            records: 1,
            is_observed: true,
        };
        let n = files.add_profile(&agent, profile(3, b"one"));
        let slot = &mut files.slots[n];
        // The second drain finds the same counts as the first.
        for image in [b"two", b"two"] {
            slot.update(profile(3, image));
            slot.sum().unwrap();
            slot.all
                .record_write("x".into(), None, Event::Wrote, Which::All);
            assert_eq!(**slot.all.image, *image);
            let written = &slot.all.written.as_ref().unwrap().image;
            let mut others = [&slot.loaded[0].1, written, &slot.test.image].into_iter();
            assert!(others.all(|other| Arc::ptr_eq(other, &slot.all.image)));
        }
        slot.unload(ExecutableId::Hsa(3));
        slot.sum().unwrap();
        assert!(
            slot.unloaded_counts
                .as_ref()
                .is_some_and(|counts| Arc::ptr_eq(counts, &slot.all.image))
        );
    }

    #[test]
    fn a_test_has_the_counts_since_the_one_before() {
        let image = |count: u64| {
            let mut words = Header {
                version: V11.version,
                num_counters: 1,
                ..Header::default()
            }
            .words();
            words.push(count);
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            bytes.collect::<Vec<u8>>()
        };
        let agent = Agent {
            id: AgentId::Hsa(1),
            name: "gfx1100".into(),
        };
        // What the test and the process have after a drain.
        let drain = |files: &mut Files, executable, count| {
            let profile = Profile {
                agent: 0,
                executable: ExecutableId::Hsa(executable),
                fingerprint: 2,
                binary_id: None,
                image: image(count),
                records: 1,
                is_observed: true,
            };
            let n = files.add_profile(&agent, profile);
            files.slots[n].sum().unwrap();
            [&files.slots[n].test, &files.slots[n].all].map(|output| (*output.image).clone())
        };
        let mut files = Files::default();
        assert_eq!(drain(&mut files, 3, 5), [image(5), image(5)]);
        // It counts on, and is unloaded; another executable has the same code object.
        assert_eq!(drain(&mut files, 3, 6), [image(6), image(6)]);
        assert_eq!(drain(&mut files, 4, 1), [image(7), image(7)]);
        files.unload(ExecutableId::Hsa(3));
        let mut outcome = Outcome::default();
        files.end_test(&mut outcome);
        assert!(!counts::has_any(&files.slots[0].test.image));
        // The counters were reset.
        assert_eq!(drain(&mut files, 4, 0), [image(0), image(7)]);
        assert_eq!(drain(&mut files, 4, 2), [image(2), image(9)]);
        files.end_test(&mut outcome);
        files.end_test(&mut outcome);
        assert_eq!(*files.slots[0].all.image, image(9));
        files.reset();
        assert_eq!(*files.slots[0].all.image, image(0));
        assert_eq!(outcome.lost, 0);
    }
}
