//! Settings from environment variables, read once.

use super::diagnostics;
use super::environment::Environment;
use crate::sys::env::env;
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
    /// HIP_VISIBLE_DEVICES, or else CUDA_VISIBLE_DEVICES: the GPUs that HIP uses.
    pub hip_devices: Option<OsString>,
    /// What the trace records, and when.
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
    /// installed for those of them that have their default action when the first code object is loaded.
    pub signals: bool,
}

/// What a trace records in addition to dispatches and the API calls that launch them, and when it records.
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
}

impl Tracing {
    fn from_env() -> Tracing {
        Tracing {
            api: is_on("DEVPROF_TRACE_API"),
            copies: is_on("DEVPROF_TRACE_COPIES"),
            markers: is_on("DEVPROF_TRACE_MARKERS"),
            stopped: is_on("DEVPROF_TRACE_STOPPED"),
            start_after: milliseconds("DEVPROF_TRACE_START_AFTER", 0, "the trace starts at once"),
            duration: milliseconds("DEVPROF_TRACE_DURATION", 1, "the trace does not stop"),
        }
    }
}

fn is_on(name: &str) -> bool {
    env(name).is_some_and(|value| value == "1")
}

/// A number of milliseconds, at least `least`. Reports invalid values, and what happens `instead`.
fn milliseconds(name: &str, least: u64, instead: &str) -> Option<Duration> {
    let parse = |text: &str| text.parse().ok().filter(|&number| number >= least);
    number(name, "milliseconds", instead, parse).map(Duration::from_millis)
}

/// A number of mebibytes in bytes.
fn mebibytes(name: &str, instead: &str) -> Option<u64> {
    number(name, "mebibytes", instead, bytes_of_mebibytes)
}

/// `text` may have a decimal point. (To parse it as a floating-point number needs much code.)
fn bytes_of_mebibytes(text: &str) -> Option<u64> {
    let (mebibytes, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_decimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_decimal(mebibytes) || !is_decimal(fraction) || fraction.len() > 9 {
        return None;
    }
    let mebibytes: u64 = mebibytes.parse().ok()?;
    let fraction = (fraction.parse::<u64>().ok()? << 20) / 10u64.pow(fraction.len() as u32);
    Some(mebibytes.saturating_mul(1 << 20).saturating_add(fraction))
}

/// Reports invalid values, and what happens `instead`.
fn number(
    name: &str,
    unit: &str,
    instead: &str,
    parse: impl Fn(&str) -> Option<u64>,
) -> Option<u64> {
    let text = env(name)?;
    let number = text.to_str().and_then(parse);
    if number.is_none() {
        diagnostics::lost(format_args!(
            "{name}={}: not a valid number of {unit}; {instead}",
            text.display()
        ));
    }
    number
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
        let sync_instead = format!("using {}", SYNC_LIMIT.as_millis());
        Settings {
            disabled: is_on("DEVPROF_DISABLE"),
            loaded: SystemTime::now(),
            environment: Environment::now(),
            trace: env("DEVPROF_TRACE").filter(|pattern| !pattern.is_empty()),
            cupti: env("DEVPROF_CUPTI").filter(|path| !path.is_empty()),
            hip_devices: ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]
                .into_iter()
                .find_map(|name| env(name).filter(|list| !list.is_empty())),
            tracing: Tracing::from_env(),
            verbose: env("LLVM_PROFILE_VERBOSE").is_some(),
            sync_limit: milliseconds("DEVPROF_SYNC_MS", 0, &sync_instead).unwrap_or(SYNC_LIMIT),
            snapshot: milliseconds("DEVPROF_SNAPSHOT_MS", 1, "snapshots disabled"),
            copies_budget: mebibytes("DEVPROF_COUNTER_COPIES_MB", "using the default")
                .unwrap_or(COPIES_BUDGET),
            signals: env("DEVPROF_SIGNALS").is_none_or(|value| value != "0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mebibytes_may_have_a_fraction() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1024", Some(1 << 30)),
            ("0.5", Some(1 << 19)),
            ("1.000000001", Some(1 << 20)),
            ("0.003", Some(3145)),
            ("99999999999999999", Some(u64::MAX)),
            ("", None),
            (".5", None),
            ("1.", None),
            ("-1", None),
            ("+1", None),
            ("1.+5", None),
            ("1e3", None),
            ("0.0000000001", None),
            ("1G", None),
        ] {
            assert_eq!(bytes_of_mebibytes(text), bytes, "{text}");
        }
    }
}
