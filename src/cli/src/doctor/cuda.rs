//! CUDA: NVIDIA's driver and GPUs, the installation that clang compiles with, and CUPTI. Nothing is reported on a machine
//! without any of them. No library of NVIDIA's is loaded.

use super::finding::Finding;
use super::machine::{self, counted};
use crate::cuda_installation::missing_part;
use crate::gpus;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

const TOPIC: &str = "CUDA";

/// The file in which NVIDIA's kernel driver has its version.
const VERSION: &str = "proc/driver/nvidia/version";
const DRIVER_LIBRARY: &str = "libcuda.so.1";
const INSTALL_DRIVER: &str = "install NVIDIA's driver (Debian: apt-get install nvidia-driver); in a container: docker run --gpus all";
const INSTALL_CUDA: &str = "install NVIDIA's CUDA Toolkit, or its packages of PyPI (pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm), and export CUDA_PATH=DIRECTORY";
const INSTALL_CUPTI: &str = "install it (apt-get install cuda-cupti-13-0 from NVIDIA's packages, or pip install nvidia-cuda-cupti), and export DEVPROF_CUPTI=PATH_OF_LIBCUPTI";

const INSTALLATIONS: [&str; 3] = ["usr/local/cuda", "opt/cuda", "usr/lib/cuda"];
/// The names of CUPTI, in the order in which the runtime tries them.
const CUPTI: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
/// Where a CUDA installation may have it.
const CUPTI_DIRS: [&str; 4] = [
    "lib64",
    "extras/CUPTI/lib64",
    "targets/x86_64-linux/lib",
    "lib",
];
/// Where the packages of PyPI have it, in a directory of Python's packages.
const CUPTI_PACKAGES: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"];

/// The parts of a system that the checks read.
pub struct System<'a> {
    /// `/`, or the directory that a test uses in its place.
    pub root: &'a Path,
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The libraries that the dynamic linker finds by name.
    pub libraries: &'a [PathBuf],
    /// The ptxas in PATH.
    pub ptxas: Option<PathBuf>,
}

/// The findings about CUDA. Empty if this machine has nothing of it.
pub fn check(system: &System) -> Vec<Finding> {
    let driver = system.driver();
    let installation = system.installation();
    let is_installed = !matches!(&installation, Installation::None(_));
    // A machine with one of AMD's GPUs, or its model, can have CUDA's parts that nobody uses.
    let is_for_amd = machine::has_amd_gpu(system.root) || system.set("HSA_MODEL_LIB").is_some();
    let is_relevant = is_installed && !is_for_amd;
    if driver.is_none() && !is_relevant {
        return Vec::new();
    }
    let mut findings = Vec::new();
    match &driver {
        Some(version) => {
            findings.push(Finding::ok(TOPIC, format!("NVIDIA's driver {version}")));
            findings.push(system.gpus());
            findings.push(system.driver_library());
        }
        None => findings.push(Finding::warning(
            TOPIC,
            format!("no /{VERSION}: CUDA programs can be compiled, but not run"),
            INSTALL_DRIVER,
        )),
    }
    findings.push(match installation {
        Installation::Complete(path) => Finding::ok(
            TOPIC,
            format!("the CUDA installation {}, for clang", path.display()),
        ),
        Installation::Incomplete(path, part) => Finding::missing(
            TOPIC,
            format!(
                "clang cannot use the CUDA installation {}: it has no {part}",
                path.display()
            ),
            INSTALL_CUDA,
        ),
        // Programs can be run without it.
        Installation::None(searched) => Finding::warning(
            TOPIC,
            format!("clang cannot compile CUDA: no installation ({searched})"),
            INSTALL_CUDA,
        ),
    });
    if driver.is_some() {
        findings.push(system.cupti());
    }
    findings
}

/// Whether this machine has NVIDIA's driver.
pub fn has_driver(root: &Path) -> bool {
    root.join(VERSION).exists() || gpus::is_wsl(root)
}

enum Installation {
    Complete(PathBuf),
    /// The first part that it does not have.
    Incomplete(PathBuf, &'static str),
    /// Where it was searched for.
    None(String),
}

impl System<'_> {
    /// The version of the driver.
    fn driver(&self) -> Option<String> {
        let Ok(text) = fs::read_to_string(self.root.join(VERSION)) else {
            let is_wsl = gpus::is_wsl(self.root);
            let versions = || gpus::ask_wsl(self.root, "driver_version").into_iter();
            let version = is_wsl.then(|| versions().next().unwrap_or_default());
            return version.map(|version| format!("{version} of Windows").trim_start().to_owned());
        };
        let line = text.lines().next().unwrap_or_default();
        let is_version = |word: &&str| {
            word.contains('.')
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        let version = line.split_whitespace().find(is_version);
        Some(version.unwrap_or("of an unknown version").to_owned())
    }

    fn gpus(&self) -> Finding {
        let gpus = gpus::nvidia(self.root);
        match gpus.is_empty() {
            false => Finding::ok(TOPIC, counted(gpus)),
            true => Finding::missing(
                TOPIC,
                "the driver lists no GPU (/proc/driver/nvidia/gpus)",
                "nvidia-smi; dmesg | grep -i nvrm",
            ),
        }
    }

    fn driver_library(&self) -> Finding {
        let mut libraries = self.libraries.iter().cloned();
        let found = libraries.find(|path| path.file_name() == Some(OsStr::new(DRIVER_LIBRARY)));
        // WSL2 adds its directory to those of the dynamic linker.
        let in_wsl = || gpus::is_wsl(self.root).then(|| self.root.join(gpus::WSL_DRIVER));
        match found.or_else(in_wsl) {
            Some(path) => Finding::ok(TOPIC, path.display().to_string()),
            None => Finding::missing(
                TOPIC,
                format!("no {DRIVER_LIBRARY} in LD_LIBRARY_PATH or the linker's directories"),
                "apt-get install libcuda1 (Debian), of the driver's version; in a container: docker run --gpus all",
            ),
        }
    }

    /// A variable that is not empty.
    fn set(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    }

    /// The installation that CUDA_PATH or CUDA_HOME names, or else the one of the ptxas in PATH, or else in the usual
    /// directories.
    fn installation(&self) -> Installation {
        let mut named = ["CUDA_PATH", "CUDA_HOME"].into_iter();
        if let Some(path) = named.find_map(|name| self.set(name)) {
            return match missing_part(&path) {
                None => Installation::Complete(path),
                Some(part) => Installation::Incomplete(path, part),
            };
        }
        let ptxas = self
            .ptxas
            .as_ref()
            .and_then(|path| path.canonicalize().ok());
        let above = ptxas.as_deref().and_then(|path| path.parent()?.parent());
        let usual = INSTALLATIONS.iter().map(|dir| self.root.join(dir));
        let candidates: Vec<PathBuf> = above.map(Path::to_owned).into_iter().chain(usual).collect();
        if let Some(path) = candidates.iter().find(|path| missing_part(path).is_none()) {
            return Installation::Complete(path.clone());
        }
        let mut present = candidates.into_iter();
        match present.find_map(|path| Some((missing_part(&path).filter(|_| path.is_dir())?, path)))
        {
            Some((part, path)) => Installation::Incomplete(path, part),
            None => Installation::None(format!(
                "CUDA_PATH, ptxas in PATH, /{}",
                INSTALLATIONS.join(", /")
            )),
        }
    }

    /// CUPTI, with which the runtime finds the code of CUDA programs.
    fn cupti(&self) -> Finding {
        let ok = |path: &Path| Finding::ok(TOPIC, format!("CUPTI: {}", path.display()));
        if let Some(path) = self.set("DEVPROF_CUPTI") {
            if path == Path::new("none") {
                return Finding::ok(
                    TOPIC,
                    "CUPTI is not used (DEVPROF_CUPTI=none): CUDA programs are not traced",
                );
            }
            return match path.is_file() {
                true => ok(&path),
                false => Finding::missing(
                    TOPIC,
                    format!("DEVPROF_CUPTI is {}, which is not a file", path.display()),
                    INSTALL_CUPTI,
                ),
            };
        }
        let file = |dirs: &mut dyn Iterator<Item = PathBuf>| {
            let mut files = dirs.flat_map(|dir| CUPTI.map(|name| dir.join(name)));
            files.find(|path| path.exists())
        };
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter();
        let toolkits: Vec<PathBuf> = toolkits.filter_map(|name| self.set(name)).collect();
        let inside = |toolkit: &PathBuf| CUPTI_DIRS.map(|dir| toolkit.join(dir));
        if let Some(path) = file(&mut toolkits.iter().flat_map(inside)) {
            return ok(&path);
        }
        let is_cupti = |path: &&PathBuf| CUPTI.iter().any(|name| path.ends_with(name));
        if let Some(path) = self.libraries.iter().find(is_cupti) {
            return ok(path);
        }
        if let Some(path) = file(&mut self.toolkits_in_usr_local().iter().flat_map(inside)) {
            return ok(&path);
        }
        match file(&mut self.python_packages()) {
            // The runtime finds it next to libcudart.so.
            Some(path) => Finding::warning(
                TOPIC,
                format!(
                    "CUPTI: {}, which devprof finds only in programs that load the CUDA runtime from Python's packages",
                    path.display()
                ),
                format!("export DEVPROF_CUPTI={}", path.display()),
            ),
            None => Finding::missing(
                TOPIC,
                "no CUPTI: CUDA programs cannot be traced, and devprof collects from them only if it is preloaded (devprof run)",
                INSTALL_CUPTI,
            ),
        }
    }

    /// The newest one last.
    fn toolkits_in_usr_local(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join("usr/local"))
            .into_iter()
            .flatten();
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name == b"cuda" || name.starts_with(b"cuda-")
        });
        found.sort();
        found
    }

    /// The directories of NVIDIA's packages in the virtual environment.
    fn python_packages(&self) -> impl Iterator<Item = PathBuf> {
        let lib = self.set("VIRTUAL_ENV").map(|dir| dir.join("lib"));
        let pythons = lib.and_then(|lib| fs::read_dir(lib).ok());
        let pythons = pythons.into_iter().flatten().flatten();
        pythons.flat_map(|python| {
            let packages = python.path().join("site-packages");
            CUPTI_PACKAGES.map(|dir| packages.join(dir))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    /// A directory in place of `/`.
    struct Root {
        dir: tempfile::TempDir,
        variables: Vec<(&'static str, PathBuf)>,
        libraries: Vec<PathBuf>,
    }

    impl Root {
        fn new(files: &[&str]) -> Root {
            let root = Root {
                dir: tempfile::tempdir().unwrap(),
                variables: Vec::new(),
                libraries: Vec::new(),
            };
            files.iter().for_each(|file| root.add(file, ""));
            root
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn add(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// State, text and fix of each finding.
        fn check(&self) -> Vec<(State, String, String)> {
            let variable = |name: &str| {
                let mut variables = self.variables.iter();
                let found = variables.find(|(own, _)| *own == name);
                found.map(|(_, value)| value.clone().into_os_string())
            };
            let ptxas = Some(self.path("bin/ptxas")).filter(|path| path.exists());
            let findings = check(&System {
                root: self.dir.path(),
                variable: &variable,
                libraries: &self.libraries,
                ptxas,
            });
            let root = self.dir.path().display().to_string();
            let without_root = |text: String| text.replace(&root, "");
            findings
                .into_iter()
                .map(|finding| {
                    let fix = finding.fix.unwrap_or_default();
                    (finding.state, without_root(finding.what), without_root(fix))
                })
                .collect()
        }
    }

    const DRIVER: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  (dvs)\nGCC version: 13.3.0\n";
    const TOOLKIT: [&str; 4] = [
        "usr/local/cuda/bin/ptxas",
        "usr/local/cuda/include/cuda.h",
        "usr/local/cuda/nvvm/libdevice/libdevice.10.bc",
        "usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
    ];

    fn with_driver(files: &[&str]) -> Root {
        let mut root = Root::new(files);
        root.add(VERSION, DRIVER);
        for bus in ["0000:1b:00.0", "0000:43:00.0"] {
            let file = format!("proc/driver/nvidia/gpus/{bus}/information");
            root.add(&file, "Model: \t NVIDIA H200\n");
        }
        root.libraries.push(root.path("lib/libcuda.so.1"));
        root
    }

    #[test]
    fn nothing_is_reported_without_cuda() {
        assert_eq!(Root::new(&[]).check(), []);
    }

    #[test]
    fn a_complete_system() {
        let expected = [
            "NVIDIA's driver 580.159.03",
            "2 NVIDIA H200",
            "/lib/libcuda.so.1",
            "the CUDA installation /usr/local/cuda, for clang",
            "CUPTI: /usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
        ];
        let found = with_driver(&TOOLKIT).check();
        let ok = |text: &str| (State::Ok, text.to_owned(), String::new());
        assert_eq!(found, expected.map(ok));
    }

    #[test]
    fn wsl_has_the_driver_of_windows() {
        let found = Root::new(&["dev/dxg", gpus::WSL_DRIVER]).check();
        let expected = [
            "NVIDIA's driver of Windows",
            "a GPU of an unknown model",
            "/usr/lib/wsl/lib/libcuda.so.1",
        ];
        let ok = |text: &str| (State::Ok, text.to_owned(), String::new());
        assert_eq!(found[..3], expected.map(ok));
        assert_eq!(found.len(), 5);
        // Without NVIDIA's driver, the file is that of another GPU.
        assert_eq!(Root::new(&["dev/dxg"]).check(), []);
    }

    #[test]
    fn a_driver_without_the_rest() {
        let root = Root::new(&[]);
        root.add(VERSION, "NVRM version:\n");
        let found = root.check();
        let states = found.iter().map(|(state, ..)| *state);
        let expected = [
            State::Ok,
            State::Missing,
            State::Missing,
            State::Warning,
            State::Missing,
        ];
        assert_eq!(states.collect::<Vec<_>>(), expected);
        assert_eq!(found[0].1, "NVIDIA's driver of an unknown version");
        assert!(found[1].1.contains("no GPU") && found[1].2.contains("nvidia-smi"));
        assert!(found[2].1.contains("no libcuda.so.1") && found[2].2.contains("libcuda1"));
        assert!(
            found[3]
                .1
                .contains("ptxas in PATH, /usr/local/cuda, /opt/cuda"),
            "{found:?}"
        );
        assert!(found[4].2.contains("pip install nvidia-cuda-cupti"));
    }

    #[test]
    fn an_installation_without_a_driver_compiles() {
        let found = Root::new(&TOOLKIT).check();
        assert_eq!(found[0].0, State::Warning);
        assert!(
            found[0].1.contains("can be compiled, but not run"),
            "{found:?}"
        );
        // CUPTI is only needed where programs run.
        assert_eq!(found.len(), 2);
        let root = Root::new(&TOOLKIT);
        root.add("dev/kfd", "");
        assert_eq!(root.check(), []);
        let mut root = Root::new(&TOOLKIT);
        root.variables.push(("HSA_MODEL_LIB", "/model.so".into()));
        assert_eq!(root.check(), []);
        // The one of the ptxas in PATH, and one that is not complete.
        let found = Root::new(&["bin/ptxas", "include/cuda.h", "nvvm/libdevice/x"]).check();
        assert!(
            found[1].1.ends_with("installation , for clang"),
            "{found:?}"
        );
        let found = Root::new(&TOOLKIT[..1]).check();
        let expected =
            "clang cannot use the CUDA installation /usr/local/cuda: it has no include/cuda.h";
        assert_eq!(
            (found[1].0, found[1].1.as_str()),
            (State::Missing, expected)
        );
        // The variable takes precedence.
        let mut root = Root::new(&TOOLKIT);
        root.variables.push(("CUDA_PATH", root.path("none")));
        assert!(root.check()[1].1.contains("/none: it has no bin/ptxas"));
    }

    #[test]
    fn cupti_is_searched_for_where_the_runtime_searches() {
        let cupti = |root: &Root| root.check().pop().unwrap();
        let mut root = with_driver(&["usr/local/cuda-13.0/lib64/libcupti.so.12"]);
        let expected = "CUPTI: /usr/local/cuda-13.0/lib64/libcupti.so.12";
        assert_eq!(cupti(&root).1, expected);
        root.libraries.push(root.path("lib/libcupti.so.13"));
        assert_eq!(cupti(&root).1, "CUPTI: /lib/libcupti.so.13");
        root.add("home/lib/libcupti.so", "");
        root.variables.push(("CUDA_HOME", root.path("home")));
        assert_eq!(cupti(&root).1, "CUPTI: /home/lib/libcupti.so");
        root.variables.push(("DEVPROF_CUPTI", root.path("mine")));
        assert!(cupti(&root).1.contains("/mine, which is not a file"));
        root.variables.last_mut().unwrap().1 = "none".into();
        assert_eq!(cupti(&root).0, State::Ok);
        assert!(cupti(&root).1.contains("not traced"));
        root.variables.last_mut().unwrap().1 = root.path("mine");
        root.add("mine", "");
        assert_eq!(cupti(&root).1, "CUPTI: /mine");

        let mut root =
            with_driver(&["venv/lib/python3.13/site-packages/nvidia/cu13/lib/libcupti.so.13"]);
        root.variables.push(("VIRTUAL_ENV", root.path("venv")));
        let (state, what, fix) = cupti(&root);
        assert_eq!(state, State::Warning);
        assert!(what.contains("Python's packages"), "{what}");
        assert!(fix.starts_with("export DEVPROF_CUPTI=/venv/"), "{fix}");
    }
}
