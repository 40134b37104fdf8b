//! Where devprof's other files are: in an installation (`tools/install`) beside the directory of this program, in a
//! checkout under cargo's target directory.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file that devprof needs beside its command line.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// What is loaded beside a program.
    Library,
    /// What is linked into one.
    Archive,
    /// The device side of the profile runtime, for the clang of this release.
    DeviceRuntime(u32),
    /// What makes that.
    DeviceRuntimeBuild,
    /// The GPU model, for ROCr's model mode.
    Model,
    /// What ROCr's model mode reads as the kernel's description of the machine.
    Topology,
    /// Makes programs start quickly on the model.
    Starter,
    /// The HSA runtime of `devprof demo`.
    Simulator,
}

const DEVICE_RUNTIME: &str = "libclang_rt.profile.a";
/// Directories of libraries in an installation.
const LIBRARIES: [&str; 3] = ["lib", "lib64", "lib/x86_64-linux-gnu"];

impl Part {
    /// Below a directory of libraries.
    fn installed(self) -> PathBuf {
        match self {
            Part::Library => "libdevprof.so".into(),
            Part::Archive => "libdevprof.a".into(),
            Part::DeviceRuntime(release) => {
                format!("devprof/clang-{release}/{DEVICE_RUNTIME}").into()
            }
            Part::DeviceRuntimeBuild => "devprof/device-rt/build".into(),
            Part::Model => "devprof/libgpu_model.so".into(),
            Part::Topology => "devprof/gpu-model-topology".into(),
            Part::Starter => "devprof/gpu-model-start.so".into(),
            Part::Simulator => "devprof/libhsa_sim.so".into(),
        }
    }

    /// Below cargo's target directory; where a profile's directory is `profile`.
    fn built(self, profile: &Path) -> PathBuf {
        match self {
            Part::Library => "dist/libdevprof.so".into(),
            Part::Archive => "dist/libdevprof.a".into(),
            Part::DeviceRuntime(release) => {
                format!("device-rt/clang-{release}/{DEVICE_RUNTIME}").into()
            }
            Part::DeviceRuntimeBuild => "../tools/device-rt/build".into(),
            Part::Model => "release/libgpu_model.so".into(),
            Part::Topology => "gpu-model-topology".into(),
            Part::Starter => "gpu-model-start.so".into(),
            Part::Simulator => profile.join("libhsa_sim.so"),
        }
    }

    /// What makes it in a checkout.
    fn how(self) -> &'static str {
        match self {
            Part::Library | Part::Archive => "tools/build-runtime makes it in a checkout",
            Part::DeviceRuntime(_) | Part::DeviceRuntimeBuild => {
                "tools/device-rt/build makes it in a checkout"
            }
            Part::Model | Part::Topology | Part::Starter => {
                "tools/build-model makes it in a checkout"
            }
            Part::Simulator => "cargo build -p hsa-sim makes it in a checkout",
        }
    }

    /// Where it is.
    ///
    /// # Errors
    /// It is nowhere; says where it was looked for and what makes it.
    pub fn find(self) -> Result<PathBuf, String> {
        let program = program()?;
        let places = self.places(&program);
        match places.iter().find(|place| place.exists()) {
            Some(place) => Ok(place.clone()),
            None => {
                let places: Vec<_> = places
                    .iter()
                    .map(|place| place.display().to_string())
                    .collect();
                Err(format!(
                    "none of {} is there: install devprof with tools/install; {}",
                    places.join(", "),
                    self.how()
                ))
            }
        }
    }

    /// Where it is in the installation that this program is a part of, if it is one.
    pub fn find_installed(self) -> Option<PathBuf> {
        let places = self.installed_places(&program().ok()?);
        places.into_iter().find(|place| place.exists())
    }

    fn installed_places(self, program: &Path) -> Vec<PathBuf> {
        let Some(prefix) = program.parent().and_then(Path::parent) else {
            return Vec::new();
        };
        LIBRARIES
            .map(|libraries| prefix.join(libraries).join(self.installed()))
            .into()
    }

    fn places(self, program: &Path) -> Vec<PathBuf> {
        let mut places = self.installed_places(program);
        if let Some(profile) = program.parent()
            && let (Some(target), Some(name)) = (profile.parent(), profile.file_name())
        {
            places.push(target.join(self.built(Path::new(name))));
        }
        places
    }
}

/// What makes the device side of the profile runtime, as a shell starts it.
pub fn device_runtime_build() -> String {
    let found = Part::DeviceRuntimeBuild.find();
    let path = found.and_then(|path| path.canonicalize().map_err(|error| error.to_string()));
    path.map_or("tools/device-rt/build".to_owned(), |path| {
        path.display().to_string()
    })
}

fn program() -> Result<PathBuf, String> {
    env::current_exe()
        .and_then(|program| program.canonicalize())
        .map_err(|error| format!("cannot tell where this program is: {error}"))
}

/// The file that a shell would start.
pub fn in_path(name: &OsStr) -> Option<PathBuf> {
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
    fn an_installation_goes_before_a_checkout() {
        let places = Part::Library.places(Path::new("/a/target/release/devprof"));
        assert_eq!(places[0], Path::new("/a/target/lib/libdevprof.so"));
        assert_eq!(
            *places.last().unwrap(),
            Path::new("/a/target/dist/libdevprof.so")
        );
        let simulator = Part::Simulator.places(Path::new("/a/target/debug/devprof"));
        assert_eq!(
            *simulator.last().unwrap(),
            Path::new("/a/target/debug/libhsa_sim.so")
        );
    }
}
