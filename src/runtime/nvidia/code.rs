//! Code that a program passes to the driver: a cubin, PTX, or a fat binary with several of them, for different
//! architectures. Finds the cubins that count, and which of them the driver uses on a device. Of large code, it reads only
//! headers and symbols.
//!
//! Clang's fat binaries are not compressed, so compressed code is not unpacked, only reported.

use super::image;
use crate::support::alloc::{self, OutOfMemory};
use crate::sys::loader;
use fatbin::{Header, Kind, Specific};
use goblin::elf::header::ELFMAG;
use goblin::elf::header::header64::SIZEOF_EHDR;
use goblin::elf::program_header::program_header64::SIZEOF_PHDR;
use goblin::elf::section_header::SHT_NOBITS;
use goblin::elf::section_header::section_header64::SIZEOF_SHDR;
use goblin::elf::{Elf, Header as ElfHeader, SectionHeader};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The wrapper of a fat binary: magic number, version, pointer to the fat binary (`fatbinary_section.h`).
const WRAPPER: u32 = 0x4662_43b1;

/// Why code cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("a fat binary of {size} bytes has no complete entry at offset {at:#x}")]
    Entry { at: usize, size: usize },
    #[error("neither a cubin nor PTX nor a fat binary, or truncated")]
    Unknown,
    #[error("cannot read {0}: {1}")]
    File(String, std::io::ErrorKind),
}

/// Whether code is instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    No,
    /// A part of it is compressed, or it cannot be read.
    Unknown,
    Yes,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An instrumented cubin.
    Counting(Arc<Vec<u8>>),
    /// Instrumented PTX, which the driver compiles.
    CountingPtx,
    /// PTX that devprof has instrumented in this process.
    OfProcess(Arc<ptx::Object>),
    /// It is not instrumented.
    Plain,
    /// It may be instrumented.
    Compressed,
    /// An instrumented cubin that could not be copied.
    OutOfMemory(OutOfMemory),
}

/// An image for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    is_ptx: bool,
    /// For example 90 for `sm_90`. `None`: the code is a single image, which the driver has accepted.
    arch: Option<u32>,
    specific: Specific,
    content: Content,
}

/// Code that the driver has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    entries: Vec<Entry>,
    /// Where the program has it, unless it was read from a file. Not dereferenced.
    address: Option<usize>,
}

impl Code {
    /// Reads the content of a file.
    pub fn read(bytes: &[u8]) -> Result<Code, Damage> {
        if bytes.starts_with(fatbin::MAGIC) {
            let header = fat_header(bytes, bytes.len())?;
            return fat_binary(&bytes[..header.size as usize], header);
        }
        if bytes.starts_with(ELFMAG) {
            return Ok(Code::single(false, cubin(bytes)));
        }
        if is_ptx(bytes) {
            return Ok(Code::single(true, ptx(bytes)));
        }
        Err(Damage::Unknown)
    }

    /// Reads a file.
    pub fn read_file(path: &Path) -> Result<Code, Damage> {
        // Reading a pipe again would wait for ever.
        let is_file = |path| Ok::<bool, std::io::Error>(std::fs::metadata(path)?.is_file());
        match is_file(path).and_then(|is_file| is_file.then(|| std::fs::read(path)).transpose()) {
            Ok(Some(bytes)) => Code::read(&bytes),
            Ok(None) => Err(Damage::Unknown),
            Err(error) => Err(Damage::File(path.display().to_string(), error.kind())),
        }
    }

    /// Reads code in memory.
    ///
    /// # Safety
    /// The driver has loaded this code from this address, so it is one of the driver's formats.
    pub unsafe fn read_memory(code: *const c_void) -> Result<Code, Damage> {
        // SAFETY: the caller's promise.
        let read = Code::read(unsafe { image_in_memory(code) }?)?;
        Ok(Code {
            address: Some(code as usize),
            ..read
        })
    }

    /// The code that the driver makes of PTX that devprof has instrumented.
    pub fn of_process(object: ptx::Object) -> Code {
        Code::single(true, Content::OfProcess(object.into()))
    }

    fn single(is_ptx: bool, content: Content) -> Code {
        let entry = Entry {
            is_ptx,
            arch: None,
            specific: Specific::No,
            content,
        };
        Code {
            entries: vec![entry],
            address: None,
        }
    }

    /// Whether the code, for any device, is instrumented.
    pub fn counting(&self) -> Counting {
        let has = |wanted: fn(&Content) -> bool| {
            let mut entries = self.entries.iter();
            entries.any(|entry| wanted(&entry.content))
        };
        if has(|content| {
            matches!(
                content,
                Content::Counting(_)
                    | Content::CountingPtx
                    | Content::OfProcess(_)
                    | Content::OutOfMemory(_)
            )
        }) {
            Counting::Yes
        } else if has(|content| *content == Content::Compressed) {
            Counting::Unknown
        } else {
            Counting::No
        }
    }

    /// The program or library whose part the code is.
    pub fn file(&self) -> Option<PathBuf> {
        loader::path_of(self.address? as *const c_void)
    }

    /// The images that the driver may use on a device, the most likely one first. `arch`: for example 90 for compute
    /// capability 9.0.
    ///
    /// As the CUDA C++ Programming Guide says (binary and PTX compatibility): the cubin for this architecture, else the
    /// one for the highest that is lower and has the same major version, else PTX for the highest that is not above.
    pub fn chosen(&self, arch: u32) -> Vec<&Content> {
        let mut fitting: Vec<(u32, &Entry)> = self
            .entries
            .iter()
            .filter_map(|entry| {
                let of_code = entry.arch.unwrap_or(arch);
                runs_on(of_code, entry.specific, entry.is_ptx, arch).then_some((of_code, entry))
            })
            .collect();
        if fitting.iter().any(|(_, entry)| !entry.is_ptx) {
            fitting.retain(|(_, entry)| !entry.is_ptx);
        }
        let rank = |&(of_code, entry): &(u32, &Entry)| (of_code, entry.specific);
        fitting.sort_by_key(|fitting| std::cmp::Reverse(rank(fitting)));
        let contents = fitting.into_iter().map(|(_, entry)| &entry.content);
        contents.collect()
    }
}

/// The bytes of an image in memory: a fat binary, also with the wrapper that a program has, a cubin, or PTX without the NUL byte
/// at its end.
///
/// # Safety
/// The program has passed this address to the driver, so the image there is in one of the driver's formats. It is not
/// changed or freed as long as the result is used.
pub unsafe fn image_in_memory<'a>(code: *const c_void) -> Result<&'a [u8], Damage> {
    /// # Safety
    /// So many bytes can be read.
    unsafe fn view<'a>(start: *const c_void, size: usize) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) }
    }
    if code.is_null() {
        return Err(Damage::Unknown);
    }
    // SAFETY: the caller's promise. Each header has the size that its magic number implies, and says how long the rest is.
    unsafe {
        let mut start = code;
        // PTX may be shorter than a word: compared byte by byte.
        if begins_with(start, &WRAPPER.to_le_bytes()) {
            start = code.byte_add(8).cast::<*const c_void>().read_unaligned();
            if start.is_null() {
                return Err(Damage::Unknown);
            }
        }
        if begins_with(start, fatbin::MAGIC) {
            let header = fat_header(view(start, fatbin::HEADER), isize::MAX as usize)?;
            return Ok(view(start, header.size as usize));
        }
        if begins_with(start, ELFMAG) {
            let header = view(start, SIZEOF_EHDR);
            let header = Elf::parse_header(header).map_err(|_| Damage::Unknown)?;
            let table = section_table(&header).ok_or(Damage::Unknown)?;
            let sections = view(start.byte_add(table.start), table.len());
            let size = elf_size(&header, &table, sections).ok_or(Damage::Unknown)?;
            return Ok(view(start, size));
        }
        Ok(CStr::from_ptr(start.cast::<c_char>()).to_bytes())
    }
}

/// Whether code is the wrapper of fat binaries that the driver links (`-rdc=true`).
///
/// # Safety
/// As for [`image_in_memory`].
pub unsafe fn is_for_linker(code: *const c_void) -> bool {
    const LINKED: u32 = 2;
    // SAFETY: the caller's promise: a wrapper has its version after the magic number.
    unsafe {
        !code.is_null()
            && begins_with(code, &WRAPPER.to_le_bytes())
            && code.byte_add(4).cast::<u32>().read_unaligned() == LINKED
    }
}

/// Whether memory begins with a magic number.
///
/// # Safety
/// The memory is a C string, or at least 4 bytes long.
unsafe fn begins_with(start: *const c_void, magic: &[u8]) -> bool {
    // No magic number contains a 0, so reading stops at the end of a string.
    let mut magic = magic.iter().enumerate();
    // SAFETY: the caller's promise.
    magic.all(|(n, byte)| unsafe { start.cast::<u8>().add(n).read() } == *byte)
}

/// Whether the driver can use an image for the architecture `of_code` on a device.
pub fn runs_on(of_code: u32, specific: Specific, is_ptx: bool, arch: u32) -> bool {
    let is_same_major = of_code / 10 == arch / 10;
    match specific {
        Specific::Architecture => of_code == arch,
        Specific::Family => is_same_major && of_code <= arch,
        Specific::No => (is_same_major || is_ptx) && of_code <= arch,
    }
}

/// The header of a fat binary that has at most `available` bytes.
fn fat_header(head: &[u8], available: usize) -> Result<Header, Damage> {
    fatbin::header(head, available as u64).map_err(|_| Damage::Unknown)
}

/// Reads a fat binary. `bytes`: all of it, with its header.
fn fat_binary(bytes: &[u8], header: Header) -> Result<Code, Damage> {
    let size = bytes.len();
    let mut entries = Vec::new();
    let mut at = header.entries as usize;
    while at < size {
        let entry = fatbin::entry(&bytes[at..], at as u64, (size - at) as u64)
            .map_err(|_| Damage::Entry { at, size })?;
        at = entry.next as usize;
        entries.extend(image_of(&entry, &bytes[entry.at as usize..at]));
    }
    Ok(Code {
        entries,
        address: None,
    })
}

/// The image in an entry; `None` if the entry's kind is unknown. `content`: with padding.
fn image_of(entry: &fatbin::Entry, content: &[u8]) -> Option<Entry> {
    let is_ptx = match entry.kind {
        Kind::Ptx => true,
        Kind::Cubin => false,
        Kind::Other(_) => return None,
    };
    let content = match entry.packed {
        Some(_) => Content::Compressed,
        None if is_ptx => ptx(content),
        None => cubin(content),
    };
    Some(Entry {
        is_ptx,
        arch: Some(entry.architecture),
        specific: entry.specific,
        content,
    })
}

/// Whether text is PTX: each module begins with this directive, after comments.
fn is_ptx(text: &[u8]) -> bool {
    let mut chunks = text.utf8_chunks();
    chunks.any(|chunk| chunk.valid().contains(".version"))
}

fn cubin(bytes: &[u8]) -> Content {
    match image::is_instrumented(bytes) {
        Ok(false) | Err(image::Damage::NotCuda) => Content::Plain,
        // A damaged one is reported when it is used.
        Ok(true) | Err(_) => match alloc::copy_of(bytes) {
            Ok(bytes) => Content::Counting(Arc::new(bytes)),
            Err(error) => Content::OutOfMemory(error),
        },
    }
}

fn ptx(text: &[u8]) -> Content {
    if image::is_instrumented_text(text) {
        Content::CountingPtx
    } else {
        Content::Plain
    }
}

/// The section table of an ELF file, in bytes from its start.
fn section_table(header: &ElfHeader) -> Option<Range<usize>> {
    range(
        header.e_shoff,
        u64::from(header.e_shnum) * SIZEOF_SHDR as u64,
    )
}

/// The size of an ELF file: to the end of the section table, of the program headers or of the last section.
fn elf_size(header: &ElfHeader, table: &Range<usize>, sections: &[u8]) -> Option<usize> {
    let sections = match usize::from(header.e_shnum) {
        0 => Vec::new(),
        count => SectionHeader::parse_from(sections, 0, count, image::CONTEXT).ok()?,
    };
    let segments = u64::from(header.e_phnum) * SIZEOF_PHDR as u64;
    let mut end = table.end.max(range(header.e_phoff, segments)?.end);
    for section in sections
        .iter()
        .filter(|section| section.sh_type != SHT_NOBITS)
    {
        end = end.max(range(section.sh_offset, section.sh_size)?.end);
    }
    Some(end)
}

/// A range of a file that is in memory. `None`: it is larger than the memory.
fn range(offset: u64, size: u64) -> Option<Range<usize>> {
    let end = usize::try_from(offset.checked_add(size)?).ok()?;
    (end <= isize::MAX as usize).then_some(offset as usize..end)
}

#[cfg(test)]
pub mod tests {
    use super::image::tests::fixture;
    use super::*;
    use byteorder::{ByteOrder, LittleEndian};

    pub const PTX: u16 = 1;
    pub const CUBIN: u16 = 2;
    const ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
    const FAMILY_SPECIFIC: u64 = 0x20_0000;

    /// An entry of a fat binary, with its header.
    pub fn entry_bytes(kind: u16, arch: u32, flags: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = [0; fatbin::ENTRY];
        LittleEndian::write_u16(&mut bytes[0..], kind);
        LittleEndian::write_u32(&mut bytes[4..], fatbin::ENTRY as u32);
        LittleEndian::write_u64(&mut bytes[8..], content.len() as u64);
        LittleEndian::write_u32(&mut bytes[28..], arch);
        LittleEndian::write_u64(&mut bytes[40..], flags);
        [&bytes[..], content].concat()
    }

    pub fn fat(entries: &[Vec<u8>]) -> Vec<u8> {
        let content = entries.concat();
        let mut bytes = vec![0; fatbin::HEADER];
        bytes[..4].copy_from_slice(fatbin::MAGIC);
        LittleEndian::write_u16(&mut bytes[4..], 1);
        LittleEndian::write_u16(&mut bytes[6..], fatbin::HEADER as u16);
        LittleEndian::write_u64(&mut bytes[8..], content.len() as u64);
        [bytes, content].concat()
    }

    /// An instrumented cubin, recognizable by its last byte.
    fn counting(n: u8) -> Vec<u8> {
        [fixture().as_slice(), &[n]].concat()
    }

    /// The image that the driver uses.
    fn first(code: &Code, arch: u32) -> Content {
        let chosen = code.chosen(arch);
        chosen
            .first()
            .map_or(Content::Plain, |&content| content.clone())
    }

    /// The last bytes of the instrumented cubins.
    fn chosen(code: &Code, arch: u32) -> Vec<u8> {
        let last = |content: &&Content| match content {
            Content::Counting(cubin) => cubin[cubin.len() - 1],
            other => panic!("{other:?}"),
        };
        code.chosen(arch).iter().map(last).collect()
    }

    #[test]
    fn the_driver_uses_the_highest_cubin_of_the_same_major_version() {
        let code = Code::read(&fat(&[
            entry_bytes(CUBIN, 80, 0, &counting(1)),
            entry_bytes(CUBIN, 90, 0, &counting(2)),
            entry_bytes(CUBIN, 90, ARCHITECTURE_SPECIFIC, &counting(3)),
            entry_bytes(CUBIN, 86, 0, b"plain"),
            entry_bytes(CUBIN, 100, FAMILY_SPECIFIC, &counting(4)),
            entry_bytes(CUBIN, 120, 0, &counting(5)),
            entry_bytes(PTX, 75, 0, b"__llvm_prf_nm"),
            entry_bytes(77, 90, 0, &counting(7)),
        ]))
        .unwrap();
        assert_eq!(code.counting(), Counting::Yes);
        assert_eq!(chosen(&code, 80), [1]);
        assert_eq!(first(&code, 86), Content::Plain);
        assert_eq!(chosen(&code, 90), [3, 2]);
        assert_eq!(chosen(&code, 103), [4]);
        assert_eq!(first(&code, 110), Content::CountingPtx);
        assert_eq!(chosen(&code, 121), [5]);
        assert_eq!(first(&code, 75), Content::CountingPtx);
        assert_eq!(first(&code, 70), Content::Plain);
    }

    #[test]
    fn compressed_code_may_count() {
        for flag in [0x2000, 0x8000] {
            let code = Code::read(&fat(&[
                entry_bytes(CUBIN, 80, 0, b"plain"),
                entry_bytes(CUBIN, 90, flag, b"packed"),
            ]))
            .unwrap();
            assert_eq!(code.counting(), Counting::Unknown);
            assert_eq!(first(&code, 90), Content::Compressed);
            assert_eq!(first(&code, 80), Content::Plain);
        }
        let plain = Code::read(&fat(&[entry_bytes(CUBIN, 90, 0, b"plain")])).unwrap();
        assert_eq!(plain.counting(), Counting::No);
    }

    #[test]
    fn single_images_run_on_every_device() {
        let cubin = fixture();
        let expected = Content::Counting(cubin.clone().into());
        assert_eq!(first(&Code::read(&cubin).unwrap(), 75), expected);
        let ptx = b"// PTX\n.version 8.8\n.global .align 1 .b8 __llvm_prf_nm[3] = {1, 2, 3};\n";
        assert_eq!(first(&Code::read(ptx).unwrap(), 75), Content::CountingPtx);
        assert_eq!(
            first(&Code::read(b".version 8.8").unwrap(), 75),
            Content::Plain
        );
        assert_eq!(Code::read(b""), Err(Damage::Unknown));
        assert_eq!(Code::read(b"\xff\xff"), Err(Damage::Unknown));
    }

    /// What is made of instrumented PTX is read as the compiled cubin would be.
    #[test]
    fn ptx_of_the_process_has_the_variables_of_a_cubin() {
        let text = ".version 9.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.loc 1 5 1\n@%p ret;\n.loc 1 6 1\nret;\n}\n.file 1 \"/a.cu\"\n";
        let done = ptx::instrument(text, Path::new("/"), ptx::Origin::Process, |_| false);
        let done = done.unwrap().unwrap();
        let code = Code::of_process(done.object);
        assert_eq!(code.counting(), Counting::Yes);
        let Content::OfProcess(object) = first(&code, 90) else {
            panic!("{code:?}");
        };
        let cubin = object.cubin(90);
        assert_eq!(image::kernels(&cubin), Ok(vec![c"k"]));
        let image = image::read(&cubin, 1 << 32).unwrap().expect("instrumented");
        assert_eq!((image.arch.as_str(), image.counter), ("sm_90", 1));
        assert!(image.is_of_process);
        let (record, flags) = (image.records().next().unwrap(), &image.counters[0]);
        assert_eq!(record.1.num_counters.get(), 2);
        assert_eq!(flags.range.end - flags.range.start, 2);
        assert!(done.text.contains(flags.symbol.to_str().unwrap()));
        assert_eq!(
            image::read(&fixture(), 0)
                .unwrap()
                .map(|image| image.is_of_process),
            Some(false)
        );
    }

    /// Pages that cannot be read.
    fn unreadable(pages: &[u8]) {
        // SAFETY: pages of this test, which does not read them any more.
        let result = unsafe {
            libc::mprotect(
                pages.as_ptr().cast_mut().cast(),
                pages.len(),
                libc::PROT_NONE,
            )
        };
        assert_eq!(result, 0);
    }

    /// Large libraries stay on disk: of compressed entries nothing is read, and of cubins the symbols.
    #[test]
    fn only_headers_and_symbols_are_read() {
        const PAGE: usize = 4096;
        let mut plain = image::tests::plain();
        // Code is in the second page of the cubin, and the compressed entry fills pages, too.
        assert!(plain.len() > 3 * PAGE);
        plain.resize(plain.len().next_multiple_of(PAGE) - fatbin::ENTRY, 0);
        let bytes = fat(&[
            entry_bytes(CUBIN, 90, 0, &plain),
            entry_bytes(CUBIN, 90, 0x8000, &[1; 3 * PAGE]),
        ]);
        let mut memory = memmap2::MmapMut::map_anon(bytes.len() + 2 * PAGE).unwrap();
        // The first cubin begins at a multiple of the page's size.
        let start = PAGE - fatbin::HEADER - fatbin::ENTRY;
        memory[start..start + bytes.len()].copy_from_slice(&bytes);
        unreadable(&memory[2 * PAGE..3 * PAGE]);
        let packed = PAGE + plain.len() + fatbin::ENTRY;
        assert_eq!(packed % PAGE, 0);
        unreadable(&memory[packed..packed + 3 * PAGE]);
        // SAFETY: a fat binary. If its code is read, this process ends.
        let code = unsafe { Code::read_memory(memory[start..].as_ptr().cast()) }.unwrap();
        assert_eq!(code.counting(), Counting::Unknown);
        assert_eq!(first(&code, 90), Content::Plain);
    }

    #[test]
    fn code_in_memory_is_as_long_as_its_headers_say() {
        let mut cubin = fixture();
        let size = cubin.len();
        let plain = Code::read(&cubin);
        // The bytes after it in memory do not belong to it.
        cubin.extend([0; 100]);
        let mut binary = fat(&[entry_bytes(CUBIN, 90, 0, &cubin[..size])]);
        let fat_code = Code::read(&binary);
        binary.extend([0xff; 100]);
        let wrapper = [u64::from(WRAPPER) | 1 << 32, binary.as_ptr() as u64, 0];
        let text = c".version 8.8 // __llvm_prf_nm";
        // SAFETY: complete images.
        unsafe {
            let read = |code: *const c_void| {
                let address = None;
                Code::read_memory(code).map(|code| Code { address, ..code })
            };
            // Without their output, which would be long.
            assert!(read(cubin.as_ptr().cast()) == plain);
            assert!(read(binary.as_ptr().cast()) == fat_code && fat_code.is_ok());
            assert!(read(wrapper.as_ptr().cast()) == fat_code);
            let text = read(text.as_ptr().cast()).unwrap();
            assert_eq!(first(&text, 90), Content::CountingPtx);
            assert_eq!(read(std::ptr::null()), Err(Damage::Unknown));
            assert_eq!(read(c"".as_ptr().cast()), Err(Damage::Unknown));
        }
    }

    /// Whatever is damaged: an error, or entries that are inside the bytes.
    #[test]
    fn damaged_fat_binaries_do_no_harm() {
        let whole = fat(&[
            entry_bytes(CUBIN, 90, 0, b"cubin"),
            entry_bytes(PTX, 90, 0, b"text"),
        ]);
        for length in 0..whole.len() {
            assert!(Code::read(&whole[..length]).is_err(), "{length} bytes");
        }
        let mut refused = 0;
        for at in 4..whole.len() {
            for flipped in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flipped;
                refused += usize::from(Code::read(&bytes).is_err());
            }
        }
        assert!(refused > 0);
        let mut long = whole.clone();
        LittleEndian::write_u64(&mut long[fatbin::HEADER + 8..], u64::MAX);
        let expected = Damage::Entry {
            at: fatbin::HEADER,
            size: whole.len(),
        };
        assert_eq!(Code::read(&long), Err(expected));
    }
}
