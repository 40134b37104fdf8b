//! Man pages and shell completions, generated from the definition of the command line, and JSON schemas. `tools/install` installs them.

mod schemas;
mod sections;

use crate::exit::Outcome;
use anyhow::Context;
use clap::{Args, Command};
use clap_complete::{Shell, generate};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// The share directory of the installation
    share: PathBuf,
}

/// Each shell, and the file of its completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/devprof"),
    (Shell::Zsh, "zsh/site-functions/_devprof"),
    (Shell::Fish, "fish/vendor_completions.d/devprof.fish"),
];

/// `command`: the definition of the command line.
pub fn run(options: &Options, command: &Command) -> anyhow::Result<Outcome> {
    let man = options.share.join("man/man1");
    create_directory(&man)?;
    clap_mangen::generate_to(command.clone(), &man)
        .with_context(|| format!("cannot write man pages to {}", man.display()))?;
    for page in &sections::PAGES {
        complete(&man.join(format!("{}.1", page.name)), page)?;
    }
    for (shell, path) in COMPLETIONS {
        let mut completions = Vec::new();
        generate(shell, &mut command.clone(), "devprof", &mut completions);
        write(&options.share.join(path), &completions)?;
    }
    for (name, schema) in schemas::all() {
        let text = serde_json::to_string_pretty(&schema).context("cannot write JSON")? + "\n";
        let path = format!("devprof/schemas/{name}.schema.json");
        write(&options.share.join(path), text.as_bytes())?;
    }
    Ok(Outcome::Complete)
}

/// Adds the sections that clap_mangen does not write, and renames the one with the exit statuses, which it calls EXTRA.
fn complete(path: &Path, page: &sections::Page) -> anyhow::Result<()> {
    let completed = fs::read_to_string(path).and_then(|text| {
        let text = text.replace(".SH EXTRA\nExit status:\n", ".SH \"EXIT STATUS\"\n");
        // The version is the last section.
        let end = text.find(".SH VERSION\n").unwrap_or(text.len());
        let (text, version) = text.split_at(end);
        fs::write(path, [text, &page.roff(), version].concat())
    });
    completed.with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a file to a directory that need not exist.
fn write(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    create_directory(path.parent().unwrap_or(path))?;
    fs::write(path, contents).with_context(|| format!("cannot write {}", path.display()))
}

fn create_directory(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path)
        .with_context(|| format!("cannot create the directory {}", path.display()))
}
