//! The devprof command line: one verb, one module. It is a library so that tests run it thousands of times in a process.

mod clang;
mod color;
mod demo;
mod docs;
mod doctor;
mod export;
mod extract;
mod flags;
mod gpus;
mod inspect;
pub mod llvm;
pub mod merge;
mod names;
mod outfile;
mod parts;
mod readable;
mod report;
mod run;
mod stats;

pub use color::{Colors, Ink, When};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::{self, ErrorKind, Write};

/// The exit statuses, in the help and in the man page.
const STATUSES: &str = "\
Exit status:
  0  all was done
  1  nothing could be done
  2  the command line is wrong
  3  partly: something of the input was damaged or left out, and all else was done

What is not whole or not done is said on stderr; stdout has results only. `run` ends as its program did.";

/// Saves what GPU kernels counted, and when they ran
#[derive(Parser)]
#[command(name = "devprof", version, after_long_help = STATUSES)]
pub struct Cli {
    /// Colours of results and messages
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: When,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a program with devprof in place, and say what was collected
    ///
    /// The exit status is the program's own: devprof ends by the signal that killed it, with 127 where there is no such
    /// program, 126 where it cannot be executed, and 1 where devprof cannot do what it was asked to. Signals are passed
    /// on (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT); what a terminal sends
    /// reaches the program by itself.
    Run(run::Options),
    /// Print what to compile and link with, for the clang that is here
    ///
    /// As llvm-config does for LLVM: clang++ -x hip a.hip $(devprof flags --coverage) -o a
    Flags(flags::Options),
    /// Show what is in a file: code objects, their kernels, counters and coverage mapping; profiles; traces
    Inspect(inspect::Options),
    /// Write the code objects that are in files to a directory, named by target and which one it is
    Extract(extract::Options),
    /// Make one profile of many, with the llvm-profdata that reads them
    Merge(merge::Options),
    /// Show which lines of the sources ran on the GPUs, and what each kernel took
    Report(report::Options),
    /// Show which kernels of a trace (DEVPROF_TRACE) took the time
    Stats(stats::Options),
    /// Write a trace (DEVPROF_TRACE) in a format that other tools read
    Export(export::Options),
    /// Say what device profiles need and is not here, and the command that mends it
    ///
    /// The exit status is 3 when something that is needed is missing; warnings leave it at 0.
    Doctor(doctor::Options),
    /// Run instrumented kernels on two simulated GPUs, and show what they counted
    Demo(demo::Options),
    /// Write man pages and completions
    #[command(hide = true)]
    Docs(docs::Options),
    /// The program that `demo` watches
    #[command(hide = true)]
    DemoProgram,
}

impl Cli {
    /// Reads the command line; shows help, the version or what is wrong with it, and exits.
    pub fn read() -> Cli {
        let command = Cli::command().color(When::clap(std::env::args_os()));
        Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }
}

/// The exit status when a part of a file was not whole, and all else was used.
const PARTLY: u8 = 3;

/// Where verbs show their results and say what is wrong.
pub struct Console<'a> {
    pub out: &'a mut dyn Write,
    /// Takes a line, without its end.
    pub say: &'a mut dyn FnMut(&str),
    pub colors: Colors,
}

impl Console<'_> {
    /// Shows a result.
    fn print(&mut self, text: &str) -> Result<(), String> {
        unless_closed(self.out.write_all(text.as_bytes()))
            .map_err(|error| format!("cannot write to stdout: {error}"))
    }
}

/// What became of writing to stdout. Whoever reads it may have seen enough.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Does what the command line says. The exit status.
pub fn run(cli: &Cli, console: &mut Console) -> u8 {
    let done = |()| 0;
    let result = match &cli.verb {
        Verb::Run(options) => run::run(options, console),
        Verb::Flags(options) => flags::run(options, console),
        Verb::Inspect(options) => inspect::run(options, console),
        Verb::Extract(options) => extract::run(options, console),
        Verb::Merge(options) => merge::run(options, console),
        Verb::Report(options) => report::run(options, console),
        Verb::Stats(options) => stats::run(options, console),
        Verb::Export(options) => export::run(options, console),
        Verb::Doctor(options) => doctor::run(options, console),
        Verb::Demo(options) => demo::run(options).map(done),
        Verb::Docs(options) => docs::run(options, console),
        Verb::DemoProgram => demo::program::run().map(done),
    };
    result.unwrap_or_else(|error| {
        (console.say)(&format!("devprof: {error}"));
        1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_whole() {
        Cli::command().debug_assert();
    }
}
