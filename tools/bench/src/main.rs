//! Compares devprof with its peers: both run alternately, and the result is the ratio of their medians. Absolute times
//! depend on the machine and the GPU model. README.md has the results.

mod drain;
mod load;
mod measure;
mod merge;
mod model;
mod objects;
mod report;
mod snapshot;
mod start;
mod trace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

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
