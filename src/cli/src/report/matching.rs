//! Whether a profile is of the binaries, by the names and hashes of its functions.

use super::mapping;
use super::notes::Notes;
use super::objects::ObjectGroup;
use crate::llvm::Tool;
use crate::merge::Output;
use crate::readable::{and_more, listed, plural};
use crate::run_log::saved;
use crate::{names, parallel};
use anyhow::{Context, bail};
use code_objects::What;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Checks each column, and adds notes about profiles that are not used. `dirs`: the directories of the profiles.
///
/// # Errors
/// A column has no profile of its code objects: no function of the profiles is in the binaries, or all of them are of other
/// builds.
pub fn check(
    columns: &[ObjectGroup],
    profdata: &Tool,
    binaries: &[PathBuf],
    dirs: &BTreeSet<PathBuf>,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let mut of_others = Vec::new();
    let others = OnceCell::new();
    let others = || others.get_or_init(|| not_named(binaries, dirs));
    // A function of a header is in other programs, too.
    let is_of_others = |profile: &Unused| {
        let id = profile.output.build_id.as_deref();
        id.is_some_and(|id| others().iter().any(|(_, ids)| ids.contains(id)))
    };
    for column in columns.iter().filter(|column| column.ran) {
        let (unused, is_used) = unused(column, profdata)?;
        let (programs, builds): (Vec<Unused>, Vec<Unused>) =
            unused.into_iter().partition(|profile| {
                profile.relation == Relation::OtherProgram || is_of_others(profile)
            });
        let name = &column.name;
        if let (false, Some(profile)) = (is_used, builds.first().or(programs.first())) {
            bail!(profile.why_nothing_is_left(name, binaries));
        }
        notes.losses(
            &format!("Profiles of {name} are from different builds of the binaries, so their counts are not included"),
            builds.iter().map(Unused::files).collect(),
        );
        let described =
            |profile: &Unused| format!("{}: it has {}", profile.files(), profile.functions());
        of_others.extend(programs.iter().map(described));
    }
    if of_others.is_empty() {
        return Ok(());
    }
    let others: Vec<PathBuf> = others().iter().map(|(path, _)| path.clone()).collect();
    let other_binaries = match &others[..] {
        [] => String::new(),
        others => format!(" (the log of the run has {}, too)", listed(others)),
    };
    let text = format!(
        "Profiles are of none of these binaries, so their counts are not included: name their programs and libraries as well{other_binaries}."
    );
    notes.warning_about(text, of_others);
    Ok(())
}

/// A profile that is not used.
struct Unused<'a> {
    output: &'a Output,
    relation: Relation,
    /// The name and hash of each function. Not empty.
    profiled: Vec<(String, u64)>,
}

impl Unused<'_> {
    /// Why the report has no counts of this architecture.
    fn why_nothing_is_left(&self, arch: &str, binaries: &[PathBuf]) -> String {
        let binaries = listed(binaries);
        let why = match self.relation {
            Relation::OtherProgram => {
                return format!(
                    "the profile of {arch} is of another program: it has {}, and none is in {binaries}; name the binary or library that ran",
                    self.functions()
                );
            }
            Relation::OtherHashes => "no function has the same hash".to_owned(),
            Relation::Same => format!(
                "its build ID is {}",
                self.output.build_id.as_deref().unwrap_or_default()
            ),
        };
        format!(
            "the profile of {arch} is from a different build of {binaries}: {why}; use the binary that ran, or run this one again"
        )
    }

    /// The files of the profile.
    fn files(&self) -> String {
        and_more(&self.output.first, self.output.files)
    }

    /// How many functions it has, and the first.
    fn functions(&self) -> String {
        let number = plural(self.profiled.len(), "function");
        format!("{number} ({})", names::demangled(&self.profiled[0].0))
    }
}

/// The profiles of a column that none of its objects is read with, and whether others are.
fn unused<'a>(
    column: &ObjectGroup<'a>,
    profdata: &Tool,
) -> anyhow::Result<(Vec<Unused<'a>>, bool)> {
    let candidates = column.others.iter().chain(&column.unmatched);
    let candidates: Vec<&Output> = candidates.copied().collect();
    // Usually each profile is of one object, and the objects need not be read for that.
    if candidates.is_empty() {
        return Ok((Vec::new(), true));
    }
    let mut compiled: HashMap<u64, Vec<u64>> = HashMap::new();
    for (object, _) in &column.objects {
        // Objects that cannot be read are reported later.
        let bytes = fs::read(&object.path).unwrap_or_default();
        for (name, record) in mapping::functions(&bytes).unwrap_or_default() {
            if !record.mapping.unused {
                compiled.entry(name).or_default().push(record.mapping.hash);
            }
        }
    }
    let others = column.others.map(|output| &*output.path);
    let has_own = |profile: &Option<&Path>| profile.is_some() && *profile != others;
    let mut is_used = column.objects.iter().any(|(_, profile)| has_own(profile));
    let profiled = parallel::map(&candidates, |output| functions(profdata, &output.path));
    let mut unused = Vec::new();
    for (output, profiled) in candidates.into_iter().zip(profiled) {
        let profiled = profiled?;
        let relation = relation(&compiled, &profiled);
        let is_empty = compiled.is_empty() || profiled.is_empty();
        if is_empty || (relation == Relation::Same && output.build_id.is_none()) {
            is_used = true;
            continue;
        }
        unused.push(Unused {
            output,
            relation,
            profiled,
        });
    }
    Ok((unused, is_used))
}

/// The binaries in the logs of the runs that wrote the profiles, except for those that were named, with the build IDs of their code
/// objects.
fn not_named(binaries: &[PathBuf], dirs: &BTreeSet<PathBuf>) -> Vec<(PathBuf, HashSet<String>)> {
    let same = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let named: BTreeSet<PathBuf> = binaries.iter().map(same).collect();
    // Without a log, or if it cannot be read, the note does not name any.
    let mut logged = saved::binaries(dirs.iter().map(PathBuf::as_path)).unwrap_or_default();
    logged.retain(|path| !named.contains(&same(path)));
    let with_ids = |path: PathBuf| {
        let mut ids = HashSet::new();
        code_objects::walk(&path, code_objects::Options::default(), &mut |found| {
            if let What::CodeObject(object) = found.what {
                ids.extend(object.build_id);
            }
            ControlFlow::Continue(())
        });
        (path, ids)
    };
    logged.into_iter().map(with_ids).collect()
}

/// The relation of a profile to the binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// A function has the same name and hash.
    Same,
    /// Functions have the same names.
    OtherHashes,
    OtherProgram,
}

/// `compiled`: the hashes of each function in the binaries. `profiled`: the name and hash of each function.
fn relation(compiled: &HashMap<u64, Vec<u64>>, profiled: &[(String, u64)]) -> Relation {
    let mut relation = Relation::OtherProgram;
    for (name, hash) in profiled {
        match compiled.get(&names::hash(name)) {
            Some(hashes) if hashes.contains(hash) => return Relation::Same,
            Some(_) => relation = Relation::OtherHashes,
            None => {}
        }
    }
    relation
}

/// The name and hash of each function in an indexed profile.
fn functions(profdata: &Tool, profile: &Path) -> anyhow::Result<Vec<(String, u64)>> {
    let mut command = profdata.command();
    command.args(["show", "--all-functions"]).arg(profile);
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", profdata.path.display()))?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Parses the output of `llvm-profdata show --all-functions`: a line with the name of each function, and below it a line
/// with its hash.
fn parse(text: &str) -> Vec<(String, u64)> {
    let mut functions = Vec::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(hash) = line.strip_prefix("    Hash: 0x") {
            let hash = u64::from_str_radix(hash.trim(), 16).ok();
            functions.extend(name.take().zip(hash));
        } else if let Some(own) = line.strip_prefix("  ") {
            name = own.strip_suffix(':').map(str::to_owned);
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "Counters:\n  a.hip:_ZL1fv:\n    Hash: 0x0000000000000018\n    Counters: 1\n  main:\n    \
                         Hash: 0xffffffffffffffff\n    Counters: 2\nTotal functions: 2\n";

    #[test]
    fn a_profile_is_of_the_binaries_if_a_function_has_the_same_hash() {
        let profiled = parse(SHOWN);
        let expected = [
            ("a.hip:_ZL1fv".to_owned(), 0x18),
            ("main".to_owned(), u64::MAX),
        ];
        assert_eq!(profiled, expected);
        let compiled = |functions: &[(&str, u64)]| {
            let functions = functions.iter();
            functions
                .map(|(name, hash)| (names::hash(name), vec![*hash]))
                .collect()
        };
        let same = compiled(&[("main", 7), ("a.hip:_ZL1fv", 0x18)]);
        assert_eq!(relation(&same, &profiled), Relation::Same);
        let other = compiled(&[("main", 7), ("g", 0x18)]);
        assert_eq!(relation(&other, &profiled), Relation::OtherHashes);
        let other = compiled(&[("g", 0x18)]);
        assert_eq!(relation(&other, &profiled), Relation::OtherProgram);
    }
}
