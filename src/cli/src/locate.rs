//! Finds the files that belong to devprof, and programs in PATH.
//!
//! In an installation (`tools/install`, a package) devprof's files are in the same prefix as this program. A program that
//! cargo built uses the files in cargo's target directory.

use crate::readable::listed;
use anyhow::{Context, anyhow};
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
    /// The runtime for CUDA as an archive, to link into programs.
    CudaArchive,
    /// The device side of the profile runtime for this major version of clang.
    DeviceRuntime(u32),
    /// A plugin of src/device/counter-pass, by its name, for this major version of clang.
    Plugin(&'static str, u32),
    /// The device side of the profile runtime for CUDA, a header.
    CudaDeviceRuntime,
    /// The script that builds the device side.
    DeviceRuntimeBuild,
    /// The script that builds a plugin.
    PluginBuild,
    /// The GPU model, for ROCr's model mode.
    Model,
    /// The topology that ROCr's model mode reads instead of the kernel's.
    Topology,
    /// A library that makes programs start faster on the model.
    ModelStart,
    /// The HSA runtime of `devprof demo`.
    Simulator,
    /// The same HSA runtime with symbol versions, for programs that are linked with AMD's.
    HsaRuntime,
}

const DEVICE_RUNTIME: &str = "libclang_rt.profile.a";
/// The library directories of an installation.
const LIBRARY_DIRS: [&str; 3] = [
    "lib",
    "lib64",
    if cfg!(target_arch = "aarch64") {
        "lib/aarch64-linux-gnu"
    } else {
        "lib/x86_64-linux-gnu"
    },
];

impl Component {
    /// The path below the library directory of an installation.
    fn installed(self) -> PathBuf {
        match self {
            Component::Library => "libdevprof.so".into(),
            Component::Archive => "libdevprof.a".into(),
            Component::CudaArchive => "libdevprof_cuda.a".into(),
            Component::DeviceRuntime(major) => {
                format!("devprof/clang-{major}/{DEVICE_RUNTIME}").into()
            }
            Component::Plugin(name, major) => format!("devprof/clang-{major}/{name}.so").into(),
            Component::CudaDeviceRuntime => "devprof/device-rt/cuda.h".into(),
            Component::DeviceRuntimeBuild => "devprof/device-rt/build".into(),
            Component::PluginBuild => "devprof/counter-pass/build".into(),
            Component::Model => "devprof/libgpu_model.so".into(),
            Component::Topology => "devprof/gpu-model-topology".into(),
            Component::ModelStart => "devprof/gpu-model-start.so".into(),
            Component::Simulator | Component::HsaRuntime => {
                "devprof/hsa-sim/libhsa-runtime64.so.1".into()
            }
        }
    }

    /// The path below cargo's target directory. `profile` is the subdirectory of this program's build profile.
    fn built(self, profile: &Path) -> PathBuf {
        match self {
            Component::Library => "dist/libdevprof.so".into(),
            Component::Archive => "dist/libdevprof.a".into(),
            Component::CudaArchive => "dist/libdevprof_cuda.a".into(),
            Component::DeviceRuntime(major) => {
                format!("device-rt/clang-{major}/{DEVICE_RUNTIME}").into()
            }
            Component::Plugin(name, major) => {
                format!("counter-pass/clang-{major}/{name}.so").into()
            }
            Component::CudaDeviceRuntime => "../src/device/device-rt/cuda.h".into(),
            Component::DeviceRuntimeBuild => "../src/device/device-rt/build".into(),
            Component::PluginBuild => "../src/device/counter-pass/build".into(),
            Component::Model => "release/libgpu_model.so".into(),
            Component::Topology => "gpu-model-topology".into(),
            Component::ModelStart => "gpu-model-start.so".into(),
            Component::Simulator => profile.join("libhsa_sim.so"),
            Component::HsaRuntime => "hsa-sim/libhsa-runtime64.so.1".into(),
        }
    }

    /// The command that builds it in a checkout.
    pub fn build_command(self) -> &'static str {
        match self {
            Component::Library | Component::Archive | Component::CudaArchive => {
                "tools/build-runtime"
            }
            Component::DeviceRuntime(_) | Component::DeviceRuntimeBuild => {
                "src/device/device-rt/build"
            }
            Component::Plugin(..) | Component::PluginBuild => "src/device/counter-pass/build",
            Component::CudaDeviceRuntime => "tools/install PREFIX",
            Component::Model | Component::Topology | Component::ModelStart => "tools/build-model",
            Component::HsaRuntime => "tools/simulator/hsa-sim/build",
            Component::Simulator if cfg!(debug_assertions) => "cargo build -p devprof -p hsa-sim",
            Component::Simulator => "cargo build --release -p devprof -p hsa-sim",
        }
    }

    /// The path of the component.
    ///
    /// # Errors
    /// The component does not exist. The message names the paths that were tried, and how to get the component.
    pub fn find(self) -> anyhow::Result<PathBuf> {
        let program = this_program()?;
        let candidates = self.candidates(&program);
        match candidates.iter().find(|path| path.exists()) {
            Some(found) => Ok(found.clone()),
            None => Err(missing(&candidates, &self.remedy_for(&program))),
        }
    }

    /// How to get the component if it does not exist.
    pub fn remedy(self) -> String {
        match this_program() {
            Ok(program) => self.remedy_for(&program),
            Err(_) => REINSTALL.to_owned(),
        }
    }

    fn remedy_for(self, program: &Path) -> String {
        if is_built_by_cargo(program) {
            return format!("build it: {}", self.build_command());
        }
        if is_installed(program) {
            return REINSTALL.to_owned();
        }
        format!(
            "{} is not in an installation of devprof: run the devprof of an installation, or replace this copy by a link to it (ln -s PREFIX/bin/devprof)",
            program.display()
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
        if is_built_by_cargo(program)
            && let Some(profile) = program.parent()
            && let (Some(target), Some(name)) = (profile.parent(), profile.file_name())
        {
            candidates.push(target.join(self.built(Path::new(name))));
        }
        candidates
    }
}

const REINSTALL: &str = "this installation of devprof is not complete: install devprof again";

fn missing(candidates: &[PathBuf], remedy: &str) -> anyhow::Error {
    let what = match candidates {
        [_] => "this file does not exist",
        _ => "none of these files exists",
    };
    anyhow!("{what}: {}; {remedy}", listed(candidates))
}

/// Whether cargo built the program at this path, and it was not copied from there. Such a program uses the other files
/// that are built in the checkout, and messages name the commands that build them.
pub fn is_built_by_cargo(program: &Path) -> bool {
    let dir = program.parent();
    dir.is_some_and(|dir| dir.join(".cargo-lock").exists() || dir.join(".fingerprint").exists())
}

/// Whether the program is in an installation, complete or not: the prefix has devprof's directory.
fn is_installed(program: &Path) -> bool {
    let prefix = program.parent().and_then(Path::parent);
    let is_in = |dir: &str| prefix.is_some_and(|prefix| prefix.join(dir).join("devprof").is_dir());
    LIBRARY_DIRS.iter().any(|dir| is_in(dir))
}

/// The command that installs the device side of the profile runtime for a clang. `None` if this program has no script for
/// it.
pub fn install_device_runtime(clang: &Path) -> Option<String> {
    let script = Component::DeviceRuntimeBuild.find().ok();
    let script = match script.and_then(|path| path.canonicalize().ok()) {
        Some(path) => path.display().to_string(),
        // The target directory is not in the checkout.
        None if is_built_by_cargo(&this_program().ok()?) => "src/device/device-rt/build".to_owned(),
        None => return None,
    };
    Some(format!("{script} --clang {} --install", clang.display()))
}

/// How to build a plugin of src/device/counter-pass for a clang: LLVM's headers, and a command.
pub fn build_plugin(name: &'static str, clang: &Path, major: u32) -> String {
    let headers = format!("install LLVM's headers for it (Debian: llvm-{}-dev)", major);
    let plugin = Component::Plugin(name, major);
    let command = this_program().ok().and_then(|program| {
        let script = Component::PluginBuild.find().ok()?.canonicalize().ok()?;
        let output = if is_built_by_cargo(&program) {
            plugin.candidates(&program).pop()?
        } else {
            // The script is in devprof/counter-pass of the library directory.
            script.ancestors().nth(3)?.join(plugin.installed())
        };
        Some(format!(
            "run {} --clang {} -o {}",
            script.display(),
            clang.display(),
            output.display()
        ))
    });
    match command {
        Some(command) => format!("{headers}, and then {command}"),
        None => Component::PluginBuild.remedy(),
    }
}

/// The path of this program.
pub fn this_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe()
        .and_then(|program| program.canonicalize())
        .context("cannot determine the path of this program")
}

/// A new directory with these files, which are empty.
#[cfg(test)]
pub fn directory(files: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    dir
}

/// Writes a shell script in another process. If this process had the file open for writing, a child that another test starts could
/// inherit it, and the kernel would refuse to execute the file (ETXTBSY).
#[cfg(test)]
pub fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let status = std::process::Command::new("sh")
        .args([OsStr::new("-c"), OsStr::new(write)])
        .arg(path)
        .arg(script)
        .status();
    assert!(status.unwrap().success());
}

/// The program that a shell would start by this name.
pub fn find_in_path(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        let is_executable = |data: fs::Metadata| data.permissions().mode() & 0o111 != 0;
        path.is_file() && fs::metadata(path).is_ok_and(is_executable)
    };
    env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program in `name` of a new directory, next to another file.
    fn program(name: &str, other: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = directory(&[name, other]);
        let program = dir.path().join(name);
        (dir, program)
    }

    #[test]
    fn an_installation_is_preferred_to_a_checkout() {
        let (dir, built) = program("target/debug/devprof", "target/debug/.cargo-lock");
        let target = dir.path().join("target");
        let candidates = Component::Library.candidates(&built);
        assert_eq!(candidates[0], target.join("lib/libdevprof.so"));
        let dist = target.join("dist/libdevprof.so");
        assert_eq!(candidates.last(), Some(&dist));
        let simulator = Component::Simulator.candidates(&built).pop();
        assert_eq!(simulator, Some(target.join("debug/libhsa_sim.so")));
    }

    #[test]
    fn only_a_program_that_cargo_built_names_build_commands() {
        let (_dir, built) = program("target/release/devprof", "target/release/.cargo-lock");
        let library = "lib/devprof/hsa-sim/libhsa-runtime64.so.1";
        let (_dir, installed) = program("bin/devprof", library);
        let (_dir, copied) = program("release/devprof", "dist/libdevprof.so");
        assert!(Component::Library.candidates(&copied).len() == LIBRARY_DIRS.len());
        for component in [
            Component::Library,
            Component::Archive,
            Component::CudaArchive,
            Component::DeviceRuntime(22),
            Component::Plugin("hoist", 23),
            Component::CudaDeviceRuntime,
            Component::DeviceRuntimeBuild,
            Component::Model,
            Component::Topology,
            Component::ModelStart,
            Component::Simulator,
        ] {
            let remedy = component.remedy_for(&built);
            assert_eq!(remedy, format!("build it: {}", component.build_command()));
            let remedy = component.remedy_for(&installed);
            assert!(remedy.starts_with(REINSTALL), "{remedy}");
            let remedy = component.remedy_for(&copied);
            assert!(remedy.contains("ln -s PREFIX/bin/devprof"), "{remedy}");
        }
    }
}
