//! The tools interface: at the end of the first `hsa_init` the libraries that `HSA_TOOLS_LIB` names get the API tables
//! (`OnLoad`), and at the last `hsa_shut_down` they are told to go (`OnUnload`) and are closed, as ROCr does it.
//!
//! A ROCr that is built with rocprofiler-register offers its tables to rocprofiler-sdk first. If a tool has registered
//! there, ROCr loads no library of `HSA_TOOLS_LIB` and prints nothing, unless `HSA_TOOLS_ROCPROFILER_V1_TOOLS` asks for
//! it. `HSA_SIM_TOOLS=registered` is that case.

use crate::api::{self, TABLES};
use crate::runtime::locked;
use crate::settings::Settings;
use hsa_abi::{API_TABLE_MAJOR_VERSION, API_TABLE_STEP_VERSION, ApiTable, TableVersion};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type OnLoad = unsafe extern "C" fn(*mut ApiTable, u64, u64, *const *const c_char) -> bool;
type OnUnload = unsafe extern "C" fn();

/// The version of the runtime that tools are told: ROCr's.
const RUNTIME_VERSION: u64 = 1;

/// What tools find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// The libraries of `HSA_TOOLS_LIB` are skipped.
    pub skipped: bool,
    /// The major version of the table that tools get.
    pub table_major: u32,
    /// The `AmdExtTable` ends where ROCr 7.2.4's does.
    pub older_table: bool,
}

impl ToolSettings {
    /// Reads them from the environment.
    pub fn from_env() -> Result<ToolSettings, String> {
        let registered = match std::env::var("HSA_SIM_TOOLS").as_deref() {
            Err(_) | Ok("load") => false,
            Ok("registered") => true,
            Ok(other) => {
                return Err(format!(
                    "HSA_SIM_TOOLS={other}: 'load' and 'registered' are known"
                ));
            }
        };
        let no_registration = std::env::var_os("HSA_TOOLS_DISABLE_REGISTER");
        let skipped = registered
            && no_registration.is_none_or(|value| value != "1")
            && !first_version_tools(std::env::var("HSA_TOOLS_ROCPROFILER_V1_TOOLS").ok())?;
        let table_major = match std::env::var("HSA_SIM_TABLE_MAJOR") {
            Err(_) => API_TABLE_MAJOR_VERSION,
            Ok(text) => text.parse().map_err(|_| {
                format!("HSA_SIM_TABLE_MAJOR={text}: not a version number from 0 to 4294967295")
            })?,
        };
        let older_table = match std::env::var("HSA_SIM_TABLE").as_deref() {
            Err(_) | Ok("newest") => false,
            Ok("rocr-7.2") => true,
            Ok(other) => {
                return Err(format!(
                    "HSA_SIM_TABLE={other}: 'newest' and 'rocr-7.2' are known"
                ));
            }
        };
        Ok(ToolSettings {
            skipped,
            table_major,
            older_table,
        })
    }
}

/// Whether a value of `HSA_TOOLS_ROCPROFILER_V1_TOOLS` asks for the tools of `HSA_TOOLS_LIB`. If the variable is not set,
/// rocprofiler-sdk sets it to 0 when it registers. A number that is too large is an error of ROCr's hsa_init.
fn first_version_tools(value: Option<String>) -> Result<bool, String> {
    let Some(value) = value else {
        return Ok(false);
    };
    if value.is_empty() {
        return Ok(true);
    }
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: Result<i32, _> = value.parse();
        return number.map(|number| number != 0).map_err(|_| {
            format!("HSA_TOOLS_ROCPROFILER_V1_TOOLS={value}: the number is too large")
        });
    }
    let off = ["off", "false", "no", "n", "f"];
    Ok(!off.iter().any(|word| value.eq_ignore_ascii_case(word)))
}

/// How often an `OnLoad` was called.
static ON_LOAD_CALLS: AtomicU64 = AtomicU64::new(0);

/// How often the `OnLoad` of a tool was called in this process.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_sim_on_load_calls() -> u64 {
    ON_LOAD_CALLS.load(Relaxed)
}

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
                major: API_TABLE_MAJOR_VERSION,
                minor: size_of::<ApiTable>() as u32,
                step: API_TABLE_STEP_VERSION,
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

/// The table that tools get. They may keep it.
fn shared_table(settings: &ToolSettings) -> *mut ApiTable {
    static TABLE: Mutex<Option<usize>> = Mutex::new(None);
    let mut shared = locked(&TABLE);
    let table = *shared.get_or_insert_with(|| Box::into_raw(Box::new(table())) as usize);
    let table = table as *mut ApiTable;
    // SAFETY: never freed, and changed only here, while no tool is loaded.
    unsafe {
        (*table).version.major = settings.table_major;
        if settings.older_table {
            (*TABLES.get()).amd_ext.version = api::amd_ext_7_2();
        }
    }
    table
}

/// Loads the tools. A tool that cannot be loaded is reported on stderr and to the tools after it.
pub fn load(settings: &Settings) {
    if settings.tools.skipped {
        return;
    }
    let Ok(value) = std::env::var("HSA_TOOLS_LIB") else {
        return;
    };
    let table = shared_table(&settings.tools);
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
                ON_LOAD_CALLS.fetch_add(1, Relaxed);
                let on_load = std::mem::transmute::<*mut c_void, OnLoad>(function);
                on_load(table, RUNTIME_VERSION, list.len() as u64, list.as_ptr())
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
    fn tools_are_asked_for_with_the_words_that_rocr_knows() {
        let asked = |value: &str| first_version_tools(Some(value.into()));
        assert_eq!(first_version_tools(None), Ok(false));
        for off in ["0", "000", "off", "OFF", "False", "no", "N", "f"] {
            assert_eq!(asked(off), Ok(false), "{off}");
        }
        for on in [
            "", "1", "42", "on", "true", "offf", " 0", "-1", "yes", "nope",
        ] {
            assert_eq!(asked(on), Ok(true), "{on}");
        }
        assert_eq!(asked("2147483647"), Ok(true));
        assert!(asked("2147483648").is_err());
    }

    #[test]
    fn tools_stand_between_spaces_or_in_quotes() {
        assert_eq!(
            names("/a.so  \"/b c.so\" /d.so"),
            ["/a.so", "/b c.so", "/d.so"]
        );
        assert!(names(" ").is_empty());
    }
}
