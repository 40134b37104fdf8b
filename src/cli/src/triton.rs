//! Triton, which compiles kernels in Python while a program runs, and torch.compile, which uses it.
//!
//! Triton compiles to PTX, starts `ptxas` with it, and keeps the result in its cache. `devprof run --coverage` names another
//! `ptxas`, which instruments the PTX, and other directories for the caches, next to the profiles: the user's caches get no
//! instrumented code, and the report finds the code that ran.
//!
//! Sources: `knobs.py`, `backends/nvidia/compiler.py` and `runtime/cache.py` in Triton 3.6; `torch/_inductor/runtime/cache_dir_utils.py`
//! in PyTorch 2.11.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The programs that Triton starts with PTX, and the variables with their paths. The second one is for Blackwell GPUs.
pub const ASSEMBLERS: [(&str, &str); 2] = [
    ("ptxas", "TRITON_PTXAS_PATH"),
    ("ptxas-blackwell", "TRITON_PTXAS_BLACKWELL_PATH"),
];

/// The cache of Triton for the profiles in a directory.
pub fn cache(profiles: &Path) -> PathBuf {
    profiles.join("triton")
}

/// That of torch.compile, which has the Python code of its kernels.
fn torch_cache(profiles: &Path) -> PathBuf {
    profiles.join("torchinductor")
}

/// Whether a path is that of a cache. It has no profiles.
pub fn is_cache(path: &Path) -> bool {
    path.parent()
        .is_some_and(|profiles| path == cache(profiles) || path == torch_cache(profiles))
}

/// The variables with the directories of the caches.
pub fn caches(profiles: &Path) -> [(&'static str, PathBuf); 2] {
    [
        ("TRITON_CACHE_DIR", cache(profiles)),
        ("TORCHINDUCTOR_CACHE_DIR", torch_cache(profiles)),
    ]
}

/// The code that Triton compiled for the profiles in a directory, in its cache: `DIR/KEY/KERNEL.cubin`.
pub fn cubins(profiles: &Path) -> Vec<PathBuf> {
    let entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    let keys = entries(cache(profiles));
    let files = keys.flat_map(|key| entries(key.path()));
    let mut found: Vec<PathBuf> = files.map(|file| file.path()).collect();
    found.retain(|path| path.extension().is_some_and(|own| own == "cubin"));
    found.sort_unstable();
    found
}

/// The directory of the Triton package that started this process.
///
/// # Errors
/// None of the processes above this one has loaded Triton.
pub fn package() -> anyhow::Result<PathBuf> {
    let mut process = std::os::unix::process::parent_id();
    while process > 1 {
        let maps = fs::read(format!("/proc/{process}/maps"));
        if let Some(found) = maps.ok().and_then(|maps| package_in(&maps)) {
            return Ok(found);
        }
        process = parent(process)?;
    }
    bail!(
        "none of the processes that started this one has loaded Triton (libtriton.so), so its ptxas is not known: set {}",
        ASSEMBLERS.map(|(_, variable)| variable).join(" and ")
    )
}

fn parent(process: u32) -> anyhow::Result<u32> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let mut lines = status.lines();
    let parent = lines.find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    parent.with_context(|| format!("{path} has no PPid"))
}

/// The package whose library `_C/libtriton.so` is among the mappings of a process.
fn package_in(maps: &[u8]) -> Option<PathBuf> {
    let library = maps
        .split(|byte| *byte == b'\n')
        .find(|line| line.ends_with(b"/_C/libtriton.so"))?;
    let start = library.iter().position(|byte| *byte == b'/')?;
    let path = Path::new(OsStr::from_bytes(&library[start..]));
    Some(path.parent()?.parent()?.to_owned())
}

/// The path of an assembler in a Triton package.
pub fn assembler(package: &Path, name: &str) -> PathBuf {
    package.join("backends/nvidia/bin").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::directory;

    #[test]
    fn the_package_is_that_of_the_library_in_the_process() {
        let maps = b"7f0000-7f1000 r-xp 00000000 00:1 7   /usr/lib/libc.so.6\n\
            7f2000-7f3000 r-xp 00000000 00:1 8   /home/a b/triton/_C/libtriton.so\n7f4000-7f5000 rw-p 0 00:00 0 \n";
        let package = package_in(maps).unwrap();
        assert_eq!(package, Path::new("/home/a b/triton"));
        assert_eq!(
            assembler(&package, "ptxas"),
            Path::new("/home/a b/triton/backends/nvidia/bin/ptxas")
        );
        assert_eq!(package_in(&maps[..70]), None);
        // Nothing above this test has loaded it.
        let error = super::package().unwrap_err().to_string();
        assert!(error.contains("set TRITON_PTXAS_PATH and"), "{error}");
    }

    #[test]
    fn the_cubins_of_the_cache_are_found() {
        let dir = directory(&[
            "triton/A/k.cubin",
            "triton/A/k.ptx",
            "triton/B/j.cubin",
            "x.cubin",
        ]);
        let expected = ["triton/A/k.cubin", "triton/B/j.cubin"].map(|name| dir.path().join(name));
        assert_eq!(cubins(dir.path()), expected);
        assert!(cubins(&dir.path().join("none")).is_empty());
    }
}
