//! The profiles that the arguments name: files, directories, patterns, and lists of them.

use super::profile::named;
use crate::paths::{self, Found, Kind};
use anyhow::{Context, Result};
use profraw::TEST_NAME;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const RAW: Kind = Kind {
    name: ".profraw files",
    includes: |path| {
        path.extension()
            .is_some_and(|extension| extension == "profraw")
    },
    // The counts of a test are also in the profiles of its process.
    skips: |directory| directory.join(TEST_NAME).exists(),
};

/// Expands the arguments to files. The name of a host's profile, which is the name that the program was given, also means the
/// profiles of devices that the program wrote next to it (`gfx1100.NAME`).
///
/// # Errors
/// A list (`@FILE`) cannot be read.
pub fn expand(arguments: &[PathBuf]) -> Result<Found> {
    let mut all = Vec::new();
    for argument in arguments {
        match argument.as_os_str().as_bytes().strip_prefix(b"@") {
            Some(list) if !argument.exists() => all.extend(lines(OsStr::from_bytes(list))?),
            _ => all.push(argument.clone()),
        }
    }
    let mut found = paths::expand(&all, &RAW);
    let of_devices = OfDevices::of(all.iter().filter(|path| !path.is_dir()));
    let in_order = all.iter().filter_map(|path| of_devices.0.get(path));
    in_order.flatten().for_each(|path| found.add_related(path));
    let missing = &mut found.missing;
    found.files.retain(|path| {
        let Err(error) = fs::metadata(path) else {
            return true;
        };
        // Host code that is not instrumented writes no profile.
        if !of_devices.0.contains_key(path) {
            missing.push(format!("{}: {error}", path.display()));
        }
        false
    });
    Ok(found)
}

/// The profiles of devices next to the profiles of hosts that have any, sorted: `gfx1100.NAME` and `gfx1100.1.NAME`.
struct OfDevices(BTreeMap<PathBuf, Vec<PathBuf>>);

impl OfDevices {
    /// Reads the directory of each file once.
    fn of<'a>(files: impl Iterator<Item = &'a PathBuf>) -> OfDevices {
        let mut found = BTreeMap::new();
        let mut directories: HashMap<&Path, HashMap<OsString, Vec<OsString>>> = HashMap::new();
        for host in files.filter(|path| named(path).is_none()) {
            let dir = paths::directory(host);
            let by_host = directories.entry(dir).or_insert_with(|| by_host(dir));
            let own = host.file_name().and_then(|name| by_host.get(name));
            if let Some(names) = own {
                let mut profiles: Vec<PathBuf> =
                    names.iter().map(|name| host.with_file_name(name)).collect();
                profiles.sort();
                found.insert(host.clone(), profiles);
            }
        }
        OfDevices(found)
    }
}

/// The names of a directory's profiles of devices, by the names of their host's profiles.
fn by_host(dir: &Path) -> HashMap<OsString, Vec<OsString>> {
    let mut found: HashMap<OsString, Vec<OsString>> = HashMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let Some((arch, rest)) = name.split_once('.') else {
            continue;
        };
        if named(Path::new(arch)).is_none_or(|found| found.to_string() != arch) {
            continue;
        }
        // The number of a device is not a part of the host's name, but a host's name can begin with one.
        let numbered = rest
            .split_once('.')
            .filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        for host in numbered.map(|(_, host)| host).into_iter().chain([rest]) {
            found
                .entry(host.into())
                .or_default()
                .push(name.clone().into());
        }
    }
    found
}

/// The lines of a list, without empty lines and comments (`#`).
fn lines(list: &OsStr) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = match list.as_bytes() {
        b"-" => std::io::stdin().read_to_end(&mut bytes).map(|_| ()),
        _ => fs::read(list).map(|read| bytes = read),
    };
    read.with_context(|| format!("cannot read the list {}", list.display()))?;
    let lines = bytes.split(|&byte| byte == b'\n');
    Ok(lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty() && line[0] != b'#')
        .map(|line| OsString::from_vec(line.to_vec()).into())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_expanded() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let argument = |name: &str| PathBuf::from(format!("@{}", at(name).display()));
        fs::write(at("a.profdata"), "").unwrap();
        let (present, missing) = (at("a.profdata"), at("missing"));
        let list = format!(
            "# a comment\n\n{}\r\n{}\n",
            present.display(),
            missing.display()
        );
        fs::write(at("list"), list).unwrap();
        let found = expand(&[argument("list")]).unwrap();
        assert_eq!((&found.files[..], found.missing.len()), (&[present][..], 1));
        let error = expand(&[argument("none")]).unwrap_err().to_string();
        assert!(error.contains("cannot read the list"), "{error}");
    }

    #[test]
    fn the_profiles_of_tests_are_no_profiles_of_their_process() {
        let dir = tempfile::tempdir().unwrap();
        let test = dir.path().join("tests/a");
        fs::create_dir_all(&test).unwrap();
        let (own, of_test) = (dir.path().join("x.profraw"), test.join("x.profraw"));
        for path in [&own, &of_test, &test.join(TEST_NAME)] {
            fs::write(path, "").unwrap();
        }
        let found = |path: &Path| expand(&[path.to_owned()]).unwrap().files;
        assert_eq!(found(dir.path()), [own]);
        assert_eq!(found(&test), [of_test]);
    }

    #[test]
    fn the_name_of_a_host_profile_means_the_profiles_of_devices_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let devices = ["gfx1100.1.my", "gfx1100.my", "sm_90.my"];
        for name in devices
            .iter()
            .chain(&["my", "gfx1100.our.my", "x.my", "gfx942.other"])
        {
            fs::write(at(name), "").unwrap();
        }
        let expanded = |names: &[&str]| {
            let found = expand(&names.iter().map(|name| at(name)).collect::<Vec<_>>()).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            let files: Vec<String> = found.files.iter().map(name).collect();
            let related: Vec<String> = found.related.iter().map(name).collect();
            (files, related, found.missing.len(), found.repeated.len())
        };
        let strings =
            |names: &[&str]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
        let all = [&["my"], &devices[..]].concat();
        assert_eq!(expanded(&["my"]), (strings(&all), strings(&devices), 0, 0));
        // Those that are named themselves are not added again.
        let some = expanded(&["my", "sm_90.my", "gfx1100.my"]);
        assert_eq!(some.1, strings(&["gfx1100.1.my"]));
        assert_eq!((some.0.len(), some.3), (4, 0));
        // Only devices wrote profiles.
        let other = strings(&["gfx942.other"]);
        assert_eq!(expanded(&["other"]), (other.clone(), other, 0, 0));
        assert_eq!(expanded(&["none"]).2, 1);
        // The profile of a device means only itself.
        assert_eq!(expanded(&["gfx1100.my"]).0, strings(&["gfx1100.my"]));
    }
}
