//! One drain from end to end: discover, check, copy, encode, place. What is lost on the way is said and counted; the
//! rest goes on.

use crate::check::{self, Bounds, Defect};
use crate::discover::{Agent, CodeObject, discover};
use crate::encode::{Sections, encode};
use crate::hsa::copy::{Copied, Staging};
use crate::hsa::types::{AgentHandle, ExecutableHandle};
use crate::hsa::{self, Api};
use crate::merge::merge;
use crate::place::{self, FileId, ObjectId, Values};
use crate::report;
use crate::settings::Settings;
use crate::{build_id, signature};
use byteorder::{ByteOrder, LittleEndian};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;

/// How a drain ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Code objects whose profile was written.
    pub written: usize,
    /// Losses that were reported, one line each.
    pub lost: usize,
}

impl Outcome {
    fn lose(&mut self, what: impl std::fmt::Display) {
        self.lost += 1;
        report::lost(what);
    }
}

/// What is kept from one drain to the next.
#[derive(Default)]
struct State {
    /// Whether this copy holds a reference on HSA.
    holding: bool,
    staging: HashMap<AgentHandle, Staging>,
    known: HashMap<Identity, Known>,
    /// Whether to remember what was written, for [`place_again`].
    keep_images: bool,
    /// How many code objects of each architecture have a name.
    named: HashMap<String, usize>,
}

/// A code object, told from another one that comes to lie in the same place later.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    agent: AgentHandle,
    executable: ExecutableHandle,
    signature: u64,
}

struct Known {
    /// The n of the file's name.
    number: usize,
    /// What this process has added to a file that it shares (%m).
    added: Option<Vec<u8>>,
    placed: Option<Placed>,
}

/// A file of this process's own, to be found again.
struct Placed {
    path: PathBuf,
    id: FileId,
    image: Vec<u8>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// A profile that only needs a name.
struct Profile {
    agent: usize,
    identity: Identity,
    binary_id: Option<Vec<u8>>,
    image: Vec<u8>,
    records: usize,
}

/// Drains every loaded code object. `wait`: for kernels that HIP still runs, first. `hold`: keep HSA alive from now on.
pub fn drain(settings: &Settings, wait: bool, hold: bool) -> Outcome {
    let mut outcome = Outcome::default();
    // A drain that panicked has left nothing half done that the next one would trip over.
    let mut state = STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
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
    let mut state = STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(state) = state.as_mut() {
        state
            .staging
            .drain()
            .for_each(|(_, staging)| staging.release());
    }
}

/// From now on remember what is written, for [`place_again`].
pub fn keep_images() {
    let mut state = STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    state.get_or_insert_default().keep_images = true;
}

/// Writes the files again that somebody has replaced since. LLVM's own collector, where it is in the program too, has
/// the same names and leaves out the device functions that are no kernels.
pub fn place_again() {
    let mut state = STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    for placed in state
        .iter_mut()
        .flat_map(|state| state.known.values_mut())
        .flat_map(|known| &mut known.placed)
    {
        if placed.id.is_replaced(&placed.path) {
            match place::write(&placed.path, &placed.image) {
                Ok(id) => placed.id = id,
                Err(error) => {
                    report::lost(format_args!("lost the counters of a code object: {error}"))
                }
            }
        }
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
        let quiesce = wait.then(|| hsa::quiesce(api));
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
        if quiesce.is_some_and(|it| !it.finish(settings.sync_limit)) {
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
        self.place(&agents, settings, profiles, outcome);
        Ok(())
    }

    /// Names and writes the profiles.
    fn place(
        &mut self,
        agents: &[Agent],
        settings: &Settings,
        mut profiles: Vec<Profile>,
        outcome: &mut Outcome,
    ) {
        // New names are given in an order that is the same from run to run: by what the code object is, then by agent
        // and load order (the sort is stable).
        profiles.sort_by_key(|profile| (profile.identity.signature, profile.agent));
        let target = place::Target::new(settings.pattern.as_deref());
        let values = Values::now();
        for profile in profiles {
            let arch = &agents[profile.agent].name;
            let known = self.known.entry(profile.identity).or_insert_with(|| {
                let count = self.named.entry(arch.clone()).or_default();
                *count += 1;
                Known {
                    number: *count - 1,
                    added: None,
                    placed: None,
                }
            });
            let object = ObjectId {
                signature: profile.identity.signature,
                build_id: profile.binary_id.as_deref(),
            };
            let to = target.destination(&values, object);
            if to.continuous {
                static SAID: std::sync::Once = std::sync::Once::new();
                SAID.call_once(|| report::lost("%c in LLVM_PROFILE_FILE (continuous mode) is left out: device counters are not in host memory"));
            }
            let written = if to.merge {
                let path = place::prefixed(&to.path, arch, 0);
                add(&path, &profile.image, known).map(|()| path)
            } else {
                let path = place::prefixed(&to.path, arch, known.number);
                place::write(&path, &profile.image)
                    .map_err(Unwritten::Place)
                    .map(|id| {
                        if self.keep_images {
                            known.placed = Some(Placed {
                                path: path.clone(),
                                id,
                                image: profile.image,
                            });
                        }
                        path
                    })
            };
            match written {
                Ok(path) => {
                    outcome.written += 1;
                    report::note(
                        settings.verbose,
                        format_args!(
                            "{} records of {arch} to {}",
                            profile.records,
                            path.display()
                        ),
                    );
                }
                Err(error) => outcome.lose(format_args!(
                    "lost the counters of a code object on {arch}: {error}"
                )),
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Unwritten {
    #[error(transparent)]
    Place(#[from] place::Error),
    #[error("{0} is left as it is: {1}")]
    Mismatch(PathBuf, crate::merge::Mismatch),
}

/// Adds an image to the file that other processes share.
fn add(path: &std::path::Path, image: &[u8], known: &mut Known) -> Result<(), Unwritten> {
    let mut mismatch = None;
    place::update(path, |old| match old.filter(|old| !old.is_empty()) {
        None => Some(image.to_vec()),
        Some(old) => merge(&old, image, known.added.as_deref())
            .map_err(|error| mismatch = Some(error))
            .ok(),
    })?;
    if let Some(mismatch) = mismatch {
        return Err(Unwritten::Mismatch(path.into(), mismatch));
    }
    known.added = Some(image.to_vec());
    Ok(())
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
        let limit = self.settings.sync_limit;
        let ranges = wanted.coalesced();
        let copied = self.staging.copy(&ranges, limit)?;
        let copies = Copies {
            ranges: &ranges,
            copied,
        };
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
        let limit = self.settings.sync_limit;
        let ranges = wanted.coalesced();
        let copied = self.staging.copy(&ranges, limit)?;
        let copies = Copies {
            ranges: &ranges,
            copied,
        };
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

/// Ranges to copy, each inside a segment.
#[derive(Default)]
struct Wanted(Vec<(Range<u64>, Range<u64>)>);

/// Ranges of one segment that are closer than this are copied at once: a copy costs more than these bytes.
const GAP: u64 = 256;

impl Wanted {
    fn add(&mut self, range: Range<u64>, segments: &[Range<u64>]) {
        // The checks have seen to it that there is one.
        if let Some(segment) = segments
            .iter()
            .find(|s| s.start <= range.start && range.end <= s.end)
        {
            self.0.push((range, segment.clone()));
        }
    }

    /// The fewest copies, none of which leaves a segment.
    fn coalesced(mut self) -> Vec<Range<u64>> {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut out: Vec<(Range<u64>, Range<u64>)> = Vec::new();
        for (range, segment) in self.0 {
            match out.last_mut() {
                Some((last, of))
                    if *of == segment && range.start <= last.end.saturating_add(GAP) =>
                {
                    last.end = last.end.max(range.end);
                }
                _ => out.push((range, segment)),
            }
        }
        out.into_iter().map(|(range, _)| range).collect()
    }
}

/// Copied ranges, by device address.
struct Copies<'a> {
    /// In order of their start.
    ranges: &'a [Range<u64>],
    copied: Copied<'a>,
}

impl<'a> Copies<'a> {
    /// The bytes of a range that was wanted.
    fn get(&self, range: &Range<u64>) -> Result<&'a [u8], hsa::Error> {
        if range.is_empty() {
            return Ok(&[]);
        }
        let n = self
            .ranges
            .partition_point(|copied| copied.start <= range.start)
            .saturating_sub(1);
        let whole = &self.ranges[n];
        let bytes = self.copied.get(n, (whole.end - whole.start) as usize)?;
        let start = (range.start - whole.start) as usize;
        let end = start + (range.end - range.start) as usize;
        Ok(&bytes[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::TableLayout;

    #[test]
    fn near_ranges_of_a_segment_are_copied_at_once() {
        let segments = [0x1000..0x2000, 0x2000..0x3000];
        let mut wanted = Wanted::default();
        for range in [
            0x1800..0x1810,
            0x1000..0x1010,
            0x1020..0x1030,
            0x1ff0..0x2000,
            0x2000..0x2010,
        ] {
            wanted.add(range, &segments);
        }
        assert_eq!(
            wanted.coalesced(),
            [
                0x1000..0x1030,
                0x1800..0x1810,
                0x1ff0..0x2000,
                0x2000..0x2010
            ]
        );
    }

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
