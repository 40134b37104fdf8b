//! The environment variables that the runtime reads, and how it interprets their values.

use super::finding::Finding;
use crate::locate::Component;
use settings::{Described, RUNTIME, Value};
use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::path::Path;

const TOPIC: &str = "environment";

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
            Ok(meaning) => Finding::ok(TOPIC, format!("{set}: {meaning}")),
            Err((what, fix)) => Finding::warning(TOPIC, format!("{set}: {what}"), fix),
        });
    }
    if findings.is_empty() {
        findings.push(Finding::ok(TOPIC, "no variable that devprof reads is set"));
    }
    findings
}

/// The meaning of a value; or what is wrong with it, and the fix.
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
                Err(invalid) => Err((
                    invalid.to_string(),
                    format!("set a number of at least {}", invalid.least),
                )),
            },
        },
    })
}

/// As ROCr reads it (runtime.cpp, `Runtime::LoadTools`).
fn v1_tools(value: &OsStr) -> Meaning {
    let text = value.to_string_lossy().to_ascii_lowercase();
    let is_zero = !text.is_empty() && text.bytes().all(|byte| byte == b'0');
    match is_zero || ["off", "false", "no", "n", "f"].contains(&text.as_str()) {
        true => Err((
            "ROCr does not load devprof next to a rocprofiler-sdk tool (rocprofv3), so nothing is traced"
                .to_owned(),
            "unset it: devprof sets it to 1".to_owned(),
        )),
        false => Ok("ROCr loads devprof, also next to a rocprofiler-sdk tool".to_owned()),
    }
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
    let conversions: Vec<char> = text
        .match_indices('%')
        .filter_map(|(at, _)| {
            text[at + 1..]
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .chars()
                .next()
        })
        .collect();
    let keep_apart = "add %p (one file per process) or %m (one file per code object, to which all processes add) to the name";
    if conversions.contains(&'c') {
        return Err((
            format!("{what}; %c (continuous mode) is ignored for GPUs"),
            "DEVPROF_SNAPSHOT_MS=1000 saves the counters every second instead".to_owned(),
        ));
    }
    match conversions
        .iter()
        .any(|conversion| "pm".contains(*conversion))
    {
        true => Ok(what),
        false => Err((
            format!("{what}; each process overwrites the counts of the previous one"),
            keep_apart.to_owned(),
        )),
    }
}

fn disable(value: &OsStr) -> Meaning {
    match value == "1" {
        true => Err((
            "devprof does nothing".to_owned(),
            "unset DEVPROF_DISABLE".to_owned(),
        )),
        false => Ok("devprof is enabled: only the value 1 disables it".to_owned()),
    }
}

/// A variable of which only the value 1 has an effect.
fn flag(value: &OsStr, meaning: &str) -> Meaning {
    match value.to_str() {
        Some("1") => Ok(meaning.to_owned()),
        Some("" | "0") => Ok("no effect".to_owned()),
        _ => Err((
            "no effect: only the value 1 has one".to_owned(),
            "set it to 1, or unset it".to_owned(),
        )),
    }
}

fn loaded(value: &OsStr) -> Meaning {
    let all = split_paths(value).flat_map(|part| {
        let part = part.into_os_string().into_string().unwrap_or_default();
        part.split(' ').map(str::to_owned).collect::<Vec<_>>()
    });
    let own = all
        .filter(|part| part.contains("libdevprof"))
        .collect::<Vec<_>>();
    match own
        .iter()
        .find(|part| part.contains('/') && !Path::new(part).is_file())
    {
        Some(missing) => Err((
            format!("{missing} does not exist"),
            match Component::Library.find() {
                Ok(path) => format!("use {}", path.display()),
                Err(_) => Component::Library.remedy(),
            },
        )),
        None if own.is_empty() => Ok("other libraries, not devprof".to_owned()),
        None => Ok("devprof is loaded into every program".to_owned()),
    }
}

/// The driver loads one library. Another tool may use CUPTI, which serves only one.
fn injected(value: &OsStr) -> Meaning {
    match value.is_empty() || value.to_string_lossy().contains("libdevprof") {
        true => loaded(value),
        false => Err((
            "CUDA's driver loads another tool, which may use CUPTI: devprof collects only if it is preloaded (devprof run), and does not trace CUDA"
                .to_owned(),
            "unset it".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn finding(name: &str, value: &str) -> (State, String) {
        let findings = check(&|read| (read == name).then(|| value.into()));
        assert_eq!(findings.len(), 1);
        (findings[0].state, findings[0].what.clone())
    }

    #[test]
    fn values_are_explained() {
        let cases = [
            (
                "LLVM_PROFILE_FILE",
                "out/%p.profraw",
                State::Ok,
                "out/GPU.%p.profraw",
            ),
            (
                "LLVM_PROFILE_FILE",
                "a-%4m.profraw",
                State::Ok,
                "to GPU.a-%4m.profraw",
            ),
            (
                "LLVM_PROFILE_FILE",
                "a.profraw",
                State::Warning,
                "overwrites the counts",
            ),
            (
                "LLVM_PROFILE_FILE",
                "a%c%p.profraw",
                State::Warning,
                "ignored for GPUs",
            ),
            ("DEVPROF_DISABLE", "1", State::Warning, "does nothing"),
            (
                "CUDA_INJECTION64_PATH",
                "/nsys/libToolsInjection64.so",
                State::Warning,
                "does not trace CUDA",
            ),
            (
                "CUDA_INJECTION64_PATH",
                "/none/libdevprof.so",
                State::Warning,
                "does not exist",
            ),
            ("DEVPROF_DISABLE", "yes", State::Ok, "only the value 1"),
            (
                "DEVPROF_SNAPSHOT_MS",
                "0",
                State::Warning,
                "snapshots disabled",
            ),
            ("DEVPROF_TRACE_API", "1", State::Ok, "all API calls"),
            ("DEVPROF_TRACE_COPIES", "0", State::Ok, "no effect"),
            (
                "DEVPROF_TRACE_MARKERS",
                "yes",
                State::Warning,
                "the value 1",
            ),
            (
                "DEVPROF_TRACE_STOPPED",
                "1",
                State::Ok,
                "do not record until",
            ),
            (
                "LD_PRELOAD",
                "/none/libdevprof.so:/lib/x.so",
                State::Warning,
                "/none/libdevprof.so does not exist",
            ),
            (
                "HSA_TOOLS_LIB",
                "librocprofiler.so",
                State::Ok,
                "other libraries",
            ),
            (
                "HSA_TOOLS_ROCPROFILER_V1_TOOLS",
                "Off",
                State::Warning,
                "nothing is traced",
            ),
            (
                "HSA_TOOLS_ROCPROFILER_V1_TOOLS",
                "10",
                State::Ok,
                "ROCr loads devprof",
            ),
            (
                "PATH",
                "/bin",
                State::Ok,
                "no variable that devprof reads is set",
            ),
        ];
        for (name, value, state, part) in cases {
            let (found, what) = finding(name, value);
            assert!(
                found == state && what.contains(part),
                "{name}={value}: {found:?} {what}"
            );
        }
    }
}
