//! The tools interface. As in ROCr, the first `hsa_init` loads the libraries of `HSA_TOOLS_LIB` and calls their `OnLoad`
//! with the API tables. The last `hsa_shut_down` calls their `OnUnload` and closes them.
//!
//! A ROCr that is built with rocprofiler-register offers its tables to rocprofiler-sdk first. If a tool has registered
//! there, ROCr skips the libraries of `HSA_TOOLS_LIB` without a message, unless `HSA_TOOLS_ROCPROFILER_V1_TOOLS` enables
//! them or `HSA_TOOLS_DISABLE_REGISTER` is 1. `HSA_SIM_TOOLS=registered` simulates this.

use crate::settings::tools::ToolSettings;
use crate::sync::locked;
use hsa_abi::ApiTable;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type OnLoad = unsafe extern "C" fn(*mut ApiTable, u64, u64, *const *const c_char) -> bool;

type OnUnload = unsafe extern "C" fn();

/// The runtime version that ROCr passes to tools.
const RUNTIME_VERSION: u64 = 1;

/// See [`hsa_sim_on_load_calls`].
static ON_LOAD_CALLS: AtomicU64 = AtomicU64::new(0);

/// The number of calls of a tool's `OnLoad` in this process.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_sim_on_load_calls() -> u64 {
    ON_LOAD_CALLS.load(Relaxed)
}

/// The handles (`dlopen`) of the loaded tools.
static LOADED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The libraries in a value of `HSA_TOOLS_LIB`: names separated by spaces. Double quotes enclose a name with spaces.
fn names(value: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut quoted = false;
    for c in value.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => names.push(String::new()),
            c => names.last_mut().into_iter().for_each(|name| name.push(c)),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// A function of a loaded library.
fn symbol(handle: usize, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a handle from dlopen that is not closed.
    let found = unsafe { libc::dlsym(handle as *mut c_void, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Loads the tools. A tool that cannot be loaded is reported on stderr and to the following tools.
pub fn load(settings: &ToolSettings, table: impl FnOnce() -> *mut ApiTable) {
    if settings.skipped {
        return;
    }
    let Ok(value) = std::env::var("HSA_TOOLS_LIB") else {
        return;
    };
    let table = table();
    let mut failed: Vec<CString> = Vec::new();
    for name in names(&value) {
        let Ok(c_name) = CString::new(name.as_str()) else {
            continue;
        };
        // SAFETY: the user has named this library.
        let handle = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: dlerror returns a C string after a failure.
            let why = unsafe { CStr::from_ptr(libc::dlerror()) };
            eprintln!("hsa-sim: HSA_TOOLS_LIB: {}", why.to_string_lossy());
            failed.push(c_name);
            continue;
        }
        let handle = handle as usize;
        let list: Vec<*const c_char> = failed.iter().map(|name| name.as_ptr()).collect();
        let loaded = symbol(handle, c"OnLoad").is_some_and(|function| {
            // SAFETY: a tool's OnLoad has this type (hsa_api_trace.h), and the table lives as long as the process.
            unsafe {
                ON_LOAD_CALLS.fetch_add(1, Relaxed);
                let on_load = std::mem::transmute::<*mut c_void, OnLoad>(function);
                on_load(table, RUNTIME_VERSION, list.len() as u64, list.as_ptr())
            }
        });
        if loaded {
            locked(&LOADED).push(handle);
        } else {
            eprintln!("hsa-sim: HSA_TOOLS_LIB: {name} has no OnLoad, or its OnLoad returned false");
            failed.push(c_name);
            // SAFETY: the handle of the library that was just opened.
            unsafe { libc::dlclose(handle as *mut c_void) };
        }
    }
}

/// Calls `OnUnload` of the tools in reverse order, and closes them.
pub fn unload(reset_tables: impl FnOnce()) {
    let loaded = std::mem::take(&mut *locked(&LOADED));
    for &handle in loaded.iter().rev() {
        if let Some(function) = symbol(handle, c"OnUnload") {
            // SAFETY: a tool's OnUnload has this type.
            unsafe { std::mem::transmute::<*mut c_void, OnUnload>(function)() };
        }
    }
    reset_tables();
    for handle in loaded {
        // SAFETY: opened by `load`; the tool's `OnUnload` has returned.
        unsafe { libc::dlclose(handle as *mut c_void) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_spaces_or_quoted() {
        assert_eq!(
            names("/a.so  \"/b c.so\" /d.so"),
            ["/a.so", "/b c.so", "/d.so"]
        );
        assert!(names(" ").is_empty());
    }
}
