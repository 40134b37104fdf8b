//! A code object for AMD's GPUs.

use crate::elf::{Elf, Note, Symbol};
use crate::error::Error;
use crate::metadata::{self, Kernel};
use crate::object::{
    COUNTING, CodeObject, Coverage, Profile, ProfileSection, SAMPLING, Sampling, VERSION,
};
use crate::target::{AMDGPU, Target};
use goblin::elf::header::{EI_ABIVERSION, ET_REL};
use profraw::format::{TableLayout, VARIANT_MASK};

/// Limit on the metadata in bytes. RCCL's has 170 KB.
const MAX_METADATA: u64 = 16 << 20;

/// The target of one of AMD's code objects, from its first 64 bytes. `None` if they are of another file.
pub fn target(head: &[u8]) -> Option<Target> {
    let (header, _) = crate::elf::header(head).ok()?;
    let version = version(header.e_ident[EI_ABIVERSION]);
    (header.e_machine == AMDGPU).then(|| Target::from_flags(header.e_flags, version))
}

/// The code object version of an ABI version: 2 for 0, and so on.
fn version(abi: u8) -> u8 {
    abi.saturating_add(2)
}

/// Reads a code object. Also returns what could not be read.
pub fn read(mut elf: Elf) -> (CodeObject, Vec<Error>) {
    let version = version(elf.abi_version());
    let system = match elf.os_abi() {
        64 => "amdhsa",
        65 => "amdpal",
        66 => "mesa3d",
        _ => "unknown",
    };
    let notes = elf.notes();
    let kernels = match kernels(&elf, &notes, version) {
        Ok(kernels) => kernels,
        Err(error) => {
            elf.problems.push(error);
            Vec::new()
        }
    };
    let section_size = |name: &str| elf.section(name).map(|section| section.header.sh_size);
    let coverage = match (section_size("__llvm_covfun"), section_size("__llvm_covmap")) {
        (Some(functions), Some(files)) => Some(Coverage { functions, files }),
        _ => None,
    };
    let object = CodeObject {
        triple: format!("amdgcn-amd-{system}"),
        target: Target::from_flags(elf.header.e_flags, version),
        version,
        relocatable: elf.header.e_type == ET_REL,
        size: elf.bytes.size(),
        build_id: elf.build_id(&notes),
        kernels,
        profile: profile(&mut elf),
        coverage,
    };
    (object, elf.problems)
}

fn kernels(elf: &Elf, notes: &[Note], version: u8) -> Result<Vec<Kernel>, Error> {
    // NT_AMDGPU_METADATA.
    let is_metadata = |note: &&Note| note.name == b"AMDGPU" && note.kind == 32;
    let mut kernels = Vec::new();
    let mut size = 0;
    // A device link with ThinLTO leaves one note per module.
    for note in notes.iter().filter(is_metadata) {
        size += note.size;
        if size > MAX_METADATA {
            return Err(error!(note.at; "kernel metadata with {size} bytes"));
        }
        let description = elf.bytes.read(note.at, note.size)?;
        let more = metadata::kernels(&description).map_err(|error| error.shifted(note.at))?;
        kernels.extend(more);
    }
    if version == 2 && kernels.is_empty() && notes.iter().any(|note| note.name == b"AMD") {
        return Err(
            error!(0; "kernel metadata of code object version 2, which LLVM 19 and later do not read"),
        );
    }
    Ok(kernels)
}

const TABLE: &str = "__llvm_profile_sections";
/// A section of devprof's device runtime: one byte, and one per copy of its sampling function.
const SAMPLING_SITES: &str = ".devprof.sampling";

fn profile(elf: &mut Elf) -> Option<Profile> {
    let is_profile = |name: &str| name.starts_with("__llvm_prf_");
    let sections: Vec<ProfileSection> = elf
        .sections
        .iter()
        .filter(|section| is_profile(&section.name))
        .map(|section| ProfileSection {
            name: section.name.clone(),
            size: section.header.sh_size,
        })
        .collect();
    if sections.is_empty() {
        return None;
    }
    let is_table = |name: &str| {
        name.strip_prefix(TABLE)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let symbols =
        elf.symbols(|name| [SAMPLING, COUNTING, VERSION].contains(&name) || is_table(name));
    let find = |name: &str| symbols.iter().find(|symbol| symbol.name == name);
    let tables: Vec<&Symbol> = symbols
        .iter()
        .filter(|symbol| is_table(&symbol.name))
        .collect();
    let word = find(VERSION).and_then(|symbol| {
        let bytes = elf.value(symbol, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    });
    let by_table = || {
        let layout = |symbol: &&Symbol| TableLayout::from_size(symbol.size);
        tables
            .iter()
            .find_map(layout)
            .map(|layout| layout.format().version)
    };
    let raw_version = word.map(|word| word & !VARIANT_MASK).or_else(by_table);
    let undefined = |name: &str| find(name).is_some_and(|symbol| symbol.undefined);
    // The number of copies that are the function itself: 1, or 0 if the optimizer removed it. Unknown in a stripped file.
    let own = match elf.section(".symtab") {
        Some(_) => find(SAMPLING).map(|_| 1).or(Some(0)),
        None => None,
    };
    let copies = elf.section(SAMPLING_SITES);
    let copies = copies.map(|section| section.header.sh_size.saturating_sub(1));
    let sampling = match copies {
        Some(0) => Sampling::No,
        Some(1) if own.is_none() => Sampling::Unknown,
        Some(copies) if Some(copies) == own => Sampling::No,
        Some(_) => Sampling::Yes,
        None if raw_version.is_some_and(|version| version < 11) => Sampling::No,
        None if undefined(SAMPLING) => Sampling::Yes,
        // It calls the counting function, but not the sampling function.
        None if undefined(COUNTING) => Sampling::No,
        None => Sampling::Unknown,
    };
    Some(Profile {
        sections,
        raw_version,
        variants: word.map(profraw::format::variants).unwrap_or_default(),
        sampling,
        tables: tables.iter().map(|symbol| symbol.name.clone()).collect(),
    })
}
