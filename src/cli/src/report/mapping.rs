//! Reads facts that llvm-cov does not export from a code object's coverage mapping (`__llvm_covfun`): the structural hash of
//! each function, whether the code object has the function at all, and the conditions of its decisions (MC/DC). For a function
//! that the code object only declares, the mapping has a single region without a counter.

use super::counters::Counters;
use super::mcdc::{self, Decision};
use super::numbers::Numbers;
use crate::names;
use anyhow::Context;
use goblin::elf::Elf;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The header of a record, which the mapping follows (`CovMapFunctionRecordV3` in InstrProfData.inc, packed).
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    name_hash: U64,
    /// The size of the mapping in bytes.
    size: U32,
    structural_hash: U64,
    files_hash: U64,
}

const ALIGNMENT: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The structural hash. The function's record in the profile must have the same hash.
    pub hash: u64,
    /// The function is not in the code object and has no counters.
    pub unused: bool,
}

/// A function in a code object's coverage mapping.
#[derive(Debug)]
pub struct Record {
    pub mapping: Mapping,
    /// Without executed vectors, which are in the profile. `None`: the mapping is damaged.
    pub decisions: Option<Vec<Decision>>,
}

/// The functions in a code object's coverage mapping, by the hash of their names.
///
/// # Errors
/// The file is not ELF, or a record exceeds the section.
pub fn functions(object: &[u8]) -> anyhow::Result<HashMap<u64, Record>> {
    let mut found = HashMap::new();
    for section in sections(object, "__llvm_covfun")? {
        read(section, &mut found)?;
    }
    Ok(found)
}

/// The names of the functions that have counters in a code object, by their hash.
pub fn names(object: &[u8]) -> anyhow::Result<HashMap<u64, String>> {
    let mut found = HashMap::new();
    for section in sections(object, "__llvm_prf_names")? {
        found.extend(names::by_hash(section)?);
    }
    Ok(found)
}

/// The contents of the sections with this name.
fn sections<'a>(object: &'a [u8], name: &str) -> anyhow::Result<Vec<&'a [u8]>> {
    let elf = Elf::parse(object).context("not an ELF file")?;
    let named = elf.section_headers.iter();
    let named = named.filter(|section| elf.shdr_strtab.get_at(section.sh_name) == Some(name));
    named
        .map(|section| {
            let start = section.sh_offset as usize;
            let end = start.checked_add(section.sh_size as usize);
            end.and_then(|end| object.get(start..end))
                .with_context(|| format!("the section {name} exceeds the file"))
        })
        .collect()
}

/// Adds the records of a section.
pub fn read(section: &[u8], found: &mut HashMap<u64, Record>) -> anyhow::Result<()> {
    each(section, |name, mapping, encoded| {
        let own = Record {
            mapping,
            decisions: decisions(encoded),
        };
        // If one translation unit declares a function and another one defines it, both records are present.
        match found.entry(name) {
            Entry::Occupied(mut kept) if kept.get().mapping.unused => drop(kept.insert(own)),
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => drop(free.insert(own)),
        }
    })
}

/// The counters of the regions of all functions that a code object has, by the hash of their names.
///
/// # Errors
/// See [`functions`].
pub fn counters(object: &[u8]) -> anyhow::Result<HashMap<u64, Counters>> {
    let mut found = HashMap::new();
    for section in sections(object, "__llvm_covfun")? {
        each(section, |name, mapping, encoded| {
            if !mapping.unused
                && let Some(counters) = Counters::read(encoded)
            {
                found.entry(name).or_insert(counters);
            }
        })?;
    }
    Ok(found)
}

/// Calls `record` with the hash of the name, the properties and the encoded mapping of each function.
fn each(section: &[u8], mut record: impl FnMut(u64, Mapping, &[u8])) -> anyhow::Result<()> {
    let mut at = 0;
    while let Ok((header, rest)) = Header::ref_from_prefix(&section[at..]) {
        let size = header.size.get() as usize;
        let encoded = rest.get(..size).with_context(|| {
            format!(
                "the record at {at} of __llvm_covfun exceeds the section: its mapping has {size} bytes"
            )
        })?;
        let mapping = Mapping {
            hash: header.structural_hash.get(),
            unused: is_unused(encoded),
        };
        record(header.name_hash.get(), mapping, encoded);
        at = (at + size_of::<Header>() + size)
            .next_multiple_of(ALIGNMENT)
            .min(section.len());
    }
    Ok(())
}

/// The number of files, and what follows the files and expressions: the regions of each file.
fn regions(mapping: &[u8]) -> Option<(u64, Numbers<'_>)> {
    let mut numbers = Numbers::new(mapping);
    let files = numbers.next()?;
    numbers.skip(files)?;
    let expressions = numbers.next()?;
    numbers.skip(expressions.checked_mul(2)?)?;
    Some((files, numbers))
}

/// Whether the first region has no counter. It follows the number of regions.
fn is_unused(mapping: &[u8]) -> bool {
    let counter = regions(mapping).and_then(|(_, mut numbers)| {
        numbers.next()?;
        numbers.next()
    });
    counter == Some(0)
}

fn decisions(mapping: &[u8]) -> Option<Vec<Decision>> {
    let (files, mut numbers) = regions(mapping)?;
    mcdc::decisions(files, &mut numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: u64, hash: u64, mapping: &[u8]) -> Vec<u8> {
        let mut bytes = name.to_le_bytes().to_vec();
        bytes.extend((mapping.len() as u32).to_le_bytes());
        bytes.extend(hash.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(mapping);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    fn found(section: &[u8]) -> HashMap<u64, Mapping> {
        let mut found = HashMap::new();
        read(section, &mut found).unwrap();
        let found = found.into_iter();
        found.map(|(name, own)| (name, own.mapping)).collect()
    }

    /// One file, no expressions, one region: counter 0, then without a counter.
    const USED: [u8; 8] = [1, 1, 0, 1, 1, 4, 1, 0];
    const UNUSED: [u8; 8] = [1, 1, 0, 1, 0, 4, 1, 0];

    fn mapping(hash: u64, unused: bool) -> Mapping {
        Mapping { hash, unused }
    }

    #[test]
    fn a_function_without_counters_is_unused() {
        let section = [record(7, 70, &USED), record(8, 0, &UNUSED)].concat();
        let functions = found(&section);
        assert_eq!(functions[&7], mapping(70, false));
        assert_eq!(functions[&8], mapping(0, true));
    }

    #[test]
    fn a_definition_takes_precedence_over_a_declaration() {
        let (used, unused) = (record(7, 70, &USED), record(7, 0, &UNUSED));
        for section in [[&*used, &unused].concat(), [unused, used].concat()] {
            assert_eq!(found(&section)[&7], mapping(70, false));
        }
    }

    #[test]
    fn a_record_that_exceeds_its_section_is_an_error() {
        let section = record(7, 70, &USED);
        let error = read(&section[..section.len() - 8], &mut HashMap::new()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("record at 0"), "{error}");
        assert_eq!(found(&section[..20]).len(), 0);
    }
}
