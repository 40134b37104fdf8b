//! The tables of an ELF file of any class and byte order, read one by one, each checked against the file's size first.

use crate::bytes::{Bad, Bytes};
use goblin::container::{Container, Ctx};
use goblin::elf::header::{EI_ABIVERSION, EI_OSABI, ELFMAG, Header};
use goblin::elf::program_header::{PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{
    SHN_UNDEF, SHN_XINDEX, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_SYMTAB, SectionHeader,
};
use goblin::elf::sym::Sym;
use scroll::Pread;
use std::collections::HashMap;

/// The most bytes that a table of names or symbols, or notes, are read of: what real files have is far below.
const MOST: u64 = 256 << 20;

/// More sections than a program of any size has.
const MOST_SECTIONS: usize = 500_000;
/// Longer names are cut.
const MOST_NAME: usize = 512;
/// More problems, or symbols of one kind, say nothing new.
const MOST_PROBLEMS: usize = 64;
const MOST_SYMBOLS: usize = 65_536;

/// A section, by name.
#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    pub header: SectionHeader,
}

impl Section {
    /// Where its bytes are in the file; none for those that have no bytes there.
    pub fn range(&self) -> Option<(u64, u64)> {
        (self.header.sh_type != SHT_NOBITS).then_some((self.header.sh_offset, self.header.sh_size))
    }
}

/// A symbol that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub value: u64,
    pub size: u64,
    /// It is defined in another file.
    pub undefined: bool,
    /// Index of its section.
    pub section: usize,
}

/// A note: where its description is, in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub name: Vec<u8>,
    pub kind: u32,
    pub at: u64,
    pub size: u64,
}

/// The headers of an ELF file.
pub struct Elf {
    pub bytes: Bytes,
    pub header: Header,
    pub segments: Vec<ProgramHeader>,
    pub sections: Vec<Section>,
    /// What could not be read; all else was.
    pub problems: Vec<Bad>,
    ctx: Ctx,
}

/// The file's header and its word size and byte order, from its first 64 bytes.
pub fn header(head: &[u8]) -> Result<(Header, Ctx), Bad> {
    let bad = |what: &str| Bad::new(0, what);
    if head.len() < 16 || !head.starts_with(ELFMAG) {
        return Err(bad("an ELF file's header is cut off"));
    }
    let container = match head[4] {
        1 => Container::Little,
        2 => Container::Big,
        class => return Err(Bad::new(4, format!("an ELF file of class {class}"))),
    };
    let order = match head[5] {
        1 => scroll::Endian::Little,
        2 => scroll::Endian::Big,
        order => return Err(Bad::new(5, format!("an ELF file of byte order {order}"))),
    };
    let header = head
        .pread::<Header>(0)
        .map_err(|error| Bad::new(0, format!("an ELF file's header: {error}")))?;
    Ok((header, Ctx::new(container, order)))
}

impl Elf {
    pub fn read(bytes: &Bytes) -> Result<Elf, Bad> {
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
        if let Err(bad) = elf.read_segments() {
            elf.problems.push(bad);
        }
        if let Err(bad) = elf.read_sections() {
            elf.problems.push(bad);
        }
        Ok(elf)
    }

    pub fn os_abi(&self) -> u8 {
        self.header.e_ident[EI_OSABI]
    }

    pub fn abi_version(&self) -> u8 {
        self.header.e_ident[EI_ABIVERSION]
    }

    fn read_segments(&mut self) -> Result<(), Bad> {
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
                Bad::new(at, format!("program header {n}: {error}"))
            })?);
        }
        Ok(())
    }

    fn table(&self, what: &str, at: u64, count: usize, entry: usize) -> Result<Vec<u8>, Bad> {
        let outside = || {
            let size = self.bytes.size();
            Bad::new(
                at,
                format!("{count} {what} end beyond the ELF file's {size} bytes"),
            )
        };
        let size = (count as u64).checked_mul(entry as u64);
        let size = size.ok_or_else(outside)?;
        self.bytes.slice(at, size).map_err(|_| outside())?;
        self.bytes.read(at, size)
    }

    fn read_sections(&mut self) -> Result<(), Bad> {
        let at = self.header.e_shoff;
        if at == 0 {
            return Ok(());
        }
        let entry = SectionHeader::size(self.ctx);
        let parse = |bytes: &[u8], n: usize| -> Result<SectionHeader, Bad> {
            bytes.pread_with(n * entry, self.ctx).map_err(|error| {
                Bad::new(
                    at + (n * entry) as u64,
                    format!("section header {n}: {error}"),
                )
            })
        };
        // What the header has no room for is in the first section's header.
        let first = parse(&self.table("section headers", at, 1, entry)?, 0)?;
        let count = match self.header.e_shnum {
            0 => usize::try_from(first.sh_size).unwrap_or(usize::MAX),
            count => usize::from(count),
        };
        let names = match u32::from(self.header.e_shstrndx) {
            SHN_XINDEX => first.sh_link,
            index => index,
        };
        if count > MOST_SECTIONS {
            return Err(Bad::new(
                at,
                format!("an ELF file that claims {count} sections"),
            ));
        }
        let table = self.table("section headers", at, count, entry)?;
        let headers: Vec<SectionHeader> = (0..count)
            .map(|n| parse(&table, n))
            .collect::<Result<_, _>>()?;
        let names = match headers.get(names as usize) {
            Some(section) => self.strings(section)?,
            None if names == SHN_UNDEF => Vec::new(),
            None => {
                let what = format!("the sections' names are said to be in section {names}");
                self.problems.push(Bad::new(at, what));
                Vec::new()
            }
        };
        let size = self.bytes.size();
        for (n, header) in headers.into_iter().enumerate() {
            let section = Section {
                name: string(&names, header.sh_name),
                header,
            };
            if let Some((start, length)) = section.range()
                && n > 0
                && self.problems.len() < MOST_PROBLEMS
                && start.checked_add(length).is_none_or(|end| end > size)
            {
                let what = format!(
                    "section {} ends beyond the ELF file's {size} bytes",
                    section.name
                );
                self.problems.push(Bad::new(start, what));
            }
            self.sections.push(section);
        }
        Ok(())
    }

    fn strings(&self, section: &SectionHeader) -> Result<Vec<u8>, Bad> {
        let (at, size) = (section.sh_offset, section.sh_size);
        if size > MOST {
            return Err(Bad::new(at, format!("a table of names of {size} bytes")));
        }
        self.bytes
            .read(at, size)
            .map_err(|_| Bad::new(at, "a table of names ends beyond the ELF file"))
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The symbols whose names `wanted` says yes to, each once.
    pub fn symbols(&mut self, wanted: impl Fn(&str) -> bool) -> Vec<Symbol> {
        let mut found: HashMap<String, Symbol> = HashMap::new();
        let tables: Vec<SectionHeader> = self
            .sections
            .iter()
            .filter(|section| [SHT_SYMTAB, SHT_DYNSYM].contains(&section.header.sh_type))
            .map(|section| section.header.clone())
            .collect();
        for table in tables {
            match self.symbols_in(&table, &wanted) {
                Ok(symbols) => {
                    for symbol in symbols {
                        let known = found.entry(symbol.name.clone());
                        let known = known.or_insert_with(|| symbol.clone());
                        if known.undefined {
                            *known = symbol;
                        }
                    }
                }
                Err(bad) => self.problems.push(bad),
            }
        }
        let mut found: Vec<Symbol> = found.into_values().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn symbols_in(
        &self,
        table: &SectionHeader,
        wanted: &impl Fn(&str) -> bool,
    ) -> Result<Vec<Symbol>, Bad> {
        let names = self.sections.get(table.sh_link as usize).ok_or_else(|| {
            let what = format!(
                "the symbols' names are said to be in section {}",
                table.sh_link
            );
            Bad::new(table.sh_offset, what)
        })?;
        let names = self.strings(&names.header)?;
        let at = table.sh_offset;
        let outside = |_| Bad::new(at, "a table of symbols ends beyond the ELF file");
        let entry = Sym::size(self.ctx.container) as u64;
        let all = self.bytes.slice(at, table.sh_size).map_err(outside)?;
        let mut found = Vec::new();
        // A part at a time.
        let step = entry * 4096;
        let mut done = 0;
        while all.size() - done >= entry {
            let size = step.min((all.size() - done) / entry * entry);
            let part = all.read(done, size).map_err(|bad| bad.moved(at))?;
            for n in 0..size / entry {
                let symbol: Sym =
                    part.pread_with((n * entry) as usize, self.ctx)
                        .map_err(|error| {
                            Bad::new(at + done + n * entry, format!("a symbol: {error}"))
                        })?;
                let Some(name) = text(&names, symbol.st_name) else {
                    continue;
                };
                if wanted(name) && found.len() < MOST_SYMBOLS {
                    found.push(Symbol {
                        name: name.to_owned(),
                        value: symbol.st_value,
                        size: symbol.st_size,
                        undefined: symbol.st_shndx as u32 == SHN_UNDEF,
                        section: symbol.st_shndx,
                    });
                }
            }
            done += size;
        }
        Ok(found)
    }

    /// Reads what a symbol of a linked file stands for.
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

    /// The notes, from the segments where there are some, else from the sections.
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
            if let Err(bad) = self.notes_in(at, size, align, &mut notes) {
                self.problems.push(bad);
            }
        }
        notes
    }

    fn notes_in(&self, at: u64, size: u64, align: u64, to: &mut Vec<Note>) -> Result<(), Bad> {
        let outside = |_| Bad::new(at, "notes end beyond the ELF file");
        let all = self.bytes.slice(at, size).map_err(outside)?;
        let align = if align == 8 { 8 } else { 4 };
        let mut next = 0;
        while size - next >= 12 {
            let here = at + next;
            let head = all.read(next, 12).map_err(|bad| bad.moved(at))?;
            let word = |n: usize| -> Result<u32, Bad> {
                head.pread_with(4 * n, self.ctx.le)
                    .map_err(|error| Bad::new(here, format!("a note: {error}")))
            };
            let (name, description) = (u64::from(word(0)?), u64::from(word(1)?));
            let padded = |size: u64| size.next_multiple_of(align);
            // The name follows the header without a gap; both together are padded.
            let start = padded(12 + name);
            let end = start + description;
            if next + end > size {
                return Err(Bad::new(here, "a note ends beyond its section"));
            }
            // No name that is known is longer.
            let wanted = name.min(16);
            let text = all.read(next + 12, wanted).map_err(|bad| bad.moved(at))?;
            let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
            to.push(Note {
                name: text.to_vec(),
                kind: word(2)?,
                at: here + start,
                size: description,
            });
            next = (next + padded(end)).min(size);
            if to.len() > 1 << 16 {
                return Err(Bad::new(here, "more than 65,536 notes"));
            }
        }
        Ok(())
    }

    /// The GNU build ID, as people write it.
    pub fn build_id(&self, notes: &[Note]) -> Option<String> {
        let note = notes
            .iter()
            .find(|note| note.name == b"GNU" && note.kind == 3 && (1..=64).contains(&note.size))?;
        let id = self.bytes.read(note.at, note.size).ok()?;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The text at `at`; empty when there is none.
fn string(names: &[u8], at: usize) -> String {
    let bytes = names.get(at..).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(MOST_NAME)];
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The text at `at`, if it is one.
fn text(names: &[u8], at: usize) -> Option<&str> {
    let bytes = names.get(at..)?;
    let end = bytes.iter().take(MOST_NAME).position(|&byte| byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}
