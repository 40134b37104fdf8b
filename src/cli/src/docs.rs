//! Man pages and shell completions, generated from the definition of the command line, and JSON schemas. `tools/install` installs them.

mod schemas;
mod sections;

use crate::exit::Outcome;
use anyhow::Context;
use clap::{Args, Command};
use clap_complete::{Shell, generate_to};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// The share directory of the installation
    share: PathBuf,
}

/// Each shell, its directory for completions, the name of the generated file, and the name that the shell expects.
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

/// `command`: the definition of the command line.
pub fn run(options: &Options, command: &Command) -> anyhow::Result<Outcome> {
    let man = options.share.join("man/man1");
    create_directory(&man)?;
    clap_mangen::generate_to(command.clone(), &man)
        .with_context(|| format!("cannot write man pages to {}", man.display()))?;
    for page in &sections::PAGES {
        complete(&man.join(format!("{}.1", page.name)), page)?;
    }
    for (shell, dir, generated, name) in COMPLETIONS {
        let dir = options.share.join(dir);
        create_directory(&dir)?;
        let generated = dir.join(generated);
        generate_to(shell, &mut command.clone(), "devprof", &dir)
            .and_then(|_| fs::rename(&generated, dir.join(name)))
            .with_context(|| format!("cannot write {}", generated.display()))?;
    }
    let dir = options.share.join("devprof/schemas");
    create_directory(&dir)?;
    for (name, schema) in schemas::all() {
        let path = dir.join(format!("{name}.schema.json"));
        let text = serde_json::to_string_pretty(&schema).context("cannot write JSON")?;
        fs::write(&path, text + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
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

fn create_directory(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path)
        .with_context(|| format!("cannot create the directory {}", path.display()))
}
