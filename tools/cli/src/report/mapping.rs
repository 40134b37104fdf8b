//! What a code object's coverage mapping (`__llvm_covfun`) says of each function besides its regions: the hash of the
//! function's structure, and whether the code object has the function at all. Of one that it only declares, the
//! mapping has a single region without a counter.

use crate::names;
use goblin::elf::Elf;
use std::collections::HashMap;

/// The name hash, the size of the mapping, the structure's hash, the files' hash: packed, before the mapping.
const HEADER: usize = 8 + 4 + 8 + 8;
const ALIGNMENT: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// A profile's record of the function must have the same.
    pub hash: u64,
    /// It is not in the code, and has no counters.
    pub unused: bool,
}

/// The functions that a code object's coverage mapping describes, by the hash of their names.
///
/// # Errors
/// It is no ELF file, or a record does not end within the section.
pub fn functions(object: &[u8]) -> Result<HashMap<u64, Mapped>, String> {
    let mut found = HashMap::new();
    for section in sections(object, "__llvm_covfun")? {
        read(section, &mut found)?;
    }
    Ok(found)
}

/// The names of the functions that have counters in a code object, by their hash.
pub fn names(object: &[u8]) -> Result<HashMap<u64, String>, String> {
    let mut found = HashMap::new();
    for section in sections(object, "__llvm_prf_names")? {
        found.extend(names::by_hash(section)?);
    }
    Ok(found)
}

fn sections<'a>(object: &'a [u8], name: &str) -> Result<Vec<&'a [u8]>, String> {
    let elf = Elf::parse(object).map_err(|e| format!("not an ELF file: {e}"))?;
    let named = elf.section_headers.iter();
    let named = named.filter(|section| elf.shdr_strtab.get_at(section.sh_name) == Some(name));
    let bytes = |section: &goblin::elf::SectionHeader| {
        let start = section.sh_offset as usize;
        let end = start.checked_add(section.sh_size as usize)?;
        object.get(start..end)
    };
    named
        .map(|section| {
            bytes(section).ok_or_else(|| format!("the section {name} is not within the file"))
        })
        .collect()
}

fn read(section: &[u8], found: &mut HashMap<u64, Mapped>) -> Result<(), String> {
    let mut at = 0;
    while section.len() - at >= HEADER {
        let word = |offset| u64::from_le_bytes(array(&section[at + offset..]));
        let size = u32::from_le_bytes(array(&section[at + 8..])) as usize;
        let mapping = section[at + HEADER..].get(..size).ok_or_else(|| {
            format!("the record at {at} of __llvm_covfun claims a mapping of {size} bytes")
        })?;
        let own = Mapped {
            hash: word(12),
            unused: is_unused(mapping),
        };
        // Of a function that one translation unit declares and another has, both are there.
        let kept = found.entry(word(0)).or_insert(own);
        if kept.unused {
            *kept = own;
        }
        at = (at + HEADER + size)
            .next_multiple_of(ALIGNMENT)
            .min(section.len());
    }
    Ok(())
}

/// Fills an array from the beginning of a slice, which is long enough.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// Whether the first region has no counter. Before it are the files, the expressions and the number of regions.
fn is_unused(mapping: &[u8]) -> bool {
    let mut bytes = mapping.iter();
    let mut number = || leb128(&mut bytes);
    let first_region = (|| {
        for _ in 0..number()? {
            number()?;
        }
        for _ in 0..number()? {
            number()?;
            number()?;
        }
        number()?;
        number()
    })();
    first_region == Some(0)
}

fn leb128<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
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

    fn found(section: &[u8]) -> HashMap<u64, Mapped> {
        let mut found = HashMap::new();
        read(section, &mut found).unwrap();
        found
    }

    /// One file, no expressions, one region: counter 0, then without a counter.
    const USED: [u8; 8] = [1, 1, 0, 1, 1, 4, 1, 0];
    const UNUSED: [u8; 8] = [1, 1, 0, 1, 0, 4, 1, 0];

    #[test]
    fn a_function_without_counters_is_not_used() {
        let section = [record(7, 70, &USED), record(8, 0, &UNUSED)].concat();
        let functions = found(&section);
        assert_eq!(
            functions[&7],
            Mapped {
                hash: 70,
                unused: false
            }
        );
        assert_eq!(
            functions[&8],
            Mapped {
                hash: 0,
                unused: true
            }
        );
    }

    #[test]
    fn the_function_itself_comes_before_its_declaration() {
        for section in [
            [record(7, 70, &USED), record(7, 0, &UNUSED)].concat(),
            [record(7, 0, &UNUSED), record(7, 70, &USED)].concat(),
        ] {
            assert_eq!(
                found(&section)[&7],
                Mapped {
                    hash: 70,
                    unused: false
                }
            );
        }
    }

    #[test]
    fn a_record_that_does_not_end_in_its_section_is_an_error() {
        let section = record(7, 70, &USED);
        let error = read(&section[..section.len() - 8], &mut HashMap::new()).unwrap_err();
        assert!(error.contains("record at 0"), "{error}");
        assert_eq!(found(&section[..20]).len(), 0);
    }
}
