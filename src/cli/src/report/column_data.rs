//! The functions of a column: of all code objects of an architecture, without duplicates.

use super::llvm_cov::{self, Function, Variant};
use super::mcdc::Unknown;
use super::model::CountKind;
use super::objects::{Object, ObjectGroup};
use crate::llvm::Tool;
use crate::{merge, names, parallel};
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

/// The coverage data of an architecture or of the host.
#[derive(Debug, Default)]
pub struct ColumnData {
    /// See [`super::model::Column::name`].
    pub name: String,
    pub host: bool,
    /// Whether there is a profile of it.
    pub ran: bool,
    pub counts: CountKind,
    /// The number of code objects with a coverage mapping.
    pub objects: usize,
    pub functions: Vec<Function>,
    /// The symbols of the kernels in the code objects.
    pub kernels: BTreeSet<String>,
    /// The build IDs of the code objects, in hexadecimal.
    pub build_ids: BTreeSet<String>,
    pub problems: Problems,
}

/// Why counts are missing or misleading.
#[derive(Debug, Default)]
pub struct Problems {
    /// Functions whose counts are from another build. They are included as not run.
    pub mismatched: BTreeSet<String>,
    /// Functions that the profile cannot distinguish: they have the same name and hash, but different sources.
    pub shared: BTreeSet<String>,
    /// Functions whose decisions (MC/DC) are left out, because of llvm-cov's output.
    pub without_vectors: BTreeSet<String>,
    pub other_decisions: BTreeSet<String>,
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
            ran: column.ran,
            counts: CountKind::of_sum(column.profiles().map(counts_of)),
            objects: objects.len(),
            ..ColumnData::default()
        };
        let mut functions: Vec<(Option<&Path>, Function)> = Vec::new();
        let mut mismatched = Vec::new();
        let read = parallel::map(objects, |(object, profile)| {
            let read = llvm_cov::read(llvm_cov, &object.path, *profile);
            bar.inc(1);
            read
        });
        for ((object, profile), read) in objects.iter().zip(read) {
            data.kernels.extend(object.kernels.iter().cloned());
            data.build_ids.extend(object.build_id.clone());
            match read {
                Ok(read) => {
                    for (function, why) in read.without_decisions {
                        let own = match why {
                            Unknown::NotListed => &mut data.problems.without_vectors,
                            Unknown::Mismatch => &mut data.problems.other_decisions,
                        };
                        own.insert(function);
                    }
                    let own = read.functions.into_iter();
                    functions.extend(own.map(|own| (*profile, with_build_id(own, object))));
                    mismatched.push((*object, read.mismatched));
                }
                Err(error) => data.add_unread(object, &error),
            }
        }
        let known = functions.iter().map(|(_, function)| function.name.clone());
        let known: HashSet<String> = known.collect();
        for (object, mismatched) in mismatched {
            match read_not_run(object, &mismatched, llvm_cov) {
                Ok(mut not_run) => {
                    for function in &mut not_run {
                        function.mismatched = !known.contains(&function.name);
                    }
                    let own = not_run.into_iter();
                    functions.extend(own.map(|own| (None, with_build_id(own, object))));
                }
                Err(error) => data.add_unread(object, &error),
            }
            let other_build = mismatched.into_iter();
            let other_build = other_build.filter(|name| !known.contains(name));
            data.problems.mismatched.extend(other_build);
        }
        llvm_cov::share_paths(functions.iter_mut().map(|(_, own)| own));
        data.functions = deduplicated(functions, &mut data.problems.shared);
        data
    }

    fn add_unread(&mut self, object: &Object, error: &anyhow::Error) {
        let unread = format!("{}: {error:#}", object.origin);
        self.problems.unread.push(unread);
    }
}

/// The function with the build ID of its code object, if it is a kernel.
fn with_build_id(mut function: Function, object: &Object) -> Function {
    let symbol = names::symbol(&function.name);
    if object.kernels.iter().any(|kernel| kernel == symbol) {
        function.build_ids.extend(object.build_id.clone());
    }
    function
}

/// The kind of counts in an indexed profile.
fn counts_of(profile: &Path) -> CountKind {
    if merge::only_ran(profile) {
        CountKind::Ran
    } else {
        CountKind::Executions
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

/// The functions without duplicates. The counts of a function in several code objects are added up, unless they are from the same
/// profile, which has the sum already. A function that a code object only declares is kept if no other code object defines
/// it.
fn deduplicated(
    functions: Vec<(Option<&Path>, Function)>,
    shared: &mut BTreeSet<String>,
) -> Vec<Function> {
    // Each function of a name, with the profiles from which it has counts.
    type Versions<'a> = Vec<(BTreeSet<Option<&'a Path>>, Function)>;
    let mut named: BTreeMap<String, Versions> = BTreeMap::new();
    for (profile, mut function) in functions {
        let known = named.entry(function.name.clone()).or_default();
        let same = known.iter_mut().find(|(_, other)| other.is_same(&function));
        if let Some((profiles, other)) = same {
            if profiles.insert(profile) {
                other.add(&function);
            }
            other.build_ids.append(&mut function.build_ids);
            continue;
        }
        match known.first() {
            Some((_, first)) if first.mapping.unused && !function.mapping.unused => known.clear(),
            Some((_, first)) if function.mapping.unused && !first.mapping.unused => continue,
            _ => {}
        }
        let shares_counts = profile.is_some()
            && known.iter().any(|(profiles, other)| {
                other.mapping == function.mapping && profiles.contains(&profile)
            });
        if shares_counts && function.count > 0 {
            shared.insert(function.name.clone());
        }
        function.variant = Variant {
            number: known.len() as u32,
            shares_counts,
        };
        known.push((BTreeSet::from([profile]), function));
    }
    let functions = named.into_values().flatten();
    functions.map(|(_, function)| function).collect()
}
