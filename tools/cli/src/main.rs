//! The devprof command line: one verb, one module.

mod demo;
mod export;
mod names;
mod stats;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Saves what GPU kernels counted, and when they ran
#[derive(Parser)]
#[command(name = "devprof", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run instrumented kernels on two simulated GPUs, and show what they counted
    Demo(demo::Options),
    /// Write a trace (DEVPROF_TRACE) in a format that other tools read
    ///
    /// The exit status is 0 when all of the file was exported, 1 when nothing could be, and 3 when parts of the file
    /// are damaged or missing and all else was exported.
    Export(export::Options),
    /// Show which kernels of a trace (DEVPROF_TRACE) took the time
    ///
    /// The exit status is 0, 1 when the file could not be read, and 3 when parts of it are damaged or missing.
    Stats(stats::Options),
    /// The program that `demo` watches
    #[command(hide = true)]
    DemoProgram,
}

fn main() -> ExitCode {
    let done = |()| ExitCode::SUCCESS;
    let result = match Cli::parse().verb {
        Verb::Demo(options) => demo::run(&options).map(done),
        Verb::Export(options) => export::run(&options),
        Verb::Stats(options) => stats::run(&options),
        Verb::DemoProgram => demo::program::run().map(done),
    };
    result.unwrap_or_else(|error| {
        eprintln!("devprof: {error}");
        ExitCode::FAILURE
    })
}
