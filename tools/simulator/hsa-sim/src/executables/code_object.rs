//! Code objects: ELF files of LLVM's AMDGPU target, as clang and lld 22 and 23 write them. Reads what loading needs:
//! segments, relocations and symbols ("User Guide for AMDGPU Backend", Code Object, Relocation Records).

use goblin::elf::Elf;
use goblin::elf::header::{EI_ABIVERSION, EI_OSABI, ET_DYN};
use goblin::elf::program_header::PT_LOAD;
use goblin::elf::section_header::SHN_UNDEF;
use goblin::elf::sym::{STB_LOCAL, STB_WEAK, STT_OBJECT};
use hsa_abi::Status;
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

const EM_AMDGPU: u16 = 224;

const ELFOSABI_AMDGPU_HSA: u8 = 64;

/// `ELFABIVERSION_AMDGPU_HSA_V4` to `…_V6`. Older versions have other flags for features.
const ABI_VERSIONS: RangeInclusive<u8> = 2..=4;

mod relocation {
    pub const NONE: u32 = 0;
    pub const ABS32_LO: u32 = 1;
    pub const ABS32_HI: u32 = 2;
    pub const ABS64: u32 = 3;
    pub const REL32: u32 = 4;
    pub const REL64: u32 = 5;
    pub const ABS32: u32 = 6;
    pub const REL32_LO: u32 = 10;
    pub const REL32_HI: u32 = 11;
    pub const RELATIVE64: u32 = 13;
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A variable in writable or read-only memory.
    Variable { writable: bool },
    /// A kernel descriptor.
    Kernel,
}

/// A symbol that the code object exports.
#[derive(Clone, Debug)]
pub struct Defined {
    pub name: String,
    pub kind: SymbolKind,
    /// A weak symbol: another code object may define it, too.
    pub weak: bool,
    /// In the ELF file's address space.
    pub address: u64,
    pub size: u64,
}

/// A relocation and its symbol.
#[derive(Clone, Debug)]
struct Relocation {
    at: u64,
    kind: u32,
    addend: i64,
    target: Target,
}

#[derive(Clone, Debug)]
enum Target {
    None,
    /// Defined in this code object, at this address in the ELF file's address space.
    Defined(u64),
    /// Defined elsewhere. A weak symbol without a definition has the address 0.
    Named {
        name: String,
        weak: bool,
    },
}

/// The parts of a code object that loading needs.
#[derive(Debug)]
pub struct CodeObject {
    /// The processor and its features.
    pub flags: u32,
    /// The range of all loaded segments in the ELF file's address space.
    pub span: Range<u64>,
    /// The address of each segment, and the range of its bytes in the file.
    segments: Vec<(u64, Range<usize>)>,
    relocations: Vec<Relocation>,
    pub symbols: Vec<Defined>,
}

/// Larger than any valid code object: bounds what a corrupt header can make the loader allocate.
const MAX_BYTES: u64 = 4 << 30;

impl CodeObject {
    /// Reads a code object.
    pub fn read(file: &[u8]) -> Result<CodeObject, String> {
        let elf = Elf::parse(file).map_err(|error| error.to_string())?;
        let header = &elf.header;
        if header.e_machine != EM_AMDGPU
            || header.e_ident[EI_OSABI] != ELFOSABI_AMDGPU_HSA
            || header.e_type != ET_DYN
            || !elf.is_64
            || !elf.little_endian
        {
            return Err("not a shared ELF object for AMDGPU under HSA".into());
        }
        let version = header.e_ident[EI_ABIVERSION];
        if !ABI_VERSIONS.contains(&version) {
            return Err(format!(
                "its ABI version is {version}: only code object versions 4 to 6 can be loaded"
            ));
        }
        let mut segments = Vec::new();
        let (mut first, mut last) = (u64::MAX, 0);
        for load in elf.program_headers.iter().filter(|h| h.p_type == PT_LOAD) {
            let end = load.p_vaddr.checked_add(load.p_memsz);
            let end = end.ok_or("a segment wraps around the address space")?;
            let bytes = load.p_offset.checked_add(load.p_filesz);
            let bytes =
                bytes.filter(|&end| end <= file.len() as u64 && load.p_filesz <= load.p_memsz);
            let bytes = bytes.ok_or("a segment's bytes are not in the file")?;
            first = first.min(load.p_vaddr);
            last = last.max(end);
            segments.push((load.p_vaddr, load.p_offset as usize..bytes as usize));
        }
        let span = first..last;
        if span.is_empty() || last - first > MAX_BYTES {
            return Err(format!("its segments span {first:#x} to {last:#x}"));
        }
        let mut relocations = Vec::new();
        for relocation in elf.dynrelas.iter() {
            let target = match relocation.r_sym {
                0 => Target::None,
                n => {
                    let symbol = elf
                        .dynsyms
                        .get(n)
                        .ok_or("a relocation's symbol is missing")?;
                    if symbol.st_shndx == SHN_UNDEF as usize {
                        let name = elf.dynstrtab.get_at(symbol.st_name);
                        Target::Named {
                            name: name.ok_or("a symbol's name is missing")?.to_string(),
                            weak: symbol.st_bind() == STB_WEAK,
                        }
                    } else {
                        Target::Defined(symbol.st_value)
                    }
                }
            };
            relocations.push(Relocation {
                at: relocation.r_offset,
                kind: relocation.r_type,
                addend: relocation.r_addend.unwrap_or(0),
                target,
            });
        }
        let mut symbols = Vec::new();
        for symbol in elf.dynsyms.iter() {
            if symbol.st_shndx == SHN_UNDEF as usize || symbol.st_bind() == STB_LOCAL {
                continue;
            }
            let name = elf.dynstrtab.get_at(symbol.st_name);
            let name = name.ok_or("a symbol's name is missing")?.to_string();
            let writable = elf
                .section_headers
                .get(symbol.st_shndx)
                .is_none_or(|section| section.is_writable());
            let kind = match symbol.st_type() {
                STT_OBJECT if name.ends_with(".kd") => SymbolKind::Kernel,
                STT_OBJECT => SymbolKind::Variable { writable },
                _ => continue,
            };
            symbols.push(Defined {
                name,
                kind,
                weak: symbol.st_bind() == STB_WEAK,
                address: symbol.st_value,
                size: symbol.st_size,
            });
        }
        Ok(CodeObject {
            flags: header.e_flags,
            span,
            segments,
            relocations,
            symbols,
        })
    }

    /// The relocated image of the segments for the load address `base`. `defined` has the addresses of symbols that are
    /// defined outside of this code object.
    pub fn image(
        &self,
        file: &[u8],
        base: u64,
        defined: &HashMap<String, u64>,
    ) -> Result<Vec<u8>, Status> {
        let mut image = vec![0; (self.span.end - self.span.start) as usize];
        for (address, bytes) in &self.segments {
            let start = (address - self.span.start) as usize;
            image[start..start + bytes.len()].copy_from_slice(&file[bytes.clone()]);
        }
        let delta = base.wrapping_sub(self.span.start);
        for relocation in &self.relocations {
            let symbol = match &relocation.target {
                Target::None => 0,
                Target::Defined(address) => delta.wrapping_add(*address),
                Target::Named { name, weak } => match defined.get(name) {
                    Some(&address) => address,
                    None if *weak => 0,
                    None => {
                        eprintln!("hsa-sim: variable {name} is not defined");
                        return Err(Status::VARIABLE_UNDEFINED);
                    }
                },
            };
            let location = delta.wrapping_add(relocation.at);
            let value = symbol.wrapping_add_signed(relocation.addend);
            let (value, size) = match relocation.kind {
                relocation::NONE => continue,
                relocation::ABS32_LO | relocation::ABS32 => (value & 0xffff_ffff, 4),
                relocation::ABS32_HI => (value >> 32, 4),
                relocation::ABS64 => (value, 8),
                relocation::REL32 | relocation::REL32_LO => {
                    (value.wrapping_sub(location) & 0xffff_ffff, 4)
                }
                relocation::REL32_HI => (value.wrapping_sub(location) >> 32, 4),
                relocation::REL64 => (value.wrapping_sub(location), 8),
                relocation::RELATIVE64 => (delta.wrapping_add_signed(relocation.addend), 8),
                other => {
                    eprintln!("hsa-sim: unknown relocation {other}");
                    return Err(Status::INVALID_CODE_OBJECT);
                }
            };
            let at = relocation.at.checked_sub(self.span.start);
            let target = at
                .and_then(|at| usize::try_from(at).ok())
                .and_then(|at| image.get_mut(at..at.checked_add(size)?))
                .ok_or(Status::INVALID_CODE_OBJECT)?;
            target.copy_from_slice(&value.to_le_bytes()[..size]);
        }
        Ok(image)
    }
}
