//! The part of the environment that file name patterns refer to. It may change while the program runs.

use crate::sys::env;
use std::ffi::OsString;

/// The values of a file name pattern's specifiers.
#[derive(Clone, Debug)]
pub struct Values {
    pub pid: u32,
    pub host: OsString,
    /// TMPDIR, if it is set.
    pub tmp: Option<OsString>,
}

impl Values {
    pub fn now() -> Values {
        Values {
            pid: std::process::id(),
            host: env::host_name().unwrap_or_default(),
            tmp: env::env("TMPDIR"),
        }
    }
}

/// The environment when [`Environment::now`] was called.
#[derive(Clone, Debug)]
pub struct Environment {
    /// LLVM_PROFILE_FILE, unless it is empty.
    pub pattern: Option<OsString>,
    pub values: Values,
}

impl Environment {
    pub fn now() -> Environment {
        Environment {
            pattern: env::not_empty(settings::PROFILE_FILE.name),
            values: Values::now(),
        }
    }
}
