use devprof_cli::{Cli, Console, Ink, run};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::read();
    let colors = cli.color.streams();
    let mut console = Console {
        out: &mut std::io::stdout(),
        say: &mut |line| {
            let line = match line.strip_prefix("devprof: ") {
                Some(problem) => format!("{} {problem}", Ink::Error.on(colors.say, "devprof:")),
                None => line.to_owned(),
            };
            // Where nobody listens there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{line}");
        },
        colors,
    };
    run(&cli, &mut console).into()
}
