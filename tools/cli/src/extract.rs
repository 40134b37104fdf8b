//! `devprof extract`: the code objects of files, as files.

use crate::{Console, PARTLY};
use clap::Args;
use code_objects::extract::{Filter, extract};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Args)]
pub struct Options {
    /// Executables, libraries, objects, archives, bundles
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where to write them; it is made if it is not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Only those with a coverage mapping, for llvm-cov
    #[arg(long)]
    with_coverage: bool,
    /// Only those for this processor (gfx90a) or target ID (gfx90a:xnack+); may be given several times
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
}

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let filter = Filter {
        with_coverage: options.with_coverage,
        targets: options.target.clone(),
    };
    let mut files = BTreeSet::new();
    let mut damage = 0;
    let mut shown = Ok(());
    let paths = options.files.iter().map(PathBuf::as_path);
    let seen = extract(paths, &options.output, &filter, &mut |found| match found {
        Ok(extracted) => {
            if files.insert(extracted.file.clone()) && shown.is_ok() {
                shown = console.print(&format!("{}\n", extracted.file.display()));
            }
        }
        Err((place, why)) => {
            damage += 1;
            (console.say)(&format!("devprof: {place}: {why}"));
        }
    })
    .map_err(|error| {
        let dir = options.output.display();
        match options.output.is_file() {
            true => format!("cannot write to {dir}: it is not a directory"),
            false => format!("cannot write to {dir}: {error}"),
        }
    })?;
    shown?;
    if !files.is_empty() {
        return Ok(if damage > 0 { PARTLY } else { 0 });
    }
    // What was said says why.
    if seen.objects == 0 && damage > 0 {
        return Ok(1);
    }
    let names: Vec<String> = options
        .files
        .iter()
        .map(|f| f.display().to_string())
        .collect();
    let names = names.join(", ");
    if seen.objects == 0 {
        return Err(format!(
            "no code objects in {names}: devprof inspect says what is in a file"
        ));
    }
    let targets: Vec<&str> = seen.targets.iter().map(String::as_str).collect();
    Err(if seen.without_coverage > 0 {
        format!(
            "none of the {} code objects in {names} has a coverage mapping: compile and link with the flags of \
             devprof flags --coverage",
            seen.without_coverage
        )
    } else {
        format!(
            "no code object in {names} is for {}; they are for {}",
            options.target.join(", "),
            targets.join(", ")
        )
    })
}
