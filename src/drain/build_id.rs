//! The code object's own build id, out of its loaded image: the first segment begins with the ELF header, and the
//! notes are loaded with it. (The file that it came from may be gone, and its copy in host memory be freed.)

use goblin::elf::note::NT_GNU_BUILD_ID;
use goblin::elf64::header::{ELFMAG, Header, SIZEOF_EHDR};
use goblin::elf64::program_header::{PT_NOTE, ProgramHeader, SIZEOF_PHDR};
use std::ops::Range;

/// Enough for the header, lld's program headers and the first note's header.
const HEAD: u64 = 1024;

/// A note section that is larger is not searched: metadata of thousands of kernels may stand before the id.
const NOTES: u64 = 16 << 20;

/// What the head of a code object says about its build id.
#[derive(Debug, PartialEq, Eq)]
pub enum Search {
    None,
    Found(Vec<u8>),
    /// It may be in these notes, which begin with a note's header.
    In(Range<u64>),
}

impl Search {
    pub fn range(&self) -> Option<Range<u64>> {
        match self {
            Search::In(range) => Some(range.clone()),
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

/// Looks for the id in `bytes`, loaded at `start`.
pub fn search(start: u64, bytes: &[u8], segments: &[Range<u64>]) -> Search {
    notes(start, bytes, segments).unwrap_or(Search::None)
}

#[repr(align(8))]
struct Aligned([u8; SIZEOF_EHDR]);

fn notes(start: u64, bytes: &[u8], segments: &[Range<u64>]) -> Option<Search> {
    // goblin wants the header aligned, and copied bytes lie anywhere.
    let header = Aligned(bytes.get(..SIZEOF_EHDR)?.try_into().ok()?);
    let header = Header::from_bytes(&header.0);
    if &header.e_ident[..4] != ELFMAG || usize::from(header.e_phentsize) != SIZEOF_PHDR {
        return None;
    }
    let table = usize::try_from(header.e_phoff).ok()?;
    let end = table.checked_add(usize::from(header.e_phnum) * SIZEOF_PHDR)?;
    let headers = ProgramHeader::from_bytes(bytes.get(table..end)?, usize::from(header.e_phnum));
    for note in headers.iter().filter(|header| header.p_type == PT_NOTE) {
        // The first segment is loaded at address 0 of the file.
        let mut at = start.checked_add(note.p_vaddr)?;
        let end = at.checked_add(note.p_memsz)?;
        // Walk over the notes whose headers the head has.
        while at < end {
            let offset = usize::try_from(at - start).ok()?;
            let Some(found) = bytes.get(offset..).and_then(one_note) else {
                break;
            };
            match found {
                (Some(id), _) => return Some(Search::Found(id.to_vec())),
                (None, size) => at = at.checked_add(size)?,
            }
        }
        let rest = at..end;
        if at < end && rest.end - rest.start <= NOTES && crate::check::inside(&rest, segments) {
            return Some(Search::In(rest));
        }
    }
    None
}

/// The id in notes that were copied for [`Search::In`].
pub fn in_notes(mut bytes: &[u8]) -> Option<Vec<u8>> {
    loop {
        match one_note(bytes)? {
            (Some(id), _) => return Some(id.to_vec()),
            (None, size) => bytes = bytes.get(usize::try_from(size).ok()?..)?,
        }
    }
}

/// The build id, if the note at the start of `bytes` is one, and the note's size. `None` when its header is cut off,
/// or its id.
fn one_note(bytes: &[u8]) -> Option<(Option<&[u8]>, u64)> {
    let word = |n: usize| {
        Some(u32::from_le_bytes(
            bytes.get(4 * n..4 * n + 4)?.try_into().ok()?,
        ))
    };
    let (name, description, kind) = (word(0)?, word(1)?, word(2)?);
    let padded = |size: u32| u64::from(size).next_multiple_of(4);
    let size = 12 + padded(name) + padded(description);
    let is_id = kind == NT_GNU_BUILD_ID && bytes.get(12..16)? == b"GNU\0";
    let id = if is_id {
        let start = 12 + usize::try_from(padded(name)).ok()?;
        Some(bytes.get(start..start.checked_add(description as usize)?)?)
    } else {
        None
    };
    Some((id, size))
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

    /// An image with one PT_NOTE at 120, as the head would have it.
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
    fn the_id_is_found_behind_other_notes() {
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
        assert_eq!(search(0x1000, &bytes[..140], &segments), Search::In(rest));
        assert_eq!(in_notes(&id), Some(vec![0xab; 20]));
        assert_eq!(in_notes(&metadata), None);
    }

    #[test]
    fn the_bytes_may_lie_anywhere() {
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
    fn damaged_images_have_no_id_and_do_no_harm() {
        let whole = image(&note(NT_GNU_BUILD_ID, b"GNU\0", &[0xab; 20]));
        for length in 0..whole.len() {
            let segments = std::slice::from_ref(&(0x1000..0x1000 + length as u64)).to_vec();
            assert!(
                !matches!(
                    search(0x1000, &whole[..length], &segments),
                    Search::Found(_)
                ),
                "{length}"
            );
        }
        for n in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[n] ^= 0xff;
            search(u64::MAX - 64, &bytes, std::slice::from_ref(&(0..u64::MAX)));
        }
    }
}
