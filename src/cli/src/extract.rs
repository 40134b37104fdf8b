//! `devprof extract`: writes the code objects in files to a directory.

use crate::console::Console;
use crate::exit::{Outcome, usage};
use crate::outfile;
use crate::readable::listed;
use anyhow::{Context, bail};
use clap::Args;
use code_objects::extract::{Filter, extract};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// Executables, libraries, objects, archives, bundles
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The directory to write to, created if it does not exist; - writes the only code object to stdout
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Extract only code objects with a coverage mapping, for llvm-cov
    #[arg(long)]
    with_coverage: bool,
    /// Extract only code objects for this processor (gfx90a) or target ID (gfx90a:xnack+); can be repeated
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    if !outfile::is_stdout(&options.output) {
        return to_directory(options, &options.output, true, console);
    }
    let scratch = tempfile::tempdir().context("cannot create a temporary directory")?;
    let outcome = to_directory(options, scratch.path(), false, console)?;
    let entries = fs::read_dir(scratch.path()).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    match &entries.context("cannot read a temporary directory")?[..] {
        // Warnings have reported why.
        [] => {}
        [one] => {
            let bytes = fs::read(one.path()).context("cannot read a temporary file")?;
            console.print_bytes(&bytes)?;
        }
        several => {
            return Err(usage(format!(
                "-o - writes one code object, and there are {}: select one with --target, or name a directory",
                several.len()
            )));
        }
    }
    Ok(outcome)
}

/// Extracts to a directory. Lists the files if `is_listed`.
fn to_directory(
    options: &Options,
    dir: &Path,
    is_listed: bool,
    console: &mut Console,
) -> anyhow::Result<Outcome> {
    let filter = Filter {
        with_coverage: options.with_coverage,
        targets: options.target.clone(),
    };
    let mut files = BTreeSet::new();
    let mut damage = 0;
    let mut shown = Ok(());
    let paths = options.files.iter().map(PathBuf::as_path);
    let seen = extract(paths, dir, &filter, &mut |found| match found {
        Ok(extracted) => {
            if files.insert(extracted.file.clone()) && is_listed && shown.is_ok() {
                shown = console.print(&format!("{}\n", extracted.file.display()));
            }
        }
        Err((location, why)) => {
            damage += 1;
            console.warn(format!("{location}: {why}"));
        }
    })
    .map_err(|error| {
        let path = dir.display();
        if dir.is_file() {
            return anyhow::anyhow!("cannot write to {path}: it is not a directory");
        }
        anyhow::Error::new(error).context(format!("cannot write to {path}"))
    })?;
    shown?;
    if !files.is_empty() {
        return Ok(Outcome::of(damage == 0));
    }
    // The warnings have reported the reason.
    if seen.objects == 0 && damage > 0 {
        return Ok(Outcome::Failed);
    }
    let names = listed(&options.files);
    if seen.objects == 0 {
        bail!("no code objects in {names}: `devprof inspect` shows the contents of a file");
    }
    let targets: Vec<&str> = seen.targets.iter().map(String::as_str).collect();
    if seen.without_coverage > 0 {
        bail!(
            "none of the {} code objects in {names} has a coverage mapping: compile and link with the flags that \
             `devprof flags --coverage` prints",
            seen.without_coverage
        );
    }
    bail!(
        "no code object in {names} is for {}; they are for {}",
        options.target.join(", "),
        targets.join(", ")
    )
}
