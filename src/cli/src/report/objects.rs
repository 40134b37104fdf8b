//! Extracts the code objects of the binaries to files, for llvm-cov.

use super::cuda;
use crate::gpus;
use crate::merge::Output;
use crate::readable::listed;
use anyhow::Context;
use code_objects::cuda::cubin;
use code_objects::extract::{Filter, Written, extract};
use code_objects::{Bytes, CodeObject, Kernel, Sampling, What};
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A code object with a coverage mapping, or a binary with host code.
#[derive(Debug)]
pub struct Object {
    pub path: PathBuf,
    /// The binary, and the location of the code object in it.
    pub origin: String,
    /// `gfx1100`, `gfx11-generic`; empty for the host.
    pub processor: String,
    /// In hexadecimal.
    pub build_id: Option<String>,
    /// The symbols of its kernels.
    pub kernels: Vec<String>,
    pub sampling: Sampling,
}

impl Object {
    /// The host code of a binary.
    pub fn host(path: &Path) -> Object {
        Object {
            path: path.to_owned(),
            origin: path.display().to_string(),
            processor: String::new(),
            build_id: build_id(path),
            kernels: Vec::new(),
            sampling: Sampling::No,
        }
    }
}

/// The build ID of a host binary. `None` as well if it cannot be read, which llvm-cov reports.
fn build_id(path: &Path) -> Option<String> {
    let mut found = None;
    let options = code_objects::Options::default();
    code_objects::walk(path, options, &mut |part| match part.what {
        What::Host(host) => {
            found = host.build_id;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found
}

/// The code objects of an architecture, or the binaries with host code. Each becomes a column of the report.
pub struct ObjectGroup<'a> {
    pub name: String,
    pub host: bool,
    /// Whether there is a profile of the architecture.
    pub ran: bool,
    /// Each with the profile to read it with. Without one, it did not run.
    pub objects: Vec<(&'a Object, Option<&'a Path>)>,
    /// The profile of code objects that have no build ID, or no profile with it.
    pub others: Option<&'a Output>,
    /// Profiles with the build ID of none of the objects.
    pub unmatched: Vec<&'a Output>,
}

impl ObjectGroup<'_> {
    /// The profiles that are read.
    pub fn profiles(&self) -> impl Iterator<Item = &Path> {
        self.objects.iter().filter_map(|(_, profile)| *profile)
    }
}

/// The code objects of the binaries.
#[derive(Debug, Default)]
pub struct Objects {
    pub found: Vec<Object>,
    /// The number of code objects without a coverage mapping.
    without_coverage: usize,
    /// One of them is a cubin.
    is_cuda: bool,
    /// Which parts of the binaries could not be read, and why.
    pub damage: Vec<String>,
}

impl Objects {
    /// Extracts the code objects with a coverage mapping to a directory.
    pub fn extract(binaries: &[PathBuf], dir: &Path) -> anyhow::Result<Objects> {
        let mut objects = Objects::default();
        let files = binaries.iter().map(PathBuf::as_path);
        extract(files, dir, &Filter::default(), &mut |found| match found {
            Err((location, why)) => objects.damage.push(format!("{location}: {why}")),
            Ok(found) if found.written == Written::Before => {}
            Ok(found) if found.object.coverage.is_none() || found.object.relocatable => {
                objects.without_coverage += 1;
                objects.is_cuda |= found.object.is_cuda();
            }
            Ok(found) => match mapped(&found.file, &found.object) {
                Ok(path) => objects.found.push(Object {
                    path,
                    build_id: device_build_id(&found.file, &found.object),
                    origin: found.location.to_string(),
                    processor: found.object.target.processor,
                    kernels: symbols(found.object.kernels),
                    sampling: found
                        .object
                        .profile
                        .map_or(Sampling::Unknown, |own| own.sampling),
                }),
                Err(error) => objects
                    .damage
                    .push(format!("{}: {error:#}", found.location)),
            },
        })
        .with_context(|| format!("cannot write code objects to {}", dir.display()))?;
        Ok(objects)
    }

    /// Why there are no code objects.
    pub fn why_empty(&self, binaries: &[PathBuf]) -> String {
        let names = listed(binaries);
        match (self.without_coverage, self.damage.first()) {
            (0, Some(damage)) => format!("no code object could be read: {damage}"),
            (0, None) => format!(
                "{names}: no GPU code objects found; name the library that contains the kernels (`devprof inspect` shows the contents of a file)"
            ),
            (number, _) => {
                let cuda = if self.is_cuda { " --cuda" } else { "" };
                format!(
                    "{names}: none of {number} code objects has a coverage mapping; compile with the flags that `devprof flags{cuda} --coverage` prints"
                )
            }
        }
    }
}

/// The build ID of an extracted code object. The digest of a compressed cubin is not known before it is extracted.
fn device_build_id(file: &Path, object: &CodeObject) -> Option<String> {
    let cubin = || {
        let bytes = Bytes::of_file(File::open(file).ok()?).ok()?;
        cubin::build_id(&bytes).ok()
    };
    let known = object.build_id.clone();
    known.or_else(|| object.is_cuda().then(cubin).flatten())
}

fn symbols(kernels: Vec<Kernel>) -> Vec<String> {
    kernels.into_iter().map(|kernel| kernel.name).collect()
}

/// The file in which llvm-cov finds the mapping of an extracted code object.
fn mapped(file: &Path, object: &CodeObject) -> anyhow::Result<PathBuf> {
    if object.is_cuda() {
        return cuda::mapping_object(file);
    }
    Ok(file.to_owned())
}

/// Whether code for a target runs on a processor that has another name: a generic target (`gfx11-generic`), or a cubin
/// for an older GPU of the same generation (`sm_80` on `sm_86`) or for features of only this one (`sm_90a` on `sm_90`).
pub fn includes(family: &str, processor: &str) -> bool {
    let capability = gpus::compute_capability;
    if let (Some(cubin), Some(gpu)) = (capability(family), capability(processor)) {
        return gpus::runs_on(cubin, gpu);
    }
    let Some(family) = family.strip_suffix("-generic") else {
        return false;
    };
    // gfx9-4-generic includes gfx940 to gfx942 and gfx950.
    let prefix = family.replace('-', "");
    processor.starts_with(&prefix) || (family == "gfx9-4" && processor == "gfx950")
}

/// The modification time of the newest binary.
pub fn build_time(binaries: &[PathBuf]) -> Option<SystemTime> {
    let times = binaries
        .iter()
        .filter_map(|path| fs::metadata(path).ok()?.modified().ok());
    times.max()
}

#[cfg(test)]
mod tests {
    use super::includes;

    #[test]
    fn generic_targets_include_their_processors() {
        assert!(includes("gfx11-generic", "gfx1100"));
        assert!(includes("gfx10-3-generic", "gfx1036"));
        assert!(includes("gfx9-4-generic", "gfx950"));
        assert!(!includes("gfx10-3-generic", "gfx1010"));
        assert!(!includes("gfx1100", "gfx1100"));
        assert!(includes("sm_80", "sm_86") && !includes("sm_90", "gfx900"));
    }
}
