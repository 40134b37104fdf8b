//! The environment variables that the runtime reads, and how it interprets their values.

use super::finding::{Finding, Topic};
use crate::locate::Component;
use settings::{Described, RUNTIME, Value};
use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::path::Path;

const TOPIC: Topic = Topic("environment");

pub fn check(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Finding> {
    let runtime = RUNTIME.iter().map(|own| {
        let name = own.variable.name;
        (name, variable(name).and_then(|value| meaning(own, &value)))
    });
    let loaders = LOADERS.map(|(name, read)| (name, variable(name).map(|value| read(&value))));
    let mut findings = Vec::new();
    for (name, meaning) in runtime.chain(loaders) {
        let Some(meaning) = meaning else { continue };
        let set = format!("{name}={}", variable(name).unwrap_or_default().display());
        findings.push(match meaning {
            Ok(meaning) => TOPIC.ok(format!("{set}: {meaning}")),
            Err((what, fix)) => TOPIC.warning(format!("{set}: {what}"), fix),
        });
    }
    if findings.is_empty() {
        findings.push(TOPIC.ok("no variable that devprof reads is set"));
    }
    findings
}

/// The meaning of a value; or the problem with it, and the fix.
type Meaning = Result<String, (String, String)>;

/// Variables of the libraries that load devprof.
type Loader = (&'static str, fn(&OsStr) -> Meaning);

const LOADERS: [Loader; 4] = [
    ("LD_PRELOAD", loaded),
    ("HSA_TOOLS_LIB", loaded),
    ("CUDA_INJECTION64_PATH", injected),
    ("HSA_TOOLS_ROCPROFILER_V1_TOOLS", v1_tools),
];

/// `None` for the paths that another check is about, and for the log.
fn meaning(&Described { variable, help }: &Described, value: &OsStr) -> Option<Meaning> {
    Some(match variable.name {
        "LLVM_PROFILE_FILE" => pattern(value),
        "DEVPROF_DISABLE" => disable(value),
        "DEVPROF_LOG" | "DEVPROF_CUPTI" => return None,
        "DEVPROF_SIGNALS" if value != "0" => Ok("no effect: only the value 0 has one".to_owned()),
        "DEVPROF_TRACE" if value.is_empty() => Ok("empty: no trace".to_owned()),
        _ => match variable.value {
            Value::Flag => flag(value, help),
            _ => match variable.number(value) {
                Ok(_) => Ok(help.to_owned()),
                Err(invalid) => wrong(
                    invalid.to_string(),
                    format!("set a number of at least {}", invalid.least),
                ),
            },
        },
    })
}

fn wrong(what: impl Into<String>, fix: impl Into<String>) -> Meaning {
    Err((what.into(), fix.into()))
}

/// As ROCr reads it (runtime.cpp, `Runtime::LoadTools`).
fn v1_tools(value: &OsStr) -> Meaning {
    let text = value.to_string_lossy().to_ascii_lowercase();
    let is_zero = !text.is_empty() && text.bytes().all(|byte| byte == b'0');
    if is_zero || ["off", "false", "no", "n", "f"].contains(&text.as_str()) {
        return wrong(
            "ROCr does not load devprof next to a rocprofiler-sdk tool (rocprofv3), so nothing is traced",
            "unset it: devprof sets it to 1",
        );
    }
    Ok("ROCr loads devprof, also next to a rocprofiler-sdk tool".to_owned())
}

fn pattern(value: &OsStr) -> Meaning {
    if value.is_empty() {
        return Ok("empty: a GPU's counts are written to GPU.default.profraw".to_owned());
    }
    let path = Path::new(value);
    let name = path.file_name().unwrap_or_default().display().to_string();
    let written = path.with_file_name(format!("GPU.{name}"));
    let what = format!(
        "a GPU's counts are written to {} (GPU: its architecture, such as gfx1100)",
        written.display()
    );
    let text = value.display().to_string();
    let is_digit = |c: char| c.is_ascii_digit();
    let after = text.split('%').skip(1);
    let after = after.map(|rest| rest.trim_start_matches(is_digit));
    let conversions: String = after.filter_map(|rest| rest.chars().next()).collect();
    if conversions.contains('c') {
        return wrong(
            format!("{what}; %c (continuous mode) is ignored for GPUs"),
            "DEVPROF_SNAPSHOT_MS=1000 saves the counters every second instead",
        );
    }
    if conversions.contains(['p', 'm']) {
        return Ok(what);
    }
    wrong(
        format!("{what}; each process overwrites the counts of the previous one"),
        "add %p (one file per process) or %m (one file per code object, to which all processes add) to the name",
    )
}

fn disable(value: &OsStr) -> Meaning {
    if value == "1" {
        return wrong("devprof does nothing", "unset DEVPROF_DISABLE");
    }
    Ok("devprof is enabled: only the value 1 disables it".to_owned())
}

/// A variable of which only the value 1 has an effect.
fn flag(value: &OsStr, meaning: &str) -> Meaning {
    match value.to_str() {
        Some("1") => Ok(meaning.to_owned()),
        Some("" | "0") => Ok("no effect".to_owned()),
        _ => wrong(
            "no effect: only the value 1 has one",
            "set it to 1, or unset it",
        ),
    }
}

fn loaded(value: &OsStr) -> Meaning {
    let own: Vec<String> = split_paths(value)
        .filter_map(|part| part.into_os_string().into_string().ok())
        .flat_map(|part| part.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .filter(|part| part.contains("libdevprof"))
        .collect();
    let is_missing = |part: &&String| part.contains('/') && !Path::new(part).is_file();
    if let Some(missing) = own.iter().find(is_missing) {
        let fix = match Component::Library.find() {
            Ok(path) => format!("use {}", path.display()),
            Err(_) => Component::Library.remedy(),
        };
        return wrong(format!("{missing} does not exist"), fix);
    }
    if own.is_empty() {
        return Ok("other libraries, not devprof".to_owned());
    }
    Ok("devprof is loaded into every program".to_owned())
}

/// The driver loads one library. Another tool may use CUPTI, which serves only one.
fn injected(value: &OsStr) -> Meaning {
    if value.is_empty() || value.to_string_lossy().contains("libdevprof") {
        return loaded(value);
    }
    wrong(
        "CUDA's driver loads another tool, which may use CUPTI: devprof collects only if it is preloaded (devprof run), and does not trace CUDA",
        "unset it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_explained() {
        // The variable, the state of the finding and a part of its text.
        let cases = "
            LLVM_PROFILE_FILE=out/%p.profraw | Ok | out/GPU.%p.profraw
            LLVM_PROFILE_FILE=a-%4m.profraw | Ok | to GPU.a-%4m.profraw
            LLVM_PROFILE_FILE=a.profraw | Warning | overwrites the counts
            LLVM_PROFILE_FILE=a%c%p.profraw | Warning | ignored for GPUs
            DEVPROF_DISABLE=1 | Warning | does nothing
            CUDA_INJECTION64_PATH=/nsys/libToolsInjection64.so | Warning | does not trace CUDA
            CUDA_INJECTION64_PATH=/none/libdevprof.so | Warning | does not exist
            DEVPROF_DISABLE=yes | Ok | only the value 1
            DEVPROF_SNAPSHOT_MS=0 | Warning | snapshots disabled
            DEVPROF_TRACE_API=1 | Ok | all API calls
            DEVPROF_TRACE_COPIES=0 | Ok | no effect
            DEVPROF_TRACE_MARKERS=yes | Warning | the value 1
            DEVPROF_TRACE_STOPPED=1 | Ok | do not record until
            LD_PRELOAD=/none/libdevprof.so:/lib/x.so | Warning | /none/libdevprof.so does not exist
            HSA_TOOLS_LIB=librocprofiler.so | Ok | other libraries
            HSA_TOOLS_ROCPROFILER_V1_TOOLS=Off | Warning | nothing is traced
            HSA_TOOLS_ROCPROFILER_V1_TOOLS=10 | Ok | ROCr loads devprof
            PATH=/bin | Ok | no variable that devprof reads is set
        ";
        for case in cases.trim().lines() {
            let parts: Vec<&str> = case.trim().split(" | ").collect();
            let (name, value) = parts[0].split_once('=').unwrap();
            let findings = check(&|read| (read == name).then(|| value.into()));
            assert_eq!(findings.len(), 1);
            let found = (format!("{:?}", findings[0].state), &findings[0].what);
            assert!(
                found.0 == parts[1] && found.1.contains(parts[2]),
                "{case}: {found:?}"
            );
        }
    }
}
