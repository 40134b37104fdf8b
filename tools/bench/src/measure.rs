//! What several benchmarks use: builds, programs in the root of tools/rocm-env, alternating runs, and medians.

use std::fs;
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

/// A directory for a benchmark's files, which is created.
pub fn directory(name: &str) -> Result<PathBuf, String> {
    let dir = target().join("bench").join(name);
    fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    Ok(dir)
}

/// The programs of the benchmarks.
pub fn programs() -> PathBuf {
    repo().join("tools/bench/programs")
}

/// A file or directory in memory for this process. On a disk, creating files would take ten times as long as everything else.
pub fn in_memory() -> PathBuf {
    PathBuf::from(format!("/dev/shm/devprof-bench-{}", std::process::id()))
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

/// Runs each variant once per round, alternating. Every other round has the reverse order, so that no variant always follows the
/// same one. Returns the results of each variant.
pub fn alternate<V, T>(
    rounds: usize,
    variants: &[V],
    mut run: impl FnMut(&V) -> Result<T, String>,
) -> Result<Vec<Vec<T>>, String> {
    let mut results: Vec<Vec<T>> = variants.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for n in 0..variants.len() {
            let reversed = variants.len() - 1 - n;
            let n = if round % 2 == 0 { n } else { reversed };
            results[n].push(run(&variants[n])?);
        }
    }
    Ok(results)
}

/// The numbers that a program printed. Other words are not a number.
pub fn numbers<const N: usize>(program: &str, printed: &str) -> Result<[f64; N], String> {
    let words = printed.split_whitespace();
    let numbers: Vec<f64> = words.map(|word| word.parse().unwrap_or(f64::NAN)).collect();
    numbers
        .try_into()
        .map_err(|_| format!("{program} printed {printed:?}"))
}

/// A bash function `timed NAME PROGRAM [ARG…]`, which runs a program and prints a line for [`Timed`].
pub const TIMED: &str = r#"timed() { name=$1; shift; /usr/bin/time -o "$times" -f "$name %e %U %S %M" "$@" >"$times.out"; cat "$times"; }
times=$PWD/time"#;

/// The lines that [`TIMED`] has printed, and others.
pub struct Timed(pub String);

impl Timed {
    /// The elapsed time and the processor time in seconds, and the most memory in MiB: medians of a program's runs. `None`: it did
    /// not run.
    pub fn medians(&self, name: &str) -> Option<[f64; 3]> {
        let rows: Vec<[f64; 4]> = self.lines(name)?;
        let of = |value: fn(&[f64; 4]) -> f64| median(rows.iter().map(value).collect());
        Some([
            of(|row| row[0]),
            of(|row| row[1] + row[2]),
            of(|row| row[3] / 1024.0),
        ])
    }

    fn lines(&self, name: &str) -> Option<Vec<[f64; 4]>> {
        let lines = self
            .0
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let rows: Vec<_> = lines.filter_map(|line| numbers(name, line).ok()).collect();
        (!rows.is_empty()).then_some(rows)
    }
}
