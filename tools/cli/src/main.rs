//! The devprof command line: one verb, one module.

mod demo;
mod names;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Saves what GPU kernels counted
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
    /// The program that `demo` watches
    #[command(hide = true)]
    DemoProgram,
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Demo(options) => demo::run(&options),
        Verb::DemoProgram => demo::program::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("devprof: {error}");
            ExitCode::FAILURE
        }
    }
}
