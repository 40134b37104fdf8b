//! A host's ELF file, and the sections of it that can hold device code.

use crate::elf::Elf;
use crate::error::Error;
use crate::kpack;
use crate::location::Step;
use goblin::elf::header::{ET_DYN, ET_EXEC, ET_REL};
use schemars::JsonSchema;
use serde::Serialize;

/// A host's ELF file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Host {
    /// Architecture.
    pub machine: String,
    #[schemars(extend("enum" = ["object", "executable", "library", "file"]))]
    pub kind: &'static str,
    /// In hexadecimal.
    pub build_id: Option<String>,
    /// Host code is instrumented.
    pub profile: bool,
    /// It has a coverage mapping of host code.
    pub coverage: bool,
    /// It has a section that can hold device code.
    pub device_code: bool,
    /// Its device code is in kpack archives.
    pub kpack: Option<kpack::Reference>,
}

/// A section that can hold device code.
pub struct DeviceSection {
    pub step: Step,
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// In bytes.
    pub size: u64,
}

/// Prefix of a section that clang-offload-bundler makes for an entry of an object file. The rest is the entry's id.
const BUNDLED: &str = "__CLANG_OFFLOAD_BUNDLE__";

/// Other sections. `__nv_relfatbin` has code that is not linked. `.nvFatBinSegment` only has the addresses of the others.
const SECTIONS: [&str; 4] = [
    ".hip_fatbin",
    ".llvm.offloading",
    ".nv_fatbin",
    "__nv_relfatbin",
];

/// A section that refers to kpack archives. ROCm's build writes it when it moves code objects out of a library.
const KPACK_REFERENCE: &str = ".rocm_kpack_ref";

/// Reads a host's ELF file: a description, its sections with device code in the order of the file, and what could not
/// be read.
pub fn read(elf: &mut Elf) -> (Host, Vec<DeviceSection>, Vec<Error>) {
    let notes = elf.notes();
    let has = |start: &str| elf.sections.iter().any(|s| s.name.starts_with(start));
    let mut problems = Vec::new();
    let reference = elf.section(KPACK_REFERENCE).and_then(|s| s.range());
    let kpack = reference.and_then(|(at, size)| {
        let read = elf.bytes.read(at, size.min(1 << 20));
        match read.and_then(|bytes| kpack::reference(&bytes)) {
            Ok(reference) => Some(reference),
            Err(error) => {
                problems.push(error.shifted(at));
                None
            }
        }
    });
    let sections = device_sections(elf);
    let host = Host {
        machine: machine(elf.header.e_machine),
        kind: match elf.header.e_type {
            ET_REL => "object",
            ET_EXEC => "executable",
            ET_DYN if elf.section(".interp").is_some() => "executable",
            ET_DYN => "library",
            _ => "file",
        },
        build_id: elf.build_id(&notes),
        profile: has("__llvm_prf_"),
        coverage: has("__llvm_covfun"),
        device_code: !sections.is_empty(),
        kpack,
    };
    problems.append(&mut elf.problems);
    (host, sections, problems)
}

/// Whether the code objects were moved from the file to kpack archives. Their section then contains only zeros.
pub fn is_in_kpack(elf: &Elf) -> bool {
    elf.section(KPACK_REFERENCE).is_some()
}

fn device_sections(elf: &Elf) -> Vec<DeviceSection> {
    let sections = elf.sections.iter().filter_map(|section| {
        let name = section.name.as_str();
        let step = match name.strip_prefix(BUNDLED) {
            Some(id) if id.starts_with("host") => return None,
            Some(id) => Step::Entry {
                number: 1,
                id: id.to_owned(),
            },
            None if SECTIONS.contains(&name) => Step::Section(name.to_owned()),
            None => return None,
        };
        let (offset, size) = section.range()?;
        Some(DeviceSection { step, offset, size })
    });
    let mut sections: Vec<_> = sections.collect();
    sections.sort_by_key(|section| section.offset);
    sections
}

/// The name of an ELF file's machine (`EM_*`).
fn machine(machine: u16) -> String {
    match machine {
        3 => "x86".into(),
        20 => "ppc".into(),
        21 => "ppc64".into(),
        40 => "arm".into(),
        62 => "x86-64".into(),
        183 => "aarch64".into(),
        190 => "NVIDIA CUDA".into(),
        243 => "riscv".into(),
        258 => "loongarch".into(),
        other => format!("machine {other}"),
    }
}
