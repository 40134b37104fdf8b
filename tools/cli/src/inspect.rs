//! `devprof inspect`: shows the GPU code, profiles and traces in files.

mod registers;
mod text;

pub use registers::for_threads;

use crate::Console;
use crate::exit::Outcome;
use crate::names::Naming;
use crate::returns;
use anyhow::Context;
use clap::Args;
use code_objects::{CodeObject, Found, Kernel, Location, Options as WalkOptions, What};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The version of the JSON format. Incremented with every incompatible change.
const VERSION: u32 = 2;

#[derive(Args)]
pub struct Options {
    /// Executables, libraries, objects, archives, code objects, profiles, traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object, with an element of `files` for each file
    #[arg(long)]
    json: bool,
    /// Show the kernels of each code object and the resources that they need: registers, LDS or shared memory, scratch or stack
    #[arg(long)]
    kernels: bool,
    #[command(flatten)]
    naming: Naming,
}

/// Something in a file.
struct Part {
    location: Location,
    what: What,
    /// The mangled names of device functions that overwrite their return address.
    overwritten_returns: Vec<String>,
}

/// The contents of a file.
struct Contents {
    file: PathBuf,
    found: Vec<Part>,
    /// How many parts could not be read.
    damage: usize,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let (mut complete, mut empty) = (0, 0);
    let mut files = Vec::new();
    for (n, file) in options.files.iter().enumerate() {
        let contents = read(file, console);
        if contents.found.is_empty() {
            empty += 1;
        } else if contents.damage == 0 {
            complete += 1;
        }
        if options.json {
            files.push(contents.into_report(&options.naming));
            continue;
        }
        if contents.found.is_empty() {
            continue;
        }
        let text = contents.text(options, console.colors.stdout);
        console.print(&format!("{}{text}", if n > 0 { "\n" } else { "" }))?;
    }
    if options.json {
        let report = Report {
            format: "devprof inspect",
            version: VERSION,
            files,
        };
        let text = serde_json::to_string_pretty(&report).context("cannot write JSON")?;
        console.print(&(text + "\n"))?;
    }
    Ok(match options.files.len() {
        files if complete == files => Outcome::Complete,
        files if empty == files => Outcome::Failed,
        _ => Outcome::Incomplete,
    })
}

fn read(file: &Path, console: &mut Console) -> Contents {
    let mut contents = Contents {
        file: file.into(),
        found: Vec::new(),
        damage: 0,
    };
    let options = WalkOptions {
        code: true,
        ..WalkOptions::default()
    };
    code_objects::walk(file, options, &mut |found: Found| {
        let Found {
            location,
            what,
            bytes: content,
        } = found;
        match what {
            What::Damage { why } => {
                contents.damage += 1;
                console.warn(format!("{location}: {why}"));
            }
            What::Unknown { first } => {
                contents.damage += 1;
                let kinds = "an ELF file, an archive, an offload bundle, a fat binary, a kpack archive, a profile or a trace";
                let begins = bytes(&first);
                console.warn(format!("{location}: not {kinds}: it begins with {begins}"));
            }
            what => {
                let mut overwritten_returns = Vec::new();
                if let What::CodeObject(object) = &what {
                    if let Some(warning) = registers::warning(object) {
                        console.warn(format!("{location}: {warning}"));
                    }
                    overwritten_returns = returns::overwritten(content.as_ref());
                    if let Some(problem) = returns::problem(&overwritten_returns) {
                        console.warn(format!("{location}: {problem}; {}", returns::fix()));
                    }
                }
                contents.found.push(Part {
                    location,
                    what,
                    overwritten_returns,
                });
            }
        }
        ControlFlow::Continue(())
    });
    contents
}

/// The first bytes of an unknown file, in hexadecimal and as text.
fn bytes(first: &[u8]) -> String {
    if first.is_empty() {
        return "nothing: it is empty".into();
    }
    let hex: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String = first
        .iter()
        .map(|&byte| match byte {
            b' '..=b'~' => char::from(byte),
            _ => '.',
        })
        .collect();
    format!("{} \"{text}\"", hex.join(" "))
}

/// The contents of files. New fields may be added without a new version.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "devprof inspect --json")]
pub struct Report {
    #[schemars(extend("const" = "devprof inspect"))]
    format: &'static str,
    #[schemars(extend("const" = VERSION))]
    version: u32,
    files: Vec<FileReport>,
}

#[derive(Serialize, JsonSchema)]
struct FileReport {
    file: PathBuf,
    /// All parts could be read.
    complete: bool,
    found: Vec<PartReport>,
}

#[derive(Serialize, JsonSchema)]
struct PartReport {
    #[serde(flatten)]
    what: WhatReport,
    location: Location,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum WhatReport {
    CodeObject(CodeObjectReport),
    Other(What),
}

/// GPU code.
#[derive(Serialize, JsonSchema)]
struct CodeObjectReport {
    #[schemars(extend("const" = "code_object"))]
    what: &'static str,
    #[serde(flatten)]
    object: CodeObject,
    kernels: Vec<KernelReport>,
    target_id: String,
    /// The mangled names of device functions that overwrite their return address, because of a defect of LLVM
    /// (llvm/llvm-project#224205).
    overwritten_returns: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct KernelReport {
    demangled: String,
    #[serde(flatten)]
    kernel: Kernel,
}

impl Contents {
    fn into_report(self, naming: &Naming) -> FileReport {
        let found = self.found.into_iter();
        FileReport {
            file: self.file,
            complete: self.damage == 0,
            found: found.map(|part| part.into_report(naming)).collect(),
        }
    }
}

impl Part {
    fn into_report(self, naming: &Naming) -> PartReport {
        let what = match self.what {
            What::CodeObject(mut object) => {
                let kernels = std::mem::take(&mut object.kernels).into_iter();
                WhatReport::CodeObject(CodeObjectReport {
                    what: "code_object",
                    kernels: kernels
                        .map(|kernel| KernelReport {
                            demangled: naming.shown(&kernel.name),
                            kernel,
                        })
                        .collect(),
                    target_id: object.target.to_string(),
                    overwritten_returns: self.overwritten_returns,
                    object: *object,
                })
            }
            other => WhatReport::Other(other),
        };
        PartReport {
            what,
            location: self.location,
        }
    }
}
