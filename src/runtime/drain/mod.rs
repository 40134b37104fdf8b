//! The profile pipeline: discover, validate, copy, encode, write. Each stage is a module. Losses are reported and
//! counted; the rest is still collected.

#![forbid(unsafe_code)]

mod cache;
mod code_object;
mod copy;
mod counter_copies;
mod discover;
mod encode;
mod fingerprint;
pub mod kind;
mod validate;

use crate::gpu::copy_layout::VARIABLE;
use crate::gpu::runtime::{Agent, Agents, Error, ExecutableId, Runtime, Segments};
use crate::output::profile_files::{Files, Profile, Which};
use crate::support::diagnostics::{self, Outcome};
use crate::support::settings::Settings;
use cache::{Cache, Discovered, lose_all};
use code_object::{Lost, describe};
use copy::{Device, Read};
use counter_copies::Registry;
use counter_copies::reading;
use counter_copies::set_up::{self, Refused};
use discover::LoadedOn;
use encode::{Draft, Image};
use kind::{DrainKind, Executables};
use std::fmt::Display;

/// The state that is kept between drains.
#[derive(Default)]
pub struct DrainState {
    cache: Cache,
    copies: Registry,
    files: Files,
}

/// One drain.
pub struct Drain<'a> {
    pub runtime: &'a dyn Runtime,
    pub executables: Executables<'a>,
    pub settings: &'a Settings,
    pub drain_state: &'a mut DrainState,
    pub outcome: &'a mut Outcome,
}

/// The code objects of one agent, as they were copied.
struct Copied {
    /// For each code object, the raw profiles of its tables.
    images: Vec<Result<Vec<Image>, Lost>>,
    /// The bytes of counters and records.
    size: usize,
}

/// What a drain does with the code objects that it finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Reads what does not change.
    Read,
    /// Copies the counters.
    Copy,
    Reset,
}

/// What a drain has found.
struct Walk {
    discovered: Discovered,
    /// The number of code objects that have counters or losses.
    counting: usize,
    /// The bytes of counters and records.
    copied: usize,
    profiles: Vec<Profile>,
}

impl DrainState {
    /// An executable was destroyed. Its counts are kept, the copies of its counters are freed. `runtime`: the runtime that had
    /// loaded it, if it is known.
    pub fn remove(&mut self, executable: ExecutableId, runtime: Option<&dyn Runtime>) {
        if let Some(runtime) = runtime {
            self.copies.free(executable, runtime);
        }
        self.cache.remove(executable);
        self.files.unload(executable);
    }

    /// The runtime is shut down, and all memory is freed.
    pub fn forget_copies(&mut self) {
        self.copies = Registry::default();
    }

    /// See [`Cache::has_unobserved`].
    pub fn has_unobserved(&self, executables: Executables) -> bool {
        self.cache.has_unobserved(executables)
    }

    /// See [`Files::rewrite_replaced`].
    pub fn rewrite_replaced(&mut self) {
        self.files.rewrite_replaced();
    }
}

impl<'a> Drain<'a> {
    /// Whether a loaded code object has counters.
    pub fn has_counters(&mut self) -> Result<bool, Error> {
        self.discard_unobserved();
        let agents = self.runtime.agents()?;
        self.walk(&agents, DrainKind::All, Action::Read)?;
        Ok(!self.drain_state.cache.is_empty())
    }

    /// Discards what earlier drains have read of executables that are not observed.
    pub fn discard_unobserved(&mut self) {
        self.drain_state.cache.discard_unobserved(self.executables);
    }

    /// Sets up copies of the counters of an executable that was just loaded. Its destruction is observed.
    pub fn set_up_copies(&mut self, executable: ExecutableId) -> Result<(), Error> {
        let agents = self.runtime.agents()?;
        let segments = discover::segments_of(self.runtime, executable);
        let (loaded, _) = discover::loaded(segments, &agents);
        for code in loaded {
            let agent = &agents.gpus[code.agent];
            let at = LoadedOn {
                executable,
                agent: agent.id,
            };
            let variable = self.runtime.variable(executable, agent.id, VARIABLE)?;
            let Some(variable) = variable else {
                continue;
            };
            let device = self.device(agent);
            let budget = self.settings.copies_budget;
            let DrainState { cache, copies, .. } = &mut *self.drain_state;
            let code_object = code.clone();
            let describe = |what: &dyn Display| describe(device, agent, &code_object, what);
            match set_up::set_up(device, agent, code, &variable, copies, budget) {
                Ok((object, layout)) => {
                    cache.insert(at, object);
                    if self.settings.verbose {
                        let (count, size) = (layout.count, layout.size());
                        let what = format!("{count} copies of its counters, {size} bytes");
                        diagnostics::note(true, describe(&what));
                    }
                }
                Err(refused @ Refused::Foreign) => self.outcome.lose(describe(&refused)),
                Err(refused) if self.settings.verbose => {
                    let what = format!("no copies of its counters: {refused}");
                    diagnostics::note(true, describe(&what));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Collects the counters of the code objects that a drain of this kind is for, and writes their files.
    pub fn collect(&mut self, kind: DrainKind) -> Result<(), Error> {
        let agents = self.runtime.agents()?;
        // Otherwise an internal error was reported.
        let Some(walk) = self.walk(&agents, kind, Action::Copy)? else {
            return Ok(());
        };
        let Walk {
            discovered: Discovered { loaded, failed },
            counting,
            copied,
            profiles,
        } = walk;
        // The form of these lines is LLVM's (compiler-rt, InstrProfilingPlatformROCm.cpp and …HSA.cpp), which its tests
        // and users' scripts look for. Snapshots are silent.
        let is_noted = self.settings.verbose && kind != DrainKind::Snapshot;
        diagnostics::note(
            is_noted,
            format_args!("Copied device sections: {copied} bytes"),
        );
        diagnostics::note(
            is_noted,
            format_args!(
                "{} walk complete: agents={} pairs={} found={} drained={} iter-failures={failed}",
                self.runtime.name(),
                agents.gpus.len(),
                loaded.len(),
                counting,
                profiles.len()
            ),
        );
        let nothing = match (loaded.len(), counting) {
            _ if agents.gpus.is_empty() && agents.unknown.is_empty() => {
                Some("no GPU agents present".to_owned())
            }
            (0, _) => Some("no code object is loaded".to_owned()),
            (1, 0) => Some("the code object is not instrumented".to_owned()),
            (n, 0) => Some(format!("none of the {n} code objects is instrumented")),
            _ => None,
        };
        if let Some(nothing) = nothing {
            diagnostics::note(is_noted, format_args!("nothing to collect: {nothing}"));
        }
        let mut existing = self.executables.destroying.clone();
        existing.extend(loaded.iter().map(|at| at.executable));
        let existing = kind.is_complete().then_some(&existing);
        let which = match kind {
            DrainKind::TestEnd => &[Which::Test][..],
            _ => &[Which::Test, Which::All],
        };
        let files = &mut self.drain_state.files;
        files.write(
            &agents.gpus,
            self.settings,
            profiles,
            existing,
            which,
            self.outcome,
        );
        Ok(())
    }

    /// Resets the counters of all code objects, and discards earlier counts.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.reset_devices()?;
        self.drain_state.files.reset();
        Ok(())
    }

    /// Collects the counters of the current test, and resets them. Its counts stay in the files of the process.
    pub fn end_test(&mut self) -> Result<(), Error> {
        self.collect(DrainKind::TestEnd)?;
        self.reset_devices()?;
        self.drain_state.files.end_test(self.outcome);
        Ok(())
    }

    fn reset_devices(&mut self) -> Result<(), Error> {
        let agents = self.runtime.agents()?;
        self.walk(&agents, DrainKind::Reset, Action::Reset)?;
        Ok(())
    }

    /// Resets the counters of code objects on one agent.
    fn reset_counters(&mut self, agent: &Agent, here: &[LoadedOn]) {
        let device = self.device(agent);
        let cache = &self.drain_state.cache;
        let objects: Vec<_> = here.iter().filter_map(|&at| cache.get(at)).collect();
        let (mut ranges, mut owners) = (Vec::new(), Vec::new());
        for object in &objects {
            let at = LoadedOn {
                executable: object.code.executable,
                agent: agent.id,
            };
            let copies = self.drain_state.copies.get(at);
            let copies = copies.map(|copies| (copies.range(), 0));
            for range in object.counters().chain(copies) {
                ranges.push(range);
                owners.push(object);
            }
        }
        match device.runtime.fill(agent.id, &ranges, device.limit) {
            Ok(failed) => {
                for (n, error) in failed {
                    let lost = Lost::Reset(error);
                    self.outcome.lose(owners[n].describe(device, agent, &lost));
                }
            }
            Err(error) => self.outcome.lose(format_args!(
                "the counters of {} code objects on {} could not be reset: {error}",
                objects.len(),
                agent.name
            )),
        }
    }

    /// Finds the code objects that a drain of this kind is for, and acts on them. None of them is unloaded meanwhile. `None` after an
    /// internal error, which was reported.
    fn walk(
        &mut self,
        agents: &Agents,
        kind: DrainKind,
        action: Action,
    ) -> Result<Option<Walk>, Error> {
        let (runtime, executables) = (self.runtime, self.executables);
        let segments = match kind.executable() {
            Some(executable) => discover::segments_of(runtime, executable),
            None => runtime.segments()?,
        };
        // The others are not destroyed while the caller holds its lock.
        let may_be_destroyed = kind.is_complete()
            && segments
                .executables()
                .any(|e| executables.may_be_destroyed(e));
        let mut walk = None;
        let mut run = |segments| {
            if may_be_destroyed {
                // Others may have replaced them since they were read.
                self.discard_unobserved();
            }
            let discovered = self.read(segments, agents, kind);
            walk = Some(self.act(agents, discovered, action));
        };
        if may_be_destroyed {
            runtime.with_segments(&mut run)?;
        } else {
            run(segments);
        }
        Ok(walk)
    }

    /// Acts on the code objects that were discovered.
    fn act(&mut self, agents: &Agents, discovered: Discovered, action: Action) -> Walk {
        let all = self.counting(&discovered.loaded);
        let mut walk = Walk {
            discovered,
            counting: all.len(),
            copied: 0,
            profiles: Vec::new(),
        };
        if action == Action::Reset {
            diagnostics::note(
                self.settings.verbose,
                format_args!("resetting the counters of {} code objects", all.len()),
            );
        }
        for (n, agent) in agents.gpus.iter().enumerate() {
            let here = on_agent(&all, agent);
            if here.is_empty() || action == Action::Read {
                continue;
            }
            // Counters in the GPU's caches are not copied, and would overwrite those that are reset.
            self.write_back(agent);
            match action {
                Action::Read => {}
                Action::Copy => match self.copy(agent, &here) {
                    Ok(copies) => {
                        walk.copied += copies.size;
                        let profiles = self.encode(n, agent, here, copies.images);
                        walk.profiles.extend(profiles);
                    }
                    Err(error) => lose_all(self.outcome, here.len(), agent, &error),
                },
                Action::Reset => {
                    self.reset_counters(agent, &here);
                    // Invalidates the caches, so that kernels do not read old counters from them.
                    self.write_back(agent);
                }
            }
        }
        walk
    }

    /// Reads the code objects with these segments that a drain of this kind is for.
    fn read(&mut self, segments: Segments, agents: &Agents, kind: DrainKind) -> Discovered {
        let executables = self.executables;
        let (mut loaded, unread) = discover::loaded(segments, agents);
        loaded.retain(|code| {
            !executables.destroying.contains(&code.executable)
                && (kind != DrainKind::Snapshot || executables.is_observed(code.executable))
        });
        let cache = &mut self.drain_state.cache;
        if kind.executable().is_none() {
            cache.discard_unloaded(&loaded);
        }
        let limit = self.settings.sync_limit;
        let mut discovered = cache.update(loaded, self.runtime, agents, limit, self.outcome);
        discovered.failed += unread.len();
        for unread in unread {
            self.outcome.lose(unread);
        }
        discovered
    }

    /// The loaded code objects that have counters or losses.
    fn counting(&self, loaded: &[LoadedOn]) -> Vec<LoadedOn> {
        let has_counters = |&&at: &&LoadedOn| {
            let object = self.drain_state.cache.get(at);
            object.is_some_and(|object| !object.is_empty())
        };
        loaded.iter().filter(has_counters).copied().collect()
    }

    fn device(&self, agent: &Agent) -> Device<'a> {
        Device {
            runtime: self.runtime,
            agent: agent.id,
            limit: self.settings.sync_limit,
        }
    }

    /// Writes the agent's caches back, because they may contain counts.
    fn write_back(&mut self, agent: &Agent) {
        let limit = self.settings.sync_limit;
        match self.runtime.write_back(agent.id, limit) {
            Ok(true) => {}
            Ok(false) => self.outcome.lose(format_args!(
                "{} did not write its caches back within {} ms (DEVPROF_SYNC_MS): the latest counts may be missing",
                agent.name,
                limit.as_millis(),
            )),
            Err(error) => self.outcome.lose(format_args!(
                "cannot make {} write its caches back, the latest counts may be missing: {error}",
                agent.name
            )),
        }
    }

    /// Copies the counters and records of code objects on one agent.
    fn copy(&self, agent: &Agent, here: &[LoadedOn]) -> Result<Copied, Error> {
        let objects = here.iter().filter_map(|&at| self.drain_state.cache.get(at));
        let mut drafts: Vec<_> = objects
            .map(|object| (&object.code.segments, object.drafts()))
            .collect();
        let mut reads = Vec::new();
        let mut sizes = vec![0; drafts.len()];
        for (n, (segments, drafts)) in drafts.iter_mut().enumerate() {
            for (range, to) in drafts.iter_mut().flatten().flat_map(Draft::targets) {
                sizes[n] += to.len();
                reads.extend(Read::new(n, range, segments, to));
            }
        }
        for (n, error) in copy::copy(self.device(agent), reads)? {
            drafts[n].1 = Err(Lost::Copy(error.into()));
        }
        let registry = &self.drain_state.copies;
        let counting = here.iter().zip(&mut drafts);
        let counting = counting.filter_map(|(&at, (_, drafts))| Some((registry.get(at)?, drafts)));
        reading::add_up(self.device(agent), counting.collect())?;
        let sizes = drafts.iter().zip(sizes);
        let size = sizes
            .filter(|((_, drafts), _)| drafts.is_ok())
            .map(|(_, size)| size)
            .sum();
        let finish = |drafts: Vec<Draft>| {
            let images = drafts.into_iter().map(Draft::finish);
            images.collect::<Result<_, _>>().map_err(Lost::Defect)
        };
        let drafts = drafts.into_iter();
        Ok(Copied {
            images: drafts.map(|(_, drafts)| drafts.and_then(finish)).collect(),
            size,
        })
    }

    /// The profiles of code objects on agent `n`. Reports losses.
    fn encode(
        &mut self,
        n: usize,
        agent: &Agent,
        here: Vec<LoadedOn>,
        images: Vec<Result<Vec<Image>, Lost>>,
    ) -> Vec<Profile> {
        let device = self.device(agent);
        let mut profiles = Vec::new();
        for (at, images) in here.into_iter().zip(images) {
            let Some(object) = self.drain_state.cache.get_mut(at) else {
                continue;
            };
            let image = images
                .and_then(|images| Ok(object.join(device, agent, images)?))
                .map_err(|lost| object.describe(device, agent, &lost));
            for loss in &object.losses {
                self.outcome.lose(loss);
            }
            match image {
                Ok(image) if image.is_empty() => {}
                Ok(_) if !object.has_counted && self.runtime.may_be_unused(at.executable) => {}
                Ok(image) => profiles.push(Profile {
                    agent: n,
                    executable: at.executable,
                    fingerprint: object.fingerprint,
                    binary_id: object.binary_id.clone(),
                    image,
                    records: object.records,
                    is_observed: self.executables.is_observed(at.executable),
                }),
                Err(loss) => self.outcome.lose(loss),
            }
        }
        profiles
    }
}

/// The code objects on one agent.
fn on_agent(all: &[LoadedOn], agent: &Agent) -> Vec<LoadedOn> {
    let here = all.iter().filter(|at| at.agent == agent.id);
    here.copied().collect()
}
