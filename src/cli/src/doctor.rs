//! `devprof doctor`: checks whether this machine has the parts that device profiles need, and prints how to fix each problem. It
//! reads files and runs compilers, and does not initialize HSA, HIP or CUDA.

mod binaries;
mod cuda;
mod environment;
mod finding;
mod libraries;
mod machine;
mod toolchain;
mod triton;

use crate::color::Paint;
use crate::console::Console;
use crate::exit::Outcome;
use crate::llvm;
use crate::locate::find_in_path;
use anyhow::Context;
use clap::Args;
use finding::{Finding, State};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// Executables, libraries and code objects to check for instrumented GPU code
    #[arg(value_name = "BINARY")]
    files: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    llvm: llvm::Options,
}

/// The version of the JSON format. Incremented with every incompatible change.
const VERSION: u32 = 1;

/// The result of each check. New fields may be added without a new version.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "devprof doctor --json")]
pub struct Report<'a> {
    #[schemars(extend("const" = "devprof doctor"))]
    format: &'static str,
    #[schemars(extend("const" = VERSION))]
    version: u32,
    /// Number of required components that are missing. If it is not 0, the exit status is 3.
    missing: usize,
    warnings: usize,
    findings: &'a [Finding],
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let llvm = options.llvm.search()?;
    let root = Path::new("/");
    let variable = |name: &str| std::env::var_os(name);
    let known = libraries::libraries_of_dynamic_linker();
    // On a machine with only NVIDIA's GPUs, nothing of AMD's is missing.
    let has_amd = !cuda::has_driver(root)
        || machine::has_amd_gpu(root)
        || variable("HSA_MODEL_LIB").is_some();
    let mut findings = Vec::new();
    if has_amd {
        findings = machine::check();
    }
    findings.extend(cuda::check(&cuda::System {
        root,
        variable: &variable,
        libraries: &known,
        ptxas: find_in_path(OsStr::new("ptxas")),
        nvcc: find_in_path(OsStr::new("nvcc")),
        python: ["python3", "python"]
            .into_iter()
            .find_map(|name| find_in_path(OsStr::new(name))),
    }));
    findings.extend(libraries::check(&known, has_amd));
    findings.extend(toolchain::check(&options.llvm, &llvm, has_amd));
    findings.extend(environment::check(&variable));
    for file in &options.files {
        findings.extend(binaries::check(file, &llvm));
    }
    let count = |state| findings.iter().filter(|own| own.state == state).count();
    let report = Report {
        format: "devprof doctor",
        version: VERSION,
        missing: count(State::Missing),
        warnings: count(State::Warning),
        findings: &findings,
    };
    let text = if options.json {
        serde_json::to_string_pretty(&report).context("cannot write JSON")? + "\n"
    } else {
        list(&report, console.colors.stdout)
    };
    console.print(&text)?;
    Ok(Outcome::of(report.missing == 0))
}

/// The findings, grouped by topic, and the number of problems.
fn list(report: &Report, colored: bool) -> String {
    let mut text = String::new();
    let mut topic = "";
    for finding in report.findings {
        if finding.topic != topic {
            topic = finding.topic;
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}", Paint::Heading.on(colored, topic));
        }
        let (paint, state) = match finding.state {
            State::Ok => (Paint::Good, "ok     "),
            State::Warning => (Paint::Warning, "warning"),
            State::Missing => (Paint::Error, "missing"),
        };
        let _ = writeln!(text, "  {}  {}", paint.on(colored, state), finding.what);
        if let Some(fix) = &finding.fix {
            let _ = writeln!(text, "           {} {fix}", Paint::Dim.on(colored, "->"));
        }
    }
    let warnings = match report.warnings {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        n => format!(", {n} warnings"),
    };
    let _ = match report.missing {
        0 => writeln!(text, "Nothing is missing{warnings}."),
        1 => writeln!(text, "1 thing is missing{warnings}."),
        n => writeln!(text, "{n} things are missing{warnings}."),
    };
    text
}
