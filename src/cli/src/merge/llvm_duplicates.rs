//! Finds device profiles of LLVM's own runtime that duplicate devprof's.
//!
//! If host code is instrumented, the runtime of LLVM 23 also collects device profiles, of kernels only. Its
//! files have the binary id of the host program. If devprof is in the same process, its files in the same directory have
//! the same counts, and a merge of all files would count twice.

use super::profile::{self, Arch, Function, Kind, Profile};
use profraw::Layout;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The possible paths of a device profile's host profile: `x` for `gfx1100.x`, `gfx1100.0.x` and `gfx1100.hsa0.x`.
fn hosts(path: &Path) -> impl Iterator<Item = PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    let rest = name.and_then(|name| Some(name.split_once('.')?.1));
    let numbered = rest.and_then(|rest| {
        let (number, rest) = rest.split_once('.')?;
        let digits = number.strip_prefix("hsa").unwrap_or(number);
        (!digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit())).then_some(rest)
    });
    [rest, numbered]
        .into_iter()
        .flatten()
        .map(|name| path.with_file_name(name))
}

fn raw(path: &Path) -> Option<(Profile, Layout)> {
    let profile = profile::open(path).ok()?;
    let layout = matches!(profile.kind, Kind::Raw(_)).then(|| Layout::read(&profile.bytes))?;
    Some((profile, layout.ok()?))
}

/// Whether a device profile has the binary id of its host profile.
fn has_host_id(path: &Path) -> bool {
    let ids = |path: &Path| {
        let (profile, layout) = raw(path)?;
        let ids = &profile.bytes[layout.binary_ids];
        (!ids.is_empty()).then(|| ids.to_vec())
    };
    let host = hosts(path).find(|host| host.exists());
    host.is_some_and(|host| ids(path).is_some_and(|own| Some(own) == ids(&host)))
}

/// The functions of a raw profile. Empty if it is damaged.
fn functions(path: &Path) -> Vec<Function> {
    let check = |(profile, _): (Profile, _)| match profile.kind {
        Kind::Raw(version) => profile::check(&profile.bytes, version).ok(),
        _ => None,
    };
    let checked = raw(path).and_then(check);
    checked.map(|checked| checked.functions).unwrap_or_default()
}

/// The files that LLVM's runtime wrote and whose functions are all in devprof's files for the same architecture in the
/// same directory. If the device has flags and the host counts, LLVM's file cannot be read: it has the host's version.
pub fn find(files: &[PathBuf]) -> HashSet<PathBuf> {
    type Groups<'a> = HashMap<(&'a Path, Arch), Vec<&'a PathBuf>>;
    let (mut llvms, mut devprofs) = (Groups::new(), Groups::new());
    for path in files {
        if let (Some(arch @ Arch::Gpu(_)), Some(directory)) = (profile::named(path), path.parent())
        {
            let group = if has_host_id(path) {
                &mut llvms
            } else {
                &mut devprofs
            };
            group.entry((directory, arch)).or_default().push(path);
        }
    }
    let mut duplicates = HashSet::new();
    for (group, candidates) in llvms {
        let devprofs = || devprofs.get(&group).into_iter().flatten();
        let known: HashSet<Function> = devprofs().flat_map(|path| functions(path)).collect();
        let has_flags = devprofs().any(|path| profile::only_ran(path));
        duplicates.extend(candidates.into_iter().filter_map(|path| {
            let own = functions(path);
            let is_known = if own.is_empty() {
                has_flags && !profile::only_ran(path)
            } else {
                own.iter().all(|function| known.contains(function))
            };
            is_known.then(|| path.clone())
        }));
    }
    duplicates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_profile_is_found_by_the_name_of_the_device_profile() {
        let of = |name| -> Vec<String> {
            hosts(Path::new(name))
                .map(|path| path.display().to_string())
                .collect()
        };
        assert_eq!(of("d/gfx1100.x"), ["d/x"]);
        assert_eq!(of("d/gfx1100.x.profraw"), ["d/x.profraw"]);
        assert_eq!(of("d/gfx1100.0.x"), ["d/0.x", "d/x"]);
        assert_eq!(of("d/gfx1100.hsa12.x.y"), ["d/hsa12.x.y", "d/x.y"]);
        assert_eq!(of("d/gfx1100"), [""; 0]);
    }
}
