//! AMD's libraries among the files that are loaded. Nothing is loaded here.

use crate::sys::loader;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::ffi::{CStr, OsStr, c_void};

/// How to recognize a library.
pub struct Libraries {
    /// The file names in AMD's releases.
    pub names: &'static [&'static str],
    /// How the file names of other builds begin, and a function that these define. Python wheels, for example, rename
    /// the libraries that they contain: `libamdhip64-5d2c0b1a.so`.
    pub renamed: Option<(&'static str, &'static CStr)>,
}

impl Libraries {
    /// The first of these libraries that is loaded, also with RTLD_LOCAL.
    pub fn loaded(&self) -> Option<Library> {
        self.named().or_else(|| self.renamed())
    }

    /// The first library that is loaded by one of its names.
    pub fn named(&self) -> Option<Library> {
        let mut names = self.names.iter();
        names.find_map(|name| open_loaded(OsStr::new(name)))
    }

    /// The first library that is loaded from a file with another name.
    pub fn renamed(&self) -> Option<Library> {
        let (prefix, function) = self.renamed?;
        loader::libraries().into_iter().find_map(|path| {
            if !path.file_name()?.to_str()?.starts_with(prefix) {
                return None;
            }
            let library = open_loaded(path.as_os_str())?;
            // SAFETY: not called here.
            let found = unsafe { library.get::<*const c_void>(function.to_bytes_with_nul()) };
            found.is_ok().then_some(library)
        })
    }
}

fn open_loaded(name: &OsStr) -> Option<Library> {
    // SAFETY: with RTLD_NOLOAD no constructor runs: the library is already loaded, or the call fails.
    unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL | libc::RTLD_NOLOAD) }.ok()
}
