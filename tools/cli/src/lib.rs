//! The devprof command line: one verb, one module. It is a library so that tests run it thousands of times in a process.

mod demo;
mod export;
mod names;
mod stats;

use clap::{Parser, Subcommand};
use std::io::{ErrorKind, Write};

/// Saves what GPU kernels counted, and when they ran
#[derive(Parser)]
#[command(name = "devprof", version)]
pub struct Cli {
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

/// The exit status when a part of a file was not whole, and all else was used.
const PARTLY: u8 = 3;

/// Where `export` and `stats` show their results and say what is wrong.
pub struct Console<'a> {
    pub out: &'a mut dyn Write,
    /// Takes a line, without its end.
    pub say: &'a mut dyn FnMut(&str),
}

impl Console<'_> {
    /// Shows a result. Whoever reads it may have seen enough.
    fn print(&mut self, text: &str) -> Result<(), String> {
        match self.out.write_all(text.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(format!("cannot write to stdout: {error}"))
            }
            _ => Ok(()),
        }
    }
}

/// Does what the command line says. The exit status.
pub fn run(cli: &Cli, console: &mut Console) -> u8 {
    let done = |()| 0;
    let result = match &cli.verb {
        Verb::Demo(options) => demo::run(options).map(done),
        Verb::Export(options) => export::run(options, console),
        Verb::Stats(options) => stats::run(options, console),
        Verb::DemoProgram => demo::program::run().map(done),
    };
    result.unwrap_or_else(|error| {
        (console.say)(&format!("devprof: {error}"));
        1
    })
}
