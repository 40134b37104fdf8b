//! The files that the dynamic loader has loaded, and which of them need which others.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;

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
        unsafe extern "C" fn visit(
            info: *mut libc::dl_phdr_info,
            _: usize,
            data: *mut c_void,
        ) -> c_int {
            // SAFETY: `data` is the list of `now`; the dynamic linker describes a loaded file.
            unsafe { (*data.cast::<LoadedFiles>()).0.push(read(&*info)) };
            0
        }
        let mut files = LoadedFiles(Vec::new());
        // SAFETY: `visit` gets the pointer passed here.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut files).cast()) };
        files
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

/// # Safety
/// `info` describes a loaded file.
unsafe fn read(info: &libc::dl_phdr_info) -> LoadedFile {
    let base = info.dlpi_addr;
    let headers = match info.dlpi_phdr.is_null() {
        true => &[],
        // SAFETY: the file's program headers, which are mapped.
        false => unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) },
    };
    let range_of = |header: &libc::Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr) as usize;
        start..start.saturating_add(header.p_memsz as usize)
    };
    let segments = headers.iter().filter(|of| of.p_type == libc::PT_LOAD);
    let mut file = LoadedFile {
        segments: segments.map(range_of).collect(),
        names: Vec::new(),
        needed: Vec::new(),
    };
    if !info.dlpi_name.is_null() {
        // SAFETY: a C string.
        file.names
            .extend(last_component(unsafe { CStr::from_ptr(info.dlpi_name) }));
    }
    let is_loaded = |range: &Range<usize>| {
        let contains = |of: &Range<usize>| of.start <= range.start && range.end <= of.end;
        file.segments.iter().any(contains)
    };
    let dynamic = headers.iter().find(|of| of.p_type == libc::PT_DYNAMIC);
    let Some(dynamic) = dynamic.map(range_of).filter(is_loaded) else {
        return file;
    };
    // SAFETY: inside of a loaded segment: pairs of a tag and a value.
    let entries = unsafe {
        std::slice::from_raw_parts(
            dynamic.start as *const [u64; 2],
            dynamic.len() / size_of::<[u64; 2]>(),
        )
    };
    let entries = || entries.iter().take_while(|[tag, _]| *tag != tag::NULL);
    let value = |wanted| entries().find(|[tag, _]| *tag == wanted).map(|of| of[1]);
    let (Some(address), Some(size)) = (value(tag::STRTAB), value(tag::STRSZ)) else {
        return file;
    };
    // The loader adds the base to the address, unless the section is read-only.
    let candidates = [address, base.wrapping_add(address)].map(|start| start as usize);
    let mut tables = candidates.map(|start| start..start.saturating_add(size as usize));
    let Some(table) = tables.iter_mut().find(|table| is_loaded(table)) else {
        return file;
    };
    // SAFETY: inside of a loaded segment.
    let table = unsafe { std::slice::from_raw_parts(table.start as *const u8, table.len()) };
    let text = |offset: u64| {
        let rest = table.get(usize::try_from(offset).ok()?..)?;
        last_component(CStr::from_bytes_until_nul(rest).ok()?)
    };
    for &[tag, offset] in entries() {
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
