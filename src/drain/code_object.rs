//! A code object as far as it stays the same while it is loaded: its tables, checked, and its names. Read once; a later
//! drain copies the counters and the records alone, into which the device writes.

use crate::check::{self, Bounds, Defect};
use crate::copy::{Copies, Failure, Wanted};
use crate::discover::{Agent, CodeObject};
use crate::encode::{Draft, Image, Sections};
use crate::hsa::copy::Staging;
use crate::hsa::{self, Api};
use crate::room::{self, NoRoom};
use crate::{build_id, signature};
use byteorder::{ByteOrder, LittleEndian};
use std::ops::Range;
use std::time::Duration;

/// Why a code object's counters, or some of them, are lost.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("{0}")]
    Defect(Defect),
    #[error("{0}")]
    Copy(hsa::Error),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("a part of it was not copied")]
    Absent,
    #[error("{0} records whose counters lie outside the counters were left out")]
    Records(usize),
    #[error("its counters could not be set back: {0}")]
    Reset(hsa::Error),
    #[error(
        "MC/DC (-fcoverage-mcdc) cannot be kept for a device: llvm-cov will call the decisions of {0} functions not covered"
    )]
    Bitmaps(usize),
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Lost {
        match failure {
            Failure::Copy(error) => Lost::Copy(error),
            Failure::NoRoom(error) => Lost::NoRoom(error),
            Failure::Absent => Lost::Absent,
        }
    }
}

impl Lost {
    /// It may be better the next time.
    fn is_passing(&self) -> bool {
        matches!(self, Lost::Copy(_) | Lost::NoRoom(_))
    }
}

/// A table's sections.
struct Part {
    bounds: Bounds,
    /// With the variant flags.
    version: u64,
    names: Vec<u8>,
}

/// A code object that was read.
pub struct Object {
    pub code: CodeObject,
    parts: Vec<Part>,
    pub binary_id: Option<Vec<u8>>,
    pub signature: u64,
    pub records: usize,
    /// What is lost at each drain, in words.
    pub losses: Vec<String>,
    /// No copy has failed: another look would see the same.
    pub was_read: bool,
}

/// A code object whose tables have passed the checks.
struct Tables {
    code: CodeObject,
    bounds: Vec<Bounds>,
    /// What to look for after the head.
    notes: build_id::Search,
    losses: Vec<String>,
    were_read: bool,
}

/// Reads code objects of one agent.
pub fn read(
    api: &Api,
    agent: &Agent,
    objects: Vec<CodeObject>,
    staging: &mut Staging,
    limit: Duration,
) -> Result<Vec<Object>, hsa::Error> {
    let tables = tables(api, agent, objects, staging, limit)?;
    let mut wanted = Wanted::default();
    for tables in &tables {
        let fixed = tables.bounds.iter().flat_map(Bounds::fixed);
        for range in fixed.chain(tables.notes.range()) {
            wanted.add(range, &tables.code.segments);
        }
    }
    let copies = wanted.copy(staging, limit)?;
    let read = |tables: Tables| tables.read(api, agent, &copies);
    Ok(tables.into_iter().map(read).collect())
}

/// Reads and checks the tables, and the head of each code object for its build id.
fn tables(
    api: &Api,
    agent: &Agent,
    objects: Vec<CodeObject>,
    staging: &mut Staging,
    limit: Duration,
) -> Result<Vec<Tables>, hsa::Error> {
    let mut wanted = Wanted::default();
    let mut all = Vec::new();
    for code in objects {
        let (mut tables, mut losses) = (Vec::new(), Vec::new());
        for table in &code.tables {
            match check::table(table, &code.segments) {
                Ok(found) => tables.push(found),
                Err(defect) => losses.push(Lost::Defect(defect)),
            }
        }
        let head = build_id::head(&code.segments);
        for range in tables
            .iter()
            .map(|(_, range)| range.clone())
            .chain(head.clone())
        {
            wanted.add(range, &code.segments);
        }
        all.push((code, tables, head, losses));
    }
    let copies = wanted.copy(staging, limit)?;
    let mut read = Vec::new();
    for (code, tables, head, mut losses) in all {
        let mut bounds = Vec::new();
        for (layout, range) in tables {
            let found = copies.get(&range).map_err(Lost::from).and_then(|bytes| {
                check::bounds(layout, bytes, &code.segments).map_err(Lost::Defect)
            });
            match found {
                Ok(found) => bounds.push(found),
                Err(error) => losses.push(error),
            }
        }
        // Without its head a code object only has no build id.
        let bytes = head.and_then(|range| Some((range.start, copies.get(&range).ok()?)));
        let notes = match bytes {
            Some((start, bytes)) => build_id::search(start, bytes, &code.segments),
            None => build_id::Search::None,
        };
        let lost = losses.iter().map(|lost| describe(api, agent, &code, lost));
        read.push(Tables {
            bounds: distinct(bounds),
            notes,
            were_read: !losses.iter().any(Lost::is_passing),
            losses: lost.collect(),
            code,
        });
    }
    Ok(read)
}

impl Tables {
    /// Takes what stays the same out of the copies.
    fn read(self, api: &Api, agent: &Agent, copies: &Copies) -> Object {
        let mut object = Object {
            losses: self.losses,
            was_read: self.were_read,
            binary_id: match &self.notes {
                build_id::Search::Found(id) => Some(id.clone()),
                build_id::Search::In(range) => copies.get(range).ok().and_then(build_id::in_notes),
                build_id::Search::None => None,
            },
            ..Object::without_tables(self.code)
        };
        let mut signature = signature::Signature::new();
        match parts(self.bounds, copies, &mut signature) {
            Ok(parts) => object.parts = parts,
            Err(lost) => {
                object.was_read &= !lost.is_passing();
                let lost = describe(api, agent, &object.code, &lost);
                object.losses.push(lost);
            }
        }
        object.signature = signature.finish();
        object
    }
}

/// All parts of a code object, or why it has none. They are added to its signature.
fn parts(
    bounds: Vec<Bounds>,
    copies: &Copies,
    signature: &mut signature::Signature,
) -> Result<Vec<Part>, Lost> {
    let copied = |range: &Range<u64>| copies.get(range).map_err(Lost::from);
    let read = |bounds: Bounds| {
        let found = bounds
            .version
            .map(|at| copied(&(at..at + 8)).map(LittleEndian::read_u64))
            .transpose()?;
        let version = check::version(&bounds, found).map_err(Lost::Defect)?;
        let names = room::copy_of(copied(&bounds.names)?)?;
        check::names(&names).map_err(Lost::Defect)?;
        signature.add(version, bounds.format(), &names, copied(&bounds.data)?);
        Ok(Part {
            version,
            names,
            bounds,
        })
    };
    bounds.into_iter().map(read).collect()
}

impl Object {
    pub fn without_tables(code: CodeObject) -> Object {
        Object {
            code,
            parts: Vec::new(),
            binary_id: None,
            signature: 0,
            records: 0,
            losses: Vec::new(),
            was_read: true,
        }
    }

    /// What is lost of it, in words that tell which one it is.
    pub fn describe(&self, api: &Api, agent: &Agent, what: &Lost) -> String {
        describe(api, agent, &self.code, what)
    }

    /// Nothing in it counts, and nothing of it is lost.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.losses.is_empty()
    }

    /// Where its counters are, and what sets a byte of them back.
    pub fn counters(&self) -> impl Iterator<Item = (Range<u64>, u8)> {
        self.parts.iter().flat_map(|part| {
            let bytes = profraw::format::counter_size(part.version) == 1;
            let counters = (part.bounds.counters.clone(), if bytes { 0xff } else { 0 });
            [counters, (part.bounds.uniform.clone(), 0)]
                .into_iter()
                .filter(|(range, _)| !range.is_empty())
        })
    }

    /// Its raw profiles, one for each table, without the device's bytes.
    pub fn drafts(&self) -> Result<Vec<Draft<'_>>, Lost> {
        let draft = |part| {
            let Part {
                bounds,
                version,
                names,
            }: &Part = part;
            let sections = Sections {
                version: *version,
                format: bounds.format(),
                data: bounds.data.clone(),
                counters: bounds.counters.clone(),
                uniform: bounds.uniform.clone(),
                names,
            };
            Draft::new(sections, self.binary_id.as_deref()).map_err(Lost::Defect)
        };
        self.parts.iter().map(draft).collect()
    }

    /// Its raw profile, made of those of its tables; empty if no part of the code object is valid. What was left out is
    /// added to its losses when that is seen first.
    pub fn join(
        &mut self,
        api: &Api,
        agent: &Agent,
        images: Vec<Image>,
    ) -> Result<Vec<u8>, NoRoom> {
        let mut whole = Vec::new();
        let (mut records, mut dropped, mut bitmaps) = (0, 0, 0);
        for image in images {
            records += image.records;
            dropped += image.dropped;
            bitmaps += image.bitmaps;
            if whole.is_empty() {
                whole = image.bytes;
                continue;
            }
            room::reserve(&mut whole, image.bytes.len())?;
            whole.extend_from_slice(&image.bytes);
        }
        if self.records == 0 {
            let left_out = [
                (dropped, Lost::Records(dropped)),
                (bitmaps, Lost::Bitmaps(bitmaps)),
            ];
            let losses = left_out.into_iter().filter(|&(count, _)| count > 0);
            let losses: Vec<_> = losses
                .map(|(_, lost)| self.describe(api, agent, &lost))
                .collect();
            self.losses.extend(losses);
            self.records = records;
        }
        Ok(whole)
    }
}

/// What is lost of a code object, in words that tell which one it is.
fn describe(api: &Api, agent: &Agent, code: &CodeObject, what: &Lost) -> String {
    let place = hsa::describe(api, code.executable, agent.handle);
    let base = code.segments.first().map_or(0, |segment| segment.start);
    format!(
        "code object {} on {}, loaded at {base:#x}: {what}",
        place.as_deref().unwrap_or("without a URI"),
        agent.name,
    )
}

/// Each table's sections once: the device runtime's table and those of the translation units name the same ranges, and
/// one may span another's. In the order of their records.
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
    // HSA tells symbols in an order of its own.
    kept.sort_by_key(|bounds| bounds.data.start);
    kept
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
            bounds(288..360),
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
