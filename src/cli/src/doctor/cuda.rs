//! CUDA: NVIDIA's driver and GPUs, the installation that clang compiles with, and CUPTI. Nothing is reported on a machine
//! without any of them. No library of NVIDIA's is loaded.

use super::finding::{Finding, Topic};
use super::machine::{self, counted};
use super::triton;
use crate::cuda_installation::{USUAL, missing_part, usual_dirs};
use crate::cuda_toolkit;
use crate::gpus;
use crate::llvm::entries;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

const TOPIC: Topic = Topic("CUDA");

/// The file in which NVIDIA's kernel driver has its version.
const VERSION: &str = "proc/driver/nvidia/version";
const DRIVER_LIBRARY: &str = "libcuda.so.1";
const INSTALL_DRIVER: &str = "install NVIDIA's driver (Debian: apt-get install nvidia-driver); in a container: docker run --gpus all";
const INSTALL_CUDA: &str = "install NVIDIA's CUDA Toolkit, or its packages of PyPI (pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm), and export CUDA_PATH=DIRECTORY";
const INSTALL_CUPTI: &str = "install it (apt-get install cuda-cupti-13-0 from NVIDIA's packages, or pip install nvidia-cuda-cupti), and export DEVPROF_CUPTI=PATH_OF_LIBCUPTI";

/// The names of CUPTI, in the order in which the runtime tries them.
const CUPTI: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
/// Where a CUDA installation may have it.
const CUPTI_DIRS: [&str; 4] = [
    "lib64",
    "extras/CUPTI/lib64",
    cuda_abi::TARGET_LIBRARIES,
    "lib",
];
/// Where the packages of PyPI have it, in a directory of Python's packages.
const CUPTI_PACKAGES: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"];

/// The parts of a system that the checks read.
pub struct System<'a> {
    /// `/`, or the directory that a test uses instead.
    pub root: &'a Path,
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The libraries that the dynamic linker finds by name.
    pub libraries: &'a [PathBuf],
    /// The ptxas in PATH.
    pub ptxas: Option<PathBuf>,
    /// The nvcc in PATH.
    pub nvcc: Option<PathBuf>,
    /// The Python in PATH.
    pub python: Option<PathBuf>,
}

/// The findings about CUDA. Empty if this machine has nothing of it.
pub fn check(system: &System) -> Vec<Finding> {
    let driver = system.driver();
    let installation = system.installation();
    // A machine with one of AMD's GPUs, or its model, can have CUDA's parts that nobody uses.
    let is_for_amd = machine::has_amd_gpu(system.root) || system.set("HSA_MODEL_LIB").is_some();
    let is_relevant = installation.is_some() && !is_for_amd;
    if driver.is_none() && !is_relevant {
        return Vec::new();
    }
    let mut findings = Vec::new();
    match &driver {
        Some(version) => {
            findings.push(TOPIC.ok(format!("NVIDIA's driver {version}")));
            findings.push(system.gpus());
            findings.push(system.driver_library());
        }
        None => findings.push(TOPIC.warning(
            format!("no /{VERSION}: CUDA programs can be compiled, but not run"),
            INSTALL_DRIVER,
        )),
    }
    findings.push(match installation.map(|path| (missing_part(&path), path)) {
        Some((None, path)) => TOPIC.ok(format!(
            "the CUDA installation {}, for clang",
            path.display()
        )),
        Some((Some(part), path)) => TOPIC.missing(
            format!(
                "clang cannot use the CUDA installation {}: it has no {part}",
                path.display()
            ),
            INSTALL_CUDA,
        ),
        // Programs can be run without it.
        None => TOPIC.warning(
            format!(
                "clang cannot compile CUDA: no installation (CUDA_PATH, ptxas in PATH, /{})",
                USUAL.join(", /")
            ),
            INSTALL_CUDA,
        ),
    });
    findings.extend(system.nvcc.as_deref().map(of_nvcc));
    findings.extend(triton::check(
        TOPIC,
        system.root,
        system.variable,
        system.python.as_deref(),
    ));
    if driver.is_some() {
        findings.push(system.cupti());
    }
    findings
}

/// Whether the nvcc in PATH is one whose code devprof instruments.
fn of_nvcc(nvcc: &Path) -> Finding {
    let name = nvcc.display();
    if cuda_toolkit::has_program(nvcc) {
        TOPIC.ok(format!("{name} instruments device code"))
    } else {
        TOPIC.ok(format!(
            "{name} does not instrument device code; that of a toolkit of `devprof cuda-toolkit DIR` does"
        ))
    }
}

/// Whether this machine has NVIDIA's driver.
pub fn has_driver(root: &Path) -> bool {
    root.join(VERSION).exists() || gpus::is_wsl(root)
}

impl System<'_> {
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
        if gpus.is_empty() {
            return TOPIC.missing(
                "the driver lists no GPU (/proc/driver/nvidia/gpus)",
                "nvidia-smi; dmesg | grep -i nvrm",
            );
        }
        TOPIC.ok(counted(gpus))
    }

    fn driver_library(&self) -> Finding {
        let mut libraries = self.libraries.iter().cloned();
        let found = libraries.find(|path| path.file_name() == Some(OsStr::new(DRIVER_LIBRARY)));
        // WSL2 adds its directory to the dynamic linker's.
        let in_wsl = || gpus::is_wsl(self.root).then(|| self.root.join(gpus::WSL_DRIVER));
        match found.or_else(in_wsl) {
            Some(path) => TOPIC.ok(path.display().to_string()),
            None => TOPIC.missing(format!("no {DRIVER_LIBRARY} in LD_LIBRARY_PATH or the linker's directories"),
                "apt-get install libcuda1 (Debian), of the driver's version; in a container: docker run --gpus all",
            ),
        }
    }

    /// A variable that is not empty.
    fn set(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    }

    /// The installation that CUDA_PATH or CUDA_HOME names, or else where the ptxas in PATH is, or in a usual directory:
    /// the first complete one, or else the first directory that exists.
    fn installation(&self) -> Option<PathBuf> {
        let usual = || {
            let dirs = usual_dirs(self.root, self.ptxas.as_deref());
            let complete = dirs.iter().find(|path| missing_part(path).is_none());
            let present = || dirs.iter().find(|path| path.is_dir());
            complete.or_else(present).cloned()
        };
        let mut named = ["CUDA_PATH", "CUDA_HOME"].into_iter();
        named.find_map(|name| self.set(name)).or_else(usual)
    }

    /// CUPTI, with which the runtime finds the code of CUDA programs.
    fn cupti(&self) -> Finding {
        let ok = |path: &Path| TOPIC.ok(format!("CUPTI: {}", path.display()));
        if let Some(path) = self.set("DEVPROF_CUPTI") {
            if path == Path::new("none") {
                return TOPIC
                    .ok("CUPTI is not used (DEVPROF_CUPTI=none): CUDA programs are not traced");
            }
            if path.is_file() {
                return ok(&path);
            }
            return TOPIC.missing(
                format!("DEVPROF_CUPTI is {}, which is not a file", path.display()),
                INSTALL_CUPTI,
            );
        }
        let file = |dirs: &mut dyn Iterator<Item = PathBuf>| {
            let mut files = dirs.flat_map(|dir| CUPTI.map(|name| dir.join(name)));
            files.find(|path| path.exists())
        };
        let inside = |toolkits: &mut dyn Iterator<Item = PathBuf>| {
            file(&mut toolkits.flat_map(|toolkit| CUPTI_DIRS.map(|dir| toolkit.join(dir))))
        };
        let mut named = ["CUDA_HOME", "CUDA_PATH"]
            .into_iter()
            .filter_map(|name| self.set(name));
        let is_cupti = |path: &&PathBuf| CUPTI.iter().any(|name| path.ends_with(name));
        let found = inside(&mut named)
            .or_else(|| self.libraries.iter().find(is_cupti).cloned())
            .or_else(|| inside(&mut self.toolkits_in_usr_local()));
        if let Some(path) = found {
            return ok(&path);
        }
        match file(&mut self.python_packages()) {
            // The runtime finds it next to libcudart.so.
            Some(path) => TOPIC.warning(format!(
                    "CUPTI: {}, which devprof finds only in programs that load the CUDA runtime from Python's packages",
                    path.display()
                ),
                format!("export DEVPROF_CUPTI={}", path.display()),
            ),
            None => TOPIC.missing("no CUPTI: CUDA programs cannot be traced, and devprof collects from them only if it is preloaded (devprof run)",
                INSTALL_CUPTI,
            ),
        }
    }

    /// `cuda`, and `cuda-VERSION` with the newest one last.
    fn toolkits_in_usr_local(&self) -> impl Iterator<Item = PathBuf> {
        let found = entries(self.root.join("usr/local"), "cuda").into_iter();
        found.filter(|path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name == b"cuda" || name.starts_with(b"cuda-")
        })
    }

    /// The directories of NVIDIA's packages in the virtual environment.
    fn python_packages(&self) -> impl Iterator<Item = PathBuf> {
        let lib = self.set("VIRTUAL_ENV").map(|dir| dir.join("lib"));
        let pythons = lib.into_iter().flat_map(|lib| entries(lib, ""));
        pythons.flat_map(|python| CUPTI_PACKAGES.map(|dir| python.join("site-packages").join(dir)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::directory;

    /// A directory instead of `/`.
    struct Root {
        dir: tempfile::TempDir,
        variables: Vec<(&'static str, PathBuf)>,
        libraries: Vec<PathBuf>,
    }

    impl Root {
        fn new(files: &[&str]) -> Root {
            Root {
                dir: directory(files),
                variables: Vec::new(),
                libraries: Vec::new(),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn add(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Each finding: its state, its text and the fix.
        fn check(&self) -> Vec<String> {
            let variable = |name: &str| {
                let mut variables = self.variables.iter();
                let found = variables.find(|(own, _)| *own == name);
                found.map(|(_, value)| value.clone().into_os_string())
            };
            let program = |name: &str| Some(self.path(name)).filter(|path| path.exists());
            let findings = check(&System {
                root: self.dir.path(),
                variable: &variable,
                libraries: &self.libraries,
                ptxas: program("bin/ptxas"),
                nvcc: program("bin/nvcc"),
                python: program("bin/python3"),
            });
            let root = self.dir.path().display().to_string();
            let text = |finding: Finding| {
                let fix = finding.fix.map(|fix| format!(" -> {fix}"));
                let text = format!("{:?}: {}", finding.state, finding.what);
                (text + &fix.unwrap_or_default()).replace(&root, "")
            };
            findings.into_iter().map(text).collect()
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

    /// Each finding contains its parts.
    #[track_caller]
    fn assert_found<const N: usize>(found: &[String], expected: [&[&str]; N]) {
        assert_eq!(found.len(), N, "{found:?}");
        for (found, parts) in found.iter().zip(expected) {
            assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        }
    }

    #[test]
    fn nothing_is_reported_without_cuda() {
        assert_eq!(Root::new(&[]).check(), [""; 0]);
    }

    #[test]
    fn a_complete_system() {
        let expected = [
            "Ok: NVIDIA's driver 580.159.03",
            "Ok: 2 NVIDIA H200",
            "Ok: /lib/libcuda.so.1",
            "Ok: the CUDA installation /usr/local/cuda, for clang",
            "Ok: CUPTI: /usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
        ];
        assert_eq!(with_driver(&TOOLKIT).check(), expected);
    }

    #[test]
    fn wsl_has_the_driver_of_windows() {
        let found = Root::new(&["dev/dxg", gpus::WSL_DRIVER]).check();
        let expected = [
            "Ok: NVIDIA's driver of Windows",
            "Ok: a GPU of an unknown model",
            "Ok: /usr/lib/wsl/lib/libcuda.so.1",
        ];
        assert_eq!(found[..3], expected);
        assert_eq!(found.len(), 5);
        // Without NVIDIA's driver, the file is for another GPU.
        assert_eq!(Root::new(&["dev/dxg"]).check(), [""; 0]);
    }

    #[test]
    fn a_driver_without_the_rest() {
        let root = Root::new(&[]);
        root.add(VERSION, "NVRM version:\n");
        let expected: [&[&str]; 5] = [
            &["Ok: NVIDIA's driver of an unknown version"],
            &["Missing: ", "no GPU", "nvidia-smi"],
            &["Missing: ", "no libcuda.so.1", "libcuda1"],
            &["Warning: ", "ptxas in PATH, /usr/local/cuda, /opt/cuda"],
            &["Missing: ", "pip install nvidia-cuda-cupti"],
        ];
        assert_found(&root.check(), expected);
    }

    #[test]
    fn an_installation_without_a_driver_compiles() {
        // CUPTI is only needed where programs run.
        let expected: [&[&str]; 2] = [&["Warning: ", "can be compiled, but not run"], &[]];
        assert_found(&Root::new(&TOOLKIT).check(), expected);
        let root = Root::new(&TOOLKIT);
        root.add("dev/kfd", "");
        assert_eq!(root.check(), [""; 0]);
        let mut root = Root::new(&TOOLKIT);
        root.variables.push(("HSA_MODEL_LIB", "/model.so".into()));
        assert_eq!(root.check(), [""; 0]);
        // The installation of the ptxas in PATH, and an incomplete one.
        let found = Root::new(&["bin/ptxas", "include/cuda.h", "nvvm/libdevice/x"]).check();
        assert!(found[1].ends_with("installation , for clang"), "{found:?}");
        let found = Root::new(&TOOLKIT[..1]).check();
        let expected = "Missing: clang cannot use the CUDA installation /usr/local/cuda: it has no include/cuda.h -> ";
        assert!(found[1].starts_with(expected), "{found:?}");
        // nvcc, and one that instruments.
        for (mark, expected) in [
            ("nothing", "/bin/nvcc does not instrument device code"),
            (".devprof-cuda-toolkit", "/bin/nvcc instruments device code"),
        ] {
            let root = Root::new(&[
                "bin/ptxas",
                "include/cuda.h",
                "nvvm/libdevice/x",
                "bin/nvcc",
                mark,
            ]);
            let found = root.check();
            assert!(found[2].contains(expected), "{found:?}");
        }
        // The variable takes precedence.
        let mut root = Root::new(&TOOLKIT);
        root.variables.push(("CUDA_PATH", root.path("none")));
        assert!(root.check()[1].contains("/none: it has no bin/ptxas"));
    }

    #[test]
    fn cupti_is_searched_for_where_the_runtime_searches() {
        let cupti = |root: &Root| root.check().pop().unwrap();
        let mut root = with_driver(&["usr/local/cuda-13.0/lib64/libcupti.so.12"]);
        let expected = "Ok: CUPTI: /usr/local/cuda-13.0/lib64/libcupti.so.12";
        assert_eq!(cupti(&root), expected);
        root.libraries.push(root.path("lib/libcupti.so.13"));
        assert_eq!(cupti(&root), "Ok: CUPTI: /lib/libcupti.so.13");
        root.add("home/lib/libcupti.so", "");
        root.variables.push(("CUDA_HOME", root.path("home")));
        assert_eq!(cupti(&root), "Ok: CUPTI: /home/lib/libcupti.so");
        root.variables.push(("DEVPROF_CUPTI", root.path("mine")));
        assert!(cupti(&root).contains("/mine, which is not a file"));
        root.variables.last_mut().unwrap().1 = "none".into();
        let text = cupti(&root);
        assert!(text.starts_with("Ok: ") && text.contains("not traced"));
        root.variables.last_mut().unwrap().1 = root.path("mine");
        root.add("mine", "");
        assert_eq!(cupti(&root), "Ok: CUPTI: /mine");

        let mut root =
            with_driver(&["venv/lib/python3.13/site-packages/nvidia/cu13/lib/libcupti.so.13"]);
        root.variables.push(("VIRTUAL_ENV", root.path("venv")));
        let text = cupti(&root);
        assert!(text.starts_with("Warning: ") && text.contains("Python's packages"));
        assert!(text.contains("-> export DEVPROF_CUPTI=/venv/"), "{text}");
    }
}
