//! Reads a code object with llvm-cov: the regions and branches of its functions, with the counts of a profile.

use super::diff;
use super::lines::{Kind, Position, Region};
use super::mapping::{self, Mapping};
use super::mcdc::{self, Decision, Span};
use crate::llvm::Tool;
use crate::names;
use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{BufReader, Read};
use std::mem;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

/// A function in one code object.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name in the profile: the symbol, with the prefix `file:` if the function is local to its file.
    pub name: String,
    pub mapping: Mapping,
    pub files: Vec<Arc<str>>,
    /// Regions, with the index of their file in `files`.
    pub regions: Vec<(usize, Region)>,
    pub branches: Vec<(usize, Branch)>,
    pub decisions: Vec<Decision>,
    /// How often it was entered, counted per work-item.
    pub count: u64,
    /// Which of several functions of the same name with different sources it is.
    pub variant: Variant,
    /// The profile's counts of it are from another build, so its own are not known.
    pub mismatched: bool,
    /// Of a kernel: the build IDs of the code objects that have it, in hexadecimal, as far as they are known.
    pub build_ids: BTreeSet<String>,
}

/// The number of a function among the functions of the same name in other code objects that have different sources, because of
/// macros or by accident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    pub number: u32,
    /// It has the same hash as an earlier one, so the profile has one count for both.
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

/// What identifies a decision in a file. Each use of a macro is a decision of its own. The instances of a template share theirs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionKey {
    pub start: Position,
    pub end: Position,
    /// The definition of its function: the file and the position.
    pub function: (Arc<str>, Position),
    /// The file, start and end of each condition.
    pub conditions: Vec<(Arc<str>, Position, Position)>,
    /// Its number among the function's decisions that are equal in the rest.
    pub number: usize,
}

/// The functions of a code object, and the names of those whose counts are from another build.
#[derive(Debug, Default)]
pub struct Object {
    pub functions: Vec<Function>,
    /// Not in `functions`.
    pub mismatched: Vec<String>,
    /// Functions whose decisions are left out.
    pub without_decisions: Vec<(String, mcdc::Unknown)>,
}

/// A mapping with a higher line number is damaged.
const MAX_LINE: u64 = 4 << 20;

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
    /// Line, column, end line, end column, count, file, expanded file, kind.
    regions: Vec<[u64; 8]>,
    /// Line, column, end line, end column, true count, false count, file, expanded file, kind.
    #[serde(default)]
    branches: Vec<[u64; 9]>,
    #[serde(default)]
    mcdc_records: Vec<mcdc::Record>,
}

/// Reads a code object with the counts of a profile. Without a profile, all counts are 0.
///
/// # Errors
/// The file cannot be read, or llvm-cov fails.
pub fn read(llvm_cov: &Tool, object: &Path, profile: Option<&Path>) -> anyhow::Result<Object> {
    let bytes = fs::read(object).with_context(|| format!("cannot read {}", object.display()))?;
    let mut mappings = mapping::functions(&bytes)?;
    let mut read = Object::default();
    for mut exported in export(llvm_cov, object, profile)? {
        let Some(record) = mappings.remove(&names::hash(&exported.name)) else {
            continue;
        };
        let mut decisions = record.decisions.unwrap_or_default();
        let records = mem::take(&mut exported.mcdc_records);
        if let Err(why) = mcdc::add_executed(&mut decisions, records) {
            decisions.clear();
            read.without_decisions.push((exported.name.clone(), why));
        }
        let function = function(exported, record.mapping)?;
        read.functions.push(Function {
            decisions,
            ..function
        });
    }
    mappings.retain(|_, record| !record.mapping.unused);
    if !mappings.is_empty() {
        let names = mapping::names(&bytes).unwrap_or_default();
        let name = |hash: &u64| match names.get(hash) {
            Some(name) => name.clone(),
            None => format!("(function {hash:#018x})"),
        };
        read.mismatched = mappings.keys().map(name).collect();
        read.mismatched.sort();
    }
    Ok(read)
}

/// Runs `llvm-cov export`.
fn export(llvm_cov: &Tool, object: &Path, profile: Option<&Path>) -> anyhow::Result<Vec<Exported>> {
    let mut command = llvm_cov.command();
    command.arg("export").arg(object);
    match profile {
        Some(profile) => command.arg("-instr-profile").arg(profile),
        None => command.arg("-empty-profile"),
    };
    let path = llvm_cov.path.display();
    let failed = || format!("cannot run {path}");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (parsed, messages) = std::thread::scope(|scope| {
        let messages = scope.spawn(|| {
            let mut messages = Vec::new();
            // The messages before a read error are still useful.
            let _ = stderr.map(|mut pipe| pipe.read_to_end(&mut messages));
            String::from_utf8_lossy(&messages).into_owned()
        });
        let parsed = stdout.map(|pipe| serde_json::from_reader::<_, Export>(BufReader::new(pipe)));
        (parsed, messages.join().unwrap_or_default())
    });
    let status = child.wait().with_context(failed)?;
    if !status.success() {
        let error = messages.lines().find(|line| line.starts_with("error:"));
        let error = error.or(messages.lines().next());
        bail!("{path}: {}", error.unwrap_or("it failed without a message"));
    }
    let Some(parsed) = parsed else {
        return Ok(Vec::new());
    };
    let export = parsed.with_context(|| format!("{path}: cannot parse its output"))?;
    let functions = export.data.into_iter().flat_map(|data| data.functions);
    Ok(functions.collect())
}

fn function(exported: Exported, mapping: Mapping) -> anyhow::Result<Function> {
    let files = exported.filenames;
    let known = |file: u64| {
        let (file, number, name) = (file as usize, files.len(), &exported.name);
        if file >= number {
            bail!("llvm-cov names file {file} of {number} for {name}");
        }
        Ok(file)
    };
    let lines = exported.regions.iter();
    let lines = lines.map(|region| region[0].max(region[2]));
    if let Some(line) = lines.max().filter(|line| *line > MAX_LINE) {
        bail!(
            "its mapping is damaged: {} is on line {line}",
            exported.name
        );
    }
    let mut regions = Vec::with_capacity(exported.regions.len());
    for region in exported.regions {
        let (start, end) = positions(&region);
        let kind = match region[7] {
            0 => Kind::Code,
            1 => Kind::Expansion,
            2 => Kind::Skipped,
            3 => Kind::Gap,
            // Branches and decisions are in lists of their own.
            _ => continue,
        };
        let count = region[4];
        let file = known(region[5])?;
        regions.push((
            file,
            Region {
                start,
                end,
                kind,
                count,
            },
        ));
    }
    let mut branches = Vec::with_capacity(exported.branches.len());
    for branch in exported.branches {
        let (start, end) = positions(&branch);
        let (taken, not_taken) = (branch[4], branch[5]);
        let file = known(branch[6])?;
        branches.push((
            file,
            Branch {
                start,
                end,
                taken,
                not_taken,
            },
        ));
    }
    Ok(Function {
        count: exported.count,
        variant: Variant::default(),
        mismatched: false,
        build_ids: BTreeSet::new(),
        mapping,
        regions,
        branches,
        decisions: Vec::new(),
        name: exported.name,
        files,
    })
}

/// The start and end of a region or branch, from its first four numbers.
fn positions<const N: usize>(numbers: &[u64; N]) -> (Position, Position) {
    let number = |n: usize| u32::try_from(numbers[n]).unwrap_or(u32::MAX);
    ((number(0), number(1)), (number(2), number(3)))
}

impl Function {
    /// Whether it is the same function as another, with the same source and counters.
    pub fn is_same(&self, other: &Function) -> bool {
        let position =
            |(file, region): &(usize, Region)| (*file, region.start, region.end, region.kind);
        let branch = |(file, branch): &(usize, Branch)| (*file, branch.start, branch.end);
        let (own, others) = (self.regions.iter(), other.regions.iter());
        let (branches, other_branches) = (self.branches.iter(), other.branches.iter());
        let mut decisions = self.decisions.iter().zip(&other.decisions);
        self.mapping == other.mapping
            && self.files == other.files
            && own.map(position).eq(others.map(position))
            && branches.map(branch).eq(other_branches.map(branch))
            && self.decisions.len() == other.decisions.len()
            && decisions.all(|(own, other)| own.is_same(other))
    }

    /// Adds the counts of the same function in another code object.
    pub fn add(&mut self, other: &Function) {
        let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
        add(&mut self.count, other.count);
        for ((_, region), (_, more)) in self.regions.iter_mut().zip(&other.regions) {
            add(&mut region.count, more.count);
        }
        for ((_, branch), (_, more)) in self.branches.iter_mut().zip(&other.branches) {
            add(&mut branch.taken, more.taken);
            add(&mut branch.not_taken, more.not_taken);
        }
        for (decision, more) in self.decisions.iter_mut().zip(&other.decisions) {
            decision.executed.extend(more.executed.iter().cloned());
        }
    }

    /// The decisions in a file, with what identifies each of them.
    pub fn decisions_in(&self, path: &str) -> Vec<(DecisionKey, &Decision)> {
        let mut found: Vec<(DecisionKey, &Decision)> = Vec::new();
        let Some((file, position)) = self.definition() else {
            return found;
        };
        let mut numbers: HashMap<DecisionKey, usize> = HashMap::new();
        for decision in &self.decisions {
            if &*self.files[decision.span.file] != path {
                continue;
            }
            let conditions = decision.conditions.iter();
            let conditions = conditions.map(|own| {
                let Span { file, start, end } = own.span;
                (self.files[file].clone(), start, end)
            });
            let mut key = DecisionKey {
                start: decision.span.start,
                end: decision.span.end,
                function: (self.files[file].clone(), position),
                conditions: conditions.collect(),
                number: 0,
            };
            let number = numbers.entry(key.clone()).or_default();
            key.number = *number;
            *number += 1;
            found.push((key, decision));
        }
        found
    }

    /// Whether it has some of these lines of a file.
    pub fn is_in(&self, path: &str, lines: &[RangeInclusive<u32>]) -> bool {
        let mut own = self
            .regions
            .iter()
            .filter(|(file, _)| &*self.files[*file] == path);
        own.any(|(_, region)| diff::overlaps(lines, region.start.0, region.end.0))
    }

    /// The index of the file that it is defined in, and its position there.
    pub fn definition(&self) -> Option<(usize, Position)> {
        let first = self.regions.first();
        first.map(|(file, region)| (*file, region.start))
    }
}

/// Makes equal paths share their memory.
pub fn share_paths<'a>(functions: impl Iterator<Item = &'a mut Function>) {
    let mut paths: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    for path in functions.flat_map(|function| &mut function.files) {
        let known = paths.entry(path.clone());
        *path = known.or_insert_with(|| path.clone()).clone();
    }
}
