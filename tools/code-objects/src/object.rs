//! A GPU code object: an ELF file for AMD's GPUs. [`crate::cuda::cubin`] reads those for NVIDIA's.

use crate::cuda::cubin;
use crate::elf::{Elf, Note, Symbol};
use crate::error::Error;
use crate::metadata::{self, Kernel};
use crate::target::{AMDGPU, Target};
use goblin::elf::header::{EI_ABIVERSION, ET_REL};
use profraw::format::{TableLayout, VARIANT_MASK};
use schemars::JsonSchema;
use serde::Serialize;

/// Limit on the metadata in bytes. RCCL's has 170 KB.
const MAX_METADATA: u64 = 16 << 20;

/// A profile section (`__llvm_prf_*`) of an instrumented code object. A cubin has symbols instead, and the size is that of
/// all symbols that belong in the section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProfileSection {
    pub name: String,
    /// In bytes.
    pub size: u64,
}

/// Whether only some blocks (workgroups) count (clang's `--offload-pgo-sampling`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Every block counts.
    No,
    Yes,
    /// The code object does not record it. Its compiler samples by default.
    Unknown,
}

/// The instrumentation of a code object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Profile {
    pub sections: Vec<ProfileSection>,
    /// Version of its raw profiles, without variant flags.
    pub raw_version: Option<u64>,
    /// Names of the variant flags.
    pub variants: Vec<String>,
    pub sampling: Sampling,
    /// Symbols of the tables of section bounds, with which a runtime finds the counters. Cubins have none.
    pub tables: Vec<String>,
}

/// The coverage mapping, which llvm-cov needs to show counts in the source code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Coverage {
    /// Size of `__llvm_covfun` in bytes; in a cubin, of all `__covrec_*`.
    pub functions: u64,
    /// Size of `__llvm_covmap` in bytes; in a cubin, of all `__llvm_coverage_mapping`.
    pub files: u64,
}

/// A GPU code object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeObject {
    /// For example `amdgcn-amd-amdhsa` or `nvptx64-nvidia-cuda`.
    pub triple: String,
    pub target: Target,
    /// Code object version of AMD's ABI, 2 to 6. Of a cubin, `EI_ABIVERSION`.
    pub version: u8,
    /// It is not linked, so it cannot be loaded.
    pub relocatable: bool,
    /// In bytes.
    pub size: u64,
    /// In hexadecimal.
    pub build_id: Option<String>,
    /// Serialized by the command line, which adds a name to each.
    #[serde(skip)]
    pub kernels: Vec<Kernel>,
    pub profile: Option<Profile>,
    pub coverage: Option<Coverage>,
}

impl CodeObject {
    /// Whether it is a cubin.
    pub fn is_cuda(&self) -> bool {
        self.triple == cubin::TRIPLE
    }
}

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
            let what = format!("kernel metadata with {size} bytes");
            return Err(Error::new(note.at, what));
        }
        let description = elf.bytes.read(note.at, note.size)?;
        let more = metadata::kernels(&description).map_err(|error| error.shifted(note.at))?;
        kernels.extend(more);
    }
    if version == 2 && kernels.is_empty() && notes.iter().any(|note| note.name == b"AMD") {
        let what = "kernel metadata of code object version 2, which LLVM 19 and later do not read";
        return Err(Error::new(0, what));
    }
    Ok(kernels)
}

pub const SAMPLING: &str = "__llvm_profile_sampling_gpu";
pub const COUNTING: &str = "__llvm_profile_instrument_gpu";
pub const VERSION: &str = "__llvm_profile_raw_version";
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
