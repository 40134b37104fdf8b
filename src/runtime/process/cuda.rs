//! CUDA: begins to observe the driver.
//!
//! In a program that has preloaded the shared library, or is linked with it, the functions that the library wraps
//! (`cuInit` is one) report the first use of CUDA. Otherwise the driver must load the library when it is initialized: it
//! loads the library that CUDA_INJECTION64_PATH names, and calls its function `InitializeInjection`. devprof never sets that
//! variable: all children would inherit it, also those that need it for another tool or cannot load the library. The
//! driver cannot load an archive, so the archive begins to observe the driver when the program starts.

use super::leader;
use super::lifecycle;
use super::request::{REFUSED, Request};
use crate::nvidia;
use crate::support::diagnostics;
use crate::support::features::{HAS_CUDA, HAS_TRACE};
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::sys::{env, loader};
use std::ffi::c_void;
use std::path::Path;

/// The library that NVTX loads in programs with markers.
const NVTX_INJECTION: &str = "NVTX_INJECTION64_PATH";
/// The device file of NVIDIA's driver.
const DEVICE: &str = "dev/nvidiactl";
/// In WSL2, the device file of all GPUs, and the driver if there is one of NVIDIA's.
const WSL: [&str; 2] = ["dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"];

/// Whether there is a GPU that CUDA can use. `root`: `/`, or the directory that a test uses in its place.
fn has_gpu(root: &Path) -> bool {
    let exists = |file: &str| root.join(file).exists();
    exists(DEVICE) || WSL.into_iter().all(exists)
}

/// Begins to observe the driver, in a program with the archive. Makes NVTX load the shared library, for a trace with
/// markers. To be called by the constructor. `entry`: the address of `InitializeInjection`.
pub fn register(entry: *const c_void) {
    if !HAS_CUDA {
        return;
    }
    if let Some(library) = loader::exporting_library(c"InitializeInjection", entry) {
        if HAS_TRACE && settings().is_traced() && settings().tracing.markers {
            match env::not_empty(NVTX_INJECTION) {
                None if env::set_env(c"NVTX_INJECTION64_PATH", library.as_os_str()) => {}
                None => diagnostics::lost(
                    "DEVPROF_TRACE_MARKERS: markers of NVTX are not recorded, because libdevprof.so was loaded when the program was already running; preload it (devprof run --trace does)",
                ),
                Some(other) if other == library.as_os_str() => {}
                Some(other) => diagnostics::lost(format_args!(
                    "DEVPROF_TRACE_MARKERS: markers of NVTX are not recorded, because NVTX_INJECTION64_PATH is set to {}: unset it",
                    other.display()
                )),
            }
        }
    } else if !HAS_TRACE && has_gpu(Path::new("/")) {
        initializing();
    }
}

/// The program uses CUDA, and the driver has not called `InitializeInjection`. Reported by the wrapped functions of this
/// instance, which fill its registry: nothing is collected in the registry of an instance that does not lead.
pub fn used() {
    report_untraced();
    guarded(Cost::Counters, (), || {
        if HAS_TRACE && lifecycle::is_owner() && leader::leads() {
            let tool = env::not_empty(nvidia::INJECTION);
            let own = loader::path_of(used as *const c_void);
            let file = |path: &Path| std::fs::canonicalize(path).ok();
            // The driver ignores a file that does not exist.
            let is_other = tool.is_some_and(|tool| {
                let tool = file(Path::new(&tool));
                tool.is_some() && tool != own.and_then(|own| file(&own))
            });
            leader::request(Request::CudaUsed { is_other });
        }
    });
}

/// Reports that a program is not traced because CUPTI is used by another instance of devprof.
fn report_untraced() {
    guarded(Cost::Dispatches, (), || {
        if HAS_TRACE && settings().is_traced() && lifecycle::is_owner() && !leader::leads() {
            diagnostics::lost(
                "DEVPROF_TRACE: CUDA is not traced, because the program contains libdevprof_cuda.a, which uses CUPTI; preload libdevprof.so (devprof run --trace does)",
            );
        }
    });
}

/// The driver is being initialized.
pub fn initializing() {
    report_untraced();
    guarded(Cost::Counters, (), || {
        if HAS_CUDA
            && lifecycle::is_owner()
            && leader::request(Request::CudaInitializing {}) == REFUSED
        {
            diagnostics::lost(
                "the program contains a copy of devprof without CUDA (libdevprof.a), which collects for the process: device counters of CUDA are lost; link libdevprof_cuda.a instead",
            );
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_gpu_has_a_device_file_and_in_wsl_a_driver() {
        let root = tempfile::tempdir().unwrap();
        let add = |file: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
            has_gpu(root.path())
        };
        assert!(!has_gpu(root.path()));
        assert!(!add(WSL[0]));
        assert!(add(WSL[1]));
        fs::remove_file(root.path().join(WSL[0])).unwrap();
        assert!(!has_gpu(root.path()));
        assert!(add(DEVICE));
    }
}
