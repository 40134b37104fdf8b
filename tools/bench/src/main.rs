//! Compares devprof with its peers: both run alternately, and the result is the ratio of their medians. Absolute times
//! depend on the machine and the GPU model. README.md has the results.

mod drain;
mod load;
mod merge;
mod model;
mod objects;
mod report;
mod snapshot;
mod start;
mod trace;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// The collect call with N instrumented code objects, compared with LLVM 23's runtime
    Drain(drain::Options),
    /// The cost of devprof in a program that uses no GPU
    Load(load::Options),
    /// `devprof merge` of thousands of raw profiles, compared with llvm-profdata
    Merge(merge::Options),
    /// The speed of the GPU model, in lane-instructions per second
    Model(model::Options),
    /// `devprof inspect` and `extract` of rocRAND and RCCL, compared with LLVM's tools
    Objects(objects::Options),
    /// Reads a file and unpacks the bundle in it: the minimum that `objects` compares with
    #[command(hide = true)]
    Unpack(objects::UnpackOptions),
    /// `devprof report` of 100,000 instances of templates, compared with llvm-cov
    Report(report::Options),
    /// The cost of snapshots in a program that launches kernels without pause
    Snapshot(snapshot::Options),
    /// The start of a HIP program on simulated GPUs
    Start(start::Options),
    /// The cost of tracing for the launching thread, compared with other designs
    Trace(trace::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().benchmark {
        Benchmark::Drain(options) => drain::run(&options),
        Benchmark::Load(options) => load::run(&options),
        Benchmark::Merge(options) => merge::run(&options),
        Benchmark::Model(options) => model::run(&options),
        Benchmark::Objects(options) => objects::run(&options),
        Benchmark::Unpack(options) => objects::unpack(&options),
        Benchmark::Report(options) => report::run(&options),
        Benchmark::Snapshot(options) => snapshot::run(&options),
        Benchmark::Start(options) => start::run(&options),
        Benchmark::Trace(options) => trace::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The checkout from which this binary was built.
fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap_or_else(|_| ".".into())
}

/// Runs a bash script in the root of tools/rocm-env, on the GPU model. Returns its standard output.
fn in_root(script: &str) -> Result<String, String> {
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
fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => std::path::absolute(&dir).unwrap_or_else(|_| dir.into()),
        None => repo().join("target"),
    }
}

/// Builds the archive and the shared library. Returns their directory.
fn runtime() -> Result<PathBuf, String> {
    build(&mut Command::new(repo().join("tools/build-runtime")))?;
    Ok(target().join("dist"))
}

/// Builds the command line. Returns its path.
fn devprof() -> Result<PathBuf, String> {
    build(
        Command::new("cargo")
            .args(["build", "--quiet", "--release", "-p", "devprof-cli"])
            .current_dir(repo()),
    )?;
    Ok(target().join("release/devprof"))
}

fn build(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} failed: {status}")),
        Err(error) => Err(format!("cannot start {command:?}: {error}")),
    }
}

/// The middle value, or the mean of the two middle values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}
