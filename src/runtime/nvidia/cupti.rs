//! CUPTI: the search for its library, and its functions.

use super::driver::functions;
use crate::gpu::runtime::Error;
use crate::support::settings::settings;
use crate::sys::env::env;
use crate::sys::loader;
use cuda_abi::cupti::cuptiSubscribe_v2;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::error::Error as _;
use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

functions! {
    /// The functions with which devprof observes calls.
    Subscribing in cupti:
    cuptiSubscribe,
    cuptiUnsubscribe,
    cuptiEnableCallback,
}

functions! {
    /// The functions that a trace needs.
    ActivityFunctions in activity:
    cuptiGetVersion,
    cuptiActivityRegisterCallbacks,
    cuptiActivityRegisterTimestampCallback,
    cuptiActivitySetAttribute,
    cuptiActivityEnable,
    cuptiActivityDisable,
    cuptiActivityFlushAll,
    cuptiActivityGetNextRecord,
    cuptiActivityGetNumDroppedRecords,
    cuptiGetContextId,
    cuptiGetStreamIdEx,
    cuptiEnableDomain,
}

/// CUPTI's functions.
pub struct Cupti {
    pub subscribing: Subscribing,
    /// Since CUDA 12.9 or 13.
    pub subscribe_v2: Option<cuptiSubscribe_v2>,
    /// Since CUDA 11.8.
    pub activity: Option<ActivityFunctions>,
}

/// The file names, the newest version first.
const NAMES: &[&str] = &["libcupti.so.13", "libcupti.so.12", "libcupti.so"];

/// The paths and names to try, in this order: the user's path, the library that is already loaded, next to the CUDA
/// runtime in the process, in the toolkit that the environment names, the dynamic loader's directories, and /usr/local.
pub fn candidates() -> Vec<PathBuf> {
    if let Some(path) = &settings().cupti {
        return vec![path.into()];
    }
    let mut directories = Vec::new();
    let libraries = loader::libraries();
    let named = |prefix: &'static str| {
        libraries.iter().filter(move |path| {
            let name = path.file_name().map(OsStr::as_encoded_bytes);
            name.is_some_and(|name| name.starts_with(prefix.as_bytes()))
        })
    };
    let mut found: Vec<PathBuf> = named("libcupti.so").cloned().collect();
    for runtime in named("libcudart.so") {
        let Some(directory) = runtime.parent() else {
            continue;
        };
        directories.push(directory.to_owned());
        directories.push(directory.join("../extras/CUPTI/lib64"));
        // The packages of PyPI for CUDA 12 have a directory each.
        directories.push(directory.join("../../cuda_cupti/lib"));
    }
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(toolkit) = env(variable).filter(|value| !value.is_empty()) {
            directories.extend(in_toolkit(Path::new(&toolkit)));
        }
    }
    let in_directories = |directories: &[PathBuf]| {
        let files = directories
            .iter()
            .flat_map(|directory| NAMES.iter().map(|name| directory.join(name)));
        files.filter(|path| path.exists()).collect::<Vec<_>>()
    };
    found.extend(in_directories(&directories));
    found.extend(NAMES.iter().map(PathBuf::from));
    found.extend(in_directories(&in_usr_local()));
    found
}

/// Where a CUDA Toolkit may have CUPTI.
fn in_toolkit(toolkit: &Path) -> [PathBuf; 4] {
    [
        "lib64",
        "extras/CUPTI/lib64",
        cuda_abi::TARGET_LIBRARIES,
        "lib",
    ]
    .map(|directory| toolkit.join(directory))
}

fn in_usr_local() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/local").into_iter().flatten();
    let mut toolkits: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().map(OsStr::as_encoded_bytes);
            name.is_some_and(|name| name == b"cuda" || name.starts_with(b"cuda-"))
        })
        .collect();
    toolkits.sort_unstable();
    // `cuda` is the version that the machine's administrator has chosen; then the newest.
    toolkits.sort_by_key(|path| !path.ends_with("cuda"));
    toolkits.iter().flat_map(|path| in_toolkit(path)).collect()
}

/// Loads CUPTI from a path or by a name. The library stays loaded.
pub fn load(library: &Path) -> Result<Cupti, String> {
    // SAFETY: NVIDIA's library. Its initializers only set up its own state; it never initializes CUDA.
    let library = unsafe { Library::open(Some(library), RTLD_LAZY | RTLD_LOCAL) };
    let library = library.map_err(|error| match error.source() {
        Some(why) => why.to_string(),
        None => error.to_string(),
    })?;
    // Its functions are used until the process ends.
    let library = ManuallyDrop::new(library);
    let subscribing = Subscribing::resolve(&library);
    Ok(Cupti {
        subscribing: subscribing.map_err(|_| "it has not all functions of CUPTI")?,
        // SAFETY: the type of the function in CUPTI's headers.
        subscribe_v2: unsafe { library.get(b"cuptiSubscribe_v2\0") }
            .ok()
            .map(|found| *found),
        activity: ActivityFunctions::resolve(&library).ok(),
    })
}
