//! Reads a cubin: which counters it has, and its records and names, which are constant.
//!
//! clang defines for each instrumented function NAME: its record `__profd_NAME`, its counters `__profc_NAME`, its uniform
//! counters `__llvm_prf_unifcnt_NAME`, and, with MC/DC, the bitmap of its decisions `__profbm_NAME`. The names of a translation unit's functions are in a local variable
//! `__llvm_prf_nm`; after a device link there are several, and LTO appends a number. The raw version is in
//! `__llvm_profile_raw_version`. With byte coverage a counter is one byte, which is cleared when its code runs. clang defines
//! uniform counters then as well, but no code counts in them.

#![forbid(unsafe_code)]

use crate::support::alloc::{self, OutOfMemory};
use byteorder::{ByteOrder, LittleEndian};
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::Header;
use goblin::elf::{SectionHeader, Sym, Symtab};
use profraw::format::{COUNTER, DataRecord, V11, counter_size};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString};
use std::ops::Range;

/// `EM_CUDA`
const MACHINE: u16 = 190;
/// The raw version of a cubin that does not contain it: front-end instrumentation of clang 23.
const DEFAULT_VERSION: u64 = 11;
/// In `st_other`: the function is a kernel.
const ENTRY: u8 = 0x10;
pub const CONTEXT: Ctx = Ctx {
    container: Container::Big,
    le: Endian::Little,
};
/// The size of the bounds table, bytes (`INSTR_PROF_GPU_SECT` in InstrProfData.inc).
pub const TABLE: u64 = 72;

const RECORD: &[u8] = b"__profd_";
pub const COUNTERS: &[u8] = b"__profc_";
pub const UNIFORM: &[u8] = b"__llvm_prf_unifcnt_";
const BITMAP: &[u8] = b"__profbm_";
const NAMES_TEXT: &str = "__llvm_prf_nm";
const NAMES: &[u8] = NAMES_TEXT.as_bytes();
const VERSION: &[u8] = b"__llvm_profile_raw_version";

/// Why a cubin cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("{what} at offset {offset:#x} is outside the image of {size} bytes")]
    Outside {
        what: &'static str,
        offset: u64,
        size: usize,
    },
    #[error("not an ELF file for CUDA")]
    NotCuda,
    #[error("it has records but no names ({})", String::from_utf8_lossy(NAMES))]
    NoNames,
    #[error("record {0} has {1} bytes instead of {record}", record = V11.record)]
    RecordSize(String, u64),
    #[error("{0} has no counters, or not as many as its record says")]
    Counters(String),
    #[error("it needs more than 4 GiB")]
    TooLarge,
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Counters, or the bitmap, of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The variable.
    pub symbol: CString,
    /// Virtual addresses.
    pub range: Range<u64>,
}

/// An instrumented cubin.
#[derive(Debug, PartialEq, Eq)]
pub struct Image {
    /// `sm_` and the number of the architecture, such as `sm_90`.
    pub arch: String,
    /// Virtual address of the first byte.
    pub base: u64,
    /// The bytes from there on: the bounds table, the version, the names and the records. Constant.
    pub head: Vec<u8>,
    /// All counters, then all bitmaps, in ascending order of their ranges, which are adjacent. They follow the head.
    pub counters: Vec<Counters>,
    /// The size of one counter, bytes: 1 with byte coverage, otherwise 8.
    pub counter: u64,
    /// The build id.
    pub id: [u8; 16],
    /// devprof has instrumented it in this process, so no file has its coverage mapping.
    pub is_of_process: bool,
    /// One of its kernels. Code without kernels counts nothing.
    pub kernel: Option<CString>,
}

/// See [`unused_bitmaps`]: memory that a damaged record may take, bytes.
const LARGEST_UNUSED: u64 = 1 << 20;

/// Whether a variable is a bitmap, not counters.
pub fn is_bitmap(variable: &Counters) -> bool {
    variable.symbol.to_bytes().starts_with(BITMAP)
}

impl Image {
    /// The records in the head, each with its variable.
    pub fn records(&self) -> impl Iterator<Item = (CString, DataRecord)> {
        let count = self.counters.iter().map_while(|counters| {
            let function = counters.symbol.to_bytes().strip_prefix(COUNTERS)?;
            symbol(RECORD, function).ok()
        });
        let start = self.head.len() - count.clone().count() * V11.record;
        let records = self.head[start..].chunks_exact(V11.record);
        count.zip(records.filter_map(|bytes| V11.read_record(bytes)))
    }

    /// Virtual addresses.
    pub fn range(&self) -> Range<u64> {
        let end = self.counters.last().map(|last| last.range.end);
        self.base..end.unwrap_or(self.base + self.head.len() as u64)
    }
}

/// The variables of a cubin's profile.
#[derive(Default)]
struct Variables<'a> {
    by_name: HashMap<&'a [u8], Variable<'a>>,
    /// The content of each `__llvm_prf_nm`, by its address in the section.
    names: BTreeMap<u64, &'a [u8]>,
    /// The first kernel.
    kernel: Option<&'a CStr>,
}

/// A variable in the cubin.
struct Variable<'a> {
    /// Its bytes; `None` if it is in a section without content.
    bytes: Option<&'a [u8]>,
    size: u64,
}

/// Whether a cubin is instrumented. Reads only its headers and its symbols: the rest of a large library, which the driver may
/// never read, stays on disk.
pub fn is_instrumented(cubin: &[u8]) -> Result<bool, Damage> {
    let mut is_found = false;
    let sections = Sections::parse(cubin)?;
    sections.each_symbol(|name, _| {
        is_found |= name.to_bytes().starts_with(RECORD);
        Ok(())
    })?;
    Ok(is_found)
}

/// Whether PTX is instrumented.
pub fn is_instrumented_text(ptx: &[u8]) -> bool {
    let mut chunks = ptx.utf8_chunks();
    chunks.any(|chunk| chunk.valid().contains(NAMES_TEXT))
}

/// Reads a cubin. `None` if it is not instrumented. `base`: the virtual address of its first byte.
pub fn read(cubin: &[u8], base: u64) -> Result<Option<Image>, Damage> {
    let (arch, variables) = variables(cubin)?;
    let Variables {
        by_name: variables,
        names,
        kernel,
    } = variables;
    let mut functions: Vec<&[u8]> = variables
        .keys()
        .filter_map(|name| name.strip_prefix(RECORD))
        .collect();
    if functions.is_empty() {
        return Ok(None);
    }
    // The order of symbols differs between builds.
    functions.sort_unstable();
    // Several lists of names in a row are a valid list.
    let lists = names.into_values();
    let mut names = Vec::new();
    for list in lists {
        // Variables may overlap, so all together may be larger than the file.
        alloc::reserve(&mut names, list.len())?;
        names.extend_from_slice(list);
    }
    if names.is_empty() {
        return Err(Damage::NoNames);
    }
    let version = variables
        .get(VERSION)
        .and_then(|version| version.bytes)
        .filter(|bytes| bytes.len() >= 8)
        .map_or(DEFAULT_VERSION, LittleEndian::read_u64);
    let layout = Layout::new(
        base,
        names.len(),
        unused_bitmaps(&variables, &functions)?,
        functions.len(),
    );
    let size = usize::try_from(layout.data.end - base).map_err(|_| Damage::TooLarge)?;
    let mut head = alloc::zeroed(size)?;
    let at = |address: u64| (address - base) as usize;
    LittleEndian::write_u64(&mut head[at(layout.version)..], version);
    head[at(layout.names.start)..at(layout.names.end)].copy_from_slice(&names);
    let (mut counters, mut uniform) = (Vec::new(), Vec::new());
    let mut next = layout.data.end;
    let counter = counter_size(version);
    // All counters first, then all uniform counters: each is a section.
    for function in &functions {
        let (symbol, size) = counters_of(&variables, COUNTERS, function, counter)?;
        let size = size.ok_or_else(|| Damage::Counters(text(function)))?;
        counters.push(Counters {
            symbol,
            range: next..next + size,
        });
        next += size;
    }
    let counters_end = next;
    if counter != COUNTER {
        // An empty section, at an address that is aligned.
        next = layout.data.end;
    }
    let uniform_start = next;
    for function in &functions {
        let (symbol, size) = counters_of(&variables, UNIFORM, function, COUNTER)?;
        uniform.push(size.filter(|_| counter == COUNTER).map(|size| {
            let range = next..next + size;
            next += size;
            Counters { symbol, range }
        }));
    }
    let uniform_end = next;
    next = next.max(counters_end);
    let mut bitmaps = Vec::new();
    for (n, function) in functions.iter().enumerate() {
        let address = layout.data.start + (n * V11.record) as u64;
        let bytes = record(&variables, function)?;
        let mut record = V11
            .read_record(bytes)
            .ok_or_else(|| Damage::RecordSize(text(function), bytes.len() as u64))?;
        let size = u64::from(record.num_counters.get()) * counter;
        let sizes = [Some(&counters[n]), uniform[n].as_ref()];
        if sizes
            .into_iter()
            .flatten()
            .any(|counters| counters.range.end - counters.range.start != size)
        {
            return Err(Damage::Counters(text(function)));
        }
        record.counter_ptr = counters[n].range.start.wrapping_sub(address).into();
        record.uniform_counter_ptr = match &uniform[n] {
            Some(uniform) => uniform.range.start.wrapping_sub(address).into(),
            None => 0.into(),
        };
        let size = u64::from(record.num_bitmap_bytes.get());
        let (symbol, found) = counters_of(&variables, BITMAP, function, 1)?;
        let start = match found {
            _ if size == 0 => None,
            Some(found) if found == size => {
                let range = next..next + size;
                next += size;
                bitmaps.push(Counters { symbol, range });
                Some(next - size)
            }
            None if size <= layout.unused_bitmaps.end - layout.unused_bitmaps.start => {
                Some(layout.unused_bitmaps.start)
            }
            // The pointer is not valid, and the drain reports that the bitmap is lost.
            _ => None,
        };
        record.bitmap_ptr = start.map_or(0, |start| start.wrapping_sub(address)).into();
        let to = &mut head[at(address)..];
        V11.write_record(&record, to).ok_or(Damage::TooLarge)?;
    }
    if next - base > u64::from(u32::MAX) {
        return Err(Damage::TooLarge);
    }
    let table = [
        layout.names,
        layout.data.end..counters_end,
        layout.data,
        uniform_start..uniform_end,
    ];
    let words = table.iter().flat_map(|range| [range.start, range.end]);
    for (n, word) in words.chain([layout.version]).enumerate() {
        LittleEndian::write_u64(&mut head[8 * n..], word);
    }
    counters.extend(uniform.into_iter().flatten());
    counters.extend(bitmaps);
    Ok(Some(Image {
        arch,
        base,
        head,
        counters,
        counter,
        id: id(cubin),
        is_of_process: variables
            .get(ptx::MARKER.as_bytes())
            .is_some_and(|marker| marker.bytes == Some(&[ptx::Origin::Process as u8])),
        kernel: kernel.map(CStr::to_owned),
    }))
}

/// The size of the largest bitmap that no code of the cubin uses, bytes: the compiler has removed the variable, but not its size
/// from the record. Its bits are 0. A larger one than [`LARGEST_UNUSED`] is not valid.
fn unused_bitmaps(
    variables: &HashMap<&[u8], Variable>,
    functions: &[&[u8]],
) -> Result<u64, Damage> {
    let mut largest = 0;
    for function in functions {
        let record = V11.read_record(record(variables, function)?);
        let size = record.map_or(0, |record| u64::from(record.num_bitmap_bytes.get()));
        // Most records have none, and the search takes memory.
        if (largest + 1..=LARGEST_UNUSED).contains(&size)
            && counters_of(variables, BITMAP, function, 1)?.1.is_none()
        {
            largest = size;
        }
    }
    Ok(largest)
}

/// The names of a cubin's kernels.
pub fn kernels(cubin: &[u8]) -> Result<Vec<&CStr>, Damage> {
    let mut found = Vec::new();
    Sections::parse(cubin)?.each_symbol(|name, symbol| {
        if is_kernel(&symbol) {
            found.push(name);
        }
        Ok(())
    })?;
    Ok(found)
}

fn is_kernel(symbol: &Sym) -> bool {
    symbol.st_type() == goblin::elf::sym::STT_FUNC
        && symbol.st_other & ENTRY != 0
        && symbol.st_shndx != 0
}

/// The build id of a cubin.
pub fn id(cubin: &[u8]) -> [u8; 16] {
    let mut id = fatbin::CubinId::new();
    id.update(cubin);
    id.finish()
}

/// The virtual addresses of the parts after the bounds table.
struct Layout {
    version: u64,
    names: Range<u64>,
    /// Zeros.
    unused_bitmaps: Range<u64>,
    data: Range<u64>,
}

impl Layout {
    fn new(base: u64, names: usize, unused_bitmaps: u64, functions: usize) -> Layout {
        let version = base + TABLE;
        let names = version + 8..version + 8 + names as u64;
        let unused_bitmaps = names.end..names.end + unused_bitmaps;
        let data = unused_bitmaps.end.next_multiple_of(8);
        Layout {
            version,
            names,
            unused_bitmaps,
            data: data..data + (functions * V11.record) as u64,
        }
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn symbol(prefix: &[u8], name: &[u8]) -> Result<CString, Damage> {
    // Names come from a string table, where a NUL byte ends them.
    CString::new([prefix, name].concat()).map_err(|_| Damage::NotCuda)
}

/// The variable with a function's counters of `counter` bytes, and its size in bytes if it exists.
fn counters_of(
    variables: &HashMap<&[u8], Variable>,
    prefix: &[u8],
    function: &[u8],
    counter: u64,
) -> Result<(CString, Option<u64>), Damage> {
    let symbol = symbol(prefix, function)?;
    let size = variables
        .get(symbol.as_bytes())
        .map(|variable| variable.size)
        .filter(|&size| size > 0);
    if size.is_some_and(|size| size % counter != 0 || size > u64::from(u32::MAX)) {
        return Err(Damage::Counters(text(function)));
    }
    Ok((symbol, size))
}

/// The bytes of a function's record.
fn record<'a>(
    variables: &HashMap<&[u8], Variable<'a>>,
    function: &[u8],
) -> Result<&'a [u8], Damage> {
    let name = [RECORD, function].concat();
    let variable = variables.get(&name[..]);
    let size = variable.map_or(0, |variable| variable.size);
    variable
        .and_then(|variable| variable.bytes)
        .filter(|bytes| bytes.len() == V11.record)
        .ok_or_else(|| Damage::RecordSize(text(function), size))
}

/// The bytes of a part of the file.
fn part<'a>(
    cubin: &'a [u8],
    what: &'static str,
    offset: u64,
    size: u64,
) -> Result<&'a [u8], Damage> {
    let range = || {
        let start = usize::try_from(offset).ok()?;
        cubin.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    };
    range().ok_or(Damage::Outside {
        what,
        offset,
        size: cubin.len(),
    })
}

/// The sections of a cubin.
struct Sections<'a> {
    cubin: &'a [u8],
    header: Header,
    all: Vec<SectionHeader>,
}

impl<'a> Sections<'a> {
    fn parse(cubin: &'a [u8]) -> Result<Sections<'a>, Damage> {
        let header = goblin::elf::Elf::parse_header(cubin).map_err(|_| Damage::NotCuda)?;
        if header.e_machine != MACHINE || !is_supported(&header) {
            return Err(Damage::NotCuda);
        }
        let all = usize::try_from(header.e_shoff)
            .ok()
            .and_then(|at| SectionHeader::parse(cubin, at, header.e_shnum.into(), CONTEXT).ok())
            .ok_or(Damage::Outside {
                what: "the section table",
                offset: header.e_shoff,
                size: cubin.len(),
            })?;
        Ok(Sections { cubin, header, all })
    }

    /// Calls `take` with the name of each symbol.
    fn each_symbol(
        &self,
        mut take: impl FnMut(&'a CStr, Sym) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let cubin = self.cubin;
        let outside = |what, offset| Damage::Outside {
            what,
            offset,
            size: cubin.len(),
        };
        for table in &self.all {
            if table.sh_type != goblin::elf::section_header::SHT_SYMTAB {
                continue;
            }
            part(cubin, "the symbol table", table.sh_offset, table.sh_size)?;
            let names = self
                .all
                .get(table.sh_link as usize)
                .ok_or(outside("the symbols' string table", table.sh_offset))?;
            let names = part(cubin, "the string table", names.sh_offset, names.sh_size)?;
            let count = (table.sh_size / 24) as usize;
            let symbols = Symtab::parse(cubin, table.sh_offset as usize, count, CONTEXT)
                .map_err(|_| outside("the symbol table", table.sh_offset))?;
            for symbol in symbols.iter() {
                let rest = names.get(symbol.st_name..).unwrap_or_default();
                if let Ok(name) = CStr::from_bytes_until_nul(rest) {
                    take(name, symbol)?;
                }
            }
        }
        Ok(())
    }
}

/// The architecture, and the profile's variables by name.
fn variables(cubin: &[u8]) -> Result<(String, Variables<'_>), Damage> {
    let sections = Sections::parse(cubin)?;
    let mut found = Variables::default();
    sections.each_symbol(|name, symbol| {
        if found.kernel.is_none() && is_kernel(&symbol) {
            found.kernel = Some(name);
        }
        let name = name.to_bytes();
        let is_wanted = [RECORD, COUNTERS, UNIFORM, BITMAP]
            .iter()
            .any(|p| name.starts_with(p))
            || name == VERSION
            || name == ptx::MARKER.as_bytes()
            || is_names(name);
        let section = sections
            .all
            .get(symbol.st_shndx)
            .filter(|_| symbol.st_shndx != 0);
        let (true, Some(section)) = (is_wanted, section) else {
            return Ok(());
        };
        let bytes = match section.sh_type {
            goblin::elf::section_header::SHT_NOBITS => None,
            _ => {
                let offset = section.sh_offset.saturating_add(symbol.st_value);
                Some(part(cubin, "a variable", offset, symbol.st_size)?)
            }
        };
        if is_names(name) {
            found
                .names
                .extend(bytes.map(|bytes| (symbol.st_value, bytes)));
            return Ok(());
        }
        let variable = Variable {
            bytes,
            size: symbol.st_size,
        };
        found.by_name.insert(name, variable);
        Ok(())
    })?;
    Ok((format!("sm_{}", architecture(&sections.header)), found))
}

/// Whether a variable has this name, or that with a number.
fn is_names(name: &[u8]) -> bool {
    name.strip_prefix(NAMES)
        .is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

fn is_supported(header: &Header) -> bool {
    use goblin::elf::header::{EI_CLASS, EI_DATA, ELFCLASS64, ELFDATA2LSB};
    header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB
}

/// The number of the architecture. Since ABI version 8 (CUDA 13) it is in the second byte of the flags, before in the
/// first (LLVM's ELF.h, `EF_CUDA_SM`).
fn architecture(header: &Header) -> u32 {
    match header.e_ident[goblin::elf::header::EI_ABIVERSION] {
        version if version >= 8 => header.e_flags >> 8 & 0xff,
        _ => header.e_flags & 0xff,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const BASE: u64 = 3 << 32;

    /// An instrumented cubin.
    pub fn fixture() -> Vec<u8> {
        read_fixture("counted.cubin")
    }

    fn read_fixture(name: &str) -> Vec<u8> {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
        std::fs::read(std::path::Path::new(dir).join(name)).unwrap()
    }

    /// The same cubin, not instrumented.
    pub fn plain() -> Vec<u8> {
        let mut plain = fixture();
        for at in 0..plain.len() - RECORD.len() {
            if plain[at..].starts_with(RECORD) {
                plain[at] = b'x';
            }
        }
        plain
    }

    /// The bounds table: names, counters, records, uniform counters.
    fn bounds(image: &Image) -> [Range<u64>; 4] {
        let word = |n: usize| LittleEndian::read_u64(&image.head[8 * n..]);
        [0, 2, 4, 6].map(|n| word(n)..word(n + 1))
    }

    /// The record of each function refers to the function's counters.
    fn check(image: &Image) {
        let [_, counters, records, uniform] = bounds(image);
        assert_eq!(records.end, image.base + image.head.len() as u64);
        assert_eq!(records.end, counters.start);
        let mut bitmaps = image.counters.iter().skip_while(|of| !is_bitmap(of));
        let end = bitmaps
            .next()
            .map_or(image.range().end, |of| of.range.start);
        assert!(bitmaps.all(is_bitmap));
        if image.counter == COUNTER {
            assert_eq!(counters.end, uniform.start);
            assert_eq!(uniform.end, end);
        } else {
            assert_eq!(uniform, records.end..records.end);
            assert_eq!(counters.end, end);
        }
        let mut next = records.end;
        for counters in &image.counters {
            assert_eq!(counters.range.start, next);
            next = counters.range.end;
        }
        for (n, (name, record)) in image.records().enumerate() {
            let address = records.start + (n * V11.record) as u64;
            let at = address.wrapping_add(record.counter_ptr.get());
            let variable = image.counters.iter().find(|of| of.range.start == at);
            let variable = variable.expect("the counters of the record");
            let suffix = |name: &CStr, prefix: &[u8]| {
                name.to_bytes().strip_prefix(prefix).map(<[u8]>::to_vec)
            };
            assert_eq!(suffix(&variable.symbol, COUNTERS), suffix(&name, RECORD));
            let size = variable.range.end - variable.range.start;
            assert_eq!(size, u64::from(record.num_counters.get()) * image.counter);
            let size = u64::from(record.num_bitmap_bytes.get());
            if size > 0 && record.bitmap_ptr != 0 {
                let start = address.wrapping_add(record.bitmap_ptr.get());
                let is_own = |of: &&Counters| suffix(&of.symbol, BITMAP) == suffix(&name, RECORD);
                if let Some(variable) = image.counters.iter().find(is_own) {
                    assert_eq!(variable.range, start..start + size);
                } else {
                    let from = (start - image.base) as usize;
                    let zeros = &image.head[from..from + size as usize];
                    assert!(zeros.iter().all(|&byte| byte == 0));
                }
            } else {
                assert_eq!(record.bitmap_ptr, 0);
            }
        }
    }

    #[test]
    fn an_instrumented_cubin_is_presented_as_a_code_object() {
        assert_eq!(is_instrumented(&fixture()), Ok(true));
        let image = read(&fixture(), BASE).unwrap().expect("instrumented");
        assert_eq!((image.arch.as_str(), image.base), ("sm_90", BASE));
        assert_eq!(image.kernel.as_deref(), Some(c"loop"));
        assert_eq!(kernels(&fixture()), Ok(vec![c"loop", c"branch"]));
        assert!(image.records().count() > 1);
        check(&image);
    }

    #[test]
    fn byte_coverage_has_counters_of_one_byte_and_no_uniform_ones() {
        let [counted, covered] = ["counted.cubin", "covered.cubin"].map(|name| {
            let image = read(&read_fixture(name), BASE).unwrap();
            image.expect("instrumented")
        });
        check(&covered);
        assert_eq!((counted.counter, covered.counter), (COUNTER, 1));
        assert_eq!(counted.records().count(), covered.records().count());
        let uniform = |of: &Counters| of.symbol.to_bytes().starts_with(UNIFORM);
        assert!(counted.counters.iter().any(uniform));
        assert!(!covered.counters.iter().any(uniform));
    }

    #[test]
    fn bitmaps_follow_the_counters() {
        let image = read(&read_fixture("decided.cubin"), BASE).unwrap();
        let image = image.expect("instrumented");
        check(&image);
        let bitmaps = image.counters.iter().filter(|of| is_bitmap(of));
        let names: Vec<_> = bitmaps.map(|of| of.symbol.as_c_str()).collect();
        assert_eq!(names, [c"__profbm__Z4bothjj", c"__profbm_decide"]);
        let sizes: Vec<_> = image
            .records()
            .map(|(name, record)| (name, record.num_bitmap_bytes.get()))
            .collect();
        let expected = [
            (c"__profd__Z4bothjj", 1),
            (c"__profd_decide", 1),
            (c"__profd_plain", 0),
        ];
        assert_eq!(sizes, expected.map(|(name, size)| (name.to_owned(), size)));
    }

    /// ptxas removes the variable if no code uses it. If its size is damaged, the drain finds that the pointer is not valid, and
    /// reports it.
    #[test]
    fn a_record_without_its_bitmap_has_zeros() {
        let mut cubin = read_fixture("decided.cubin");
        let name = b"__profbm_decide\0";
        let at = cubin.windows(name.len()).position(|bytes| bytes == name);
        cubin[at.expect("the symbol's name")] = b'x';
        let image = read(&cubin, BASE).unwrap().expect("instrumented");
        check(&image);
        let (_, record) = image.records().nth(1).unwrap();
        assert_ne!(record.bitmap_ptr, 0);
        for (size, is_valid) in [(LARGEST_UNUSED, true), (LARGEST_UNUSED + 1, false)] {
            let mut damaged = cubin.clone();
            let hash = record.func_hash.get().to_le_bytes();
            let name = record.name_ref.get().to_le_bytes();
            let start = [name, hash].concat();
            let at = damaged.windows(16).position(|bytes| bytes == start);
            let end = at.expect("the record") + V11.record;
            damaged[end - 4..end].copy_from_slice(&(size as u32).to_le_bytes());
            let image = read(&damaged, BASE).unwrap().expect("instrumented");
            check(&image);
            let (_, record) = image.records().nth(1).unwrap();
            assert_eq!(record.bitmap_ptr != 0, is_valid);
        }
    }

    /// Only the symbols are read: names in other parts of the file do not count.
    #[test]
    fn a_cubin_is_instrumented_if_its_symbols_are() {
        let mut plain = plain();
        plain.extend_from_slice(b"\0__profd_x\0__llvm_prf_nm\0");
        assert_eq!(is_instrumented(&plain), Ok(false));
        assert_eq!(is_instrumented(b"text"), Err(Damage::NotCuda));
        assert!(is_instrumented_text(b"\xff\xff.b8 __llvm_prf_nm[3];"));
        assert!(!is_instrumented_text(b"\xff\xff.b8 __llvm_prf[3];"));
    }

    /// Whatever is damaged: an error, or an image whose parts fit together.
    #[test]
    fn damaged_cubins_do_no_harm() {
        for name in ["counted.cubin", "covered.cubin", "decided.cubin"] {
            damage(&read_fixture(name));
        }
    }

    /// Shortens the cubin to each length, and flips bits of each byte: another one, or all, than of the byte before. Of machine code,
    /// which is half of the file and is not read, every 61st byte.
    fn damage(whole: &[u8]) {
        let elf = goblin::elf::Elf::parse(whole).unwrap();
        let end = elf.header.e_shoff as usize + usize::from(elf.header.e_shnum) * 64;
        let sections = elf.section_headers.iter();
        let code: Vec<_> = sections
            .filter(|section| section.is_executable())
            .filter_map(|section| section.file_range())
            .collect();
        let is_tested =
            |at: &usize| at.is_multiple_of(61) || !code.iter().any(|code| code.contains(at));
        for length in (0..end).filter(is_tested) {
            assert!(read(&whole[..length], BASE).is_err(), "{length} bytes");
        }
        let mut refused = 0;
        for at in (0..whole.len()).filter(is_tested) {
            let mut bytes = whole.to_vec();
            bytes[at] ^= [0x01, 0x80, 0xff][at % 3];
            match read(&bytes, BASE) {
                Ok(Some(image)) => check(&image),
                Ok(None) => {}
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0);
    }
}
