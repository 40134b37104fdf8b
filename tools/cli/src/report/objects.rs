//! The code objects of the binaries, as files for llvm-cov.

use code_objects::Sampling;
use code_objects::extract::{Filter, Written, extract};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Something with a coverage mapping.
#[derive(Debug)]
pub struct Object {
    pub path: PathBuf,
    /// Where it was found.
    pub place: String,
    /// `gfx1100`, `gfx11-generic`; nothing for the host.
    pub processor: String,
    /// Symbols.
    pub kernels: Vec<String>,
    pub sampling: Sampling,
}

impl Object {
    /// A binary itself.
    pub fn host(path: &Path) -> Object {
        Object {
            path: path.to_owned(),
            place: path.display().to_string(),
            processor: String::new(),
            kernels: Vec::new(),
            sampling: Sampling::No,
        }
    }
}

/// What the binaries hold.
#[derive(Debug, Default)]
pub struct Objects {
    pub found: Vec<Object>,
    /// Code objects of the same kind without a coverage mapping.
    plain: usize,
    /// Parts that could not be read.
    pub damage: Vec<String>,
}

impl Objects {
    /// Writes the code objects with a coverage mapping to a directory.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn extract(binaries: &[PathBuf], dir: &Path) -> Result<Objects, String> {
        let mut objects = Objects::default();
        let files = binaries.iter().map(PathBuf::as_path);
        extract(files, dir, &Filter::default(), &mut |found| match found {
            Err((place, why)) => objects.damage.push(format!("{place}: {why}")),
            Ok(found) if found.written == Written::Before => {}
            Ok(found) if found.object.coverage.is_none() || found.object.relocatable => {
                objects.plain += 1
            }
            Ok(found) => objects.found.push(Object {
                path: found.file,
                place: found.place.to_string(),
                processor: found.object.target.processor,
                kernels: found
                    .object
                    .kernels
                    .into_iter()
                    .map(|kernel| kernel.name)
                    .collect(),
                sampling: found
                    .object
                    .profile
                    .map_or(Sampling::Unknown, |profile| profile.sampling),
            }),
        })
        .map_err(|e| format!("cannot write code objects to {}: {e}", dir.display()))?;
        Ok(objects)
    }

    /// Why there is nothing to report.
    pub fn nothing(&self, binaries: &[PathBuf]) -> String {
        let names: Vec<String> = binaries
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let names = names.join(", ");
        match (self.plain, self.damage.first()) {
            (0, Some(damage)) => format!("no code object could be read: {damage}"),
            (0, None) => {
                format!(
                    "{names}: no GPU code object in it; name the library that has the kernels (`devprof inspect` shows what is in a file)"
                )
            }
            (plain, _) => format!(
                "{names}: none of {plain} code objects has a coverage mapping; compile with the flags of `devprof flags --coverage`"
            ),
        }
    }
}

/// Whether a GPU runs the code of a family (`gfx11-generic`).
pub fn serves(family: &str, processor: &str) -> bool {
    let Some(family) = family.strip_suffix("-generic") else {
        return false;
    };
    // gfx9-4-generic is gfx940 to gfx950.
    let prefix = family.replace('-', "");
    processor.starts_with(&prefix) || (family == "gfx9-4" && processor == "gfx950")
}

/// When the newest of the binaries was made.
pub fn built(binaries: &[PathBuf]) -> Option<SystemTime> {
    let times = binaries
        .iter()
        .filter_map(|path| fs::metadata(path).ok()?.modified().ok());
    times.max()
}

#[cfg(test)]
mod tests {
    use super::serves;

    #[test]
    fn a_family_serves_its_own() {
        assert!(serves("gfx11-generic", "gfx1100"));
        assert!(serves("gfx10-3-generic", "gfx1036"));
        assert!(serves("gfx9-4-generic", "gfx950"));
        assert!(!serves("gfx10-3-generic", "gfx1010"));
        assert!(!serves("gfx1100", "gfx1100"));
    }
}
