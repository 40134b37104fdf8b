//! Measures devprof beside its peers: both in one run, alternating, as ratios of medians. Absolute times say something
//! about the machine and the GPU model only.

mod drain;
mod load;
mod merge;
mod model;
mod objects;
mod snapshot;
mod trace;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The collect call with N instrumented code objects loaded, beside LLVM 23's runtime
    Drain(drain::Options),
    /// What devprof costs a program that uses no GPU
    Load(load::Options),
    /// `devprof merge` of thousands of raw profiles, beside plain llvm-profdata
    Merge(merge::Options),
    /// Lane-instructions a second of the GPU model
    Model(model::Options),
    /// `devprof inspect` and `extract` of rocRAND and RCCL, beside LLVM's tools
    Objects(objects::Options),
    /// Read a file, and unpack what is in it: the least that `objects` compares with
    #[command(hide = true)]
    Least(objects::LeastOptions),
    /// What snapshots cost a program that launches kernels without pause
    Snapshot(snapshot::Options),
    /// What a trace of every dispatch costs the launching thread, beside other designs of one
    Trace(trace::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().what {
        What::Drain(options) => drain::run(&options),
        What::Load(options) => load::run(&options),
        What::Merge(options) => merge::run(&options),
        What::Model(options) => model::run(&options),
        What::Objects(options) => objects::run(&options),
        What::Least(options) => objects::least(&options),
        What::Snapshot(options) => snapshot::run(&options),
        What::Trace(options) => trace::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The checkout that this binary was built in.
fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap_or_else(|_| ".".into())
}

/// Runs a bash script in the root, on the GPU model; its standard output.
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

/// The directory that cargo builds in.
fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => std::path::absolute(&dir).unwrap_or_else(|_| dir.into()),
        None => repo().join("target"),
    }
}

/// Builds the archive and the shared library; the directory that they are in.
fn runtime() -> Result<PathBuf, String> {
    build(&mut Command::new(repo().join("tools/build-runtime")))?;
    Ok(target().join("dist"))
}

/// Builds the command line.
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

/// The middle one, or the mean of the two middle ones.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}
