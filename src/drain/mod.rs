//! One drain from end to end: discover, check, copy, encode, place. What is lost on the way is said and counted; the
//! rest goes on.

use crate::copy::{self, Read};
use crate::discover::{self, Agent, CodeObject};
use crate::encode::{Draft, Image};
use crate::files::{Files, Profile, Scope};
use crate::guard::lock;
use crate::host;
use crate::hsa::copy::Staging;
use crate::hsa::types::{AgentHandle, ExecutableHandle};
use crate::hsa::{self, Agents, Api, Waited};
use crate::object::{self, Lost, Object};
use crate::report::{self, Outcome};
use crate::settings::Settings;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where a code object is loaded.
type Place = (ExecutableHandle, AgentHandle);

/// What is kept from one drain to the next.
#[derive(Default)]
struct State {
    /// Whether this copy holds a reference on HSA.
    holding: bool,
    staging: HashMap<AgentHandle, Staging>,
    /// Executables that were seen to be frozen and whose end will be seen: what was read of them stays true. Which
    /// freezing it was, from 1: handles are used again.
    watched: HashMap<ExecutableHandle, u64>,
    frozen: u64,
    /// Executables that are being destroyed just now, by some thread, and are not to be touched.
    going: HashSet<ExecutableHandle>,
    /// Threads that bring HSA up or down just now.
    changing: Vec<u32>,
    /// Whether HSA is up, where ROCr has told it to a tool.
    is_up: Option<bool>,
    /// The thread that ends the process. What the others have counted is its to collect; HIP and HSA may go any moment.
    ending: Option<u32>,
    /// What was read of those; code objects without tables, too.
    objects: HashMap<ExecutableHandle, HashMap<AgentHandle, Object>>,
    files: Files,
}

/// Held through a drain, so that no executable goes away under it. Nobody waits for a kernel with it, or calls HIP but
/// for a copy that HSA has refused in both its ways: a thread that HIP has locked may be waiting for it to let an
/// executable go.
static STATE: Mutex<Option<State>> = Mutex::new(None);
/// HSA is up or down.
static IS_CHANGED: Condvar = Condvar::new();
/// ROCr will tell when HSA is up. A runtime that is just being initialised cannot be asked: ROCr 7.2.4 divides by a
/// frequency that it does not have yet.
static IS_EXPECTED: AtomicBool = AtomicBool::new(false);

/// What a drain is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Drains every loaded code object, after the kernels that still run; `wait`: for those of HIP, too.
    All { wait: bool },
    /// Drains an executable that is about to be destroyed, and leaves it alone until [`gone`].
    Going(ExecutableHandle),
    /// Drains the code objects whose end will be told, at any moment: others may be unloaded meanwhile.
    Snapshot,
    /// Sets all counters back to what they were when their code objects were loaded, after the kernels that still run.
    Reset,
}

/// Carries out `order`. `hold`: keep HSA alive from now on.
pub fn drain(settings: &Settings, order: Order, hold: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let drained = match hsa::find() {
        None => Ok(()),
        Some(Err(error)) => Err(error),
        Some(Ok(api)) => with(api, settings, order, hold, &mut outcome),
    };
    if let Err(error) = drained {
        outcome.lose(format_args!("cannot collect device counters: {error}"));
    }
    if let Order::Going(executable) = order {
        // Also after a drain that failed.
        lock(&STATE)
            .get_or_insert_default()
            .going
            .insert(executable);
    }
    outcome
}

/// Takes the lock for a part of a drain. `None`: there is nothing to drain, HSA is down. Nobody who tells of it shuts HSA
/// down under the lock, or brings it up: HSA's functions do not bear that beside them. What a shutdown of another thread
/// leaves is seen when it is over.
fn enter(
    api: &Api,
    settings: &Settings,
    order: Order,
) -> Result<Option<MutexGuard<'static, Option<State>>>, hsa::Error> {
    let me = host::thread_id();
    let is_changing = |state: &mut Option<State>| {
        let changing = &state.get_or_insert_default().changing;
        !changing.is_empty() && !changing.contains(&me)
    };
    let (mut state, _) = IS_CHANGED
        .wait_timeout_while(lock(&STATE), settings.sync_limit, is_changing)
        .unwrap_or_else(PoisonError::into_inner);
    let found = state.get_or_insert_default();
    // The thread that makes snapshots is told when it is over.
    let is_late = !matches!(order, Order::Going(_) | Order::Snapshot)
        && found.ending.is_some_and(|id| id != me);
    // All was drained before a shutdown.
    if !found.changing.is_empty() || is_late {
        return Ok(None);
    }
    let is_up = match found.is_up {
        Some(is_up) => is_up,
        None if IS_EXPECTED.load(Ordering::Relaxed) && found.ending.is_none() => false,
        None => api.is_alive()?,
    };
    Ok(is_up.then_some(state))
}

fn with(
    api: &'static Api,
    settings: &Settings,
    order: Order,
    hold: bool,
    outcome: &mut Outcome,
) -> Result<(), hsa::Error> {
    let mut quiesce = None;
    let wait = match order {
        Order::All { wait } => Some(wait),
        Order::Reset => Some(true),
        Order::Going(_) | Order::Snapshot => None,
    };
    if let Some(wait) = wait {
        let mut look = |state: &mut State| {
            state.forget_unsure();
            let agents = hsa::agents(api)?;
            state.look(api, settings, &agents, order, outcome)?;
            Ok(state
                .objects
                .values()
                .flat_map(HashMap::values)
                .all(Object::is_empty))
        };
        // Nobody waits for a program that counts nothing. The tables do not change while kernels run; the counters do.
        let Some(mut state) = enter(api, settings, order)? else {
            return Ok(());
        };
        let is_empty = look(state.get_or_insert_default())?;
        drop(state);
        if !is_empty {
            let mut pause = hsa::quiesce(api, wait, settings.sync_limit);
            let fate = if order == Order::Reset {
                "not set back"
            } else {
                "lost"
            };
            match pause.devices() {
                Waited::Done => {}
                Waited::TooLate => outcome.lose(format_args!(
                    "kernels still run after {} ms (DEVPROF_SYNC_MS): what they count from now on is {fate}",
                    settings.sync_limit.as_millis(),
                )),
                Waited::NoThread => outcome.lose(format_args!(
                    "cannot start the thread that waits for HIP's streams: what kernels that still run count from now on is {fate}"
                )),
            }
            quiesce = Some(pause);
        }
    }
    if let Some(mut state) = enter(api, settings, order)? {
        let state = state.get_or_insert_default();
        if quiesce.is_none() {
            state.forget_unsure();
        }
        if hold {
            state.hold(api, settings);
        }
        state.carry_out(api, settings, order, outcome)?;
    }
    if let Some(quiesce) = quiesce {
        quiesce.handlers();
    }
    Ok(())
}

/// Keeps HSA alive from now on. To be called when it is.
pub fn hold(settings: &Settings) {
    if let Some(Ok(api)) = hsa::find() {
        let mut state = lock(&STATE);
        state.get_or_insert_default().hold(api, settings);
    }
}

/// Gives back what the drains have taken from HSA, which is about to be shut down.
pub fn release() {
    let mut state = lock(&STATE);
    let state = state.get_or_insert_default();
    state
        .staging
        .drain()
        .for_each(|(_, staging)| staging.release());
    state.changing.push(host::thread_id());
}

/// This thread is about to bring HSA up. Until [`is_changed`], as after [`release`], nobody drains.
pub fn is_changing() {
    let mut state = lock(&STATE);
    let changing = &mut state.get_or_insert_default().changing;
    changing.push(host::thread_id());
}

/// What this thread was about to do with HSA is over. It may be alive after a shutdown: others hold it.
pub fn is_changed() {
    let mut state = lock(&STATE);
    let changing = &mut state.get_or_insert_default().changing;
    if let Some(n) = changing.iter().position(|&id| id == host::thread_id()) {
        changing.swap_remove(n);
    }
    IS_CHANGED.notify_all();
}

/// ROCr will tell by [`is_up`].
pub fn expect() {
    IS_EXPECTED.store(true, Ordering::Relaxed);
}

/// ROCr has come up without loading devprof as a tool, or with tables that devprof does not know: it has to be asked
/// whether it is up.
pub fn ask_for_state() {
    IS_EXPECTED.store(false, Ordering::Relaxed);
    lock(&STATE).get_or_insert_default().is_up = None;
}

/// ROCr tells a tool that HSA is up, or down.
pub fn is_up(is_up: bool) {
    lock(&STATE).get_or_insert_default().is_up = Some(is_up);
}

/// Whether HSA is up, after a shutdown.
pub fn hsa_is_up() -> bool {
    if let Some(is_up) = lock(&STATE).get_or_insert_default().is_up {
        return is_up;
    }
    hsa::find().is_some_and(|api| api.is_ok_and(|api| api.is_alive().unwrap_or(false)))
}

/// Whether something that counts is loaded, and its end will not be reported.
pub fn has_unobserved() -> bool {
    let mut state = lock(&STATE);
    let state = state.get_or_insert_default();
    let is_unobserved = |(of, objects): (_, &HashMap<_, Object>)| {
        !state.watched.contains_key(of) && !objects.values().all(Object::is_empty)
    };
    state.objects.iter().any(is_unobserved)
}

/// The process is past the beginning of its last drain.
pub fn is_ending() -> bool {
    lock(&STATE).get_or_insert_default().ending.is_some()
}

/// From now on only this thread collects: it ends the process.
pub fn ending() {
    lock(&STATE).get_or_insert_default().ending = Some(host::thread_id());
}

/// An executable was frozen, and its end will be told by [`Order::Going`].
pub fn watch(executable: ExecutableHandle) {
    let mut state = lock(&STATE);
    let state = state.get_or_insert_default();
    // One of the same handle was destroyed, and whoever did it has not told of it yet, or will not.
    state.forget(executable);
    state.frozen += 1;
    state.watched.insert(executable, state.frozen);
}

/// Which freezing of an executable is the latest, for [`gone`]; 0 if none was seen.
pub fn freezing(executable: ExecutableHandle) -> u64 {
    lock(&STATE).get_or_insert_default().freezing(executable)
}

/// An executable was destroyed, or was not, after [`Order::Going`]. Before that, `freezing` was its latest one.
pub fn gone(executable: ExecutableHandle, freezing: u64, destroyed: bool) {
    let mut state = lock(&STATE);
    let state = state.get_or_insert_default();
    if state.freezing(executable) != freezing {
        // Another one has come into its place already.
    } else if destroyed {
        state.forget(executable);
    } else {
        state.going.remove(&executable);
    }
}

/// See [`Files::place_again`].
pub fn place_again() {
    let mut state = lock(&STATE);
    if let Some(state) = state.as_mut() {
        state.files.place_again();
    }
}

/// In a forked child: the parent's HSA objects are not ours to touch, and no thread holds the lock.
pub fn forget_parent() {
    // The lock may be held by a thread that the child does not have: then nothing is drained here, ever.
    if let Ok(mut state) = STATE.try_lock()
        && let Some(state) = state.take()
    {
        std::mem::forget(state);
    }
}

impl State {
    fn hold(&mut self, api: &Api, settings: &Settings) {
        if self.holding || self.is_up.is_some() {
            return;
        }
        // If it cannot be held now there is still this drain, and perhaps another.
        match api.hold() {
            Ok(()) => self.holding = true,
            Err(error) => report::note(settings.verbose, error),
        }
    }

    fn freezing(&self, executable: ExecutableHandle) -> u64 {
        self.watched.get(&executable).copied().unwrap_or(0)
    }

    /// An executable is gone, but for what it has counted.
    fn forget(&mut self, executable: ExecutableHandle) {
        self.watched.remove(&executable);
        self.going.remove(&executable);
        self.objects.remove(&executable);
        self.files.unload(executable);
    }

    /// Forgets what was read of code objects that may be others by now, and what could not be read.
    fn forget_unsure(&mut self) {
        let watched = &self.watched;
        self.objects.retain(|of, objects| {
            watched.contains_key(of) && objects.values().all(|object| object.was_read)
        });
    }

    /// Sees to it that every loaded code object that `order` is about was read. Where they are, in the loader's order.
    fn look(
        &mut self,
        api: &'static Api,
        settings: &Settings,
        agents: &Agents,
        order: Order,
        outcome: &mut Outcome,
    ) -> Result<Vec<Place>, hsa::Error> {
        let only = match order {
            Order::Going(executable) => Some(executable),
            Order::All { .. } | Order::Snapshot | Order::Reset => None,
        };
        let (mut loaded, unseen) = discover::loaded(api, &agents.gpus, &agents.unknown, only)?;
        loaded.retain(|code| {
            !self.going.contains(&code.executable)
                && (order != Order::Snapshot || self.watched.contains_key(&code.executable))
        });
        for unseen in unseen {
            outcome.lose(unseen);
        }
        let place = |code: &CodeObject| (code.executable, agents.gpus[code.agent].handle);
        let places: Vec<Place> = loaded.iter().map(place).collect();
        if only.is_none() {
            let there: HashSet<ExecutableHandle> = places.iter().map(|&(of, _)| of).collect();
            self.objects.retain(|of, _| there.contains(of));
        }
        loaded.retain(|code| {
            let known = self.object(place(code));
            known.is_none_or(|object| object.code.segments != code.segments)
        });
        if loaded.is_empty() {
            return Ok(places);
        }
        for code in &loaded {
            // Until it is seen to have tables, and these are read.
            self.keep(place(code), Object::without_tables(code.clone()));
        }
        let (found, unseen) = discover::with_tables(api, &agents.gpus, loaded);
        for unseen in unseen {
            self.objects.remove(&unseen.executable);
            outcome.lose(unseen);
        }
        let mut of_agent: Vec<Vec<CodeObject>> = agents.gpus.iter().map(|_| Vec::new()).collect();
        for code in found {
            of_agent[code.agent].push(code);
        }
        for (agent, mine) in agents.gpus.iter().zip(of_agent) {
            if mine.is_empty() {
                continue;
            }
            let places: Vec<Place> = mine.iter().map(place).collect();
            let staging = staging(&mut self.staging, api, agents, agent);
            match object::read(api, agent, mine, staging, settings.sync_limit) {
                Ok(read) => {
                    for object in read {
                        self.keep(place(&object.code), object);
                    }
                }
                Err(error) => {
                    // Tried again at the next drain.
                    for (executable, _) in &places {
                        self.objects.remove(executable);
                    }
                    lose_all(outcome, places.len(), agent, &error);
                }
            }
        }
        Ok(places)
    }

    fn object(&self, (executable, agent): Place) -> Option<&Object> {
        self.objects.get(&executable)?.get(&agent)
    }

    fn keep(&mut self, (executable, agent): Place, object: Object) {
        self.objects
            .entry(executable)
            .or_default()
            .insert(agent, object);
    }

    fn carry_out(
        &mut self,
        api: &'static Api,
        settings: &Settings,
        order: Order,
        outcome: &mut Outcome,
    ) -> Result<(), hsa::Error> {
        let agents = hsa::agents(api)?;
        let mut places = self.look(api, settings, &agents, order, outcome)?;
        let mut executables = self.going.clone();
        executables.extend(places.iter().map(|&(of, _)| of));
        places.retain(|&place| self.object(place).is_some_and(|object| !object.is_empty()));
        report::note(
            settings.verbose && order != Order::Snapshot,
            format_args!("{} code objects with profile tables", places.len()),
        );
        let mut profiles = Vec::new();
        for (n, agent) in agents.gpus.iter().enumerate() {
            let mine: Vec<Place> = places
                .iter()
                .filter(|place| place.1 == agent.handle)
                .copied()
                .collect();
            if mine.is_empty() {
                continue;
            }
            let staging = staging(&mut self.staging, api, &agents, agent);
            let objects = || {
                let of = |&(executable, agent)| self.objects.get(&executable)?.get(&agent);
                mine.iter().filter_map(of)
            };
            if order == Order::Reset {
                // Otherwise what is still in the GPU's caches overwrites the counters that are set back here.
                write_back(staging, agent, settings, outcome);
                for object in objects() {
                    for (range, byte) in object.counters() {
                        if let Err(error) = staging.fill(&range, byte) {
                            outcome.lose(object.describe(api, agent, &Lost::Reset(error)));
                        }
                    }
                }
                // Kernels shall not go on with old counters from the caches.
                write_back(staging, agent, settings, outcome);
                continue;
            }
            // What kernels have counted may still be in the GPU's caches.
            write_back(staging, agent, settings, outcome);
            let images = match images(staging, objects(), settings.sync_limit) {
                Ok(images) => images,
                Err(error) => {
                    lose_all(outcome, mine.len(), agent, &error);
                    continue;
                }
            };
            for (place, images) in mine.into_iter().zip(images) {
                let of = self.objects.get_mut(&place.0);
                let Some(object) = of.and_then(|of| of.get_mut(&place.1)) else {
                    continue;
                };
                let image = images
                    .and_then(|images| Ok(object.join(api, agent, images)?))
                    .map_err(|lost| object.describe(api, agent, &lost));
                for loss in &object.losses {
                    outcome.lose(loss);
                }
                match image {
                    Ok(image) if image.is_empty() => {}
                    Ok(image) => profiles.push(Profile {
                        agent: n,
                        executable: place.0,
                        signature: object.signature,
                        binary_id: object.binary_id.clone(),
                        image,
                        records: object.records,
                        certain: self.watched.contains_key(&place.0),
                    }),
                    Err(loss) => outcome.lose(loss),
                }
            }
        }
        let scope = match order {
            Order::All { .. } => Scope::All(&executables),
            Order::Going(_) | Order::Snapshot => Scope::Some,
            Order::Reset => {
                self.files.reset();
                return Ok(());
            }
        };
        self.files
            .place(&agents.gpus, settings, profiles, scope, outcome);
        Ok(())
    }
}

/// Has an agent write its caches back to memory, and drop what is in them.
fn write_back(staging: &mut Staging, agent: &Agent, settings: &Settings, outcome: &mut Outcome) {
    match staging.write_back(settings.sync_limit) {
        Ok(true) => {}
        Ok(false) => outcome.lose(format_args!(
            "{} did not write its caches back within {} ms (DEVPROF_SYNC_MS): the latest counts may be missing",
            agent.name,
            settings.sync_limit.as_millis(),
        )),
        Err(error) => outcome.lose(format_args!(
            "cannot make {} write its caches back, the latest counts may be missing: {error}",
            agent.name
        )),
    }
}

/// The raw profiles of code objects on one agent, one for each table, with the device's bytes copied into them.
fn images<'a>(
    staging: &mut Staging,
    objects: impl Iterator<Item = &'a Object>,
    limit: Duration,
) -> Result<Vec<Result<Vec<Image>, Lost>>, hsa::Error> {
    let mut drafts: Vec<_> = objects
        .map(|object| (&object.code.segments, object.drafts()))
        .collect();
    let mut reads = Vec::new();
    for (n, (segments, drafts)) in drafts.iter_mut().enumerate() {
        for (range, to) in drafts.iter_mut().flatten().flat_map(Draft::targets) {
            reads.extend(Read::new(n, range, segments, to));
        }
    }
    for (n, error) in copy::copy(staging, reads, limit)? {
        drafts[n].1 = Err(Lost::Copy(error));
    }
    let finish = |drafts: Vec<Draft>| {
        let images = drafts.into_iter().map(Draft::finish);
        images.collect::<Result<_, _>>().map_err(Lost::Defect)
    };
    Ok(drafts
        .into_iter()
        .map(|(_, drafts)| drafts.and_then(finish))
        .collect())
}

fn staging<'a>(
    all: &'a mut HashMap<AgentHandle, Staging>,
    api: &'static Api,
    agents: &Agents,
    agent: &Agent,
) -> &'a mut Staging {
    all.entry(agent.handle)
        .or_insert_with(|| Staging::new(api, agent.handle, agents.cpu))
}

fn lose_all(outcome: &mut Outcome, count: usize, agent: &Agent, error: &hsa::Error) {
    outcome.lose(format_args!(
        "lost the counters of {count} code objects on {}: {error}",
        agent.name
    ));
}
