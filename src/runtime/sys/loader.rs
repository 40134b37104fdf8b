//! Queries of the dynamic loader: the file that contains an address, exported symbols, notes in loaded files.

use super::elf_notes::Notes;
use super::env::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name of a symbol, from text with its NUL byte. Only for constants: other text is an error of the compiler.
pub const fn c_name(name: &str) -> &CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name with one NUL byte"),
    }
}

/// Information about the library or program that contains `address`.
fn file_of(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr fills `info` when it returns non-zero.
    unsafe { (libc::dladdr(address, info.as_mut_ptr()) != 0).then(|| info.assume_init()) }
}

/// The address of `symbol` in a file; null if the file does not export it.
fn symbol_in(file: &libc::Dl_info, symbol: &CStr) -> *mut c_void {
    // SAFETY: the loader's name of a file; RTLD_NOLOAD only finds loaded files; the handle is closed again.
    unsafe {
        let handle = libc::dlopen(file.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return std::ptr::null_mut();
        }
        let found = libc::dlsym(handle, symbol.as_ptr());
        libc::dlclose(handle);
        found
    }
}

/// The symbol that is at `address`.
pub fn symbol_at(address: *const c_void) -> Option<CString> {
    let info = file_of(address)?;
    if info.dli_sname.is_null() || info.dli_saddr.cast_const() != address {
        return None;
    }
    // SAFETY: the name is a C string that is valid while the library is loaded.
    Some(unsafe { CStr::from_ptr(info.dli_sname) }.to_owned())
}

/// The function `dlsym` that a call would reach without devprof's shared library; null if there is none. Allocates
/// nothing.
pub fn next_dlsym() -> *mut c_void {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    /// The versions of the function in glibc. All versions of glibc have the first one, and a failure would allocate.
    const VERSIONS: [&CStr; 2] = [c"GLIBC_2.2.5", c"GLIBC_2.34"];
    for version in VERSIONS {
        // SAFETY: `dlvsym` with C strings, then `dlsym` with its type.
        unsafe {
            let found = libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr());
            if !found.is_null() {
                // `dlvsym` skips libraries that define functions of the C library without a version.
                let dlsym = std::mem::transmute::<*mut c_void, Dlsym>(found);
                let next = dlsym(libc::RTLD_NEXT, c"dlsym".as_ptr());
                return if next.is_null() { found } else { next };
            }
        }
    }
    std::ptr::null_mut()
}

/// The function of this name in the libraries after this one; null if there is none.
pub fn next_function(name: &CStr) -> *mut c_void {
    // SAFETY: `dlsym` with a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// The path of the library that contains `address`, as the loader has recorded it.
pub fn path_of(address: *const c_void) -> Option<PathBuf> {
    let info = file_of(address).filter(|info| !info.dli_fname.is_null())?;
    // SAFETY: the name is a C string that is valid while the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// Whether two functions are in the same library or program.
pub fn are_in_same_file(one: *const c_void, other: *const c_void) -> bool {
    let base = |address| file_of(address).map(|info| info.dli_fbase);
    base(one) == base(other)
}

/// The function `symbol`, if the library or program that contains `address` exports and defines it.
pub fn exported_by_file_of(address: *const c_void, symbol: &CStr) -> Option<*mut c_void> {
    let info = file_of(address).filter(|info| !info.dli_fname.is_null())?;
    let found = symbol_in(&info, symbol);
    (!found.is_null() && are_in_same_file(found, address)).then_some(found)
}

/// The path of the file that contains `address`, if the file exports `symbol` with this address. devprof's shared
/// library does, an executable that is linked with the archive does not.
pub fn exporting_library(symbol: &CStr, address: *const c_void) -> Option<PathBuf> {
    let info = file_of(address).filter(|info| !info.dli_fname.is_null())?;
    if symbol_in(&info, symbol).cast_const() != address {
        return None;
    }
    let path = path_of(address)?;
    Some(std::fs::canonicalize(&path).unwrap_or(path))
}

/// Whether LD_PRELOAD names a library.
pub fn is_preloaded(library: &Path) -> bool {
    let list = env("LD_PRELOAD").unwrap_or_default();
    let mut names = list
        .as_bytes()
        .split(|byte| matches!(byte, b' ' | b':'))
        .map(|name| Path::new(OsStr::from_bytes(name)));
    names.any(|name| name.file_name().is_some() && name.file_name() == library.file_name())
}

/// The addresses that the notes of this name and type in all loaded files point to. A note's description is the distance
/// from the description to the address, 8 bytes.
pub fn notes(name: &CStr, kind: u32) -> Vec<*const c_void> {
    struct Search<'a> {
        name: &'a [u8],
        kind: u32,
        found: Vec<*const c_void>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the search that `notes` passed; the dynamic linker passes a file's program headers, whose
        // segments are mapped.
        let (search, base, headers) = unsafe {
            let info = &*info;
            let headers = match info.dlpi_phdr.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
            };
            (&mut *data.cast::<Search>(), info.dlpi_addr, headers)
        };
        let loaded = |from: u64, size: u64| {
            headers.iter().any(|header| {
                let start = base.wrapping_add(header.p_vaddr);
                header.p_type == libc::PT_LOAD
                    && from >= start
                    && size <= header.p_memsz
                    && from - start <= header.p_memsz - size
            })
        };
        for header in headers
            .iter()
            .filter(|header| header.p_type == libc::PT_NOTE)
        {
            let start = base.wrapping_add(header.p_vaddr);
            if !loaded(start, header.p_memsz) {
                continue;
            }
            // SAFETY: inside a loaded segment; notes are readable.
            let bytes =
                unsafe { std::slice::from_raw_parts(start as *const u8, header.p_memsz as usize) };
            for note in Notes::new(bytes) {
                if (note.kind, note.name) != (search.kind, search.name) {
                    continue;
                }
                let Some(Ok(distance)) = note.description.map(<[u8; 8]>::try_from) else {
                    continue;
                };
                let target = start
                    .wrapping_add(note.description_offset)
                    .wrapping_add(u64::from_le_bytes(distance));
                if loaded(target, 8) {
                    search.found.push(target as *const c_void);
                }
            }
        }
        0
    }
    let mut search = Search {
        name: name.to_bytes_with_nul(),
        kind,
        found: Vec::new(),
    };
    // SAFETY: `visit` gets the pointer passed here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// The paths of all loaded libraries, as the dynamic loader knows them.
pub fn libraries() -> Vec<PathBuf> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the list of `libraries`; the dynamic linker passes a file's name, null or a C string.
        unsafe {
            let (paths, name) = (&mut *data.cast::<Vec<PathBuf>>(), (*info).dlpi_name);
            // The program's name is empty; that of the vDSO is no path.
            if !name.is_null() && !libc::strchr(name, c_int::from(b'/')).is_null() {
                let name = CStr::from_ptr(name).to_bytes();
                paths.push(PathBuf::from(OsStr::from_bytes(name)));
            }
        }
        0
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    // SAFETY: `visit` gets the pointer passed here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut paths).cast()) };
    paths
}

/// How many files the dynamic linker has loaded until now. At least 1.
pub fn number_loaded() -> u64 {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the number of `number_loaded`; `size` says how much of the description is valid.
        unsafe {
            let end = std::mem::offset_of!(libc::dl_phdr_info, dlpi_adds) + size_of::<u64>();
            *data.cast::<u64>() = if size >= end { (*info).dlpi_adds } else { 1 };
        }
        // The number is the same in all descriptions.
        1
    }
    let mut number: u64 = 1;
    // SAFETY: `visit` gets the pointer passed here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut number).cast()) };
    number
}

/// Keeps the library that contains `address` loaded, even if it is closed.
pub fn keep_loaded(address: *const c_void) {
    if let Some(info) = file_of(address).filter(|info| !info.dli_fname.is_null()) {
        // SAFETY: RTLD_NOLOAD only finds loaded files; the handle is never closed.
        unsafe {
            libc::dlopen(
                info.dli_fname,
                libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE,
            );
        }
    }
}
