//! `devprof inspect`: shows the GPU code, profiles and traces in files.

mod contents;
mod json;
mod text;

pub use json::Report;

use crate::console::Console;
use crate::exit::Outcome;
use crate::names::Naming;
use anyhow::Context;
use clap::Args;
use json::FileReport;
use std::path::PathBuf;

#[derive(Args)]
pub struct Options {
    /// Executables, libraries, objects, archives, code objects, profiles, traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object, with an element of `files` for each file
    #[arg(long)]
    json: bool,
    /// Show the kernels of each code object and the resources that they need: registers, LDS or shared memory, scratch or stack
    #[arg(long)]
    kernels: bool,
    /// Show the functions of raw profiles: how often each was entered, and how often its other blocks that have a counter ran
    #[arg(long)]
    functions: bool,
    #[command(flatten)]
    naming: Naming,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let (mut complete, mut empty) = (0, 0);
    let mut files = Vec::new();
    for (n, file) in options.files.iter().enumerate() {
        let contents = contents::read(file, options.functions, console);
        if contents.found.is_empty() {
            empty += 1;
        } else if contents.damage == 0 {
            complete += 1;
        }
        if options.json {
            files.push(FileReport::new(contents, &options.naming));
            continue;
        }
        if contents.found.is_empty() {
            continue;
        }
        let text = text::text(
            &contents,
            options.kernels,
            &options.naming,
            console.colors.stdout,
        );
        console.print(&format!("{}{text}", if n > 0 { "\n" } else { "" }))?;
    }
    if options.json {
        let report = Report::new(files);
        let text = serde_json::to_string_pretty(&report).context("cannot write JSON")?;
        console.print(&(text + "\n"))?;
    }
    Ok(match options.files.len() {
        files if complete == files => Outcome::Complete,
        files if empty == files => Outcome::Failed,
        _ => Outcome::Incomplete,
    })
}
