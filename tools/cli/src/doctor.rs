//! `devprof doctor`: what of all that device profiles need is on this machine, and what mends the rest. It looks at
//! files and asks compilers; it starts neither HSA nor HIP.

mod binaries;
mod environment;
mod libraries;
mod machine;
mod toolchain;

use crate::{Console, Ink, PARTLY, llvm};
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// Executables, libraries and code objects: what of their GPU code counts
    #[arg(value_name = "BINARY")]
    files: Vec<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    llvm: llvm::Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It is there.
    Good,
    /// It is there and may not do what is expected, or is needed by some only.
    Warning,
    /// Needed, and not there.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    topic: &'static str,
    state: State,
    what: String,
    /// What to do about it, mostly a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl Finding {
    fn good(topic: &'static str, what: impl Into<String>) -> Finding {
        Finding {
            topic,
            state: State::Good,
            what: what.into(),
            mend: None,
        }
    }

    fn warning(topic: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding {
            state: State::Warning,
            mend: Some(mend.into()),
            ..Finding::good(topic, what)
        }
    }

    fn missing(topic: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding {
            state: State::Missing,
            ..Finding::warning(topic, what, mend)
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    /// Of this object's form.
    version: u32,
    missing: usize,
    warnings: usize,
    findings: &'a [Finding],
}

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let llvm = options.llvm.search()?;
    let mut findings = machine::look();
    findings.extend(libraries::look());
    findings.extend(toolchain::look(&options.llvm, &llvm));
    findings.extend(environment::look(&|name| std::env::var_os(name)));
    for file in &options.files {
        findings.extend(binaries::look(file, &llvm));
    }
    let number = |state| {
        findings
            .iter()
            .filter(|finding| finding.state == state)
            .count()
    };
    let report = Report {
        version: 1,
        missing: number(State::Missing),
        warnings: number(State::Warning),
        findings: &findings,
    };
    let text = match options.json {
        true => serde_json::to_string_pretty(&report).map_err(|e| e.to_string())? + "\n",
        false => table(&report, console.colors.out),
    };
    console.print(&text)?;
    Ok(if report.missing > 0 { PARTLY } else { 0 })
}

fn table(report: &Report, colored: bool) -> String {
    let mut text = String::new();
    let mut topic = "";
    for finding in report.findings {
        if finding.topic != topic {
            topic = finding.topic;
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}", Ink::Heading.on(colored, topic));
        }
        let (ink, state) = match finding.state {
            State::Good => (Ink::Good, "good   "),
            State::Warning => (Ink::Warning, "warning"),
            State::Missing => (Ink::Error, "missing"),
        };
        let _ = writeln!(text, "  {}  {}", ink.on(colored, state), finding.what);
        if let Some(mend) = &finding.mend {
            let _ = writeln!(text, "           {} {mend}", Ink::Dim.on(colored, "->"));
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
