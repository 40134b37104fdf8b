//! The files that the dynamic loader has loaded, and which of them need which others.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;

/// A loaded file, as the dynamic linker describes it.
pub struct Described<'a> {
    info: &'a libc::dl_phdr_info,
    /// How many bytes of the description are valid.
    size: usize,
}

/// Calls `visit` for each loaded file, in the order of loading, until it returns true.
pub fn visit(mut visit: &mut dyn FnMut(Described) -> bool) {
    unsafe extern "C" fn call(
        info: *mut libc::dl_phdr_info,
        size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the function that was passed to `visit`; the dynamic linker describes a loaded file.
        unsafe {
            let (visit, info) = (
                &mut *data.cast::<&mut dyn FnMut(Described) -> bool>(),
                &*info,
            );
            c_int::from(visit(Described { info, size }))
        }
    }
    // SAFETY: `call` gets the function passed here.
    unsafe { libc::dl_iterate_phdr(Some(call), (&raw mut visit).cast()) };
}

impl<'a> Described<'a> {
    /// Its path as the loader has recorded it. The program's is empty.
    pub fn name(&self) -> Option<&'a CStr> {
        let name = self.info.dlpi_name;
        // SAFETY: null or a C string.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
    }

    /// How many files were loaded until now, if the C library reports that.
    pub fn number_loaded(&self) -> Option<u64> {
        let end = std::mem::offset_of!(libc::dl_phdr_info, dlpi_adds) + size_of::<u64>();
        (self.size >= end).then_some(self.info.dlpi_adds)
    }

    /// The addresses of its segments of this type (`PT_…`).
    pub fn segments(&self, kind: u32) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let base = self.info.dlpi_addr;
        let headers = if self.info.dlpi_phdr.is_null() {
            &[]
        } else {
            // SAFETY: the file's program headers, which are mapped.
            unsafe { std::slice::from_raw_parts(self.info.dlpi_phdr, self.info.dlpi_phnum.into()) }
        };
        let segments = headers.iter().filter(move |of| of.p_type == kind);
        segments.map(move |header| {
            let start = base.wrapping_add(header.p_vaddr) as usize;
            start..start.saturating_add(header.p_memsz as usize)
        })
    }

    /// Whether a range is inside a loaded segment.
    pub fn is_loaded(&self, range: &Range<usize>) -> bool {
        let contains = |of: Range<usize>| of.start <= range.start && range.end <= of.end;
        self.segments(libc::PT_LOAD).any(contains)
    }

    /// The bytes of a range. `None` if it is not loaded.
    ///
    /// # Safety
    /// The range is readable, if it is loaded, and stays so.
    pub unsafe fn bytes(&self, range: Range<usize>) -> Option<&'a [u8]> {
        // SAFETY: inside a loaded segment, and the caller's promise.
        self.is_loaded(&range)
            .then(|| unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) })
    }
}

/// Tags of the dynamic section (elf.h).
mod tag {
    pub const NULL: u64 = 0;
    pub const NEEDED: u64 = 1;
    pub const STRTAB: u64 = 5;
    pub const STRSZ: u64 = 10;
    pub const SONAME: u64 = 14;
}

struct LoadedFile {
    segments: Vec<Range<usize>>,
    /// The last component of its path, and its soname.
    names: Vec<CString>,
    /// The last components of the names of the files that it needs (DT_NEEDED).
    needed: Vec<CString>,
}

/// All loaded files, in the order of loading. The program is the first one.
struct LoadedFiles(Vec<LoadedFile>);

impl LoadedFiles {
    fn now() -> LoadedFiles {
        let mut files = Vec::new();
        visit(&mut |file| {
            files.push(read(&file));
            false
        });
        LoadedFiles(files)
    }

    /// The index of the file that contains `address`.
    fn containing(&self, address: *const c_void) -> Option<usize> {
        let contains = |range: &Range<usize>| range.contains(&(address as usize));
        let mut files = self.0.iter();
        files.position(|file| file.segments.iter().any(contains))
    }

    /// A file and all that it needs, in the order in which the loader searches them: breadth first.
    fn search_list(&self, root: usize) -> Vec<usize> {
        let mut list = vec![root];
        let mut next = 0;
        while let Some(&file) = list.get(next) {
            for needed in &self.0[file].needed {
                let found = self.0.iter().position(|file| file.names.contains(needed));
                list.extend(found.filter(|found| !list.contains(found)));
            }
            next += 1;
        }
        list
    }
}

fn last_component(path: &CStr) -> Option<CString> {
    let path = path.to_bytes();
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    CString::new(name).ok().filter(|name| !name.is_empty())
}

fn read(described: &Described) -> LoadedFile {
    let mut file = LoadedFile {
        segments: described.segments(libc::PT_LOAD).collect(),
        names: Vec::new(),
        needed: Vec::new(),
    };
    file.names.extend(described.name().and_then(last_component));
    let dynamic = described.segments(libc::PT_DYNAMIC).next();
    // SAFETY: the loader reads the dynamic section, too.
    let Some(entries) = dynamic.and_then(|range| unsafe { described.bytes(range) }) else {
        return file;
    };
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    // Pairs of a tag and a value.
    let pairs = entries.as_chunks().0.as_chunks().0.iter();
    let entries = pairs.map(|[tag, value]| (word(tag), word(value)));
    let entries = entries.take_while(|(tag, _)| *tag != tag::NULL);
    let value = |wanted| {
        entries
            .clone()
            .find(|(tag, _)| *tag == wanted)
            .map(|of| of.1)
    };
    let (Some(address), Some(size)) = (value(tag::STRTAB), value(tag::STRSZ)) else {
        return file;
    };
    // The loader adds the base to the address, unless the section is read-only.
    let candidates = [address, described.info.dlpi_addr.wrapping_add(address)];
    let table = candidates.into_iter().find_map(|start| {
        let start = start as usize;
        // SAFETY: the loader reads the names, too.
        unsafe { described.bytes(start..start.saturating_add(size as usize)) }
    });
    let Some(table) = table else {
        return file;
    };
    let text = |offset: u64| {
        let rest = table.get(usize::try_from(offset).ok()?..)?;
        last_component(CStr::from_bytes_until_nul(rest).ok()?)
    };
    for (tag, offset) in entries {
        match tag {
            tag::NEEDED => file.needed.extend(text(offset)),
            tag::SONAME => file.names.extend(text(offset)),
            _ => {}
        }
    }
    file
}

/// Whether the library that contains `address` was loaded when the program started: it is preloaded, or the program needs
/// it. The loader loads preloaded libraries before those that the program needs, such as the C library.
pub fn is_loaded_at_start(address: *const c_void) -> bool {
    let files = LoadedFiles::now();
    let libc = files.containing(libc::getauxval as *const c_void);
    let Some(library) = files.containing(address) else {
        return false;
    };
    libc.is_some_and(|libc| library < libc) || files.search_list(0).contains(&library)
}

/// Whether a search for symbols by code at `caller` (RTLD_DEFAULT) includes the file that contains `function`, not counting
/// the global scope: some file needs both. `after_caller`: the search is for the next symbol (RTLD_NEXT).
pub fn is_in_local_scope(
    caller: *const c_void,
    function: *const c_void,
    after_caller: bool,
) -> bool {
    let files = LoadedFiles::now();
    let (Some(caller), Some(wanted)) = (files.containing(caller), files.containing(function))
    else {
        return false;
    };
    (0..files.0.len()).any(|root| {
        let list = files.search_list(root);
        let at = |file| list.iter().position(|&of| of == file);
        match (at(caller), at(wanted)) {
            (Some(caller), Some(wanted)) => !after_caller || caller < wanted,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_needs_the_c_library() {
        let files = LoadedFiles::now();
        let this = is_loaded_at_start as *const c_void;
        let libc = libc::getauxval as *const c_void;
        assert_eq!(files.containing(this), Some(0));
        let libc_file = files.containing(libc).unwrap();
        assert!(files.search_list(0).contains(&libc_file));
        assert!(is_loaded_at_start(libc));
        assert!(is_in_local_scope(this, libc, true) && is_in_local_scope(libc, this, false));
        assert!(!is_in_local_scope(libc, this, true));
        assert!(!is_loaded_at_start(std::ptr::null()));
    }
}
