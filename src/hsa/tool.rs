//! devprof as a tool of ROCr: what `HSA_TOOLS_LIB` loads at the end of `hsa_init`. Mirrors `hsa/hsa_api_trace.h`.

use super::types::Status;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Mutex;

/// `ApiTableVersion`. In a table of functions `minor` is the table's size in bytes.
#[repr(C)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub step: u32,
    pub reserved: u32,
}

/// The beginning of `HsaApiTable`.
#[repr(C)]
pub struct ApiTable {
    pub version: Version,
    pub core: *mut CoreTable,
}

type ShutDown = unsafe extern "C" fn() -> Status;

/// The beginning of `CoreApiTable`.
#[repr(C)]
pub struct CoreTable {
    pub version: Version,
    pub hsa_init: usize,
    pub hsa_shut_down: ShutDown,
}

/// `HSA_API_TABLE_MAJOR_VERSION`: the version of `HsaApiTable` whose beginning is known here.
pub const API_TABLE_MAJOR_VERSION: u32 = 3;
/// `HSA_CORE_API_TABLE_MAJOR_VERSION`: likewise of `CoreApiTable`.
pub const CORE_API_TABLE_MAJOR_VERSION: u32 = 2;

#[derive(Clone, Copy)]
struct Hook {
    before: fn(),
    /// ROCr's own function, or that of a tool before us.
    original: ShutDown,
}

static SHUT_DOWN: Mutex<Option<Hook>> = Mutex::new(None);

/// Has `before` run before each `hsa_shut_down`: when ROCr calls `OnUnload`, its functions are out of use already.
/// False when the tables are not of the versions that are known here; then nothing is changed.
///
/// # Safety
/// `table` is null or ROCr's, as `OnLoad` gets it.
pub unsafe fn before_shut_down(table: *mut ApiTable, before: fn()) -> bool {
    // SAFETY: the caller's promise; the versions say that the fields are there.
    let core = unsafe {
        match table.as_ref() {
            Some(table) if table.version.major == API_TABLE_MAJOR_VERSION => table.core.as_mut(),
            _ => None,
        }
    };
    let Some(core) = core else { return false };
    let known = core.version.major == CORE_API_TABLE_MAJOR_VERSION;
    if !known || (core.version.minor as usize) < size_of::<CoreTable>() {
        return false;
    }
    let mut hook = SHUT_DOWN
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    // A table that was changed already, by an earlier OnLoad, leads back here.
    if core.hsa_shut_down as usize != shut_down as *const () as usize {
        *hook = Some(Hook {
            before,
            original: core.hsa_shut_down,
        });
        core.hsa_shut_down = shut_down;
    }
    true
}

unsafe extern "C" fn shut_down() -> Status {
    let hook = *SHUT_DOWN
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let Some(hook) = hook else {
        return Status::ERROR;
    };
    (hook.before)();
    // SAFETY: what the table had for it.
    unsafe { (hook.original)() }
}

/// The value of HSA_TOOLS_LIB that adds `library` to the tools in `old`, or `None` when it is among them. ROCr splits
/// the value at spaces and takes what is in double quotes as one name.
pub fn with_tool(old: Option<&OsStr>, library: &OsStr) -> Option<OsString> {
    let name = library.as_bytes();
    let old = old.map(OsStr::as_bytes).unwrap_or_default();
    if !name.is_empty() && old.windows(name.len()).any(|window| window == name) {
        return None;
    }
    let mut value = old.to_vec();
    if !value.is_empty() {
        value.push(b' ');
    }
    if name.contains(&b' ') {
        value.extend([b"\"", name, b"\""].concat());
    } else {
        value.extend(name);
    }
    Some(OsString::from_vec(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_added_once_beside_others() {
        let with = |old: Option<&str>, name: &str| with_tool(old.map(OsStr::new), OsStr::new(name));
        assert_eq!(with(None, "/x/d.so"), Some("/x/d.so".into()));
        assert_eq!(with(Some("/a.so"), "/x/d.so"), Some("/a.so /x/d.so".into()));
        assert_eq!(with(Some("/x/d.so /a.so"), "/x/d.so"), None);
        assert_eq!(with(None, "/x y/d.so"), Some("\"/x y/d.so\"".into()));
    }
}
