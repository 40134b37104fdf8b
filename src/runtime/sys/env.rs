//! The process's environment: variables, host name, user.

use super::{loaded_files, threads};
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::OnceLock;

/// An environment variable. `None` in a set-user-id process: its caller controls the environment.
pub fn env(name: &str) -> Option<OsString> {
    (!is_secure()).then(|| std::env::var_os(name)).flatten()
}

/// An environment variable that is not empty. See [`env`].
pub fn not_empty(name: &str) -> Option<OsString> {
    env(name).filter(|value| !value.is_empty())
}

/// Whether an environment variable is set and not empty. `None`: the C library has not set up the environment yet.
/// Allocates nothing and does not call `getenv`, which a program may define with `dlsym`.
pub fn is_set(name: &str) -> Option<bool> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let starts_with_name = |variable: &CStr| {
        let value = variable.to_bytes().strip_prefix(name.as_bytes());
        value.is_some_and(|value| value.len() > 1 && value[0] == b'=')
    };
    // SAFETY: the C library's variable: an array of C strings with a NULL at its end.
    unsafe {
        let mut variables = environ;
        if variables.is_null() {
            return None;
        }
        while !(*variables).is_null() {
            if starts_with_name(CStr::from_ptr(*variables)) {
                return Some(!is_secure());
            }
            variables = variables.add(1);
        }
    }
    Some(false)
}

/// Whether the program runs with other privileges than its caller (set-user-id, capabilities).
pub fn is_secure() -> bool {
    // SAFETY: getauxval only reads.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The user whose rights the process has.
pub fn effective_user() -> u32 {
    // SAFETY: only returns a value.
    unsafe { libc::geteuid() }
}

/// Sets an environment variable, if that is allowed ([`may_change`]). Returns whether it is set. To be called from the
/// constructor.
pub fn set_env(name: &CStr, value: &OsStr) -> bool {
    let Some(value) = CString::new(value.as_bytes()).ok().filter(|_| may_change()) else {
        return false;
    };
    // SAFETY: both are C strings, and no other thread reads the environment: this one is the only thread.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) == 0 }
}

/// Whether no other code can be using the environment while the constructor runs: devprof was loaded when the program started,
/// not later (by ROCr, the CUDA driver or `dlopen`), and no library that was initialized before has created a thread.
fn may_change() -> bool {
    static MAY_CHANGE: OnceLock<bool> = OnceLock::new();
    *MAY_CHANGE.get_or_init(|| {
        threads::is_only_thread() && loaded_files::is_loaded_at_start(may_change as *const c_void)
    })
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
