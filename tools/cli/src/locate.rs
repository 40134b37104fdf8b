//! Finds the files that belong to devprof, and programs in PATH.
//!
//! In an installation (`tools/install`) devprof's files are in the same prefix as this program; in a checkout they are
//! in cargo's target directory.

use anyhow::{Context, bail};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file or directory that the command line needs.
#[derive(Clone, Copy, Debug)]
pub enum Component {
    /// The runtime as a shared library, to preload.
    Library,
    /// The runtime as an archive, to link into programs.
    Archive,
    /// The device side of the profile runtime for this major version of clang.
    DeviceRuntime(u32),
    /// The script that builds the device side.
    DeviceRuntimeBuild,
    /// The GPU model, for ROCr's model mode.
    Model,
    /// The topology that ROCr's model mode reads instead of the kernel's.
    Topology,
    /// A library that makes programs start faster on the model.
    ModelStart,
    /// The HSA runtime of `devprof demo`.
    Simulator,
}

const DEVICE_RUNTIME: &str = "libclang_rt.profile.a";
/// The library directories of an installation.
const LIBRARY_DIRS: [&str; 3] = ["lib", "lib64", "lib/x86_64-linux-gnu"];

impl Component {
    /// The path below the library directory of an installation.
    fn installed(self) -> PathBuf {
        match self {
            Component::Library => "libdevprof.so".into(),
            Component::Archive => "libdevprof.a".into(),
            Component::DeviceRuntime(major) => {
                format!("devprof/clang-{major}/{DEVICE_RUNTIME}").into()
            }
            Component::DeviceRuntimeBuild => "devprof/device-rt/build".into(),
            Component::Model => "devprof/libgpu_model.so".into(),
            Component::Topology => "devprof/gpu-model-topology".into(),
            Component::ModelStart => "devprof/gpu-model-start.so".into(),
            Component::Simulator => "devprof/libhsa_sim.so".into(),
        }
    }

    /// The path below cargo's target directory. `profile` is the subdirectory of this program's build profile.
    fn built(self, profile: &Path) -> PathBuf {
        match self {
            Component::Library => "dist/libdevprof.so".into(),
            Component::Archive => "dist/libdevprof.a".into(),
            Component::DeviceRuntime(major) => {
                format!("device-rt/clang-{major}/{DEVICE_RUNTIME}").into()
            }
            Component::DeviceRuntimeBuild => "../tools/device-rt/build".into(),
            Component::Model => "release/libgpu_model.so".into(),
            Component::Topology => "gpu-model-topology".into(),
            Component::ModelStart => "gpu-model-start.so".into(),
            Component::Simulator => profile.join("libhsa_sim.so"),
        }
    }

    /// The command that builds it in a checkout.
    fn build_command(self) -> &'static str {
        match self {
            Component::Library | Component::Archive => "tools/build-runtime",
            Component::DeviceRuntime(_) | Component::DeviceRuntimeBuild => "tools/device-rt/build",
            Component::Model | Component::Topology | Component::ModelStart => "tools/build-model",
            Component::Simulator => "cargo build -p hsa-sim",
        }
    }

    /// The path of the component.
    ///
    /// # Errors
    /// The component does not exist. The message lists the paths that were tried and the commands that create it.
    pub fn find(self) -> anyhow::Result<PathBuf> {
        let candidates = self.candidates(&this_program()?);
        if let Some(found) = candidates.iter().find(|path| path.exists()) {
            return Ok(found.clone());
        }
        let candidates: Vec<_> = candidates
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        bail!(
            "none of these files exists: {}; install devprof with tools/install, or build it in a checkout with {}",
            candidates.join(", "),
            self.build_command()
        )
    }

    /// The path of the component in the installation that this program belongs to, if there is one.
    pub fn find_installed(self) -> Option<PathBuf> {
        let candidates = self.installed_candidates(&this_program().ok()?);
        candidates.into_iter().find(|path| path.exists())
    }

    fn installed_candidates(self, program: &Path) -> Vec<PathBuf> {
        let Some(prefix) = program.parent().and_then(Path::parent) else {
            return Vec::new();
        };
        LIBRARY_DIRS
            .map(|dir| prefix.join(dir).join(self.installed()))
            .into()
    }

    fn candidates(self, program: &Path) -> Vec<PathBuf> {
        let mut candidates = self.installed_candidates(program);
        if let Some(profile) = program.parent()
            && let (Some(target), Some(name)) = (profile.parent(), profile.file_name())
        {
            candidates.push(target.join(self.built(Path::new(name))));
        }
        candidates
    }
}

/// The path of the script that builds the device side of the profile runtime, for messages.
pub fn device_runtime_build() -> String {
    let found = Component::DeviceRuntimeBuild.find().ok();
    let path = found.and_then(|path| path.canonicalize().ok());
    path.map_or("tools/device-rt/build".to_owned(), |path| {
        path.display().to_string()
    })
}

/// The path of this program.
pub fn this_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe()
        .and_then(|program| program.canonicalize())
        .context("cannot determine the path of this program")
}

/// The program that a shell would start by this name.
pub fn find_in_path(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_preferred_to_a_checkout() {
        let candidates = Component::Library.candidates(Path::new("/a/target/release/devprof"));
        assert_eq!(candidates[0], Path::new("/a/target/lib/libdevprof.so"));
        assert_eq!(
            *candidates.last().unwrap(),
            Path::new("/a/target/dist/libdevprof.so")
        );
        let simulator = Component::Simulator.candidates(Path::new("/a/target/debug/devprof"));
        assert_eq!(
            *simulator.last().unwrap(),
            Path::new("/a/target/debug/libhsa_sim.so")
        );
    }
}
