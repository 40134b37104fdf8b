//! Whether a profile is of the binaries, by the names and hashes of its functions.

use super::mapping;
use super::objects::ObjectGroup;
use crate::llvm::Tool;
use crate::names;
use crate::readable::{listed, plural};
use anyhow::{Context, bail};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks each column.
///
/// # Errors
/// No function of a profile is in the binaries, or all of them have other hashes there.
pub fn check(columns: &[ObjectGroup], profdata: &Tool, binaries: &[PathBuf]) -> anyhow::Result<()> {
    for column in columns {
        let Some(profile) = column.profile else {
            continue;
        };
        let mut compiled: HashMap<u64, Vec<u64>> = HashMap::new();
        for object in &column.objects {
            // Objects that cannot be read are reported later.
            let bytes = fs::read(&object.path).unwrap_or_default();
            for (name, mapping) in mapping::functions(&bytes).unwrap_or_default() {
                if !mapping.unused {
                    compiled.entry(name).or_default().push(mapping.hash);
                }
            }
        }
        let profiled = functions(profdata, profile)?;
        if compiled.is_empty() || profiled.is_empty() {
            continue;
        }
        match relation(&compiled, &profiled) {
            Relation::Same => {}
            Relation::OtherBuild => bail!(
                "the profile of {} is from a different build of {}: no function has the same hash; use the binary that ran, or run this one again",
                column.name,
                listed(binaries)
            ),
            Relation::OtherProgram => bail!(
                "the profile of {} is of another program: it has {} ({}), and none is in {}; name the binary or library that ran",
                column.name,
                plural(profiled.len(), "function"),
                names::demangled(&profiled[0].0),
                listed(binaries)
            ),
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Relation {
    Same,
    OtherBuild,
    OtherProgram,
}

/// `compiled`: the hashes of each function in the binaries. `profiled`: the name and hash of each function.
fn relation(compiled: &HashMap<u64, Vec<u64>>, profiled: &[(String, u64)]) -> Relation {
    let mut relation = Relation::OtherProgram;
    for (name, hash) in profiled {
        match compiled.get(&names::hash(name)) {
            Some(hashes) if hashes.contains(hash) => return Relation::Same,
            Some(_) => relation = Relation::OtherBuild,
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
        assert_eq!(relation(&other, &profiled), Relation::OtherBuild);
        let other = compiled(&[("g", 0x18)]);
        assert_eq!(relation(&other, &profiled), Relation::OtherProgram);
    }
}
