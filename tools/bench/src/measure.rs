//! What several benchmarks use: builds, programs in the root of tools/rocm-env, and medians.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout from which this binary was built.
pub fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap_or_else(|_| ".".into())
}

/// Runs a bash script in the root of tools/rocm-env, on the GPU model. Returns its standard output.
pub fn in_root(script: &str) -> Result<String, String> {
    let output = Command::new(repo().join("tools/rocm-env"))
        .args(["run", "--", "bash", "-euc", script])
        .current_dir(repo())
        .output()
        .map_err(|e| format!("cannot start tools/rocm-env: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "{} in the root:\n{script}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => std::path::absolute(&dir).unwrap_or_else(|_| dir.into()),
        None => repo().join("target"),
    }
}

/// Builds the archive and the shared library. Returns their directory.
pub fn runtime() -> Result<PathBuf, String> {
    build(&mut Command::new(repo().join("tools/build-runtime")))?;
    Ok(target().join("dist"))
}

/// Builds the command line. Returns its path.
pub fn devprof() -> Result<PathBuf, String> {
    build(
        Command::new("cargo")
            .args(["build", "--quiet", "--release", "-p", "devprof-cli"])
            .current_dir(repo()),
    )?;
    Ok(target().join("release/devprof"))
}

pub fn build(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} failed: {status}")),
        Err(error) => Err(format!("cannot start {command:?}: {error}")),
    }
}

/// The middle value, or the mean of the two middle values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}
