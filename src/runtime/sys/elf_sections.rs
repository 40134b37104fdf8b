//! Names of the sections of an ELF file (System V ABI, "Sections"), of which only the headers are read.

use byteorder::{ByteOrder, LittleEndian};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
/// No file has longer tables: more is not read.
const LARGEST: usize = 64 << 20;

/// Whether a file has a section of this name. `None`: it cannot be read, or is no valid file of 64 bits.
pub fn has_section(path: &Path, name: &[u8]) -> Option<bool> {
    let file = File::open(path).ok()?;
    let read = |at: u64, size: usize| {
        let mut bytes = vec![0; size.min(LARGEST)];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let header = read(0, HEADER)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let half = |at| usize::from(LittleEndian::read_u16(&header[at..]));
    let (count, names) = (half(60), half(62));
    let sections = read(
        LittleEndian::read_u64(&header[40..]),
        count * SECTION_HEADER,
    )?;
    let mut all = sections.chunks_exact(SECTION_HEADER);
    let names = all.clone().nth(names)?;
    let size = LittleEndian::read_u64(&names[32..]);
    let names = read(
        LittleEndian::read_u64(&names[24..]),
        usize::try_from(size).ok()?,
    )?;
    Some(all.any(|section| {
        let rest = names.get(LittleEndian::read_u32(section) as usize..);
        rest.is_some_and(|rest| rest.starts_with(name) && rest.get(name.len()) == Some(&0))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_by_their_complete_names() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(has_section(&own, b".text"), Some(true));
        assert_eq!(has_section(&own, b".tex"), Some(false));
        assert_eq!(has_section(&own, b"__llvm_prf_cnts"), Some(false));
        assert_eq!(has_section(Path::new("/dev/null"), b".text"), None);
        assert_eq!(has_section(Path::new("/nonexistent"), b".text"), None);
    }
}
