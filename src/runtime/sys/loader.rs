//! Queries of the dynamic loader: the file that contains an address, exported symbols, notes in loaded files.

use super::elf_notes::Notes;
use super::env::env;
use super::loaded_files;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
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
    /// The first version of glibc for this processor.
    const OLDEST: &CStr = if cfg!(target_arch = "aarch64") {
        c"GLIBC_2.17"
    } else {
        c"GLIBC_2.2.5"
    };
    /// The versions of the function in glibc. All versions of glibc have the first one, and a failure would allocate.
    const VERSIONS: [&CStr; 2] = [OLDEST, c"GLIBC_2.34"];
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
    let mut found = Vec::new();
    loaded_files::visit(&mut |file| {
        for segment in file.segments(libc::PT_NOTE) {
            let start = segment.start;
            // SAFETY: notes are readable.
            let bytes = unsafe { file.bytes(segment) }.unwrap_or_default();
            for note in Notes::new(bytes) {
                let description = note.description.map(<[u8; 8]>::try_from);
                if let Some(Ok(distance)) = description
                    && (note.kind, note.name) == (kind, name.to_bytes_with_nul())
                {
                    let target = start
                        .wrapping_add(note.description_offset as usize)
                        .wrapping_add(u64::from_le_bytes(distance) as usize);
                    if file.is_loaded(&(target..target.saturating_add(8))) {
                        found.push(target as *const c_void);
                    }
                }
            }
        }
        false
    });
    found
}

/// The paths of all loaded libraries, as the dynamic loader knows them.
pub fn libraries() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    loaded_files::visit(&mut |file| {
        let name = file.name().unwrap_or_default().to_bytes();
        // The program's name is empty; the vDSO's name is not a path.
        if name.contains(&b'/') {
            paths.push(PathBuf::from(OsStr::from_bytes(name)));
        }
        false
    });
    paths
}

/// How many files the dynamic linker has loaded until now. At least 1.
pub fn number_loaded() -> u64 {
    let mut number = 1;
    loaded_files::visit(&mut |file| {
        number = file.number_loaded().unwrap_or(1);
        // The number is the same in all descriptions.
        true
    });
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
