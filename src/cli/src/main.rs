use devprof_cli::{Cli, Console, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::read();
    let mut console = Console {
        out: &mut std::io::stdout(),
        err: &mut std::io::stderr(),
        colors: cli.color.streams(),
    };
    run(&cli, &mut console).into()
}
