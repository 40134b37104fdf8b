//! What the user asked for, by environment variables, read once when devprof is loaded.

use crate::host;
use crate::pattern::Environment;
use std::ffi::OsString;
use std::time::Duration;

/// How long a drain waits for kernels and copies unless told otherwise.
const SYNC_LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Settings {
    /// DEVPROF_DISABLE: 1 is "do nothing".
    pub disabled: bool,
    /// When the program started.
    pub environment: Environment,
    /// DEVPROF_TRACE.
    pub trace: Option<OsString>,
    /// LLVM_PROFILE_VERBOSE, as LLVM has it: set to anything.
    pub verbose: bool,
    /// DEVPROF_SYNC_MS: how long a drain waits for kernels that still run, and for its copies.
    pub sync_limit: Duration,
}

impl Settings {
    pub fn from_env() -> Settings {
        let sync_limit = match host::env("DEVPROF_SYNC_MS") {
            None => SYNC_LIMIT,
            Some(text) => match text.to_str().and_then(|text| text.parse().ok()) {
                Some(ms) => Duration::from_millis(ms),
                None => {
                    crate::report::lost(format_args!(
                        "DEVPROF_SYNC_MS={} is no number of milliseconds; {} are used",
                        text.display(),
                        SYNC_LIMIT.as_millis()
                    ));
                    SYNC_LIMIT
                }
            },
        };
        Settings {
            disabled: host::env("DEVPROF_DISABLE").is_some_and(|value| value == "1"),
            environment: Environment::now(),
            trace: host::env("DEVPROF_TRACE").filter(|pattern| !pattern.is_empty()),
            verbose: host::env("LLVM_PROFILE_VERBOSE").is_some(),
            sync_limit,
        }
    }
}
