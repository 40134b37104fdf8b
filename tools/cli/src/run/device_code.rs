//! The code objects in the programs and libraries of a run.

use super::journal::Journal;
use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Larger programs and libraries are not searched for code objects.
const LARGE_FILE: u64 = 256 << 20;

/// The programs and libraries with instrumented device code in the processes that wrote something. If there are none,
/// the programs.
pub fn binaries(journal: &Journal) -> Vec<PathBuf> {
    let programs = journal.written_by();
    let libraries = journal.libraries(|pid| journal.writers.contains(&pid));
    let files = programs.iter().copied().chain(libraries).collect();
    match DeviceCode::find(&files).files {
        found if found.is_empty() => programs.into_iter().cloned().collect(),
        found => found,
    }
}

/// The code objects in the files of a run.
#[derive(Default)]
pub struct DeviceCode {
    objects: usize,
    /// The targets of the instrumented ones.
    instrumented: BTreeSet<String>,
    /// The files with instrumented ones.
    files: Vec<PathBuf>,
}

impl DeviceCode {
    /// Searches files, except for large ones and libraries of the system.
    pub fn find(files: &BTreeSet<&PathBuf>) -> DeviceCode {
        let mut all = DeviceCode::default();
        let is_searched = |path: &&&PathBuf| {
            !is_of_runtime(path) && fs::metadata(path).is_ok_and(|data| data.len() <= LARGE_FILE)
        };
        for file in files.iter().filter(is_searched) {
            let mut has_instrumented = false;
            code_objects::walk(file, code_objects::Options::default(), &mut |found| {
                if let code_objects::What::CodeObject(object) = found.what {
                    all.objects += 1;
                    if object.profile.is_some() {
                        has_instrumented = true;
                        all.instrumented.insert(object.target.to_string());
                    }
                }
                ControlFlow::Continue(())
            });
            if has_instrumented {
                all.files.push(file.to_path_buf());
            }
        }
        all
    }

    /// Why none of it counts on these GPUs. `None` if it should, or if there is none.
    pub fn problem(&self, gpus: &BTreeSet<String>) -> Option<String> {
        if self.objects == 0 {
            return None;
        }
        let targets: Vec<&str> = self.instrumented.iter().map(String::as_str).collect();
        let runs_on = |target: &&str| {
            let arch = target.split(':').next().unwrap_or_default();
            arch.ends_with("-generic") || gpus.contains(arch)
        };
        if targets.is_empty() {
            return Some(match self.objects {
                1 => "the program's code object is not instrumented".to_owned(),
                n => format!(
                    "none of the {n} code objects of the program and its libraries is instrumented"
                ),
            });
        }
        if gpus.is_empty() || targets.iter().any(runs_on) {
            return None;
        }
        let gpus: Vec<&str> = gpus.iter().map(String::as_str).collect();
        Some(format!(
            "the instrumented device code is for {}, the GPU is {}: compile with --offload-arch={}",
            targets.join(", "),
            gpus.join(", "),
            gpus.join(" --offload-arch="),
        ))
    }
}

/// Whether a library belongs to the GPU runtime or the C library, whose device code is never instrumented.
fn is_of_runtime(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let prefixes: [&[u8]; 8] = [
        b"libdevprof",
        b"libgpu_model",
        b"gpu-model",
        b"libhsa-runtime64",
        b"libamdhip64",
        b"libamd_comgr",
        b"libLLVM",
        b"libclang",
    ];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}
