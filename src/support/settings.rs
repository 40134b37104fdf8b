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
    /// DEVPROF_SNAPSHOT_MS: drain every so often, too, so that no end of the process costs more than that.
    pub snapshot: Option<Duration>,
    /// DEVPROF_SIGNALS: 0 is "do not drain when SIGABRT, SIGTERM, SIGINT or SIGHUP ends the process". Otherwise a handler
    /// is installed for those that have their default action when the first code object is loaded.
    pub signals: bool,
}

/// A number of milliseconds; what is none is said, with what is done instead.
fn milliseconds(name: &str, least: u64, instead: &str) -> Option<Duration> {
    let text = host::env(name)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    if let Some(number) = number.filter(|&number| number >= least) {
        return Some(Duration::from_millis(number));
    }
    crate::report::lost(format_args!(
        "{name}={} is no number of milliseconds; {instead}",
        text.display()
    ));
    None
}

impl Settings {
    pub fn from_env() -> Settings {
        let sync_instead = format!("{} are used", SYNC_LIMIT.as_millis());
        Settings {
            disabled: host::env("DEVPROF_DISABLE").is_some_and(|value| value == "1"),
            environment: Environment::now(),
            trace: host::env("DEVPROF_TRACE").filter(|pattern| !pattern.is_empty()),
            verbose: host::env("LLVM_PROFILE_VERBOSE").is_some(),
            sync_limit: milliseconds("DEVPROF_SYNC_MS", 0, &sync_instead).unwrap_or(SYNC_LIMIT),
            snapshot: milliseconds("DEVPROF_SNAPSHOT_MS", 1, "no snapshots are made"),
            signals: host::env("DEVPROF_SIGNALS").is_none_or(|value| value != "0"),
        }
    }
}
