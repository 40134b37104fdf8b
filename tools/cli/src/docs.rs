//! Man pages and completions, from the definition of the command line: what `tools/install` puts under share.

use crate::{Cli, Console};
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate_to};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// The directory that gets man/man1 and the shells' own
    share: PathBuf,
}

/// Where each shell looks.
const COMPLETIONS: [(Shell, &str, &str, &str); 3] = [
    (
        Shell::Bash,
        "bash-completion/completions",
        "devprof.bash",
        "devprof",
    ),
    (Shell::Zsh, "zsh/site-functions", "_devprof", "_devprof"),
    (
        Shell::Fish,
        "fish/vendor_completions.d",
        "devprof.fish",
        "devprof.fish",
    ),
];

pub fn run(options: &Options, _: &mut Console) -> Result<u8, String> {
    let man = directory(&options.share.join("man/man1"))?;
    let failed =
        |what: &Path, error: std::io::Error| format!("cannot write {}: {error}", what.display());
    clap_mangen::generate_to(Cli::command(), &man).map_err(|error| failed(&man, error))?;
    // clap_mangen's name for what stands behind the options.
    let page = man.join("devprof.1");
    fs::read_to_string(&page)
        .and_then(|text| {
            fs::write(
                &page,
                text.replace(".SH EXTRA\nExit status:\n", ".SH \"EXIT STATUS\"\n"),
            )
        })
        .map_err(|error| failed(&page, error))?;
    for (shell, place, made, name) in COMPLETIONS {
        let dir = directory(&options.share.join(place))?;
        let made = dir.join(made);
        generate_to(shell, &mut Cli::command(), "devprof", &dir)
            .and_then(|_| fs::rename(&made, dir.join(name)))
            .map_err(|error| failed(&made, error))?;
    }
    Ok(0)
}

fn directory(path: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    Ok(path.to_owned())
}
