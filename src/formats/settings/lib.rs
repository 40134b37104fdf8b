//! The environment variables that devprof reads. The runtime's settings, `devprof run`, `devprof doctor` and the man pages
//! use this table.

use Value::{Flag, Mebibytes, Milliseconds, Text};
use std::ffi::OsStr;
use std::fmt;

#[derive(Clone, Copy)]
pub struct Variable {
    pub name: &'static str,
    pub value: Value,
}

/// A variable with its description, which the runtime does not contain.
pub struct Described {
    pub variable: Variable,
    /// For a flag, the effect of the value 1.
    pub help: &'static str,
}

#[derive(Clone, Copy)]
pub enum Value {
    /// Only the value 1 has an effect.
    Flag,
    Milliseconds {
        least: u64,
        /// The runtime's behavior if the value is not valid.
        instead: &'static str,
    },
    /// A number of mebibytes, which may have a decimal point.
    Mebibytes {
        instead: &'static str,
    },
    Text,
}

/// Why a value is not valid, and the runtime's behavior then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    unit: &'static str,
    /// The least valid number.
    pub least: u64,
    instead: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "not a valid number of {}; {}", self.unit, self.instead)
    }
}

impl Described {
    pub const fn text(name: &'static str, help: &'static str) -> Described {
        let value = Text;
        Described {
            variable: Variable { name, value },
            help,
        }
    }
}

impl Variable {
    /// The number of milliseconds, or of bytes. 0 for other variables.
    ///
    /// # Errors
    /// The value is not a number, or too small.
    pub fn number(&self, value: &OsStr) -> Result<u64, Invalid> {
        let text = value.to_str();
        let (number, unit, least, instead) = match self.value {
            Milliseconds { least, instead } => {
                let number = text.and_then(parse);
                let number = number.filter(|&number| number >= least);
                (number, "milliseconds", least, instead)
            }
            Mebibytes { instead } => (text.and_then(bytes_of_mebibytes), "mebibytes", 0, instead),
            Flag | Text => return Ok(0),
        };
        number.ok_or(Invalid {
            unit,
            least,
            instead,
        })
    }
}

/// Not inlined, because it is long and the archive has each call.
#[inline(never)]
fn parse(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// To parse a floating-point number would need much code.
fn bytes_of_mebibytes(text: &str) -> Option<u64> {
    let (mebibytes, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_decimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_decimal(mebibytes) || !is_decimal(fraction) || fraction.len() > 9 {
        return None;
    }
    let mebibytes = parse(mebibytes)?;
    let fraction = (parse(fraction)? << 20) / 10u64.pow(fraction.len() as u32);
    Some(mebibytes.saturating_mul(1 << 20).saturating_add(fraction))
}

macro_rules! variables {
    ($($id:ident = $name:literal, $value:expr, $help:literal;)*) => {
        $(pub const $id: Variable = Variable { name: $name, value: $value };)*

        /// The variables that the runtime reads, in the program.
        pub const RUNTIME: &[Described] = &[$(Described { variable: $id, help: $help }),*];
    };
}

variables! {
    PROFILE_FILE = "LLVM_PROFILE_FILE", Text,
        "The name of the profiles, with LLVM's patterns (%p: process ID, %h: host name, %m: one file per code object for all processes, %b: build ID, %t: TMPDIR). The architecture is prepended to the name. Default: default.profraw";
    VERBOSE = "LLVM_PROFILE_VERBOSE", Text,
        "If set, the runtime also prints its actions.";
    SYNC = "DEVPROF_SYNC_MS", Milliseconds { least: 0, instead: "using 10000" },
        "How long to wait for running kernels and for copies, in milliseconds. Default: 10000";
    SNAPSHOT = "DEVPROF_SNAPSHOT_MS", Milliseconds { least: 1, instead: "snapshots disabled" },
        "Also write profiles at this interval, in milliseconds, so that _exit, SIGKILL or a crash loses only the counts since the last snapshot.";
    COUNTER_COPIES = "DEVPROF_COUNTER_COPIES_MB", Mebibytes { instead: "using the default" },
        "Memory for copies of the counters on each GPU, in MiB. 0: no copies, so instrumented kernels run slower. Default: 1024";
    SIGNALS = "DEVPROF_SIGNALS", Text,
        "0: do not write profiles when SIGABRT, SIGTERM, SIGINT or SIGHUP ends the process.";
    TRACE = "DEVPROF_TRACE", Text,
        "Record every kernel dispatch in this file. Needs libdevprof.so.";
    TRACE_MARKERS = "DEVPROF_TRACE_MARKERS", Flag,
        "also record markers and ranges (roctx, NVTX).";
    TRACE_API = "DEVPROF_TRACE_API", Flag,
        "also record all API calls of HIP or CUDA.";
    TRACE_COPIES = "DEVPROF_TRACE_COPIES", Flag,
        "also record copies and fills of memory.";
    TRACE_STOPPED = "DEVPROF_TRACE_STOPPED", Flag,
        "do not record until the program calls devprof_trace_start, roctxProfilerResume or cudaProfilerStart.";
    TRACE_START_AFTER = "DEVPROF_TRACE_START_AFTER", Milliseconds { least: 0, instead: "the trace starts at once" },
        "Start the recording this many milliseconds after the initialization of HSA or CUDA.";
    TRACE_DURATION = "DEVPROF_TRACE_DURATION", Milliseconds { least: 1, instead: "the trace does not stop" },
        "Stop the recording this many milliseconds after each start.";
    TRACE_EVERY = "DEVPROF_TRACE_EVERY", Milliseconds { least: 1, instead: "the trace does not start again" },
        "With DEVPROF_TRACE_DURATION: start the recording again this many milliseconds after each start.";
    TEST = "DEVPROF_TEST", Text,
        "If set, counts are also written for each test: to the directory `tests` next to the profiles. The value is the test that the process runs; if it is empty, the program names its tests (devprof_test).";
    LOG = "DEVPROF_LOG", Text,
        "Append the written files and the losses to this file, if it exists.";
    CUPTI = "DEVPROF_CUPTI", Text,
        "The path of CUPTI's library (libcupti.so), which devprof then also uses without a trace. Default: the one next to the CUDA runtime, in CUDA_HOME, CUDA_PATH, /usr/local/cuda, or that the dynamic linker finds. none: CUPTI is not used.";
    PTX = "DEVPROF_PTX", Flag,
        "instrument the PTX that the program passes to the CUDA driver, and in programs and libraries the PTX that has line information. Needs libdevprof.so.";
    DISABLE = "DEVPROF_DISABLE", Flag,
        "the runtime does nothing.";
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

    #[test]
    fn milliseconds_have_a_least_number() {
        let snapshot = |text: &str| SNAPSHOT.number(text.as_ref());
        assert_eq!(snapshot("1"), Ok(1));
        for text in ["0", "1s", "-1", ""] {
            let invalid = snapshot(text).unwrap_err().to_string();
            assert_eq!(
                invalid,
                "not a valid number of milliseconds; snapshots disabled"
            );
        }
    }
}
