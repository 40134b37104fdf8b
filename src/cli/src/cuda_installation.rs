//! Finds the CUDA installation that clang compiles with: NVIDIA's assembler, headers and libraries.

use crate::locate::find_in_path;
use crate::readable::listed;
use anyhow::bail;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A directory with `bin`, `include`, `nvvm` and a library directory.
#[derive(Debug)]
pub struct CudaInstallation {
    pub path: PathBuf,
}

/// The parts that clang needs to compile device code.
const PARTS: [&str; 3] = ["bin/ptxas", "include/cuda.h", "nvvm/libdevice"];
/// Below `/`.
pub const USUAL: [&str; 3] = ["usr/local/cuda", "opt/cuda", "usr/lib/cuda"];
/// The library directories, in the order in which clang's documentation and NVIDIA's packages have them.
const LIBRARY_DIRS: [&str; 3] = ["lib64", "lib", cuda_abi::TARGET_LIBRARIES];

impl CudaInstallation {
    /// The installation that `CUDA_PATH` or `CUDA_HOME` names, or else where the `ptxas` in PATH is, or in a usual directory.
    ///
    /// # Errors
    /// There is none, or the named installation is not complete.
    pub fn find() -> anyhow::Result<CudaInstallation> {
        let named = ["CUDA_PATH", "CUDA_HOME"].map(|name| (name, env::var_os(name)));
        let ptxas = find_in_path(OsStr::new("ptxas"));
        CudaInstallation::find_among(&named, &usual_dirs(Path::new("/"), ptxas.as_deref()))
    }

    fn find_among(
        named: &[(&str, Option<OsString>)],
        usual: &[PathBuf],
    ) -> anyhow::Result<CudaInstallation> {
        for (name, value) in named {
            let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else {
                continue;
            };
            let path = PathBuf::from(value);
            return match missing_part(&path) {
                None => Ok(CudaInstallation { path }),
                Some(part) => bail!(
                    "{name} is {}, which is not a CUDA installation: it has no {part}; set {name} to one, or unset it",
                    path.display()
                ),
            };
        }
        match usual.iter().find(|path| missing_part(path).is_none()) {
            Some(path) => Ok(CudaInstallation { path: path.clone() }),
            None => bail!(
                "found no CUDA installation (ptxas in PATH, {}): install NVIDIA's CUDA toolkit, and name its directory with CUDA_PATH",
                listed(usual)
            ),
        }
    }

    /// The headers of CUB, Thrust and libcu++, which have their own directory since CUDA 13. nvcc finds them by itself.
    pub fn cccl(&self) -> Option<PathBuf> {
        Some(self.path.join("include/cccl")).filter(|path| path.is_dir())
    }

    /// The directory of the static CUDA runtime.
    ///
    /// # Errors
    /// The installation does not have it.
    pub fn libraries(&self) -> anyhow::Result<PathBuf> {
        let mut dirs = LIBRARY_DIRS.iter().map(|dir| self.path.join(dir));
        match dirs.find(|dir| dir.join("libcudart_static.a").exists()) {
            Some(dir) => Ok(dir),
            None => bail!(
                "the CUDA installation {} has no libcudart_static.a in {}: install the development files of the CUDA runtime (Debian's packages of NVIDIA: cuda-cudart-dev)",
                self.path.display(),
                LIBRARY_DIRS.join(", ")
            ),
        }
    }
}

/// The first part that clang needs and a directory does not have.
pub fn missing_part(path: &Path) -> Option<&'static str> {
    PARTS.into_iter().find(|part| !path.join(part).exists())
}

/// The directories of installations that no variable names: where the `ptxas` in PATH is, and the usual ones. `root`: `/`,
/// or the directory that a test uses instead.
pub fn usual_dirs(root: &Path, ptxas: Option<&Path>) -> Vec<PathBuf> {
    // The directory above bin. In some distributions, the program in PATH is a link.
    let ptxas = ptxas.and_then(|path| path.canonicalize().ok());
    let above = ptxas.as_deref().and_then(|path| path.parent()?.parent());
    let usual = USUAL.iter().map(|dir| root.join(dir));
    above.map(Path::to_owned).into_iter().chain(usual).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::directory;
    use std::fs;

    #[test]
    fn a_named_installation_is_used_or_refused() {
        let (complete, broken) = (directory(&PARTS), directory(&PARTS[..1]));
        let usual = [broken.path().to_owned(), complete.path().to_owned()];
        let find = |value: Option<&Path>| {
            let value = value.map(|path| path.as_os_str().to_owned());
            CudaInstallation::find_among(&[("CUDA_PATH", value)], &usual)
        };
        assert_eq!(find(None).unwrap().path, complete.path());
        assert_eq!(find(Some(Path::new(""))).unwrap().path, complete.path());
        assert_eq!(find(Some(complete.path())).unwrap().path, complete.path());
        let error = find(Some(broken.path())).unwrap_err().to_string();
        assert!(error.contains("CUDA_PATH is "), "{error}");
        assert!(error.contains("no include/cuda.h"), "{error}");
        let error = CudaInstallation::find_among(&[], &usual[..1]).unwrap_err();
        assert!(error.to_string().contains("with CUDA_PATH"), "{error}");
    }

    #[test]
    fn the_runtime_and_the_headers_can_be_in_several_directories() {
        let runtime = format!("{}/libcudart_static.a", cuda_abi::TARGET_LIBRARIES);
        let dir = directory(&["include/cccl/x", &runtime]);
        let path = dir.path().to_owned();
        let found = CudaInstallation { path: path.clone() };
        let libraries = path.join(cuda_abi::TARGET_LIBRARIES);
        assert_eq!(found.libraries().unwrap(), libraries);
        assert_eq!(found.cccl(), Some(path.join("include/cccl")));
        fs::remove_dir_all(libraries).unwrap();
        fs::remove_dir_all(path.join("include")).unwrap();
        let error = found.libraries().unwrap_err().to_string();
        assert!(error.contains("no libcudart_static.a"), "{error}");
        assert_eq!(found.cccl(), None);
    }
}
