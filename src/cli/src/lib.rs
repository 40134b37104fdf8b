//! The devprof command line: one module per command. It is a library so that tests can run commands thousands of times
//! in one process.

mod affected;
mod cc;
mod clang;
mod color;
mod console;
mod cover;
mod csv;
mod cuda_installation;
mod cuda_registers;
mod cuda_toolkit;
mod demo;
mod docs;
mod doctor;
mod exit;
mod export;
mod extract;
mod flags;
mod functions;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod git;
mod gpus;
mod inspect;
pub mod llvm;
mod locate;
pub mod merge;
mod names;
mod outfile;
mod parallel;
mod paths;
mod progress;
mod readable;
mod report;
mod returns;
mod run;
mod run_log;
mod stats;
mod table;
mod times;
mod trace_reader;
mod traces;
mod triton;

pub use color::{ColorWhen, Colors};
pub use console::{Console, Diagnostic, Severity};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use cuda_toolkit::tool;

/// Saves the counters of GPU kernels and traces their dispatches
#[derive(Parser)]
#[command(name = "devprof", version, after_long_help = exit::HELP)]
pub struct Cli {
    /// Whether to color results and diagnostics
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: ColorWhen,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run tests, and show which source lines ran on the GPUs
    ///
    /// The command can be ctest, pytest, make check, mpirun or a script: the counts of all its processes are merged. The exit status
    /// is that of the command if it failed; otherwise 1 if there is no coverage, or 3 or 4 as for `devprof report`.
    Cover(cover::Options),
    /// Print the tests that a change can affect
    ///
    /// Reads the database that `devprof cover --per-test` has written. A test is left out only if it did not run what was changed.
    /// If that is not known, for example for a changed build file, all tests are printed, and the reason on stderr. It is an error if
    /// the commit does not exist.
    Affected(affected::Options),
    /// Run a compiler with the flags that profile what it compiles or links
    ///
    /// A launcher for build systems: -DCMAKE_HIP_COMPILER_LAUNCHER="devprof;cc;--coverage" for CMake, CXX="devprof cc --coverage
    /// clang++" for make. The compiler's command must be able to build the project without devprof. Prints nothing, and exits as the
    /// compiler does.
    Cc(cc::Options),
    /// Run a program with devprof loaded, and summarize the collected data
    ///
    /// The exit status is the program's own. If the program succeeds, but counts were lost, it is 3. If a signal kills
    /// the program, devprof ends by the same signal. The status is 127 if the program is not found, 126 if it cannot be executed, 2 if the command line is not valid, and 1 if
    /// devprof itself fails. These signals are forwarded to the program: SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1,
    /// SIGUSR2, SIGWINCH, SIGTSTP and SIGCONT. Those that a terminal sends reach the program directly.
    Run(run::Options),
    /// Print the compiler and linker flags for the installed clang
    ///
    /// Like llvm-config for LLVM: clang++ -x hip a.hip $(devprof flags --coverage) -o a
    Flags(flags::Options),
    /// Make a CUDA toolkit whose nvcc gives device code coverage
    ///
    /// It has links to the original toolkit, a copy of nvcc, and scripts that instrument the code that nvcc passes to ptxas.
    /// Build programs with its bin/nvcc and -lineinfo, run them with `devprof run`.
    CudaToolkit(cuda_toolkit::Options),
    /// Show the contents of files: code objects with their kernels, counters and coverage mapping; profiles; traces
    Inspect(inspect::Options),
    /// Extract the code objects from files into a directory
    ///
    /// Each file is named after its code object's target and build ID. A hash of the contents is added, or replaces the
    /// build ID, if that is needed to make the name unique.
    Extract(extract::Options),
    /// Merge profiles into one, with the llvm-profdata versions that can read them
    Merge(merge::Options),
    /// Show which source lines ran on the GPUs, and the calls and times of kernels
    Report(report::Options),
    /// Show the times of kernels, API calls, copies and markers in traces (DEVPROF_TRACE), and gaps between kernels
    Stats(stats::Options),
    /// Convert traces (DEVPROF_TRACE) to a format that other tools read
    Export(export::Options),
    /// Check the installation and print the command that fixes each problem
    ///
    /// The exit status is 3 if a required component is missing. Warnings do not change it.
    Doctor(doctor::Options),
    /// Run instrumented kernels on two simulated GPUs and show their counters
    Demo(demo::Options),
    /// Write man pages, shell completions and JSON schemas
    #[command(hide = true)]
    Docs(docs::Options),
    /// What the scripts of `cuda-toolkit` start
    #[command(hide = true)]
    CudaTool(tool::Options),
    /// The program that `demo` runs
    #[command(hide = true)]
    DemoProgram,
}

impl Cli {
    /// Parses the command line. If it asks for help or the version, or is not valid, prints that and exits.
    pub fn read() -> Cli {
        // A build starts this command for each file, and clap needs longer to define all commands than it has to do for a small one.
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|name| name == tool::NAME) {
            let command = tool::Options::augment_args(clap::Command::new(tool::NAME));
            let matches = command.no_binary_name(true).get_matches_from(arguments);
            return Cli {
                color: ColorWhen::default(),
                command: Command::CudaTool(
                    tool::Options::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()),
                ),
            };
        }
        let command = Cli::command().color(ColorWhen::for_clap(std::env::args_os()));
        Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }
}

/// Runs the command. Returns the exit status.
pub fn run(cli: &Cli, console: &mut Console) -> u8 {
    let result = match &cli.command {
        Command::Run(options) => run::run(options, console),
        Command::Cc(options) => cc::run(options),
        Command::Affected(options) => affected::run(options, console),
        Command::Cover(options) => cover::run(options, console),
        Command::Flags(options) => flags::run(options, console),
        Command::CudaToolkit(options) => cuda_toolkit::run(options, console),
        Command::CudaTool(options) => tool::run(options, console),
        Command::Inspect(options) => inspect::run(options, console),
        Command::Extract(options) => extract::run(options, console),
        Command::Merge(options) => merge::run(options, console),
        Command::Report(options) => report::run(options, console),
        Command::Stats(options) => stats::run(options, console),
        Command::Export(options) => export::run(options, console),
        Command::Doctor(options) => doctor::run(options, console),
        Command::Demo(options) => demo::run(options, console),
        Command::Docs(options) => docs::run(options, &Cli::command()),
        Command::DemoProgram => demo::program::run(),
    };
    if let Some(refused) = names::refused() {
        console.warn(refused);
    }
    if let Err(error) = &result {
        console.error(format!("{error:#}"));
    }
    exit::status(&result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
