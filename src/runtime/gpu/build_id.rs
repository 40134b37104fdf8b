//! The build id of a code object. It is read from the loaded image, whose first segment starts with the ELF header and
//! contains the notes. (The file may have been removed, and its copy in host memory freed.)

use super::runtime::inside;
use crate::sys::elf_notes::{Note, Notes};
use goblin::elf::note::NT_GNU_BUILD_ID;
use goblin::elf64::header::{ELFMAG, Header, SIZEOF_EHDR};
use goblin::elf64::program_header::{PT_NOTE, ProgramHeader, SIZEOF_PHDR};
use std::ops::Range;

/// The bytes of a code object to copy first: enough for the header, lld's program headers and the first note's header.
const HEAD: u64 = 1024;

/// The maximum size of notes that are searched. The metadata of thousands of kernels may precede the id.
const MAX_NOTES: u64 = 16 << 20;

/// The result of searching the head of a code object for the build id.
#[derive(Debug, PartialEq, Eq)]
pub enum Search {
    None,
    Found(Vec<u8>),
    /// The id may be in these notes. The range starts with a note.
    InNotes(Range<u64>),
}

impl Search {
    pub fn range(&self) -> Option<Range<u64>> {
        match self {
            Search::InNotes(range) => Some(range.clone()),
            _ => None,
        }
    }
}

/// The range to copy for [`search`].
pub fn head(segments: &[Range<u64>]) -> Option<Range<u64>> {
    let first = segments.first()?;
    (first.end - first.start >= SIZEOF_EHDR as u64)
        .then(|| first.start..first.end.min(first.start + HEAD))
}

/// Searches for the id in `bytes`, the head of a code object that is loaded at `start`.
pub fn search(start: u64, bytes: &[u8], segments: &[Range<u64>]) -> Search {
    notes(start, bytes, segments).unwrap_or(Search::None)
}

#[repr(align(8))]
struct Aligned([u8; SIZEOF_EHDR]);

fn notes(start: u64, bytes: &[u8], segments: &[Range<u64>]) -> Option<Search> {
    // goblin needs an aligned header; copied bytes have any alignment.
    let header = Aligned(bytes.get(..SIZEOF_EHDR)?.try_into().ok()?);
    let header = Header::from_bytes(&header.0);
    if &header.e_ident[..4] != ELFMAG || usize::from(header.e_phentsize) != SIZEOF_PHDR {
        return None;
    }
    let table = usize::try_from(header.e_phoff).ok()?;
    let end = table.checked_add(usize::from(header.e_phnum) * SIZEOF_PHDR)?;
    let headers = ProgramHeader::from_bytes(bytes.get(table..end)?, usize::from(header.e_phnum));
    for header in headers.iter().filter(|header| header.p_type == PT_NOTE) {
        // The first segment is loaded at address 0 of the file.
        let begin = start.checked_add(header.p_vaddr)?;
        let end = begin.checked_add(header.p_memsz)?;
        let offset = usize::try_from(header.p_vaddr).ok()?;
        let mut notes = Notes::new(bytes.get(offset..).unwrap_or_default());
        let mut rest = begin;
        while rest < end
            && let Some(note) = notes.next()
        {
            match (is_build_id(&note), note.description) {
                (true, Some(id)) => return Some(Search::Found(id.to_vec())),
                // The rest of the id has to be copied.
                (true, None) => break,
                (false, _) => rest = begin.checked_add(notes.offset())?,
            }
        }
        let rest = rest..end;
        if rest.start < end && end - rest.start <= MAX_NOTES && inside(&rest, segments) {
            return Some(Search::InNotes(rest));
        }
    }
    None
}

fn is_build_id(note: &Note) -> bool {
    note.kind == NT_GNU_BUILD_ID && note.name == b"GNU\0"
}

/// The id in notes that were copied for [`Search::InNotes`].
pub fn in_notes(bytes: &[u8]) -> Option<Vec<u8>> {
    let id = Notes::new(bytes).find(is_build_id)?;
    id.description.map(<[u8]>::to_vec)
}

/// The id of a code object whose bytes can be read at once. `read` returns the bytes of a range, which is inside a segment.
pub fn find<'a>(
    segments: &[Range<u64>],
    read: impl Fn(&Range<u64>) -> Option<&'a [u8]>,
) -> Option<Vec<u8>> {
    let head = head(segments)?;
    match search(head.start, read(&head)?, segments) {
        Search::None => None,
        Search::Found(id) => Some(id),
        Search::InNotes(range) => in_notes(read(&range)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8; 4], description: &[u8]) -> Vec<u8> {
        let mut out: Vec<u8> = [4, description.len() as u32, kind]
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        out.extend_from_slice(name);
        out.extend_from_slice(description);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    /// An image with one PT_NOTE segment at offset 120.
    fn image(notes: &[u8]) -> Vec<u8> {
        let mut out = vec![0u8; SIZEOF_EHDR + SIZEOF_PHDR];
        out[..4].copy_from_slice(ELFMAG);
        out[32] = SIZEOF_EHDR as u8;
        out[54] = SIZEOF_PHDR as u8;
        out[56] = 1;
        out[64] = PT_NOTE as u8;
        out[80] = 120;
        out[104..112].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        out.extend_from_slice(notes);
        out
    }

    #[test]
    fn the_id_is_found_after_other_notes() {
        let metadata = note(32, b"AMD\0", &[7; 9]);
        let id = note(NT_GNU_BUILD_ID, b"GNU\0", &[0xab; 20]);
        let bytes = image(&[metadata.clone(), id.clone()].concat());
        let segments = std::slice::from_ref(&(0x1000..0x1000 + bytes.len() as u64)).to_vec();
        assert_eq!(
            search(0x1000, &bytes, &segments),
            Search::Found(vec![0xab; 20])
        );
        // The head ends inside the metadata: the rest has to be copied.
        let rest = 0x1000 + 120 + metadata.len() as u64..segments[0].end;
        assert_eq!(
            search(0x1000, &bytes[..140], &segments),
            Search::InNotes(rest)
        );
        assert_eq!(in_notes(&id), Some(vec![0xab; 20]));
        assert_eq!(in_notes(&metadata), None);
    }

    /// The metadata ends after the head.
    #[test]
    fn the_id_is_found_in_bytes_that_can_be_read_at_once() {
        let metadata = note(32, b"AMD\0", &[7; 2 * HEAD as usize]);
        let bytes = image(&[metadata, note(NT_GNU_BUILD_ID, b"GNU\0", &[0xab; 20])].concat());
        let segments = std::slice::from_ref(&(0x1000..0x1000 + bytes.len() as u64)).to_vec();
        let read = |range: &Range<u64>| {
            bytes.get((range.start - 0x1000) as usize..(range.end - 0x1000) as usize)
        };
        assert_eq!(find(&segments, read), Some(vec![0xab; 20]));
        assert_eq!(find(&segments, |_| None), None);
        assert_eq!(find(&[], read), None);
    }

    #[test]
    fn the_bytes_may_have_any_alignment() {
        let image = image(&note(NT_GNU_BUILD_ID, b"GNU\0", &[0xab; 20]));
        for before in 0..16 {
            let bytes = [vec![0; before], image.clone()].concat();
            let segments = std::slice::from_ref(&(0x1000..0x2000)).to_vec();
            assert_eq!(
                search(0x1000, &bytes[before..], &segments),
                Search::Found(vec![0xab; 20])
            );
        }
    }

    #[test]
    fn damaged_images_have_no_id() {
        let image = image(&note(NT_GNU_BUILD_ID, b"GNU\0", &[0xab; 20]));
        for length in 0..image.len() {
            let segments = std::slice::from_ref(&(0x1000..0x1000 + length as u64)).to_vec();
            assert!(
                !matches!(
                    search(0x1000, &image[..length], &segments),
                    Search::Found(_)
                ),
                "{length}"
            );
        }
        for n in 0..image.len() {
            let mut bytes = image.clone();
            bytes[n] ^= 0xff;
            search(u64::MAX - 64, &bytes, std::slice::from_ref(&(0..u64::MAX)));
        }
    }
}
