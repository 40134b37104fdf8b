//! What llvm-cov knows of one code object: the regions and branches of its functions, with the counts of a profile.

use super::lines::{Kind, Position, Region};
use super::mapping::{self, Mapped};
use crate::llvm::Tool;
use crate::names;
use serde::Deserialize;
use std::collections::HashMap;
use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

/// A function as one code object has it.
#[derive(Clone, Debug)]
pub struct Function {
    /// As the profile has it: the symbol's name, with `file:` before it when it is local to its file.
    pub name: String,
    pub mapped: Mapped,
    pub files: Vec<Arc<str>>,
    /// Each with its file's index in `files`.
    pub regions: Vec<(usize, Region)>,
    pub branches: Vec<(usize, Branch)>,
    /// How often it was entered, each lane for itself.
    pub count: u64,
    /// Of several functions of one name whose sources differ: its number among them.
    pub variant: Variant,
}

/// Code objects may have different code under one name, by macros or by accident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    pub number: u32,
    /// Its structure is that of an earlier one, so that the profile has one count for both.
    pub shares_counts: bool,
}

/// A condition, and how often it was true and false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    pub start: Position,
    pub end: Position,
    pub taken: u64,
    pub not_taken: u64,
}

/// The functions of a code object, and the names of those whose counts belong to another build.
#[derive(Debug, Default)]
pub struct Object {
    pub functions: Vec<Function>,
    pub mismatched: Vec<String>,
}

/// No source has more lines; a damaged mapping may say so.
const MOST_LINES: u64 = 4 << 20;

#[derive(Deserialize)]
struct Export {
    data: Vec<Data>,
}

#[derive(Deserialize)]
struct Data {
    functions: Vec<Exported>,
}

#[derive(Deserialize)]
struct Exported {
    name: String,
    count: u64,
    filenames: Vec<Arc<str>>,
    /// Line, column, line and column of the end, count, file, expanded file, kind.
    regions: Vec<[u64; 8]>,
    /// Line, column, line and column of the end, true, false, file, expanded file, kind.
    #[serde(default)]
    branches: Vec<[u64; 9]>,
}

/// Reads a code object with the counts of a profile; without one, as one that did not run.
///
/// # Errors
/// llvm-cov or the file cannot be read; what llvm-cov said.
pub fn read(llvm_cov: &Tool, object: &Path, profile: Option<&Path>) -> Result<Object, String> {
    let bytes = fs::read(object).map_err(|e| format!("cannot read {}: {e}", object.display()))?;
    let mut mapped = mapping::functions(&bytes)?;
    let mut read = Object::default();
    for exported in export(llvm_cov, object, profile)? {
        let Some(mapped) = mapped.remove(&names::hash(&exported.name)) else {
            continue;
        };
        read.functions.push(function(exported, mapped)?);
    }
    mapped.retain(|_, mapped| !mapped.unused);
    if !mapped.is_empty() {
        let names = mapping::names(&bytes).unwrap_or_default();
        let name = |hash: &u64| match names.get(hash) {
            Some(name) => name.clone(),
            None => format!("(function {hash:#018x})"),
        };
        read.mismatched = mapped.keys().map(name).collect();
        read.mismatched.sort();
    }
    Ok(read)
}

fn export(llvm_cov: &Tool, object: &Path, profile: Option<&Path>) -> Result<Vec<Exported>, String> {
    let mut command = llvm_cov.command();
    command.arg("export").arg(object);
    match profile {
        Some(profile) => command.arg("-instr-profile").arg(profile),
        None => command.arg("-empty-profile"),
    };
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", llvm_cov.path.display());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(&e))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (parsed, said) = std::thread::scope(|scope| {
        let said = scope.spawn(|| {
            let mut said = Vec::new();
            // A pipe that breaks ends what was said.
            let _ = stderr.map(|mut pipe| pipe.read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        });
        let parsed = stdout.map(|pipe| serde_json::from_reader::<_, Export>(BufReader::new(pipe)));
        (parsed, said.join().unwrap_or_default())
    });
    let status = child.wait().map_err(|e| failed(&e))?;
    if !status.success() {
        let why = said.lines().find(|line| line.starts_with("error:"));
        return Err(failed(
            &why.or(said.lines().next())
                .unwrap_or("it failed and said nothing"),
        ));
    }
    match parsed {
        Some(Ok(export)) => Ok(export
            .data
            .into_iter()
            .flat_map(|data| data.functions)
            .collect()),
        Some(Err(e)) => Err(failed(&format_args!(
            "its export cannot be understood: {e}"
        ))),
        None => Ok(Vec::new()),
    }
}

fn function(exported: Exported, mapped: Mapped) -> Result<Function, String> {
    let files = exported.filenames;
    let known = |file: u64| {
        let file = file as usize;
        let lacking = || {
            format!(
                "llvm-cov names file {file} of {} for {}",
                files.len(),
                exported.name
            )
        };
        (file < files.len()).then_some(file).ok_or_else(lacking)
    };
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let lines = exported
        .regions
        .iter()
        .map(|region| region[0].max(region[2]));
    if let Some(line) = lines.max().filter(|line| *line > MOST_LINES) {
        return Err(format!(
            "its mapping is damaged: {} is on line {line}",
            exported.name
        ));
    }
    let mut regions = Vec::with_capacity(exported.regions.len());
    for [line, column, end_line, end_column, count, file, _, kind] in exported.regions {
        let kind = match kind {
            0 => Kind::Code,
            1 => Kind::Expansion,
            2 => Kind::Skipped,
            3 => Kind::Gap,
            // Branches and decisions are told apart from regions.
            _ => continue,
        };
        let region = Region {
            start: (number(line), number(column)),
            end: (number(end_line), number(end_column)),
            kind,
            count,
        };
        regions.push((known(file)?, region));
    }
    let mut branches = Vec::with_capacity(exported.branches.len());
    for [
        line,
        column,
        end_line,
        end_column,
        taken,
        not_taken,
        file,
        _,
        _,
    ] in exported.branches
    {
        let branch = Branch {
            start: (number(line), number(column)),
            end: (number(end_line), number(end_column)),
            taken,
            not_taken,
        };
        branches.push((known(file)?, branch));
    }
    Ok(Function {
        count: exported.count,
        variant: Variant::default(),
        mapped,
        regions,
        branches,
        name: exported.name,
        files,
    })
}

impl Function {
    /// Whether it is the same function as another: the same source, and the same counters.
    pub fn is(&self, other: &Function) -> bool {
        let place =
            |(file, region): &(usize, Region)| (*file, region.start, region.end, region.kind);
        self.mapped == other.mapped
            && self.files == other.files
            && self
                .regions
                .iter()
                .map(place)
                .eq(other.regions.iter().map(place))
    }

    /// The index of the file that it is defined in, and where in it.
    pub fn definition(&self) -> Option<(usize, Position)> {
        self.regions
            .first()
            .map(|(file, region)| (*file, region.start))
    }
}

/// Keeps each path once.
pub fn share(functions: &mut [Function], paths: &mut HashMap<Arc<str>, Arc<str>>) {
    for path in functions
        .iter_mut()
        .flat_map(|function| &mut function.files)
    {
        *path = paths
            .entry(path.clone())
            .or_insert_with(|| path.clone())
            .clone();
    }
}
