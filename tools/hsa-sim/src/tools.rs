//! The tools interface: at the end of the first `hsa_init` the libraries that `HSA_TOOLS_LIB` names get the API tables
//! (`OnLoad`), and at the last `hsa_shut_down` they are told to go (`OnUnload`) and are closed, as ROCr does it.

use crate::abi::TableVersion;
use crate::api::{self, TABLES};
use crate::runtime::locked;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Mutex;

/// `HsaApiTable`.
#[repr(C)]
pub struct ApiTable {
    pub version: TableVersion,
    pub core: *mut api::CoreTable,
    pub amd_ext: *mut api::AmdExtTable,
    pub finalizer_ext: *mut api::FinalizerTable,
    pub image_ext: *mut api::ImageTable,
    pub tools: *mut api::ToolsTable,
    pub pc_sampling_ext: *mut api::PcSamplingTable,
}

/// `HSA_API_TABLE_MAJOR_VERSION` and `_STEP_VERSION`.
pub const MAJOR: u32 = 3;
pub const STEP: u32 = 1;

type OnLoad = unsafe extern "C" fn(*mut ApiTable, u64, u64, *const *const c_char) -> bool;
type OnUnload = unsafe extern "C" fn();

/// The version of the runtime that tools are told: ROCr's.
const RUNTIME_VERSION: u64 = 1;

/// Handles of the tools that are loaded.
static LOADED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The libraries of a value of HSA_TOOLS_LIB: names between spaces, and what is in double quotes is one name.
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

fn table() -> ApiTable {
    let tables = TABLES.get();
    // SAFETY: the places of a static's fields; nothing is read.
    unsafe {
        ApiTable {
            version: TableVersion {
                major: MAJOR,
                minor: size_of::<ApiTable>() as u32,
                step: STEP,
                reserved: 0,
            },
            core: &raw mut (*tables).core,
            amd_ext: &raw mut (*tables).amd_ext,
            finalizer_ext: &raw mut (*tables).finalizer_ext,
            image_ext: &raw mut (*tables).image_ext,
            tools: &raw mut (*tables).tools,
            pc_sampling_ext: &raw mut (*tables).pc_sampling_ext,
        }
    }
}

/// A function of a loaded library.
fn symbol(handle: usize, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a handle from dlopen that is not closed.
    let found = unsafe { libc::dlsym(handle as *mut c_void, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Loads the tools. What cannot be loaded is said, and the later tools are told.
pub fn load() {
    let Ok(value) = std::env::var("HSA_TOOLS_LIB") else {
        return;
    };
    // Tools may keep the table.
    static TABLE: Mutex<Option<usize>> = Mutex::new(None);
    let table = *locked(&TABLE).get_or_insert_with(|| Box::into_raw(Box::new(table())) as usize);
    let mut failed: Vec<CString> = Vec::new();
    for name in names(&value) {
        let Ok(c_name) = CString::new(name.as_str()) else {
            continue;
        };
        // SAFETY: the user named the library to be loaded here.
        let handle = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: dlerror gives a C string after a failure.
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
                let on_load = std::mem::transmute::<*mut c_void, OnLoad>(function);
                on_load(
                    table as *mut ApiTable,
                    RUNTIME_VERSION,
                    list.len() as u64,
                    list.as_ptr(),
                )
            }
        });
        if loaded {
            locked(&LOADED).push(handle);
        } else {
            eprintln!("hsa-sim: HSA_TOOLS_LIB: {name} has no OnLoad, or refused");
            failed.push(c_name);
            // SAFETY: the handle of the library that was just opened.
            unsafe { libc::dlclose(handle as *mut c_void) };
        }
    }
}

/// Tells the tools to go, the last one first, and closes them.
pub fn unload() {
    let loaded = std::mem::take(&mut *locked(&LOADED));
    for &handle in loaded.iter().rev() {
        if let Some(function) = symbol(handle, c"OnUnload") {
            // SAFETY: a tool's OnUnload has this type.
            unsafe { std::mem::transmute::<*mut c_void, OnUnload>(function)() };
        }
    }
    TABLES.reset();
    for handle in loaded {
        // SAFETY: opened by `load`, and told to go.
        unsafe { libc::dlclose(handle as *mut c_void) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_stand_between_spaces_or_in_quotes() {
        assert_eq!(
            names("/a.so  \"/b c.so\" /d.so"),
            ["/a.so", "/b c.so", "/d.so"]
        );
        assert!(names(" ").is_empty());
    }
}
