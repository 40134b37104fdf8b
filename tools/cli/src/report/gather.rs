//! The functions of all code objects of an architecture, each once.

use super::llvm_cov::{self, Function, Variant};
use super::objects::Object;
use crate::llvm::Tool;
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// An architecture, or the host.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The processor (`gfx1100`), or `host`.
    pub name: String,
    pub host: bool,
    /// Whether there is a profile of it.
    pub ran: bool,
    /// How many code objects with a coverage mapping there are.
    pub objects: usize,
    pub functions: Vec<Function>,
    /// Symbols of the kernels in its code objects.
    pub kernels: BTreeSet<String>,
    pub problems: Problems,
}

/// What keeps counts out of the report, or makes them mean something else.
#[derive(Debug, Default)]
pub struct Problems {
    /// Functions whose counts are of another build.
    pub mismatched: BTreeSet<String>,
    /// Functions that the profile cannot tell apart: one name, one structure, different sources.
    pub shared: BTreeSet<String>,
    /// What was said of code objects that could not be read.
    pub unread: Vec<String>,
}

impl Gathered {
    /// Reads the code objects with the counts of a profile; without one, as what did not run.
    pub fn read(
        name: &str,
        objects: &[&Object],
        profile: Option<&Path>,
        llvm_cov: &Tool,
        bar: &ProgressBar,
    ) -> Gathered {
        let mut gathered = Gathered {
            name: name.to_owned(),
            ran: profile.is_some(),
            objects: objects.len(),
            ..Gathered::default()
        };
        let paths: Vec<PathBuf> = objects.iter().map(|object| object.path.clone()).collect();
        let mut functions = Vec::new();
        let mut other = Vec::new();
        for (object, read) in objects.iter().zip(all(&paths, profile, llvm_cov, bar)) {
            gathered.kernels.extend(object.kernels.iter().cloned());
            match read {
                Ok(read) => {
                    functions.extend(read.functions);
                    other.push((*object, read.mismatched));
                }
                Err(why) => gathered.unread(object, &why),
            }
        }
        let known: HashSet<String> = functions
            .iter()
            .map(|function| function.name.clone())
            .collect();
        for (object, mismatched) in other {
            let (idle, alien) = mismatched
                .into_iter()
                .partition(|name| known.contains(name));
            gathered.problems.mismatched.extend::<Vec<String>>(alien);
            match never_ran(object, &idle, llvm_cov) {
                Ok(idle) => functions.extend(idle),
                Err(why) => gathered.unread(object, &why),
            }
        }
        llvm_cov::share(&mut functions, &mut HashMap::new());
        gathered.functions = distinct(functions, &mut gathered.problems.shared);
        gathered
    }

    fn unread(&mut self, object: &Object, why: &str) {
        self.problems
            .unread
            .push(format!("{}: {why}", object.place));
    }
}

/// Functions whose counts the profile has for the code of another code object only: that ran, and this one did not.
fn never_ran(object: &Object, names: &[String], llvm_cov: &Tool) -> Result<Vec<Function>, String> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut functions = llvm_cov::read(llvm_cov, &object.path, None)?.functions;
    functions.retain(|function| names.contains(&function.name));
    Ok(functions)
}

/// Reads them on all processors, in their order.
fn all(
    paths: &[PathBuf],
    profile: Option<&Path>,
    llvm_cov: &Tool,
    bar: &ProgressBar,
) -> Vec<Result<llvm_cov::Object, String>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        while let Some((index, path)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            paths.get(index).map(|path| (index, path))
        } {
            read.push((index, llvm_cov::read(llvm_cov, path, profile)));
            bar.inc(1);
        }
        read
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(paths.len());
    let mut read: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    read.sort_by_key(|(index, _)| *index);
    read.into_iter().map(|(_, read)| read).collect()
}

/// Each function once, however many code objects have it: its counts in the profile are already those of all of them.
/// One that a code object only declares counts where no other has it.
fn distinct(functions: Vec<Function>, shared: &mut BTreeSet<String>) -> Vec<Function> {
    let mut named: BTreeMap<String, Vec<Function>> = BTreeMap::new();
    for mut function in functions {
        let known = named.entry(function.name.clone()).or_default();
        if known.iter().any(|other| other.is(&function)) {
            continue;
        }
        match known.first() {
            Some(first) if first.mapped.unused && !function.mapped.unused => known.clear(),
            Some(first) if function.mapped.unused && !first.mapped.unused => continue,
            _ => {}
        }
        let shares_counts = known.iter().any(|other| other.mapped == function.mapped);
        if shares_counts && !function.mapped.unused {
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
