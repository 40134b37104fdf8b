//! The code objects in the programs and libraries of a run.

use super::journal::{Journal, Process};
use crate::gpus;
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
    match instrumented(journal) {
        found if found.is_empty() => journal.written_by().into_iter().cloned().collect(),
        found => found,
    }
}

/// As [`binaries`], but without the programs if there are none.
pub fn instrumented(journal: &Journal) -> Vec<PathBuf> {
    let programs = journal.written_by();
    let libraries = journal.libraries(|pid| journal.writers.contains(&pid));
    DeviceCode::find(&programs.into_iter().chain(libraries).collect()).files
}

/// Whether processes that were cut off certainly had counts: they wrote a profile before, or their programs or libraries have
/// instrumented code. Others may have loaded only code that is not instrumented.
pub fn has_lost_counts(journal: &Journal) -> bool {
    let cut_off: BTreeSet<Process> = journal.cut_off().collect();
    let programs = cut_off
        .iter()
        .filter_map(|process| journal.programs.get(process));
    let libraries = journal.libraries(|process| cut_off.contains(&process));
    let has_written = cut_off
        .iter()
        .any(|process| journal.writers.contains(process));
    has_written
        || !DeviceCode::find(&programs.chain(libraries).collect())
            .files
            .is_empty()
}

/// Why device code does not count.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    NotInstrumented(String),
    /// It is for other GPUs than these.
    OtherGpu(String),
}

/// The code objects in the files of a run.
#[derive(Default)]
pub struct DeviceCode {
    objects: usize,
    /// How many of them are cubins.
    cubins: usize,
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
                    all.cubins += usize::from(object.is_cuda());
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects == 0
    }

    /// Whether all of it is for CUDA.
    pub fn is_cuda(&self) -> bool {
        self.cubins > 0 && self.cubins == self.objects
    }

    /// Why none of it counts on these GPUs. `None` if it should, or if there is none. `nvidia` is called for the
    /// architectures of NVIDIA's GPUs if these are needed.
    pub fn problem(
        &self,
        gpus: &BTreeSet<String>,
        nvidia: impl Fn() -> BTreeSet<String>,
    ) -> Option<Problem> {
        if self.objects == 0 {
            return None;
        }
        if self.instrumented.is_empty() {
            return Some(Problem::NotInstrumented(match self.objects {
                1 => "the program's code object is not instrumented".to_owned(),
                n => format!(
                    "none of the {n} code objects of the program and its libraries is instrumented"
                ),
            }));
        }
        let is_cubin = |target: &&String| gpus::compute_capability(target).is_some();
        let (cubins, others): (Vec<&String>, Vec<&String>) =
            self.instrumented.iter().partition(is_cubin);
        let nvidia = if cubins.is_empty() {
            BTreeSet::new()
        } else {
            nvidia()
        };
        let groups = [(cubins, &nvidia), (others, gpus)];
        let groups = groups.iter().filter(|(targets, _)| !targets.is_empty());
        let mut present: Vec<&str> = Vec::new();
        for (targets, gpus) in groups {
            let runs = |gpu: &String| targets.iter().any(|target| runs_on(target, gpu));
            // If the GPUs are not known, the code may run on them.
            if gpus.is_empty() || gpus.iter().any(runs) {
                return None;
            }
            present.extend(gpus.iter().map(String::as_str));
        }
        let targets: Vec<&str> = self.instrumented.iter().map(String::as_str).collect();
        Some(Problem::OtherGpu(format!(
            "the instrumented device code is for {}, the GPU is {}: compile with --offload-arch={}",
            targets.join(", "),
            present.join(", "),
            present.join(" --offload-arch="),
        )))
    }

    /// The options that simulate a GPU for this code, if one of the `known` architectures is such a GPU.
    pub fn simulated(&self, known: &[String]) -> Option<String> {
        let runs = |gpu: &&String| self.instrumented.iter().any(|target| runs_on(target, gpu));
        let gpu = known.iter().find(runs)?;
        Some(format!("--model --arch {gpu}"))
    }
}

/// Whether code for a target runs on a GPU.
fn runs_on(target: &str, gpu: &str) -> bool {
    let capabilities = (
        gpus::compute_capability(target),
        gpus::compute_capability(gpu),
    );
    if let (Some(cubin), Some(gpu)) = capabilities {
        return gpus::runs_on(cubin, gpu);
    }
    let arch = target.split(':').next().unwrap_or_default();
    arch.ends_with("-generic") || gpu == arch
}

/// The beginnings of the names of libraries that are never instrumented.
const RUNTIMES: &str = "
    libdevprof libgpu_model gpu-model libhsa-runtime64 libamdhip64 libamd_comgr libLLVM libclang
    libcuda.so libcudart libcudnn libcublas libcufft libcupti libcurand libcusolver libcusparse libnvidia- libnvrtc
";

/// Whether a library belongs to the GPU runtime or the C library, or is one of NVIDIA's: their device code is never
/// instrumented.
fn is_of_runtime(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut prefixes = RUNTIMES.split_whitespace();
    prefixes.any(|prefix| name.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIN: &[u8] = include_bytes!("../../../../fixtures/counted.cubin");

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn instrumented_cubins_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = dir.path().join(name);
            fs::write(&path, CUBIN).unwrap();
            path
        };
        let (program, library) = (path("a"), path("libcudart.so.13"));
        let found = DeviceCode::find(&BTreeSet::from([&program, &library]));
        assert!(found.is_cuda());
        assert_eq!(found.objects, 1);
        assert_eq!(found.instrumented, set(&["sm_90"]));
        assert_eq!(found.files, [program]);
    }

    #[test]
    fn code_for_another_gpu_is_a_problem() {
        let problem = |targets: &[&str], amd: &[&str], nvidia: &[&str]| {
            let code = DeviceCode {
                objects: 2,
                instrumented: set(targets),
                ..DeviceCode::default()
            };
            code.problem(&set(amd), || set(nvidia))
        };
        let not_instrumented = problem(&[], &[], &["sm_90"]).unwrap();
        assert!(
            matches!(&not_instrumented, Problem::NotInstrumented(why) if why.starts_with("none of the 2 code objects")),
            "{not_instrumented:?}"
        );
        assert_eq!(problem(&["sm_80"], &[], &["sm_86"]), None);
        assert_eq!(problem(&["sm_80"], &["gfx90a"], &[]), None);
        let targets = ["sm_80", "gfx90a:xnack-"];
        assert_eq!(problem(&targets, &["gfx90a"], &["sm_90"]), None);
        let other = "the instrumented device code is for sm_80, the GPU is sm_90: compile with --offload-arch=sm_90";
        let found = problem(&["sm_80"], &["gfx90a"], &["sm_90"]).unwrap();
        assert_eq!(found, Problem::OtherGpu(other.into()));
        let both = problem(&["gfx942", "sm_80"], &["gfx90a"], &["sm_90"]).unwrap();
        assert!(
            matches!(&both, Problem::OtherGpu(why) if why.contains("the GPU is sm_90, gfx90a:")),
            "{both:?}"
        );
    }

    #[test]
    fn a_gpu_for_the_code_can_be_simulated() {
        let simulated = |targets: &[&str]| {
            let code = DeviceCode {
                instrumented: set(targets),
                ..DeviceCode::default()
            };
            code.simulated(&["gfx1100", "gfx942"].map(String::from))
        };
        assert_eq!(simulated(&[]), None);
        assert_eq!(simulated(&["gfx906", "sm_90"]), None);
        let options = simulated(&["gfx906", "gfx942:sramecc+:xnack-"]).unwrap();
        assert_eq!(options, "--model --arch gfx942");
    }
}
