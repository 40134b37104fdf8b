//! Which test ran which lines: from the profiles of each test, which the runtime writes to `tests/NAME` next to the others.
//!
//! llvm-cov reads each code object once, for the regions of its functions. Their counts in each test are computed here ([`Counters`]).

use super::counters::Counters;
use super::lines;
use super::llvm_cov::{self, Function};
use super::mapping;
use super::model::Report;
use super::objects::{self, Object};
use super::source::Finder;
use crate::llvm::Tool;
use crate::merge::{self, Arch};
use crate::{names, parallel, paths};
use anyhow::Context;
use profraw::{Layout, TEST_NAME, TESTS};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many tests of a line a report names.
const MAX_SHOWN: usize = 10;

/// Numbers of lines: the first and the last of each range.
pub type Lines = Vec<(u32, u32)>;

/// What each test ran.
#[derive(Debug, Default)]
pub struct Attribution {
    /// By name. The name is empty for what ran outside of tests.
    pub tests: BTreeMap<String, Ran>,
    pub functions: Vec<TestedFunction>,
    /// The lines with code, by path.
    pub code: BTreeMap<Arc<str>, Lines>,
    /// What could not be attributed, and why.
    pub lost: Vec<String>,
}

/// What a test ran.
#[derive(Debug, Default)]
pub struct Ran {
    /// By path.
    pub lines: BTreeMap<Arc<str>, Lines>,
    /// Indices of the functions.
    pub functions: BTreeSet<usize>,
}

/// A function in the code objects, or an instance of a template.
#[derive(Debug)]
pub struct TestedFunction {
    /// The name in the profile.
    pub name: String,
    pub path: Arc<str>,
    pub first: u32,
    pub last: u32,
    pub is_kernel: bool,
    /// The code objects that have it.
    pub build_ids: BTreeSet<String>,
}

/// A code object, and how to compute counts of its functions.
struct Mapped<'a> {
    object: &'a Object,
    functions: Vec<(Function, Counters)>,
    /// Indices of the functions by the hashes of their names and of their structures.
    by_hash: HashMap<(u64, u64), usize>,
    /// Indices of the functions in the order of their positions in the files that define them.
    by_position: BTreeMap<Arc<str>, Vec<usize>>,
}

/// Reads the profiles of the tests in a directory. `objects`: with the code of the tests.
///
/// # Errors
/// The directory cannot be read.
pub fn read(directory: &Path, objects: &[Object], llvm_cov: &Tool) -> anyhow::Result<Attribution> {
    let mut all = Attribution::default();
    let mapped = parallel::map(objects, |object| Mapped::read(object, llvm_cov));
    let mut known = Vec::new();
    for (object, read) in objects.iter().zip(mapped) {
        match read {
            Ok(mapped) => known.push((all.add_functions(&mapped), mapped)),
            Err(error) => all.lost.push(format!("{}: {error:#}", object.origin)),
        }
    }
    let directories = paths::entries(&directory.join(TESTS))?;
    for ran in parallel::map(&directories, |directory| test(directory, &known)) {
        let (name, ran, lost) = ran?;
        let lost = lost.into_iter();
        let shown = if name.is_empty() {
            "outside of tests"
        } else {
            &name
        };
        all.lost.extend(lost.map(|lost| format!("{shown}: {lost}")));
        all.tests.insert(name, ran);
    }
    Ok(all)
}

/// The name of a test, what it ran, and what could not be attributed. `known`: the code objects, with the numbers of their functions
/// among all.
fn test(
    directory: &Path,
    known: &[(Vec<usize>, Mapped)],
) -> anyhow::Result<(String, Ran, Vec<String>)> {
    let failed = || format!("cannot read {}", directory.display());
    let name = fs::read(directory.join(TEST_NAME)).with_context(failed)?;
    let (mut ran, mut lost) = (Ran::default(), Vec::new());
    let mut lines: BTreeMap<Arc<str>, BTreeSet<u32>> = BTreeMap::new();
    for path in paths::entries(directory)? {
        let is_profile = path.extension().is_some_and(|own| own == "profraw");
        // Hidden files are of processes that were killed while they wrote.
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if !is_profile || name.starts_with(b".") {
            continue;
        }
        if let Err(error) = add_profile(&path, known, &mut ran.functions, &mut lines) {
            lost.push(format!("{}: {error:#}", path.display()));
        }
    }
    ran.lines = lines
        .into_iter()
        .map(|(path, lines)| (path, ranges(lines)))
        .collect();
    Ok((String::from_utf8_lossy(&name).into_owned(), ran, lost))
}

/// Adds what ran according to a profile.
///
/// # Errors
/// The profile is damaged, or its functions are not in the code objects.
fn add_profile(
    path: &Path,
    known: &[(Vec<usize>, Mapped)],
    functions: &mut BTreeSet<usize>,
    lines: &mut BTreeMap<Arc<str>, BTreeSet<u32>>,
) -> anyhow::Result<()> {
    let profile = merge::open(path)?;
    let mut rest = &profile.bytes[..];
    while !rest.is_empty() {
        let layout = Layout::read(rest)?;
        let build_id = profraw::binary_ids(&rest[layout.binary_ids.clone()]).pop();
        let mut unknown = 0;
        let mut counted: Vec<HashMap<usize, Vec<u64>>> = vec![HashMap::new(); known.len()];
        let objects = || {
            let own = known.iter().zip(0..);
            own.filter(|((_, mapped), _)| mapped.is_of(build_id.as_deref(), profile.named.as_ref()))
        };
        for record in profraw::records(rest, &layout)? {
            if record.counters.iter().all(|count| *count == 0) {
                continue;
            }
            let mut is_known = false;
            for ((_, mapped), n) in objects() {
                if let Some(&function) = mapped.by_hash.get(&(record.name, record.hash)) {
                    counted[n].insert(function, record.counters.clone());
                    is_known = true;
                }
            }
            unknown += usize::from(!is_known);
        }
        for ((numbers, mapped), n) in objects() {
            functions.extend(counted[n].keys().map(|function| numbers[*function]));
            mapped.add_lines(&counted[n], lines);
        }
        if unknown > 0 {
            anyhow::bail!("{unknown} of its functions are in none of the binaries");
        }
        rest = &rest[profraw::end(rest, &layout)?..];
    }
    Ok(())
}

impl<'a> Mapped<'a> {
    fn read(object: &'a Object, llvm_cov: &Tool) -> anyhow::Result<Mapped<'a>> {
        let bytes = fs::read(&object.path)
            .with_context(|| format!("cannot read {}", object.path.display()))?;
        let mut counters = mapping::counters(&bytes)?;
        let mut mapped = Mapped {
            object,
            functions: Vec::new(),
            by_hash: HashMap::new(),
            by_position: BTreeMap::new(),
        };
        let read = llvm_cov::read(llvm_cov, &object.path, None)?;
        for function in read.functions {
            let hash = names::hash(&function.name);
            let Some(own) = counters.remove(&hash) else {
                continue;
            };
            let starts = function.regions.iter().map(|(_, region)| region.start);
            anyhow::ensure!(
                own.starts().eq(starts),
                "llvm-cov lists other regions of {} than its mapping has",
                function.name
            );
            let number = mapped.functions.len();
            mapped.by_hash.insert((hash, function.mapping.hash), number);
            if let Some((file, _)) = function.definition() {
                let path = function.files[file].clone();
                mapped.by_position.entry(path).or_default().push(number);
            }
            mapped.functions.push((function, own));
        }
        llvm_cov::share_paths(mapped.functions.iter_mut().map(|(function, _)| function));
        let functions = &mapped.functions;
        for indices in mapped.by_position.values_mut() {
            indices.sort_by_key(|&n| functions[n].0.definition());
        }
        Ok(mapped)
    }

    /// Whether a profile may be of this code object.
    fn is_of(&self, build_id: Option<&str>, arch: Option<&Arch>) -> bool {
        let Object {
            build_id: own,
            processor,
            ..
        } = self.object;
        let is_for = match arch {
            Some(Arch::Gpu(gpu)) => gpu == processor || objects::includes(processor, gpu),
            _ => false,
        };
        match (build_id, own) {
            (Some(id), Some(own)) => id == own,
            _ => is_for,
        }
    }

    /// Adds the lines that ran. `counted`: the counters of the functions that ran.
    fn add_lines(
        &self,
        counted: &HashMap<usize, Vec<u64>>,
        lines: &mut BTreeMap<Arc<str>, BTreeSet<u32>>,
    ) {
        // A function within another one, such as a lambda, did not run because that one did: its own counts apply to its lines.
        let mut all: BTreeSet<usize> = counted.keys().copied().collect();
        for function in counted.keys() {
            all.extend(self.within(*function));
        }
        let mut regions: BTreeMap<&Arc<str>, Vec<lines::Region>> = BTreeMap::new();
        for function in all {
            let (function, counters) = match counted.get(&function) {
                Some(values) => {
                    let (function, counters) = &self.functions[function];
                    (function, counters.counts(values))
                }
                None => (&self.functions[function].0, Vec::new()),
            };
            let counts = counters.into_iter().chain(std::iter::repeat(0));
            for ((file, region), count) in function.regions.iter().zip(counts) {
                let own = regions.entry(&function.files[*file]).or_default();
                own.push(lines::Region { count, ..*region });
            }
        }
        for (path, regions) in regions {
            let counts = lines::counts(regions).into_iter();
            let ran = counts.filter(|(_, count)| *count > 0);
            let own = lines.entry(path.clone()).or_default();
            own.extend(ran.map(|(line, _)| line));
        }
    }

    /// The functions that are defined within a function.
    fn within(&self, function: usize) -> impl Iterator<Item = usize> + '_ {
        let (function, _) = &self.functions[function];
        let first = function.regions.first();
        let around = first.map(|(file, region)| (&function.files[*file], region));
        let same_file = around.and_then(|(path, region)| {
            let indices = self.by_position.get(path)?;
            let start = |n: &usize| self.functions[*n].0.regions[0].1.start;
            let after = indices.partition_point(|n| start(n) <= region.start);
            let end = indices.partition_point(|n| start(n) < region.end);
            indices.get(after..end)
        });
        same_file.unwrap_or_default().iter().copied()
    }
}

/// Where a source is.
pub struct Location {
    /// As reports show it.
    pub shown: String,
    /// The path of the file, resolved if it exists.
    pub file: PathBuf,
}

impl Attribution {
    /// Finds the sources, by their paths in the mapping.
    pub fn locations(&self, finder: &Finder) -> BTreeMap<Arc<str>, Location> {
        let location = |path: &Arc<str>| {
            let source = finder.find(path);
            let file = source.read_from.unwrap_or_else(|| PathBuf::from(&**path));
            let location = Location {
                shown: source.location,
                file: file.canonicalize().unwrap_or(file),
            };
            (path.clone(), location)
        };
        // Each file with code has lines with code.
        self.code.keys().map(location).collect()
    }

    /// Adds the tests of each line to a report.
    pub fn add_to(&self, report: &mut Report) {
        for file in &mut report.files {
            for (name, ran) in &self.tests {
                let lines = ran.lines.get(&file.path).into_iter().flatten();
                for line in lines.flat_map(|&(first, last)| first..=last) {
                    let own = file.tests.entry(line).or_default();
                    own.number += 1;
                    if own.first.len() < MAX_SHOWN {
                        own.first.push(match &**name {
                            "" => "(outside of tests)".to_owned(),
                            name => name.to_owned(),
                        });
                    }
                }
            }
        }
    }

    /// Adds the functions of a code object. Returns their numbers among all.
    fn add_functions(&mut self, mapped: &Mapped) -> Vec<usize> {
        let known = self.functions.iter().zip(0..);
        let mut known: HashMap<(String, Arc<str>, u32), usize> = known
            .map(|(own, n)| ((own.name.clone(), own.path.clone(), own.first), n))
            .collect();
        let mut regions: BTreeMap<&Arc<str>, Vec<lines::Region>> = BTreeMap::new();
        let mut numbers = Vec::new();
        for (function, _) in &mapped.functions {
            for (file, region) in &function.regions {
                let own = regions.entry(&function.files[*file]).or_default();
                own.push(*region);
            }
            let Some((file, region)) = function.regions.first() else {
                numbers.push(usize::MAX);
                continue;
            };
            let path = function.files[*file].clone();
            let (first, last) = (region.start.0, region.end.0);
            let key = (function.name.clone(), path.clone(), first);
            let number = *known.entry(key).or_insert_with(|| {
                let symbol = names::symbol(&function.name);
                self.functions.push(TestedFunction {
                    name: function.name.clone(),
                    path,
                    first,
                    last,
                    is_kernel: mapped.object.kernels.iter().any(|own| own == symbol),
                    build_ids: BTreeSet::new(),
                });
                self.functions.len() - 1
            });
            let ids = &mut self.functions[number].build_ids;
            ids.extend(mapped.object.build_id.clone());
            numbers.push(number);
        }
        for (path, regions) in regions {
            let own = self.code.entry(path.clone()).or_default();
            let before = own.iter().flat_map(|&(first, last)| first..=last);
            let lines = lines::counts(regions).into_keys();
            *own = ranges(before.chain(lines).collect());
        }
        numbers
    }
}

/// The ranges of adjacent lines.
pub fn ranges(lines: BTreeSet<u32>) -> Lines {
    let mut ranges: Lines = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    ranges
}
