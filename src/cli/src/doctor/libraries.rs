//! AMD's runtime libraries, where the dynamic linker finds them, and devprof's own libraries.

use super::finding::{Finding, State, Topic};
use crate::llvm::entries;
use crate::locate::Component;
use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DEVPROF: Topic = Topic("devprof");

struct Library {
    topic: Topic,
    /// The file name up to the version.
    name: &'static str,
    /// Missing if devprof cannot work without it.
    if_missing: State,
    install: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library {
        topic: Topic("HSA"),
        name: "libhsa-runtime64.so.",
        if_missing: State::Missing,
        install: "apt-get install libhsa-runtime64-1 (Debian), hsa-rocr (AMD's packages)",
    },
    Library {
        topic: Topic("HIP"),
        name: "libamdhip64.so.",
        if_missing: State::Warning,
        install: "apt-get install libamdhip64-7 (Debian), hip-runtime-amd (AMD's packages); not needed by programs that use HSA directly",
    },
];

/// `known`: the libraries that the dynamic linker finds. `has_amd`: AMD's libraries are needed.
pub fn check(known: &[PathBuf], has_amd: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = LIBRARIES
        .iter()
        .map(|library| library.check(known))
        .filter(|finding| has_amd || finding.state == State::Ok)
        .collect();
    let components = [
        (Component::Library, "for `devprof run` and LD_PRELOAD"),
        (Component::Archive, "to link into programs"),
    ];
    for (component, purpose) in components {
        findings.push(match component.find() {
            Ok(path) => DEVPROF.ok(format!("{}, {purpose}", path.display())),
            Err(error) => DEVPROF.missing(format!("{error:#}"), component.remedy()),
        });
    }
    findings
}

impl Library {
    fn check(&self, known: &[PathBuf]) -> Finding {
        let is_own = |path: &&PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.as_bytes().starts_with(self.name.as_bytes())
        };
        if let Some(path) = known.iter().find(is_own) {
            return self.topic.ok(described(path));
        }
        let elsewhere: Vec<PathBuf> = rocm_library_dirs()
            .flat_map(|dir| entries(dir, ""))
            .collect();
        match elsewhere.iter().rfind(is_own) {
            Some(path) => {
                let dir = path.parent().unwrap_or(Path::new("/"));
                self.topic.warning(
                    format!(
                        "{}, which only programs with its directory in their run path can find",
                        described(path)
                    ),
                    format!("export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH", dir.display()),
                )
            }
            None => {
                let what = format!(
                    "no {}* in LD_LIBRARY_PATH, the linker's directories or ROCm's",
                    self.name
                );
                self.topic.problem(self.if_missing, what, self.install)
            }
        }
    }
}

/// The path, and the name of the file that it links to, which has the complete version.
fn described(path: &Path) -> String {
    match path.canonicalize() {
        Ok(file) if file.file_name() != path.file_name() => {
            let name = file.file_name().unwrap_or_default();
            format!("{} ({})", path.display(), name.display())
        }
        _ => path.display().to_string(),
    }
}

/// The libraries that the dynamic linker finds by name, in its search order.
pub fn libraries_of_dynamic_linker() -> Vec<PathBuf> {
    let path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = env::split_paths(&path)
        .flat_map(|dir| entries(dir, ""))
        .collect();
    // The linker's cache, and its default directories in case there is no cache.
    let cache = ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"]
        .iter()
        .find_map(|program| {
            let output = Command::new(program)
                .arg("-p")
                .stdin(Stdio::null())
                .output()
                .ok()?;
            output.status.success().then_some(output.stdout)
        });
    let cache = String::from_utf8_lossy(&cache.unwrap_or_default()).into_owned();
    let paths = cache.lines().filter_map(|line| line.split_once(" => "));
    found.extend(paths.map(|(_, path)| PathBuf::from(path.trim())));
    for dir in ["/lib64", "/usr/lib64", "/lib", "/usr/lib"] {
        found.extend(entries(dir, ""));
    }
    found
}

fn rocm_library_dirs() -> impl Iterator<Item = PathBuf> {
    let rocm = env::var_os("ROCM_PATH").filter(|dir| !dir.is_empty());
    let prefixes = entries("/opt", "rocm").into_iter();
    let prefixes = prefixes.chain(rocm.map(PathBuf::from));
    prefixes.map(|prefix| prefix.join("lib"))
}
