//! The traces that a command line names: files, directories and patterns.

use crate::exit::usage;
use crate::paths::{self, Kind};
use anyhow::bail;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tracefile::format::MAGIC;

const TRACES: Kind = Kind {
    name: "trace",
    includes: |path| path.is_file() && is_trace(path),
    skips: |_| false,
};

/// Expands the arguments to files.
///
/// # Errors
/// A directory has no trace, no file matches a pattern, or a file is given twice.
pub fn expand(arguments: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let found = paths::expand(arguments, &TRACES);
    if let Some(why) = found.missing.first() {
        bail!("{why}");
    }
    if let Some(path) = found.repeated.first() {
        return Err(usage(format!(
            "the trace {} is given twice: remove one",
            path.display()
        )));
    }
    Ok(found.files)
}

/// Whether the file begins like a trace. A file that cannot be read is taken for one, so that the error is reported.
fn is_trace(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    match File::open(path).and_then(|mut file| file.read(&mut magic)) {
        Ok(count) => count == magic.len() && magic == MAGIC,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_traces_of_a_directory_begin_like_traces() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), [&MAGIC[..], b"rest"].concat()).unwrap();
        fs::write(at("other.trace"), "not a trace").unwrap();
        fs::write(at("short"), &MAGIC[..4]).unwrap();
        assert_eq!(expand(&[dir.path().into()]).unwrap(), [at("a")]);
        let error = expand(&[at("a"), at("a")]).unwrap_err().to_string();
        assert!(error.ends_with("a is given twice: remove one"), "{error}");
        let error = expand(&[at("*.none")]).unwrap_err().to_string();
        assert!(error.ends_with("*.none: no file matches"), "{error}");
    }
}
