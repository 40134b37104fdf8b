//! The profiles that the arguments name: files, directories, patterns, and lists of them.

use crate::paths::{self, Found, Kind};
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

const RAW: Kind = Kind {
    name: ".profraw files",
    includes: |path| {
        path.extension()
            .is_some_and(|extension| extension == "profraw")
    },
};

/// Expands the arguments to files.
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
    let missing = &mut found.missing;
    found.files.retain(|path| {
        let error = fs::metadata(path).err();
        missing.extend(
            error
                .iter()
                .map(|error| format!("{}: {error}", path.display())),
        );
        error.is_none()
    });
    Ok(found)
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
}
