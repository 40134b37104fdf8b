//! Settings from environment variables, read once.

use super::diagnostics;
use super::environment::Environment;
use crate::sys::env::env;
use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::Duration;

/// The default of DEVPROF_SYNC_MS.
const SYNC_LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Settings {
    /// DEVPROF_DISABLE=1: do nothing.
    pub disabled: bool,
    /// The environment when devprof was loaded.
    pub environment: Environment,
    /// DEVPROF_TRACE.
    pub trace: Option<OsString>,
    /// LLVM_PROFILE_VERBOSE is set, to any value, as in LLVM.
    pub verbose: bool,
    /// DEVPROF_SYNC_MS: the longest time that a drain waits for running kernels, and for its copies.
    pub sync_limit: Duration,
    /// DEVPROF_SNAPSHOT_MS: the time between snapshots. A process that is killed loses at most the counts of that time.
    pub snapshot: Option<Duration>,
    /// True unless DEVPROF_SIGNALS=0: drain when SIGABRT, SIGTERM, SIGINT or SIGHUP ends the process. A handler is
    /// installed for those of them that have their default action when the first code object is loaded.
    pub signals: bool,
}

/// A number of milliseconds, at least `least`. Reports invalid values, and what happens `instead`.
fn milliseconds(name: &str, least: u64, instead: &str) -> Option<Duration> {
    let text = env(name)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    if let Some(number) = number.filter(|&number| number >= least) {
        return Some(Duration::from_millis(number));
    }
    diagnostics::lost(format_args!(
        "{name}={}: not a valid number of milliseconds; {instead}",
        text.display()
    ));
    None
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::from_env)
}

impl Settings {
    fn from_env() -> Settings {
        let sync_instead = format!("using {}", SYNC_LIMIT.as_millis());
        Settings {
            disabled: env("DEVPROF_DISABLE").is_some_and(|value| value == "1"),
            environment: Environment::now(),
            trace: env("DEVPROF_TRACE").filter(|pattern| !pattern.is_empty()),
            verbose: env("LLVM_PROFILE_VERBOSE").is_some(),
            sync_limit: milliseconds("DEVPROF_SYNC_MS", 0, &sync_instead).unwrap_or(SYNC_LIMIT),
            snapshot: milliseconds("DEVPROF_SNAPSHOT_MS", 1, "snapshots disabled"),
            signals: env("DEVPROF_SIGNALS").is_none_or(|value| value != "0"),
        }
    }
}
