//! The functions of a column: of all code objects of an architecture, without duplicates.

use super::llvm_cov::{self, Function, Variant};
use super::objects::{Object, ObjectGroup};
use crate::llvm::Tool;
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The coverage data of an architecture or of the host.
#[derive(Debug, Default)]
pub struct ColumnData {
    /// See [`super::model::Column::name`].
    pub name: String,
    pub host: bool,
    /// Whether there is a profile of it.
    pub ran: bool,
    /// The number of code objects with a coverage mapping.
    pub objects: usize,
    pub functions: Vec<Function>,
    /// The symbols of the kernels in the code objects.
    pub kernels: BTreeSet<String>,
    pub problems: Problems,
}

/// Why counts are missing or misleading.
#[derive(Debug, Default)]
pub struct Problems {
    /// Functions whose counts are from another build. They are included as not run.
    pub mismatched: BTreeSet<String>,
    /// Functions that the profile cannot distinguish: they have the same name and hash, but different sources.
    pub shared: BTreeSet<String>,
    /// Which code objects could not be read, and why.
    pub unread: Vec<String>,
}

impl ColumnData {
    /// Reads the code objects of a column with its profile, and advances `bar` by one for each.
    pub fn read(column: &ObjectGroup, llvm_cov: &Tool, bar: &ProgressBar) -> ColumnData {
        let objects = &column.objects;
        let mut data = ColumnData {
            name: column.name.clone(),
            host: column.host,
            ran: column.profile.is_some(),
            objects: objects.len(),
            ..ColumnData::default()
        };
        let profile = column.profile.map(PathBuf::as_path);
        let mut functions = Vec::new();
        let mut mismatched = Vec::new();
        for (object, read) in objects
            .iter()
            .zip(read_all(objects, profile, llvm_cov, bar))
        {
            data.kernels.extend(object.kernels.iter().cloned());
            match read {
                Ok(read) => {
                    functions.extend(read.functions);
                    mismatched.push((*object, read.mismatched));
                }
                Err(error) => data.add_unread(object, &error),
            }
        }
        let known = functions.iter().map(|function| function.name.clone());
        let known: HashSet<String> = known.collect();
        for (object, mismatched) in mismatched {
            match read_not_run(object, &mismatched, llvm_cov) {
                Ok(mut not_run) => {
                    for function in &mut not_run {
                        function.mismatched = !known.contains(&function.name);
                    }
                    functions.extend(not_run);
                }
                Err(error) => data.add_unread(object, &error),
            }
            let other_build = mismatched.into_iter();
            let other_build = other_build.filter(|name| !known.contains(name));
            data.problems.mismatched.extend(other_build);
        }
        llvm_cov::share_paths(&mut functions, &mut HashMap::new());
        data.functions = deduplicated(functions, &mut data.problems.shared);
        data
    }

    fn add_unread(&mut self, object: &Object, error: &anyhow::Error) {
        let unread = format!("{}: {error:#}", object.origin);
        self.problems.unread.push(unread);
    }
}

/// Functions for which the profile has only the counts of another version. If it is another code object's version, that
/// version ran, and this one did not. If it is of another build, the counts are lost.
fn read_not_run(
    object: &Object,
    names: &[String],
    llvm_cov: &Tool,
) -> anyhow::Result<Vec<Function>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut functions = llvm_cov::read(llvm_cov, &object.path, None)?.functions;
    functions.retain(|function| names.contains(&function.name));
    Ok(functions)
}

/// Reads code objects in parallel. Returns the results in the same order.
fn read_all(
    objects: &[&Object],
    profile: Option<&Path>,
    llvm_cov: &Tool,
    bar: &ProgressBar,
) -> Vec<anyhow::Result<llvm_cov::Object>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(object) = objects.get(index) else {
                return read;
            };
            read.push((index, llvm_cov::read(llvm_cov, &object.path, profile)));
            bar.inc(1);
        }
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(objects.len());
    let mut read: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let read = threads.into_iter().map(|thread| thread.join());
        read.flat_map(Result::unwrap_or_default).collect()
    });
    read.sort_by_key(|(index, _)| *index);
    read.into_iter().map(|(_, read)| read).collect()
}

/// The functions without duplicates. The profile's counts of a function are already the sum of all code objects. A
/// function that a code object only declares is kept if no other code object defines it.
fn deduplicated(functions: Vec<Function>, shared: &mut BTreeSet<String>) -> Vec<Function> {
    let mut named: BTreeMap<String, Vec<Function>> = BTreeMap::new();
    for mut function in functions {
        let known = named.entry(function.name.clone()).or_default();
        if known.iter().any(|other| other.is_same(&function)) {
            continue;
        }
        match known.first() {
            Some(first) if first.mapping.unused && !function.mapping.unused => known.clear(),
            Some(first) if function.mapping.unused && !first.mapping.unused => continue,
            _ => {}
        }
        let shares_counts = known.iter().any(|other| other.mapping == function.mapping);
        if shares_counts && !function.mapping.unused {
            shared.insert(function.name.clone());
        }
        function.variant = Variant {
            number: known.len() as u32,
            shares_counts,
        };
        known.push(function);
    }
    named.into_values().flatten().collect()
}
