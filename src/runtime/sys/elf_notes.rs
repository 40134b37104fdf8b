//! ELF notes (System V ABI, "Note Section"), in bytes that may end in the middle of a note. goblin's iterator stops at
//! such a note; here its size is still known, so that the caller can skip it.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    name_size: U32,
    description_size: U32,
    kind: U32,
}

/// A note whose header and name are in the bytes.
pub struct Note<'a> {
    pub kind: u32,
    /// With its terminating NUL byte.
    pub name: &'a [u8],
    /// `None` if the bytes end before its end.
    pub description: Option<&'a [u8]>,
    /// Offset of the description from the start of the bytes.
    pub description_offset: u64,
}

/// The notes at the start of `bytes`.
pub struct Notes<'a> {
    bytes: &'a [u8],
    /// Offset of the next note from the start of the bytes; it may be past their end.
    next: u64,
}

impl<'a> Notes<'a> {
    pub fn new(bytes: &'a [u8]) -> Notes<'a> {
        Notes { bytes, next: 0 }
    }

    /// Offset of the first note that the iterator has not returned.
    pub fn offset(&self) -> u64 {
        self.next
    }
}

impl<'a> Iterator for Notes<'a> {
    type Item = Note<'a>;

    fn next(&mut self) -> Option<Note<'a>> {
        let rest = self.bytes.get(usize::try_from(self.next).ok()?..)?;
        let (header, rest) = Header::ref_from_prefix(rest).ok()?;
        let name = rest.get(..header.name_size.get() as usize)?;
        let padded = |size: U32| u64::from(size.get()).next_multiple_of(4);
        let description_offset = self.next + size_of::<Header>() as u64 + padded(header.name_size);
        let start = usize::try_from(description_offset).ok()?;
        let end = start.checked_add(header.description_size.get() as usize)?;
        self.next = description_offset + padded(header.description_size);
        Some(Note {
            kind: header.kind.get(),
            name,
            description: self.bytes.get(start..end),
            description_offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_cut_off_is_skipped() {
        let mut bytes = Vec::new();
        for (kind, description) in [(1u32, 5u32), (2, 8)] {
            for word in [4, description, kind] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(b"GNU\0");
            bytes.resize(bytes.len() + description.next_multiple_of(4) as usize, 7);
        }
        let kinds = |bytes: &[u8]| {
            let mut notes = Notes::new(bytes);
            let kinds: Vec<_> = notes
                .by_ref()
                .map(|note| {
                    (
                        note.kind,
                        note.name.len(),
                        note.description.map(<[u8]>::len),
                    )
                })
                .collect();
            (kinds, notes.offset())
        };
        assert_eq!(kinds(&bytes), (vec![(1, 4, Some(5)), (2, 4, Some(8))], 48));
        assert_eq!(
            kinds(&bytes[..47]),
            (vec![(1, 4, Some(5)), (2, 4, None)], 48)
        );
        // The second note's name is cut off: it is not returned.
        assert_eq!(kinds(&bytes[..39]), (vec![(1, 4, Some(5))], 24));
        assert_eq!(kinds(&bytes[..17]), (vec![(1, 4, None)], 24));
        assert_eq!(kinds(&bytes[..11]), (vec![], 0));
    }
}
