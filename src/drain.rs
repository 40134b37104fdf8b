//! One drain from end to end: discover, check, copy, encode, place. What is lost on the way is said and counted; the
//! rest goes on.

use crate::check::{self, Bounds, Defect};
use crate::copy::{Copies, Wanted};
use crate::discover::{Agent, CodeObject, discover};
use crate::encode::{Sections, encode};
use crate::files::{Files, Identity, Profile};
use crate::guard::lock;
use crate::hsa::copy::Staging;
use crate::hsa::types::AgentHandle;
use crate::hsa::{self, Api};
use crate::report::{self, Outcome};
use crate::settings::Settings;
use crate::{build_id, signature};
use byteorder::{ByteOrder, LittleEndian};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

/// What is kept from one drain to the next.
#[derive(Default)]
struct State {
    /// Whether this copy holds a reference on HSA.
    holding: bool,
    staging: HashMap<AgentHandle, Staging>,
    files: Files,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Drains every loaded code object. `wait`: for kernels that HIP still runs, first. `hold`: keep HSA alive from now on.
pub fn drain(settings: &Settings, wait: bool, hold: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let mut state = lock(&STATE);
    let state = state.get_or_insert_default();
    let drained = match hsa::find() {
        None => Ok(()),
        Some(Err(error)) => Err(error),
        Some(Ok(api)) => match api.is_alive() {
            Ok(true) => state.drain(api, settings, wait, hold, &mut outcome),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        },
    };
    if let Err(error) = drained {
        outcome.lose(format_args!("cannot collect device counters: {error}"));
    }
    outcome
}

/// Gives back what the drains have taken from HSA, which is about to be shut down.
pub fn release() {
    let mut state = lock(&STATE);
    if let Some(state) = state.as_mut() {
        state
            .staging
            .drain()
            .for_each(|(_, staging)| staging.release());
    }
}

/// From now on remember what is written, for [`place_again`].
pub fn keep_images() {
    let mut state = lock(&STATE);
    state.get_or_insert_default().files.keep_images = true;
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
    fn drain(
        &mut self,
        api: &'static Api,
        settings: &Settings,
        wait: bool,
        hold: bool,
        outcome: &mut Outcome,
    ) -> Result<(), hsa::Error> {
        if hold && !self.holding {
            // If it cannot be held now there is still this drain, and perhaps another.
            match api.hold() {
                Ok(()) => self.holding = true,
                Err(error) => report::note(settings.verbose, error),
            }
        }
        let hsa::Agents {
            gpus: agents,
            cpu,
            unknown,
        } = hsa::agents(api)?;
        let (objects, unseen) = discover(api, &agents, &unknown)?;
        for unseen in unseen {
            outcome.lose(unseen);
        }
        report::note(
            settings.verbose,
            format_args!("{} code objects with profile tables", objects.len()),
        );
        if objects.is_empty() {
            return Ok(());
        }
        // The tables do not change while kernels run; the counters do.
        let mut quiesce = wait.then(|| hsa::quiesce(api, settings.sync_limit));
        let mut checked = Vec::new();
        for (n, agent) in agents.iter().enumerate() {
            let mine: Vec<&CodeObject> =
                objects.iter().filter(|object| object.agent == n).collect();
            if mine.is_empty() {
                continue;
            }
            let staging = self
                .staging
                .entry(agent.handle)
                .or_insert_with(|| Staging::new(api, agent.handle, cpu));
            let mut drain = AgentDrain {
                api,
                settings,
                agent,
                staging,
                outcome,
            };
            match drain.tables(&mine) {
                Ok(found) => checked.push((agent, found)),
                Err(error) => drain.lose_all(mine.len(), &error),
            }
        }
        if quiesce.as_mut().is_some_and(|quiesce| !quiesce.devices()) {
            outcome.lose(format_args!(
                "kernels still run after {} ms (DEVPROF_SYNC_MS): what they count from now on is lost",
                settings.sync_limit.as_millis()
            ));
        }
        let mut profiles = Vec::new();
        for (agent, checked) in checked {
            let Some(staging) = self.staging.get_mut(&agent.handle) else {
                continue;
            };
            let mut drain = AgentDrain {
                api,
                settings,
                agent,
                staging,
                outcome,
            };
            let count = checked.len();
            match drain.profiles(checked) {
                Ok(found) => profiles.extend(found),
                Err(error) => drain.lose_all(count, &error),
            }
        }
        self.files.place(&agents, settings, profiles, outcome);
        if let Some(quiesce) = quiesce {
            quiesce.handlers();
        }
        Ok(())
    }
}

/// A code object's table that has passed the checks.
struct Checked<'a> {
    object: &'a CodeObject,
    bounds: Vec<Bounds>,
    /// Of [`build_id::Search`]: what to look for after the head.
    notes: build_id::Search,
}

/// The drain of one agent's code objects.
struct AgentDrain<'a> {
    api: &'static Api,
    settings: &'a Settings,
    agent: &'a Agent,
    staging: &'a mut Staging,
    outcome: &'a mut Outcome,
}

impl AgentDrain<'_> {
    /// Copies and encodes the sections.
    fn profiles(&mut self, checked: Vec<Checked>) -> Result<Vec<Profile>, hsa::Error> {
        let mut wanted = Wanted::default();
        for checked in &checked {
            for range in checked
                .bounds
                .iter()
                .flat_map(Bounds::ranges)
                .chain(checked.notes.range())
            {
                wanted.add(range, &checked.object.segments);
            }
        }
        let copies = wanted.copy(self.staging, self.settings.sync_limit)?;
        let mut profiles = Vec::new();
        for checked in checked {
            match profile(&checked, &copies, self.agent.handle) {
                Ok((profile, losses)) => {
                    for loss in losses {
                        lose(self.api, self.agent, checked.object, self.outcome, loss);
                    }
                    profiles.push(profile);
                }
                Err(error) => lose(self.api, self.agent, checked.object, self.outcome, error),
            }
        }
        Ok(profiles)
    }

    fn lose_all(&mut self, count: usize, error: &hsa::Error) {
        self.outcome.lose(format_args!(
            "lost the counters of {count} code objects on {}: {error}",
            self.agent.name
        ));
    }

    /// Reads and checks the tables, and the head of each code object for its build id.
    fn tables<'a>(&mut self, objects: &[&'a CodeObject]) -> Result<Vec<Checked<'a>>, hsa::Error> {
        let mut wanted = Wanted::default();
        let mut good = Vec::new();
        for &object in objects {
            let mut tables = Vec::new();
            for table in &object.tables {
                match check::table(table, &object.segments) {
                    Ok(found) => tables.push(found),
                    Err(defect) => lose(
                        self.api,
                        self.agent,
                        object,
                        self.outcome,
                        Lost::Defect(defect),
                    ),
                }
            }
            if tables.is_empty() {
                continue;
            }
            let head = build_id::head(&object.segments);
            for range in tables
                .iter()
                .map(|(_, range)| range.clone())
                .chain(head.clone())
            {
                wanted.add(range, &object.segments);
            }
            good.push((object, tables, head));
        }
        let copies = wanted.copy(self.staging, self.settings.sync_limit)?;
        let mut checked = Vec::new();
        for (object, tables, head) in good {
            let mut bounds = Vec::new();
            for (layout, range) in tables {
                match copies.get(&range).map_err(Lost::Copy).and_then(|bytes| {
                    check::bounds(layout, bytes, &object.segments).map_err(Lost::Defect)
                }) {
                    Ok(found) => bounds.push(found),
                    Err(error) => lose(self.api, self.agent, object, self.outcome, error),
                }
            }
            // Without its head a code object only has no build id.
            let bytes = head.and_then(|range| Some((range.start, copies.get(&range).ok()?)));
            let notes = match bytes {
                Some((start, bytes)) => build_id::search(start, bytes, &object.segments),
                None => build_id::Search::None,
            };
            let bounds = distinct(bounds);
            if !bounds.is_empty() {
                checked.push(Checked {
                    object,
                    bounds,
                    notes,
                });
            }
        }
        Ok(checked)
    }
}

/// Why a code object's counters, or some of them, are lost.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("{0}")]
    Defect(Defect),
    #[error("{0}")]
    Copy(hsa::Error),
    #[error("{0} records whose counters lie outside the counters were left out")]
    Records(usize),
    #[error("the MC/DC bitmaps of {0} functions stay on the device")]
    Bitmaps(usize),
}

fn lose(api: &Api, agent: &Agent, object: &CodeObject, outcome: &mut Outcome, what: Lost) {
    let place = hsa::describe(api, object.executable, agent.handle);
    let base = object.segments.first().map_or(0, |segment| segment.start);
    outcome.lose(format_args!(
        "code object {} on {}, loaded at {base:#x}: {what}",
        place.as_deref().unwrap_or("without a URI"),
        agent.name,
    ));
}

/// Each table's sections once: the device runtime's table and those of the translation units name the same ranges, and
/// one may span another's.
fn distinct(mut all: Vec<Bounds>) -> Vec<Bounds> {
    all.retain(|bounds| !bounds.is_empty());
    let spans = |outer: &Bounds, inner: &Bounds| {
        outer.data.start <= inner.data.start && inner.data.end <= outer.data.end
    };
    let mut kept: Vec<Bounds> = Vec::new();
    for bounds in all {
        if kept.iter().any(|other| spans(other, &bounds)) {
            continue;
        }
        kept.retain(|other| !spans(&bounds, other));
        kept.push(bounds);
    }
    kept
}

/// The profile of one code object from its copied sections, and the losses that leave it useful.
fn profile(
    checked: &Checked,
    copies: &Copies,
    agent: AgentHandle,
) -> Result<(Profile, Vec<Lost>), Lost> {
    let binary_id = match &checked.notes {
        build_id::Search::Found(id) => Some(id.clone()),
        build_id::Search::In(range) => copies.get(range).ok().and_then(build_id::in_notes),
        build_id::Search::None => None,
    };
    let mut losses = Vec::new();
    let mut image = Vec::new();
    let mut signature = signature::Signature::new();
    let (mut records, mut dropped, mut bitmaps) = (0, 0, 0);
    for bounds in &checked.bounds {
        let part = |range: &Range<u64>| copies.get(range).map_err(Lost::Copy);
        let found = bounds
            .version
            .map(|at| part(&(at..at + 8)).map(LittleEndian::read_u64))
            .transpose()?;
        let version = check::version(bounds, found).map_err(Lost::Defect)?;
        let sections = Sections {
            version,
            format: bounds.format(),
            data: part(&bounds.data)?,
            data_start: bounds.data.start,
            counters: part(&bounds.counters)?,
            counters_start: bounds.counters.start,
            uniform: part(&bounds.uniform)?,
            uniform_start: bounds.uniform.start,
            names: part(&bounds.names)?,
        };
        check::names(sections.names).map_err(Lost::Defect)?;
        signature.add(&sections);
        let encoded = encode(&sections, binary_id.as_deref()).map_err(Lost::Defect)?;
        records += sections.data.len() / sections.format.record - encoded.dropped;
        dropped += encoded.dropped;
        bitmaps += encoded.bitmaps;
        image.extend_from_slice(&encoded.bytes);
    }
    losses.extend((dropped > 0).then_some(Lost::Records(dropped)));
    losses.extend((bitmaps > 0).then_some(Lost::Bitmaps(bitmaps)));
    let identity = Identity {
        agent,
        executable: checked.object.executable,
        signature: signature.finish(),
    };
    Ok((
        Profile {
            agent: checked.object.agent,
            identity,
            binary_id,
            image,
            records,
        },
        losses,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::TableLayout;

    #[test]
    fn tables_that_name_the_same_ranges_are_one() {
        let bounds = |data: Range<u64>| Bounds {
            layout: TableLayout::Uniform,
            names: 0..8,
            counters: 8..16,
            data,
            uniform: 0..0,
            version: None,
        };
        let all = vec![
            bounds(0..72),
            bounds(0..144),
            bounds(72..144),
            bounds(288..360),
            bounds(0..144),
        ];
        let kept: Vec<_> = distinct(all)
            .into_iter()
            .map(|bounds| bounds.data)
            .collect();
        assert_eq!(kept, [0..144, 288..360]);
    }
}
