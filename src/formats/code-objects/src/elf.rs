//! Reads the tables of an ELF file of any class and byte order. goblin's structs view the entries; goblin's own reader
//! would need all of the file in memory. Each table is checked against the file's size before it is read.

use crate::budget::Limit;
use crate::bytes::Bytes;
use crate::error::Error;
use goblin::container::{Container, Ctx};
use goblin::elf::header::{EI_ABIVERSION, EI_OSABI, ELFMAG, EM_CUDA, Header};
use goblin::elf::note::{NT_GNU_BUILD_ID, Nhdr32};
use goblin::elf::program_header::{PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{
    SHN_UNDEF, SHN_XINDEX, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_SYMTAB, SectionHeader,
};
use goblin::elf::sym::Sym;
use scroll::Pread;
use std::collections::HashMap;

/// Limit on the size of a table of names in bytes. Real ones are much smaller.
const MAX_NAMES: u64 = 256 << 20;

/// Limit on the number of sections. Programs have fewer.
const MAX_SECTIONS: usize = 500_000;
/// Names of sections are cut to this many bytes.
const MAX_NAME: usize = 512;
/// Limit on the length of a symbol's name in bytes. Kernels of templates have names of several KiB.
const MAX_SYMBOL_NAME: usize = 64 << 10;
/// Limit on the total length of the names of sections, and of the symbols that are wanted, in bytes.
const MAX_NAMES_READ: u64 = 64 << 20;
/// Limit on the number of problems: further sections out of bounds are not reported.
const MAX_PROBLEMS: usize = 64;
/// Limit on the number of symbols that are wanted: further ones are not read.
const MAX_SYMBOLS: u64 = 65_536;
/// Limit on the number of notes.
const MAX_NOTES: usize = 65_536;

/// The types of sections in NVIDIA's relocatable code that have no contents in the file: of variables without initial values, and of
/// variables in shared memory (`nvcc -rdc=true`; in linked code, both are `SHT_NOBITS`).
const SHT_CUDA_GLOBAL: u32 = 0x7000_0007;
const SHT_CUDA_SHARED: u32 = 0x7000_000A;

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    pub header: SectionHeader,
}

impl Section {
    /// Offset and size of its contents in the file, in bytes. `None` if it has none there (`SHT_NOBITS`).
    pub fn range(&self) -> Option<(u64, u64)> {
        (self.header.sh_type != SHT_NOBITS).then_some((self.header.sh_offset, self.header.sh_size))
    }
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// Index in its table of symbols.
    pub index: usize,
    /// `STT_*`.
    pub kind: u8,
    /// `st_other`.
    pub other: u8,
    pub value: u64,
    pub size: u64,
    /// It is defined in another file (`SHN_UNDEF`).
    pub undefined: bool,
    /// Index of its section.
    pub section: usize,
}

/// Limits on all tables of symbols of a file together: a table can share its bytes with others, and its names their bytes.
struct SymbolLimits {
    /// Bytes of the tables and of the tables of their names. Tables that do not overlap have fewer than the file.
    tables: Limit,
    /// Those that are wanted.
    number: Limit,
    names: Limit,
    /// The names of all symbols, which are read to their ends.
    all_names: Limit,
}

impl SymbolLimits {
    /// For a file of `size` bytes.
    fn new(size: u64) -> SymbolLimits {
        SymbolLimits {
            tables: Limit::of_size(size, "MiB of tables of symbols"),
            number: Limit::of_count(MAX_SYMBOLS, "symbols"),
            names: Limit::of_size(MAX_NAMES_READ, "MiB of names of symbols"),
            all_names: Limit::of_shared(size, "MiB of names of symbols"),
        }
    }
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub name: Vec<u8>,
    /// `n_type`.
    pub kind: u32,
    /// Offset of the description in the file, in bytes.
    pub at: u64,
    /// Size of the description in bytes.
    pub size: u64,
}

/// The headers of an ELF file.
pub struct Elf {
    pub bytes: Bytes,
    pub header: Header,
    pub segments: Vec<ProgramHeader>,
    pub sections: Vec<Section>,
    /// Why parts of the file could not be read.
    pub problems: Vec<Error>,
    ctx: Ctx,
}

/// Reads the header from the first 64 bytes of a file. Also returns its word size and byte order.
pub fn header(head: &[u8]) -> Result<(Header, Ctx), Error> {
    if head.len() < 16 || !head.starts_with(ELFMAG) {
        return Err(Error::new(0, "truncated ELF header"));
    }
    let container = match head[4] {
        1 => Container::Little,
        2 => Container::Big,
        class => return Err(error!(4; "unknown ELF class {class}")),
    };
    let order = match head[5] {
        1 => scroll::Endian::Little,
        2 => scroll::Endian::Big,
        order => return Err(error!(5; "unknown ELF byte order {order}")),
    };
    let header = head
        .pread::<Header>(0)
        .map_err(|error| error!(0; "ELF header: {error}"))?;
    Ok((header, Ctx::new(container, order)))
}

impl Elf {
    pub fn read(bytes: &Bytes) -> Result<Elf, Error> {
        let head = bytes.head(64)?;
        let (header, ctx) = header(&head)?;
        let mut elf = Elf {
            bytes: bytes.clone(),
            header,
            segments: Vec::new(),
            sections: Vec::new(),
            problems: Vec::new(),
            ctx,
        };
        if let Err(error) = elf.read_segments() {
            elf.problems.push(error);
        }
        if let Err(error) = elf.read_sections() {
            elf.problems.push(error);
        }
        Ok(elf)
    }

    pub fn os_abi(&self) -> u8 {
        self.header.e_ident[EI_OSABI]
    }

    pub fn abi_version(&self) -> u8 {
        self.header.e_ident[EI_ABIVERSION]
    }

    fn read_segments(&mut self) -> Result<(), Error> {
        let count = usize::from(self.header.e_phnum);
        if count == 0 {
            return Ok(());
        }
        let entry = ProgramHeader::size(self.ctx);
        let table = self.table("program headers", self.header.e_phoff, count, entry)?;
        for n in 0..count {
            let header = table.pread_with(n * entry, self.ctx);
            self.segments.push(header.map_err(|error| {
                let at = self.header.e_phoff + (n * entry) as u64;
                error!(at; "program header {n}: {error}")
            })?);
        }
        Ok(())
    }

    fn table(&self, what: &str, at: u64, count: usize, entry: usize) -> Result<Vec<u8>, Error> {
        let outside = || {
            let size = self.bytes.size();
            error!(at; "{count} {what} extend past the end of the ELF file ({size} bytes)")
        };
        let size = (count as u64).checked_mul(entry as u64);
        let size = size.ok_or_else(outside)?;
        self.bytes.slice(at, size).map_err(|_| outside())?;
        self.bytes.read(at, size)
    }

    fn read_sections(&mut self) -> Result<(), Error> {
        let at = self.header.e_shoff;
        if at == 0 {
            return Ok(());
        }
        let entry = SectionHeader::size(self.ctx);
        let parse = |bytes: &[u8], n: usize| -> Result<SectionHeader, Error> {
            bytes
                .pread_with(n * entry, self.ctx)
                .map_err(|error| error!(at + (n * entry) as u64; "section header {n}: {error}"))
        };
        // Values that do not fit in the ELF header are in the first section's header.
        let first = parse(&self.table("section headers", at, 1, entry)?, 0)?;
        let count = match self.header.e_shnum {
            0 => usize::try_from(first.sh_size).unwrap_or(usize::MAX),
            count => usize::from(count),
        };
        let names = match u32::from(self.header.e_shstrndx) {
            SHN_XINDEX => first.sh_link,
            index => index,
        };
        if count > MAX_SECTIONS {
            return Err(error!(at; "an ELF file claims {count} sections"));
        }
        let table = self.table("section headers", at, count, entry)?;
        let headers: Vec<SectionHeader> = (0..count)
            .map(|n| parse(&table, n))
            .collect::<Result<_, _>>()?;
        let names = match headers.get(names as usize) {
            Some(section) => self.strings(section)?,
            None if names == SHN_UNDEF => Vec::new(),
            None => {
                self.problems
                    .push(error!(at; "section names in section {names}, which does not exist"));
                Vec::new()
            }
        };
        let size = self.bytes.size();
        let limit = Limit::of_shared(size.min(MAX_NAMES_READ / 4), "MiB of names of sections");
        for (n, mut header) in headers.into_iter().enumerate() {
            let is_memory = [SHT_CUDA_GLOBAL, SHT_CUDA_SHARED].contains(&header.sh_type);
            if self.header.e_machine == EM_CUDA && is_memory {
                header.sh_type = SHT_NOBITS;
            }
            let section = Section {
                name: string(&names, header.sh_name),
                header,
            };
            if let Some((start, length)) = section.range()
                && n > 0
                && self.problems.len() < MAX_PROBLEMS
                && start.checked_add(length).is_none_or(|end| end > size)
            {
                let what = format!(
                    "section {} extends past the end of the ELF file ({size} bytes)",
                    section.name
                );
                self.problems.push(Error::new(start, what));
            }
            let allowed = limit.take(section.name.len() as u64);
            allowed.map_err(|why| error!(at; "an ELF file has {why}: the rest is not read"))?;
            self.sections.push(section);
        }
        Ok(())
    }

    fn strings(&self, section: &SectionHeader) -> Result<Vec<u8>, Error> {
        let (at, size) = (section.sh_offset, section.sh_size);
        if size > MAX_NAMES {
            return Err(error!(at; "a table of names with {size} bytes"));
        }
        self.bytes
            .read(at, size)
            .map_err(|_| Error::new(at, "a table of names extends past the end of the ELF file"))
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The symbols with names that `wanted` accepts, sorted by name. A name that occurs several times is returned
    /// once, as a definition if there is one.
    pub fn symbols(&mut self, wanted: impl Fn(&str) -> bool) -> Vec<Symbol> {
        let mut found: HashMap<String, Symbol> = HashMap::new();
        for symbol in self.all_symbols(|name, _| wanted(name)) {
            let known = found.entry(symbol.name.clone());
            let known = known.or_insert_with(|| symbol.clone());
            if known.undefined {
                *known = symbol;
            }
        }
        let mut found: Vec<Symbol> = found.into_values().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// The symbols that `wanted` accepts, in the order of the file. Local symbols can have the same name. If a limit is
    /// reached, the rest is not read, which is a problem.
    pub fn all_symbols(&mut self, wanted: impl Fn(&str, &Sym) -> bool) -> Vec<Symbol> {
        let mut found = Vec::new();
        let tables: Vec<SectionHeader> = self
            .sections
            .iter()
            .filter(|section| [SHT_SYMTAB, SHT_DYNSYM].contains(&section.header.sh_type))
            .map(|section| section.header.clone())
            .collect();
        let limits = SymbolLimits::new(self.bytes.size());
        for table in tables {
            if let Err(error) = self.symbols_in(&table, &wanted, &limits, &mut found)
                && self.problems.len() < MAX_PROBLEMS
                && !self.problems.contains(&error)
            {
                self.problems.push(error);
            }
        }
        found
    }

    fn symbols_in(
        &self,
        table: &SectionHeader,
        wanted: &impl Fn(&str, &Sym) -> bool,
        limits: &SymbolLimits,
        found: &mut Vec<Symbol>,
    ) -> Result<(), Error> {
        let names = self.sections.get(table.sh_link as usize).ok_or_else(|| {
            error!(table.sh_offset; "symbol names in section {}, which does not exist", table.sh_link)
        })?;
        let at = table.sh_offset;
        let reached = |why: String| error!(0; "an ELF file has {why}: the rest is not read");
        limits.tables.take(table.sh_size).map_err(reached)?;
        limits.tables.take(names.header.sh_size).map_err(reached)?;
        let names = self.strings(&names.header)?;
        let outside = |_| error!(at; "a table of symbols extends past the end of the ELF file");
        let entry = Sym::size(self.ctx.container) as u64;
        let all = self.bytes.slice(at, table.sh_size).map_err(outside)?;
        // Read in parts, to limit the memory.
        let step = entry * 4096;
        let mut done = 0;
        while all.size() - done >= entry {
            let size = step.min((all.size() - done) / entry * entry);
            let part = all.read(done, size).map_err(|error| error.shifted(at))?;
            for n in 0..size / entry {
                let symbol: Sym = part
                    .pread_with((n * entry) as usize, self.ctx)
                    .map_err(|error| error!(at + done + n * entry; "symbol: {error}"))?;
                let Some(name) = text(&names, symbol.st_name) else {
                    continue;
                };
                limits.all_names.take(name.len() as u64).map_err(reached)?;
                if wanted(name, &symbol) {
                    limits.number.take(1).map_err(reached)?;
                    limits.names.take(name.len() as u64).map_err(reached)?;
                    found.push(Symbol {
                        name: name.to_owned(),
                        index: (done / entry + n) as usize,
                        kind: symbol.st_type(),
                        other: symbol.st_other,
                        value: symbol.st_value,
                        size: symbol.st_size,
                        undefined: symbol.st_shndx as u32 == SHN_UNDEF,
                        section: symbol.st_shndx,
                    });
                }
            }
            done += size;
        }
        Ok(())
    }

    /// Reads the first `size` bytes of the object that a symbol of a linked file refers to. `None` if they are not in the
    /// file.
    pub fn value(&self, symbol: &Symbol, size: u64) -> Option<Vec<u8>> {
        if symbol.undefined {
            return None;
        }
        let section = &self.sections.get(symbol.section)?.header;
        if section.sh_type == SHT_NOBITS {
            return None;
        }
        let at = symbol.value.checked_sub(section.sh_addr)?;
        let inside = at
            .checked_add(size)
            .is_some_and(|end| end <= section.sh_size);
        let at = section.sh_offset.checked_add(at).filter(|_| inside)?;
        self.bytes.read(at, size).ok()
    }

    /// The notes, from the `PT_NOTE` segments, or from the sections if there are none.
    pub fn notes(&mut self) -> Vec<Note> {
        let segments = self.segments.iter();
        let mut ranges: Vec<(u64, u64, u64)> = segments
            .filter(|segment| segment.p_type == PT_NOTE)
            .map(|segment| (segment.p_offset, segment.p_filesz, segment.p_align))
            .collect();
        if ranges.is_empty() {
            let sections = self.sections.iter();
            ranges = sections
                .filter(|section| section.header.sh_type == SHT_NOTE)
                .map(|section| {
                    let header = &section.header;
                    (header.sh_offset, header.sh_size, header.sh_addralign)
                })
                .collect();
        }
        ranges.dedup();
        let mut notes = Vec::new();
        for (at, size, align) in ranges {
            if let Err(error) = self.notes_in(at, size, align, &mut notes) {
                self.problems.push(error);
            }
            if self.problems.len() > MAX_PROBLEMS {
                break;
            }
        }
        notes
    }

    /// Appends the notes in a range of the file. Descriptions are not read: metadata can be large.
    fn notes_in(&self, at: u64, size: u64, align: u64, to: &mut Vec<Note>) -> Result<(), Error> {
        const HEADER: u64 = size_of::<Nhdr32>() as u64;
        let outside = |_| Error::new(at, "notes extend past the end of the ELF file");
        let all = self.bytes.slice(at, size).map_err(outside)?;
        let align = if align == 8 { 8 } else { 4 };
        let mut next = 0;
        while size - next >= HEADER {
            let here = at + next;
            let read = |from, size| all.read(from, size).map_err(|error| error.shifted(at));
            // The same in both classes.
            let header: Nhdr32 = read(next, HEADER)?
                .pread_with(0, self.ctx.le)
                .map_err(|error| error!(here; "note: {error}"))?;
            let name = u64::from(header.n_namesz);
            let description = u64::from(header.n_descsz);
            // The name follows the header without padding.
            let start = (HEADER + name).next_multiple_of(align);
            let end = start + description;
            if next + end > size {
                return Err(error!(here; "a note extends past the end of its section"));
            }
            // Names that matter are shorter.
            let text = read(next + HEADER, name.min(16))?;
            let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
            to.push(Note {
                name: text.to_vec(),
                kind: header.n_type,
                at: here + start,
                size: description,
            });
            next = (next + end.next_multiple_of(align)).min(size);
            if to.len() > MAX_NOTES {
                return Err(error!(here; "more than {MAX_NOTES} notes"));
            }
        }
        Ok(())
    }

    /// The GNU build ID in hexadecimal.
    pub fn build_id(&self, notes: &[Note]) -> Option<String> {
        let note = notes.iter().find(|note| {
            note.name == b"GNU" && note.kind == NT_GNU_BUILD_ID && (1..=64).contains(&note.size)
        })?;
        let id = self.bytes.read(note.at, note.size).ok()?;
        Some(profraw::hex(&id))
    }
}

/// The name at offset `at`, cut to [`MAX_NAME`] bytes; empty if it is out of bounds.
fn string(names: &[u8], at: usize) -> String {
    let bytes = names.get(at..).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(MAX_NAME)];
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name at offset `at`. `None` if it is out of bounds, too long or not UTF-8.
fn text(names: &[u8], at: usize) -> Option<&str> {
    let bytes = names.get(at..)?;
    let mut start = bytes.iter().take(MAX_SYMBOL_NAME);
    let end = start.position(|&byte| byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}
