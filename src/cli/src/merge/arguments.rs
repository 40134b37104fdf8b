//! The profiles that the arguments name: files, directories, patterns, and lists of them.

use super::profile::named;
use crate::paths::{self, Found, Kind};
use anyhow::{Context, Result};
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
    let named: Vec<PathBuf> = all.into_iter().filter(|path| !path.is_dir()).collect();
    let of_hosts: Vec<_> = named.iter().map(|path| (path, of_devices(path))).collect();
    for path in of_hosts.iter().flat_map(|(_, profiles)| profiles) {
        found.add_related(path);
    }
    let missing = &mut found.missing;
    found.files.retain(|path| {
        let error = fs::metadata(path).err();
        // Host code that is not instrumented writes no profile.
        let has_devices =
            |(host, profiles): &(&PathBuf, Vec<PathBuf>)| *host == path && !profiles.is_empty();
        let error = error.filter(|_| !of_hosts.iter().any(has_devices));
        if error.is_none() && !path.exists() {
            return false;
        }
        missing.extend(
            error
                .iter()
                .map(|error| format!("{}: {error}", path.display())),
        );
        error.is_none()
    });
    Ok(found)
}

/// The profiles of devices next to a host's profile: `gfx1100.NAME` and `gfx1100.1.NAME`, sorted.
fn of_devices(host: &Path) -> Vec<PathBuf> {
    let name = match (named(host), host.file_name().and_then(OsStr::to_str)) {
        (None, Some(name)) => name,
        _ => return Vec::new(),
    };
    let dir = match host.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_of_device = |entry: &String| {
        let before = entry
            .strip_suffix(name)
            .and_then(|rest| rest.strip_suffix('.'));
        before.is_some_and(|before| {
            let (arch, number) = before.split_once('.').unwrap_or((before, "0"));
            named(Path::new(arch)).is_some_and(|found| found.to_string() == arch)
                && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(is_of_device).collect();
    names.sort();
    names
        .into_iter()
        .map(|name| host.with_file_name(name))
        .collect()
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
