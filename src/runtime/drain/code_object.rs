//! The constant part of a loaded code object: its validated tables and its names. It is read once. Later drains copy
//! only what the device writes: the counters and the records.

use super::copy::{Copies, CopyRequests, Device, Failure};
use super::discover::CodeObject;
use super::encode::{Draft, Image, Sections};
use super::fingerprint::Fingerprint;
use super::validate::{self, Bounds, Defect};
use crate::gpu::build_id;
use crate::gpu::runtime::{Agent, Error};
use crate::support::alloc;
use byteorder::{ByteOrder, LittleEndian};
use profraw::format::{COUNTER, TableLayout};
use std::fmt::Display;
use std::iter;
use std::ops::Range;

/// A reason why counters of a code object are lost.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("{0}")]
    Defect(Defect),
    #[error(transparent)]
    Copy(#[from] Failure),
    #[error("{0} records point outside the counters and were left out")]
    Records(usize),
    #[error("its counters could not be reset: {0}")]
    Reset(Error),
    #[error(
        "the MC/DC bitmaps of {0} functions are not valid: llvm-cov will show their decisions as not covered"
    )]
    Bitmaps(usize),
}

impl Lost {
    /// Whether the next drain may succeed.
    fn is_temporary(&self) -> bool {
        matches!(self, Lost::Copy(failure) if failure.is_temporary())
    }
}

/// A code object that was read.
pub struct Object {
    pub code: CodeObject,
    sections: Vec<Sections>,
    pub binary_id: Option<Vec<u8>>,
    pub fingerprint: u64,
    pub records: usize,
    /// Messages about losses, for each drain.
    pub losses: Vec<String>,
    /// No copy has failed, so reading it again would have the same result.
    pub is_complete: bool,
    /// An earlier copy had counts.
    pub has_counted: bool,
}

/// A code object with valid tables.
struct Tables {
    code: CodeObject,
    bounds: Vec<Bounds>,
    /// The notes to copy, after the head.
    notes: build_id::Search,
    losses: Vec<String>,
    is_complete: bool,
}

/// Reads code objects of one agent.
pub fn read(device: Device, agent: &Agent, objects: Vec<CodeObject>) -> Result<Vec<Object>, Error> {
    let tables = tables(device, agent, objects)?;
    let mut requests = CopyRequests::default();
    for tables in &tables {
        let fixed = tables.bounds.iter().flat_map(Bounds::fixed);
        for range in fixed.chain(tables.notes.range()) {
            requests.add(range, &tables.code.segments);
        }
    }
    let copies = requests.copy(device)?;
    let read = |tables: Tables| tables.read(device, agent, &copies);
    Ok(tables.into_iter().map(read).collect())
}

/// Reads and checks the tables, and the head of each code object for its build id.
fn tables(device: Device, agent: &Agent, objects: Vec<CodeObject>) -> Result<Vec<Tables>, Error> {
    let mut requests = CopyRequests::default();
    let mut all = Vec::new();
    for code in objects {
        let (mut tables, mut losses) = (Vec::new(), Vec::new());
        for table in &code.tables {
            match validate::table(table, &code.segments) {
                Ok(found) => tables.push(found),
                Err(defect) => losses.push(Lost::Defect(defect)),
            }
        }
        let known = device.runtime.build_id(code.executable);
        let head = match known {
            Some(_) => None,
            None => build_id::head(&code.segments),
        };
        for range in tables
            .iter()
            .map(|(_, range)| range.clone())
            .chain(head.clone())
        {
            requests.add(range, &code.segments);
        }
        all.push((code, tables, known, head, losses));
    }
    let copies = requests.copy(device)?;
    let mut read = Vec::new();
    for (code, tables, known, head, mut losses) in all {
        let mut bounds = Vec::new();
        for (layout, range) in tables {
            let found = copies.get(&range).map_err(Lost::from).and_then(|bytes| {
                validate::bounds(layout, bytes, &code.segments).map_err(Lost::Defect)
            });
            match found {
                Ok(found) => bounds.push(found),
                Err(error) => losses.push(error),
            }
        }
        // If the head could not be copied, the code object only has no build id.
        let bytes = head.and_then(|range| Some((range.start, copies.get(&range).ok()?)));
        let notes = match (known, bytes) {
            (Some(id), _) => build_id::Search::Found(id.to_vec()),
            (None, Some((start, bytes))) => build_id::search(start, bytes, &code.segments),
            (None, None) => build_id::Search::None,
        };
        let lost = losses
            .iter()
            .map(|lost| describe(device, agent, &code, lost));
        read.push(Tables {
            bounds: deduplicate(bounds),
            notes,
            is_complete: !losses.iter().any(Lost::is_temporary),
            losses: lost.collect(),
            code,
        });
    }
    Ok(read)
}

impl Tables {
    /// Builds the code object from the copies.
    fn read(self, device: Device, agent: &Agent, copies: &Copies) -> Object {
        let mut object = Object {
            losses: self.losses,
            is_complete: self.is_complete,
            has_counted: false,
            binary_id: match &self.notes {
                build_id::Search::Found(id) => Some(id.clone()),
                build_id::Search::InNotes(range) => {
                    copies.get(range).ok().and_then(build_id::in_notes)
                }
                build_id::Search::None => None,
            },
            ..Object::without_tables(self.code)
        };
        let mut fingerprint = Fingerprint::new(object.binary_id.as_deref().unwrap_or_default());
        let segments = &object.code.segments;
        match sections(self.bounds, copies, segments, &mut fingerprint) {
            Ok(sections) => object.sections = sections,
            Err(lost) => {
                object.is_complete &= !lost.is_temporary();
                let lost = describe(device, agent, &object.code, &lost);
                object.losses.push(lost);
            }
        }
        object.fingerprint = fingerprint.finish();
        object
    }
}

/// The sections of a code object's tables. Adds them to the fingerprint.
fn sections(
    bounds: Vec<Bounds>,
    copies: &Copies,
    segments: &[Range<u64>],
    fingerprint: &mut Fingerprint,
) -> Result<Vec<Sections>, Lost> {
    let copied = |range: &Range<u64>| copies.get(range).map_err(Lost::from);
    let read = |bounds: Bounds| {
        let found = bounds
            .version
            .map(|at| copied(&(at..at + 8)).map(LittleEndian::read_u64))
            .transpose()?;
        let records = copied(&bounds.data)?;
        let version = validate::version(&bounds, found, records).map_err(Lost::Defect)?;
        let names = alloc::copy_of(copied(&bounds.names)?).map_err(Failure::from)?;
        validate::names(&names).map_err(Lost::Defect)?;
        fingerprint.add(version, bounds.format(), &names, records);
        let bitmaps = validate::bitmaps(&bounds, records, segments).map_err(Failure::from)?;
        Ok(Sections {
            version,
            names,
            bitmaps,
            bounds,
        })
    };
    bounds.into_iter().map(read).collect()
}

impl Object {
    pub fn without_tables(code: CodeObject) -> Object {
        Object {
            code,
            sections: Vec::new(),
            binary_id: None,
            fingerprint: 0,
            records: 0,
            losses: Vec::new(),
            is_complete: true,
            has_counted: false,
        }
    }

    /// A message that identifies the code object.
    pub fn describe(&self, device: Device, agent: &Agent, what: &Lost) -> String {
        describe(device, agent, &self.code, what)
    }

    /// Whether it has no counters, and nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.losses.is_empty()
    }

    /// The ranges of its counters and bitmaps, each with the byte that resets it.
    pub fn counters(&self) -> impl Iterator<Item = (Range<u64>, u8)> {
        self.sections.iter().flat_map(|table| {
            let bytes = profraw::format::counter_size(table.version) == 1;
            let counters = (table.bounds.counters.clone(), if bytes { 0xff } else { 0 });
            let bitmaps = table.bitmaps.iter().map(|bitmaps| &bitmaps.range);
            let zeroed = iter::once(&table.bounds.uniform).chain(bitmaps);
            iter::once(counters)
                .chain(zeroed.map(|range| (range.clone(), 0)))
                .filter(|(range, _)| !range.is_empty())
        })
    }

    /// The ranges of its counters, if the device runtime updates all of them: counters of raw version 11 with 64 bits. `None`:
    /// some are updated by inline code, or there are none.
    pub fn updated_counters(&self) -> Option<Vec<Range<u64>>> {
        let is_updated = |table: &Sections| {
            table.bounds.layout == TableLayout::Uniform
                && profraw::format::counter_size(table.version) == COUNTER
        };
        let has_all = !self.sections.is_empty() && self.sections.iter().all(is_updated);
        let ranges = self
            .sections
            .iter()
            .map(|table| table.bounds.counters.clone());
        has_all.then(|| ranges.filter(|range| !range.is_empty()).collect())
    }

    /// Its raw profiles, one per table, without the device's bytes.
    pub fn drafts(&self) -> Result<Vec<Draft<'_>>, Lost> {
        let id = self.binary_id.as_deref();
        let drafts = self.sections.iter().map(|table| Draft::new(table, id));
        drafts.collect::<Result<_, _>>().map_err(Lost::Defect)
    }

    /// Concatenates the raw profiles of its tables. Empty if no table is valid. The first call adds records and bitmaps that
    /// were left out to the losses.
    pub fn join(
        &mut self,
        device: Device,
        agent: &Agent,
        images: Vec<Image>,
    ) -> Result<Vec<u8>, Failure> {
        let mut joined = Vec::new();
        let (mut records, mut dropped, mut bitmaps) = (0, 0, 0);
        for image in images {
            self.has_counted |= image.has_counts;
            records += image.records;
            dropped += image.dropped;
            bitmaps += image.dropped_bitmaps;
            if joined.is_empty() {
                joined = image.bytes;
                continue;
            }
            alloc::reserve(&mut joined, image.bytes.len())?;
            joined.extend_from_slice(&image.bytes);
        }
        if self.records == 0 {
            let left_out = [
                (dropped, Lost::Records(dropped)),
                (bitmaps, Lost::Bitmaps(bitmaps)),
            ];
            let losses = left_out.into_iter().filter(|&(count, _)| count > 0);
            let losses: Vec<_> = losses
                .map(|(_, lost)| self.describe(device, agent, &lost))
                .collect();
            self.losses.extend(losses);
            self.records = records;
        }
        Ok(joined)
    }
}

/// A message that identifies the code object.
pub fn describe(device: Device, agent: &Agent, code: &CodeObject, what: &dyn Display) -> String {
    let origin = device.runtime.origin(code.executable, agent.id);
    let base = code.segments.first().map_or(0, |segment| segment.start);
    format!(
        "code object {} on {}, loaded at {base:#x}: {what}",
        origin.as_deref().unwrap_or("without a URI"),
        agent.name,
    )
}

/// Removes duplicates: the tables of the device runtime and of the translation units refer to the same ranges, and
/// one may contain another. Sorts by the address of the records.
fn deduplicate(mut all: Vec<Bounds>) -> Vec<Bounds> {
    all.retain(|bounds| !bounds.is_empty());
    let contains = |outer: &Bounds, inner: &Bounds| {
        outer.data.start <= inner.data.start && inner.data.end <= outer.data.end
    };
    let mut kept: Vec<Bounds> = Vec::new();
    for bounds in all {
        if kept.iter().any(|other| contains(other, &bounds)) {
            continue;
        }
        kept.retain(|other| !contains(&bounds, other));
        // The order of HSA's symbols is not specified. A sort would make the archive larger.
        let at = kept.partition_point(|other| other.data.start < bounds.data.start);
        kept.insert(at, bounds);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_same_ranges_are_merged() {
        let bounds = |data: Range<u64>| Bounds {
            layout: TableLayout::Uniform,
            names: 0..8,
            counters: 8..16,
            data,
            uniform: 0..0,
            version: None,
        };
        let all = vec![
            bounds(288..360),
            bounds(0..72),
            bounds(0..144),
            bounds(72..144),
            bounds(288..360),
            bounds(0..144),
        ];
        let kept: Vec<_> = deduplicate(all)
            .into_iter()
            .map(|bounds| bounds.data)
            .collect();
        assert_eq!(kept, [0..144, 288..360]);
    }
}
