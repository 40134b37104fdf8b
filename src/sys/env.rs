//! The process's environment: variables, host name.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// An environment variable. `None` in a set-user-id process: its caller controls the environment.
pub fn env(name: &str) -> Option<OsString> {
    (!is_secure()).then(|| std::env::var_os(name)).flatten()
}

/// Whether the program runs with other privileges than its caller (set-user-id, capabilities).
pub fn is_secure() -> bool {
    // SAFETY: getauxval only reads.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Sets an environment variable. To be called from a constructor only, before the program creates threads.
pub fn set_env(name: &CStr, value: &OsStr) {
    if let Ok(value) = CString::new(value.as_bytes()) {
        // SAFETY: both are C strings. The constructor runs before the program's first thread.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
}

/// The host's name, from `gethostname`.
pub fn host_name() -> Option<OsString> {
    let mut name = [0u8; 256];
    // SAFETY: one byte less than the size of the buffer, so the last byte stays 0.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0 {
        return None;
    }
    let end = name.iter().position(|&b| b == 0)?;
    Some(OsString::from_vec(name[..end].to_vec()))
}
