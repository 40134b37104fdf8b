use clap::Parser;
use devprof_cli::{Cli, Console, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut console = Console {
        out: &mut std::io::stdout(),
        say: &mut |line| eprintln!("{line}"),
    };
    run(&Cli::parse(), &mut console).into()
}
