//! Settings from environment variables, read once.

use super::diagnostics;
use super::environment::Environment;
use crate::sys::env::{env, not_empty};
use settings::Variable;
use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// The default of DEVPROF_SYNC_MS.
const SYNC_LIMIT: Duration = Duration::from_secs(10);
/// The default of DEVPROF_COUNTER_COPIES_MB. A quarter of it is enough for 512 copies of 256 KiB of counters, for the 304 compute
/// units of an MI300X.
const COPIES_BUDGET: u64 = 1024 << 20;

#[derive(Clone, Debug)]
pub struct Settings {
    /// DEVPROF_DISABLE=1: do nothing.
    pub disabled: bool,
    /// When devprof was loaded.
    pub loaded: SystemTime,
    /// The environment when devprof was loaded.
    pub environment: Environment,
    /// DEVPROF_TRACE.
    pub trace: Option<OsString>,
    /// DEVPROF_CUPTI: the path of CUPTI's library.
    pub cupti: Option<OsString>,
    /// DEVPROF_PTX=1: instrument PTX that the program passes to the CUDA driver.
    pub ptx: bool,
    /// HIP_VISIBLE_DEVICES, or else CUDA_VISIBLE_DEVICES: the GPUs that HIP uses.
    pub hip_devices: Option<OsString>,
    /// The contents of the trace, and when it records.
    pub tracing: Tracing,
    /// LLVM_PROFILE_VERBOSE is set, to any value, as in LLVM.
    pub verbose: bool,
    /// DEVPROF_SYNC_MS: the longest time that a drain waits for running kernels, and for its copies.
    pub sync_limit: Duration,
    /// DEVPROF_SNAPSHOT_MS: the time between snapshots. A process that is killed loses at most the counts of that time.
    pub snapshot: Option<Duration>,
    /// DEVPROF_COUNTER_COPIES_MB: the memory for copies of counters on each GPU, in bytes. 0: there are no copies.
    pub copies_budget: u64,
    /// True unless DEVPROF_SIGNALS=0: drain when SIGABRT, SIGTERM, SIGINT or SIGHUP ends the process. A handler is
    /// installed for each that has its default action when the first code object is loaded.
    pub signals: bool,
    /// DEVPROF_TEST: the first test, or empty. `None`: counts are not attributed to tests.
    pub test: Option<OsString>,
}

/// The contents of a trace in addition to dispatches and the API calls that launch them, and when it records.
#[derive(Clone, Debug, Default)]
pub struct Tracing {
    /// DEVPROF_TRACE_API=1: all API calls of HIP or CUDA.
    pub api: bool,
    /// DEVPROF_TRACE_COPIES=1: copies and fills of memory.
    pub copies: bool,
    /// DEVPROF_TRACE_MARKERS=1: the program's markers (roctx, NVTX).
    pub markers: bool,
    /// DEVPROF_TRACE_STOPPED=1: begin stopped, until the program calls `devprof_trace_start`.
    pub stopped: bool,
    /// DEVPROF_TRACE_START_AFTER: begin stopped, and start this long after the initialization of HSA or CUDA, unless the program
    /// starts or stops the recording itself before.
    pub start_after: Option<Duration>,
    /// DEVPROF_TRACE_DURATION: stop this long after each start.
    pub duration: Option<Duration>,
    /// DEVPROF_TRACE_EVERY: start again this long after each start, unless the program has started or stopped the recording.
    pub every: Option<Duration>,
}

impl Tracing {
    fn from_env() -> Tracing {
        Tracing {
            api: is_on(settings::TRACE_API),
            copies: is_on(settings::TRACE_COPIES),
            markers: is_on(settings::TRACE_MARKERS),
            stopped: is_on(settings::TRACE_STOPPED),
            start_after: milliseconds(settings::TRACE_START_AFTER),
            duration: milliseconds(settings::TRACE_DURATION),
            every: milliseconds(settings::TRACE_EVERY),
        }
    }
}

fn is_on(variable: Variable) -> bool {
    env(variable.name).is_some_and(|value| value == "1")
}

fn milliseconds(variable: Variable) -> Option<Duration> {
    number(variable).map(Duration::from_millis)
}

/// A number of milliseconds, or of bytes. Reports an invalid value.
fn number(variable: Variable) -> Option<u64> {
    let value = env(variable.name)?;
    let invalid = match variable.number(&value) {
        Ok(number) => return Some(number),
        Err(invalid) => invalid,
    };
    let (name, value) = (variable.name, value.display());
    diagnostics::lost(format_args!("{name}={value}: {invalid}"));
    None
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::from_env)
}

impl Settings {
    /// Whether a trace was requested.
    pub fn is_traced(&self) -> bool {
        !self.disabled && self.trace.is_some()
    }

    fn from_env() -> Settings {
        Settings {
            disabled: is_on(settings::DISABLE),
            loaded: SystemTime::now(),
            environment: Environment::now(),
            trace: not_empty(settings::TRACE.name),
            cupti: not_empty(settings::CUPTI.name),
            ptx: is_on(settings::PTX),
            hip_devices: ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]
                .into_iter()
                .find_map(not_empty),
            tracing: Tracing::from_env(),
            verbose: env(settings::VERBOSE.name).is_some(),
            sync_limit: milliseconds(settings::SYNC).unwrap_or(SYNC_LIMIT),
            snapshot: milliseconds(settings::SNAPSHOT),
            copies_budget: number(settings::COUNTER_COPIES).unwrap_or(COPIES_BUDGET),
            signals: env(settings::SIGNALS.name).is_none_or(|value| value != "0"),
            test: env(settings::TEST.name),
        }
    }
}
