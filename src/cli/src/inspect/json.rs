//! The contents of files as one JSON object.

use super::contents::{Contents, Part};
use crate::functions::Function;
use crate::names::Naming;
use code_objects::{CodeObject, Kernel, Location, What};
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the JSON format. Incremented with every incompatible change.
const VERSION: u32 = 2;

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
pub struct FileReport {
    file: String,
    /// All parts could be read.
    complete: bool,
    found: Vec<PartReport>,
}

#[derive(Serialize, JsonSchema)]
struct PartReport {
    #[serde(flatten)]
    what: WhatReport,
    /// The functions of a raw profile, with `--functions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    function_counts: Option<Vec<FunctionReport>>,
    location: Location,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum WhatReport {
    CodeObject(Box<CodeObjectReport>),
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

/// The counts of a function.
#[derive(Serialize, JsonSchema)]
struct FunctionReport {
    name: String,
    /// The mangled name, or the hash in hexadecimal of a name that the profile does not have.
    symbol: String,
    /// LLVM's hash of the function's structure, in hexadecimal.
    hash: String,
    /// What the counts are: numbers of executions, or only whether code ran (1 or 0).
    #[schemars(extend("enum" = ["executions", "ran"]))]
    counts: &'static str,
    /// The first is of the function's entry.
    counters: Vec<u64>,
    /// Executions by waves with all lanes active. Raw version 10 and flags have none.
    uniform: Option<Vec<u64>>,
}

impl FunctionReport {
    fn new(function: Function, naming: &Naming) -> FunctionReport {
        let record = function.record;
        FunctionReport {
            name: naming.shown(&function.symbol),
            symbol: function.symbol,
            hash: format!("{:#x}", record.hash),
            counts: if function.only_ran {
                "ran"
            } else {
                "executions"
            },
            counters: record.counters,
            uniform: record.uniform,
        }
    }
}

impl Report {
    pub fn new(files: Vec<FileReport>) -> Report {
        Report {
            format: "devprof inspect",
            version: VERSION,
            files,
        }
    }
}

impl FileReport {
    pub fn new(contents: Contents, naming: &Naming) -> FileReport {
        let found = contents.found.into_iter();
        FileReport {
            file: contents.file.display().to_string(),
            complete: contents.damage == 0,
            found: found.map(|part| PartReport::new(part, naming)).collect(),
        }
    }
}

impl PartReport {
    fn new(part: Part, naming: &Naming) -> PartReport {
        let location = part.location;
        let functions = part.functions.map(|functions| {
            let functions = functions.into_iter();
            functions
                .map(|function| FunctionReport::new(function, naming))
                .collect()
        });
        let What::CodeObject(mut object) = part.what else {
            let what = WhatReport::Other(part.what);
            return PartReport {
                what,
                function_counts: functions,
                location,
            };
        };
        let kernels = std::mem::take(&mut object.kernels).into_iter();
        let kernel = |kernel: Kernel| KernelReport {
            demangled: naming.shown(&kernel.name),
            kernel,
        };
        let what = WhatReport::CodeObject(Box::new(CodeObjectReport {
            what: "code_object",
            kernels: kernels.map(kernel).collect(),
            target_id: object.target.to_string(),
            overwritten_returns: part.overwritten_returns,
            object: *object,
        }));
        PartReport {
            what,
            function_counts: functions,
            location,
        }
    }
}
