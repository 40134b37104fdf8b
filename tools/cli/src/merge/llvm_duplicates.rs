//! LLVM 23's own runtime collects device counts as well, of kernels only, where host code is instrumented, and gives its
//! files the host program's binary id. With devprof in the same process the counts are in devprof's file beside it, too,
//! and would count twice.

use super::profile::{self, Arch, Function, Kind, Profile};
use profraw::Layout;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The host's profile beside that of a device: `x` beside `gfx1100.x`, `gfx1100.0.x` and `gfx1100.hsa0.x`.
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

/// Whether a device's profile has the binary id of the host's.
fn is_llvms(path: &Path) -> bool {
    let ids = |path: &Path| {
        let (profile, layout) = raw(path)?;
        let ids = &profile.bytes[layout.binary_ids];
        (!ids.is_empty()).then(|| ids.to_vec())
    };
    let host = hosts(path).find(|host| host.exists());
    host.is_some_and(|host| ids(path).is_some_and(|own| Some(own) == ids(&host)))
}

/// All functions of a file; of one that is damaged, none.
fn functions(path: &Path) -> Vec<Function> {
    let read = |(profile, _): (Profile, _)| match profile.kind {
        Kind::Raw(version) => profile::check(&profile.bytes, version).ok(),
        _ => None,
    };
    raw(path)
        .and_then(read)
        .map(|whole| whole.functions)
        .unwrap_or_default()
}

/// Those of `files` that LLVM's runtime wrote and whose functions are all in files of devprof's beside them.
pub fn doubled(files: &[PathBuf]) -> HashSet<PathBuf> {
    let mut llvms: HashMap<(&Path, Arch), Vec<&PathBuf>> = HashMap::new();
    let mut devprofs: HashMap<(&Path, Arch), Vec<&PathBuf>> = HashMap::new();
    for path in files {
        if let (Some(arch @ Arch::Gpu(_)), Some(directory)) = (profile::named(path), path.parent())
        {
            let of = if is_llvms(path) {
                &mut llvms
            } else {
                &mut devprofs
            };
            of.entry((directory, arch)).or_default().push(path);
        }
    }
    let mut doubled = HashSet::new();
    for (place, candidates) in llvms {
        let beside = devprofs.get(&place).into_iter().flatten();
        let known: HashSet<Function> = beside.flat_map(|path| functions(path)).collect();
        doubled.extend(candidates.into_iter().filter_map(|path| {
            let own = functions(path);
            let is_known = !own.is_empty() && own.iter().all(|function| known.contains(function));
            is_known.then(|| path.clone())
        }));
    }
    doubled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_file_is_found_by_the_devices_name() {
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
